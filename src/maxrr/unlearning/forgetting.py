"""Carry out a plan: the next state beside the present one, its receipts, the commit, and then the erasure.

Several requests may be one: looked up one after the other, answered by one action, each with a receipt of its own.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch

from maxrr.data import Dataset
from maxrr.errors import DataError, Refused
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress
from maxrr.svm.certificate import FORM
from maxrr.svm.problem import changed
from maxrr.unlearning import transitions
from maxrr.unlearning.actions import Action
from maxrr.unlearning.blueprint import quietly, warn_of_flat_heads
from maxrr.unlearning.commitment import weights_by_hmac
from maxrr.unlearning.facts import Override
from maxrr.unlearning.given_records import Ids
from maxrr.unlearning.plans import Plan, answered_together, make_plan
from maxrr.unlearning.receipts import Receipt, claim_of, lasting_details
from maxrr.unlearning.requests import Request, Technique, note_copies, request_to_forget
from maxrr.unlearning.state import CORE_FACTS, MODEL_FACTS, ModelState, reuse
from maxrr.unlearning.tombstones import Forgotten, Tombstone, id_hmac, subject_hmac, tombstones_of


@dataclass(frozen=True, eq=False)
class Member:
    """One of the requests that are answered together.

    Attributes
    ----------
    plan : Plan
        What is said of it on its receipt.
    tombstones : sequence of Tombstone
        What stays of the records that it forgets.
    people : list of str
        HMACs of the subject ids of those whom no record is about any more, once the members before it were answered.
    ticket : mapping of str to str
        What its receipt says of the ticket that it came with.
    """

    plan: Plan
    tombstones: Sequence[Tombstone]
    people: list[str]
    ticket: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, now: ModelState, ticket: Mapping[str, str] | None = None) -> "Member":
        """Find what a request leaves of records and people, in a state that has none of the members before it."""
        rows, records, replaced = plan.request.rows, now.records, plan.request.added is not None
        leaving = records.ids[rows], records.hashes[rows], records.contents[rows]
        tombstones = tombstones_of(now.key, *leaving, replaced=replaced)
        gone = [] if replaced else records.people_without(rows)
        return cls(plan, tombstones, sorted(subject_hmac(now.key, person) for person in gone), ticket or {})


@dataclass(frozen=True, eq=False)
class NextState:
    """The next state of a model, to be committed.

    Attributes
    ----------
    before, after : ModelState or None, ModelState
        The present state, and the next one. There is none before the first fit.
    answers : sequence of (Member, Receipt, str)
        The requests that lead there, each with its receipt and the text of that; none for a fit.
    source : mapping of str to str or None
        Where records come from that are fitted or added, in the caller's words.
    """

    before: ModelState | None
    after: ModelState
    answers: Sequence[tuple[Member, Receipt, str]] = ()
    source: Mapping[str, str] | None = None


Committer = Callable[[NextState], None]
"""Takes over the next state. When it returns the request is done; if it raises, nothing has changed."""


class Keeper(Protocol):
    """The interface of whoever holds a live model, such as a workspace. A model in memory has no keeper."""

    def check_open(self) -> None:
        """Raise an error if the model was given up. After a failed commit, read again which state is durable."""

    def check_newest(self) -> None:
        """Raise an error if the state is known to be an older one, of which nothing may be handed out."""

    def changing(self, *, receipts: bool = True, newest: bool = True) -> AbstractContextManager[None]:
        """Refuse a change before any work is done for it: of a snapshot, of an older copy, or without the key that
        signs.
        """

    def raw_records(self) -> Dataset | None:
        """Return the raw records, which the model drops again when the request is done; None if the keeper has none."""

    def commit(self, change: NextState) -> None:
        """Make the next state durable, and the model's own. If it raises, the model has the state before."""

    def receipt(self, number: int) -> Receipt:
        """Return a receipt of the model."""

    def ranking(self) -> Path:
        """Return the folder where a ranking keeps its runs."""

    @property
    def note_audit(self) -> Callable[[str], int]:
        """Return a function that counts an audit of a receipt (by its hash), and says how many audits there were
        before.
        """


def execute(
    before: ModelState, plan: Plan, commit: Committer, progress: Progress | None = None, *, engine: EngineLike = None,
    source: Mapping[str, str] | None = None,
) -> Receipt:  # fmt: skip
    """Carry out a plan, and overwrite what the state before held of the records that leave.

    The plan must be one of this state, just made or found current. Where extractors of several shards are trained
    again, the workers of the engine do it.

    A refused plan is raised as `Refused`. Heads that become flat by it, shards that come to have too little to be
    trained on, and copies that are let in, are warned about in the name of the caller's caller.
    """
    if plan.refusal:
        raise plan._refused()
    overrides = note_copies(plan.request.copies, plan.request.allow_copies)
    members = [Member.of(plan, before)]
    (receipt,) = execute_together(before, plan, members, commit, progress, engine, source, overrides)
    return receipt


def execute_together(
    before: ModelState, plan: Plan, members: Sequence[Member], commit: Committer, progress: Progress | None,
    engine: EngineLike = None, source: Mapping[str, str] | None = None, overrides: tuple[Override, ...] = (),
) -> list[Receipt]:  # fmt: skip
    """Carry out one plan for several requests, and make a receipt for each."""
    started, request = time.perf_counter(), plan.request
    tombstones = [stone for member in members for stone in member.tombstones]
    moves = plan.action not in (Action.erase, Action.nothing)
    with torch.inference_mode(False), quietly() if moves else nullcontext():  # extractors may be trained
        after = transitions.carry_out(before, plan.action, request, tombstones, progress, engine)
    warn_of_flat_heads([name for name in after.flat if name not in before.flat], stacklevel=4)
    after.blueprint.warn_of_untrained(after.untrained - before.untrained, stacklevel=4)
    after = replace(after, overrides=after.overrides + overrides) if overrides else after
    answers, digests = list[tuple[Member, Receipt, str]](), list(after.receipts[-1:])
    for place, member in enumerate(members, start=1):
        group = None if len(members) == 1 else [place, len(members)]
        number, seconds = after.requests + place, time.perf_counter() - started
        receipt = make_receipt(member, before, after, number, digests[-1] if digests else "", group, seconds)
        answers.append((member, receipt, receipt.to_json()))
        digests.append(hashlib.sha256(answers[-1][2].encode()).hexdigest())
    receipts = [receipt for _, receipt, _ in answers]
    after = with_receipts(after, receipts, digests[-len(receipts) :])
    before.records.owe(request.rows)
    if after.layouts == before.layouts:  # or the records stand in other rows
        after.records.owe(request.rows)
    commit(NextState(before, after, answers, source))
    # From here on the records are gone; what is left is to overwrite what they were.
    after.committed.settle()
    erase(before, after, plan)
    return receipts


def erase(before: ModelState, after: ModelState, plan: Plan) -> None:
    """Overwrite what both states hold of the records that left. The next request finishes an interrupted erasure."""
    same_rows = after.records.indexes is before.records.indexes
    former = after.records if same_rows else before.records.without(plan.request.rows)
    gone = former.gone()
    if before.waiting is not after.waiting:
        before.waiting[:] = np.zeros(1, before.waiting.dtype)[0]
    if plan.action is Action.erase:
        after.heads._erase(gone)
    else:
        after.heads._erase()
        before.heads._erase(plan.request.rows)
    after.records.erase()
    if not same_rows:
        former.erase()


def with_receipts(after: ModelState, receipts: Sequence[Receipt], digests: Sequence[str]) -> ModelState:
    """Return the state with these receipts handed out, and with the people of whom they left no record."""
    gone = dict[str, Forgotten]()
    for receipt in receipts:
        gone |= dict.fromkeys(receipt.subject_tombstones or (), Forgotten(receipt.number, receipt.time))
    found = changed(after, receipts=(*after.receipts, *digests), people=after.people.with_more(gone))
    return reuse(found, after, *CORE_FACTS, *MODEL_FACTS)


def make_receipt(
    member: Member, before: ModelState, after: ModelState, number: int, previous: str, group: list[int] | None,
    seconds: float,
) -> Receipt:  # fmt: skip
    """Make the receipt of one request from the states before and after it."""
    plan = member.plan
    assert plan.guarantee is not None
    request, heads, exact = plan.request, after.certificates, plan.guarantee.exact
    conditions, replaced = after.conditions if exact else [], request.added is not None
    blueprint, core_ids = before.blueprint, before.records.ids[request.core_rows].tolist()
    recipe = blueprint.recipe_facts
    return Receipt(
        number=number, previous=previous, guarantee=plan.guarantee.value, reason=plan.reason,
        bytes_claim=claim_of(plan.guarantee.value, heads, recipe), form=FORM,
        unconditional=exact and not conditions, conditions=conditions,
        core_depended_on=before.choice.depended_on, core_details=lasting_details(before.choice.details),
        core_policy=request.policy, requested=plan.requested, core=plan.core,
        influential=plan.influential, free=plan.free, already_forgotten=plan.already_forgotten,
        duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor,
        tombstones=sorted(stone.id.hex() for stone in member.tombstones),
        core_tombstones=sorted(id_hmac(before.key, id_, replaced=replaced).hex() for id_ in core_ids),
        earlier_tombstones=sorted(each.hex() for each in request.forgotten_before),
        records_before=before.records.count, records_after=after.records.count,
        commitment_before=before.commitment, commitment_after=after.commitment,
        model_before=before.model_commitment, model_after=after.model_commitment, heads=heads.copy(),
        seed=blueprint.seed, recipe=recipe, C=blueprint.C, environment=dict(vars(blueprint.environment)),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=seconds,
        added=plan.added if request.adds else None, subject_tombstones=member.people or None,
        class_weights=weights_by_hmac(after.key, after.blueprint.class_weight),
        weighted_records=None if after.records.weights is None else True, losses=list(after.losses) or None,
        group=group, ticket=member.ticket.get("ticket"), received=member.ticket.get("received"),
        due=member.ticket.get("due"),
    )  # fmt: skip


# Several requests as one


class NamedRecords(NamedTuple):
    """One of several requests as it was asked: ids or subjects, and the ticket that goes onto its receipt."""

    ids: Ids | None
    subjects: Ids | None
    ticket: Mapping[str, str] = {}


@dataclass(frozen=True, eq=False)
class Group:
    """Requests that are answered together.

    Attributes
    ----------
    plan : Plan or None
        What is done about all of them, as one request; None where every one is refused.
    members : list of Member
        Those that are answered.
    refusals : list of Refused or None
        For each request why it is refused; None where it is answered.
    """

    plan: Plan | None
    members: list[Member]
    refusals: list[Refused | None]


def make_group(fitted: ModelState, requests: Iterable[NamedRecords], core_policy: str | Technique) -> Group:
    """Plan several requests as one. A refused request is left out; the others go on."""
    now, found, refusals = fitted, list[Member](), list[Refused | None]()
    for number, (ids, subjects, ticket) in enumerate(requests, start=1):
        try:
            plan = make_plan(now, request_to_forget(now, ids, subjects, core_policy))
            if plan.refusal:
                raise plan._refused()
        except Refused as refused:
            refusals.append(refused)
            continue
        except DataError as error:
            error.args = (f"request {number} of the batch: {error}",)
            raise
        refusals.append(None)
        found.append(Member.of(plan, now, ticket))
        now = state_without(now, found[-1], fitted.requests + len(found))
    if not found:
        return Group(None, [], refusals)
    plan = make_plan(fitted, united([member.plan.request for member in found]))
    return Group(plan, found if len(found) == 1 else joint(fitted, plan, found), refusals)


def state_without(now: ModelState, member: Member, number: int) -> ModelState:
    """Return the state in which the next request of a group is looked up: without the records of the one before."""
    then = transitions.without_records(now, member.plan.request, member.tombstones)
    if member.plan.action is Action.retrain:  # of nobody's records the extractor will keep anything
        then = changed(then, in_extractor=frozenset(), stale=frozenset())
    if member.people:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        then = changed(then, people=then.people.with_more(dict.fromkeys(member.people, Forgotten(number, moment))))
    return reuse(then, now, *MODEL_FACTS, "token")


def united(requests: Sequence[Request]) -> Request:
    """Return one request that asks for everything that these requests ask for."""
    rows = np.sort(np.concatenate([each.rows for each in requests]))
    core_rows = np.sort(np.concatenate([each.core_rows for each in requests]))
    before = tuple(dict.fromkeys(hmac for each in requests for hmac in each.forgotten_before))
    left = sum(each.left_in_extractor for each in requests)
    return Request(rows, core_rows, [], before, left, requests[0].core_policy)


def joint(fitted: ModelState, plan: Plan, members: Sequence[Member]) -> list[Member]:
    """Return the members with the plan that goes onto each receipt: its own counts, and the action of the group."""
    found, all_rows = [], plan.request.rows
    for member in members:
        rows = member.plan.request.rows
        left = member.plan.duplicates_left
        if left:  # some of these may have left with others of the group
            left = fitted.records.without(np.setdiff1d(all_rows, rows)).twins(rows)
        own = answered_together(member.plan, plan.action, len(members) - 1, left)
        found.append(Member(own, member.tombstones, member.people, member.ticket))
    return found
