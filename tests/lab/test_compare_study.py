"""The comparison on digits: pieces that go on, sets that are apart, methods that end where they should."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from lab.compare import networks, running
from lab.compare.exact import CORE, FROZEN, METHODS, Certified
from lab.compare.pieces import Pieces
from lab.compare.promises import Promises
from lab.compare.running import best, measure
from lab.compare.study import PROFILES, Study
from lab.compare.techniques import TECHNIQUES, technique_of
from lab.figures.compare import draw
from lab.figures.look import look
from lab.results import Clock, OutOfTimeError
from maxrr import LinearSVM
from maxrr.nets import LeNet5, split, train

CPU = torch.device("cpu")
SMOKE = PROFILES["smoke"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all parts of smoke were measured."""
    out = tmp_path_factory.mktemp("compare")
    for part in "abcd":
        measure(part, "smoke", out, device="cpu")
    return out / "smoke"


def found(folder, part):
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{part}-*.json"))]


def measured_again(*_):
    raise AssertionError


def study(tmp_path, **changes):
    plan = replace(SMOKE.a, **changes)
    return Study("a", plan, 0, CPU, Pieces(tmp_path, {"profile": "smoke", "seed": 0}, CPU))


def test_all_is_there_and_nothing_is_measured_twice(folder, monkeypatch):
    rows = [piece for piece in found(folder, "a") if "klom" in piece]
    assert len(rows) == 2 * (2 + len(SMOKE.a.techniques))
    assert {piece["method"] for piece in found(folder, "d")} == set(METHODS)
    assert {piece["method"] for piece in found(folder, "c") if "kept" in piece} == set(METHODS)
    again = [(networks, "try_one"), (networks, "choose"), (Promises, "try_public"), (Promises, "try_stream")]
    for module, name in again:
        monkeypatch.setattr(module, name, measured_again)
    for part in "acd":
        measure(part, "smoke", folder.parent, device="cpu")
    with pytest.raises(ValueError, match="another profile or seed"):
        measure("d", "smoke", folder.parent, seed=1, device="cpu")
    for piece in rows:
        assert piece["made"].keys() >= {"command", "date", "machine", "seconds"}


def test_nothing_is_begun_that_may_end_too_late(tmp_path):
    clock = Clock(0.0)
    with pytest.raises(OutOfTimeError):  # the first piece may, the second may not
        measure("d", "smoke", tmp_path, device="cpu", clock=clock)
    assert len(found(tmp_path / "smoke", "d")) == 1


def test_methods_end_where_a_new_fit_ends(folder):
    away = {piece["method"]: piece["from a new fit"] for piece in found(folder, "d") if "fit" in piece}
    assert away["retraining"] == away["SISA"] == away[CORE] == 0.0
    assert max(away[FROZEN], away["ridge head"]) < 1e-9
    kept = {piece["method"]: piece["kept"] for piece in found(folder, "c") if "kept" in piece}
    assert kept["retraining"] == 0 < kept["ridge head"]


def test_nothing_done_is_no_distance_from_itself_and_retraining_is_told_beside(folder):
    rows = {(piece["use"], piece["method"]): piece for piece in found(folder, "a") if "klom" in piece}
    for use in networks.USES:
        assert rows[use, networks.RETRAINING]["accuracy"]["test"] != rows[use, networks.NOTHING]["accuracy"]["test"]
        assert rows[use, networks.RETRAINING]["request"]["seconds"] > 0.0


def test_sets_are_core_records_apart_from_those_that_settings_are_chosen_by(tmp_path):
    one = study(tmp_path, forget={"random 5": 5, "memorised 6": 6, "mixed 8": 8, "one class": 0})
    training, validation, test = one.sides
    assert not set(validation.ids) & (set(training.ids) | set(test.ids))
    scores = np.linspace(0.0, 1.0, len(training))
    sets = {name: one.forget_set(name, lambda: scores) for name in one.plan.forget}
    free = np.setdiff1d(one.core, one.to_tune)
    for name in ("random 5", "memorised 6", "mixed 8"):
        assert len(sets[name]) == len(set(sets[name])) == one.plan.forget[name]
        assert set(sets[name]) <= set(free)
    assert sets["memorised 6"].tolist() == free[-6:].tolist()
    assert len(set(sets["mixed 8"]) & set(free[-4:])) == 4
    assert set(training.select(sets["one class"]).labels) == {3}


def test_below_our_heads_the_technique_sees_what_a_core_policy_sees(tmp_path):
    """The last layer is the exact heads, and the extractor alone counts afterwards."""
    one, network = study(tmp_path), LeNet5((1, 8, 8), 10)
    before = split(network)[0].state_dict()
    networks.apply(one, networks.HEADS, technique_of("fine-tuning", {"lr": 0.0}), [network], one.core[:3])
    after = split(network)[0].state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    features = networks.embed(split(network)[0], one.training, device=CPU)
    heads = networks.fit(features, one.training.labels, CPU)
    assert np.allclose(network[-1].weight.detach().numpy(), heads.coef_, atol=1e-6)


def test_heads_on_small_features_are_the_same_in_other_units():
    X = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32)
    labels, units = X[:, :3].argmax(1), 32.0
    one = networks.fit(X, labels, CPU)
    heads = LinearSVM(C=units**-2.0).fit(X * units, labels)
    assert np.allclose(one.coef_, heads.coef_ * units)
    assert np.allclose(one.intercept_, heads.intercept_)
    assert np.allclose(one.decision_function(X), heads.decision_function(X * units))


@pytest.mark.long
def test_records_that_models_learn_by_heart_are_memorised(tmp_path, monkeypatch):
    one = study(tmp_path, memory=8)
    labels = one.training.labels.copy()
    labels[:8] = (labels[:8] + 5) % 10  # wrong ones are right only in models that saw them
    monkeypatch.setitem(one.__dict__, "sides", (replace(one.training, labels=labels), *one.sides[1:]))
    monkeypatch.setitem(one.__dict__, "plan", replace(one.plan, recipe=replace(one.plan.recipe, epochs=120)))
    scores = networks.memorised(one)
    assert scores[:8].mean() > scores[8:].mean() + 0.2


@pytest.mark.parametrize("use", networks.USES)
def test_retrained_models_never_had_the_records(tmp_path, use):
    """The yardstick: the network that training from its seed gives on all others that it may see."""
    one = study(tmp_path)
    gone = one.core[3:40]
    (made,) = networks.trained(one, use, "retrained", 1, gone)
    ids = one.training.ids if use == networks.ALONE else one.core
    rest = one.training.without(np.setdiff1d(one.training.ids, np.setdiff1d(ids, gone)))
    alone = train(one.network, rest, one.seeds("retrained", 1)[0], recipe=one.plan.recipe, device=CPU).network
    assert all(torch.equal(value, alone.state_dict()[name]) for name, value in made.state_dict().items())


@pytest.mark.parametrize("use", networks.USES)
def test_a_diverged_model_ends_no_piece(tmp_path, monkeypatch, use):
    def half(work):
        if work.seeds == (1,):
            work.stack.weights["0.weight"].data.fill_(np.nan)

    monkeypatch.setattr(networks, "technique_of", lambda name, settings: half)
    one = study(tmp_path)
    gone = one.forget_set("mixed 10", lambda: np.zeros(len(one.training)))
    piece = networks.try_one(one, use, "mixed 10", gone, "MSG", {})
    assert (piece["models"], piece["diverged"], piece["accuracy"]["test"][1]) == (2, 1, 0.0)
    assert piece["accuracy"]["test"][0] > 0.0
    assert np.isfinite(
        [piece["klom"]["forgotten"]["95th"], piece["features"]["auc"], *piece["claimed unlearned"]]
    ).all()
    chosen = networks.choose(one, use, "MSG")
    assert (chosen["chosen"], chosen["tried"][0]["distance"]) == ({}, None)


def test_the_audited_end_is_the_end_of_the_stream(tmp_path, monkeypatch):
    """Certified removal ends elsewhere if all leave at once; methods that train for a request do not."""
    steps = {}

    class Watched(Certified):
        def forget(self, ids):
            steps.setdefault(self.seed, []).append(list(ids))
            super().forget(ids)

    monkeypatch.setitem(METHODS, "certified removal", Watched)
    work = Promises(replace(SMOKE.d, shadows=32), 0, CPU, Pieces(tmp_path, {"profile": "smoke", "seed": 0}, CPU))
    _ = work.streaming
    work.audit_end("certified removal")
    assert steps == {0: work.requests()}


def test_the_end_of_a_stream_is_audited(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.compare.promises.FEWEST_TO_AUDIT", 19)
    plan = replace(SMOKE.d, shadows=32)
    said = Promises(plan, 0, CPU, Pieces(tmp_path, {"profile": "smoke", "seed": 0}, CPU)).audit_end("certified removal")
    assert said["retrained"] + said["with"] == 32
    assert said["words"]


def test_the_best_are_those_nearest_to_retraining(tmp_path):
    pieces = Pieces(tmp_path, {"profile": "smoke", "seed": 0}, CPU)
    with pytest.raises(ValueError, match="part a first"):
        best(pieces, 2)
    for number, name in enumerate(TECHNIQUES):
        facts = {"method": name, "klom": {"forgotten": {"95th": abs(number - 3.1)}}}
        pieces.piece("a", name, lambda facts=facts: facts)
    assert best(pieces, 2) == [list(TECHNIQUES)[3], list(TECHNIQUES)[4]]
    assert running.PARTS.keys() == set("abcd")


def test_the_figure_shows_every_technique(folder):
    rows = [piece for piece in found(folder, "a") if "klom" in piece]
    with look():
        figure = draw(rows, [piece for piece in found(folder, "d") if "fit" in piece], "mixed 10")
    alone, below, promised = figure.axes
    assert len(alone.lines) == len(below.lines) == len(SMOKE.a.techniques) + 3  # and two controls, one with a mark
    assert len(promised.texts) == len(METHODS)
