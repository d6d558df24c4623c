"""The test vectors beside docs/specifications/evidence.md are what the code gives, and what the definition gives."""

import hashlib
import json
from pathlib import Path
from typing import Any

from maxrr.evidence.sparse_tree import Absence, Presence, Tree, key_of, salt_of, value_of
from tests.evidence.oracle import root_of

PAGE = Path(__file__).parents[2] / "docs" / "specifications" / "commitment_vectors.json"
SECRET = bytes(range(32))


def vectors() -> dict[str, Any]:
    """A secret, six records, the roots of the first n of them, and proofs in the tree of the first five."""
    records = []
    for number in range(1, 7):
        identifier, record_hash = f"int:{number}", hashlib.sha256(b"record %d" % number).digest()
        salt = salt_of(SECRET, identifier.encode())
        fields = {
            "record_hash": record_hash, "salt": salt,
            "key": key_of(salt, identifier.encode()), "value": value_of(salt, record_hash),
        }  # fmt: skip
        records.append({"id": identifier} | {name: value.hex() for name, value in fields.items()})
    held = [(bytes.fromhex(record["key"]), bytes.fromhex(record["value"])) for record in records]
    tree, twins = Tree(held[:5]), [bytes(32), bytes(31) + b"\x01"]
    return {
        "secret": SECRET.hex(),
        "records": records,
        "roots of the first n records": {str(count): Tree(held[:count]).root.hex() for count in range(7)},
        "root of the keys 00…00 and 00…01, both with the value 00…00": Tree(
            (key, bytes(32)) for key in twins
        ).root.hex(),
        "presence of int:2 among the first five": tree.presence(held[1][0]).to_object(),
        "absence of int:6 among the first five": tree.absence(held[5][0]).to_object(),
        "absence of int:1 without it": tree.change(remove=[held[0][0]]).absence(held[0][0]).to_object(),
        "absence of int:6 in the empty set": Tree().absence(held[5][0]).to_object(),
    }


def on_the_page() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PAGE.read_text(encoding="utf-8"))
    return found


def test_the_vectors_are_what_the_code_gives() -> None:
    assert on_the_page() == vectors()


def test_the_vectors_are_what_the_definition_gives() -> None:
    page = on_the_page()
    held = [(bytes.fromhex(record["key"]), bytes.fromhex(record["value"])) for record in page["records"]]
    roots = {count: root_of(dict(held[: int(count)])).hex() for count in page["roots of the first n records"]}
    assert roots == page["roots of the first n records"]
    five, without = bytes.fromhex(roots["5"]), root_of(dict(held[1:5]))
    assert Presence.from_object(page["presence of int:2 among the first five"]).verify(five, *held[1])
    assert Absence.from_object(page["absence of int:6 among the first five"]).verify(five, held[5][0])
    assert Absence.from_object(page["absence of int:1 without it"]).verify(without, held[0][0])
    assert Absence.from_object(page["absence of int:6 in the empty set"]).verify(bytes(32), held[5][0])


def test_both_ends_of_absence_are_shown() -> None:
    shown = [proof for name, proof in on_the_page().items() if name.startswith("absence")]
    assert {proof["other"] is None for proof in shown if proof["siblings"]} == {True, False}
