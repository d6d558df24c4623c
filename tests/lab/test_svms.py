"""The same networks under other SVMs, beside plain fits of them."""

from dataclasses import replace

import numpy as np
import pytest

from lab.heads import solve_one_vs_one, worst_gap
from lab.svms import PENALTIES, SCHEMES
from maxrr import LinearSVM
from tests.lab.problems import TINY, embedded


@pytest.mark.parametrize("C", PENALTIES)
def test_penalties_by_hand(lab, measured, C):
    X, queries = embedded(lab, lab.training, lab.seeds(1)[0])
    found = {kind: measured["svms"]["pieces"]["penalties"][kind][f"{C:g}"] for kind in SCHEMES}
    model = LinearSVM(C=C).fit(X, lab.training.labels)
    assert found["one-vs-rest"]["support"] == [len(model.support_)]
    assert found["one-vs-rest"]["accuracy"] == [model.score(queries, lab.test.labels)]
    head = solve_one_vs_one(X, lab.training.labels, None, C)
    assert found["one-vs-one"]["support"] == [head.influential.sum()]
    assert found["one-vs-one"]["accuracy"] == [np.mean(head.choose(head.scores(queries)) == lab.test.labels)]


def test_the_profiles_own_kind_gives_the_verifications_own_verdicts(measured):
    verified = measured["verification"]["pieces"]["core20k"]
    assert TINY.heads == "one-vs-rest"
    assert measured["svms"]["pieces"]["verification"]["one-vs-rest"] == {
        name: verified[name]["retained"] for name in ("claimed", "same", "close")
    }
    for kind in SCHEMES:
        claimed = measured["svms"]["pieces"]["verification"][kind]["claimed"]["MaxRR"]
        cell = measured["svms"]["cells"][f"{kind}, C = 1"]["claimed in all runs, MaxRR"]
        assert cell["mean"] == claimed[-1] / TINY.many


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # the labels are drawn
def test_nothing_is_counted_of_an_svm_that_is_not_solved():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3
    certificates = LinearSVM().fit(X, y).certificate_
    assert 0.0 <= worst_gap(certificates) < 1e-8
    with pytest.raises(ValueError, match="not solved"):
        worst_gap([*certificates, replace(certificates[0], decided=False, error=1e-7)])
