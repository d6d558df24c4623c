"""What a request will do, to which guarantee, at what cost: said before anything is touched."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.unlearning.guarantees import MEANING, Guarantee

Ints = NDArray[np.int64]

Technique = Callable[[nn.Module, Dataset, Dataset], nn.Module]
"""Extractor, the core records that stay and those to forget → a new extractor: a stricter way than leaving it alone."""

HEAD, RETRAIN, REFUSE = "head", "retrain", "refuse"
RETAINED, INFLUENTIAL = "retained", "influential"


@dataclass(frozen=True)
class Plan:
    """What `unlearn` would do with a request.

    Attributes
    ----------
    guarantee
        What the result would be.
    reason
        Why, in a sentence.
    requested, core, influential, neither, unknown, already_forgotten : int
        Records asked for. Core ones are not counted among the influential again.
    duplicates_left : int
        Other records with exactly the features of a requested one, which stay in the data.
    heads : int
        How many heads move to another optimum.
    trains, embeds : int
        How many records the extractor is trained on again, and how many are embedded again.
    refusal : str or None
        Why `unlearn` would refuse, and what to do instead.
    """

    guarantee: Guarantee
    reason: str
    requested: int
    core: int
    influential: int
    neither: int
    unknown: int
    already_forgotten: int
    duplicates_left: int
    heads: int
    trains: int
    embeds: int
    refusal: str | None

    def __str__(self) -> str:
        said = f"{self.guarantee}: {self.reason}"
        return f"refused: {self.refusal}" if self.refusal else said


@dataclass(frozen=True)
class Request:
    """A request, looked up: the rows of the records to forget and of those among them that are core, and its policy."""

    rows: Ints
    core_rows: Ints
    unknown: list[Any]
    already_forgotten: int
    core_policy: str | Technique
    refit: str

    @property
    def touches_core(self) -> bool:
        return len(self.core_rows) > 0

    @property
    def makes_extractor(self) -> bool:
        """Whether another extractor takes the place of the present one."""
        return self.touches_core and (self.core_policy == RETRAIN or callable(self.core_policy))

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


def promise(request: Request, heads: int, on_influential: bool) -> Guarantee:
    """The guarantee that a request ends with.

    `heads` is how many of them it moves; `on_influential` whether the head stands on influential records alone now.
    """
    if not len(request.rows):
        return Guarantee.untouched
    if request.touches_core:
        return Guarantee.retrain if request.core_policy == RETRAIN else Guarantee.approximate
    if request.refit == INFLUENTIAL:
        return Guarantee.approximate if heads or on_influential else Guarantee.untouched
    return Guarantee.refit if heads or on_influential else Guarantee.untouched


def why(guarantee: Guarantee, request: Request, influential: int, on_influential: bool, earlier: int) -> str:
    """The reason in words; `earlier` forgotten core records are in the extractor still."""
    if not len(request.rows):
        return "every record asked for was forgotten before: nothing is left to do"
    core = len(request.core_rows)
    if guarantee is Guarantee.untouched:
        found = "no requested record is core or influential"
    elif guarantee is Guarantee.retrain:
        found = f"{core} of the records are core, and the extractor is trained again without them"
    elif core and callable(request.core_policy):
        found = f"{core} of the records are core, and the caller's technique gave another extractor"
    elif core:
        found = f"{core} of the records are core, and the extractor keeps what it learned from them"
    elif on_influential and request.refit == RETAINED:
        found = "the head stood on influential records alone, and is fitted on all retained ones again"
    else:
        found = f"{influential} of the records are influential, none is core"
    if request.refit == INFLUENTIAL and guarantee is Guarantee.approximate and not request.makes_extractor:
        found += "; the head is fitted on what is left of the last full fit's influential records, not on all retained"
    said = f"{found}: {MEANING[guarantee]}"
    if earlier and guarantee.exact and guarantee is not Guarantee.retrain:
        said += (
            f"; that is so for these records, while {earlier} core records forgotten earlier remain in the extractor"
        )
    return said


def refusal(request: Request, classes_left: list[str], classes_fitted: list[str], core_classes: int) -> str | None:
    """Why a request cannot be carried out, and what to do instead; None if it can.

    `classes_left` have records afterwards, `classes_fitted` have records that the head is fitted on, and so many
    `core_classes` have core records.
    """
    if request.unknown:
        some = ", ".join(map(repr, request.unknown[:5]))
        return f"no record has id {some}: check the ids; nothing else of the request is done either"
    if len(request.rows) == 0 and not request.already_forgotten:
        return "the request names no records"
    if request.touches_core and request.core_policy == REFUSE:
        return (
            f"{len(request.core_rows)} of the records are core, which this policy refuses: "
            f"use core_policy='{RETRAIN}' for an exact answer or '{HEAD}' for an approximate one"
        )
    if len(request.rows) and len(classes_left) < 2:
        left = f"only class {classes_left[0]!r}" if classes_left else "no records"
        return f"this would leave {left}: a classifier needs two classes. Delete the model instead"
    if request.makes_extractor and request.core_policy == RETRAIN and core_classes < 2:
        return (
            "this would leave a core of fewer than two classes to train the extractor on: fit again, with another core"
        )
    if classes_fitted != classes_left:
        return f"no influential record of every class would be left: use refit='{RETAINED}'"
    return None
