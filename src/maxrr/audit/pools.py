"""Extractors that several audits of one model compare with.

Models retrained without the records stand on extractors that were trained on the core which is left: the same for every
request that the model has answered so far. So they are trained once. They are kept in memory alone. None saw a record
that was forgotten before; an audit with another core drops them all. When core records are forgotten and no audit
follows, drop the pool: its extractors saw these records.

Audits that share them have p-values which hold for each by itself, and which are not independent: an odd pool errs in
all of them together.
"""

import hashlib

from torch import nn

from maxrr.data import Dataset
from maxrr.unlearning.blueprint import Blueprint


class ShadowPool:
    """Extractors without the forgotten records, for several audits of one model: hand the same pool to all of them.

    Examples
    --------
    >>> pool = ShadowPool()
    >>> len(pool)
    0
    """

    def __init__(self) -> None:
        self._of: str | None = None
        self._extractors: dict[int, nn.Module] = {}

    def __len__(self) -> int:
        return len(self._extractors)

    def known(self, blueprint: Blueprint, core: Dataset) -> dict[int, nn.Module]:
        """The extractors that were trained on these core records. Those of other records are dropped.

        Parameters
        ----------
        blueprint
            How the model's extractor is trained.
        core
            The core records.

        Returns
        -------
        dict of int to torch.nn.Module
            Extractors by seed. What a caller adds is kept for the next audit.
        """
        facts: tuple[str, ...] = (
            core.content_hash(),
            str(blueprint.recipe.facts),
            str(blueprint.network),
            str(blueprint.given),
        )
        facts += (str(blueprint.sharding.count), blueprint.sharding.key.hex()) if blueprint.sharding.count > 1 else ()
        of = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        if of != self._of:
            self._of, self._extractors = of, {}
        return self._extractors
