"""A replay compares all that a receipt says."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from maxrr import MaxRR
from maxrr.core import FrequencyCore, FullCore, HashCore, MiddleCore
from maxrr.core.choice import Choice
from maxrr.unlearning import Receipt, replay
from maxrr.unlearning.receipts import Loss, lasting_details
from maxrr.unlearning.tombstones import Forgotten, subject_hmac
from tests.unlearning.problems import core_of, fresh, kinds, table
from tests.unlearning.test_replaying import handed_in, retrained

CORE = HashCore(0.5, key="house")


FORGERIES = {
    "guarantee": "exact-refit", "core_policy": "keep-extractor", "C": 3.0, "seed": 99,
    "recipe": {"epochs": 1, "batch_size": 32, "lr": 5e-3}, "model_after": "0" * 64, "commitment_after": "0" * 64,
    "records_after": 70, "number": 2, "core": 0, "influential": 5, "free": 7, "requested": 9, "form": 1,
    "core_details": {"kind": "full", "k": 80}, "core_depended_on": "nothing", "conditions": ["x"],
    "unconditional": False, "core_left_in_extractor": 2, "tombstones": ["0" * 64] * 4, "previous": "0" * 64,
    "environment": {}, "bytes_claim": "within 1.0e-09", "time": "yesterday", "model_before": "0" * 64,
    "duplicates_left": 3, "already_forgotten": 1, "records_before": 99, "core_tombstones": [], "heads": [],
    "earlier_tombstones": ["0" * 64],
    "reason": "because", "seconds": 0.0, "commitment_before": "1" * 64, "version": 5,
    "added": 4, "subject_tombstones": ["0" * 64], "class_weights": {"0" * 64: 2.0}, "weighted_records": True,
    "losses": [Loss("20261117T200000.000000Z", "fire", "", 0, "", 0)], "group": [1, 2],
    "ticket": "0" * 64, "received": "2026-11-01", "due": "2026-12-01",
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
    "records_before", "core", "influential", "free", "requested", "already_forgotten", "core_tombstones",
    "losses", "group", "ticket", "received", "due",
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
    assert "many of the" in said
    assert "the state" in said
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


def test_people_whose_records_are_there_are_not_gone(here):
    """An operator who says of somebody that no record is left, in the receipt and in the bundle."""
    receipt, bundle, retained = retrained()
    gone = {subject_hmac(bundle.key, person): Forgotten(1, receipt.time) for person in (retained.subjects[0].item(),)}
    said = {"subject_tombstones": list(gone)}
    replayed = replay(*handed_in(receipt, replace(bundle, people=gone), **said), retained)
    assert replayed.outcome == "the receipt is false"
    assert "no record" in " ".join(replayed.contradictions)


def test_people_are_compared_and_whom_the_forgotten_were_about_is_not(here):
    model = fresh(CORE, table()).fit(table())
    person = table().subjects[table().rows(kinds(model, table())[1][:1])].item()
    receipt = model.unlearn(subjects=[person], core_policy="retrain")
    replayed = replay(receipt, model.bundle(), table().without(table().of_subjects([person])))
    assert replayed.outcome == "identical"
    assert any("whom the forgotten ones were about" in said for said in replayed.not_compared)
    of_nobody = replace(table(), subjects=None)
    model = fresh(CORE, of_nobody).fit(of_nobody)
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    gone = {"0" * 64: Forgotten(1, receipt.time)}
    forged = replace(model.bundle(), people=gone)
    replayed = replay(*handed_in(receipt, forged, subject_tombstones=list(gone)), of_nobody)
    assert any("the records say of nobody" in said for said in replayed.contradictions)


@pytest.mark.parametrize("core", [HashCore(0.5, key="house"), FullCore(), FrequencyCore(40, runs=2), MiddleCore(40, 2)])
def test_what_a_core_of_ours_depended_on_is_what_its_rule_says(core, here):
    model = fresh(core, table()).fit(table())
    receipt, bundle = model.unlearn(core_of(model)[:1], core_policy="retrain"), model.bundle()
    assert replay(receipt, bundle, table()).outcome == "identical"
    for false in ({"depended_on": "no record at all"}, {"details": {"kind": "none", "fraction": 0.01}}):
        choice = replace(bundle.choice, **false)
        forged = replace(bundle, choice=choice)
        said = {"core_depended_on": choice.depended_on, "core_details": lasting_details(choice.details)}
        exact = {"conditions": forged.conditions, "unconditional": not forged.conditions}
        replayed = replay(*handed_in(receipt, forged, **said, **exact), table())
        assert replayed.contradictions == ["what choosing the core depended on is not as its rule has it"]


class EverySecond:
    """A core of the caller's own."""

    def choose(self, network, dataset, **_):
        return Choice(np.sort(dataset.ids)[::2], False, "every second one", {"kind": "own"})


def test_the_words_for_a_core_of_ones_own_are_not_compared(here):
    model = fresh(EverySecond(), table()).fit(table())
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    replayed = replay(receipt, model.bundle(), table())
    assert any("rules for the core" in said for said in replayed.not_compared)


def added():
    """A request that added records, some of which the rule makes core: receipt, bundle, all records."""
    records = table()
    model = fresh(CORE, records).fit(records.without(records.ids[-6:]))
    receipt = model.add(records.select(records.ids[-6:]))
    return receipt, model.bundle(), records


def test_what_waits_for_the_core_is_what_its_rule_says(here):
    receipt, bundle, records = added()
    assert 0 < len(bundle.waiting) < 6
    replayed = replay(receipt, bundle, records)
    assert replayed.outcome == "identical"
    assert any("which records were added when" in said for said in replayed.not_compared)
    wrong = {
        "records wait for the core that its rule does not make core": records.ids[-6:].tolist(),
        "the core is not the one that its rule gives": bundle.waiting[:-1],
    }
    for why, waiting in wrong.items():
        forged = replace(bundle, waiting=tuple(sorted(waiting)))
        replayed = replay(*handed_in(receipt, forged, conditions=forged.conditions), records)
        assert why in replayed.contradictions
    with pytest.raises(ValueError, match="not among those"):
        replay(*handed_in(receipt, replace(bundle, waiting=(10**9,))), records)


def test_a_refit_in_the_same_bytes_does_not_make_an_addition_false(here):
    records = table()
    model = MaxRR.on_features().fit(records.without(records.ids[-6:]))
    receipt = model.add(records.select(records.ids[-6:]))
    assert replay(receipt, model.refit().bundle(), records).outcome == "identical"


def test_weights_of_classes_without_records_are_not_compared(here):
    records = replace(table(), class_names=(*table().class_names, "never"))
    model = fresh(CORE, records, class_weight={"never": 5.0}).fit(records)
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    assert any("weights of classes" in said for said in replay(receipt, model.bundle(), table()).not_compared)
