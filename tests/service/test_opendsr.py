"""OpenDSR: what a controller sends and is told, checked with the certificate as its text says; and what is refused."""

import base64
import json
import logging
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding

from maxrr.service.opendsr import Signer
from maxrr.service.tokens import OPERATOR, REQUESTER, ROLES
from tests.service.receivers import DOMAIN, certificate, rsa_key

ID = "a7551968-d5d6-44b2-9831-815ac9017798"
PERSON = {"identity_type": "email", "identity_value": "fifty@people.example", "identity_format": "raw"}


def body(**more):
    return {
        "regulation": "gdpr", "subject_request_id": ID, "subject_request_type": "erasure",
        "submitted_time": datetime.now(UTC).isoformat(), "subject_identities": [PERSON], "api_version": "2.0", **more,
    }  # fmt: skip


@pytest.fixture
def house(start, receiver, tmp_path):
    said = {
        "url": f"https://{DOMAIN}/v2", "certificate": certificate(tmp_path / "opendsr.pem"),
        "identities": ["email:raw", "email:sha256"], "callbacks": {"requester": [receiver.host]},
    }  # fmt: skip
    return start({"opendsr": said})


def send(house, role="requester", **more):
    return house.call("POST", "/opendsr/requests", role, json=body(**more))


def check(house, headers, content):
    """Check a signature as a controller does, who has nothing but the discovery."""
    said = {name.lower(): value for name, value in headers.items()}
    where = house.client.get("/opendsr/discovery").json()["processor_certificate"]
    assert where == f"https://{DOMAIN}/v2/cert.pem"
    found = x509.load_pem_x509_certificate(house.client.get("/opendsr/cert.pem").content)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert said["x-opendsr-processor-domain"] in names.get_values_for_type(x509.DNSName)
    signature = base64.b64decode(said["x-opendsr-signature"])
    found.public_key().verify(signature, content, ec.ECDSA(hashes.SHA256()))


def test_discovery_says_what_is_supported(house):
    said = house.client.get("/opendsr/discovery").json()
    assert said["supported_subject_request_types"] == ["erasure"]
    assert said["supported_identities"][1] == {"identity_type": "email", "identity_format": "sha256"}
    assert b"PRIVATE" not in house.client.get("/opendsr/cert.pem").content


def test_an_erasure_is_accepted_at_once_and_told_step_by_step(house, receiver):
    url = f"{receiver.host}/opendsr/callbacks?from=us"
    answer = send(house, status_callback_urls=[url])
    assert answer.status_code == 201
    said = answer.json()
    assert base64.b64decode(said["encoded_request"]) == answer.request.content
    assert (said["controller_id"], said["subject_request_id"]) == ("requester", ID)
    assert said["received_time"] <= said["expected_completion_time"]
    check(house, answer.headers, answer.content)
    house.tell()
    assert receiver.calls == []  # the answer has said that it is pending
    decide(house, "retrain")
    house.work()
    house.tell()
    assert [each["request_status"] for each in receiver.said] == ["in_progress", "completed"]
    for path, headers, content in receiver.calls:
        assert path == "/opendsr/callbacks?from=us"
        check(house, headers, content)
        assert json.loads(content)["status_callback_url"] == url
        assert json.loads(content)["subject_request_id"] == ID
    last = receiver.said[-1]
    assert last["extensions"][DOMAIN]["guarantee"] == "exact-retrain"
    status = house.call("GET", f"/opendsr/requests/{ID}", "requester")
    check(house, status.headers, status.content)
    assert status.json() == {name: value for name, value in last.items() if name != "status_callback_url"}


def decide(house, policy):
    """Approve whatever waits."""
    for each in house.call("GET", "/v1/requests?state=waiting").json()["requests"]:
        house.call("POST", f"/v1/requests/{each['id']}/approve", json={"policy": policy})


def test_an_approximate_answer_is_never_called_completed(house, receiver):
    send(house, status_callback_urls=[f"{receiver.host}/c"])
    decide(house, "keep-extractor")
    house.work()
    house.tell()
    status = house.call("GET", f"/opendsr/requests/{ID}", "requester").json()
    assert status["extensions"][DOMAIN] == {
        "state": "done", "outcome": "done", "guarantee": "approximate-refit", "code": None,
    }  # fmt: skip
    assert [each["request_status"] for each in [*receiver.said, status]] == ["in_progress"] * 3
    again = "b7551968-d5d6-44b2-9831-815ac9017798"  # the same person: forgotten already, and still approximately
    house.service.current.refresh()  # which the server does by itself a moment later
    send(house, subject_request_id=again)
    house.work()
    assert house.call("GET", f"/opendsr/requests/{again}", "requester").json()["request_status"] == "pending"
    (waits,) = house.call("GET", "/v1/requests?state=waiting").json()["requests"]
    guarantees = {name: each["guarantee"] for name, each in waits["plan"]["policies"].items()}
    assert guarantees == {"keep-extractor": "approximate-refit", "retrain": "exact-retrain"}
    assert all(each["request_status"] != "completed" for each in receiver.said)
    decide(house, "retrain")
    house.work()
    status = house.call("GET", f"/opendsr/requests/{again}", "requester").json()
    assert (status["request_status"], status["extensions"][DOMAIN]["outcome"]) == ("completed", "already-done")
    assert status["extensions"][DOMAIN]["guarantee"] == "exact-retrain"


def test_who_is_not_known_is_completed_with_nothing_here(house):
    send(house, subject_identities=[{**PERSON, "identity_value": "nobody@people.example"}])
    house.work()
    said = house.call("GET", f"/opendsr/requests/{ID}", "requester").json()
    assert (said["request_status"], said["extensions"][DOMAIN]["outcome"]) == ("completed", "nothing-here")


def test_a_pending_request_is_cancelled_and_another_is_not(house, receiver):
    send(house, status_callback_urls=[f"{receiver.host}/c"])
    answer = house.call("DELETE", f"/opendsr/requests/{ID}", "requester")
    assert (answer.status_code, answer.json()["subject_request_id"]) == (202, ID)
    check(house, answer.headers, answer.content)
    house.tell()
    assert [each["request_status"] for each in receiver.said] == ["cancelled"]
    again = house.call("DELETE", f"/opendsr/requests/{ID}", "requester")
    assert (again.status_code, again.json()["error"]["errors"][0]["reason"]) == (400, "wrong-state")


def test_a_refused_request_is_told_as_cancelled_with_the_code_of_the_refusal(house, receiver):
    send(house, status_callback_urls=[f"{receiver.host}/c"])
    (waits,) = house.call("GET", "/v1/requests?state=waiting").json()["requests"]
    house.call("POST", f"/v1/requests/{waits['id']}/refuse", json={"reason": "the law obliges us"})
    house.tell()
    (said,) = receiver.said
    assert (said["request_status"], said["extensions"][DOMAIN]["state"]) == ("cancelled", "refused")


def test_the_same_request_again_is_the_same_and_another_body_is_refused(house, receiver):
    then = datetime.now(UTC).isoformat()
    assert {send(house, submitted_time=then).status_code for _ in range(2)} == {201}
    others = [{"subject_identities": [{**PERSON, "identity_value": "other"}]}, {"regulation": "ccpa"},
              {"status_callback_urls": [f"{receiver.host}/mine"]}, {"submitted_time": "2026-10-02T15:00:01Z"},
              {"api_version": "2.0.1"}]  # fmt: skip
    for other in others:
        answer = send(house, **{"submitted_time": then, **other})
        assert (answer.status_code, answer.json()["error"]["errors"][0]["reason"]) == (400, "key-reused")
    assert len(house.call("GET", "/v1/requests").json()["requests"]) == 1


def test_a_key_of_another_interface_is_another_key(house):
    one = house.submit(subject=1, headers={"Idempotency-Key": f"opendsr:{ID}"})
    assert send(house).json()["subject_request_id"] == ID
    assert {each["id"] for each in house.call("GET", "/v1/requests").json()["requests"]} > {one["id"]}


def test_a_controller_sees_and_cancels_no_request_of_another(house):
    send(house, "operator")
    for method in ("GET", "DELETE"):
        answer = house.call(method, f"/opendsr/requests/{ID}", "requester")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, 404)
    assert send(house).json()["controller_id"] == "requester"  # the same id is free for this one


def test_the_due_day_counts_from_the_day_on_which_the_person_asked(house):
    send(house, regulation="ccpa", submitted_time="2026-10-02T15:00:00Z")
    (only,) = house.call("GET", "/v1/requests").json()["requests"]
    assert (only["due"], only["regulation"]) == ("2026-11-16", "ccpa")
    oldest = {"submitted_time": "0001-01-01T00:00:00+23:59", "subject_request_id": ID.replace("a", "b")}
    assert send(house, **oldest).status_code == 201


WRONG = [
        {"regulation": "lgpd"}, {"subject_request_type": "access"}, {"subject_request_id": ID.upper()},
        {"subject_request_id": "a7551968-d5d6-14b2-9831-815ac9017798"}, {"subject_identities": []},
        {"subject_identities": [{**PERSON, "identity_format": "md5"}]}, {"submitted_time": "2026-10-02"},
        {"subject_identities": [PERSON, {**PERSON, "identity_value": "other"}]},
        {"submitted_time": "2046-10-02T15:00:00Z"}, {"api_version": "1.0"}, {"subject_request_id": None},
]  # fmt: skip


def test_what_the_text_does_not_allow_is_refused_without_repeating_it(house):
    for wrong in WRONG:
        refused(house, wrong)
    assert house.call("GET", "/v1/requests").json()["requests"] == []


def refused(house, wrong):
    answer = send(house, **wrong)
    assert answer.status_code == 400
    said = answer.json()["error"]
    assert said["code"] == 400
    assert said["errors"][0]["reason"] in ("wrong-value", "data")
    assert "people.example" not in answer.text
    check(house, answer.headers, answer.content)


def test_a_body_that_is_no_request_or_too_large_is_refused(house):
    for content in (b"", b"{", b"[]", b"\xff", b'{"a":' * 5000):
        assert house.call("POST", "/opendsr/requests", "requester", content=content).status_code == 400
    big = b" " * (house.service.settings.body + 1)
    answer = house.call("POST", "/opendsr/requests", "requester", content=big)
    assert answer.status_code == 413
    parts = house.call("POST", "/opendsr/requests", "requester", content=iter([big[: 1 << 19]] * 3))
    assert (parts.status_code, parts.json()["error"]["code"]) == (413, 413)


ADDRESSES = [
        "http://169.254.169.254/latest", "https://controller.example/x", "{host}", "{host}.evil.example/x",
        "{host}@evil.example/x", "{host}#@evil.example/", "{host}/a\r\nHost: evil", "{host}/a b", "{host}/\\evil",
        "//127.0.0.1/x", "file:///etc/passwd", "HTTP{host}/x", "{host}/é", "{host}0/x", "{host}/" + "a" * 500,
]  # fmt: skip


def test_an_address_that_the_operator_does_not_allow_is_never_called(house, receiver):
    for url in ADDRESSES:
        answer = send(house, status_callback_urls=[url.replace("{host}", receiver.host)])
        said = answer.status_code, answer.json()["error"]["errors"][0]["reason"]
        assert said == (400, "host-not-allowed"), url
    other = send(house, "operator", status_callback_urls=[f"{receiver.host}/c"])  # the host of another controller
    assert other.json()["error"]["errors"][0]["reason"] == "host-not-allowed"
    house.tell()
    assert receiver.calls == []


def test_path_tricks_find_nothing(house):
    send(house)
    for id_ in ("..", "%2e%2e%2fv1%2frequests", f"{ID}%00", f"{ID}'--", "x" * 5000, ID.upper(), f"opendsr:{ID}"):
        for method in ("GET", "DELETE"):
            assert house.call(method, f"/opendsr/requests/{id_}", "requester").status_code in (404, 405)


@pytest.mark.parametrize("role", [*ROLES, None])
def test_what_each_role_may_do(house, role):
    routes = [("POST", "/opendsr/requests"), ("GET", f"/opendsr/requests/{ID}"), ("DELETE", f"/opendsr/requests/{ID}")]
    for method, path in routes:
        options = {"json": body()} if method == "POST" else {}
        answer = house.call(method, path, role, **options)
        assert ("x-opendsr-signature" in answer.headers) == (role is not None)
        if role in (OPERATOR, REQUESTER):
            assert answer.status_code in (200, 201, 202)
        else:
            assert answer.status_code == (401 if role is None else 403)
            assert answer.json()["error"]["errors"][0]["reason"] == ("no-token" if role is None else "not-allowed")


def test_forged_callbacks_do_not_verify(house, receiver, tmp_path):
    send(house, status_callback_urls=[f"{receiver.host}/c"])
    house.call("DELETE", f"/opendsr/requests/{ID}", "requester")
    house.tell()
    ((_, headers, content),) = receiver.calls
    forged = content.replace(b"cancelled", b"completed")
    with pytest.raises(InvalidSignature):
        check(house, headers, forged)
    other = Signer(certificate(tmp_path / "other.pem"), DOMAIN)
    with pytest.raises(InvalidSignature):
        check(house, other.headers(content), content)


def test_an_rsa_key_signs_as_well_and_a_certificate_for_another_name_is_refused(tmp_path):
    key = rsa_key()
    headers = Signer(certificate(tmp_path / "rsa.pem", key), DOMAIN).headers(b"said")
    signature = base64.b64decode(headers["X-OpenDSR-Signature"])
    key.public_key().verify(signature, b"said", padding.PKCS1v15(), hashes.SHA256())
    with pytest.raises(ValueError, match="for the name"):
        Signer(certificate(tmp_path / "other.pem", name="other.example"), DOMAIN)


def test_logs_name_no_person_no_address_and_no_token(house, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    send(house, status_callback_urls=[f"{receiver.host}/secret-path"])
    decide(house, "retrain")
    house.work()
    receiver.statuses = [500]
    house.tell()
    said = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("maxrr"))
    for each in ("people.example", "secret-path", "maxrr_", ID):
        assert each not in said
