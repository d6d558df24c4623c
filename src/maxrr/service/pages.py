"""The pages of a service, which people work from. They do what the HTTP interface does, by its own functions."""

import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import resources
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends
from fastapi import Request as Call
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from maxrr.errors import DataError, EvidenceError, NotAllowed, NoToken, WrongState
from maxrr.evidence.log import LOG, read_checkpoint
from maxrr.plain_text import tame
from maxrr.report import words
from maxrr.report.charts import shares
from maxrr.report.page import render
from maxrr.service import problems, routes, sessions, states, versions
from maxrr.service.current import Snapshot
from maxrr.service.forms import Wrong, change_in, check_new, erasure_in
from maxrr.service.guard import POLICY, is_page
from maxrr.service.jobs import AUDIT, KINDS
from maxrr.service.planning import look, subject_of, taken
from maxrr.service.requests import Asked, Request, spans, today
from maxrr.service.sessions import IDLE, cookie_of, form_token, new_cookie, set_cookie
from maxrr.service.states import ADD, DONE, ERASE, FAILED, LEFT, OPEN, RECTIFY, REFUSED, STATES, WAITING
from maxrr.service.tokens import AUDITOR, OPERATOR, REQUESTER, Actor
from maxrr.service.verifying import keys_in, verify
from maxrr.unlearning.actions import Guarantee
from maxrr.unlearning.receipts import in_words
from maxrr.unlearning.statements import HandedReceipt
from maxrr.version import __version__
from maxrr.workspace.dossiers import OPERATOR as SENDER
from maxrr.workspace.dossiers import earlier_receipts, public_keys

READ, ASK, WATCH = (REQUESTER, OPERATOR, AUDITOR), (REQUESTER, OPERATOR), (OPERATOR, AUDITOR)
FORM = "application/x-www-form-urlencoded"
BACK = re.compile("/|/(ask|add|correct|model|verify|requests(/[0-9a-f]{32})?)")  # where a sign-in leads back to
LISTS = {"open": LEFT, **{state: (state,) for state in STATES}, "late": (), "due_soon": (), "handing": (), "all": ()}
NUMBER = re.compile("[0-9a-f]{8,32}")  # of a request, or how it begins
LOCAL = "127.0.0.1", "::1", "localhost"  # by which nobody else finds this machine
SHOWN, NEXT, DAYS = 50, 5, 30  # requests on a page of the list, and on the overview; days in its chart
ALWAYS = {
    "policy": POLICY.partition("; frame")[0], "version": __version__, "idle": IDLE, "tame": tame, "day": words.day,
    "utc": partial(datetime.fromtimestamp, tz=UTC), "parsed": datetime.fromisoformat, "timedelta": timedelta,
    "percent": partial(words.percent, decimals=1), "records": words.thousands, "open": LEFT, "history": versions.listed,
    "public_keys": public_keys,
}  # fmt: skip


class Step(NamedTuple):
    """A step that somebody may take with a request: who may, in which states, and by which form of the interface."""

    roles: Sequence[str]
    states: Sequence[str]
    said: Callable[..., Any] | None
    take: Callable[..., Any]


STEPS = {
    "approve": Step((OPERATOR,), (WAITING,), routes.Decision, routes.approve),
    "refuse": Step((OPERATOR,), (WAITING, FAILED), routes.Refusal, routes.refuse),
    "retry": Step((OPERATOR,), (FAILED,), routes.Why, routes.retry),
    "cancel": Step(ASK, states.leads_to(states.CANCELLED), routes.Why, routes.cancel),
    "delivered": Step(ASK, (DONE,), None, routes.delivered),
    "audit": Step((OPERATOR,), (DONE,), partial(routes.JobAsked, kind="audit"), routes.ask_for_job),
    "replay": Step((OPERATOR,), (DONE,), partial(routes.JobAsked, kind="replay"), routes.ask_for_job),
}


# Who calls, from where, and what they get when something is wrong


async def wrong(call: Call, error: Exception) -> Response:
    """Say on a page what is wrong, or lead to the door; to a program that asked for no page of ours, as a problem."""
    problem, route = await problems.answer_with(call, error), call.scope.get("route")
    if not ("text/html" in call.headers.get("accept", "") if route is None else is_page(call.scope)):
        return problem
    if isinstance(error, NoToken):
        back = call.url.path if BACK.fullmatch(call.url.path) else "/"
        return RedirectResponse(f"/sign-in?{urlencode({'back': back, 'ended': bool(cookie_of(call))})}", 303)
    said = json.loads(bytes(problem.body))
    code = "wrong-address" if "wrong" in said else said["code"]
    answer = show(call, "wrong", said["status"], what=said["detail"], code=code)
    answer.headers["content-security-policy"] = POLICY
    return answer


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def signed_in(*roles: str) -> Callable[[Call], Awaitable[Actor]]:
    """Make what a page depends on: somebody who signed in, in one of these roles."""

    async def check(call: Call) -> Actor:
        actor, until = await run_in_threadpool(sessions.find, call.app.state.service.requests.database, cookie_of(call))
        call.scope.update(caller=actor, until=until)
        call.app.state.service.limits.take(actor)
        if actor.role not in roles:
            raise NotAllowed(f"a token of the role {actor.role} does not open this page: it takes {' or '.join(roles)}")
        return actor

    return check


async def form(call: Call) -> dict[str, str]:
    """Read a form, if it comes from a page of this session."""
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise DataError("this takes what a form of these pages sends, and nothing else")
    try:
        sent = parse_qsl((await call.body()).decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError:  # too many fields, or not UTF-8
        raise DataError("this is not what a form of these pages sends") from None
    said = {name: text.replace("\r\n", "\n") for name, text in sent}
    expected = form_token(cookie_of(call))
    if not cookie_of(call) or not hmac.compare_digest(said.pop("form", "").encode(), expected.encode()):
        raise NotAllowed("this form does not come from your session: go back, load the page again, and send it anew")
    return said


Reader = Annotated[Actor, Depends(signed_in(*READ))]
Asker = Annotated[Actor, Depends(signed_in(*ASK))]
Watcher = Annotated[Actor, Depends(signed_in(*WATCH))]
Operator = Annotated[Actor, Depends(signed_in(OPERATOR))]
Form = Annotated[dict[str, str], Depends(form)]


def show(call: Call, template: str, status: int = 200, **values: Any) -> Response:
    """Answer with a page."""
    values.setdefault("form_token", form_token(cookie_of(call)))
    text = render(
        __package__, f"{template}.html.jinja", reader=call.scope.get("caller"), session_ends=call.scope.get("until"),
        path=call.url.path, today=today().isoformat(), now=time.time(), service=call.app.state.service, most=SHOWN,
        home="" if call.url.hostname in LOCAL else str(call.base_url), **ALWAYS, **values,
    )  # fmt: skip
    return HTMLResponse(text, status)


def show_form(call: Call, template: str, said: dict[str, str] | None = None, *wrong: str) -> Response:
    """Answer with a form: a new one, which is one request if it is sent twice; or what was said, and what is wrong."""
    said, (code, field, *_) = {"key": secrets.token_urlsafe(18)} if said is None else said, (*wrong, "", "")
    return show(call, template, 422 if code else 200, said=said, code=code, field=field)


@router.get("/static/pages.css")
def looks() -> Response:
    """Return the look of the reports, and what the pages have beside it. Pages ask for it by the version."""
    folders = resources.files("maxrr.report") / "templates/look.css", resources.files(__package__) / "static/pages.css"
    style = "\n".join(file.read_text(encoding="utf-8") for file in folders)
    return Response(style, media_type="text/css", headers={"Cache-Control": "public, max-age=86400"})


# Signing in and out


@router.get("/sign-in")
def door(call: Call, back: str = "/", ended: bool = False) -> Response:
    """Show where somebody signs in, and say so where a session has ended."""
    return at_door(call, back, ended=ended)


def at_door(call: Call, back: str, status: int = 200, code: str = "", ended: bool = False) -> Response:
    """Ask for a token, in a form that belongs to a cookie already."""
    cookie = cookie_of(call) or new_cookie()
    answer = show(call, "sign_in", status, back=back, code=code, ended=ended, form_token=form_token(cookie))
    set_cookie(call, answer, cookie)
    return answer


@router.post("/sign-in")
async def sign_in(call: Call, said: Form) -> Response:
    """Begin a session, under a new cookie, for whoever has a token."""
    token, back = said.get("token", "").strip(), said.get("back", "/")
    try:
        actor = await run_in_threadpool(call.app.state.service.tokens.find, token)
    except NoToken as error:
        return at_door(call, back, 401, error.code)
    if actor.role not in READ:
        return at_door(call, back, 403, NotAllowed.code)
    answer = RedirectResponse(back if BACK.fullmatch(back) else "/", 303)
    set_cookie(call, answer, await run_in_threadpool(sessions.begin, call.app.state.service.requests.database, token))
    return answer


@router.post("/sign-out")
def sign_out(call: Call, said: Form) -> Response:
    """End the session."""
    sessions.end(call.app.state.service.requests.database, cookie_of(call))
    answer = RedirectResponse("/sign-in", 303)
    set_cookie(call, answer, "")
    return answer


# Requests


@router.get("/")
def overview(call: Call, actor: Reader) -> Response:
    """Show where things stand, and what is to be done next."""
    requests, owner = call.app.state.service.requests, actor.sees
    some = partial(requests.listed, owner=owner, limit=NEXT)
    return show(
        call, "overview", counts=requests.counts(owner), received=requests.received_by_day(DAYS, owner),
        failed=some([FAILED]), waiting=some([WAITING], due_first=True),
        handing=some(delivered=False, due_first=True), due=some([*{*OPEN} - {WAITING}], due_first=True),
    )  # fmt: skip


@router.get("/requests")
def listed(call: Call, actor: Reader, which: str = "open", order: str = "", after: str = "") -> Response:
    """List requests, a page at a time."""
    requests, owner = call.app.state.service.requests, actor.sees
    if which not in LISTS or not re.match(routes.PLACE, after):
        raise DataError("there is no such list: choose one of those above")
    order = order or ("due" if which in ("open", "late", "due_soon", "handing", *OPEN) else "newest")
    some = requests.listed(
        LISTS[which], owner=owner, delivered=False if which == "handing" else None,
        span=which if which in spans() else "", due_first=order == "due", after=after, limit=SHOWN,
    )  # fmt: skip
    return show(call, "requests", some=some, which=which, order=order, after=after, counts=requests.counts(owner))


@router.post("/requests")
def search(call: Call, actor: Reader, said: Form) -> Response:
    """Find requests by the beginning of their number, or by whom or what they name: this is in no address, nor log."""
    service, text = call.app.state.service, said.get("find", "").strip()
    is_address = service.settings.resolver is not None and "@" in text
    names = {text, str(subject_of(service.settings.resolver, [("email", text)])) if is_address else text}
    is_number, whose = NUMBER.fullmatch(text.lower()), {"owner": actor.sees, "limit": SHOWN}
    some = service.requests.listed(start=text.lower(), **whose) if is_number else []
    if text and not some and actor.role in ASK:  # auditors learn no names, nor whether somebody has one
        some = service.requests.naming(names, **whose)
    if len(some) == 1:
        return RedirectResponse(f"/requests/{some[0].id}", 303)
    counts = service.requests.counts(actor.sees)
    return show(call, "requests", some=some, which="found", after="", order="newest", counts=counts, find=text)


def steps_for(request: Request, actor: Actor) -> list[str]:
    """The steps that somebody may take with a request now."""
    found = [name for name, step in STEPS.items() if actor.role in step.roles and request.state in step.states]
    traces = (request.kind, request.outcome) == (ERASE, "done") and request.guarantee != Guarantee.untouched
    without = {*KINDS} if request.number is None else set[str]() if traces else {AUDIT}  # which could find none
    return [name for name in found if name not in without and not (name == "delivered" and request.delivered)]


@router.get("/requests/{id}")
def follow(call: Call, id: str, actor: Reader) -> Response:
    """Show a request: what it asks for, what it comes to, what happened, what is to be done, and its answer."""
    request = routes.found(call, id, actor)
    return show_request(call, "request", request, steps=steps_for(request, actor), in_words=in_words)


def show_request(call: Call, template: str, request: Request, **values: Any) -> Response:
    """Show a request with what is known of it: whom it names, its receipt, events, and checks."""
    service, requests = call.app.state.service, call.app.state.service.requests
    body = None if call.scope["caller"].role == AUDITOR else requests.bodies([request]).get(request.serial)
    handed = None if request.number is None else HandedReceipt.from_bytes(requests.answer(request))
    snapshot: Snapshot | None = service.current.found
    earlier = earlier_receipts(snapshot.workspace, handed.receipt) if handed and snapshot else []
    return show(
        call, template, request=request, body=body, receipt=handed, events=requests.events(request.serial),
        jobs=service.jobs.of(request), earlier=earlier, look=look, **values,
    )  # fmt: skip


@router.get("/requests/{id}/letter")
def letter(call: Call, id: str, actor: Asker, file: bool = False) -> Response:
    """Say to the person in plain words what was done: as a page, or as a file that needs no other."""
    request = routes.found(call, id, actor)
    if request.state not in (DONE, REFUSED) or request.kind == ADD:
        raise WrongState(f"the request is {request.state}, and there is nothing that a letter could say")
    if request.state == DONE:
        call.app.state.service.requests.body(request)  # raises an error if the names in it were destroyed
        routes.note_fetched(call, request, actor)
    base, sender = "layout.html.jinja" if file else "frame.html.jinja", os.environ.get(SENDER, "")
    answer = show_request(call, "letter", request, base=base, sender=sender)
    answer.headers["Content-Disposition"] = f'{"attachment" if file else "inline"}; filename="letter-{request.id}.html"'
    return answer


@router.get("/requests/{id}/receipt")
def receipt(call: Call, id: str, actor: Reader) -> Response:
    """Hand out the answer as a file."""
    return routes.receipt(call, id, actor)


@router.get("/requests/{id}/page")
def page(call: Call, id: str, actor: Asker) -> Response:
    """Hand out the person's page as a file."""
    return routes.page(call, id, actor)


@router.get("/requests/{id}/{step}")
def before(call: Call, id: str, step: str, actor: Reader) -> Response:
    """Ask once more before a step is taken, and say what it does."""
    request = possible(call, id, step, actor)
    if step == "approve":  # its form is on the request's page
        return RedirectResponse(f"/requests/{request.id}", 303)
    return show_request(call, "step", request, step=step)


@router.post("/requests/{id}/{step}")
def take(call: Call, id: str, step: str, actor: Reader, said: Form) -> Response:
    """Take a step, and show the request after it."""
    request, what = possible(call, id, step, actor), STEPS[step]
    try:
        given = () if what.said is None else (what.said(**said),)
    except ValidationError:
        raise DataError("choose one of the ways, and write why, in at most 400 letters") from None
    what.take(call, request.id, *given, actor)
    return RedirectResponse(f"/requests/{request.id}", 303)


def possible(call: Call, id_: str, step: str, actor: Actor) -> Request:
    """Return a request with which this step can be taken now, by this person."""
    if step not in STEPS:
        raise HTTPException(404, "There is no such page.")
    if actor.role not in STEPS[step].roles:
        raise NotAllowed(f"a token of the role {actor.role} does not allow this")
    request = routes.found(call, id_, actor)
    if step not in steps_for(request, actor):
        raise WrongState(f"the request is {request.state} by now, so that this step cannot be taken")
    return request


# Forms of new requests


def sent(call: Call, template: str, said: dict[str, str], read: Callable[[Any, dict[str, str]], Asked]) -> Response:
    """Take what a form asks for, and show the request; or show the form again, with what was said and is wrong."""
    service, who, key = call.app.state.service, call.scope["caller"], said.get("key", "").strip() or None
    form: Callable[..., Response] = partial(show_form, call, template, said)
    try:
        asked = read(service, said)
        if service.requests.before(asked, who.name, key) is None:
            check_new(service, asked, who.sees, said)
        return RedirectResponse(f"/requests/{taken(service, asked, who.name, key)[0].id}", 303)
    except ValidationError as error:
        return form("wrong-value", str(next(iter(error.errors()[0]["loc"]), "")))
    except Wrong as error:
        return form(*error.args)
    except DataError as error:
        return form(error.code)


@router.get("/ask")
def asking(call: Call, actor: Asker) -> Response:
    """Show the form of a new request."""
    return show_form(call, "ask")


@router.post("/ask")
def ask(call: Call, actor: Asker, said: Form) -> Response:
    """Take a request, and show it."""
    return sent(call, "ask", said, erasure_in)


@router.get("/add")
@router.get("/correct")
def changing(call: Call, actor: Operator) -> Response:
    """Show the form that adds a record, or corrects one."""
    return show_form(call, "change")


@router.post("/add")
@router.post("/correct")
def change(call: Call, actor: Operator, said: Form) -> Response:
    """Take an addition or a correction of one record, if nothing is wrong with it, and show the request."""
    return sent(call, "change", said, partial(change_in, kind=ADD if call.url.path == "/add" else RECTIFY))


# The model, and what an auditor checks


@router.get("/model")
def model(call: Call, actor: Watcher) -> Response:
    """Show what the model is, how well its heads are solved, and what it was before."""
    return show(call, "model", snapshot=call.app.state.service.current.snapshot, shares=shares)


@router.get("/verify")
def verifying(call: Call, actor: Watcher) -> Response:
    """Show what can be checked here, and what is needed for it."""
    return to_verify(call)


def to_verify(call: Call, said: dict[str, str] | None = None, code: str = "", **checks: str) -> Response:
    """Show the form of a check, and what came of it."""
    folder = call.app.state.service.settings.workspace / LOG
    checkpoint = read_checkpoint(folder).decode(errors="replace") if folder.exists() else ""
    return show(call, "verify", 422 if code else 200, said=said or {}, code=code, checkpoint=checkpoint, checks=checks)


@router.post("/verify")
def verified(call: Call, actor: Watcher, said: Form) -> Response:
    """Check the log and the signatures, and show what held."""
    try:
        keys = keys_in(said.get("keys", ""))
    except EvidenceError as error:
        return to_verify(call, said, error.code)
    return to_verify(call, said, **verify(call.app.state.service, keys, said.get("kept", "")))
