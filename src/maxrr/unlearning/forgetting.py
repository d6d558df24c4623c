"""Carry out a plan: the next state beside the present one, its receipts, the commit, and then the erasure."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import torch

from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress
from maxrr.svm import FORM
from maxrr.svm.problem import changed
from maxrr.unlearning import flat_heads, transitions
from maxrr.unlearning.actions import Action
from maxrr.unlearning.facts import Override
from maxrr.unlearning.hashes import weights_by_hmac
from maxrr.unlearning.plans import Plan
from maxrr.unlearning.receipts import Receipt, claim_of, lasting
from maxrr.unlearning.records import HeldRecords
from maxrr.unlearning.requests import Request
from maxrr.unlearning.returning import let_in
from maxrr.unlearning.state import OF_MODEL, Fitted, knowing
from maxrr.unlearning.tombstones import FORGOTTEN, REPLACED, Forgotten, id_hmac, subject_hmac


@dataclass(frozen=True, eq=False)
class Change:
    """The next state of a model, to be committed.

    Attributes
    ----------
    before, after : Fitted or None, Fitted
        The present state, and the next one. There is none before the first fit.
    answers : sequence of (Request, Receipt)
        The requests that lead there; none for a fit.
    source : mapping of str to str or None
        Where records come from that are fitted or added, in the caller's words.
    """

    before: Fitted | None
    after: Fitted
    answers: Sequence[tuple[Request, Receipt]] = ()
    source: Mapping[str, str] | None = None


Commit = Callable[[Change], None]
"""Takes over the next state. When it returns the request is done; if it raises, nothing has changed."""


@dataclass(frozen=True, eq=False)
class Member:
    """One of the requests that are answered together.

    Attributes
    ----------
    plan : Plan
        What is said of it on its receipt.
    records : HeldRecords
        The records that the members before it have left.
    """

    plan: Plan
    records: HeldRecords


def execute(
    before: Fitted, plan: Plan, commit: Commit, progress: Progress | None = None, *, engine: EngineLike = None,
    source: Mapping[str, str] | None = None,
) -> Receipt:  # fmt: skip
    """Do what the plan says, and overwrite what the state before held of the records that leave.

    The plan must be one of this state, just made or found current. Where extractors of several shards are trained
    again, the workers of the engine do it.

    A refused plan is raised as `Refused`. Heads that become flat by it, shards that come to have too little to be
    trained on, and copies that are let in, are warned about in the name of the caller's caller.
    """
    if plan.refusal:
        raise plan._refused()
    overrides = let_in(plan.request.copies, plan.request.allow_copies)
    members = [Member(plan, before.records)]
    (receipt,) = execute_together(before, plan, members, commit, progress, engine, source, overrides)
    return receipt


def execute_together(
    before: Fitted, plan: Plan, members: Sequence[Member], commit: Commit, progress: Progress | None,
    engine: EngineLike = None, source: Mapping[str, str] | None = None, overrides: tuple[Override, ...] = (),
) -> list[Receipt]:  # fmt: skip
    """Do what the plan of all members as one request says, and make a receipt for each of them."""
    started, request = time.perf_counter(), plan.request
    moves = plan.action not in (Action.erase, Action.nothing)
    with torch.inference_mode(False), flat_heads.quietly() if moves else nullcontext():  # extractors may be trained
        after = transitions.carry_out(before, plan.action, request, progress, engine)
    flat_heads.warn([name for name in after.flat if name not in before.flat], stacklevel=4)
    after.blueprint.warn_of_untrained(after.untrained - before.untrained, stacklevel=4)
    after = replace(after, overrides=after.overrides + overrides) if overrides else after
    answers = []
    for place, member in enumerate(members, start=1):
        group = None if len(members) == 1 else [place, len(members)]
        receipt = make_receipt(member, before, after, group, time.perf_counter() - started)
        answers.append((member.plan.request, receipt))
        after = with_receipt(after, receipt)
    after = with_pace(after, plan, answers[-1][1].seconds)
    before.records.owe(request.rows)
    if after.layouts == before.layouts:  # or the records stand in other rows
        after.records.owe(request.rows)
    commit(Change(before, after, answers, source))
    # From here on the records are gone; what is left is to overwrite what they were.
    after.committed.settle()
    erase(before, after, plan)
    return [receipt for _, receipt in answers]


def erase(before: Fitted, after: Fitted, plan: Plan) -> None:
    """Overwrite what both states hold of the records that left. What is interrupted is finished by the next request."""
    same_rows = after.records.indexes is before.records.indexes
    former = after.records if same_rows else before.records.without(plan.request.rows)
    gone = former.gone()
    if len(before.late):
        leaving = former.ids[gone]
        leaving = leaving[after.records.rows(leaving) < 0]  # and not replaced
        for ids in (before.late, before.waiting):
            ids.erase(leaving)
    if plan.action is Action.erase:
        after.heads._erase(gone)
    else:
        after.heads._erase()
        before.heads._erase(plan.request.rows)
    after.records.erase()
    if not same_rows:
        former.erase()


def with_receipt(after: Fitted, receipt: Receipt) -> Fitted:
    """The state that has handed out one receipt more, and remembers by it whom no record is about any more."""
    gone = dict.fromkeys(receipt.subject_tombstones or (), Forgotten(receipt.number, receipt.time))
    found = changed(
        after, receipts=after.receipts.with_next(receipt.digest), people=after.people.with_more(gone)
    )  # fmt: skip
    return knowing(found, after, "core", "core_hash", *OF_MODEL)


def with_pace(after: Fitted, plan: Plan, seconds: float) -> Fitted:
    """The state that knows how long it took to move heads, where they were moved."""
    if not plan.action.moves_heads:
        return after
    records = max(len(plan.request.rows), plan.added)
    durations = after.durations.after_moving(seconds, records, plan.heads, plan.embeds)
    return knowing(changed(after, durations=durations), after, "core", "core_hash", *OF_MODEL)


def make_receipt(
    member: Member, before: Fitted, after: Fitted, group: list[int] | None, seconds: float
) -> Receipt:  # fmt: skip
    """What was done about one request, by a change from one state to another; `after` has the receipts before it."""
    plan = member.plan
    assert plan.guarantee is not None
    request, heads = plan.request, after.certificates
    blueprint, exact = before.blueprint, plan.guarantee.exact
    conditions = after.conditions if exact else []
    purpose = FORGOTTEN if request.added is None else REPLACED
    id_hmacs, core_id_hmacs = (
        [id_hmac(before.key, id_, purpose) for id_ in before.records.ids[rows].tolist()] if len(rows) else []
        for rows in (request.rows, request.core_rows)
    )
    gone = member.records.people_without(request.rows) if request.added is None else []
    people = sorted(subject_hmac(before.key, person) for person in gone)
    return Receipt(
        number=after.requests + 1, previous=after.receipts[-1] if after.receipts else "",
        guarantee=plan.guarantee.value, reason=plan.reason,
        bytes_claim=claim_of(plan.guarantee.value, heads, blueprint.recipe.facts), form=FORM,
        unconditional=exact and not conditions, conditions=conditions,
        core_depended_on=before.choice.depended_on, core_details=lasting(before.choice.details),
        core_policy=request.policy, requested=plan.requested, core=plan.core,
        influential=plan.influential, free=plan.free, already_forgotten=plan.already_forgotten,
        duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor,
        tombstones=sorted(each.hex() for each in id_hmacs),
        core_tombstones=sorted(each.hex() for each in core_id_hmacs),
        earlier_tombstones=sorted(each.hex() for each in request.forgotten_before),
        records_before=before.records.count, records_after=after.records.count,
        commitment_before=before.commitment, commitment_after=after.commitment,
        model_before=before.model_commitment, model_after=after.model_commitment, heads=heads.copy(),
        seed=blueprint.seed, recipe=blueprint.recipe.facts, C=blueprint.C,
        environment=dict(vars(blueprint.environment)),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=seconds,
        added=plan.added if request.adds else None, subject_tombstones=people or None,
        class_weights=weights_by_hmac(after.key, after.blueprint.class_weight),
        weighted_records=None if after.records.weights is None else True, losses=list(after.losses) or None,
        group=group,
    )  # fmt: skip
