"""Receipts as signed statements: read back as they were, refused when anything is changed."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.errors import EvidenceError, UntrustedKey
from maxrr.evidence import Envelope, SigningKey
from maxrr.evidence.envelopes import RECEIPT_TYPE, Statement, Subject
from maxrr.unlearning import Receipt, contradictions
from maxrr.unlearning.statements import HandedReceipt, receipt_statement
from tests.cases import every, examples
from tests.evidence.logs import flipped
from tests.plain_receipts import hexadecimal, receipt

KEY, OTHER = SigningKey.generate(), SigningKey.generate()


def test_the_receipt_of_these_tests_holds():
    assert list(contradictions(receipt())) == []


def test_a_signed_receipt_is_read_back():
    one = receipt(reason="Grüße, 東京")
    signed = HandedReceipt.sign(one, KEY)
    read = HandedReceipt.from_bytes(signed.to_bytes())
    assert read == signed
    assert read.receipt == one
    assert read.receipt.digest == one.digest
    read.verify([OTHER.public, KEY.public])
    statement = json.loads(read.envelope.payload)
    assert statement["predicateType"] == RECEIPT_TYPE == "https://maxrr.dev/receipt/v1"
    assert statement["subject"] == [{"name": "model", "digest": {"sha256": one.model_after}}]
    assert statement["predicate"] == json.loads(one.to_json())
    assert read.sha256 == hashlib.sha256(read.envelope.payload).hexdigest()


def test_a_receipt_that_nobody_signed():
    one = receipt()
    for data in (one.to_json().encode(), b"\xef\xbb\xbf" + one.to_json().encode()):
        read = HandedReceipt.from_bytes(data)
        assert (read.receipt, read.envelope) == (one, None)
    assert read.to_bytes() == one.to_json().encode()
    assert read.sha256 == hashlib.sha256(one.to_json().encode()).hexdigest() == one.digest
    with pytest.raises(EvidenceError, match="not signed"):
        read.verify([KEY.public])


def test_every_bit_of_a_signed_receipt_counts():
    content = HandedReceipt.sign(receipt(), KEY).to_bytes()
    for bit in every(61, 8 * len(content)):
        with pytest.raises(ValueError):  # noqa: PT011 (whatever is wrong with it)
            HandedReceipt.from_bytes(flipped(content, bit)).verify([KEY.public])


@examples(100)
@given(st.sampled_from(["add", "drop", "change"]), st.data())
def test_no_field_can_be_changed_added_or_left_out(how, data):
    """By somebody who has no key: the payload is written anew, and the signature kept."""
    signed = HandedReceipt.sign(receipt(), KEY)
    said = json.loads(signed.envelope.payload)
    name = data.draw(st.sampled_from(sorted(said["predicate"])))
    if how == "add":
        said["predicate"]["more"] = 1
    elif how == "drop":
        del said["predicate"][name]
    else:
        said["predicate"][name] = data.draw(st.none() | st.integers() | st.text() | st.lists(st.integers(), max_size=2))
    if said == json.loads(signed.envelope.payload):
        return
    envelope = replace(signed.envelope, payload=json.dumps(said).encode())
    with pytest.raises(ValueError):  # noqa: PT011
        HandedReceipt.from_bytes(envelope.to_bytes()).verify([KEY.public])


def test_another_receipt_beside_its_envelope_is_refused():
    signed = HandedReceipt.sign(receipt(), KEY)
    with pytest.raises(EvidenceError, match="another receipt"):
        HandedReceipt(receipt(2), signed.envelope).verify([KEY.public])


@pytest.mark.parametrize("keys", [[], [OTHER.public]])
def test_other_keys_vouch_for_nothing(keys):
    with pytest.raises(UntrustedKey):
        HandedReceipt.sign(receipt(), KEY).verify(keys)


def test_statements_that_are_no_receipts():
    said = json.loads(receipt().to_json())
    model, other = Subject("model", receipt().model_after), Subject("model", hexadecimal("other"))
    for statement, match in (
        (Statement((model,), "https://example.com/replay/v1", said), "not a receipt"),
        (Statement((other,), RECEIPT_TYPE, said), "another model"),
        (Statement((model, Subject("more", model.sha256)), RECEIPT_TYPE, said), "another model"),
        (Statement((Subject("it", model.sha256),), RECEIPT_TYPE, said), "another model"),
        (Statement((model,), RECEIPT_TYPE, {**said, "more": 1}), "cannot be read|not a receipt"),
    ):
        with pytest.raises(ValueError, match=match):
            HandedReceipt.from_bytes(Envelope.sign(statement, KEY).to_bytes())


def test_a_statement_of_a_receipt_is_what_its_text_says():
    one = receipt()
    assert Receipt.from_json(json.dumps(receipt_statement(one).predicate)) == one
