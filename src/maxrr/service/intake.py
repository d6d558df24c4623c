"""How a request is taken, and who is meant by one that names a person by identities, as those of protocols do."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from maxrr.errors import DataError, MaxRRError
from maxrr.service.planning import look
from maxrr.service.requests import Asked, Callback, Planned, Request


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
    asked_on: date, regulation: str = "gdpr", reference: str | None = None,
) -> Request:  # fmt: skip
    """Take the request of a protocol for a person, and return it. The same key and body give the same one again."""
    settings = service.settings
    body = {"subjects": [subject_of(settings.resolver, identities)]}
    due = asked_on + timedelta(days=settings.regulations.get(regulation, settings.days))
    return taken(service, Asked(body, regulation, due, callbacks=callbacks, reference=reference), owner, key)[0]


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
    found: tuple[Request, bool] = service.requests.submit(asked, owner, planned, key)
    return found
