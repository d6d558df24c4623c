"""Fetching from a server that is well, or ill in one of many ways: all or nothing, and the reason."""

import gzip
import socket
import struct
import time
from dataclasses import replace
from pathlib import Path

import pytest

from maxrr.data import DataError, fetch, known, load
from tests.data.sources import body

IMAGES = "train-images-idx3-ubyte"


def kept(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_fetched_is_stored_unpacked_and_loaded(published, server, bare):
    train, test = load("tiny")
    assert train.inputs.tobytes() == published[IMAGES][16:]
    assert test.labels.tobytes() != b""
    cache = bare / "cache" / "maxrr" / "tiny"
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == published
    assert sorted(server.asked) == sorted(f"/{name}.gz" for name in published)
    load("tiny")
    assert len(server.asked) == len(published)  # not asked again


def test_progress_is_in_bytes(published, server):
    seen = []
    fetch("tiny", lambda what, done, total, **numbers: seen.append((what, done, total)))
    assert [what for what, done, total in seen if done == total] == [f"fetching {name}" for name in published]
    assert (f"fetching {IMAGES}", *2 * [len(gzip.compress(published[IMAGES]))]) in seen


def test_no_length_is_no_error(published, server):
    server.answers[f"/{IMAGES}.gz"] = body(gzip.compress(published[IMAGES]), promised="nothing")
    assert len(load("tiny")[0]) == 7


def reset(handler):
    """Some bytes, then the connection is cut without ceremony."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"\x1f\x8b\x08")
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def stall(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.flush()
    time.sleep(0.5)


PACKED = gzip.compress(bytes(1000))
ILL = {
    "truncated": (body(PACKED[:10], promised=len(PACKED)), "10 bytes arrived"),
    "truncated, of unknown length": (body(PACKED[:-4], promised="nothing"), "is cut off"),
    "nothing": (body(b""), "is cut off"),
    "not what was": (body(PACKED), "not what was published"),
    "not gzip": (body(b"<html>Welcome to the hotel's network</html>"), "is not a gzip file, or damaged"),
    "damaged": (body(PACKED[:12] + b"\xff\xff" + PACKED[14:]), "is not a gzip file, or damaged"),
    "not found": (lambda handler: handler.send_error(404, "Not Found"), "404"),
    "forbidden": (lambda handler: handler.send_error(403), "403"),
    "broken": (lambda handler: handler.send_error(500), "500"),
    "no answer": (lambda handler: None, "without response"),
    "no HTTP": (lambda handler: handler.wfile.write(b"SSH-2.0\r\n"), "SSH"),
    "reset": (reset, "reset"),
    "stalled": (stall, "timed out"),
    "a bomb": (body(gzip.compress(bytes(2000))), "not what was"),
}


@pytest.mark.parametrize("case", ILL)
def test_an_ill_server(case, published, server, bare, monkeypatch):
    monkeypatch.setattr(known, "TIMEOUT", 0.2)
    monkeypatch.setattr(known, "LARGEST", 1500)
    last = "t10k-labels-idx1-ubyte"
    good = server.answers[f"/{last}.gz"]
    server.answers[f"/{last}.gz"], message = ILL[case]
    with pytest.raises(DataError, match=message) as caught:
        load("tiny")
    url = f"{server.address}{last}.gz"
    assert url in str(caught.value)
    # What was whole stays, of the other nothing does, and the next time only that one is asked for.
    assert kept(bare) == sorted(f"cache/maxrr/tiny/{name}" for name in published if name != last)
    server.answers[f"/{last}.gz"] = good
    server.asked.clear()
    load("tiny")
    assert server.asked == [f"/{last}.gz"]


def test_offline_there_is_one_error_with_every_place(published, bare, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refused = f"http://127.0.0.1:{free.getsockname()[1]}/"
    monkeypatch.setitem(known.PUBLISHED, "tiny", replace(known.PUBLISHED["tiny"], site=refused))
    monkeypatch.setenv("MAXRR_DATA", "/nowhere")
    with pytest.raises(DataError) as caught:
        fetch("tiny")
    places = ("/nowhere/tiny", f"{bare}/debian/tiny", f"{bare}/cache/maxrr/tiny")
    for said in (f"{refused}{IMAGES}.gz", *places, *published):
        assert said in str(caught.value)
    assert caught.value.__suppress_context__
    assert kept(bare) == []


def test_a_full_disk_is_no_network_error(published, bare, monkeypatch):
    def full(path: Path, content) -> None:
        raise OSError(28, "No space left on the disk", str(path))

    monkeypatch.setattr(known, "write_atomically", full)
    with pytest.raises(OSError, match="train-images"):
        fetch("tiny")
    assert kept(bare) == []
