"""Several requests as one: looked up one after the other, answered by one action, each with a receipt of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from maxrr.errors import Refused
from maxrr.svm.problem import changed
from maxrr.unlearning.aliases import Ids
from maxrr.unlearning.forgetting import Member
from maxrr.unlearning.lookup import look_up
from maxrr.unlearning.plans import Plan, answered_together, make_plan
from maxrr.unlearning.requests import Request, Technique
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Forgotten, subject_hmac
from maxrr.unlearning.transitions import less

Named = tuple[Ids | None, Ids | None]  # ids, or subjects


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


def make_group(fitted: Fitted, requests: Iterable[Named], core_policy: str | Technique) -> Group:
    """Decide what is done about requests. One that is refused is left out, and does not keep the others."""
    now, found, refusals = fitted, list[Member](), list[Refused | None]()
    for ids, subjects in requests:
        try:
            plan = make_plan(now, look_up(now, ids, subjects, core_policy))
            if plan.refusal:
                raise plan._refused()
        except Refused as refused:
            refusals.append(refused)
            continue
        refusals.append(None)
        found.append(Member(plan, now.records))
        now = without(now, plan.request, fitted.requests + len(found))
    if not found:
        return Group(None, [], refusals)
    plan = make_plan(fitted, united([member.plan.request for member in found]))
    return Group(plan, found if len(found) == 1 else joint(fitted, plan, found), refusals)


def without(now: Fitted, request: Request, number: int) -> Fitted:
    """The state in which the next request is looked up: without the records, and with the heads that there are."""
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    gone = [subject_hmac(now.key, person) for person in now.records.people_without(request.rows)]
    then = less(now, request)
    return changed(then, people=then.people.with_more(dict.fromkeys(gone, Forgotten(number, moment)))) if gone else then


def united(requests: Sequence[Request]) -> Request:
    """All requests as one."""
    rows, core_rows = (
        np.sort(np.concatenate(parts))
        for parts in ([each.rows for each in requests], [each.core_rows for each in requests])
    )
    before = tuple(dict.fromkeys(hmac for each in requests for hmac in each.forgotten_before))
    left = sum(each.left_in_extractor for each in requests)
    return Request(rows, core_rows, [], before, left, requests[0].core_policy)


def joint(fitted: Fitted, plan: Plan, members: Sequence[Member]) -> list[Member]:
    """The members with what is said of each: its own counts, and what the action of the group comes to for it."""
    found, all_rows = [], plan.request.rows
    for member in members:
        rows = member.plan.request.rows
        left = member.plan.duplicates_left
        if left:  # some of these may have left with others of the group
            left = fitted.records.without(np.setdiff1d(all_rows, rows)).twins(rows)
        own = answered_together(member.plan, plan.action, len(members) - 1, left)
        found.append(Member(own, member.records))
    return found
