"""Files that somebody else made: an error in words, at once, and nothing but text on the terminal."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maxrr.cli import outputs
from maxrr.cli import receipt as receipts
from maxrr.errors import FileExists
from tests.cli.shell import Shell

COMMANDS: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "receipt show": lambda ws, file: ("receipt", "show", file),
    "verify": lambda ws, file: ("verify", file),
    "replay": lambda ws, file: ("replay", ws, file),
    "plan": lambda ws, file: ("plan", ws, "--ids-file", file),
    "predict": lambda ws, file: ("predict", ws, file),
    "replace": lambda ws, file: ("replace", ws, "v1", file, "--yes"),
    "key": lambda ws, file: ("fit", "digits", "--core", f"hash:0.3:{file}", "--out", file.parent / "ws"),
    "source": lambda ws, file: ("data", "prepare", file),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "nothing"])
def test_what_is_no_file(
    shell: Shell, fitted_visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str
) -> None:
    """Opening a pipe waited for ever."""
    suffixes = [".csv", ".npy", ".npz", ".png"] if command == "predict" else [".npz"]
    for suffix in suffixes:
        path = tmp_path / f"thing{suffix}"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "device":
            path.symlink_to("/dev/zero")
        ended = shell(*COMMANDS[command](fitted_visits, path), code=1)
        assert str(path) in ended.err
        assert len(ended.err.splitlines()) == (2 if "Warning" in ended.err else 1)
        assert ended.out == ""


def test_a_page_is_not_written_over_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page.html")
    for path in (tmp_path / "page.html", tmp_path):
        with pytest.raises(FileExists):
            outputs.check(path, "a page", lambda path: outputs.is_page(path, "MaxRR"))
    outputs.check(tmp_path / "nowhere", "a page", lambda path: outputs.is_page(path, "MaxRR"))


def test_a_socket(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    server = socket.socket(socket.AF_UNIX)
    server.bind("receipt.json")
    try:
        assert shell("receipt", "show", "receipt.json", code=1).error == "disk"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"version": ' * 100_000, "nested too deeply"),
        ("[]", "this is not a receipt"),
        ("null", "this is not a receipt"),
        ('{"version": 3}', "this is not a receipt"),
        ('{"version": 3, "heads": [1]}', "this is not a receipt"),
        ('{"version": 3, "heads": {"a": 1}}', "this is not a receipt"),
        ('{"version": NaN}', "a number is invalid"),
        ("9" * 10_000, "too large"),
    ],
)
def test_receipts_that_are_none(shell: Shell, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "receipt.json").write_text(text)
    shown, verified = (shell(*verb, tmp_path / "receipt.json", code=1) for verb in (("receipt", "show"), ("verify",)))
    assert message in shown.err
    assert message in verified.err if text.startswith("{") else verified.error == "unreadable-file"
    assert len(shown.err.splitlines()) == len(verified.err.splitlines()) == 1


def test_a_receipt_that_is_too_large(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert receipts.LARGEST == 64 << 20
    monkeypatch.setattr(receipts, "LARGEST", 1000)
    (tmp_path / "receipt.json").write_text(" " * 1001)
    assert shell("receipt", "show", tmp_path / "receipt.json", code=1).error == "disk"


@pytest.fixture
def handed_out(shell: Shell, visits: Path) -> dict[str, object]:
    """What is on a receipt."""
    found = shell("unlearn", visits, "--ids", "v1", "--policy", "keep-extractor", "--yes", "--json").json
    assert isinstance(found, dict)
    return found


def test_what_is_on_a_receipt_is_only_read(shell: Shell, handed_out: dict[str, object], tmp_path: Path) -> None:
    """Escape sequences on a receipt could write 'holds' over 'no', and newlines could add lines."""
    steering = "\x1b[2K\x1b[1A\rexact \x9b31m \u202e\nholds  yes"
    changed = handed_out | {"reason": steering, "core_depended_on": steering, "requested": 5}
    (tmp_path / "receipt.json").write_text(json.dumps(changed))
    shown = shell("receipt", "show", tmp_path / "receipt.json")
    verified = shell("verify", tmp_path / "receipt.json", code=4)
    for text in (shown.out, verified.out):
        assert not set(text) & {"\x1b", "\r", "\x9b", "\u202e"}
        assert "\nholds  yes" not in text
    assert "\\x1b[2K" in shown.out
    found = shell("receipt", "show", tmp_path / "receipt.json", "--json")
    assert found.json["reason"] == steering
    assert not set(found.out) & {"\x1b", "\r", "\x9b", "\u202e"}


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity", "1" + "0" * 400])
def test_numbers_that_are_none(shell: Shell, handed_out: dict[str, object], tmp_path: Path, number: str) -> None:
    """The last was an OverflowError, with its traceback."""
    (tmp_path / "receipt.json").write_text(json.dumps(handed_out | {"seconds": 12345}).replace("12345", number))
    assert shell("verify", tmp_path / "receipt.json", code=1).error == "unreadable-file"


def test_classes_and_file_names_are_only_read(shell: Shell, tmp_path: Path) -> None:
    steering = "\x1b[31mred\u202e"
    table = tmp_path / f"{steering}.csv"
    table.write_text("\n".join(["id,label,x", *(f"{row},{'ab'[row % 2]}{steering},{row}" for row in range(40))]))
    shown = shell("data", "prepare", table)
    missing = shell("data", "prepare", f"{table}.npz", code=1)
    for text in (shown.out, missing.err):
        assert steering.encode("unicode_escape").decode() in text
        assert not set(text) & {"\x1b", "\u202e"}


def test_ids_that_numpy_would_change(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    """'v1' and a NUL asked for 'v1'."""
    ids = tmp_path / "ids.txt"
    for text, message in ((b"v1\0\n", "character NUL"), (b"v1\n" + b"x" * 5_000_000, "1,000 characters at most")):
        ids.write_bytes(text)
        ended = shell("plan", fitted_visits, "--ids-file", ids, code=1)
        assert message in ended.err
        assert len(ended.err) < 500
    assert shell("plan", fitted_visits, "--ids", "x" * 1001, code=1).error == "data"
    assert shell("plan", fitted_visits, "--subject", "x" * 1001, code=1).error == "data"


def test_long_ids_where_ids_are_integers(shell: Shell, fitted_digits: Path) -> None:
    ended = shell("plan", fitted_digits, "--ids", "9" * 5000, code=1)
    assert len(ended.err) < 500


def test_a_line_of_ids_is_one_id(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    """Python calls more characters line ends than anybody who writes ids: this was two of them, both there."""
    (tmp_path / "ids.txt").write_text("v1\u2028v2\n", encoding="utf-8")
    assert shell("plan", fitted_visits, "--ids-file", tmp_path / "ids.txt", "--json", code=3).json["unknown"] == 1


def test_arrays_that_promise_too_much(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", np.zeros((5, 2)))
    content = (tmp_path / "new.npy").read_bytes()
    (tmp_path / "new.npy").write_bytes(content.replace(b"(5, 2), }       ", b"(5000000000, 2)}"))
    for command in ("predict", "replace"):
        ended = shell(*COMMANDS[command](fitted_visits, tmp_path / "new.npy"), code=1)
        assert ended.error == "unreadable-file"


def test_animated_images(shell: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    frames = [Image.fromarray(np.full((8, 8), value, dtype=np.uint8)) for value in (0, 100, 200)]
    frames[0].save(tmp_path / "film.png", save_all=True, append_images=frames[1:])
    assert shell("predict", fitted_digits, tmp_path / "film.png", code=1).error == "data"
