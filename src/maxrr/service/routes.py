"""The routes of the HTTP interface, each with the roles that may call it."""

import json
from dataclasses import dataclass, fields
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi import Request as Call
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, StringConstraints, field_validator
from sqlalchemy import select

from maxrr.errors import DataError, MaxRRError, WrongState
from maxrr.service import metrics, versions
from maxrr.service.changes import records_of
from maxrr.service.guard import Guarded, needs
from maxrr.service.jobs import Job
from maxrr.service.planning import plan_of, subject_of, taken, waiting
from maxrr.service.requests import Asked, Event, Request, Standing, today
from maxrr.service.states import ADD, CANCELLED, ERASE, PLANNED, RECTIFY, REFUSED, STATES
from maxrr.service.tokens import AUDITOR, OPERATOR, PREDICTOR, REQUESTER, ROLES, Actor
from maxrr.unlearning.actions import REFUSE
from maxrr.workspace.dossiers import first_dossier, public_keys

router = APIRouter(route_class=Guarded)

Asker = Annotated[Actor, Depends(needs(REQUESTER, OPERATOR))]
Reader = Annotated[Actor, Depends(needs(REQUESTER, OPERATOR, AUDITOR))]
Operator = Annotated[Actor, Depends(needs(OPERATOR))]
Watcher = Annotated[Actor, Depends(needs(OPERATOR, AUDITOR))]
Predictor = Annotated[Actor, Depends(needs(PREDICTOR, OPERATOR))]
Anybody = Annotated[Actor, Depends(needs(*ROLES))]

Identifier = StrictInt | Annotated[StrictStr, Field(min_length=1, max_length=500)]
Reason = Annotated[str, Field(max_length=400, description="Why, in words; it stays in the events: name nobody.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]
VERSION = "Maxrr-Model"
DAYS = {"due": range(3_000_000), "arrived": range(-731, 1)}  # from today: not over; or come, and not two years ago
PLACE = r"^(\d{4}-\d\d-\d\d\.\d{1,18})?$"


class Strict(BaseModel):
    """A body that says nothing else."""

    model_config = ConfigDict(extra="forbid")


class Identity(Strict):
    """An identity that the operator's resolver maps to a subject."""

    type: str = Field(max_length=64)
    value: str = Field(min_length=1, max_length=500)


class Submission(Strict):
    """What is to be forgotten: records by their ids, a person by the subject id, or one by an identity."""

    ids: list[Identifier] | None = Field(None, min_length=1, max_length=10_000)
    subject: Identifier | None = None
    identity: Identity | None = None
    regulation: str = Field("gdpr", pattern="^[a-z0-9-]{1,32}$")
    due: date | None = Field(None, description="By when it is to be answered, if not as the regulation says.")
    arrived: date | None = Field(None, description="When it came, as by post, if before today: days count from then.")

    @field_validator(*DAYS)
    @classmethod
    def check_day(cls, day: date | None, about: Any) -> date | None:
        """Refuse a day that cannot be meant, as one whose year has two digits."""
        if day is not None and (day - today()).days not in DAYS[about.field_name]:
            raise ValueError("this day is over, has not come, or is more than two years ago: write the year as in 2027")
        return day


class Addition(Strict):
    """Records to learn, with the class and the id of each, and whom each is about if the model's records say so."""

    records: list[Any] = Field(min_length=1, max_length=10_000)
    labels: list[Identifier]
    ids: list[Identifier]
    subjects: list[Identifier] | None = None


class Correction(Strict):
    """What a record should be, and of which class if that changes."""

    id: Identifier
    record: list[Any]
    label: Identifier | None = None


class Why(Strict):
    """Why a request is cancelled or tried again."""

    reason: Reason = ""


class Refusal(Strict):
    """Why a request is refused: the letter to the person says it."""

    reason: Annotated[Reason, StringConstraints(strip_whitespace=True, min_length=1)]


class Decision(Why):
    """Under which policy a request for core records is to be carried out."""

    policy: Literal["retrain", "keep-extractor"]


class Records(Strict):
    """Records to tell the classes of, each as nested lists of numbers in the shape of those of the model."""

    records: list[Any] = Field(min_length=1, max_length=10_000)


class JobAsked(Strict):
    """What is to be done about a request that was carried out."""

    kind: Literal["audit", "replay"]


@dataclass(frozen=True)
class RequestShown(Standing):
    """A request as it stands, without what names people."""

    days_left: int
    late: bool
    receipt: int | None
    events: list[Event] | None


class Page(BaseModel):
    """Some requests, and where the next ones begin."""

    requests: list[RequestShown]
    next: str | None


def shown(request: Request, events: list[Event] | None = None) -> RequestShown:
    """Return a request as callers see it."""
    said = {each.name: getattr(request, each.name) for each in fields(Standing)}
    said |= {"days_left": request.days_left, "late": request.is_late, "receipt": request.number, "events": events}
    return RequestShown(**said)


def found(call: Call, id_: str, actor: Actor) -> Request:
    """Return a request that this caller may see."""
    request: Request = call.app.state.service.requests.find(id_, actor.sees)
    return request


# Requests


@router.post("/v1/requests", status_code=201)
def submit(call: Call, answer: Response, said: Submission, actor: Asker, key: Key = None) -> RequestShown:
    """Ask to forget a person or records. The same idempotency key and body give the same request again."""
    return take(call, answer, asked_of(call.app.state.service, said), actor, key)


@router.post("/v1/additions", status_code=201)
def add(call: Call, answer: Response, said: Addition, actor: Operator, key: Key = None) -> RequestShown:
    """Ask to learn more records, which enter the heads at once.

    Add them to the source, too: until then what reads it again (trainings, audits, replays) fails (`other-records`).
    """
    return take(call, answer, change_of(call.app.state.service, ADD, said), actor, key)


@router.post("/v1/corrections", status_code=201)
def rectify(call: Call, answer: Response, said: Correction, actor: Operator, key: Key = None) -> RequestShown:
    """Ask to correct a record: it is forgotten, and another is learned in its place.

    Correct it in the source, too: until then what reads it again (trainings, audits, replays) fails (`other-records`).
    """
    return take(call, answer, change_of(call.app.state.service, RECTIFY, said), actor, key)


def take(call: Call, answer: Response, asked: Asked, actor: Actor, idempotency: str | None) -> RequestShown:
    """Look at the model for a request, and take it."""
    request, is_new = taken(call.app.state.service, asked, actor.name, idempotency)
    answer.status_code = 201 if is_new else 200
    answer.headers["Location"] = f"/v1/requests/{request.id}"
    return shown(request)


def asked_of(service: Any, said: Submission) -> Asked:
    """Return what a submission asks for, with the day by which it is to be answered."""
    if sum(given is not None for given in (said.ids, said.subject, said.identity)) != 1:
        raise DataError("say what is to be forgotten by ids, by a subject or by an identity: one of them")
    subject = said.subject
    if said.identity is not None:
        if service.settings.resolver is None:
            raise DataError("this service has no resolver of identities: say ids or a subject")
        subject = subject_of(service.settings.resolver, [(said.identity.type, said.identity.value)])
    name = "subjects" if said.ids is None else "ids"
    named: list[Any] = [subject] if said.ids is None else said.ids
    due = said.due or service.settings.due(said.regulation, said.arrived or today())
    beside = [str(each) for each in (said.due, said.arrived and f"arrived {said.arrived}") if each]
    return Asked({name: named}, said.regulation, due, arrived=said.arrived, beside=beside)


def change_of(service: Any, kind: str, said: Addition | Correction) -> Asked:
    """Return what an addition or a correction asks for."""
    return Asked(said.model_dump(), "none", service.settings.due("none", today()), kind)


@router.get("/v1/requests")
def listed(
    call: Call, actor: Reader, state: Annotated[list[str] | None, Query()] = None, late: bool = False,
    delivered: bool | None = None, order: Literal["newest", "due"] = "newest",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str, Query(pattern=PLACE)] = "",
) -> Page:  # fmt: skip
    """List requests: those of a state, late ones, those whose answer was delivered or not; a page at a time."""
    if wrong := set(state or ()) - set(STATES):
        raise DataError(f"there is no state {min(wrong)!r:.40}: {', '.join(STATES)}")
    some = call.app.state.service.requests.listed(
        state or (), owner=actor.sees, span="late" if late else "", due_first=order == "due",
        delivered=delivered, after=after, limit=limit,
    )  # fmt: skip
    return Page(requests=[shown(each) for each in some], next=some[-1].place if len(some) == limit else None)


@router.get("/v1/requests/{id}")
def follow(call: Call, id: str, actor: Reader) -> RequestShown:
    """Return a request, and all that happened to it."""
    request = found(call, id, actor)
    return shown(request, call.app.state.service.requests.events(request.serial))


@router.get("/v1/requests/{id}/plan")
def plan(call: Call, id: str, actor: Asker) -> dict[str, Any]:
    """Plan a request anew: what it would come to now, under each policy where it is for core records."""
    service, request = call.app.state.service, found(call, id, actor)
    body = service.requests.body(request)
    plan = plan_of(service.current.snapshot.model, request.kind, body, request.policy or REFUSE)
    return waiting(plan, plan.alternatives)


@router.post("/v1/requests/{id}/approve")
def approve(call: Call, id: str, said: Decision, actor: Operator) -> RequestShown:
    """Decide that a request for core records is carried out, under this policy."""
    request = found(call, id, actor)
    reason = f"approved: {said.policy}" + (f", {said.reason}" if said.reason else "")
    return shown(call.app.state.service.requests.decide(request, PLANNED, actor.name, reason, policy=said.policy))


@router.post("/v1/requests/{id}/refuse")
def refuse(call: Call, id: str, said: Refusal, actor: Operator) -> RequestShown:
    """Decide that a request is not carried out."""
    return shown(call.app.state.service.requests.decide(found(call, id, actor), REFUSED, actor.name, said.reason))


@router.post("/v1/requests/{id}/retry")
def retry(call: Call, id: str, said: Why, actor: Operator) -> RequestShown:
    """Try a request again that failed, once what stopped it was repaired."""
    request = found(call, id, actor)
    if request.state != "failed":
        raise WrongState(f"request {id} is {request.state}: only one that failed is tried again")
    return shown(call.app.state.service.requests.decide(request, PLANNED, actor.name, said.reason or "tried again"))


@router.post("/v1/requests/{id}/cancel")
def cancel(call: Call, id: str, said: Why, actor: Asker) -> RequestShown:
    """Cancel a request that is not being carried out yet."""
    return shown(call.app.state.service.requests.decide(found(call, id, actor), CANCELLED, actor.name, said.reason))


@router.post("/v1/requests/{id}/jobs", status_code=202)
def ask_for_job(call: Call, id: str, said: JobAsked, actor: Operator) -> list[Job]:
    """Ask for an audit or a replay of a request. After an approximate answer an audit is asked for by itself."""
    request = found(call, id, actor)
    if request.number is None:
        raise WrongState(f"request {id} is {request.state}, and has no receipt yet")
    call.app.state.service.jobs.ask(request.serial, said.kind, actor.name)
    return jobs(call, id, actor)


@router.get("/v1/requests/{id}/jobs")
def jobs(call: Call, id: str, actor: Reader) -> list[Job]:
    """List the audits and replays of a request, how far they are, and what they found."""
    request = found(call, id, actor)
    return list(call.app.state.service.jobs.of(request))


# Answers


@router.get("/v1/requests/{id}/receipt", response_class=Response)
def receipt(call: Call, id: str, actor: Reader) -> Response:
    """Return the answer: the receipt, signed where the workspace signs, or the statement that nothing is here."""
    request = found(call, id, actor)
    if request.number is None and actor.role == AUDITOR:
        raise WrongState(f"request {id} has no receipt: its answer names somebody, and is for who asked")
    answer = call.app.state.service.requests.answer(request)
    note_fetched(call, request, actor)
    attached = {"Content-Disposition": f'attachment; filename="receipt-{request.id}.json"'}
    return Response(answer, media_type="application/json", headers=attached)


def note_fetched(call: Call, request: Request, actor: Actor) -> None:
    """Note that an answer has reached who asked, where it is they who have it now."""
    if request.fetched is None and actor.name == request.owner:
        call.app.state.service.requests.note("fetched", [request.serial], actor.name)


@router.get("/v1/requests/{id}/page", response_class=Response)
def page(call: Call, id: str, actor: Asker, form: Literal["html", "json"] = "html") -> Response:
    """Return the person's page, which checks itself in a browser. It names records: it is for this person alone."""
    from maxrr.report.dossier import dossier_page

    service, request = call.app.state.service, found(call, id, actor)
    if request.number is None:
        raise WrongState(f"request {id} is {request.state}, and has no receipt that a page could show")
    if request.kind != ERASE:
        raise WrongState(f"request {id} forgets nobody, and has no page: its receipt is the answer")
    body = service.requests.body(request)
    (subject,), ids = body.get("subjects") or [None], body.get("ids") or []
    snapshot = service.current.snapshot
    if snapshot.status.requests < request.number:
        raise WrongState(f"the receipt of request {id} is being read: try again")
    dossier = first_dossier(snapshot.workspace, request.number, subject, ids)
    note_fetched(call, request, actor)
    if form == "json":
        return Response(dossier.to_bytes(), media_type="application/json")
    attached = {"Content-Disposition": f'attachment; filename="{request.id}.html"'}
    return Response(dossier_page(dossier), media_type="text/html", headers=attached)


@router.post("/v1/requests/{id}/delivered")
def delivered(call: Call, id: str, actor: Asker) -> RequestShown:
    """Say that the answer has arrived. What names people in the request is destroyed, and cannot be asked for again."""
    return shown(call.app.state.service.requests.deliver(found(call, id, actor), actor.name))


# The model


@router.post("/v1/predictions")
def predict(call: Call, answer: Response, said: Records, _: Predictor) -> dict[str, list[str | int]]:
    """Tell the classes of records, by the model that is current; the header Maxrr-Model names its bytes."""
    snapshot = call.app.state.service.current.snapshot
    records = records_of(snapshot.model.kind_, said.records)
    answer.headers[VERSION] = snapshot.version
    return {"classes": snapshot.model.predict(records).tolist()}


@router.get("/v1/model")
def model(call: Call, answer: Response, _: Annotated[Actor, Depends(needs(OPERATOR, AUDITOR, PREDICTOR))]) -> Any:
    """Return what the model is: its version, its records by kind, its classes, and what exactness is conditional on."""
    snapshot = call.app.state.service.current.snapshot
    answer.headers[VERSION] = snapshot.version
    names = ("records", "core", "influential", "free", "classes", "requests", "forgotten", "core_left_in_extractor",
             "bytes_claim", "conditions", "model_hash", "commitment")  # fmt: skip
    return {"version": snapshot.version, **{name: getattr(snapshot.status, name) for name in names}}


@router.get("/v1/model/versions")
def model_versions(call: Call, _: Watcher) -> list[versions.Version]:
    """List the last versions of the model, the newest last: records, accuracy, and recall of each class."""
    return versions.listed(call.app.state.service.requests.database)


# Operation


@router.get("/key.pub", response_class=Response)
def public_key(call: Call) -> Response:
    """Return the public keys of whoever signs. Needs no token: people check by it what was handed to them."""
    return Response(public_keys(call.app.state.service.current.snapshot.workspace), media_type="application/x-pem-file")


@router.get("/health")
def health() -> dict[str, str]:
    """Say that the server runs. Needs no token, and tells nothing else."""
    return {"status": "alive"}


@router.get("/ready")
def ready(call: Call, answer: Response) -> dict[str, str]:
    """Say whether calls can be served: the database answers, and there is a model. Needs no token."""
    service = call.app.state.service
    try:
        service.requests.database.rows(select(1))
        service.current.snapshot  # noqa: B018 (which raises why not)
    except MaxRRError as error:
        answer.status_code = 503
        return {"status": error.code}
    return {"status": "ready"}


@router.get("/v1/status")
def status(call: Call, _: Watcher) -> dict[str, Any]:
    """Return how many requests there are by state, what is late, and what the workers do."""
    service = call.app.state.service
    workers = {
        who: {"doing": what, "code": code, "seconds_ago": round(ago)} for who, what, code, ago in service.workers()
    }
    return {"requests": service.requests.counts(), "workers": workers, "snapshot": service.current.code}


@router.get("/v1/callbacks")
def not_told(call: Call, _: Watcher) -> list[dict[str, Any]]:
    """List callbacks that did not arrive: with an end, those that are not tried any more."""
    return list(call.app.state.callbacks.failures())


@router.get("/metrics", response_class=Response)
def measured(call: Call, _: Watcher) -> Response:
    """Return what is counted, as Prometheus reads it."""
    service = call.app.state.service
    last = versions.listed(service.requests.database, 1)
    told = metrics.text(call.scope["app_watch"], service.requests.counts(), service.workers(), last)
    return Response(told, media_type="text/plain; version=0.0.4")


@router.get("/openapi.json")
def described(call: Call, _: Anybody) -> Response:
    """Return this interface as OpenAPI has it."""
    return Response(json.dumps(call.app.openapi()), media_type="application/json")
