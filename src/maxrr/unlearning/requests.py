"""What is asked for: which records to forget, and what to do if they are core."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset

Ints = NDArray[np.int64]

Technique = Callable[[nn.Module, Dataset, Dataset], nn.Module]
"""Extractor, the core records that stay and those to forget → a new extractor: a stricter way than leaving it alone."""

HEAD, RETRAIN, REFUSE = "head", "retrain", "refuse"
RETAINED, INFLUENTIAL = "retained", "influential"


@dataclass(frozen=True)
class Request:
    """A request, looked up: the rows of the records to forget and of those among them that are core, and its policy.

    Of records that were forgotten before, the marks are known. `left_in_extractor` is how many of the records asked for
    remain in the extractor, forgotten before or in an earlier version.
    """

    rows: Ints
    core_rows: Ints
    unknown: list[Any]
    forgotten_before: tuple[bytes, ...]
    left_in_extractor: int
    core_policy: str | Technique
    refit: str

    @property
    def already_forgotten(self) -> int:
        return len(self.forgotten_before)

    @property
    def touches_core(self) -> bool:
        return len(self.core_rows) > 0

    @property
    def makes_extractor(self) -> bool:
        """Whether another extractor takes the place of the present one."""
        return self.retrains or (self.touches_core and callable(self.core_policy))

    @property
    def retrains(self) -> bool:
        """Whether the extractor is trained again: without these records, or without those that remained in it."""
        return self.core_policy == RETRAIN and (self.touches_core or self.left_in_extractor > 0)

    @property
    def does_something(self) -> bool:
        return len(self.rows) > 0 or self.retrains

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.core_policy if isinstance(self.core_policy, str) else "technique"


def check_policy(core_policy: str | Technique, refit: str) -> None:
    """Refuse words that mean nothing."""
    if not callable(core_policy) and core_policy not in (HEAD, RETRAIN, REFUSE):
        raise ValueError(f"core_policy is '{HEAD}', '{RETRAIN}', '{REFUSE}' or a function, not {core_policy!r}")
    if refit not in (RETAINED, INFLUENTIAL):
        raise ValueError(f"refit is '{RETAINED}' or '{INFLUENTIAL}', not {refit!r}")
