"""A replay compares all that a receipt says."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from tests.unlearning.test_replaying import handed_in, retrained

from maxrr.core import HashCore
from maxrr.unlearning import Receipt, replay

CORE = HashCore(0.5, key="house")


FORGERIES = {
    "guarantee": "exact-refit", "core_policy": "keep-extractor", "refit": "influential", "C": 3.0, "seed": 99,
    "recipe": {"epochs": 1, "batch_size": 32, "lr": 5e-3}, "model_after": "0" * 64, "commitment_after": "0" * 64,
    "records_after": 70, "number": 2, "core": 0, "influential": 5, "free": 7, "requested": 9, "form": 1,
    "core_details": {"kind": "full", "k": 80}, "core_depended_on": "nothing", "conditions": ["x"],
    "unconditional": False, "core_left_in_extractor": 2, "tombstones": ["0" * 64] * 4, "previous": "0" * 64,
    "environment": {}, "bytes_claim": "within 1.0e-09", "time": "yesterday", "model_before": "0" * 64,
    "duplicates_left": 3, "already_forgotten": 1, "records_before": 99, "core_tombstones": [], "heads": [],
    "earlier_tombstones": ["0" * 64],
    "reason": "because", "seconds": 0.0, "commitment_before": "1" * 64, "version": 5,
    "added": 4, "subject_tombstones": ["0" * 64], "class_weights": {"0" * 64: 2.0}, "weighted_records": True,
}  # fmt: skip


def test_every_field_of_a_receipt_can_be_forged_here():
    assert FORGERIES.keys() == {field.name for field in dataclasses.fields(Receipt)}


@pytest.mark.parametrize("name", [name for name in FORGERIES if name != "version"])
def test_a_receipt_with_anything_changed_is_false(name, here):
    receipt, bundle, retained = retrained()
    forged = replace(receipt, **{name: FORGERIES[name]})
    replayed = replay(forged, bundle, retained)
    assert (replayed.outcome, replayed.made_again, bool(replayed)) == ("the receipt is false", "nothing", False)
    assert replayed.contradictions


NOBODY_KNOWS = {
    "reason", "time", "seconds", "model_before", "commitment_before", "duplicates_left", "guarantee", "core_policy",
    "refit", "records_before", "core", "influential", "free", "requested", "already_forgotten", "core_tombstones",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FORGERIES if name not in NOBODY_KNOWS | {"version"}])
def test_also_where_the_operator_says_that_he_handed_it_out(name, here):
    """What can be known is compared with the model and the data, not with what the operator says of the receipt."""
    receipt, bundle, retained = retrained()
    replayed = replay(*handed_in(receipt, bundle, **{name: FORGERIES[name]}), retained)
    assert not replayed
    if name in ("model_after", "commitment_after"):  # as after another fit
        assert replayed.outcome == "superseded"
    else:
        assert replayed.outcome == "the receipt is false"
        assert replayed.contradictions


def test_what_nobody_can_compare_is_said(here):
    receipt, bundle, retained = retrained()
    said = " ".join(replay(receipt, bundle, retained).not_compared)
    assert "who asked, by which policy, and how many of the records were core or influential" in said
    assert "the state before the request" in said
    assert "when it was" in said


def test_classes_in_another_order_are_found(here):
    receipt, bundle, retained = retrained()
    heads = [receipt.heads[1], receipt.heads[0], *receipt.heads[2:]]
    replayed = replay(*handed_in(receipt, bundle, heads=heads), retained)
    assert replayed.contradictions == ["heads on the receipt is not what was found"]
    names = (bundle.classes[1], bundle.classes[0], *bundle.classes[2:])
    with pytest.raises(ValueError, match="damaged"):
        replay(receipt, replace(bundle, classes=names), retained)


def test_a_core_that_its_rule_does_not_give_is_found(here):
    """An operator who calls a chosen core one by hash."""
    receipt, bundle, retained = retrained()
    choice = replace(bundle.choice, ids=np.sort(retained.ids)[:40])
    replayed = replay(receipt, replace(bundle, choice=choice), retained)
    assert replayed.contradictions == ["the core is not the one that its rule gives"]


def test_forgotten_records_among_the_retained_ones_are_found(here):
    receipt, bundle, retained = retrained()
    from maxrr.unlearning.tombstones import Tombstone, id_hmac

    held = Tombstone(id_hmac(bundle.key, int(retained.ids[0])), b"0" * 32, b"0" * 32)
    replayed = replay(receipt, replace(bundle, tombstones=bundle.tombstones | {held}), retained)
    assert replayed.contradictions == ["1 of the retained records are among the forgotten ones"]
