"""What is asked for: which records to forget or to add, which one to learn instead, and what to do about core ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.unlearning.classes import Classes

Ints = NDArray[np.int64]

Technique = Callable[[nn.Module, Dataset, Dataset], nn.Module]
"""A function that gets the extractor, the core records that stay and those to forget, and returns another extractor."""

REFUSE, RETRAIN, KEEP = "refuse", "retrain", "keep-extractor"
TECHNIQUE = "technique"  # what a function as policy is called


@dataclass(frozen=True, eq=False)
class Request:
    """A request, looked up in one state of a model.

    Attributes
    ----------
    rows, core_rows
        Where the records to forget stand, and those among them that are core.
    unknown : list
        Ids that no record has or had.
    forgotten_before : tuple of bytes
        The HMACs of the ids of records that were forgotten before.
    left_in_extractor : int
        How many of the records asked for remain in the extractor, forgotten before or in an earlier version.
    core_policy
        As in `MaxRR.unlearn`.
    added : Dataset or None
        The records that arrive: the one that takes the place of the one to forget, or those to add.
    classes : Classes or None
        The classes of the model once these records are there, by whose numbers they are labelled; None where they are
        those that it has.
    copies, allow_copies
        How many of the records added have the values of forgotten ones, and why they are let in.
    """

    rows: Ints
    core_rows: Ints
    unknown: list[Any]
    forgotten_before: tuple[bytes, ...]
    left_in_extractor: int
    core_policy: str | Technique
    added: Dataset | None = None
    classes: Classes | None = None
    copies: int = 0
    allow_copies: str | None = None

    @property
    def already_forgotten(self) -> int:
        return len(self.forgotten_before)

    @property
    def adds(self) -> bool:
        """Whether records arrive and none leaves."""
        return self.added is not None and not len(self.rows)

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.core_policy if isinstance(self.core_policy, str) else TECHNIQUE


def check_policy(core_policy: str | Technique) -> None:
    """Refuse a word that means nothing."""
    if not callable(core_policy) and core_policy not in (REFUSE, RETRAIN, KEEP):
        raise ValueError(
            f"core_policy is '{REFUSE}', '{RETRAIN}', '{KEEP}' or a function, not {core_policy!r}"
        )  # fmt: skip
