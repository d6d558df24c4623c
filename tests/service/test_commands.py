"""`maxrr serve` and `maxrr token`, as a person at a shell uses them."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import warnings
from contextlib import suppress

import pytest

from tests.cli.shell import Shell
from tests.service.postgres import free_port, wait_until
from tests.service.receivers import DOMAIN, certificate


def called(port, path, token=""):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except OSError:
        return 0, {}
    finally:
        connection.close()


def test_tokens_are_made_listed_and_revoked(folder):
    shell = Shell()
    token = shell("token", "new", folder, "shop", "--role", "requester").out.strip()
    (row,) = shell("token", "list", folder, "--json").json
    assert (row["name"], row["role"], row["revoked"]) == ("shop", "requester", None)
    database = b"".join(path.read_bytes() for path in folder.with_name("ws.service").glob("requests.sqlite*"))
    assert token.encode() not in database
    assert row["id"].encode() in database
    shell("token", "revoke", folder, row["id"])
    assert shell("token", "list", folder, "--json").json[0]["revoked"]
    assert shell("token", "revoke", folder, "0" * 12, code=1).error == "wrong-value"


@pytest.mark.parametrize("arguments", [[], ["ws", "--demo"]])
def test_a_workspace_or_the_demo(arguments):
    assert Shell()("serve", *arguments, code=2).error == "usage"


def test_nobody_serves_what_is_no_workspace(tmp_path):
    assert Shell()("serve", tmp_path, code=1).error == "not-a-workspace"


def test_a_certificate_that_cannot_be_used_is_named_before_anything_is_started(folder, tmp_path):
    pem, empty = certificate(tmp_path / "both.pem"), tmp_path / "empty.pem"
    empty.touch()
    for files in ((tmp_path / "nowhere.pem",), (empty,), (pem, "--key", empty)):
        shown = Shell()("serve", folder, "--cert", *files, code=2)
        assert f"--cert {files[0]}" in shown.err.replace("\n", " ")


def test_tls_is_of_today_alone(folder, tmp_path):
    pem = certificate(tmp_path / "both.pem").read_text()
    files, port = {"--cert": tmp_path / "cert.pem", "--key": tmp_path / "key.pem"}, free_port()
    for file, begin in zip(files.values(), ("-----BEGIN CERT", "-----BEGIN PRIV"), strict=True):
        start = pem.index(begin)
        file.write_text(pem[start : pem.index("-----\n", pem.index("-----END", start)) + 6])
    options = [str(part) for pair in files.items() for part in pair]
    command = [sys.executable, "-m", "maxrr", "serve", str(folder), "--port", str(port), "--no-worker", *options]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def spoken(version, ciphers="DEFAULT:@SECLEVEL=0"):
        context = ssl.create_default_context(cafile=files["--cert"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        context.set_ciphers(ciphers)
        with (
            socket.create_connection(("127.0.0.1", port), 10) as plain,
            context.wrap_socket(plain, server_hostname=DOMAIN) as safe,
        ):
            return safe.version()

    def is_there():
        with suppress(OSError):
            return spoken(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"

    try:
        wait_until(is_there, 60)
        assert spoken(ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
        for refused in ((ssl.TLSVersion.TLSv1_1,), (ssl.TLSVersion.TLSv1_2, "ECDHE+AES:!AESGCM:!AESCCM")):
            with pytest.raises(ssl.SSLError):
                spoken(*refused)
    finally:
        server.terminate()
        server.wait(60)


def test_a_call_without_end_is_ended(folder):
    """A request line, headers, what stands behind a body: none is kept for ever, and nobody needs a token to try."""
    port = free_port()
    command = [sys.executable, "-m", "maxrr", "serve", str(folder), "--port", str(port), "--no-worker"]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    chunks = b"POST /v1/requests HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    try:
        wait_until(lambda: called(port, "/health")[0] == 200, 60)
        for begin in (b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n", chunks + b"1;", chunks + b"0\r\nX: "):
            part = b"a: b\r\n" * 20_000 if begin.endswith(b"\n") else b"a" * 100_000
            with socket.create_connection(("127.0.0.1", port), 10) as wire, suppress(ConnectionError):
                wire.sendall(begin)
                for _ in range(100):
                    wire.sendall(part)
                    time.sleep(0.001)
                pytest.fail(f"10 MB after {begin!r} were taken")
        assert called(port, "/health")[0] == 200
    finally:
        server.terminate()
        server.wait(60)


@pytest.mark.long
def test_a_server_starts_its_worker_again_and_takes_it_along(folder, monkeypatch):
    from tests.service.conftest import KEY

    KEY.save(folder.parent / "key.pem")
    monkeypatch.setenv("MAXRR_SIGNING_KEY", (folder.parent / "key.pem").read_text())
    token, port = Shell()("token", "new", folder, "me", "--role", "operator").out.strip(), free_port()
    log = (
        folder.parent / "log"
    )  # a file: a pipe that nobody reads is full after some hundred calls, and the server waits
    with log.open("wb") as told:
        command = [sys.executable, "-m", "maxrr", "serve", str(folder), "--port", str(port)]
        server = subprocess.Popen(command, stderr=told)

    def workers():
        return called(port, "/v1/status", token)[1].get("workers", {})

    try:
        wait_until(lambda: called(port, "/ready")[0] == 200, 120)
        wait_until(lambda: any(each["doing"] == "at work" for each in workers().values()), 120)
        (first,) = workers()
        os.kill(int(first.rpartition(":")[2]), signal.SIGKILL)
        wait_until(lambda: len(workers()) == 2, 120)
        second = int(max(workers().keys() - {first}).rpartition(":")[2])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    assert token not in log.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
