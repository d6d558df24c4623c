"""Extractors that several audits of one model compare with.

Models retrained without the records stand on extractors that were trained on the core which is left: the same for every
request that the model has answered so far. So they are trained once. They are kept in memory alone. None saw a record
that was forgotten before; an audit with another core drops them all. Whoever forgets core records and audits no more
drops the pool, since its extractors saw these.

Audits that share them have p-values which hold for each by itself, and which are not independent: an odd pool errs in
all of them together.
"""

import hashlib

from torch import nn

from maxrr.data import Dataset
from maxrr.unlearning.blueprint import Blueprint


class ShadowPool:
    """Hand the same pool to all audits of a model.

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
        """Those trained on these core records, by seed; empty if the last ones were of other records."""
        facts = (core.content_hash(), repr(blueprint.recipe), str(blueprint.network), str(blueprint.given))
        of = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        if of != self._of:
            self._of, self._extractors = of, {}
        return self._extractors
