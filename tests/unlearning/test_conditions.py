"""What a receipt may claim of networks that were not trained here, and of what is not exact."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.core import Frozen, HashCore
from maxrr.nets import MLP
from maxrr.unlearning import Bundle, replay
from maxrr.unlearning.consistency import contradictions
from maxrr.unlearning.receipts import in_words
from tests.unlearning.problems import core_of, fresh, kinds, parts_of, table, table_model

CORE = HashCore(0.5, key="house")


# What was not trained here


def pretrained():
    """A network whose first layer learned from all records, and is frozen."""
    torch.manual_seed(0)
    network = MLP(5, 3, hidden=(12, 6))
    first = next(layer for layer in network.modules() if isinstance(layer, nn.Linear))
    first.requires_grad_(False)
    return network


OLD = {}


def old_weights():
    """A function that makes a network of weights that it has from elsewhere."""
    network = MLP(5, 3, hidden=(12,))
    if not OLD:
        OLD.update({name: torch.randn_like(value) for name, value in network.state_dict().items()})
    network.load_state_dict(OLD)
    return network


@pytest.mark.parametrize("network", [pretrained(), old_weights])
def test_weights_that_were_given_are_a_condition(network, here):
    model = fresh(CORE, table(), network, lr=1e-300 if network is old_weights else 5e-3).fit(table())
    ids = core_of(model)[:2]
    assert len(model.plan(ids, core_policy="retrain").conditions) == 1
    receipt = model.unlearn(ids, core_policy="retrain")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", False)
    (condition,) = receipt.conditions
    assert "and neither" in condition
    assert any("exact on 1 condition" in sentence for sentence in in_words(receipt))
    replayed = replay(receipt, model.bundle(), table().without(ids))
    assert (replayed.outcome, replayed.comparison, bool(replayed)) == ("identical in part", "identical", False)
    assert condition in replayed.not_covered


def test_a_network_that_is_drawn_and_trained_here_has_no_condition():
    model = table_model()
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    assert (receipt.unconditional, receipt.conditions) == (True, [])


def test_an_encoding_that_was_drafted_from_the_records_is_a_condition(here, tmp_path):
    drafted = replace(table(), drafted=3)
    model = fresh(CORE, table(), MLP(5, 3, hidden=(12,))).fit(drafted)
    ids = core_of(model)[:1]
    plan = model.plan(ids, core_policy="retrain")
    receipt = model.unlearn(ids, core_policy="retrain")
    (condition,) = receipt.conditions
    assert plan.conditions == [condition]
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", False)
    assert [int(number) for number in re.findall(r"\d+", condition)] == [3]
    model.bundle().save(tmp_path / "model.bundle")
    bundle = Bundle.load(tmp_path / "model.bundle")
    assert bundle.conditions == [condition]
    replayed = replay(receipt, bundle, table().without(ids))
    assert (replayed.comparison, condition in replayed.not_covered) == ("identical", True)
    assert model.refit()._fitted.conditions == [condition]
    assert model.fit(table().without(ids))._fitted.conditions == []


def test_a_frozen_extractor_is_exact_on_its_owners_word():
    model = fresh(Frozen(), table(), nn.Sequential(nn.Linear(5, 12), nn.Tanh())).fit(table())
    receipt = model.unlearn(table().ids[:2], core_policy="keep-extractor")
    assert receipt.guarantee.startswith("exact")
    assert not receipt.unconditional
    assert receipt.conditions == [receipt.core_depended_on]
    assert "of whoever" in receipt.conditions[0]


def test_a_proof_of_a_network_of_the_callers_says_that_its_code_was_run(here):
    model = fresh(CORE, table(), nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))).fit(table())
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    replayed = replay(receipt, model.bundle(), table().without(core_of(table_model())[:1]))
    assert replayed
    assert any("networks" in said for said in replayed.not_compared)


def test_what_a_caller_does_to_the_extractor_does_not_reach_the_model():
    model = table_model()
    before = model.decision_function(table())
    model.extractor_.register_forward_hook(lambda module, given, result: 2.0 * result)
    with torch.no_grad():
        next(model.extractor_.parameters()).zero_()
    assert np.array_equal(model.decision_function(table()), before)


# Approximate is not exact


def test_an_approximate_answer_claims_nothing_of_bytes():
    model = table_model()
    receipt = model.unlearn(core_of(model)[:2], core_policy="keep-extractor")
    assert (receipt.guarantee, receipt.bytes_claim, receipt.unconditional) == ("approximate-refit", "nothing", False)
    assert receipt.conditions == []
    said = " ".join(in_words(receipt))
    assert "not exact" in said
    assert "No bytes" in said
    assert "depends on its id" not in said
    forged = replace(receipt, bytes_claim="identical")
    assert any("an approximate answer claims 'nothing'" in wrong for wrong in contradictions(forged))


def test_head_and_then_retrain_of_the_same_records_trains_without_them():
    model, never = table_model(), None
    ids = core_of(model)[:3]
    model.unlearn(ids, core_policy="keep-extractor")
    again = model.unlearn(ids, core_policy="keep-extractor")
    assert (again.guarantee, again.unconditional) == ("approximate-refit", False)
    assert "it learned" in again.reason
    assert model.plan(ids, core_policy="retrain").trains == len(core_of(model))
    receipt = model.unlearn(ids, core_policy="retrain")
    assert (receipt.guarantee, receipt.already_forgotten, receipt.core) == ("exact-retrain", 3, 0)
    assert (receipt.unconditional, receipt.core_left_in_extractor) == (True, 0)
    assert not list(contradictions(receipt))
    never = fresh(CORE, table()).fit(table().without(ids))
    assert parts_of(model) == parts_of(never)
    assert model.unlearn(ids, core_policy="retrain").guarantee == "exact-untouched"


def test_what_remains_from_earlier_requests_is_a_condition_of_later_ones():
    model = table_model()
    core, influential, _ = kinds(model, table())
    model.unlearn(core[:2], core_policy="keep-extractor")
    receipt = model.unlearn(influential[:1])
    assert (receipt.guarantee, receipt.unconditional) == ("exact-refit", False)
    assert receipt.conditions == ["the extractor was trained on 2 forgotten core records, and keeps what it learned"]
