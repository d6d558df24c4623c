"""A file is whole or absent, whatever happens while it is written."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from maxrr.files import sha256_of, write_atomically


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", [b"", b"a", bytes(range(256)) * 5000])
def test_what_is_written_is_there(tmp_path, content):
    write_atomically(tmp_path / "bytes", content)
    write_atomically(str(tmp_path / "function"), lambda file: [file.write(content[:7]), file.write(content[7:])])
    for name in ("bytes", "function"):
        assert (tmp_path / name).read_bytes() == content
        assert sha256_of(tmp_path / name) == hashlib.sha256(content).hexdigest()
    assert names(tmp_path) == ["bytes", "function"]


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(file):
        file.write(b"new" * 100_000)
        assert path.read_bytes() == b"old"

    write_atomically(path, write)
    assert path.read_bytes() == b"new" * 100_000


def test_the_longest_name_fits_and_the_mode_is_that_of_a_plain_file(tmp_path):
    path, plain = tmp_path / ("n" * 255), tmp_path / "plain"
    write_atomically(path, b"")
    plain.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt(), OSError(errno.EIO, "broken")])
def test_nothing_is_left_of_a_failure(tmp_path, failure, existing):
    path = tmp_path / "file"
    if existing:
        path.write_bytes(b"old")

    def write(file):
        file.write(b"new")
        raise failure

    with pytest.raises(type(failure)) as caught:
        write_atomically(path, write)
    assert caught.value is failure
    assert names(tmp_path) == (["file"] if existing else [])
    assert not existing or path.read_bytes() == b"old"


def full_device(file):
    file.write(b"some")
    with open("/dev/full", "wb", buffering=0) as full:  # the kernel's own ENOSPC
        full.write(b"more")


def full_at_the_end(number):
    def fsync(descriptor):
        raise OSError(number, os.strerror(number))

    return fsync


def test_a_full_disk_is_named(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(path, full_device)
    assert caught.value.errno == errno.ENOSPC
    assert str(path) in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_found_full_at_the_end_is_named(tmp_path, monkeypatch, number):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full_at_the_end(number))
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(path, b"new")
    assert str(path) in str(caught.value)
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() == b"old"


def test_a_missing_folder_is_reported_with_the_callers_path(tmp_path):
    path = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(path, b"")
    assert caught.value.filename == str(path)


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import os, signal, sys\nfrom maxrr.files import write_atomically\n"
        "def write(file):\n    file.write(b'new' * 100_000)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(sys.argv[1], write)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    assert path.read_bytes() == b"old"


def test_a_relative_path_is_enough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically(Path("file"), b"x")
    assert names(tmp_path) == ["file"]
