"""Receipts of version 4 are still read: they are with the people they were handed out to. They have other words."""

import json
from pathlib import Path

import pytest

from maxrr.unlearning import Receipt
from maxrr.unlearning.consistency import contradictions

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "former_receipts").iterdir())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_an_old_receipt_keeps_the_text_it_was_handed_out_with(path):
    text = path.read_text(encoding="utf-8")
    receipt = Receipt.from_json(text)
    assert (receipt.version, receipt.to_json()) == (4, text)
    assert receipt.tombstones == json.loads(text)["record_marks"]
    assert receipt.commitment_after == json.loads(text)["manifest_after"]
    assert list(contradictions(receipt)) == []


@pytest.mark.parametrize(("old", "new"), [("record_marks", "tombstones"), ("neither", "free")])
def test_versions_are_not_mixed(old, new):
    said = json.loads(FIXTURES[0].read_text(encoding="utf-8"))
    for version, name, other in ((4, old, new), (5, old, old), (6, old, old), (7, old, old)):
        mixed = {other if key == name else key: value for key, value in said.items()} | {"version": version}
        with pytest.raises(ValueError, match="not a receipt"):
            Receipt.from_json(json.dumps(mixed))
