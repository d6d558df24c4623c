"""The comparison on digits: pieces that go on, sets that are apart, methods that end where they should."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from lab.compare import measures, networks, questions, running
from lab.compare.exact import CORE, FROZEN, METHODS, Certified, Ridge, Sisa
from lab.compare.pieces import Pieces
from lab.compare.promises import Promises
from lab.compare.running import best, measure
from lab.compare.study import PROFILES, Study
from lab.compare.techniques import TECHNIQUES, technique_of
from lab.figures.compare import draw
from lab.figures.look import look
from lab.results import Clock, OutOfTimeError
from maxrr import LinearSVM
from maxrr.data import Dataset, load
from maxrr.nets import split, train
from maxrr.svm import ConvergenceError

CPU = torch.device("cpu")
SMOKE = PROFILES["smoke"]


@pytest.fixture(scope="module", autouse=True)
def five_classes():
    """Digits from 0 to 4: heads for ten classes took most of the time."""

    def few(side):
        rows = np.flatnonzero(side.labels < 5)
        return Dataset(side.inputs[rows], side.labels[rows], side.class_names[:5], side.ids[rows], name=side.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.compare.study.load", lambda data: tuple(map(few, load(data))))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all parts of smoke were measured: each request timed once, and with few swaps."""
    out = tmp_path_factory.mktemp("compare")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "TIMES", 1)
        patch.setattr(measures, "SWAPS", 19)
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
    assert len(rows) == 2 * (len(networks.CONTROLS) + len(SMOKE.a.techniques))
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


@pytest.mark.parametrize("part", ["c", "d"])
def test_settings_of_certified_removal_are_the_most_accurate_and_among_those_the_cheapest(folder, part):
    pieces = {piece["name"]: piece for piece in found(folder, part)}
    settings = pieces["settings certified removal"]
    tried = {tuple(one["settings"]): (one["accuracy"], -one["fits"]) for one in settings["tried"]}
    assert tuple(tried) == Certified.GRID
    assert tried[tuple(settings["chosen"])] == max(tried.values())
    fits = [piece["fits"] for piece in pieces.values() if piece.get("fits") is not None and "fit" in piece]
    assert len(fits) == 1
    assert fits[0] >= 1


def test_shards_of_sisa_are_trained_as_long_as_is_best(folder):
    settings = {piece["name"]: piece for piece in found(folder, "d")}["settings SISA"]
    accuracy = {one["settings"]: one["accuracy"] for one in settings["tried"]}
    assert tuple(accuracy) == Sisa.GRID
    assert accuracy[settings["chosen"]] == max(accuracy.values())
    work = Promises(SMOKE.d, 0, CPU, Pieces(folder, settings["setting"], CPU))
    bench = work.streaming.bench(0)
    assert bench.part == replace(bench.recipe, epochs=settings["chosen"] * bench.recipe.epochs)


def test_seconds_are_those_of_one_thread(tmp_path, monkeypatch):
    threads = []

    class Watched(Ridge):
        def __init__(self, *facts):
            threads.append(torch.get_num_threads())
            super().__init__(*facts)

        def forget(self, ids):
            threads.append(torch.get_num_threads())
            super().forget(ids)

    before = torch.get_num_threads()
    monkeypatch.setitem(METHODS, "ridge head", Watched)
    monkeypatch.setattr(Promises, "with_settings", lambda self, part, bench, records: bench)
    monkeypatch.setattr(Promises, "with_epochs", lambda self, bench, records: bench)
    work = Promises(SMOKE.d, 0, CPU, Pieces(tmp_path, {"profile": "smoke", "seed": 0}, CPU))
    torch.set_num_threads(2)
    try:
        work.try_stream("ridge head")
        assert torch.get_num_threads() == 2
        work.__dict__["public"] = work.streaming
        work.try_public("ridge head", 0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    requests = len(work.requests()) + work.plan.repeats
    assert threads == [1] * (2 * 2 + requests)  # each is fitted twice: also on what is left


def test_nothing_done_is_no_distance_from_itself_and_retraining_is_told_beside(folder):
    rows = {(piece["use"], piece["method"]): piece for piece in found(folder, "a") if "klom" in piece}
    for use in networks.USES:
        assert rows[use, networks.RETRAINING]["accuracy"]["test"] != rows[use, networks.NOTHING]["accuracy"]["test"]
    costs = {(piece["use"], piece["method"]): piece["request"] for piece in found(folder, "a") if "request" in piece}
    assert costs.keys() == rows.keys()
    assert costs[networks.ALONE, networks.NOTHING]["seconds"] < 0.01
    assert all(costs[use, networks.RETRAINING]["seconds"] > 0.01 for use in networks.USES)


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
    one = study(tmp_path)
    network, _ = networks.originals(one, networks.HEADS)
    (seen,) = networks.trained(one, networks.HEADS, "original", 1, one.core[:0])
    before = split(network)[0].state_dict()
    assert all(torch.equal(split(seen)[0].state_dict()[name], value) for name, value in before.items())
    before = {name: value.clone() for name, value in before.items()}
    networks.apply(one, networks.HEADS, technique_of("fine-tuning", {"lr": 0.0}), [network], one.core[:3])
    after = split(network)[0].state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    features = networks.embed(split(network)[0], one.training, device=CPU)
    heads = LinearSVM().fit(features, one.training.labels)
    assert np.allclose(network[-1].weight.detach().numpy(), heads.coef_, atol=1e-6)


def test_heads_on_small_features_are_the_same_in_other_units():
    X = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32)
    labels, units = X[:, :3].argmax(1), 32.0
    one, heads = questions.heads_on(X, labels), LinearSVM(C=units**-2.0).fit(X * units, labels)
    assert np.allclose(one.weights, heads.coef_ * units)
    assert np.allclose(one.biases, heads.intercept_)
    assert np.allclose(one.scores(X), heads.decision_function(X * units))


def test_where_heads_cannot_be_solved_a_model_says_nothing(monkeypatch):
    class Unsolved:
        def __init__(self, C):
            self.C = C

        def fit(self, X, y):
            raise ConvergenceError("not solved", "a")

    X, labels, rows = np.ones((90, 5), dtype=np.float32), np.arange(90) % 3, np.arange(90)
    sheet = questions.Sheet({"training": labels, "test": labels}, 3, rows[:9], rows[9:], rows[9:], rows)
    assert questions.answer([X, X], sheet)["test right"].mean() == pytest.approx(1 / 3)
    monkeypatch.setattr(questions, "LinearSVM", Unsolved)
    found, nothing = questions.answer([X, X], sheet), sheet.nothing()
    assert found.keys() == nothing.keys()
    assert all((found[name] == nothing[name]).all() for name in found)


def test_a_network_says_what_its_softmax_says(tmp_path):
    one = study(tmp_path)
    (network,) = networks.trained(one, networks.ALONE, "original", 1, one.core[:0])
    asked = questions.Questions(one, networks.ALONE, one.core[:5], one.sides[2])
    found = asked.answers([network])
    p = torch.tensor(networks.embed(network, one.sides[2], device=CPU)).double().softmax(1).numpy()
    true = p[np.arange(len(p)), one.sides[2].labels]
    assert np.allclose(found.margins["test"][0], np.log(true / (1.0 - true)), atol=1e-4)
    assert found.accuracy("test")[0] == (p.argmax(1) == one.sides[2].labels).mean()


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


@pytest.fixture
def audited(folder):
    """The stream with an audit at its end, whose settings were chosen before."""
    return Promises(replace(SMOKE.d, shadows=32), 0, CPU, Pieces(folder, SMOKE.setting("d", 0), CPU))


def test_the_audited_end_is_the_end_of_the_stream(audited, monkeypatch):
    """Certified removal ends elsewhere if all leave at once; methods that train for a request do not."""
    steps = {}

    class Watched(Certified):
        def forget(self, ids):
            steps.setdefault(self.seed, []).append(list(ids))
            super().forget(ids)

    monkeypatch.setitem(METHODS, "certified removal", Watched)
    audited.audit_end("certified removal")
    assert steps == {0: audited.requests()}


def test_the_end_of_a_stream_is_audited(audited, monkeypatch):
    monkeypatch.setattr("lab.compare.promises.FEWEST_TO_AUDIT", 19)
    said = audited.audit_end("certified removal")
    assert said["retrained"] + said["with"] == 32
    assert said["words"]


def test_the_best_are_those_nearest_to_retraining(tmp_path):
    pieces = Pieces(tmp_path, {"profile": "smoke", "seed": 0}, CPU)
    with pytest.raises(ValueError, match="part a first"):
        best(pieces, 2)
    for number, name in enumerate(TECHNIQUES):
        facts = {"method": name, "forget set": "random 5", "klom": {"forgotten": {"95th": abs(number - 3.1)}}}
        pieces.piece("a", name, lambda facts=facts: facts)
        whole = {**facts, "forget set": "one class", "klom": {"forgotten": {"95th": 99.0 - 10.0 * number}}}
        pieces.piece("a", f"{name} class", lambda whole=whole: whole)  # which does not count
    assert best(pieces, 2) == [list(TECHNIQUES)[3], list(TECHNIQUES)[4]]
    assert running.PARTS.keys() == set("abcd")


def test_the_figure_shows_every_technique(folder):
    costs = {piece["name"]: piece["request"] for piece in found(folder, "a") if "request" in piece}
    rows = [{**piece, "request": costs[f"seconds {piece['use']} {piece['method']}"]}
            for piece in found(folder, "a") if "klom" in piece]  # fmt: skip
    streams = [piece for piece in found(folder, "d") if "fit" in piece]
    for piece in rows:
        piece["request"]["seconds"] += 10.0 * (piece["use"] == questions.HEADS)
    with look():
        figure = draw({"mixed 10": rows, "again": rows}, {"stream": streams, "public": streams})
    *panels, stream, public = figure.axes
    assert len(panels) == 4
    assert {len(axes.lines) for axes in panels} == {len(SMOKE.a.techniques) + 4}  # three controls, one with a mark
    for axes in panels:  # seconds below exact heads may be more than alone
        marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() != "None"]
        assert max(marks) <= axes.get_xlim()[1]
    assert len(stream.texts) == len(public.texts) == len(METHODS)
