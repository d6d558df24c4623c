"""What a request will do, to which guarantee, at what cost: decided before anything is touched."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core.shards import untrained
from maxrr.errors import NotHere, Refused
from maxrr.plain_text import Shown
from maxrr.svm.heads import with_a_head
from maxrr.unlearning import flat_heads
from maxrr.unlearning.actions import Action, Case, decide, promise
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.hashes import keyed_hash
from maxrr.unlearning.records import Bools, HeldRecords, Ints
from maxrr.unlearning.requests import KEEP, RETRAIN, Request
from maxrr.unlearning.state import Fitted, with_classes


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
        Why, in a sentence. Where heads have weights of zero, so that every record is influential, it says so; and where
        records of new classes arrive, which the extractor was not trained on. Where the request is refused, `refusal`
        also says what to do instead.
    conditions : list of str
        What an exact answer is conditional on; empty where it is exact without conditions.
    requested : int
        How many records were asked for. It is the sum of the next five.
    core, influential, free, unknown, already_forgotten : int
        How many of them are core, influential (and not core), free, not in the model, or forgotten before.
    added : int
        How many records arrive: those of `plan_add`, or the one of `plan_replace`.
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
        About how long that takes, going by how long `fit` took and the last request that moved heads. Before there was
        one, it can be several times too low on a small model. A technique of the caller's own is not counted.
    alternatives : tuple of Plan
        What could be asked for instead of a request that is refused: other policies for core records.
    state : str
        Names the state of the model that this is a plan for; tells nothing about it.
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
    added: int
    duplicates_left: int
    heads: int
    extractors: int
    trains: int
    embeds: int
    seconds: float
    alternatives: tuple["Plan", ...]
    state: str = field(repr=False)
    request: Request = field(repr=False, compare=False)

    @property
    def refusal(self) -> str | None:
        """Why the request is refused, and what to do instead; None if it will be carried out."""
        return self.refusal_in(lambda policy: f"core_policy={policy!r}")

    def refusal_in(self, words: Callable[[str], str]) -> str | None:
        """The same as `refusal`, for programs whose users do not write Python.

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
        return f"refused: {self.refusal}" if self.refusal else f"{self.guarantee}: {self.reason}"

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
        """What is raised instead of carrying it out."""
        assert self.refusal is not None
        return (NotHere if self.unknown else Refused)(self.refusal, self.alternatives)


NOT_SEALED = {"seconds", "alternatives", "state", "request"}  # an estimate, other plans, the seal, and what is asked
SEALED = tuple(part.name for part in fields(Plan) if part.name not in NOT_SEALED)


@dataclass(frozen=True, eq=False)
class Found:
    """What a state says of a request, whatever the policy."""

    influential: int  # that are not core
    shaped: int  # heads
    records: HeldRecords
    rows: Ints  # that are asked for
    labels_left: Ints  # of records, those that arrive included
    twins: int

    @property
    def staying(self) -> Bools:
        """By row."""
        staying = self.records.alive.copy()
        staying[self.rows] = False
        return staying

    @property
    def staying_count(self) -> int:
        """How many they are."""
        return self.records.count - len(self.rows)

    @classmethod
    def of(cls, fitted: Fitted, request: Request) -> "Found":
        records = fitted.records
        influential, shaped = fitted.influenced(request.rows)
        left = np.flatnonzero(records.counts_without(request.rows))
        if request.added is not None:  # numbered as in `fitted`
            left = np.union1d(left, request.added.labels)
        return cls(
            int((~np.isin(influential, request.core_rows)).sum()) if len(influential) else 0, shaped, records,
            request.rows, left, records.twins(request.rows),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CoreThen:
    """The core after a request, and which of its shards are trained on again."""

    labels: NDArray[np.int64]  # of all core records
    shard: NDArray[np.int64]  # of each
    shards: tuple[int, ...]  # that are trained on again
    due: int  # how many of these saw none of the requested records, but others that were forgotten before
    share: float  # of the features that are computed anew

    @property
    def untrained(self) -> list[int]:
        """Those of the shards that have too little to be trained on."""
        return untrained(self.shard, self.labels, self.shards)

    @property
    def records(self) -> int:
        """How many records are trained on."""
        if not self.shards:
            return 0
        return int(np.isin(self.shard, np.setdiff1d(self.shards, self.untrained)).sum())

    @classmethod
    def of(cls, fitted: Fitted, request: Request, found: Found) -> "CoreThen":
        records, added, sharding = fitted.records, request.added, fitted.blueprint.sharding
        staying = found.staying
        ids, labels = records.ids[staying], records.labels[staying]
        core = records.ids[fitted.core & staying]
        if added is not None:
            ids, labels = np.concatenate([ids, added.ids]), np.concatenate([labels, added.labels])
        chosen = np.isin(ids, fitted.blueprint.core_ids(ids, core, fitted.waiting.array()))
        touched = set(sharding.of(records.ids[request.core_rows]).tolist())
        shards = tuple(sorted(touched | fitted.stale)) if sharding.count > 1 else (0,)
        return cls(
            labels[chosen], sharding.of(ids[chosen]), shards, len(set(shards) - touched), len(shards) / sharding.count
        )  # fmt: skip


NO_CORE = CoreThen(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), (), 0, 1.0)


def make_plan(fitted: Fitted, request: Request, *, sealed: bool = True) -> Plan:
    """What will be done about a request that was looked up in this state.

    One that is carried out at once, by whoever makes it, needs no seal.
    """
    fitted = with_classes(fitted, request.classes)
    plan = planned(fitted, request, Found.of(fitted, request))
    return plan if not sealed else with_seal(fitted, plan)


def with_seal(fitted: Fitted, plan: Plan) -> Plan:
    """The plan, which nobody else has yet, bound to a state."""
    object.__setattr__(plan, "state", seal(fitted, plan))
    return plan


def planned(fitted: Fitted, request: Request, found: Found) -> Plan:
    """The action is decided first, and all else follows from it."""
    case = Case(
        request.policy, records=len(request.rows) > 0, core=len(request.core_rows) > 0,
        influential=found.shaped > 0, left=request.left_in_extractor > 0, added=request.added is not None,
    )  # fmt: skip
    action = decide(case)
    core = CoreThen.of(fitted, request, found) if action is Action.retrain else NO_CORE
    objection = why_not(action, fitted, request, found, core)
    others: tuple[Plan, ...] = ()
    if objection is not None:
        action, guarantee = Action.refuse, None
        reason, instead = objection
        others = tuple(with_seal(fitted, planned(fitted, other, found)) for other in instead)
    else:
        guarantee = promise(action, case)
        reason = why(action, guarantee, request, found, fitted, core)
    heads, embeds = work_of(action, request, found)
    embeds = 0 if fitted.blueprint.embeddings else embeds
    trained = NO_CORE if action is Action.refuse else core
    arriving = 0 if request.added is None else len(request.added)
    in_turn = trained.records / fitted.blueprint.at_once(len(trained.shards))
    return Plan(
        action, guarantee, reason, conditions_then(action, guarantee, fitted, request),
        requested=len(request.rows) + len(request.unknown) + request.already_forgotten,
        core=len(request.core_rows), influential=found.influential,
        free=len(request.rows) - len(request.core_rows) - found.influential,
        unknown=len(request.unknown), already_forgotten=request.already_forgotten, added=arriving,
        duplicates_left=found.twins, heads=heads, extractors=len(trained.shards), trains=trained.records, embeds=embeds,
        seconds=fitted.durations.expected(
            max(len(request.rows), arriving), heads, in_turn, embeds * trained.share, action.fits_anew
        ),
        alternatives=others, state="", request=request,
    )  # fmt: skip


def seal(fitted: Fitted, plan: Plan) -> str:
    """Binds all that a plan says and asks for to one state: a plan that was changed does not fit its seal.

    Tells nothing without the model's key.
    """
    request = plan.request
    said = [getattr(plan, name) for name in SEALED]
    asked = [
        request.rows.tolist(), request.core_rows.tolist(), [hmac.hex() for hmac in request.forgotten_before],
        request.left_in_extractor, request.policy, request.copies, request.allow_copies,
        None if request.added is None else [request.added.content_hash(), request.added.class_names],
    ]  # fmt: skip
    return keyed_hash(fitted.key, b"plan", json.dumps([fitted.token, said, asked]))


def work_of(action: Action, request: Request, found: Found) -> tuple[int, int]:
    """How many heads an action moves, and how many records it embeds."""
    if action is Action.refuse:
        return 0, 0
    heads = 0
    if action.fits_anew or action is Action.more:
        heads = len(with_a_head(found.labels_left.tolist()))
    elif action is Action.move:
        heads = found.shaped
    arriving = 0 if request.added is None else len(request.added)
    return heads, arriving + (found.staying_count if action.fits_anew else 0)


def conditions_then(
    action: Action, guarantee: Guarantee | None, fitted: Fitted, request: Request
) -> list[str]:  # fmt: skip
    """What an exact answer is conditional on after the action."""
    if guarantee is None or not guarantee.exact:
        return []
    waiting = len(fitted.waiting)
    if request.adds and request.added is not None:
        waiting += len(fitted.blueprint.core_by_rule(request.added.ids))
    elif request.added is None:
        waiting -= len(fitted.waiting.places(fitted.records.ids[request.rows]))
    if action is Action.retrain:
        return conditions(fitted.choice, fitted.blueprint, 0, technique=False, waiting=waiting)
    return conditions(
        fitted.choice, fitted.blueprint, fitted.left_in_extractor, fitted.technique, fitted.adopted, waiting
    )  # fmt: skip


# Why


def why(
    action: Action, guarantee: Guarantee, request: Request, found: Found, fitted: Fitted, then: CoreThen
) -> str:  # fmt: skip
    """The reason in words."""
    core, left = len(request.core_rows), request.left_in_extractor
    if request.adds:
        return why_adding(request, fitted)
    if action is Action.nothing:
        return why_nothing(left)
    if action is Action.retrain:
        by_seed = "the recorded seed" if len(then.shards) == 1 else "the recorded seeds"
        said = f"{why_retrained(core, left, fitted, then)}, with {by_seed}, and the heads are fitted anew"
    elif guarantee is Guarantee.untouched:
        said = "no requested record is core or influential: the model stays as it is, and the records are erased"
    elif guarantee is Guarantee.refit:
        said = f"{influential(found, fitted)}: the heads are those that a fit on the retained records gives"
        said += extractor_stays(fitted)
    else:
        said = what_stays(action, core, left)
        said += "; that is not the same as training without them, so an audit is due"
    return said if request.added is None else said + shaped(action, request, fitted)


def why_adding(request: Request, fitted: Fitted) -> str:
    """What records do that are added."""
    assert request.added is not None
    records, seen = len(request.added), fitted.records.labels[fitted.core]
    elsewhere = fitted.blueprint.frozen or fitted.left_in_extractor  # it saw records that are not here
    classes = 0 if elsewhere else len(np.setdiff1d(request.added.labels, seen))
    said = f"{records:,} {'record is' if records == 1 else 'records are'} added: the heads become those that a fit on "
    said += f"all records gives{extractor_stays(fitted)}"
    if classes:
        said += f"; it knows no record of {classes} {'class' if classes == 1 else 'classes'} of these"
    return said


def extractor_stays(fitted: Fitted) -> str:
    """That nothing happens to the extractor; nothing where the records are embeddings and there is none."""
    return "" if fitted.blueprint.embeddings else ", and the extractor stays as it is"


HEADS = {
    Action.erase: "the heads do not depend on the records",
    Action.move: "the heads are fitted without the records",
    Action.more: "the heads are fitted without the old record",
    Action.technique: "the heads are fitted without the records",
}
"""What becomes of the heads where something of the records stays in the model."""


def why_nothing(left: int) -> str:
    """Why there is nothing to do, and what stays in the model all the same."""
    said = "every requested record is forgotten already: nothing is left to do"
    if left:
        said += f" under this policy, but the extractor keeps what it learned from {left:,} of them"
    return said


def why_retrained(core: int, left: int, fitted: Fitted, then: CoreThen) -> str:
    """Which of the records are in the extractor, so that it is trained again; or which of several are."""
    count = fitted.blueprint.sharding.count
    if count > 1:
        some = len(then.shards)
        said = of_the_records(core) + " core" if core else kept_of(left)
        said += f": {some:,} of {count:,} extractors {'is' if some == 1 else 'are'} trained again without the records"
        if then.due and core:
            said += f", {then.due:,} of them because of others that were forgotten before"
        bare = len(then.untrained)
        if bare:
            keep = "1 of them keeps its" if bare == 1 else f"{bare:,} of them keep their"
            said += f" ({keep} first weights: no records of two classes are left to train on)"
        return said
    if core:
        return f"{of_the_records(core)} core: the extractor is trained again without the records"
    return f"{kept_of(left)}: it is trained again without the records"


def influential(found: Found, fitted: Fitted) -> str:
    """How many of the records are influential, where none is core."""
    if not found.influential:
        return "none of the records is core or influential"
    flat = f" ({flat_heads.counted(len(fitted.flat))})" if fitted.flat else ""
    return f"{of_the_records(found.influential)} influential, none is core{flat}"


def what_stays(action: Action, core: int, left: int) -> str:
    """What an answer that is not exact leaves in the model, and what becomes of the heads."""
    if action is Action.technique:
        return f"{of_the_records(core)} core: the caller's technique makes another extractor, and {HEADS[action]}"
    if core:
        them = "it" if core == 1 else "them"
        return f"{of_the_records(core)} core: the extractor keeps what it learned from {them}, and {HEADS[action]}"
    return f"{kept_of(left)}, and {HEADS[action]}"


def kept_of(left: int) -> str:
    """That forgotten records are still in the extractor."""
    records = "1 record that is" if left == 1 else f"{left:,} records that are"
    return f"the extractor keeps what it learned from {records} forgotten already"


def shaped(action: Action, request: Request, fitted: Fitted) -> str:
    """What the record that takes the place of another shapes."""
    if action is Action.retrain and fitted.blueprint.decides_each:
        return "; the new record takes its place in both, as in a fit of the corrected data"
    if fitted.blueprint.decides_each and not len(request.core_rows):
        return "; the new record shapes the heads alone"
    return "; the new record shapes the heads, and the extractor not before the next fit"


def of_the_records(count: int) -> str:
    """How many, as a sentence begins.

    >>> of_the_records(1), of_the_records(2)
    ('1 of the records is', '2 of the records are')
    """
    return f"{count:,} of the records {'is' if count == 1 else 'are'}"


# Why not


def why_not(
    action: Action, fitted: Fitted, request: Request, found: Found, then: CoreThen
) -> tuple[str, list[Request]] | None:
    """Why a request is not carried out, and what could be asked for instead; None if it is carried out."""
    if request.unknown:
        some = ", ".join(map(repr, request.unknown[:5]))
        own = "strings" if fitted.records.ids.dtype.kind == "U" else "integers"
        other = isinstance(request.unknown[0], str) != (own == "strings")
        check = f"the ids of this model are {own}" if other else "check the ids (records for testing are in no model)"
        return f"no record has id {some}: {check}; nothing else of the request is done either", []
    if not len(request.rows) and not request.already_forgotten and not request.adds:
        return "the request names no records", []
    names = [fitted.records.class_names[label] for label in found.labels_left]
    if len(names) < 2:
        left = f"only class {names[0]!r}" if names else "no records"
        return f"this would leave {left}: a classifier needs two classes. Delete the model instead", []
    if action is Action.refuse:
        core = of_the_records(len(request.core_rows))
        ways = (KEEP,) if fitted.blueprint.frozen else (RETRAIN, KEEP)
        return f"{core} core, which this policy refuses", [replace(request, core_policy=other) for other in ways]
    if action is Action.retrain and fitted.blueprint.frozen:
        return (
            "the extractor was trained elsewhere, on some of the records, and cannot be trained again here without them"
        ), [replace(request, core_policy=KEEP)]
    if action is Action.retrain and len(np.unique(then.labels)) < 2:
        return (
            "this would leave a core of fewer than two classes to train the extractor on: fit again, with another core"
        ), []
    if action is Action.retrain and (missing := too_few_outputs(fitted, then)):
        return missing, [replace(request, core_policy=KEEP)]
    return None


def too_few_outputs(fitted: Fitted, then: CoreThen) -> str:
    """That the network cannot be trained on a class that is new to the core; nothing where it can."""
    if not len(np.setdiff1d(then.labels, fitted.records.labels[fitted.core])):
        return ""
    classes = max(len(np.unique(then.labels[then.shard == shard])) for shard in then.shards)
    outputs = fitted.blueprint.for_classes(classes).outputs
    if outputs >= classes:
        return ""
    return (
        f"the core would have {classes} classes, one of them new to it, and the network has {outputs} outputs: fit "
        "again with a network that has one for each class"
    )
