"""Whoever is told is told at least once, in order, whatever ends in between; and webhooks are what they say."""

import base64
import json
import re
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from maxrr.service import app, callbacks, tables
from maxrr.service.protocols import Protocols
from maxrr.service.webhooks import signed
from tests.service.receivers import Receiver, certificate

SECRET = bytes(range(32))


@pytest.fixture
def hook(receiver, tmp_path):
    """What the operator says of a webhook at the receiver."""
    path = tmp_path / "secret"
    path.write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")
    return {"url": f"{receiver.host}/events", "secret": path}


@pytest.fixture
def house(start, hook):
    return start({"webhooks": [hook]})


def is_signed(headers, body, minutes=5.0):
    """Check a message by the function that the docs give to receivers."""
    said = {name.lower(): value for name, value in headers.items()}
    page = (Path(__file__).parents[2] / "docs" / "specifications" / "protocols.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(code, names)
    return names["is_genuine"](said, body, f"whsec_{base64.b64encode(SECRET).decode()}", minutes)


def types(receiver):
    return [each["type"].removeprefix("maxrr.request.") for each in receiver.said]


def test_each_step_is_an_event_of_cloudevents(house, receiver):
    asked = house.submit(ids=house.ids("free")[:1])
    house.work()
    house.tell()
    assert types(receiver) == ["received", "planned", "executing", "done"]
    events = receiver.said
    assert len({each["id"] for each in events}) == 4
    for (_, headers, body), each in zip(receiver.calls, events, strict=True):
        assert {each["specversion"], each["subject"]} == {"1.0", asked["id"]}
        assert headers["Content-Type"] == "application/cloudevents+json"
        assert is_signed(headers, body)
        digits = "".join(filter(str.isdigit, each["time"]))  # the number alone may come again in a restored database
        assert headers["webhook-id"] == each["id"]
        assert each["id"].endswith(f"-{digits}")
    assert events[-1]["data"] == {
        "state": "done", "kind": "erase", "regulation": "gdpr", "due": asked["due"], "outcome": "done", "code": None,
        "guarantee": "exact-untouched", "receipt": 1,
    }  # fmt: skip
    assert "guarantee" not in events[2]["data"]
    assert house.follow(asked["id"])["fetched"] is None  # which has no answer in it


def test_forged_and_replayed_messages_are_known_as_such(house, receiver):
    house.submit(ids=house.ids("free")[:1])
    house.tell()
    _, headers, body = receiver.calls[0]
    assert is_signed(headers, body)
    assert not is_signed(headers, body.replace(b"received", b"done"))
    old = signed("1", body, SECRET, now=time.time() - 600)
    assert is_signed(old, body, minutes=11.0)
    assert not is_signed(old, body)
    assert not is_signed({**headers, "webhook-timestamp": str(int(time.time()) + 1)}, body)
    assert not is_signed({**headers, **signed("1", body, b"another" * 4)}, body)


def test_an_approximate_end_has_a_type_of_its_own(house, receiver):
    asked = house.submit(ids=house.ids("core")[:1])
    house.call("POST", f"/v1/requests/{asked['id']}/approve", json={"policy": "keep-extractor"})
    house.work()
    house.tell()
    assert types(receiver)[-2:] == ["executing", "done-approximately"]


def test_what_does_not_arrive_is_tried_again_in_order_and_shown(house, receiver, monkeypatch):
    monkeypatch.setattr(callbacks, "FIRST", 3600.0)
    house.submit(ids=house.ids("free")[:1])
    receiver.statuses = [503]
    assert house.callbacks.turn() == 1
    assert house.callbacks.turn() == 0  # the next waits for the first, which waits
    (failure,) = house.call("GET", "/v1/callbacks").json()
    assert (failure["code"], failure["tries"], failure["ended"]) == ("http-503", 1, None)
    assert house.call("GET", "/v1/callbacks", "requester").status_code == 403
    with house.service.requests.database.write() as connection:
        connection.execute(update(tables.deliveries).values(due=0.0))
    house.tell()
    assert types(receiver) == ["received", "received", "planned"]
    assert house.call("GET", "/v1/callbacks").json() == []


def test_a_redirection_is_not_followed(house, receiver, monkeypatch):
    monkeypatch.setattr(callbacks, "FIRST", 3600.0)
    house.submit(ids=house.ids("free")[:1])
    receiver.statuses = [307]
    house.callbacks.turn()
    assert [path for path, _, _ in receiver.calls] == ["/events"]
    assert house.callbacks.failures()[0]["code"] == "http-307"


def test_a_receiver_is_told_by_tls_alone_if_its_certificate_is_of_its_name(tmp_path, monkeypatch):
    for name, code in (("localhost", ""), ("other.example", "SSLCertVerificationError")):
        pem = certificate(tmp_path / f"{name}.pem", name=name)
        receiver = Receiver(pem)
        message = callbacks.Message({"Content-Type": "text/plain"}, b"told")
        assert callbacks.send(receiver.host, f"{receiver.host}/x", message) == "SSLCertVerificationError"
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        assert callbacks.send(receiver.host, f"{receiver.host}/x", message) == code
        assert [body for _, _, body in receiver.calls] == [b"told"] * (not code)
        monkeypatch.delenv("SSL_CERT_FILE")
        receiver.close()


def test_it_is_given_up_after_the_last_try(house, receiver, monkeypatch):
    monkeypatch.setattr(callbacks, "MOST", 3)
    house.submit(ids=house.ids("free")[:1])
    receiver.statuses = [500] * 3
    house.tell()
    assert types(receiver) == ["received"] * 3 + ["planned"]
    (failure,) = house.callbacks.failures()
    assert failure["ended"]


def test_the_pause_doubles_up_to_six_hours(monkeypatch):
    monkeypatch.setattr(callbacks.time, "time", lambda: 1e9)
    step = callbacks.Step(None, 1, 0, "webhook", "", None, 1, "done", "", "")
    pauses = [callbacks.ending(replace(step, tries=tries), "http-500") for tries in range(callbacks.MOST)]
    seconds = [round(each["due"] - 1e9) for each in pauses]
    assert (seconds[:4], seconds[-1]) == ([5, 10, 20, 40], 21600)
    assert [bool(each["ended"]) for each in pauses] == [False] * (callbacks.MOST - 1) + [True]
    assert sum(seconds[:-1]) > 3 * 86400


def test_whoever_is_killed_while_sending_is_taken_over(house, receiver, monkeypatch):
    house.submit(ids=house.ids("free")[:1])
    with monkeypatch.context() as killed:
        killed.setattr(callbacks.Callbacks, "_write", lambda *_: None)
        house.callbacks.turn()
    assert house.callbacks.turn() == 0  # it belongs to whoever took it, for a while
    with house.service.requests.database.write() as connection:
        connection.execute(update(tables.deliveries).values(due=0.0))
    house.tell()
    assert types(receiver) == ["received", "received", "planned"]  # at least once


def test_a_receiver_that_is_away_keeps_nobody_else_waiting(start, hook, receiver, tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "FIRST", 3600.0)
    away = {"url": "http://127.0.0.1:1/events", "secret": hook["secret"]}
    house = start({"webhooks": [away, hook]})
    for id_ in house.ids("free")[:2]:
        house.submit(ids=[id_])
    house.tell()
    assert types(receiver).count("planned") == 2
    assert {each["code"] for each in house.callbacks.failures()} == {"ConnectionRefusedError"}


def test_a_host_that_is_not_allowed_any_more_is_not_called(house, receiver):
    house.submit(ids=house.ids("free")[:1])
    house.callbacks.hosts = {}
    house.tell()
    assert receiver.calls == []
    assert {each["code"] for each in house.callbacks.failures()} == {"host-not-allowed"}


def test_a_webhook_that_was_removed_is_told_nothing_more(house, settings, receiver):
    house.submit(ids=house.ids("free")[:1])
    app(replace(settings, protocols=None)).state.service.close()
    house.submit(ids=house.ids("free")[1:2])
    house.tell()
    assert receiver.calls == []
    with house.service.requests.database.write() as connection:
        assert connection.execute(select(tables.deliveries.c.serial)).all() == []


WRONG = [
    "[opendsr]\n", "[fides]\nhost = 'http://fides.example'\n", "[fides]\nhost = 'https://fides.example/'\n",
    "[fides]\nhost = 'https://me@fides.example'\n", "[fides]\nhost = 'https://fides.example'\nmore = 1\n",
    "[[webhooks]]\nurl = 'https://hooks.example'\nsecret = 's'\n",
    "[[webhooks]]\nurl = 'ftp://a/b'\nsecret = 's'\nmore = 'whsec_hidden'\n",
    "what", "[more]\n",
]  # fmt: skip


def test_a_file_that_says_something_else_is_refused(tmp_path):
    path = tmp_path / "protocols.toml"
    for wrong in WRONG:
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r"protocols\.toml") as refused:
            Protocols.read(path)
        assert "whsec_hidden" not in str(refused.value)


def test_a_secret_that_is_short_and_no_resolver_are_refused(settings, hook):
    hook["secret"].write_text("whsec_c2hvcnQ=")
    with pytest.raises(ValueError, match="random bytes"):
        app(replace(settings, protocols=Protocols.model_validate({"webhooks": [hook]})))
    with pytest.raises(ValueError, match="resolver"):
        app(replace(settings, protocols=Protocols.model_validate({"fides": {"host": "https://fides.example"}})))


def test_nothing_that_is_told_names_a_record_or_a_person(house, receiver):
    asked = house.submit(subject=50)
    house.call("POST", f"/v1/requests/{asked['id']}/approve", json={"policy": "retrain"})
    house.work()
    house.tell()
    for each in receiver.said:
        assert {*each["data"]} <= {"state", "kind", "regulation", "due", "outcome", "code", "guarantee", "receipt"}
        assert 50 not in json.loads(json.dumps(each["data"])).values()


def test_an_answer_that_comes_byte_by_byte_is_cut_off(monkeypatch):
    monkeypatch.setattr(callbacks, "AT_MOST", 0.5)
    ended = threading.Event()

    def drip(server):
        caller, _ = server.accept()
        with caller, suppress(OSError):
            while not ended.wait(0.02):
                caller.sendall(b"H")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, args=[server], daemon=True).start()
        host = f"http://127.0.0.1:{server.getsockname()[1]}"
        begun = time.monotonic()
        code = callbacks.send(host, f"{host}/x", callbacks.Message({}, b"told"))
        ended.set()
    assert code
    assert time.monotonic() - begun < 5.0
