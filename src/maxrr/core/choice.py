"""The records that the extractor is trained on: what choosing them depended on, and cores by a hash or of all."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.core.shards import PERSON, RECORD, TIE_BREAKER, as_bytes, checked_count, decided_by, keyed_hashes
from maxrr.data import Dataset
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import Training
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress

Details = dict[str, int | float | str]
"""Facts about a choice by name: numbers and words that can be written as JSON."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Which records the extractor is trained on.

    Being core says something about a record, so that the ids appear in no `repr` and no message.

    Attributes
    ----------
    ids
        The core records, sorted; none for a frozen extractor.
    unconditional
        Whether exactness holds unconditionally. If not, it holds *given the core*: other records influenced which ones
        were chosen.
    depended_on
        What the choice depended on, in one sentence for people. Every receipt repeats it.
    details
        Numbers and words that can be handed out and written as JSON: `kind`, and how the core came about. Where the
        extractor will not see some of the classes, `classes_missing` says how many; where there are several, `shards`
        how many extractors share the core.
    """

    ids: NDArray[Any]
    unconditional: bool
    depended_on: str
    details: Details

    def __repr__(self) -> str:
        return f"<Choice: {self.details['kind']} core of {len(self.ids):,} records>"


class Core(Protocol):
    """A way to choose the core. Whatever trains or forgets uses nothing of it but the `Choice` that it makes."""

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Training, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
        engine: EngineLike = None,
    ) -> Choice:  # fmt: skip
        """Choose the core among these records.

        A core that decides for each record by itself also has a method `is_core(ids, subjects)`, for any.

        Parameters
        ----------
        network
            The network whose extractor will be trained.
        dataset
            The records to choose among.
        C
            The weight of the losses with which the heads will be fitted.
        recipe
            How the extractor will be trained: a recipe, or a function of the caller's own.
        seed
            The model's seed. Networks that are trained for the choice alone get other seeds, drawn from this one.
        device
            Where networks are trained, as in `maxrr.nets.train`.
        folder
            Where long work keeps what it has done, to go on from there after an interruption.
        progress
            Called as long work goes on.
        engine
            Where long work is done; by default on this machine.

        Returns
        -------
        Choice
            The core, and what it depended on.

        Raises
        ------
        ValueError
            No core can be chosen: it would be empty, or all of one class.
        """


class Words(NamedTuple):
    """The words of a choice by a rule: what it depended on, and those details that no record changes."""

    depended_on: str
    details: Details


def words_of(core: Core | None, network: Network) -> Words | None:
    """Return the words of a rule of this library; None for any other rule.

    >>> words_of(HashCore(0.3, key="house"), network=None).details
    {'kind': 'hash', 'fraction': 0.3, 'by': 'subject'}
    """
    words = getattr(core, "_words", None) if type(core).__module__.startswith("maxrr.core.") else None
    return None if words is None else words(network)


def choice_of(
    dataset: Dataset, ids: NDArray[Any], words: Words, *, unconditional: bool, **details: int | float
) -> Choice:
    """Make the choice of these records; refuse a core that no classifier can be trained on.

    Raises
    ------
    ValueError
        The core is empty, or all of one class.
    """
    if not len(ids):
        raise ValueError("no record is core, so there is nothing to train the extractor on: choose a larger core")
    labels = np.unique(dataset.labels[dataset.rows(ids)])
    if len(labels) < 2:
        raise ValueError(
            f"all {len(ids):,} core records are of class {dataset.class_names[labels[0]]!r}, and the extractor needs "
            "two classes to tell apart: choose a larger core"
        )
    facts: Details = {**words.details, "k": len(ids), **details}
    missing = np.setdiff1d(dataset.labels, labels)
    if len(missing):  # their number: names stay on receipts when the records of a class have gone
        facts["classes_missing"] = len(missing)
    return Choice(np.sort(ids), unconditional, words.depended_on, facts)


def in_shards(count: int) -> Details:
    """Return the number of shards as a detail, if there are several."""
    return {"shards": count} if count > 1 else {}


def check_classes(dataset: Dataset) -> None:
    """Refuse, before long work, records that no core could be chosen from."""
    found = len(np.unique(dataset.labels))
    if found < 2:
        raise ValueError(f"a core is chosen among records of two classes or more, but these have {found}")


@dataclass(frozen=True)
class HashCore:
    """A record is core if a keyed hash of its person, or of its id, says so, whatever other records there are.

    When records are forgotten, the core of the others is what it would have been without them: exactness is
    unconditional. Where records say whom they are about, a person is wholly core or not at all: a core of a tenth then
    concerns a tenth of the people, where by record it would hold a record of 88 % of those with 20 records each.

    Parameters
    ----------
    fraction : float
        About which share of all records is core: above 0, at most 1.
    key : bytes or str
        The key of the hash. Keep it secret: it tells of anybody whether their records are core, and in which shard.
    shards : int
        Into how many shards the core is divided, 1 by default. Each has an extractor of its own, so that forgetting a
        core record exactly trains one of them again.
    by : str
        What decides: "subject" (the default), whom a record is about, and its own id where the records do not say; or
        "record", always its own id.

    Examples
    --------
    >>> core = HashCore(0.25, key="secret")
    >>> int(core.is_core(np.arange(10_000)).sum()), core
    (2478, HashCore(fraction=0.25, shards=1, by='subject'))
    """

    fraction: float
    key: bytes | str = field(repr=False)
    shards: int = 1
    by: str = PERSON

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", float(self.fraction))
        object.__setattr__(self, "shards", checked_count(self.shards))
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"a fraction of the records is above 0 and at most 1, not {self.fraction:g}")
        object.__setattr__(self, "key", as_bytes(self.key, "key"))
        if self.by not in (PERSON, RECORD):
            raise ValueError(f"by is {PERSON!r} or {RECORD!r}, not {self.by!r:.80}")

    def is_core(self, ids: NDArray[Any], subjects: NDArray[Any] | None = None) -> NDArray[np.bool_]:
        """Whether records are core: the first 64 bits of the hash, as a fraction, are below `fraction`.

        Parameters
        ----------
        ids
            Record ids.
        subjects
            Whom each record is about, if that is said.

        Returns
        -------
        ndarray of bool
            One answer per id.
        """
        bound = self.fraction * 2.0**64  # exact, and Python compares integers with it exactly
        hashes = keyed_hashes(decided_by(self.by, ids, subjects), as_bytes(self.key, "key"))
        return np.array([int.from_bytes(value[:8], "big") < bound for value in hashes], dtype=bool)

    def _words(self, network: Network) -> Words:
        """Return the words of every choice by this rule."""
        what = "its id" if self.by == RECORD else "whom it is about (where nothing says so, its id)"
        because = f"whether a record is core depends on {what} and a key alone, not on any other record"
        return Words(because, {"kind": "hash", "fraction": self.fraction, "by": self.by, **in_shards(self.shards)})

    def choose(self, network: Network, dataset: Dataset, **_: Any) -> Choice:
        """Choose the core, as `Core.choose` does; nothing but names and classes of the records is looked at."""
        check_classes(dataset)
        ids = dataset.ids[self.is_core(dataset.ids, dataset.subjects)]
        return choice_of(dataset, ids, self._words(network), unconditional=True)


@dataclass(frozen=True)
class FullCore:
    """Every record is core, as in the paper's plain model splitting: some extractor has seen whatever is forgotten.

    Parameters
    ----------
    shards : int
        Into how many shards the records are divided, as in `HashCore`.
    key : bytes or str
        What is hashed with to find shards. Whoever knows it knows in which shard a record is.
    """

    shards: int = 1
    key: bytes | str = field(default=TIE_BREAKER, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", checked_count(self.shards))
        object.__setattr__(self, "key", as_bytes(self.key, "key"))

    def is_core(self, ids: NDArray[Any], subjects: NDArray[Any] | None = None) -> NDArray[np.bool_]:
        """Whether records are core: all are.

        Parameters
        ----------
        ids
            Record ids.
        subjects
            Whom each record is about, if that is said.

        Returns
        -------
        ndarray of bool
            True for each.
        """
        return np.ones(len(ids), dtype=bool)

    def _words(self, network: Network) -> Words:
        """Return the words of every choice by this rule."""
        return Words("every record is core: nothing was chosen", {"kind": "full", **in_shards(self.shards)})

    def choose(self, network: Network, dataset: Dataset, **_: Any) -> Choice:
        """Choose all records, as `Core.choose` does."""
        check_classes(dataset)
        return choice_of(dataset, dataset.ids, self._words(network), unconditional=True)
