"""The records that the extractor is trained on, and what choosing them depended on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import Training
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
    ) -> Choice:  # fmt: skip
        """Choose the core among these records.

        A core that decides for each record by itself also has a method `is_core(ids)`, for any ids.

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

        Returns
        -------
        Choice
            The core, and what it depended on.

        Raises
        ------
        ValueError
            No core can be chosen: it would be empty, or all of one class.
        """


def chosen(
    dataset: Dataset, ids: NDArray[Any], *, kind: str, unconditional: bool, depended_on: str, shards: int = 1,
    **details: int | float,
) -> Choice:  # fmt: skip
    """The choice of these records, if a classifier can be trained on them.

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
    facts: Details = {"kind": kind, "k": len(ids), **details, **in_shards(shards)}
    missing = np.setdiff1d(dataset.labels, labels)
    if len(missing):  # their number: names stay on receipts when the records of a class have gone
        facts["classes_missing"] = len(missing)
    return Choice(np.sort(ids), unconditional, depended_on, facts)


def in_shards(count: int) -> Details:
    """What details say of shards: nothing where there is one, as before there were several."""
    return {"shards": count} if count > 1 else {}


def check_classes(dataset: Dataset) -> None:
    """Refuse, before long work, records that no core could be chosen from."""
    found = len(np.unique(dataset.labels))
    if found < 2:
        raise ValueError(f"a core is chosen among records of two classes or more, but these have {found}")
