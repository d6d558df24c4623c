"""A model is its layers, the `state_dict()` of its extractor and its heads: what computes with more is refused."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from maxrr import MaxRR
from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore
from maxrr.errors import DataError
from maxrr.nets import Recipe
from maxrr.unlearning import replay
from maxrr.workspace import Workspace, WorkspaceError
from tests import hidden_networks as networks
from tests.nets.test_probe import EACH_TIME_ANOTHER, FINE, records
from tests.workspace.problems import given

CORES = {
    "hash": HashCore(0.5, key="house"),
    "shards": HashCore(0.9, key="house", shards=2),
    "full": FullCore(),
    "ranked": FrequencyCore(20, runs=2),
}
HIDDEN = [*EACH_TIME_ANOTHER, networks.MovedBuffer, networks.MovedNumber]


def refused(model):
    with pytest.raises(DataError, match=r"state_dict\(\) does not"):
        model.fit(records())
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
@pytest.mark.parametrize("kind", HIDDEN, ids=lambda kind: kind.__name__)
def test_a_fit_refuses_what_would_not_come_back(kind, core):
    for network in (kind, kind()):
        refused(MaxRR(network, core, epochs=2, device="cpu"))


@pytest.mark.parametrize("kind", EACH_TIME_ANOTHER, ids=lambda kind: kind.__name__)
def test_so_does_one_of_a_frozen_or_adopted_network(kind):
    refused(MaxRR(kind(), Frozen(whole=True)))
    refused(MaxRR.adopt(kind(), trained_on=records().ids[:20], train=Recipe(epochs=1)))


@pytest.mark.parametrize("kind", FINE, ids=lambda kind: kind.__name__)
def test_what_comes_back_is_fitted_forgets_and_opens_with_the_same_predictions(kind, tmp_path):
    training = records(120)
    model = MaxRR(kind, HashCore(0.5, key="house"), epochs=2, device="cpu")
    with Workspace.create(tmp_path / "ws", model, training) as workspace:
        given(workspace, training).model.unlearn(training.ids[:3], core_policy="retrain")
        before, hash_ = workspace.model.decision_function(training), workspace.model.model_hash_
    with Workspace.open(tmp_path / "ws", network=kind) as workspace:
        assert workspace.model.model_hash_ == hash_
        assert workspace.model.decision_function(training).tobytes() == before.tobytes()


def test_a_folder_does_not_open_with_a_network_that_computes_something_else(tmp_path):
    """Whatever that is: an activation, its code, or a number that is in no file."""
    with Workspace.create(
        tmp_path / "ws", MaxRR(networks.AttributeTable, FullCore(), epochs=1, device="cpu"), records()
    ):
        pass
    other, tanh = networks.AttributeTable(), networks.AttributeTable()
    other.places, tanh.activation = other.places + 0.01, torch.tanh
    for network, why in ((other, "other layers"), (tanh, "other layers"), (networks.Plain, "other layers")):
        with pytest.raises(WorkspaceError, match=why):
            Workspace.open(tmp_path / "ws", network=network)
    Workspace.open(tmp_path / "ws", network=networks.AttributeTable).close()
    Workspace.open(tmp_path / "ws").close()  # what needs no network goes on without


def test_elsewhere_features_may_be_rounded_otherwise(tmp_path, monkeypatch):
    with Workspace.create(
        tmp_path / "ws", MaxRR(networks.AttributeTable, FullCore(), epochs=1, device="cpu"), records()
    ):
        pass
    near = networks.AttributeTable()
    near.places = near.places + 1e-6
    with pytest.raises(WorkspaceError, match="other layers"):
        Workspace.open(tmp_path / "ws", network=near)
    monkeypatch.setattr("maxrr.unlearning.blueprint.Blueprint.is_at_home", False)
    Workspace.open(tmp_path / "ws", network=near).close()


def test_relu_and_leaky_relu_with_equal_weights_have_two_hashes():
    start = networks.plain_start()
    with torch.no_grad():
        start[0].bias += 100.0  # nothing is below zero: both give the same features
    one, other = (
        MaxRR(nn.Sequential(copy.deepcopy(start[0]), activation), Frozen()).fit(records())
        for activation in (nn.ReLU(), nn.LeakyReLU())
    )
    assert one.heads_.coef_.tobytes() == other.heads_.coef_.tobytes()
    assert one.model_hash_ != other.model_hash_


@pytest.mark.usefixtures("here")
def test_a_replay_with_another_network_is_not_identical():
    model = MaxRR(networks.AttributeTable, HashCore(0.5, key="house"), epochs=1, device="cpu").fit(records())
    receipt = model.unlearn(records().ids[:2], core_policy="retrain")
    bundle = model.bundle()
    assert replay(receipt, bundle, records()).outcome == "identical"
    other = networks.AttributeTable()
    other.places = other.places + 0.5
    forged = replace(bundle, blueprint=replace(bundle.blueprint, network=other))
    assert replay(receipt, forged, records()).outcome in ("different", "false")


@pytest.mark.usefixtures("here")
def test_a_replay_of_a_frozen_extractor_says_where_it_is_another():
    model = MaxRR(networks.plain_start(), Frozen()).fit(records())
    receipt = model.unlearn(records().ids[:2])
    bundle = model.bundle()
    forged = replace(bundle, probe=bundle.probe + 1.0)
    assert replay(receipt, bundle, records()).outcome == "identical in part"
    found = replay(receipt, forged, records())
    assert found.outcome == "the receipt is false"
    assert any("other features" in why for why in found.contradictions)


def test_a_technique_that_leaves_something_beside_the_weights_is_refused():
    model = MaxRR(networks.AttributeTable, FullCore(), epochs=1, device="cpu").fit(records())
    before = model.model_hash_

    def moves(extractor, *_):
        extractor.body.places = extractor.body.places + 1
        return extractor

    with pytest.raises(DataError, match="other layers"):
        model.unlearn(records().ids[:2], core_policy=moves)
    assert model.model_hash_ == before
    receipt = model.unlearn(records().ids[:2], core_policy=lambda extractor, *_: extractor)
    assert receipt.guarantee == "approximate-refit"


class Placed(networks.Table):
    """A frozen extractor with a table that is not persistent."""

    def forward(self, x):
        return torch.relu(self.first(self.before(x)))


def test_a_frozen_network_whose_table_is_another_does_not_open(tmp_path):
    """Its buffer is not persistent: no file has it, and the layers name it by its hash."""
    network, training = Placed(), records(120)
    network.places = network.places + 0.5
    same = copy.deepcopy(network)
    with Workspace.create(tmp_path / "ws", MaxRR(network, Frozen(whole=True)), training) as workspace:
        hash_ = workspace.model.model_hash_
    network.places = network.places - 0.5
    with pytest.raises(WorkspaceError, match="other layers"):
        Workspace.open(tmp_path / "ws", network=network)
    with Workspace.open(tmp_path / "ws", network=same) as workspace:
        assert workspace.model.model_hash_ == hash_


def test_a_network_that_was_used_before_is_known_again_when_it_is_new(tmp_path):
    used = networks.Counting()
    used(torch.randn(5, 8))
    with Workspace.create(tmp_path / "ws", MaxRR(used, FullCore(), epochs=1, device="cpu"), records()):
        pass
    Workspace.open(tmp_path / "ws", network=networks.Counting()).close()
