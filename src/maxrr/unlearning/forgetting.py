"""Carry out a plan: the next state beside the present one, its receipt, the takeover, and then the erasure."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime

from maxrr.errors import Stale
from maxrr.progress import Progress
from maxrr.svm import FORM
from maxrr.unlearning import flat_heads, state
from maxrr.unlearning.hashes import class_hmac, weights_by_hmac
from maxrr.unlearning.plans import Plan, seal
from maxrr.unlearning.receipts import HeadCertificate, Receipt, claim_of, lasting
from maxrr.unlearning.returning import let_in
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import FORGOTTEN, REPLACED, Forgotten, id_hmac, subject_hmac

Commit = Callable[[Fitted, Receipt], None]
"""Takes over the next state. When it returns the request is done; if it raises, nothing has changed."""


def execute(before: Fitted, plan: Plan, commit: Commit, progress: Progress | None = None) -> Receipt:
    """Do what the plan says, and overwrite what the state before held of the records that leave.

    A plan for another state is `Stale`, a refused one is raised as `Refused`. Heads that become flat by it, shards that
    come to have too little to be trained on, and copies that are let in, are warned about in the name of the caller's
    caller.
    """
    started = time.perf_counter()
    if not isinstance(plan, Plan):
        raise TypeError(f"execute takes a plan, as plan(…) gives it, not {plan!r:.80}")
    request = plan.request
    if plan.state != seal(before, plan):
        raise Stale(
            "this plan is for another state of the model: something was forgotten, replaced, added or fitted since, or "
            "it is another model's, or it was changed. Nothing was changed: plan again"
        )
    if plan.refusal:
        raise plan._refused()
    overrides = let_in(request.copies, request.allow_copies)
    with flat_heads.quietly():
        after = state.carry_out(before, plan.action, request, progress)
    flat_heads.warn([name for name in after.flat if name not in before.flat], stacklevel=3)
    after.blueprint.warn_of_untrained(after.untrained - before.untrained, stacklevel=3)
    after = replace(after, overrides=after.overrides + overrides) if overrides else after
    receipt = make_receipt(plan, before, after, started)
    after = with_receipt(after, receipt, plan)
    commit(after, receipt)
    # From here on the records are gone; what is left is to overwrite what they were.
    after.committed.settle()
    after.heads.erase()
    after.records.erase()
    before.heads.erase(request.rows)
    before.records.without(request.rows).erase()
    return receipt


def with_receipt(after: Fitted, receipt: Receipt, plan: Plan) -> Fitted:
    """The state that has handed out one receipt more, and remembers by it whom no record is about any more.

    Where heads were moved, it knows how long that took.
    """
    gone = dict.fromkeys(receipt.subject_tombstones or (), Forgotten(receipt.number, receipt.time))
    people = {**after.people, **gone}
    durations = after.durations
    if plan.action.moves_heads:
        changed = max(len(plan.request.rows), plan.added)
        durations = durations.after_moving(receipt.seconds, changed, plan.heads, plan.embeds)
    found = replace(after, receipts=(*after.receipts, receipt.digest), people=people, durations=durations)
    found.__dict__["model_hash"] = after.model_hash  # found already, and the same
    return found


def make_receipt(plan: Plan, before: Fitted, after: Fitted, started: float) -> Receipt:
    """What was done."""
    assert plan.guarantee is not None
    request, heads = plan.request, heads_of(after)
    blueprint, exact = before.blueprint, plan.guarantee.exact
    purpose = FORGOTTEN if request.added is None else REPLACED
    id_hmacs, core_id_hmacs = (
        [id_hmac(before.key, id_, purpose) for id_ in before.records.ids[rows].tolist()]
        for rows in (request.rows, request.core_rows)
    )
    gone = before.records.people_without(request.rows) if request.added is None else []
    people = sorted(subject_hmac(before.key, person) for person in gone)
    return Receipt(
        number=before.requests + 1, previous=before.receipts[-1] if before.receipts else "",
        guarantee=plan.guarantee.value, reason=plan.reason,
        bytes_claim=claim_of(plan.guarantee.value, heads, blueprint.recipe.facts), form=FORM,
        unconditional=exact and not after.conditions, conditions=after.conditions if exact else [],
        core_depended_on=before.choice.depended_on, core_details=lasting(before.choice.details),
        core_policy=request.policy, refit=request.refit, requested=plan.requested, core=plan.core,
        influential=plan.influential, free=plan.free, already_forgotten=plan.already_forgotten,
        duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor,
        tombstones=sorted(each.hex() for each in id_hmacs),
        core_tombstones=sorted(each.hex() for each in core_id_hmacs),
        earlier_tombstones=sorted(each.hex() for each in request.forgotten_before),
        records_before=int(before.records.alive.sum()), records_after=int(after.records.alive.sum()),
        commitment_before=before.commitment, commitment_after=after.commitment,
        model_before=before.model_commitment, model_after=after.model_commitment, heads=heads,
        seed=blueprint.seed, recipe=blueprint.recipe.facts, C=blueprint.C, environment=asdict(blueprint.environment),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started,
        added=plan.added if request.adds else None, subject_tombstones=people or None,
        class_weights=weights_by_hmac(after.key, after.blueprint.class_weight),
        weighted_records=None if after.records.weights is None else True,
    )  # fmt: skip


def heads_of(fitted: Fitted) -> list[HeadCertificate]:
    """What a receipt says of the heads."""
    pairs = zip(fitted.spoken_for, fitted.heads.certificate_, strict=True)
    return [HeadCertificate.of(class_hmac(fitted.key, name), certificate) for name, certificate in pairs]
