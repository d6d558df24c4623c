"""Commands that need only files start without what they do not need: PyTorch and scikit-learn take seconds."""

import subprocess
import sys
from pathlib import Path

import pytest

from maxrr.evidence import SigningKey, make_key
from maxrr.evidence.log import LogWriter
from maxrr.unlearning.statements import HandedReceipt
from tests.cases import some, thinned
from tests.cli.shell import Shell, kinds, receipt_file
from tests.plain_receipts import receipt

SLOW = {"torch", "sklearn", "scipy", "pandas", "matplotlib", "PIL", "jinja2", "onnxruntime"}
ARRAYS = {"numpy", "safetensors"}
CODE = """
import atexit, sys
atexit.register(lambda: print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr))
from maxrr.cli import app
app()
"""


def imported(*arguments: object, code: int = 0) -> set[str]:
    """The packages that a command imports, which ends with this exit code."""
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_the_library_resolves_its_names_when_they_are_asked_for() -> None:
    code = "import sys, maxrr; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {name.partition(".")[0] for name in shown.split()} & (SLOW | ARRAYS) == set()


@pytest.mark.parametrize(
    "command", thinned(2, [("--help",), ("--version",), ("unlearn", "--help"), ("receipt", "show", "--help")])
)
def test_help_and_version(command: tuple[str, ...]) -> None:
    assert imported(*command) & (SLOW | ARRAYS) == set()


def test_a_receipt(shell: Shell, digits: Path) -> None:
    shell("unlearn", digits, "--ids", kinds(digits)["free"][0], "--yes")
    assert imported("receipt", "show", receipt_file(digits, 1)) & (SLOW | ARRAYS) == set()


def test_keys_and_logs(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    for command in some(2, [("new", key), ("show", key), ("rotate", key)]):
        assert imported("key", *command) & (SLOW | ARRAYS) == set()
    log = tmp_path / "log"
    LogWriter.create(log, "example.com/maxrr", SigningKey.load(key)).append([b"one".ljust(32)])
    for words in some(1, [(), ("--against", log)]):
        assert imported("verify", log, *words, "--key", key.with_suffix(".pub")) & (SLOW | ARRAYS) == set()


def test_a_signed_receipt(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key.pem")
    (tmp_path / "receipt.json").write_bytes(HandedReceipt.sign(receipt(), key).to_bytes())
    for command in [("receipt", "show"), ("verify",)]:
        words = ("--key", tmp_path / "key.pub") if command == ("verify",) else ()
        assert imported(*command, tmp_path / "receipt.json", *words) & (SLOW | ARRAYS) == set()


def test_status(fitted_digits: Path) -> None:
    assert imported("status", fitted_digits) & (SLOW | ARRAYS) == set()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("plan", "ws", "--ids", "1"), 1),
        (("plan", "ws"), 2),
        (("unlearn", "ws", "--ids", "1", "--yes"), 1),
        (("receipt", "for", "ws", "1", "--subject", "anna", "--out", "anna.html"), 1),
        (("receipt", "for", "ws", "1", "--subject", "anna", "--out", "anna.pdf"), 2),
    ],
)
def test_a_wrong_option_or_a_missing_workspace(tmp_path: Path, command: tuple[str, ...], code: int) -> None:
    there = [str(tmp_path / part) if part == "ws" else part for part in command]
    assert "torch" not in imported(*there, code=code)
