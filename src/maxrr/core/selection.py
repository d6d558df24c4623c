"""Cores that are chosen without training: by a hash, or all records."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.core.choice import Choice, check_classes, chosen
from maxrr.core.shards import TIE_BREAKER, Sharding, as_bytes, checked_count, keyed_hashes
from maxrr.data import Dataset
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import Training
from maxrr.progress import Progress

BY_HASH = "whether a record is core depends on its id and a key alone, not on any other record"
EVERY_RECORD = "every record is core: nothing was chosen"


@dataclass(frozen=True)
class HashCore:
    """A record is core if a keyed hash of its id says so. Whether it is does not depend on any other record.

    When records are forgotten, the core of the others is what it would have been without them: exactness is
    unconditional.

    Parameters
    ----------
    fraction : float
        About which share of all records is core: above 0, at most 1.
    key : bytes or str
        The key of the hash. Keep it secret: it tells for any id whether the record is core, and in which shard.
    shards : int
        Into how many shards the core is divided, 1 by default. Each has an extractor of its own, so that forgetting a
        core record exactly trains one of them again. Which shard a record is in depends on its id and the key alone.

    Examples
    --------
    >>> core = HashCore(0.25, key="secret")
    >>> int(core.is_core(np.arange(10_000)).sum()), core
    (2478, HashCore(fraction=0.25, shards=1))
    """

    fraction: float
    key: bytes | str = field(repr=False)
    shards: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", float(self.fraction))
        object.__setattr__(self, "shards", checked_count(self.shards))
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"a fraction of the records is above 0 and at most 1, not {self.fraction:g}")
        object.__setattr__(self, "key", as_bytes(self.key, "key"))

    @property
    def sharding(self) -> Sharding:
        """Which shard each core record is in."""
        return Sharding(self.shards, as_bytes(self.key, "key"))

    def is_core(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether records with these ids are core: the first 64 bits of the hash, as a fraction, are below `fraction`.

        Parameters
        ----------
        ids
            Record ids.

        Returns
        -------
        ndarray of bool
            One answer per id.
        """
        bound = self.fraction * 2.0**64  # exact, and Python compares integers with it exactly
        hashes = keyed_hashes(ids, as_bytes(self.key, "key"))
        return np.array([int.from_bytes(value[:8], "big") < bound for value in hashes], dtype=bool)

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Training, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    ) -> Choice:  # fmt: skip
        """Choose the core, as `Core.choose` does; nothing but the ids and the classes of the records is looked at."""
        check_classes(dataset)
        return chosen(
            dataset, dataset.ids[self.is_core(dataset.ids)], kind="hash", unconditional=True,
            depended_on=BY_HASH, fraction=self.fraction, shards=self.shards,
        )  # fmt: skip


@dataclass(frozen=True)
class FullCore:
    """Every record is core, as in the paper's plain model splitting: some extractor has seen whatever is forgotten.

    Parameters
    ----------
    shards : int
        Into how many shards the records are divided, as in `HashCore`.
    key : bytes or str
        What ids are hashed with to find their shards. Whoever knows it knows for any id in which shard its record is.
    """

    shards: int = 1
    key: bytes | str = field(default=TIE_BREAKER, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", checked_count(self.shards))
        object.__setattr__(self, "key", as_bytes(self.key, "key"))

    @property
    def sharding(self) -> Sharding:
        """Which shard each record is in."""
        return Sharding(self.shards, as_bytes(self.key, "key"))

    def is_core(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether records with these ids are core: all are.

        Parameters
        ----------
        ids
            Record ids.

        Returns
        -------
        ndarray of bool
            True for each.
        """
        return np.ones(len(ids), dtype=bool)

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Training, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    ) -> Choice:  # fmt: skip
        """Choose all records, as `Core.choose` does."""
        check_classes(dataset)
        return chosen(
            dataset, dataset.ids, kind="full", unconditional=True,
            depended_on=EVERY_RECORD, shards=self.shards,
        )  # fmt: skip
