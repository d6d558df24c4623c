"""Nothing but files is read, and nothing is waited for."""

import os
import socket
from pathlib import Path

import pytest

from maxrr.files import open_regular, read_regular


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "a")

    assert read_regular(tmp_path / "a") == b"abc" == read_regular(str(tmp_path / "link"), most=3)
    with open_regular(tmp_path / "a") as file:
        assert file.read(2) == b"ab"


def test_larger_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcd")

    with pytest.raises(OSError, match=r"larger than 3 bytes.*a'"):
        read_regular(tmp_path / "a", most=3)


def test_folders_pipes_devices_and_sockets_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    os.mkfifo("pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")

    try:
        for name, kind in ((".", "a folder"), ("pipe", "a pipe or"), ("/dev/zero", "or a device")):
            with pytest.raises(OSError, match=f"{kind}.*, not a file: '{name}'"):
                read_regular(name)
        with pytest.raises(OSError, match="'socket'"):
            read_regular("socket")
    finally:
        server.close()
    with pytest.raises(FileNotFoundError):
        read_regular("nothing")


def test_a_refused_file_is_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(5):
        with pytest.raises(IsADirectoryError):
            open_regular(tmp_path)
    assert not before or len(os.listdir("/proc/self/fd")) == before
