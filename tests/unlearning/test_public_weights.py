"""Models that start from public weights: requests against a fresh fit, what files keep, and what nothing may keep."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from maxrr import MaxRR, Workspace
from maxrr.core import Frozen, FullCore, HashCore, MiddleCore
from maxrr.data import Dataset
from maxrr.errors import DataError, NetworkMissing, OtherWeights
from maxrr.nets import MLP, Recipe, runs, split
from maxrr.nets.initial_weights import DrawnAnewWarning
from maxrr.nets.public_weights import hash_of_weights
from maxrr.unlearning import Bundle, replay
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.consistency import contradictions
from tests.unlearning import public_network
from tests.unlearning.problems import digits, parts_of
from tests.unlearning.public_network import drawing_encoder, encoder, write_weights
from tests.unlearning.trainings import by_adamw

NAME = "Encoder, made up"
FINE_TUNING = Recipe(
    2, 16, 2e-2, optimiser="adamw", schedule="cosine", warm_up=0.2, body_lr=5e-3, label_smoothing=0.1,
    augment=("flip", "shift:1"),
)  # fmt: skip
CORE = HashCore(0.5, key="house")


@pytest.fixture(autouse=True)
def weights_file(tmp_path, monkeypatch):
    """The file that the network loads."""
    file = tmp_path / "weights.pt"
    write_weights(file)
    monkeypatch.setattr(public_network, "FILE", file)
    return file


def model(core=CORE, network=encoder, train=FINE_TUNING, start=f"given:{NAME}", **settings):
    return MaxRR(network, core, start=start, train=train, seed=5, device="cpu", **settings)


def bytes_of(extractor):
    return {name: value.numpy().tobytes() for name, value in extractor.state_dict().items()}


def test_ten_lines_for_a_network_with_a_weights_file(here):
    training = digits(110)
    model = MaxRR(encoder, HashCore(0.2, key="house"), start="given:Encoder", train=Recipe(2, body_lr=1e-4))
    model.fit(training)
    ids = model.ids_of("core")[:2]
    receipt = model.unlearn(ids, core_policy="retrain")
    assert receipt.guarantee == "exact-retrain"
    assert replay(receipt, model, training).outcome == "identical"


# Requests against a fresh fit


CASES = {
    "a recipe": {},
    "another recipe": {"train": Recipe(2, 16, batch_norm="kept", precision="bfloat16", frozen="network.stem")},
    "a function": {"train": by_adamw},
    "every record": {"core": FullCore()},
    "shards": {"core": HashCore(0.6, key="house", shards=2)},
}


@pytest.mark.parametrize("case", CASES)
def test_forgetting_core_records_is_a_fit_without_them(case):
    training, settings = digits(110), CASES[case]
    changed = model(**settings).fit(training)
    ids = changed.ids_of("core")[[0, 5, 9]]
    before = bytes_of(changed.extractor_)
    receipt = changed.unlearn(ids, core_policy="retrain")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", False)
    anew = model(**settings).fit(training.without(ids))
    assert parts_of(changed) == parts_of(anew)
    assert bytes_of(changed.extractor_) != before


def test_a_ranked_core_ranks_networks_that_start_so(tmp_path):
    training = digits(110)
    chosen = model(MiddleCore(60, runs=2)).fit(training, folder=tmp_path / "runs")
    again = model(MiddleCore(60, runs=2)).fit(training, folder=tmp_path / "runs")
    assert parts_of(chosen) == parts_of(again)
    drawn = model(MiddleCore(60, runs=2), start="seed", train=Recipe(1)).fit(training)
    assert drawn.core_.ids.tolist() != chosen.core_.ids.tolist()
    write_weights(public_network.FILE, seed=1)
    with pytest.raises(ValueError, match="start"):
        model(MiddleCore(60, runs=2)).fit(training, folder=tmp_path / "runs")


def test_models_to_compare_with_start_from_the_same_weights():
    """Those of audits: at a rate that moves nothing, extractors of all seeds are the given one."""
    still = Recipe(1, 64, lr=1e-30, batch_norm="kept")
    fitted = model(train=still).fit(digits(110))
    expected = bytes_of(split(encoder())[0])
    extractors = fitted._fitted.blueprint.extractors(digits(110), [1, 2], "cpu")
    assert all(bytes_of(extractor) == expected for extractor in [fitted.extractor_, *extractors])


def test_shards_that_cannot_be_trained_keep_the_given_weights():
    some = digits(110)
    core = HashCore(1.0, key="house", shards=12)
    few = some.select(some.ids[:14])
    with pytest.warns(UserWarning, match="shards"):
        fitted = model(core).fit(few)
    expected = split(encoder())[0].state_dict()
    untrained = fitted._fitted.untrained
    assert untrained
    for shard in untrained:
        found = fitted.extractor_.parts[shard].state_dict()
        assert all(torch.equal(found[name], value) for name, value in expected.items())


# What a record would leave behind


def with_a_strange_record():
    """Dark pictures of two classes, and one record, core, as bright as can be: alone in a class of its own."""
    rng = np.random.default_rng(0)
    labels = np.append(np.arange(60) % 2, 2)
    inputs = rng.integers(0, 60, (61, 1, 8, 8)).astype(np.uint8)
    inputs[:60, :, :4] += (labels[:60] * 60).astype(np.uint8)[:, None, None, None]
    inputs[60] = 255
    return Dataset(inputs, labels, ("dark", "darker", "strange"), np.arange(100, 161))


def watched(monkeypatch, work):
    """What optimisers hold when training is done, the last layer's weights among it, as bytes."""
    optimisers, make = [], runs.optimiser_of
    monkeypatch.setattr(runs, "optimiser_of", lambda *given: optimisers.append(make(*given)) or optimisers[-1])
    result = work()
    monkeypatch.setattr(runs, "optimiser_of", make)
    return result, [
        [part.detach().numpy().tobytes() for part in (each.mean, each.square, each.steps, each.weights)]
        for each in optimisers
    ]


def test_nothing_of_a_forgotten_record_stays(monkeypatch):
    training, strange = with_a_strange_record(), 160
    alone = training.without([strange])
    with_it, states_with = watched(monkeypatch, lambda: model(FullCore()).fit(training))
    before = bytes_of(with_it.extractor_)
    _, states_after = watched(monkeypatch, lambda: with_it.unlearn(strange, core_policy="retrain"))
    without, states_without = watched(monkeypatch, lambda: model(FullCore()).fit(alone))
    after = bytes_of(with_it.extractor_)

    statistics = [name for name in after if "running" in name]
    assert statistics
    assert all(before[name] != after[name] for name in statistics)
    assert after == bytes_of(without.extractor_)
    assert with_it.heads_.coef_.tobytes() == without.heads_.coef_.tobytes()
    assert states_after == states_without
    body, last = zip(states_with, states_without, strict=True)
    assert all(one != other for one, other in zip(*body, strict=True) if len(one) > 4)  # but the number of steps
    assert len(last[0][3]) * 2 == len(last[1][3]) * 3  # outputs for three classes, and for two
    assert with_it.classes_.tolist() == ["dark", "darker"]


def test_the_first_last_layer_depends_on_the_classes_of_the_core_alone(monkeypatch):
    """As it is drawn, before the first step."""
    training = with_a_strange_record()
    first, draw = [], runs.groups_of

    def looked_at(network, recipe):
        first.append(network.network.classifier.weight.detach().clone())
        return draw(network, recipe)

    monkeypatch.setattr(runs, "groups_of", looked_at)
    for ids in ([160], [160, 100, 103]):
        model(FullCore()).fit(training.without(ids))
    assert torch.equal(*first)
    assert first[0].shape == (2, 72)


# What is said of the weights, and where


def test_their_name_and_hash_are_on_receipts_and_in_files(tmp_path):
    training = digits(110)
    expected = {"name": NAME, "sha256": hash_of_weights(encoder())}
    fitted = model().fit(training)
    receipt = fitted.unlearn(fitted.ids_of("free")[:1])
    assert receipt.recipe["start"] == expected
    (condition,) = receipt.conditions
    assert NAME in condition
    assert expected["sha256"] in condition
    assert fitted.plan(fitted.ids_of("free")[:1]).conditions == [condition]
    fitted.bundle().save(tmp_path / "bundle")
    assert Bundle.load(tmp_path / "bundle", network=encoder).facts.recipe["start"] == expected
    with Workspace.create(tmp_path / "ws", model(), training) as workspace:
        assert workspace.status().conditions == [condition]
        assert workspace.model.start == f"given:{NAME}"


def test_a_frozen_extractor_may_be_named():
    fitted = MaxRR(split(encoder())[0], Frozen(), start=f"given:{NAME}", device="cpu").fit(digits(110))
    whole = hash_of_weights(split(encoder())[0], whole=True)
    receipt = fitted.unlearn(fitted.ids_of("free")[:1])
    assert receipt.recipe["start"] == {"name": NAME, "sha256": whole}
    assert len(receipt.conditions) == 2


def test_a_workspace_goes_on_from_the_same_weights(tmp_path, here):
    training = digits(110)
    with Workspace.create(tmp_path / "ws", model(), training) as workspace:
        core = workspace.model.ids_of("core")
    with Workspace.open(tmp_path / "ws", network=encoder, records=lambda: training) as workspace:
        receipt = workspace.model.unlearn(core[:2], core_policy="retrain")
        assert parts_of(workspace.model) == parts_of(model().fit(training.without(core[:2])))
        assert replay(receipt, workspace.model, training).outcome == "identical"
        before = parts_of(workspace.model)
        workspace.model.refit()
        assert parts_of(workspace.model) == before
    with Workspace.open(tmp_path / "ws") as workspace:  # without the network: all that needs none
        assert workspace.model.start == f"given:{NAME}"
        free = workspace.model.ids_of("free")[:1]
        assert workspace.model.unlearn(free).recipe["start"]["name"] == NAME


def test_other_weights_are_refused_on_opening(tmp_path):
    training = digits(110)
    fitted = model().fit(training)
    fitted.bundle().save(tmp_path / "bundle")
    Workspace.create(tmp_path / "ws", model(), training).close()
    write_weights(public_network.FILE, seed=1)
    with pytest.raises(OtherWeights):
        Workspace.open(tmp_path / "ws", network=encoder)
    with pytest.raises(OtherWeights):
        Bundle.load(tmp_path / "bundle", network=encoder)
    with pytest.raises(OtherWeights):  # the file was exchanged while the model lives
        fitted.unlearn(fitted.ids_of("core")[:1], core_policy="retrain")


def test_a_module_of_this_library_is_not_made_by_its_name(tmp_path):
    """Its weights are not in its name."""
    training = digits(110)
    network = MLP(64, 10, hidden=(40,))
    Workspace.create(tmp_path / "ws", model(network=network, train=Recipe(1)), training).close()
    with Workspace.open(tmp_path / "ws") as workspace, pytest.raises(NetworkMissing):
        workspace.model.predict(training)
    with Workspace.open(tmp_path / "ws", network=network) as workspace:
        assert len(workspace.model.predict(training)) == 110
    with pytest.raises(OtherWeights):
        Workspace.open(tmp_path / "ws", network=MLP(64, 10, hidden=(40,)))


def test_weights_that_are_given_and_not_said_to_be():
    trained = encoder()
    with pytest.warns(DrawnAnewWarning, match="start='given'"):
        drawn = model(network=trained, start="seed", train=Recipe(1)).fit(digits(110))
    assert drawn._fitted.conditions == []
    found = model(start="seed", train=Recipe(1)).fit(digits(110))  # a function that loads them
    assert len(found._fitted.conditions) == 1
    assert found._fitted.blueprint.start is None


@pytest.mark.parametrize("observed", ["same", "3 of 4 weights and buffers differed"])
def test_what_two_runs_of_a_recipe_were_seen_to_be(observed, tmp_path, monkeypatch):
    """As on CUDA, where it is looked at."""
    training = digits(110)
    watched_as = lambda blueprint, *_: replace(blueprint, run_twice=observed)  # noqa: E731
    monkeypatch.setattr(Blueprint, "watched", watched_as)
    fitted = model().fit(training)
    differs = observed != "same"
    free, core = fitted.ids_of("free"), fitted.ids_of("core")
    receipt = fitted.unlearn(free[:1])
    assert receipt.bytes_claim == "identical"
    receipt = fitted.unlearn(core[:1], core_policy="retrain")
    assert receipt.recipe["run_twice"] == observed
    assert receipt.bytes_claim == ("retrained from scratch without the records" if differs else "identical")
    assert len(receipt.conditions) == 1 + differs
    assert list(contradictions(receipt)) == []
    fitted.bundle().save(tmp_path / "bundle")
    stored = Bundle.load(tmp_path / "bundle", network=encoder)
    assert stored.blueprint.run_twice == observed
    assert stored.conditions == receipt.conditions


def test_on_the_cpu_nothing_is_run_twice():
    fitted = model().fit(digits(110))
    assert fitted._fitted.blueprint.run_twice == ""
    assert "run_twice" not in fitted.unlearn(fitted.ids_of("free")[:1]).recipe


@pytest.mark.parametrize("start", ["pretrained", "seed:0", None])
def test_starts_that_are_none(start):
    with pytest.raises(DataError):
        model(start=start).fit(digits(110))


def test_what_cannot_be_a_start():
    with pytest.raises(DataError):
        model(network=drawing_encoder).fit(digits(110))
    adopted = MaxRR.adopt(encoder(), trained_on=digits(110).ids[:60], train=Recipe(1), device="cpu")
    with pytest.raises(DataError):
        adopted.set_params(start="given").fit(digits(110))
