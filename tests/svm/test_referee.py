"""The referee itself: it finds the optimum that another exact solver finds, and notices false claims."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from maxrr import LinearSVM
from tests.cases import seeds
from tests.svm import exact_oracle, nasty
from tests.svm.problems import make
from tests.svm.referee import Tally, canonical, false_claims, optimum

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


@pytest.mark.parametrize("family", nasty.FAMILIES)
def test_it_proves_the_optimum_of_the_exact_oracle(family):
    """From multipliers rounded to float64; ties broken by rounding alone may leave it a gap, here in no case."""
    for seed in seeds(100, 8):
        X, y, C = nasty.problem(family, seed)
        exact = exact_oracle.solve(X, y, C)
        rows = np.array(sorted(exact.on | exact.inside))
        multipliers = np.array([float(exact.multipliers[row]) for row in rows])
        found = optimum(X, y, [Fraction(C)] * len(y), rows, multipliers)
        assert found is not None
        assert found.proved
        assert (found.w, found.b, found.margins) == (exact.w, exact.b, exact.margins)


def test_rounding():
    assert [canonical(Fraction(x), -100) for x in (0, 1, -1.5, 0.1)] == [0.0, 1.0, -1.5, 0.1]
    assert canonical(Fraction(1, 3), -100) == 1 / 3
    assert canonical(Fraction(1, 2**200), -100) == 0.0
    assert canonical(Fraction(-1, 2**200), -100).hex() == "0x0.0p+0"


def claims(problem):
    """A head of a solved problem, as the referee takes it."""
    model = problem.fit()
    caps = [Fraction(problem.C)] * len(problem.y)
    y = np.where(problem.y == 1, 1.0, -1.0)
    return {
        "X": problem.X, "y": y, "caps": caps, "w": model.coef_[0], "b": float(model.intercept_[0]),
        "certificate": model.certificate_[0], "rows": model.influential_[0], "multipliers": model.multipliers_[0],
    }  # fmt: skip


LIES = {
    "other bytes": lambda head: head | {"w": np.nextafter(head["w"], np.inf)},
    "other bias": lambda head: head | {"b": float(np.nextafter(head["b"], np.inf))},
    "too good to be true": lambda head: (
        head | {"certificate": replace(head["certificate"], weight_error=1e-30, error=1e-30)}
    ),
    "a sample left out": lambda head: head | {"rows": head["rows"][1:], "multipliers": head["multipliers"][1:]},
    "an idle sample": lambda head: (
        head
        | {
            "rows": np.sort(np.append(head["rows"], idle := np.setdiff1d(np.arange(60), head["rows"])[0])),
            "multipliers": np.insert(head["multipliers"], np.searchsorted(head["rows"], idle), 0.0),
        }
    ),
    "smaller multipliers": lambda head: head | {"multipliers": 0.999 * head["multipliers"]},
    "unbalanced multipliers": lambda head: head | {"multipliers": np.append(0.0, head["multipliers"][1:])},
    "miscounted": lambda head: head | {"certificate": replace(head["certificate"], on_margin=0)},
    "a wrong objective": lambda head: (
        head | {"certificate": replace(head["certificate"], primal=head["certificate"].primal * (1.0 + 1e-9))}
    ),
    "a sample more than there was": lambda head: (
        head
        | {
            "X": np.vstack([head["X"], head["X"][head["rows"][:1]]]),
            "y": np.append(head["y"], head["y"][head["rows"][0]]),
            "caps": [*head["caps"], head["caps"][0]],
        }
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_it_notices(lie):
    head = claims(make("well_behaved", 3, n=60, d=4, classes=2))
    assert list(false_claims(**head)) == []
    assert list(false_claims(**LIES[lie](head)))


def test_it_proves_every_ordinary_head():
    tally = Tally()
    for seed in seeds(0, 60):
        problem = make("rectified", seed, n=60, d=4, classes=3)
        tally.judge(LinearSVM(problem.C).fit(problem.X, problem.y), problem.X, problem.y, problem.C)
    assert tally.proved == tally.decided == tally.heads >= 15
