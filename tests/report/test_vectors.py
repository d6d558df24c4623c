"""The page's script says of the vectors what must be said of them; tests/evidence/test_vectors.py has Python say it."""

from typing import Any

import pytest

from tests.evidence import vectors
from tests.report.in_node import answers

GIVEN = vectors.read()
LETTERS = {"a comment", "a text after it", "a zero after it", "a space of another kind"}
WORLDS = ("browser", "own")  # with the browser's SHA-2, and without


def asked(calls: list[dict[str, Any]], given: list[dict[str, Any]], world: str = "browser") -> list[tuple[str, Any]]:
    """The name of each vector, and what the script answers to its call."""
    found = answers([call | {"world": world} for call in calls])
    return [(one["name"], each.get("answer")) for one, each in zip(given, found, strict=True)]


def test_dossiers() -> None:
    given = GIVEN["dossiers"]
    found = asked([{"call": "check", "dossier": each["text"], "keys": GIVEN["key"]} for each in given], given)
    checks = [(name, answer and {check["name"]: check["held"] for check in answer}) for name, answer in found]
    assert checks == [(each["name"], each["checks"]) for each in given]


def test_keys() -> None:
    given = GIVEN["keys"]
    found = asked([{"call": "keys", "text": vectors.pem_of(bytes.fromhex(each["key"]))} for each in given], given)
    assert found == [(each["name"], [each["key"]] if each["taken"] else None) for each in given]


@pytest.mark.parametrize("world", WORLDS)
def test_files_of_keys(world: str) -> None:
    given = GIVEN["files of keys"]
    found = asked([{"call": "keys", "text": each["text"]} for each in given], given, world)
    assert found == [(each["name"], each["keys"]) for each in given]


def test_one_key_may_have_a_letter_around_it_and_nothing_that_may_be_a_key() -> None:
    given = GIVEN["files of keys"]
    found = asked([{"call": "given keys", "text": each["text"]} for each in given], given)
    (one,) = [each["keys"] for each in given if each["name"] == "one key"]
    assert found == [(each["name"], one if each["name"] in LETTERS else each["keys"]) for each in given]


@pytest.mark.parametrize("world", WORLDS)
def test_signatures(world: str) -> None:
    given = GIVEN["signatures"]
    found = asked([{"call": "verifies"} | each for each in given], given, world)
    assert found == [(each["name"], each["holds"]) for each in given]
