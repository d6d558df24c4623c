"""A machine without any datasets, and a small one that a local server publishes."""

import pytest

from maxrr.data import known
from maxrr.data.known import PUBLISHED
from tests.data.sources import Server, tiny


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without datasets; its folders are below the path returned."""
    monkeypatch.delenv("MAXRR_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(known, "DEBIAN", tmp_path / "debian")
    return tmp_path


@pytest.fixture(scope="session")
def shared_server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def server(shared_server, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    shared_server.answers.clear()
    return shared_server


@pytest.fixture
def published(bare, server, monkeypatch):
    """A small dataset called 'tiny', known and published by the server, on a machine that does not have it yet."""
    entry, files = tiny(server.address)
    monkeypatch.setitem(PUBLISHED, "tiny", entry)
    server.publish(files)
    return files
