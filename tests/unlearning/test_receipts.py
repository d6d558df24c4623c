"""Receipts as text."""

import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.evidence.exact_text import canonical_json
from maxrr.plain_text import STEERING
from maxrr.svm.certificate import FORM
from maxrr.unlearning import Receipt
from maxrr.unlearning.receipts import HeadCertificate, claim_of, rounded_up
from tests.unlearning.problems import core_of, kinds, table, table_model


@pytest.fixture(scope="module")
def receipt():
    return table_model().unlearn(core_of(table_model())[:2], core_policy="retrain")


def standard(text):
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_text_is_one_line_in_the_form_that_is_signed(receipt):
    text = receipt.to_json()
    assert (receipt.version, text.encode()) == (7, canonical_json(json.loads(text)))
    assert "\n" not in text
    assert receipt.digest == hashlib.sha256(text.encode()).hexdigest()
    more = dataclasses.replace(receipt, added=3, weighted_records=True, class_weights={"0" * 64: 2.0})
    assert more.to_json().encode() == canonical_json(json.loads(more.to_json()))
    assert json.loads(more.to_json()).keys() - json.loads(text).keys() == {"added", "weighted_records", "class_weights"}


def test_there_and_back(receipt):
    assert Receipt.from_json(receipt.to_json()) == receipt
    assert Receipt.from_json(receipt.to_json()).to_json() == receipt.to_json()
    assert standard(receipt.to_json())["guarantee"] == "exact-retrain"


def test_every_kind_is_standard_json():
    for kind in ("hash", "frequency", "full"):
        model = table_model(kind)
        core, influential, free = kinds(model, table())
        for ids in (core[:1], influential[:1], free[:1]):
            if len(ids):
                receipt = model.unlearn(ids, core_policy="keep-extractor")
                standard(receipt.to_json())
                assert Receipt.from_json(receipt.to_json()) == receipt


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "3", '"receipt"', "{}", '{"version": 4}', '{"version": 4, "heads": 3}', "\x00"]
)
def test_what_is_no_receipt_is_refused(text):
    with pytest.raises(ValueError, match="not a receipt"):
        Receipt.from_json(text)


def test_damage_is_refused(receipt):
    fields = json.loads(receipt.to_json())
    for name in fields:
        less = {key: value for key, value in fields.items() if key != name}
        with pytest.raises(ValueError, match="not a receipt"):
            Receipt.from_json(json.dumps(less))
    for more in ({"unheard_of": 1}, {"version": 2}, {"heads": [{}]}, {"heads": ["a"]}, {"heads": None}):
        with pytest.raises(ValueError, match="not a receipt"):
            Receipt.from_json(json.dumps(fields | more))
    with pytest.raises(ValueError, match="not a receipt"):
        Receipt.from_json(receipt.to_json()[:-20])


def test_values_of_another_type_are_refused(receipt):
    fields = json.loads(receipt.to_json())
    for name, wrong in {"number": "x", "guarantee": 3, "tombstones": 5, "model_after": None, "core": []}.items():
        with pytest.raises(ValueError, match="not a receipt"):
            Receipt.from_json(json.dumps(fields | {name: wrong}))


def test_it_says_all_that_the_design_asks_for(receipt):
    names = {field.name for field in dataclasses.fields(receipt)}
    assert {
        "guarantee",
        "reason",
        "core_depended_on",
        "commitment_before",
        "commitment_after",
        "heads",
        "seed",
    } <= names
    assert {"device", "threads", "torch_version", "numpy_version"} <= receipt.environment.keys()
    assert receipt.recipe == {"epochs": 12, "batch_size": 32, "lr": 5e-3}
    assert receipt.time.endswith("+00:00")
    assert receipt.seconds > 0.0
    assert receipt.form == FORM
    assert receipt.bytes_claim == "identical"
    assert all(head.error < 1e-10 and head.decided for head in receipt.heads)


def test_what_heads_let_a_receipt_claim():
    decided, open_ = HeadCertificate("a", True, 2.05e-10), HeadCertificate("b", False, 3.11e-12)
    assert claim_of("exact-refit", [decided, decided]) == "identical"
    assert claim_of("exact-refit", [open_]) == "within 3.2e-12"
    assert claim_of("exact-refit", [decided, open_]) == "within 2.1e-10"  # the largest of all
    assert claim_of("approximate-refit", [decided]) == "nothing"


@given(st.floats(1e-300, 1e300))
def test_a_bound_is_not_rounded_below_itself(value):
    assert value <= float(rounded_up(value)) <= 1.1 * value * (1.0 + 1e-12)


@pytest.mark.parametrize("odd", ["", "exact-magic", "\x1b[31mred", "line\nand line", "\ud800", "\u202eback"])
def test_a_forged_receipt_can_be_printed_and_does_not_draw(receipt, odd):
    texts = [field.name for field in dataclasses.fields(Receipt) if isinstance(getattr(receipt, field.name), str)]
    for name in texts:
        forged = dataclasses.replace(receipt, **{name: odd})
        assert len(str(forged).splitlines()) <= len(str(receipt).splitlines()) + 1  # that an audit is due
        assert not STEERING.search(str(forged).replace("\n", "") + repr(forged))
    said = str(dataclasses.replace(receipt, guarantee=odd))
    assert "exact: no" in said
    listed = dataclasses.replace(receipt, conditions=[odd], unconditional=False)
    assert not STEERING.search(str(listed).replace("\n", ""))
