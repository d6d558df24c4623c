"""A lock keeps others out for as long as its holder lives, and no longer."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

from maxrr.files import Lock

HOLDER = """
import sys
from maxrr.files import Lock
lock = Lock(sys.argv[1])
print("held", flush=True)
for line in sys.stdin:
    lock.release()
    print("released", flush=True)
"""


@contextlib.contextmanager
def holder(path):
    """Another process that holds the lock; a line to it lets go."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def free(path, **how):
    """Whether the lock can be had now."""
    try:
        Lock(path, **how).release()
    except BlockingIOError:
        return False
    return True


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".lock"


def test_between_processes(path):
    with holder(path) as process:
        assert not free(path)
        process.stdin.write("let go\n")
        assert process.stdout.readline() == "released\n"
        assert free(path)


def test_the_system_lets_go_of_a_killed_process(path):
    with holder(path) as process:
        assert not free(path)
        process.kill()
        process.wait()
        assert free(path)


def test_within_one_process(path):
    """Two owners are two, in one process as well."""
    lock = Lock(path)
    assert not free(path)
    lock.release()
    assert free(path)


def test_who_waits_gets_it(path):
    lock = Lock(path)
    timer = threading.Timer(0.1, lock.release)
    timer.start()
    waited = Lock(path, wait=60.0)
    timer.join()
    assert not free(path)
    waited.release()
    assert free(path)


def test_who_waits_in_vain_is_told(path, monkeypatch):
    """After the time it was ready to wait, not after one try."""
    lock = Lock(path)
    times, pauses = iter([0.0, 0.5, 1.0, 1.5]), []
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(BlockingIOError):
        Lock(path, wait=1.5)
    assert len(pauses) == 2
    lock.release()


def test_a_lock_goes_with_its_owner(path):
    class Owner:
        def __init__(self):
            self.lock = Lock(path)
            self.itself = self  # only the collector sees that nobody else knows it

    owner = Owner()
    assert not free(path)
    del owner
    gc.collect()
    assert free(path)


def test_who_is_refused_keeps_nothing_open(path):
    """Also while the error is still at hand."""
    lock = Lock(path)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(BlockingIOError) as caught:
        Lock(path)
    assert caught.value is not None
    assert len(os.listdir("/dev/fd")) == before
    lock.release()
    assert len(os.listdir("/dev/fd")) == before - 1


def test_letting_go_twice_is_letting_go_once(path):
    """The second time, the number of the descriptor may be somebody else's."""
    first = Lock(path)
    first.release()
    second = Lock(path)
    first.release()
    assert not free(path)
    second.release()


def test_what_is_in_the_file_stays(path):
    path.write_bytes(b"something")
    Lock(path).release()
    assert path.read_bytes() == b"something"


def test_the_file_is_made_but_not_its_folder(tmp_path):
    Lock(str(tmp_path / "new")).release()
    assert (tmp_path / "new").exists()
    with pytest.raises(FileNotFoundError):
        Lock(tmp_path / "missing" / "new")


# No file, and children


def test_what_is_not_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/dev/fd"))
    for name in ("link", "folder", "pipe"):
        with pytest.raises(OSError, match=name):
            Lock(tmp_path / name)
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_neither_holds_nor_frees_what_its_parent_holds(path):
    lock = Lock(path)
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    assert not free(path)
    lock.release()
    assert free(path)
