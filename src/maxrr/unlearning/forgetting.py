"""Carry out a plan: the next state beside the present one, its receipt, the takeover, and then the erasure."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime

from maxrr.errors import Stale
from maxrr.progress import Progress
from maxrr.svm import FORM
from maxrr.unlearning import flat, state
from maxrr.unlearning.oblivion import FORGOTTEN, REPLACED, class_mark, id_mark
from maxrr.unlearning.plans import Plan
from maxrr.unlearning.receipts import HeadProof, Receipt, claim_of, lasting
from maxrr.unlearning.returning import let_in
from maxrr.unlearning.state import Fitted

Commit = Callable[[Fitted, Receipt], None]
"""Takes over the next state. When it returns the request is done; if it raises, nothing has changed."""


def execute(before: Fitted, plan: Plan, commit: Commit, progress: Progress | None = None) -> Receipt:
    """Do what the plan says, and overwrite what the state before held of the records that leave.

    A plan for another state is `Stale`, a refused one is raised as `Refused`. Heads that become flat by it, and copies
    that are let in, are warned about in the name of the caller's caller.
    """
    started = time.perf_counter()
    request = plan.request
    if plan.state != before.token:
        raise Stale(
            "this plan is for another state of the model: something was forgotten, replaced or fitted since, or it is "
            "another model's. Nothing was changed: plan again"
        )
    if plan.refusal:
        raise plan.refused()
    overrides = let_in(request.copies, request.allow_copies)
    with flat.quietly():
        after = state.carried_out(before, plan.action, request, progress)
    flat.warn([name for name in after.flat if name not in before.flat], stacklevel=3)
    after = replace(after, overrides=after.overrides + overrides) if overrides else after
    receipt = make_receipt(plan, before, after, started)
    after = with_receipt(after, receipt)
    commit(after, receipt)
    # From here on the records are gone; what is left is to overwrite what they were.
    after.head.erase()
    after.holdings.erase()
    before.head.erase(request.rows)
    before.holdings.without(request.rows).erase()
    return receipt


def with_receipt(after: Fitted, receipt: Receipt) -> Fitted:
    """The state that has handed out one receipt more."""
    found = replace(after, receipts=(*after.receipts, receipt.digest))
    found.__dict__["model_hash"] = after.model_hash  # found already, and the same
    return found


def make_receipt(plan: Plan, before: Fitted, after: Fitted, started: float) -> Receipt:
    """What was done."""
    assert plan.guarantee is not None
    request, heads = plan.request, heads_of(after)
    setting, exact = before.setting, plan.guarantee.exact
    purpose = FORGOTTEN if request.added is None else REPLACED
    marks, core_marks = (
        [id_mark(before.key, id_, purpose) for id_ in before.holdings.ids[rows].tolist()]
        for rows in (request.rows, request.core_rows)
    )
    return Receipt(
        number=before.requests + 1, previous=before.receipts[-1] if before.receipts else "",
        guarantee=plan.guarantee.value, reason=plan.reason,
        bytes_claim=claim_of(plan.guarantee.value, heads), form=FORM,
        unconditional=exact and not after.conditions, conditions=after.conditions if exact else [],
        core_depended_on=before.choice.depended_on, core_details=lasting(before.choice.details),
        core_policy=request.policy, refit=request.refit, requested=plan.requested, core=plan.core,
        influential=plan.influential, neither=plan.neither, already_forgotten=plan.already_forgotten,
        duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor,
        record_marks=sorted(mark.hex() for mark in marks), core_marks=sorted(mark.hex() for mark in core_marks),
        earlier_marks=sorted(mark.hex() for mark in request.forgotten_before),
        records_before=int(before.holdings.alive.sum()), records_after=int(after.holdings.alive.sum()),
        manifest_before=before.manifest_commitment, manifest_after=after.manifest_commitment,
        model_before=before.model_commitment, model_after=after.model_commitment, heads=heads,
        seed=setting.seed, recipe=asdict(setting.recipe), C=setting.C, environment=asdict(setting.environment),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started,
    )  # fmt: skip


def heads_of(fitted: Fitted) -> list[HeadProof]:
    """What a receipt says of the heads."""
    pairs = zip(fitted.spoken_for, fitted.head.certificate_, strict=True)
    return [HeadProof.of(class_mark(fitted.key, name), certificate) for name, certificate in pairs]
