"""The attack before records are forgotten, against models made by hand; after, it is the verification's."""

from itertools import product

import numpy as np
import pytest

from lab.control import RUNS, apart
from lab.parts import STUDIES
from lab.verification import METHODS, SCENARIOS, scenario
from maxrr import LinearSVM
from maxrr.svm import fit_platt
from tests.lab.problems import TINY, embedded, tiny_lab, with_ranking
from tests.lab.test_verification import claimed_unlearned, losses_by_hand


@pytest.mark.parametrize("method", METHODS)
def test_before_all_records_are_in_the_head_and_members_are_those_of_the_request(lab, measured, method):
    training, test, found = lab.training, lab.test, measured["control"]["pieces"]["before"]
    seen = training.select(lab.top(TINY.large)) if method == "MaxRR" else training
    for run, name in product(range(2), SCENARIOS):
        request = scenario(lab, name)
        gone = np.isin(training.ids, request.forgotten)
        X, queries = embedded(lab, seen, lab.seeds(2)[run])
        model = LinearSVM().fit(X, training.labels)
        sigmoids = fit_platt(model.decision_function(X), training.labels, model.classes_)
        losses = losses_by_hand(model, X, training.labels, sigmoids)
        others = losses_by_hand(model, queries, test.labels, sigmoids)
        claims = claimed_unlearned(losses[request.members].tolist(), others.tolist(), losses[gone].tolist())
        assert found[name][method][run] == pytest.approx(np.mean(claims))


def test_after_it_is_the_verification(measured):
    for name, method in product(SCENARIOS, METHODS):
        counts = measured["verification"]["pieces"][name]["claimed"]["retained"][method]
        share = sum(runs * count for runs, count in enumerate(counts)) / (sum(counts) * TINY.few)
        assert np.mean(measured["control"]["pieces"][name][method]) == pytest.approx(share)
        assert measured["control"]["cells"][f"{name}, {method}"]["claimed after"]["mean"] == pytest.approx(share)
    assert TINY.few <= RUNS


def test_told_apart():
    """Claims that are always right, that never change, and that are always wrong."""
    for before, after, right in (([0.0, 0.0], [1.0, 1.0], 1.0), ([0.7, 0.4], [0.7, 0.4], 0.5), ([1.0], [0.0], 0.0)):
        cells = apart(before, after)
        assert cells["told apart"].mean == pytest.approx(right)
        assert cells["claimed more after"].mean == pytest.approx(2.0 * right - 1.0)


def test_differences_are_paired_by_run():
    cell = apart([0.1, 0.5, 0.9], [0.2, 0.6, 1.0])["claimed more after"]
    assert (cell.mean, cell.stderr) == (pytest.approx(0.1), pytest.approx(0.0, abs=1e-12))


def test_it_goes_on_after_each_request(lab, measured, tmp_path, monkeypatch):
    other = with_ranking(tiny_lab(tmp_path), lab.ranking)
    pieces = measured["control"]["pieces"]
    results = other.results("control")
    there = {name: pieces[name] for name in ("before", "core20k")}
    results.write({"setting": results.setting, "made": {name: {"seconds": 0.0} for name in there}, "pieces": there})

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.control.answer", stop)
    with pytest.raises(KeyboardInterrupt):
        STUDIES["control"].measure(other)
    assert set(results.read()["cells"]) == {"core20k, MaxRR", "core20k, perfect"}
