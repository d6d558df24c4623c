"""OpenDSR 2.0: this service as a processor, to which controllers send the erasure requests of people.

The text does not know answers that hold with a rest. `approximate-refit` stays "in_progress" here, for the extractor
still has what it learned; the extension of each answer says what was done.
"""

import base64
import json
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from fastapi import APIRouter, Depends, Response
from fastapi import Request as Call
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, BaseModel, Field

from maxrr.errors import DataError
from maxrr.service import problems, protocols
from maxrr.service.callbacks import Message, Step
from maxrr.service.guard import Guarded
from maxrr.service.planning import take
from maxrr.service.requests import Callback, Request
from maxrr.service.routes import Asker, note_fetched
from maxrr.service.states import CANCELLED, DONE, EXECUTING, FAILED, PLANNED, RECEIVED, REFUSED, WAITING
from maxrr.unlearning.actions import Guarantee

VERSION = "2.0"
PENDING, IN_PROGRESS, COMPLETED, CALLED_OFF = "pending", "in_progress", "completed", "cancelled"
STATUS = {
    RECEIVED: PENDING, PLANNED: PENDING, WAITING: PENDING, EXECUTING: IN_PROGRESS, DONE: COMPLETED,
    FAILED: IN_PROGRESS, REFUSED: CALLED_OFF, CANCELLED: CALLED_OFF,
}  # fmt: skip
GUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"


async def body_of(call: Call) -> bytes:
    """Return the body of a call as it came."""
    return await call.body()


Body = Annotated[bytes, Depends(body_of)]


class Identity(BaseModel):
    """What a controller knows a person by."""

    identity_type: str = Field(max_length=64)
    identity_value: str = Field(min_length=1, max_length=500)
    identity_format: Literal["raw", "sha1", "md5", "sha256"]


class Submission(BaseModel):
    """A request of a controller."""

    regulation: Literal["gdpr", "ccpa"]
    subject_request_id: str = Field(pattern=GUID)
    subject_request_type: Literal["erasure"]
    subject_identities: list[Identity] = Field(min_length=1, max_length=20)
    submitted_time: AwareDatetime
    api_version: str = Field(VERSION, pattern=r"^2(\.\d{1,4}){0,2}$")
    status_callback_urls: list[str] = Field([], max_length=5)


class Signer:
    """Signs what this service says by OpenDSR.

    Parameters
    ----------
    path : Path
        A file with the certificate, those between it and its authority, and its key without a password, as PEM.
    domain : str
        The name that it must be for.
    """

    def __init__(self, path: Path, domain: str) -> None:
        content = path.read_bytes()
        chain = x509.load_pem_x509_certificates(content)
        key = load_pem_private_key(content, None)
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise ValueError(f"{path}: the key is to be one of RSA or of an elliptic curve, as FIPS 186-4 has them")
        names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if key.public_key() != chain[0].public_key() or domain not in names.get_values_for_type(x509.DNSName):
            raise ValueError(f"{path}: the first certificate is to be that of the key, for the name {domain}")
        self.domain = domain
        self.certificates = b"".join(each.public_bytes(Encoding.PEM) for each in chain)
        self._key = key

    def headers(self, body: bytes) -> dict[str, str]:
        """Return the headers that sign a body."""
        if isinstance(self._key, rsa.RSAPrivateKey):
            signature = self._key.sign(body, padding.PKCS1v15(), hashes.SHA256())
        else:
            signature = self._key.sign(body, ec.ECDSA(hashes.SHA256()))
        return {"X-OpenDSR-Processor-Domain": self.domain, "X-OpenDSR-Signature": base64.b64encode(signature).decode()}


class OpenDSR:
    """What OpenDSR says of requests.

    Parameters
    ----------
    said : protocols.OpenDSR
        What the operator says of it.
    """

    def __init__(self, said: protocols.OpenDSR) -> None:
        self.said = said
        self.signer = Signer(said.certificate, urlsplit(said.url).hostname or "")

    def identities(self, some: Sequence[Identity]) -> list[tuple[str, str]]:
        """Return the identities that the operator's resolver knows by their kind: plain ones by their type alone."""
        pairs = [(f"{each.identity_type}:{each.identity_format}", each.identity_value) for each in some]
        known = [(kind.removesuffix(":raw"), value) for kind, value in pairs if kind in self.said.identities]
        if not known:
            raise DataError("none of the identities is of a type and format that the discovery lists")
        return known

    def status(self, request: Request, state: str) -> dict[str, Any]:
        """Return what is said of a request in a state: its status, and in the extension what was done."""
        is_over = state == request.state
        done = {name: getattr(request, name) if is_over else None for name in ("outcome", "guarantee", "code")}
        is_rest = state == DONE and request.guarantee == Guarantee.approximate
        return {
            **about(request), "expected_completion_time": expected(request),
            "request_status": IN_PROGRESS if is_rest else STATUS[state],
            "extensions": {self.signer.domain: {"state": state, **done}},
        }  # fmt: skip

    def message(self, step: Step) -> Message | None:
        """Return what a controller is told of a step: nothing of those that leave a request as pending as it was."""
        if step.state not in STATUS or (step.before in ("", *PENDING_STATES) and step.state in PENDING_STATES):
            return None
        content = json.dumps({**self.status(step.request, step.state), "status_callback_url": step.url}).encode()
        return Message({"Content-Type": "application/json", **self.signer.headers(content)}, content)

    def router(self) -> APIRouter:
        """Return the routes."""
        said: dict[int | str, Any] = {each: {"description": "an error of OpenDSR"} for each in ("4XX", "5XX")}
        made = APIRouter(prefix="/opendsr", route_class=answering(self.signer), responses=said)

        @made.get("/discovery")
        def discovery() -> dict[str, Any]:
            """Say what this processor does. Needs no token: who checks a signature begins here."""
            pairs = [each.split(":") for each in self.said.identities]
            return {
                "api_version": VERSION, "supported_subject_request_types": ["erasure"],
                "supported_identities": [{"identity_type": kind, "identity_format": form} for kind, form in pairs],
                "processor_certificate": f"{self.said.url}/cert.pem",
            }  # fmt: skip

        @made.get("/cert.pem", response_class=Response)
        def certificate() -> Response:
            """Return the certificate that signatures are checked with. Needs no token."""
            return Response(self.signer.certificates, media_type="application/x-pem-file")

        @made.post("/requests", status_code=201)
        def submit(call: Call, actor: Asker, said: Submission, body: Body) -> dict[str, Any]:
            """Take a request of a controller. The same one again is answered again."""
            callbacks = [Callback("opendsr", url) for url in dict.fromkeys(said.status_callback_urls)]
            for each in callbacks:
                protocols.host_of(each.url, self.said.callbacks.get(actor.name, []))
            if said.submitted_time > datetime.now(UTC) + timedelta(days=1):
                raise DataError("submitted_time lies in the future")
            request = take(
                call.app.state.service, self.identities(said.subject_identities), actor.name,
                f"opendsr:{said.subject_request_id}", callbacks, asked_on=said.submitted_time.date(),
                regulation=said.regulation, reference=said.subject_request_id,
                beside=(said.submitted_time.isoformat(), said.api_version),
            )  # fmt: skip
            return {
                **about(request), "expected_completion_time": expected(request), "received_time": request.received,
                "encoded_request": base64.b64encode(body).decode(),
            }  # fmt: skip

        @made.get("/requests/{id}")
        def follow(call: Call, id: str, actor: Asker) -> dict[str, Any]:
            """Return the status of a request."""
            request: Request = call.app.state.service.requests.find(id, actor.name, by="reference")
            if request.state == DONE:
                note_fetched(call, request, actor)
            return self.status(request, request.state)

        @made.delete("/requests/{id}", status_code=202)
        def cancel(call: Call, id: str, actor: Asker) -> dict[str, Any]:
            """Cancel a request that is pending."""
            request: Request = call.app.state.service.requests.find(id, actor.name, by="reference")
            call.app.state.service.requests.decide(request, CANCELLED, actor.name, "cancelled by OpenDSR")
            return {**about(request), "received_time": datetime.now(UTC).isoformat()}

        return made


PENDING_STATES = tuple(state for state, status in STATUS.items() if status == PENDING)


def about(request: Request) -> dict[str, Any]:
    """Return what each answer says of the request that it is about."""
    return {"controller_id": request.owner, "subject_request_id": request.reference, "api_version": VERSION}


def expected(request: Request) -> str:
    """Return when a request is likely to be done: as its plan says, or by the day on which it is due."""
    if request.ended and request.state != FAILED and request.guarantee != Guarantee.approximate:
        return request.ended
    then = datetime.fromisoformat(f"{request.due}T23:59:59+00:00")
    if request.state in (PLANNED, EXECUTING) and request.plan:
        then = datetime.fromisoformat(request.received) + timedelta(seconds=request.plan["seconds"] or 0.0)
    return max(then, datetime.now(UTC)).isoformat()


def answering(signer: Signer) -> type[Guarded]:
    """Make the class of the routes: it signs answers to controllers, and gives errors the form of OpenDSR."""

    class Answering(Guarded):
        def get_route_handler(self) -> Callable[[Call], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handled(call: Call) -> Response:
                try:
                    answer = await handle(call)
                except problems.ANSWERED as error:
                    answer = of_problem(await problems.answer_with(call, error))
                if "caller" in call.scope:  # who has no token lets nobody sign
                    answer.headers.update(signer.headers(bytes(answer.body)))
                return answer

            return handled

    return Answering


def of_problem(problem: JSONResponse) -> JSONResponse:
    """Return an error in the form of OpenDSR: with status 400 wherever the call itself is what has to change."""
    said = json.loads(bytes(problem.body))
    status = 400 if said["status"] in (409, 410, 422) else said["status"]
    wrong = [f"{each['at']}: {each['what']}" for each in said.get("wrong", [])] or [said["detail"]]
    errors = [{"domain": "maxrr", "reason": said["code"], "message": each} for each in wrong]
    headers = {name: value for name, value in problem.headers.items() if name in ("www-authenticate", "retry-after")}
    return JSONResponse({"error": {"code": status, "message": said["detail"], "errors": errors}}, status, headers)
