"""What receipts, plans and replays may say: the odd cases."""

import copy
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.core import FrequencyCore, HashCore
from maxrr.data import DataError
from maxrr.nets import MLP
from maxrr.unlearning import replay
from maxrr.unlearning.consistency import contradictions
from maxrr.unlearning.replaying import differences
from tests.unlearning.problems import core_of, fresh, table, table_model
from tests.unlearning.test_replaying import handed_in, retrained, told

CORE = HashCore(0.5, key="house")


def one_of_a_kind(labels):
    """A table of 22 records whose last one is the only one of its class."""
    data = table(count=22, classes=2)
    rng = np.random.default_rng(3)
    return rng.permutation(data.inputs), np.array([labels[code] for code in [0, 1] * 10 + [0, 2]])


@pytest.mark.parametrize("labels", [("ant", "bee", "cat"), (3, 5, 9)])
def test_replacing_the_only_record_of_a_class_keeps_the_class(labels):
    features, y = one_of_a_kind(labels)
    model = fresh(CORE, table(), MLP(5, 3, hidden=(6,))).fit(features, y)
    new = np.full(5, 0.5, dtype=np.float32)
    receipt = model.replace(21, new, core_policy="retrain")
    assert model.classes_.tolist() == sorted(labels)
    corrected = features.copy()
    corrected[21] = new
    never = fresh(CORE, table(), MLP(5, 3, hidden=(6,))).fit(corrected, y)
    assert receipt.unconditional
    assert (model.model_hash_, model.content_hash_) == (never.model_hash_, never.content_hash_)


def test_a_class_without_core_records_vanishes(here):
    """The extractor never knew it, and is the one of a fit on the rest."""
    data = table()
    outside = ~CORE.is_core(data.ids, data.subjects)
    labels = np.where(data.labels == 0, np.where(outside, 0, 1), data.labels)  # class 0 is all outside the core
    named = replace(data, labels=labels)
    model = fresh(CORE, data).fit(named)
    gone = data.ids[labels == 0]
    receipt = model.unlearn(gone, core_policy="keep-extractor")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-refit", True)
    never = fresh(CORE, data).fit(named.without(gone))
    assert model.model_hash_ == never.model_hash_
    assert replay(receipt, model.bundle(), named.without(gone))


def test_asking_again_does_not_make_an_approximate_answer_exact(here):
    model = table_model()
    ids = core_of(model)[:1]
    model.unlearn(ids, core_policy="keep-extractor")
    again = model.unlearn(ids, core_policy="keep-extractor")
    assert (again.guarantee, again.bytes_claim) == ("approximate-refit", "nothing")
    replayed = replay(again, model.bundle(), table().without(ids))
    assert (replayed.outcome, replayed.contradictions) == ("identical in part", [])


@pytest.mark.parametrize("by", ["ids", "subjects"])
@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
def test_an_earlier_version_of_a_record_counts_however_it_is_asked_for(by, policy, here):
    data = replace(table(), subjects=table().ids)  # everybody has one record
    model = fresh(CORE, data).fit(data)
    id_ = core_of(model)[0]
    model.replace(id_, np.zeros(5), core_policy="keep-extractor")
    receipt = model.unlearn(**{by: [id_]}, core_policy=policy)
    assert receipt.guarantee == ("exact-retrain" if policy == "retrain" else "approximate-refit")
    assert not list(contradictions(receipt))
    replayed = replay(receipt, model.bundle(), data.without([id_]))
    assert replayed.contradictions == []
    assert bool(replayed) == (policy == "retrain")


def test_a_record_cannot_be_replaced_by_itself():
    model = table_model()
    id_ = table().ids[0]
    with pytest.raises(DataError, match="just so already"):
        model.replace(id_, table().inputs[0], core_policy="keep-extractor")
    with pytest.raises(DataError, match="uint8"):
        model.replace(id_, np.zeros(5, dtype=np.uint8), core_policy="keep-extractor")


def test_swapped_classes_and_a_core_of_another_kind_are_found(here):
    receipt, bundle, retained = retrained()
    from maxrr.unlearning.commitment import ExtractorHash

    names = (bundle.classes[1], bundle.classes[0], *bundle.classes[2:])
    swapped = replace(bundle, classes=names)
    hash_ = ExtractorHash(bundle.facts.layers, swapped.extractor).with_heads(names, bundle.weights, bundle.intercepts)
    swapped = told(swapped, model_hash=hash_)
    replayed = replay(*handed_in(receipt, swapped), retained)
    assert replayed.outcome == "different"  # each head was given the name of another
    ranking = FrequencyCore(40)
    ranked = replace(bundle, blueprint=replace(bundle.blueprint, core=ranking))
    replayed = replay(*handed_in(receipt, ranked), retained)
    assert replayed.contradictions == ["what choosing the core depended on is not as its rule has it"]
    said = ranking._words(bundle.blueprint.network)
    words = {"depended_on": said.depended_on, "details": {"kind": "frequency", "runs": 10}}
    ranked = replace(ranked, choice=replace(bundle.choice, **words))
    replayed = replay(*handed_in(receipt, ranked), retained)
    assert not replayed
    assert "conditions" in " ".join(replayed.contradictions)


def test_buffers_that_are_not_stored_are_given_too():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(5, 4), nn.Linear(4, 3)
            self.register_buffer("scale", torch.tensor([1.0, 2.0, 0.5, 3.0, 1.5]), persistent=False)

        def forward(self, records):
            return self.last(torch.relu(self.first(records * self.scale)))

    model = fresh(CORE, table(), Scaled()).fit(table())
    assert "'scale'" in model.plan(core_of(model)[:1], core_policy="retrain").conditions[0]


def test_a_core_of_the_callers_own_is_a_condition():
    class ById:
        def is_core(self, ids):
            return ids % 2 == 0

        def choose(self, network, dataset, **_):
            from maxrr.core.choice import Choice

            ids = np.sort(dataset.ids[self.is_core(dataset.ids)])
            return Choice(ids, True, "ids decide", {"kind": "own", "k": len(ids)})

    model = fresh(ById(), table()).fit(table())
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    assert not receipt.unconditional
    assert "ids decide" in receipt.conditions[0]
    assert not list(differences(receipt, model.bundle(), table().select(model.bundle().ids)))


def test_values_are_compared_as_float32_whatever_they_are_near():
    from maxrr.data.hashes import value_hashes

    wide = np.array([[3.0000000000000004, 5.0], [1.1, 2.5]])
    assert np.array_equal(value_hashes(wide), value_hashes(wide.astype(np.float32)))


def test_of_forgotten_rows_not_even_the_place_is_known():
    model = table_model()
    ids = np.sort(table().ids)
    model.unlearn(ids[5:7], core_policy="keep-extractor")
    records = model._fitted.records
    gone = set(np.flatnonzero(~records.alive).tolist())
    assert not gone & set(records._living_order.tolist())
    assert [name for name in vars(records) if "order" in name] == ["_living_order"]


def test_copies_are_of_one_state():
    """While another thread erases records."""
    import threading

    data = table()
    model = fresh(CORE, data, epochs=1).fit(data)
    stop, copies = threading.Event(), []

    def copy_it():
        while not stop.is_set():
            copies.append(copy.deepcopy(model) if len(copies) % 2 else copy.copy(model))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=copy_it)
    thread.start()
    try:
        for id_ in np.sort(data.ids)[:40]:
            model.unlearn([id_], core_policy="keep-extractor")
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert len(copies) > 3
    for found in copies:
        records = found._fitted.records
        assert not (records.ids[records.alive] == 0).any()
        assert found.content_hash_ == data.select(records.ids[records.alive]).content_hash()


def test_forgotten_values_do_not_come_back_by_replace():
    model = table_model()
    one, other = table().ids[:2]
    gone = table().inputs[0].copy()
    model.unlearn([one], core_policy="keep-extractor")
    with pytest.raises(ValueError, match="exactly the values"):
        model.replace(other, gone, core_policy="keep-extractor")
    with pytest.warns(UserWarning, match="are let in"):
        model.replace(other, gone, allow_copies="twins", core_policy="keep-extractor")
    assert [override.reason for override in model._fitted.overrides] == ["twins"]
    model.replace(other, table().inputs[1], core_policy="keep-extractor")  # back to what it was
    model.replace(other, np.zeros(5), core_policy="keep-extractor")


def half_given():
    """A function that loads most rows of a weight from elsewhere."""
    network = MLP(5, 3, hidden=(12,))
    first = next(layer for layer in network.modules() if isinstance(layer, nn.Linear))
    with torch.no_grad():
        first.weight[:11] = torch.arange(55.0).reshape(11, 5) / 55.0
    return network


def test_a_part_of_a_weight_that_was_given_is_a_condition():
    model = fresh(CORE, table(), half_given).fit(table())
    assert len(model.plan(core_of(model)[:1], core_policy="retrain").conditions) == 1


def test_a_receipt_of_a_ranked_core_says_nothing_measured_on_the_records():
    model = fresh(FrequencyCore(40, runs=2), table()).fit(table())
    assert "worst_gap" in model.core_.details
    assert model.unlearn(table().ids[:1], core_policy="keep-extractor").core_details == {"kind": "frequency", "runs": 2}


def test_forgotten_values_in_columns_that_changed_places():
    data, names = table(), ("a", "b", "c", "d", "e")
    model = fresh(CORE, data, epochs=1).fit(replace(data, columns=names))
    model.unlearn(data.ids[:2], core_policy="keep-extractor")
    turned = replace(data, ids=data.ids + 1, inputs=data.inputs[:, ::-1].copy(), columns=names[::-1])
    with pytest.raises(ValueError, match="2 of the"):
        model.fit(turned)
