"""Carry out a request: the next state beside the present one, its receipt, the takeover, and then the erasure."""

import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime

from maxrr.data import Dataset
from maxrr.progress import Report
from maxrr.svm import FORM
from maxrr.unlearning import flat, state
from maxrr.unlearning.oblivion import id_mark
from maxrr.unlearning.plans import Plan, make_plan
from maxrr.unlearning.receipts import HeadProof, Receipt, claim_of
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import Fitted

Commit = Callable[[Fitted, Receipt], None]
"""Takes over the next state. When it returns the request is done; if it raises, nothing has changed."""


def forget(
    before: Fitted, request: Request, added: Dataset | None, commit: Commit, report: Report | None = None
) -> Receipt:  # fmt: skip
    """Forget the requested records, learn those added, and overwrite what the state before held of the former.

    Heads that become flat by it are warned about, in the name of the caller's caller.
    """
    started = time.perf_counter()
    plan = make_plan(before, request, added)
    if plan.refusal:
        raise ValueError(plan.refusal)
    with flat.quietly():
        after = state.without(before, request, added, report)
    flat.warn([name for name in after.flat if name not in before.flat], stacklevel=3)
    receipt = make_receipt(request, plan, before, after, started)
    commit(after, receipt)
    # From here on the records are gone; what is left is to overwrite what they were.
    after.head.erase()
    after.holdings.erase()
    before.head.erase(request.rows)
    before.holdings.without(request.rows).erase()
    return receipt


def make_receipt(request: Request, plan: Plan, before: Fitted, after: Fitted, started: float) -> Receipt:
    """What was done."""
    heads = [HeadProof.of(*pair) for pair in zip(after.spoken_for, after.head.certificate_, strict=True)]
    setting = before.setting
    marks, core_marks = (
        sorted(id_mark(before.key, id_).hex() for id_ in before.holdings.ids[rows].tolist())
        for rows in (request.rows, request.core_rows)
    )
    return Receipt(
        number=after.requests, guarantee=plan.guarantee.value, reason=plan.reason,
        bytes_claim=claim_of(heads), form=FORM,
        unconditional=before.choice.unconditional and plan.guarantee.exact and not after.left_in_extractor,
        core_depended_on=before.choice.depended_on, core_details=dict(before.choice.details),
        core_policy=request.policy, refit=request.refit, requested=plan.requested, core=plan.core,
        influential=plan.influential, neither=plan.neither, already_forgotten=plan.already_forgotten,
        duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor,
        record_marks=marks, core_marks=core_marks,
        records_before=int(before.holdings.alive.sum()), records_after=int(after.holdings.alive.sum()),
        manifest_before=before.holdings.manifest, manifest_after=after.holdings.manifest,
        model_before=before.model_hash, model_after=after.model_hash, heads=heads,
        seed=setting.seed, recipe=asdict(setting.recipe), C=setting.C, environment=asdict(setting.environment),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started,
    )  # fmt: skip
