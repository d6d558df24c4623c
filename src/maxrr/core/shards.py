"""The core in shards: an extractor for each sees the records of that shard alone."""

import hmac
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.hashes import framed, identifier_bytes
from maxrr.nets.seeding import stream

# Keyed hashes of record ids: numbers that look drawn at random, yet belong to a record and to nothing else.
#
# They decide what must not depend on the order of rows or on other records. Without the key nobody can tell what is
# decided about a record, or choose an id so that it is decided in a certain way.


TIE_BREAKER = b"maxrr"
"""What ids are hashed with to break ties, if nothing else is asked for. It is no secret."""

CORE, SHARD = b"core", b"shard"  # hashed first, so that one hash of an id under a key says nothing about another


def as_bytes(given: bytes | str, what: str) -> bytes:
    """Convert a key or a tie breaker to bytes; messages never show it."""
    if not isinstance(given, bytes | str):
        raise ValueError(f"a {what} is bytes or a string, not {type(given).__name__}")
    if not given:
        raise ValueError(f"the {what} is empty: give one byte or more")
    return given.encode() if isinstance(given, str) else given


def keyed_hashes(ids: NDArray[Any], key: bytes, purpose: bytes = CORE) -> list[bytes]:
    """HMAC-SHA256 of each id for one purpose, 32 bytes. Integers and strings differ, 1 from '1'.

    >>> import numpy as np
    >>> keyed_hashes(np.array([1]), b"k") == keyed_hashes(np.array(["1"]), b"k")
    False
    """
    return [hmac.digest(key, framed(purpose, identifier_bytes(id_)), "sha256") for id_ in ids.tolist()]


PERSON, RECORD = "subject", "record"  # what decides about a record: whom it is about, or its own id


def decided_by(by: str, ids: NDArray[Any], subjects: NDArray[Any] | None) -> NDArray[Any]:
    """Return what is hashed for each record: the person, if asked for and known, or the record's own id."""
    return ids if subjects is None or by == RECORD else subjects


SEEDS = 13  # the stream below the model's seed that gives those of shards


@dataclass(frozen=True)
class Sharding:
    """Which shard a record belongs to: by a keyed hash of its person or id, whatever other records there are.

    Parameters
    ----------
    count : int
        How many shards there are, 1 or more.
    key : bytes
        The key of the hash.
    by : str
        "subject": all records of a person are in one shard; "record": each record is decided by its id.

    Examples
    --------
    >>> Sharding(4, b"house").of(np.arange(8)).tolist()
    [0, 1, 2, 0, 0, 3, 1, 2]
    """

    count: int = 1
    key: bytes = field(default=TIE_BREAKER, repr=False)
    by: str = PERSON

    def of(self, ids: NDArray[Any], subjects: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """The number of the shard of each record, from 0.

        Parameters
        ----------
        ids
            Record ids.
        subjects
            Whom each record is about, if that is said.

        Returns
        -------
        ndarray of int
            One number per id.
        """
        if self.count == 1:
            return np.zeros(len(ids), dtype=np.int64)
        hashes = keyed_hashes(decided_by(self.by, ids, subjects), self.key, SHARD)
        return np.array([int.from_bytes(value[:8], "big") * self.count >> 64 for value in hashes], dtype=np.int64)

    def seed(self, seed: int, shard: int) -> int:
        """Return the seed of a shard's extractor, derived from the model's; a single shard has the model's own seed.

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
    """Return which of these shards lack records of two classes."""
    return [number for number in shards if len(np.unique(labels[shard == number])) < 2]


def sharding_of(core: object) -> Sharding:
    """Return how a core is divided; a core that does not say so is one shard."""
    key: bytes | str = getattr(core, "key", getattr(core, "tie_breaker", TIE_BREAKER))
    return Sharding(getattr(core, "shards", 1), as_bytes(key, "key"), getattr(core, "by", PERSON))


def checked_count(shards: int) -> int:
    """Check the number of shards, and return it as an int."""
    try:
        count = operator.index(shards)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"shards is a whole number from 1 on, not {shards!r:.80}")
    return count
