"""Callers who send what never ends, or nothing: a server on a socket, which anybody may write to."""

import socket
import threading
import time
from contextlib import suppress

import pytest
import uvicorn

from maxrr.service import app, connection

HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def served(settings):
    """The port of a server."""
    config = uvicorn.Config(
        app(settings), port=0, log_config=None, http=connection.Connection, ws="none", timeout_keep_alive=3600
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def told(port, *parts, most=1000):
    """Send parts, the last one again and again, and return what was answered when the server has closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as caller, suppress(ConnectionError):
        answer = b""
        for part in parts:
            caller.sendall(part)
        with suppress(ConnectionError):
            for _ in range(most if parts else 0):
                caller.sendall(parts[-1])
        while part := caller.recv(1 << 16):
            answer += part
    return answer


@pytest.mark.parametrize("path", [b"/v1/requests", b"/sign-in", b"/health", b"/nowhere"])
def test_chunks_without_end_are_no_longer_read_when_there_is_an_answer(served, path):
    with socket.create_connection(("127.0.0.1", served), timeout=20) as caller:
        caller.sendall(CHUNKED % path)
        with suppress(ConnectionError):
            for _ in range(1000):
                caller.sendall(b"1\r\na\r\n" * 10_000)
            pytest.fail("60 MB were read")


@pytest.mark.parametrize("path", [b"/v1/requests", b"/health"])
def test_an_answer_before_the_end_of_chunks_says_that_the_connection_ends(served, path):
    answer = told(served, CHUNKED % path + b"1\r\na\r\n", most=0)
    assert b"\r\nconnection: close\r\n" in answer


def test_who_has_shown_no_token_sends_little(house):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert house.client.post("/sign-in", content=b"token=" + b"%41" * 7000, headers=form).status_code == 413
    assert house.call("POST", "/v1/requests", json={"subject": 1, "regulation": "a" * 20_000}).status_code == 422


@pytest.mark.parametrize(
    "parts",
    [
        (b"GET /health HTTP/1.1\r\n", b"A: " + b"a" * 1000 + b"\r\n"),
        (b"GET /health HTTP/1.1\r\nA: ", b"a" * 1000),
        (b"GET /", b"a" * 1000),
        (b"\r\n" * 1000,),
        (CHUNKED % b"/sign-in", b"1;", b"a" * 1000),
        (CHUNKED % b"/sign-in", b"0\r\nA: ", b"a" * 1000),
    ],
    ids=["headers", "header", "path", "lines", "extension", "trailer"],
)
def test_what_is_no_body_has_an_end(served, parts):
    answer = told(served, *parts)
    assert answer[:12] in (b"HTTP/1.1 400", b"")  # the answer may be lost where the caller goes on


def test_headers_that_are_many_or_large_are_refused_in_one_piece_too(served):
    for many in (b"A:b\r\n" * 300, b"A: " + b"a" * 70_000 + b"\r\n"):
        answer = told(served, b"GET /health HTTP/1.1\r\nHost: x\r\n" + many + b"\r\n", most=0)
        assert answer[:12] in (b"HTTP/1.1 400", b"")


@pytest.mark.parametrize(
    "part",
    [
        b"", b"GET /health HTTP/1.1\r\nHost: ", HEAD % b"/sign-in" + b"Content-Length: 9\r\n\r\ntoken",
        CHUNKED % b"/sign-in" + b"1\r\na\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" + HEAD % b"/sign-in" + b"Content-Length: 9\r\n\r\ntoken",
    ],
    ids=["nothing", "head", "body", "chunks", "body of the second"],
)  # fmt: skip
def test_who_says_nothing_more_is_not_waited_for(served, part, monkeypatch):
    monkeypatch.setattr(connection, "SECONDS", 1)
    told(served, part, most=0)


@pytest.mark.parametrize("chunk", [b"zz\r\n", b"1\r\nab\r\n", b"-1\r\n"])
def test_chunks_that_are_none_are_no_faults(served, caplog, chunk):
    assert told(served, CHUNKED % b"/sign-in" + chunk, most=0)[:12] == b"HTTP/1.1 400"
    assert [each.levelname for each in caplog.records if each.levelname == "ERROR"] == []


def test_two_lengths_of_one_body_are_refused(served):
    both = HEAD % b"/v1/requests" + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert told(served, both, most=0)[:12] == b"HTTP/1.1 400"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"foo"])
def test_a_body_is_never_read_as_a_call(served, protocol):
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + protocol + b"\r\n"
    hidden = b"GET /key.pub HTTP/1.1\r\nHost: x\r\n\r\n"
    with_body = HEAD % b"/sign-in" + offer + b"Content-Length: %d\r\n\r\n" % len(hidden)
    answer = told(served, with_body, hidden, most=0)
    assert (answer.count(b"HTTP/1.1"), answer[:12]) == (1, b"HTTP/1.1 400")
    without = b"GET /health HTTP/1.1\r\nHost: x\r\n" + offer + b"\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served), timeout=20) as caller:  # as clients that would rather have h2c
        for call in (without, last):
            caller.sendall(call)
            answer = b""
            while not answer.endswith(b"}"):
                answer += caller.recv(1 << 16)
            assert answer[:12] == b"HTTP/1.1 200"


def test_a_token_after_the_body_is_none(house, served):
    token = f"Bearer {house.tokens['requester']}".encode()
    body = HEAD.replace(b"x-www-form-urlencoded", b"json") % b"/v1/requests" + b"Transfer-Encoding: chunked\r\n\r\n"
    late = body + b"2\r\n{}\r\n0\r\nAuthorization: " + token + b"\r\n\r\n"
    assert told(served, late.replace(b"Host: x", b"Host: x\r\nConnection: close"), most=0)[:12] == b"HTTP/1.1 401"


def test_several_calls_take_one_connection(served):
    one = b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert told(served, one, one + last, most=0).count(b"HTTP/1.1 401") == 2


def test_an_empty_line_keeps_no_connection(served, monkeypatch):
    with socket.create_connection(("127.0.0.1", served), timeout=20) as caller:
        caller.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while b"alive" not in answer:  # the head may come first
            answer += caller.recv(1000)
        monkeypatch.setattr(connection, "SECONDS", 1)
        caller.sendall(b"\r\n")
        with suppress(ConnectionError):
            assert caller.recv(1000) == b""


def test_who_reads_no_answer_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr(connection, "SECONDS", 1)
    with socket.create_connection(("127.0.0.1", served), timeout=120) as caller, pytest.raises(ConnectionError):
        caller.sendall(b"GET /static/pages.css HTTP/1.1\r\nHost: x\r\n\r\n" * 1_000_000)
