"""What a web attacker tries, and what a log must not hold."""

import json
import logging
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from maxrr.errors import TooMany
from maxrr.service import app
from maxrr.service.guard import Limits
from maxrr.service.tokens import Actor


def test_a_body_that_is_too_large_is_refused_however_its_size_is_said(house):
    large = b'{"subject": "' + b"a" * (1 << 20) + b'"}'
    json = {"Content-Type": "application/json"}
    assert house.call("POST", "/v1/requests", content=large, headers=json).json()["code"] == "too-large"
    in_parts = house.call("POST", "/v1/requests", content=iter([large[:9], large[9:]]), headers=json)
    assert (in_parts.status_code, in_parts.json()["code"]) == (413, "too-large")


@pytest.mark.parametrize("path", ["/sign-in", "/v1/requests"])
def test_a_call_that_breaks_off_is_no_fault(house, caplog, path):
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "client": ("127.0.0.1", 1),
        "headers": [
            (b"authorization", f"Bearer {house.tokens['requester']}".encode()),
            (b"content-type", b"application/x-www-form-urlencoded" if path == "/sign-in" else b"application/json"),
        ],
        "server": ("x", 80),
    }  # fmt: skip
    answer = []

    async def send(message):
        answer.append(message)

    async def receive():
        return {"type": "http.disconnect"}

    house.client.portal.call(house.client.app, scope, receive, send)
    assert answer[0]["status"] == 400
    assert "fault" not in caplog.text


@pytest.mark.parametrize("token", ["predictor", None])
def test_who_may_not_call_is_told_before_a_body_is_read(house, token):
    """The body is not JSON, and never ends."""
    known = [] if token is None else [(b"authorization", f"Bearer {house.tokens[token]}".encode())]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/v1/requests", "raw_path": b"/v1/requests", "query_string": b"", "root_path": "",
        "headers": [*known, (b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("x", 80),
    }  # fmt: skip
    answer, read = [], []

    async def send(message):
        answer.append(message)

    async def receive():
        read.append(1)
        return {"type": "http.request", "body": b"{", "more_body": True}

    house.client.portal.call(house.client.app, scope, receive, send)
    assert (answer[0]["status"], read) == (401 if token is None else 403, [])


@pytest.mark.parametrize(("scheme", "said"), [("https", "max-age=31536000"), ("http", None)])
def test_browsers_are_told_to_come_by_tls_where_they_did(house, scheme, said):
    for path in ("/health", "/sign-in", "/nowhere", "/v1/requests"):
        answer = house.client.get(f"{scheme}://testserver{path}")
        assert answer.headers.get("strict-transport-security") == said


def test_an_idempotency_key_is_not_in_the_database(house):
    key = "anna@people.example"
    house.submit(ids=house.ids("free")[:1], headers={"Idempotency-Key": key})
    files = [*house.service.settings.folder.iterdir()]
    assert len(files) > 1
    assert not any(key.encode() in file.read_bytes() for file in files)


@pytest.mark.parametrize(
    "path", ["/v1/requests/..%2f..%2fetc%2fpasswd", "/v1/requests/%00", "/v1/requests/' OR 1=1 --", "/v1//requests",
             "/v1/requests/" + "a" * 5000, "/static/../../secrets.json"],
)  # fmt: skip
def test_tricks_with_paths_lead_nowhere(house, path):
    assert house.call("GET", path).json()["code"] in ("unknown-request", "no-such-path")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"ids": [1e400]}',
        b"\xff\xfe",
        b'{"subject": "\\ud800"}',
        b'{"subject": 1, "subject": 2}',
        b'{"identity": {"type": "a", "value": "b", "value": "c"}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_json_of_ours_is_refused(house, content):
    answer = house.call("POST", "/v1/requests", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "records", [[], [[1, 2]], [["a"] * 5], [[None] * 5], [[[1.0] * 5]], [1, 2, 3, 4, 5], [{}], [[1e999] * 5]]
)
def test_what_are_no_records_of_the_model_is_refused(house, records):
    content = json.dumps({"records": records}).encode()
    answer = house.call("POST", "/v1/predictions", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text


def test_predictions_are_those_of_the_model_that_the_header_names(house):
    snapshot = house.service.current.snapshot
    records = [[0.5, -1.0, 0.0, 2.0, 1.0], [3.0, 1.0, -2.0, 0.0, 0.0]]
    answer = house.call("POST", "/v1/predictions", "predictor", json={"records": records})
    assert answer.json()["classes"] == snapshot.model.predict(records).tolist()
    assert answer.headers["maxrr-model"] == snapshot.model.model_hash_[:16]


def test_the_model_is_replaced_when_the_workspace_has_gone_on(house):
    before = house.service.current.snapshot
    version = before.version
    house.submit(ids=house.ids("influential")[:1])
    house.work()
    house.service.current.refresh()
    assert house.service.current.snapshot.version != version
    assert before.version == version  # whoever has the former one keeps it


def test_a_token_makes_so_many_calls_and_no_more(settings):
    made = app(replace(settings, rate=5.0))
    with TestClient(made) as client:
        token = made.state.service.tokens.make("me", "operator")
        codes = [
            client.get("/v1/requests", headers={"Authorization": f"Bearer {token}"}).status_code for _ in range(15)
        ]
    assert codes[:10] == [200] * 10
    assert 429 in codes


def test_a_limit_is_of_each_caller_alone():
    limits, one = Limits(1.0), Actor("one", "operator")
    for _ in range(2):
        limits.take(one)
    with pytest.raises(TooMany):
        limits.take(one)
    limits.take(Actor("another", "operator"))


def test_logs_hold_no_token_and_no_record_id(house, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    for caller in ("httpx", "httpx2"):
        caplog.set_level(logging.WARNING, caller)
    id_ = house.ids("free")[0]
    house.submit(ids=[id_])
    house.submit(ids=[id_, "of another kind"][:1], subject=None)
    house.call("POST", "/v1/requests", json={"ids": [id_, 987654321]})
    house.call("GET", f"/v1/requests?{id_}")
    house.call("GET", f"/v1/requests/{id_}")

    def fails(*_, **__):
        raise RuntimeError(f"fault about {id_}")

    monkeypatch.setattr(house.service.requests, "counts", fails)
    answer = house.call("GET", "/v1/status")
    assert (answer.status_code, answer.json()["code"]) == (500, "fault")
    monkeypatch.setattr("maxrr.service.worker.look", fails)
    house.work()
    told = caplog.text + answer.text
    assert "fault: RuntimeError" in told
    assert [secret for secret in (str(id_), "987654321", *house.tokens.values()) if secret in told] == []


def test_methods_that_nobody_knows_are_counted_as_one(house):
    for number in range(20):
        house.call(f"MADE{chr(65 + number)}", "/health")
    told = house.call("GET", "/metrics").text
    assert "MADE" not in told
    assert 'method="OTHER"' in told
