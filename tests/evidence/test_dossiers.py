"""What a person gets: every true dossier is verified, every changed bit and every forgery is found and named."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from maxrr.errors import EvidenceError
from maxrr.evidence import Dossier, PublicKey, SigningKey
from maxrr.evidence.dossiers import CLAIMS, difference_to_log
from maxrr.evidence.exact_text import canonical_json
from maxrr.evidence.log import LogWriter
from tests.cases import every
from tests.evidence import independent
from tests.evidence.dossiers import COUNT, Operator
from tests.evidence.forgeries import FORGED, KEY, MISSING, OPERATOR, OTHER, ROWS, TRUE, UNREADABLE
from tests.evidence.logs import flipped

KEYS = [KEY.public]


def wrong(dossier: dict[str, Any], keys: list[PublicKey] = KEYS) -> dict[str, str]:
    """Which checks do not hold, and why."""
    return {check.name: check.wrong for check in Dossier.from_object(dossier).check(keys) if not check.held}


def by_the_page(text: bytes, keys: list[PublicKey] = KEYS) -> bool:
    """What the verifier says that was written from the docs."""
    return independent.holds(text, [Ed25519PublicKey.from_public_bytes(key.raw) for key in keys])


@pytest.mark.parametrize(
    "true",
    [
        TRUE,
        OPERATOR.dossier([4], subject=None),
        OPERATOR.dossier([5], replaced=True),
        OPERATOR.dossier(list(range(COUNT)), number=1, size=1),
        OPERATOR.dossier([0, 1], number=300, size=1000),
        OPERATOR.dossier(ROWS, weights=np.arange(COUNT) + 0.5),
        OPERATOR.dossier(ROWS, keys=(OTHER,)),
    ],
    ids=["a person", "one record", "corrected", "all records", "a long log", "weights", "a former key"],
)
def test_a_true_one_is_verified(true: dict[str, Any]) -> None:
    dossier = Dossier.from_object(true)
    checks = dossier.check([KEY.public, OTHER.public])
    assert [(check.name, check.claim) for check in checks] == list(CLAIMS.items())
    assert [(check.held, check.wrong) for check in checks] == [(True, "")] * len(CLAIMS)
    assert Dossier.from_bytes(dossier.to_bytes()) == dossier
    assert dossier.to_bytes() == canonical_json(true)
    assert by_the_page(json.dumps(true, indent=1).encode(), [KEY.public, OTHER.public])


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_is_found_and_named(name: str) -> None:
    forged, expected = FORGED[name]
    found = wrong(forged)
    assert next(iter(found)) == expected
    assert not found[expected].startswith("not looked at")
    assert not by_the_page(json.dumps(forged).encode())


def test_what_rests_on_something_wrong_is_not_looked_at() -> None:
    forged, _ = FORGED["the guarantee was changed"]
    states = {check.name: check.held for check in Dossier.from_object(forged).check(KEYS)}
    assert states == {
        "signed": False, "receipt": None, "before": None, "after": None, "checkpoint": True, "logged": None,
        "keys": False,
    }  # fmt: skip


@pytest.mark.parametrize("dossier", [*UNREADABLE.values(), *MISSING.values()], ids=[*UNREADABLE, *MISSING])
def test_what_is_no_dossier_is_refused(dossier: dict[str, Any]) -> None:
    with pytest.raises(EvidenceError):
        Dossier.from_bytes(json.dumps(dossier).encode())


def test_a_name_twice_is_refused() -> None:
    text = canonical_json(TRUE).decode()
    with pytest.raises(EvidenceError, match="twice"):
        Dossier.from_bytes(text.replace('"subject":', '"subject":"bob","subject":').encode())


def test_sizes_are_bounded() -> None:
    many = TRUE | {"records": TRUE["records"][:1] * 20_000}
    with pytest.raises(EvidenceError, match="10,000"):
        Dossier.from_object(many)
    with pytest.raises(EvidenceError, match="too large"):
        Dossier.from_bytes(b" " * ((64 << 20) + 1))
    long = Dossier.from_object(TRUE | {"log": TRUE["log"] | {"checkpoint": "\n" * ((1 << 20) + 1)}})
    assert {check.name: check.held for check in long.check([KEY.public])}["checkpoint"] is False


def test_every_bit_counts() -> None:
    """All but those of the names and of the layout, which nobody signed."""
    text = canonical_json(OPERATOR.dossier([4]))
    spared = set()
    for name in ('"operator":"', '"subject":"', '"record_layout":"'):
        start = text.index(name.encode()) + len(name)
        spared |= set(range(start, text.index(b'"', start)))
    tried = 0
    for bit in every(101, 8 * len(text)):
        if bit // 8 in spared:
            continue
        changed = flipped(text, bit)
        try:
            held = all(check.held for check in Dossier.from_bytes(changed).check(KEYS))
        except EvidenceError:
            held = False
        assert not held, f"bit {bit} of byte {text[bit // 8 - 20 : bit // 8 + 5]!r}"
        assert not by_the_page(changed)
        tried += 1
    assert tried > 300


def test_another_content_than_before_is_needed_of_a_corrected_record() -> None:
    same = OPERATOR.dossier([5], replaced=True)
    same["records"][0]["after_value"] = same["records"][0]["value"]
    assert "after" in wrong(same)


def test_a_key_that_the_reader_does_not_trust_proves_nothing() -> None:
    assert set(wrong(TRUE, [OTHER.public])) == {"signed", "receipt", "before", "after", "checkpoint", "logged"}
    assert set(wrong(TRUE, [])) == set(wrong(TRUE, [OTHER.public]))


def published(folder: Any, count: int, other: bytes = b"") -> LogWriter:
    """The log of the true dossier as the operator publishes it, with this many entries."""
    from hashlib import sha256

    payload = Dossier.from_object(TRUE).envelope.payload
    entries = [sha256(b"entry %d" % place + other).digest() for place in range(count)]
    if count > 2:
        entries[2] = sha256(payload).digest()
    writer = LogWriter.create(folder, OPERATOR.origin, KEY)
    writer.append(entries)
    return writer


def test_the_log_of_today(tmp_path: Any) -> None:
    dossier = Dossier.from_object(TRUE)
    for count in (7, 8, 300):
        published(tmp_path / str(count), count)
        assert difference_to_log(dossier, KEYS, tmp_path / str(count)) == ""
    published(tmp_path / "older", 6)
    assert "it is older: it has 6 entries, and had 7" in difference_to_log(dossier, KEYS, tmp_path / "older")
    published(tmp_path / "split", 7, b" rewritten")
    assert "two histories" in difference_to_log(dossier, KEYS, tmp_path / "split")
    published(tmp_path / "rewritten", 9, b" rewritten")
    assert "two histories" in difference_to_log(dossier, KEYS, tmp_path / "rewritten")
    assert "cannot be read" in difference_to_log(dossier, KEYS, tmp_path)


def test_numbers_and_texts_are_other_ids() -> None:
    true = copy.deepcopy(TRUE)
    record = Dossier.from_object(true).records[0]
    assert record.identifier == b"str:scan-0"
    true["records"][0]["id"] = {"int": -5}
    assert Dossier.from_object(true).records[0].identifier == b"int:-5"


def test_another_operator_with_the_same_records_has_other_proofs() -> None:
    theirs = Operator(SigningKey.generate(), secret=b"\x07" * 32).dossier(ROWS)
    assert {record["salt"] for record in theirs["records"]} & {record["salt"] for record in TRUE["records"]} == set()
