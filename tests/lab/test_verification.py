"""Claims and agreement, against the paper's words followed one model and one record at a time."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.agreement import at_least
from lab.verification import METHODS, SCENARIOS, Scenario, answer, answer_and_judge, scenario, tally_claims
from maxrr import LinearSVM
from maxrr.svm import fit_platt
from tests.lab.problems import TINY, embedded, tiny_lab, with_ranking

MANY = ("core20k", "noncore20k")


def claimed_unlearned(members, others, forgotten):
    """`alg:mia`, every threshold in turn: the best one tells most members from other records."""
    best, chosen = -math.inf, None
    for threshold in sorted({*members, *others, math.inf}):
        gain = sum(loss < threshold for loss in members) / len(members)
        gain -= sum(loss < threshold for loss in others) / len(others)
        if gain > best + 1e-12:
            best, chosen = gain, threshold
    return [loss >= chosen for loss in forgotten]


def losses_by_hand(model, features, labels, fitted_to):
    p = fitted_to.probabilities(model.decision_function(features))
    return -np.log(p[np.arange(len(labels)), labels])


@pytest.fixture(scope="module")
def claims(lab):
    """For each large scenario, method and run: accuracy, and which forgotten records are claimed unlearned."""
    training, test, found = lab.training, lab.test, {}
    for name, run in product(MANY, range(2)):
        request = scenario(lab, name)
        gone = np.isin(training.ids, request.forgotten)
        core = np.isin(training.ids, lab.ranking.top(TINY.large))
        members = ~gone if name == "core20k" else ~gone & ~core
        seen = {"MaxRR": training.select(training.ids[core]), "perfect": training.without(request.forgotten)}
        for method in METHODS:
            X, queries = embedded(lab, seen[method], lab.seeds(2)[run])
            model = LinearSVM().fit(X[~gone], training.labels[~gone])
            sigmoids = fit_platt(model.decision_function(X[~gone]), training.labels[~gone], model.classes_)
            losses = losses_by_hand(model, X, training.labels, sigmoids)
            others = losses_by_hand(model, queries, test.labels, sigmoids)
            found[name, method, run] = (
                model.score(queries, test.labels),
                np.array(claimed_unlearned(losses[members].tolist(), others.tolist(), losses[gone].tolist())),
            )
    return found


@pytest.mark.parametrize("name", MANY)
def test_accuracies_and_claims_are_those_of_plain_models(measured, claims, name):
    found = measured["verification"]["pieces"][name]
    for method in METHODS:
        assert found["accuracy"][method] == [claims[name, method, run][0] for run in range(2)]
        counts = sum(claims[name, method, run][1].astype(int) for run in range(2))
        assert found["claimed"]["retained"][method] == [int(np.sum(counts == runs)) for runs in range(3)]
    assert 0 < sum(claims[name, "MaxRR", 0][1]) < TINY.many  # there is something to tell apart


@pytest.mark.parametrize("name", MANY)
def test_agreement_is_paired_by_run(measured, claims, name):
    """Records that both methods claim unlearned in one run of two, but not in the same one, agree in no run."""
    same, close = [0, 0, 0], [0, 0, 0]
    for record in range(TINY.many):
        ours, theirs = ([bool(claims[name, method, run][1][record]) for run in range(2)] for method in METHODS)
        same[sum(one == other for one, other in zip(ours, theirs, strict=True))] += 1
        close[2 - abs(sum(ours) - sum(theirs))] += 1
    found = measured["verification"]["pieces"][name]
    assert found["same"]["retained"] == same
    assert found["close"]["retained"] == close
    cells = measured["agreement"]["cells"][name]
    assert cells["same in all runs"]["mean"] == same[2] / TINY.many
    assert cells["as often in all runs"]["mean"] == close[2] / TINY.many


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any))
def test_at_least(counts):
    records = [runs for runs, count in enumerate(counts) for _ in range(count)]
    wanted = [sum(runs >= least for runs in records) / len(records) for least in range(len(counts))]
    assert at_least(counts) == pytest.approx(wanted, abs=1e-12)


def test_requests(lab):
    found = {name: scenario(lab, name) for name in SCENARIOS}
    core, everybody = set(lab.ranking.top(TINY.large).tolist()), set(lab.training.ids.tolist())
    asked = {name: set(one.forgotten.tolist()) for name, one in found.items()}
    members = {name: set(lab.training.ids[one.members].tolist()) for name, one in found.items()}
    assert {name: len(ids) for name, ids in asked.items()} == {
        "core20k": TINY.many, "core2k": TINY.some, "noncore20k": TINY.many, "noncore2k": TINY.some
    }  # fmt: skip
    assert asked["core20k"] == core
    assert asked["core2k"] < core
    for name in ("core20k", "core2k"):
        assert members[name] == everybody - asked[name]
    for name in ("noncore20k", "noncore2k"):
        assert not asked[name] & core
        assert members[name] == everybody - asked[name] - core


def test_requests_are_the_same_in_all_runs_and_others_for_another_seed(lab, tmp_path):
    other = with_ranking(tiny_lab(tmp_path, seed=8), lab.ranking)
    for name in SCENARIOS:
        again = scenario(lab, name)
        assert np.array_equal(again.forgotten, scenario(lab, name).forgotten)
        assert np.array_equal(again.forgotten, scenario(other, name).forgotten) == (name == "core20k")


def test_one_vs_one_has_claims_of_both_its_variants(lab, tmp_path):
    other = with_ranking(tiny_lab(tmp_path, heads="one-vs-one"), lab.ranking)
    seeds = other.seeds(2)
    found = answer_and_judge(other, seeds, scenario(other, "core20k"))
    assert list(found["claimed"]) == ["retained", "everything"]
    for counts in (*found["claimed"]["retained"].values(), found["same"]["everything"], found["close"]["retained"]):
        assert (len(counts), sum(counts)) == (3, TINY.many)


def test_shares_sum_to_one(measured):
    curves = measured["verification"]["share_by_runs_claimed_unlearned"]
    for name, method in product(SCENARIOS, METHODS):
        assert sum(curves[name][method]["ours"]) == pytest.approx(1.0)
    assert set(measured["verification"]["variants"]) == set(
        measured["verification"]["pieces"]["core20k"]["claimed"]
    )  # fmt: skip
    assert set(measured["verification"]["pieces"]["core2k"]["claimed"]) == {"retained"}


def test_other_members(lab, measured):
    """The first row is the verification's own; then only retained core records set the threshold, or only others."""
    pieces = measured["members"]["pieces"]["core2k"]
    verified = measured["verification"]["pieces"]["core2k"]
    assert pieces["all retained records"] == {name: verified[name]["retained"] for name in ("claimed", "same", "close")}
    request = scenario(lab, "core2k")
    core = lab.mask(lab.top(TINY.large)) & ~lab.mask(request.forgotten)
    models = answer(lab, lab.seeds(TINY.few), request)
    for name, members in (("retained core records", core), ("records outside the core", request.members & ~core)):
        by_hand = tally_claims(lab, models, Scenario("core2k", request.forgotten, members), "retained")
        assert pieces[name] == by_hand
    assert pieces["retained core records"] != pieces["all retained records"]
    assert not np.array_equal(core, request.members)
