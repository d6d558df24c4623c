"""What a request will do, to which guarantee, at what cost: said before anything is touched."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxrr.data import Dataset
from maxrr.unlearning import flat
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.guarantees import MEANING, Guarantee
from maxrr.unlearning.requests import HEAD, INFLUENTIAL, REFUSE, RETAINED, RETRAIN, Request
from maxrr.unlearning.state import Fitted


class Instead(NamedTuple):
    """What else could be asked for: a parameter of `unlearn`, its value, and what that gives, if it is to be said."""

    parameter: str
    value: str
    gives: str = ""


@dataclass(frozen=True)
class Plan:
    """What `unlearn` would do with a request.

    Attributes
    ----------
    guarantee
        What the result would be.
    reason
        Why, in a sentence. Where heads have weights of zero, so that every record is influential, it says so.
    conditions : list of str
        What an exact answer is conditional on; none where it is exact as it is.
    requested, core, influential, neither, unknown, already_forgotten : int
        Records asked for. Core ones are not counted among the influential again.
    duplicates_left : int
        Other records with the values of a requested one, which stay in the data.
    heads : int
        How many heads move to another optimum.
    trains, embeds : int
        How many records the extractor is trained on again, and how many are embedded again.
    seconds : float
        About how long that takes, going by how long `fit` took. A technique of the caller's own is not counted.
    refused_because : str or None
        Why `unlearn` would refuse; None if it would not. `refusal` also says what to do instead.
    instead : tuple of Instead
        What could be asked for instead, as `unlearn` takes it.
    """

    guarantee: Guarantee
    reason: str
    conditions: list[str]
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
    seconds: float
    refused_because: str | None
    instead: tuple[Instead, ...]

    @property
    def refusal(self) -> str | None:
        """Why `unlearn` would refuse, and what to do instead; None if it would not."""
        return self.refusal_in(lambda parameter, value: f"{parameter}={value!r}")

    def refusal_in(self, words: Callable[[str, str], str]) -> str | None:
        """The same for whoever calls parameters by other names: `words` makes of a parameter and a value what to use.

        The command line says `--policy retrain` where Python says `core_policy='retrain'`.
        """
        if self.refused_because is None or not self.instead:
            return self.refused_because
        ways = (f"{words(way.parameter, way.value)}{way.gives and ' for '}{way.gives}" for way in self.instead)
        return f"{self.refused_because}: use {', '.join(ways)}"

    def __str__(self) -> str:
        said = f"{self.guarantee}: {self.reason}"
        return f"refused: {self.refusal}" if self.refusal else said


def make_plan(fitted: Fitted, request: Request, added: Dataset | None) -> Plan:
    """What a request will do. With records added, the head is fitted again whatever else."""
    holdings, count = fitted.holdings, len(request.core_rows)
    influential, heads = fitted.influenced(request.rows)
    others = int((~np.isin(influential, request.core_rows)).sum())
    guarantee = promise(request, heads, fitted.on_influential)
    if added is not None and guarantee is Guarantee.untouched:
        guarantee = Guarantee.refit
    left = holdings.alive.copy()
    left[request.rows] = False
    labels_left = np.unique(np.concatenate([holdings.labels[left], [] if added is None else added.labels])).astype(int)
    fitted_on = labels_left
    if request.refit == INFLUENTIAL and not request.makes_extractor and (heads or fitted.on_influential):
        basis = fitted.head.held_[0] if fitted.on_influential else fitted.head.support_
        fitted_on = np.unique(holdings.labels[np.setdiff1d(basis, request.rows)])
    core_left = int(fitted.core.sum()) - count
    anew = request.retrains or (len(request.rows) > 0 and (
        request.makes_extractor or (fitted.on_influential and (added is not None or request.refit == RETAINED))
    ))  # fmt: skip
    all_heads = len(labels_left) if len(labels_left) > 2 else 1
    moved = all_heads if anew or added is not None else heads
    trains = core_left if request.retrains else 0
    embeds = (int(left.sum()) if anew else 0) + (0 if added is None else len(added))
    technique = (callable(request.core_policy) and count > 0) or (fitted.technique and not request.retrains)
    refused_because, instead = refusal(
        request, [holdings.class_names[label] for label in labels_left],
        [holdings.class_names[label] for label in fitted_on], len(np.unique(holdings.labels[fitted.core & left])),
    )  # fmt: skip
    left_then = 0 if request.retrains else fitted.left_in_extractor + count
    return Plan(
        guarantee, why(guarantee, request, others, fitted) + (shaped(fitted, request) if added is not None else ""),
        conditions(fitted.choice, fitted.setting, left_then, technique) if guarantee.exact else [],
        requested=len(request.rows) + len(request.unknown) + request.already_forgotten,
        core=count, influential=others, neither=len(request.rows) - count - others,
        unknown=len(request.unknown), already_forgotten=request.already_forgotten,
        duplicates_left=holdings.twins(request.rows),
        heads=moved, trains=trains, embeds=embeds,
        seconds=fitted.pace.expected(len(request.rows), moved, trains, embeds, anew),
        refused_because=refused_because, instead=instead,
    )  # fmt: skip


def promise(request: Request, heads: int, on_influential: bool) -> Guarantee:
    """The guarantee that a request ends with.

    `heads` is how many of them it moves; `on_influential` whether the head stands on influential records alone now.
    """
    if request.retrains:
        return Guarantee.retrain
    if request.touches_core or request.left_in_extractor:
        return Guarantee.approximate
    if not len(request.rows):
        return Guarantee.approximate if on_influential else Guarantee.untouched
    if request.refit == INFLUENTIAL:
        return Guarantee.approximate if heads or on_influential else Guarantee.untouched
    return Guarantee.refit if heads or on_influential else Guarantee.untouched


def why(guarantee: Guarantee, request: Request, influential: int, fitted: Fitted) -> str:
    """The reason in words."""
    core, left = len(request.core_rows), request.left_in_extractor
    if not request.does_something:
        said = "every record asked for was forgotten before: nothing is left to do"
        if left:
            said += f" under this policy, while the extractor keeps what it learned from {left:,} of them"
        if fitted.on_influential:
            said += "; the head stands on influential records alone, and is not the one of a fit on all retained ones"
        return said
    if guarantee is Guarantee.untouched:
        found = "no requested record is core or influential"
    elif guarantee is Guarantee.retrain:
        found = f"{of_the_records(core)} core"
        if not core:
            found = f"of the records forgotten before, {left:,} {'was' if left == 1 else 'were'} left in the extractor"
    elif core and callable(request.core_policy):
        found = f"{of_the_records(core)} core, and the caller's technique gave another extractor"
    elif core:
        found = f"{of_the_records(core)} core, and the extractor keeps what it learned from them"
    elif fitted.on_influential and request.refit == RETAINED:
        found = "the head stood on influential records alone, and is fitted on all retained ones again"
    else:
        found = f"{of_the_records(influential) if influential else 'none of the records is'} influential, none is core"
        if fitted.flat:
            found += f" ({flat.counted(len(fitted.flat))})"
    if request.refit == INFLUENTIAL and guarantee is Guarantee.approximate and not request.makes_extractor:
        found += "; the head is fitted on what is left of the last full fit's influential records, not on all retained"
    return f"{found}: {MEANING[guarantee]}"


def shaped(fitted: Fitted, request: Request) -> str:
    """What the record that takes the place of another shapes."""
    if request.retrains and fitted.setting.decides_each:
        return "; the new record takes its place in both, as in a fit of the corrected data"
    if fitted.setting.decides_each and not request.touches_core:
        return "; the new record shapes the head alone"
    return "; the new record shapes the head, and the extractor not before the next fit"


def of_the_records(count: int) -> str:
    """How many, as a sentence begins.

    >>> of_the_records(1), of_the_records(2)
    ('1 of the records is', '2 of the records are')
    """
    return f"{count:,} of the records {'is' if count == 1 else 'are'}"


def refusal(
    request: Request, classes_left: list[str], classes_fitted: list[str], core_classes: int
) -> tuple[str | None, tuple[Instead, ...]]:
    """Why a request cannot be carried out, and what could be asked for instead; None if it can.

    `classes_left` have records afterwards, `classes_fitted` have records that the head is fitted on, and so many
    `core_classes` have core records.
    """
    if request.unknown:
        some = ", ".join(map(repr, request.unknown[:5]))
        return (
            f"no record has id {some}: check the ids (records for testing are in no model); nothing else of the "
            "request is done either"
        ), ()
    if len(request.rows) == 0 and not request.already_forgotten:
        return "the request names no records", ()
    if request.touches_core and request.core_policy == REFUSE:
        return (
            f"{of_the_records(len(request.core_rows))} core, which this policy refuses",
            (
                Instead("core_policy", RETRAIN, "an exact answer"),
                Instead("core_policy", HEAD, "an approximate one"),
            ),
        )
    if len(request.rows) and len(classes_left) < 2:
        left = f"only class {classes_left[0]!r}" if classes_left else "no records"
        return f"this would leave {left}: a classifier needs two classes. Delete the model instead", ()
    if request.makes_extractor and request.core_policy == RETRAIN and core_classes < 2:
        return (
            "this would leave a core of fewer than two classes to train the extractor on: fit again, with another core",
            (),
        )
    if len(request.rows) and classes_fitted != classes_left:
        return "no influential record of every class would be left", (Instead("refit", RETAINED),)
    return None, ()
