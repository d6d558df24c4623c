"""Look at the model for a request: what it would come to, and whether somebody has to decide about it first."""

from collections.abc import Mapping
from typing import Any

from maxrr.errors import NotHere
from maxrr.service.changes import arguments
from maxrr.service.requests import Planned
from maxrr.service.states import ADD, PLANNED, WAITING
from maxrr.unlearning import MaxRR, Plan
from maxrr.unlearning.actions import REFUSE

KINDS = ("core", "influential", "free", "already_forgotten")


def look(model: MaxRR, kind: str, body: Mapping[str, Any], standing: str) -> Planned:
    """Plan a request under the policy that touches no core record, and where that refuses, under the standing one.

    What the model knows nothing of is planned as well: that nothing is here is an answer, which the worker signs.
    """
    try:
        plan = plan_of(model, kind, body, REFUSE)
    except NotHere as error:
        return Planned(PLANNED, None, None, error.code)
    if plan.refusal is None:
        return Planned(PLANNED, None, told(plan), str(plan.guarantee))
    if not plan.alternatives:
        return Planned(PLANNED, None, None, plan._refused().code)
    policies = {other.request.policy: told(other) for other in plan.alternatives}
    if standing != REFUSE and policies.get(standing, {}).get("guarantee"):
        return Planned(PLANNED, standing, policies[standing], f"by the standing policy {standing}")
    return Planned(WAITING, None, waiting(plan), "core records: a policy is to be chosen")


def plan_of(model: MaxRR, kind: str, body: Mapping[str, Any], policy: str) -> Plan:
    """Plan a request under a policy for core records."""
    asked = arguments(model, kind, body)
    return model.plan(**asked) if kind == ADD else model.plan(**asked, core_policy=policy)


def waiting(plan: Plan) -> dict[str, Any]:
    """Return what is shown to whoever decides: what is asked for, and what each policy would give in which time."""
    return {**told(plan), "policies": {other.request.policy: told(other) for other in plan.alternatives}}


def told(plan: Plan) -> dict[str, Any]:
    """Return a plan as the database has it, without anything that names a record."""
    counts = {name: getattr(plan, name) for name in KINDS}
    guarantee = None if plan.guarantee is None else str(plan.guarantee)
    return {
        "guarantee": guarantee, "seconds": plan.seconds, "requested": plan.requested, **counts,
        "reason": "" if plan.unknown else plan.reason, "conditions": plan.conditions,
    }  # fmt: skip
