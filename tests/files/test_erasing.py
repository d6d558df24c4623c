"""Zeros reach the disk before a file is deleted, and nothing but that file is touched."""

import os

import pytest

from maxrr.files import flush_folder, overwrite, write_atomically
from maxrr.files.atomic import CHUNK


@pytest.mark.parametrize("size", [0, 1, 4096, CHUNK - 1, CHUNK, 2 * CHUNK + 7])
def test_every_byte_is_overwritten_in_place_and_flushed(tmp_path, monkeypatch, size):
    path, flushed = tmp_path / "file", []
    path.write_bytes(b"x" * size)
    inode, fsync = path.stat().st_ino, os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (flushed.append((os.fstat(fd).st_ino, path.read_bytes())), fsync(fd)))
    overwrite(path)
    assert flushed == [(inode, bytes(size))]
    assert (path.stat().st_ino, path.read_bytes()) == (inode, bytes(size))


def test_a_write_that_stops_short_goes_on(tmp_path, monkeypatch):
    path, pwrite = tmp_path / "file", os.pwrite
    path.write_bytes(b"x" * 10_000)
    monkeypatch.setattr(os, "pwrite", lambda fd, content, start: pwrite(fd, content[:999], start))
    overwrite(path)
    assert path.read_bytes() == bytes(10_000)


def test_links_pipes_and_what_is_not_there_are_left_alone(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing", "."):
        overwrite(tmp_path / name)
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_failure_names_the_file(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    (tmp_path / "file").write_bytes(b"x")
    before = len(os.listdir("/dev/fd"))
    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(OSError, match="file"):
        overwrite(tmp_path / "file")
    assert len(os.listdir("/dev/fd")) == before


def test_names_may_be_flushed_together(tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (flushed.append(os.fstat(fd).st_ino), fsync(fd)))
    for name in "abc":
        write_atomically(tmp_path / name, b"content", flush_name=False)
    flush_folder(tmp_path)
    assert (len(flushed), flushed.count(tmp_path.stat().st_ino)) == (4, 1)
