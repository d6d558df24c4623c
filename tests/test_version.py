"""A release has one number: the library's, the one to cite, and that of the newest section of the changelog."""

import re
from pathlib import Path

import maxrr

ROOT = Path(__file__).parents[1]


def first_in(page: str, pattern: str) -> tuple[str, str]:
    found = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert found is not None
    return found[1], found[2]


def test_the_citation_names_the_released_version_and_its_date() -> None:
    released = first_in("CHANGELOG.md", r"^## \[(\d[^]]*)\] - (.*)$")
    assert first_in("CITATION.cff", r"^version: (.*)\ndate-released: (.*)$") == released
    assert maxrr.__version__ == released[0] or maxrr.__version__.endswith(".dev0")
