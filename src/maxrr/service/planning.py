"""Look at the model for a request, and take it: what it would come to, and whether somebody has to decide first."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any
from unicodedata import category, normalize

from maxrr.errors import DataError, MaxRRError, NotHere
from maxrr.service.changes import arguments
from maxrr.service.requests import Asked, Callback, Planned, Request
from maxrr.service.states import ADD, ERASE, PLANNED, WAITING
from maxrr.unlearning import MaxRR, Plan
from maxrr.unlearning.actions import KEEP, REFUSE, RETRAIN, Guarantee


def look(model: MaxRR, kind: str, body: Mapping[str, Any], standing: str) -> Planned:
    """Plan a request under the policy that touches no core record, and where that refuses, under the standing one.

    What the model knows nothing of is planned as well: that nothing is here is an answer, which the worker signs. What
    was forgotten before waits for a decision where the extractor may still have traces of it.
    """
    try:
        plan = plan_of(model, kind, body, REFUSE)
    except NotHere as error:
        return Planned(PLANNED, None, None, error.code)
    others = plan.alternatives
    if plan.guarantee is Guarantee.approximate and kind == ERASE:  # forgotten before, and traces may have stayed
        others = tuple(plan_of(model, kind, body, policy) for policy in (KEEP, RETRAIN))
    elif plan.refusal is None:
        return Planned(PLANNED, None, told(plan), str(plan.guarantee))
    if not others:
        return Planned(PLANNED, None, None, plan._refused().code)
    shown = waiting(plan, others)
    if standing != REFUSE and shown["policies"].get(standing, {}).get("guarantee"):
        return Planned(PLANNED, standing, shown["policies"][standing], f"by the standing policy {standing}")
    return Planned(WAITING, None, shown, "core records: a policy is to be chosen")


def plan_of(model: MaxRR, kind: str, body: Mapping[str, Any], policy: str) -> Plan:
    """Plan a request under a policy for core records."""
    asked = arguments(model, kind, body)
    return model.plan(**asked) if kind == ADD else model.plan(**asked, core_policy=policy)


def waiting(plan: Plan, others: Sequence[Plan]) -> dict[str, Any]:
    """Return what is shown to whoever decides: what is asked for, and what each policy would give in which time."""
    return {**told(plan), "policies": {other.request.policy: told(other) for other in others}}


def told(plan: Plan) -> dict[str, Any]:
    """Return a plan as the database has it, without anything that names a record."""
    counts = {name: getattr(plan, name) for name in ("core", "influential", "free", "already_forgotten")}
    return {
        "guarantee": plan.guarantee and str(plan.guarantee), "seconds": plan.seconds, "requested": plan.requested,
        "reason": "" if plan.unknown else plan.reason, "conditions": plan.conditions, **counts,
    }  # fmt: skip


def check_looks(model: MaxRR, body: Mapping[str, Any]) -> None:
    """Refuse what the model does not have if something is there that looks the same: the answer would be misread."""
    alike = {what: [each if isinstance(each, int) else plain(each) for each in body[what]] for what in body}
    if alike != body and look(model, ERASE, alike, REFUSE).reason != NotHere.code:
        raise DataError("nothing has this name, but something has one that looks the same: write it letter by letter")


def plain(name: str) -> str:
    """Write a name as it looks: without what is not seen, with blanks and hyphens of one kind.

    >>> plain(" person\u2010198\u200b")
    'person-198'
    """
    seen = (letter for letter in normalize("NFKC", name) if category(letter) != "Cf")
    return " ".join("".join("-" if category(letter) == "Pd" else letter for letter in seen).split())


def subject_of(resolver: Callable[[str, str], int | str | None], identities: Sequence[tuple[str, str]]) -> int | str:
    """Return the subject that identities, each a type and a value, belong to.

    Who is not known gets a name that no record has: that nothing is here is an answer, which the worker signs, and
    which says "nothing of the person with email a@b.c".

    Raises
    ------
    maxrr.errors.DataError
        They belong to several people.
    """
    found = {subject for kind, value in identities if (subject := resolver(kind, value)) is not None}
    if len(found) > 1:
        raise DataError("the identities belong to several people: send a request for each")
    return found.pop() if found else f"the person with {' '.join(identities[0])}"


def take(
    service: Any, identities: Sequence[tuple[str, str]], owner: str, key: str, callbacks: Sequence[Callback], *,
    asked_on: date, regulation: str = "gdpr", reference: str | None = None, beside: Sequence[str] = (),
) -> Request:  # fmt: skip
    """Take the request of a protocol for a person, and return it. The same key and body give the same one again."""
    settings = service.settings
    body = {"subjects": [subject_of(settings.resolver, identities)]}
    due = settings.due(regulation, asked_on)
    asked = Asked(body, regulation, due, callbacks=callbacks, reference=reference, beside=beside)
    return taken(service, asked, owner, f"\n{key}")[0]  # no header can have this key: it has a line break


def taken(service: Any, asked: Asked, owner: str, key: str | None) -> tuple[Request, bool]:
    """Look at the model for a request, take it, and return it and whether it is new."""
    try:
        planned: Planned | None = look(service.current.snapshot.model, asked.kind, asked.body, service.settings.policy)
    except DataError:  # as where what is to be added is there, because the same call was carried out
        before: Request | None = service.requests.before(asked, owner, key)
        if before is None:
            raise
        return before, False
    except MaxRRError:  # no model can be looked at now: the worker plans
        planned = None
    if planned is not None and planned.reason == NotHere.code:  # which will be signed
        check_looks(service.current.snapshot.model, asked.body)
    found: tuple[Request, bool] = service.requests.submit(asked, owner, planned, key)
    return found
