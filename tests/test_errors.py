"""Every kind of error has a code, and docs/reference/errors.md says what it means."""

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from maxrr import errors
from maxrr.cli.run import BY_STATUS
from maxrr.errors import CoreRefused, DataError, MaxRRError, NotHere, OlderCopy, Refused
from tests.cli.shell import Shell

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")


def raised(folder: Path, name: str) -> list[ast.Call]:
    """Every call of this name in the modules of a folder."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) == name]


def test_the_page_is_the_one_that_is_written_from_the_classes() -> None:
    """`python tools/errors_page.py` writes it."""
    assert runpy.run_path(str(ROOT / "tools" / "errors_page.py"))["page"]() == PAGE


def test_codes_are_the_names_of_classes() -> None:
    assert (OlderCopy.code, CoreRefused.code, DataError.code) == ("older-copy", "core-refused", "data")
    assert NotHere("gone").code == "not-here"
    assert issubclass(CoreRefused, Refused)


def test_no_error_is_of_no_kind_and_no_kind_is_never_raised() -> None:
    assert raised(ROOT / "src", "MaxRRError") == []
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    words = Counter(re.findall(r"\w+", source))
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, MaxRRError)]
    assert [name for name in kinds if words[name] < 2] == []


def test_codes_of_the_shell_alone_are_on_the_page() -> None:
    said = [call.args[2] for call in raised(ROOT / "src" / "maxrr" / "cli", "Stop") if len(call.args) == 3]
    codes = {ast.literal_eval(code) for code in said} | set(BY_STATUS.values())
    assert [code for code in sorted(codes) if f"`{code}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("status", "nowhere"), 1, "not-a-workspace"),
        (("fit", "nothing.npz", "--out", "ws"), 1, "unknown-source"),
        (("fit", "digits", "--out", "ws", "--core", "much"), 2, "usage"),
        (("verify", "nothing.html"), 1, "file-missing"),
    ],
)
def test_the_shell_says_the_code_in_words_and_in_json(
    words: tuple[str, ...], status: int, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Shell()(*words, code=status).error == code
    answer = Shell()(*words, "--json", code=status).json
    assert answer["error"] == code
    assert answer["message"]
