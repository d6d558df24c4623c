"""What a request will do, to which guarantee, at what cost: decided before anything is touched."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from maxrr.errors import CoreRefused, Refused, Stale, UnknownId
from maxrr.plain_text import Shown, count
from maxrr.svm.heads import with_a_head
from maxrr.unlearning.actions import Action, Case, Guarantee, decide, promise
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.effects import NO_CORE, CoreAfter, Effect
from maxrr.unlearning.reasons import why, why_not
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import KINDS, ModelState


@dataclass(frozen=True)
class Plan(Shown):
    """What will be done about a request: `MaxRR.execute` does just this, or nothing if the model has changed since.

    Attributes
    ----------
    action : Action
        What will be done.
    guarantee : Guarantee or None
        What the result will be; None where the request is refused.
    reason : str
        Why, in a sentence. Where the request is refused, `refusal` also says what to do instead.
    conditions : list of str
        What an exact answer is conditional on; empty where it is exact without conditions.
    requested : int
        How many records were asked for. It is the sum of the next five.
    core, influential, free, unknown, already_forgotten : int
        How many of them are core, influential (and not core), free, not in the model, or forgotten before.
    people : dict or None
        How many people the records are about, by the kind of record that is the most work to forget: "core",
        "influential", "free". None where the records do not say whom they are about.
    added : int
        How many records arrive: those to add, or the one that takes the place of another.
    duplicates_left : int
        Other records with the values of a requested one, which stay in the data.
    heads : int
        How many heads move to another optimum.
    extractors : int
        How many extractors are made again: of several shards those that saw the records, or others forgotten before.
        One whose shard has no records of two classes left is not trained, and keeps the first weights of its seed.
    trains, embeds : int
        How many records these are trained on, and how many are embedded again.
    seconds : float
        About how long that takes, going by how long `fit` took; of a small model it can be several times too low. A
        technique of the caller's own is not counted.
    alternatives : tuple of Plan
        What could be asked for instead of a request that is refused: other policies for core records.
    state : str
        Names the state of the model that this is a plan for, and tells nothing about it.
    request : Request
        The request, looked up in that state.
    """

    action: Action
    guarantee: Guarantee | None
    reason: str
    conditions: list[str]
    requested: int
    core: int
    influential: int
    free: int
    unknown: int
    already_forgotten: int
    people: dict[str, int] | None
    added: int
    duplicates_left: int
    heads: int
    extractors: int
    trains: int
    embeds: int
    seconds: float = field(compare=False)
    alternatives: tuple["Plan", ...]
    state: str = field(repr=False)
    request: Request = field(repr=False, compare=False)

    @property
    def refusal(self) -> str | None:
        """Why the request is refused, and what to do instead; None if it will be carried out."""
        return self.refusal_in(lambda policy: f"core_policy={policy!r}")

    def refusal_in(self, words: Callable[[str], str]) -> str | None:
        """Say why the request is refused, and name policies as the users of a program write them.

        Parameters
        ----------
        words : function
            Takes a policy for core records, and returns what users should write to choose it. The command line makes
            `--policy retrain` of `retrain`.

        Returns
        -------
        str or None
            Why the request is refused, and what to do instead; None if it will be carried out.
        """
        if self.action is not Action.refuse:
            return None
        ways = []
        for other in self.alternatives:
            cannot = other.refusal_in(words)
            gives = f"cannot do it ({cannot})" if cannot else f"is {other.guarantee}, about {other.seconds:.2g} s"
            ways.append(f"{words(other.request.policy)} {gives}")
        return f"{self.reason}: {'; '.join(ways)}" if ways else self.reason

    def __str__(self) -> str:
        if self.refusal:
            return f"refused: {self.refusal}"
        return f"{self.guarantee}: {self.reason}" + "".join(f"; on condition that {each}" for each in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """The plan in types that JSON knows, for programs that show it.

        Returns
        -------
        dict
            Every field but `state` and `request`, and `refusal`.
        """
        names = [known.name for known in fields(self) if known.name not in ("alternatives", "state", "request")]
        others = [plan.to_dict() for plan in self.alternatives]
        return {name: getattr(self, name) for name in names} | {"refusal": self.refusal, "alternatives": others}

    def _refused(self) -> Refused:
        """Return the error to raise instead of carrying the plan out."""
        assert self.refusal is not None
        kind = UnknownId if self.unknown else CoreRefused if self.alternatives else Refused
        return kind(self.refusal, self.alternatives)


def answered_together(plan: Plan, action: Action, others: int, duplicates_left: int) -> Plan:
    """Return the plan of a request that is answered together with others, by one action for all of them."""
    guarantee = promise(action, case_of(plan.request, influential=plan.influential > 0))
    reason = f"{plan.reason} (answered together with {count(others, 'other request')})"
    if guarantee is not plan.guarantee:  # alone it would have had a cheaper one
        reason = f"the model is the one that this request and {count(others, 'other request')} give together"
    return replace(plan, action=action, guarantee=guarantee, reason=reason, duplicates_left=duplicates_left)


def check_current(fitted: ModelState, plan: Plan) -> None:
    """Refuse a plan for another state, or one that differs from what is decided now about the same records."""
    if not isinstance(plan, Plan):
        raise TypeError(f"execute takes a plan, as plan(…) gives it, not {plan!r:.80}")
    if plan.state != fitted.token or plan != make_plan(fitted, plan.request):  # rows have their meaning in one state
        raise Stale(
            "this plan is for another state of the model: something was forgotten, replaced, added or fitted since, or "
            "it is another model's, or it was changed. Nothing was changed: plan again"
        )


def case_of(request: Request, *, influential: bool) -> Case:
    """Return everything that the decision about a request depends on."""
    return Case(
        request.policy, records=len(request.rows) > 0, core=len(request.core_rows) > 0, influential=influential,
        in_extractor=request.left_in_extractor > 0, added=request.added is not None,
    )  # fmt: skip


def make_plan(fitted: ModelState, request: Request, effect: Effect | None = None) -> Plan:
    """Decide what will be done about a request that was looked up in this state; its effect is given where known.

    The action is decided first, and all else follows from it.
    """
    effect = effect or Effect.of(fitted, request)
    case = case_of(request, influential=effect.shaped > 0)
    action = decide(case)
    core = CoreAfter.of(fitted, request) if action is Action.retrain else NO_CORE
    objection = why_not(action, fitted, request, effect, core)
    others: tuple[Plan, ...] = ()
    if objection is not None:
        action, guarantee = Action.refuse, None
        reason, instead = objection
        others = tuple(make_plan(fitted, other, effect) for other in instead)
    else:
        guarantee = promise(action, case)
        reason = why(action, guarantee, request, effect, fitted, core)
    heads, embeds = work_of(action, fitted, request, effect)
    embeds = 0 if fitted.blueprint.embeddings else embeds
    trained = NO_CORE if action is Action.refuse else core
    arriving = 0 if request.added is None else len(request.added)
    return Plan(
        action, guarantee, reason, conditions_then(action, guarantee, fitted, request),
        requested=len(request.rows) + len(request.unknown) + request.already_forgotten,
        core=len(request.core_rows), influential=len(effect.influential),
        free=len(request.rows) - len(request.core_rows) - len(effect.influential),
        unknown=len(request.unknown), already_forgotten=request.already_forgotten,
        people=people_in(fitted, request, effect), added=arriving,
        duplicates_left=effect.twins,
        heads=heads, extractors=len(trained.shards), trains=trained.records, embeds=embeds,
        seconds=fitted.durations.expected(
            effect.shaping + arriving, heads, trained.records, embeds * trained.share, action.fits_anew or effect.many,
            fitted.blueprint.width(fitted.heads.n_features_in_, fitted.records.count),
        ),
        alternatives=others, state=fitted.token, request=request,
    )  # fmt: skip


def people_in(fitted: ModelState, request: Request, effect: Effect) -> dict[str, int] | None:
    """How many people a request is about, by the kind of record that is the most work to forget."""
    subjects = fitted.records.subjects
    if subjects is None:
        return None
    core, influential, every = (
        set(subjects[rows].tolist()) for rows in (request.core_rows, effect.influential, request.rows)
    )
    each = (core, influential - core, every - influential - core)
    return {kind: len(people) for kind, people in zip(KINDS, each, strict=True)}


def work_of(action: Action, fitted: ModelState, request: Request, effect: Effect) -> tuple[int, int]:
    """How many heads an action moves, and how many records it embeds."""
    if action is Action.refuse:
        return 0, 0
    heads = 0
    if action.fits_anew or (action is Action.move and request.added is not None):
        heads = len(with_a_head(effect.labels_left.tolist()))
    elif action is Action.move:
        heads = effect.shaped
    arriving = 0 if request.added is None else len(request.added)
    return heads, arriving + (fitted.records.count - len(request.rows) if action.fits_anew else 0)


def conditions_then(action: Action, guarantee: Guarantee | None, fitted: ModelState, request: Request) -> list[str]:
    """List the conditions that exactness rests on after the action; none for an approximate answer."""
    if guarantee is None or not guarantee.exact:
        return []
    waiting = len(fitted.waiting)
    if request.adds and request.added is not None:
        waiting += len(fitted.blueprint.core_by_rule(request.added.ids, request.added.subjects))
    elif waiting and request.added is None:
        waiting -= int(np.isin(fitted.waiting, fitted.records.ids[request.rows]).sum())
    stays = action is not Action.retrain
    left, technique, adopted = stays * fitted.left_in_extractor, stays and fitted.technique, stays and fitted.adopted
    return conditions(fitted.choice, fitted.blueprint, left, technique, adopted, waiting)
