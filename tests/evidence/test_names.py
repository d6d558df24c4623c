"""Names that stand in what is signed are written once: two of them could come to differ."""

from pathlib import Path

import pytest

import maxrr

ROOT = Path(maxrr.__file__).parent
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ('"https://maxrr.dev/dossier/v1"', "evidence/dossiers.py"),
        ('"https://maxrr.dev/receipt/v1"', "evidence/envelopes.py"),
        ('"maxrr.dev/workspace/', "workspace/names.py"),
        ("LOG, CHECKPOINT, ENTRIES =", "evidence/log.py"),
    ],
)
def test_each_is_written_in_one_place(text: str, home: str) -> None:
    assert [name for name, source in SOURCES.items() if text in source] == [home]
