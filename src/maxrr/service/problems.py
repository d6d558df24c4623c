"""Errors as answers: problem details (RFC 9457) that carry the codes of `maxrr.errors`."""

import inspect
import logging
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from maxrr import errors

log = logging.getLogger("maxrr.service")

STATUS: dict[type[BaseException], int] = {
    errors.NoToken: 401, errors.NotAllowed: 403, errors.UnknownRequest: 404, errors.WrongState: 409,
    errors.KeyReused: 422, errors.NamesDestroyed: 410, errors.TooLarge: 413, errors.TooMany: 429,
    errors.DatabaseAway: 503, errors.ModelAway: 503, errors.NotHere: 404, errors.Refused: 409, errors.Stale: 409,
    errors.HostNotAllowed: 422, errors.WorkspaceError: 503, errors.EngineError: 503, errors.DataError: 422,
}  # fmt: skip
CODES = {404: "no-such-path", 405: "no-such-method", 413: errors.TooLarge.code}
SHAPE = {"type": "object", "required": ["type", "title", "status", "code", "detail"]}
PROBLEM: dict[str, Any] = {"description": "a problem", "content": {"application/problem+json": {"schema": SHAPE}}}
ANSWERED = errors.MaxRRError, RequestValidationError, HTTPException
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "5"}}


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> JSONResponse:
    """Make an answer that says what is wrong."""
    said = {"type": f"urn:maxrr:{code}", "title": HTTPStatus(status).phrase, "status": status, "code": code}
    found = {**HEADERS.get(status, {}), **(headers or {})}
    return JSONResponse({**said, "detail": detail, **more}, status, found, "application/problem+json")


async def answer_with(_: Request, error: Exception) -> JSONResponse:
    """Answer with an error: one of ours, of the form of a call, of the framework, or of the machine."""
    if isinstance(error, errors.MaxRRError):
        status, words = status_and_words(error)
        return problem(status, error.code, words)
    if isinstance(error, RequestValidationError):  # what the call said is not repeated
        wrong = [{"at": "/".join(map(str, each["loc"])), "what": each["msg"]} for each in error.errors()]
        return problem(422, "wrong-value", "the call does not have the form that is expected", wrong=wrong)
    if isinstance(error, HTTPException):
        return problem(error.status_code, CODES.get(error.status_code, "wrong-call"), error.detail, error.headers)
    note(error)
    return problem(503, "disk", "the service cannot write: its operator finds why in the log. Nothing was changed")


def status_and_words(error: errors.MaxRRError) -> tuple[int, str]:
    """Return the status of an answer with this error, and what it says."""
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    words = inspect.getdoc(type(error)) if isinstance(error, errors.WorkspaceError) else str(error)  # no paths of ours
    return status, (words or error.code).splitlines()[0]


def note(error: BaseException, what: str = "") -> str:
    """Log an error by its kind and place, as its message may name records, and return its code; or else its kind.

    `what` says what it stops. An error of ours that stops nothing is a refusal, and no fault.
    """
    frame, kind = traceback.extract_tb(error.__traceback__)[-1], type(error).__name__
    is_ours = isinstance(error, errors.MaxRRError)
    level = logging.INFO if is_ours and not what else logging.ERROR
    words = what or ("refused" if is_ours else "fault")
    log.log(level, "%s: %s at %s:%d", words, kind, frame.filename, frame.lineno or 0)
    return error.code if isinstance(error, errors.MaxRRError) else kind
