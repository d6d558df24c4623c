"""Carry out a plan: the next state beside the present one, its receipt, the commit, and then the erasure."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import torch

from maxrr.parallel import EngineLike
from maxrr.progress import Progress
from maxrr.svm import FORM
from maxrr.svm.problem import changed
from maxrr.unlearning import flat_heads, state
from maxrr.unlearning.actions import Action
from maxrr.unlearning.hashes import weights_by_hmac
from maxrr.unlearning.plans import Plan
from maxrr.unlearning.receipts import Receipt, claim_of, lasting
from maxrr.unlearning.requests import Request
from maxrr.unlearning.returning import let_in
from maxrr.unlearning.state import Fitted
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
    started = time.perf_counter()
    request = plan.request
    if plan.refusal:
        raise plan._refused()
    overrides = let_in(request.copies, request.allow_copies)
    moves = plan.action not in (Action.erase, Action.nothing)
    with torch.inference_mode(False), flat_heads.quietly() if moves else nullcontext():  # extractors may be trained
        after = state.carry_out(before, plan.action, request, progress, engine)
    flat_heads.warn([name for name in after.flat if name not in before.flat], stacklevel=3)
    after.blueprint.warn_of_untrained(after.untrained - before.untrained, stacklevel=3)
    after = replace(after, overrides=after.overrides + overrides) if overrides else after
    receipt = make_receipt(plan, before, after, started)
    after = with_receipt(after, receipt, plan)
    before.records.owe(request.rows)
    if after.layouts == before.layouts:  # or the records stand in other rows
        after.records.owe(request.rows)
    commit(Change(before, after, [(request, receipt)], source))
    # From here on the records are gone; what is left is to overwrite what they were.
    after.committed.settle()
    erase(before, after, plan)
    return receipt


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
        after.heads.erase(gone)
    else:
        after.heads.erase()
        before.heads.erase(plan.request.rows)
    after.records.erase()
    if not same_rows:
        former.erase()


def with_receipt(after: Fitted, receipt: Receipt, plan: Plan) -> Fitted:
    """The state that has handed out one receipt more, and remembers by it whom no record is about any more.

    Where heads were moved, it knows how long that took.
    """
    gone = dict.fromkeys(receipt.subject_tombstones or (), Forgotten(receipt.number, receipt.time))
    durations = after.durations
    if plan.action.moves_heads:
        count = max(len(plan.request.rows), plan.added)
        durations = durations.after_moving(receipt.seconds, count, plan.heads, plan.embeds)
    found = changed(
        after, receipts=after.receipts.with_next(receipt.digest), people=after.people.with_more(gone),
        durations=durations,
    )  # fmt: skip
    return state.knowing(found, after, "core", "core_hash", *state.OF_MODEL)


def make_receipt(plan: Plan, before: Fitted, after: Fitted, started: float) -> Receipt:
    """What was done."""
    assert plan.guarantee is not None
    request, heads = plan.request, after.certificates
    blueprint, exact = before.blueprint, plan.guarantee.exact
    conditions = after.conditions if exact else []
    purpose = FORGOTTEN if request.added is None else REPLACED
    id_hmacs, core_id_hmacs = (
        [id_hmac(before.key, id_, purpose) for id_ in before.records.ids[rows].tolist()] if len(rows) else []
        for rows in (request.rows, request.core_rows)
    )
    gone = before.records.people_without(request.rows) if request.added is None else []
    people = sorted(subject_hmac(before.key, person) for person in gone)
    return Receipt(
        number=before.requests + 1, previous=before.receipts[-1] if before.receipts else "",
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
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started,
        added=plan.added if request.adds else None, subject_tombstones=people or None,
        class_weights=weights_by_hmac(after.key, after.blueprint.class_weight),
        weighted_records=None if after.records.weights is None else True, losses=list(after.losses) or None,
    )  # fmt: skip
