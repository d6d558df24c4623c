"""The core in shards: an extractor for each sees the records of that shard alone."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core.hashing import SHARD, TIE_BREAKER, keyed_hashes
from maxrr.nets.seeding import stream

SEEDS = 13  # the stream below the model's seed that gives those of shards


@dataclass(frozen=True)
class Sharding:
    """Which shard a record belongs to: by a keyed hash of its id, whatever other records there are.

    Parameters
    ----------
    count : int
        How many shards there are, 1 or more.
    key : bytes
        The key of the hash.

    Examples
    --------
    >>> Sharding(4, b"house").of(np.arange(8)).tolist()
    [0, 1, 2, 0, 0, 3, 1, 2]
    """

    count: int = 1
    key: bytes = field(default=TIE_BREAKER, repr=False)

    def of(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """The number of the shard of each record, from 0.

        Parameters
        ----------
        ids
            Record ids.

        Returns
        -------
        ndarray of int
            One number per id.
        """
        if self.count == 1:
            return np.zeros(len(ids), dtype=np.int64)
        hashes = keyed_hashes(ids, self.key, SHARD)
        return np.array([int.from_bytes(value[:8], "big") * self.count >> 64 for value in hashes], dtype=np.int64)

    def seed(self, seed: int, shard: int) -> int:
        """The seed of a shard's extractor, below that of the model; of a single one the model's own.

        Where there are several it does not depend on how many, no two are the same, and each has 32 bits: NumPy's
        `np.random.seed` and scikit-learn's `random_state` take no more.

        Parameters
        ----------
        seed
            The model's seed.
        shard
            The number of the shard, from 0.

        Returns
        -------
        int
            The seed.
        """
        if self.count == 1:
            return seed
        first = int(stream(seed, SEEDS).generate_state(1, np.uint32)[0])
        return (first + shard) % 2**32


class UntrainedShardsWarning(UserWarning):
    """Some shards have no core records of two classes, so that their extractors cannot be trained."""


def untrained(shard: NDArray[np.int64], labels: NDArray[np.int64], shards: Iterable[int]) -> list[int]:
    """Which of these shards have no records of two classes. Records by their shard and label."""
    return [number for number in shards if len(np.unique(labels[shard == number])) < 2]


def sharding_of(core: object) -> Sharding:
    """How a way to choose the core divides it: as it says, or not at all."""
    found = getattr(core, "sharding", None)
    return found if isinstance(found, Sharding) else Sharding()


def checked_count(shards: int) -> int:
    """The number of shards as a plain one."""
    try:
        count = operator.index(shards)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"shards is a whole number from 1 on, not {shards!r:.80}")
    return count
