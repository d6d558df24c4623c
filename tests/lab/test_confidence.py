"""Probabilities of pairs coupled as a slow minimisation does, and sigmoids fitted to what each variant says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from lab.confidence import OF_SCHEME, couple, fit_pairs, losses
from lab.heads import pairs, solve_one_vs_one, solve_one_vs_rest
from maxrr.svm import PlattScaling, fit_platt
from tests.lab.test_heads import problem

SIGMOID = PlattScaling(a=np.array([-1.0]), b=np.zeros(1), centre=np.zeros(1))  # so that a score is a logit
SOLVE = {"one-vs-rest": solve_one_vs_rest, "one-vs-one": solve_one_vs_one}


def least(scores):
    """The point of the simplex with the least Σᵢⱼ (rⱼᵢpᵢ − rᵢⱼpⱼ)², searched for one step at a time."""
    count = next(count for count in range(2, 20) if len(pairs(range(count))) == len(scores))
    r = np.zeros((count, count))
    for score, (one, other) in zip(scores, pairs(range(count)), strict=True):
        r[other, one], r[one, other] = expit(score), expit(-score)

    def objective(p):
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(count) for j in range(count) if i != j)

    found = minimize(
        objective, np.full(count, 1.0 / count), method="SLSQP", bounds=[(0.0, 1.0)] * count,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0}, options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
def test_coupled_is_the_minimiser(classes):
    columns = len(pairs(range(classes)))
    scores = 2.0 * np.random.default_rng(classes).normal(size=(5, columns))
    found = couple([SIGMOID] * columns, scores)
    np.testing.assert_allclose(found, [least(row) for row in scores], atol=2e-5)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-8.0, 0.0), min_size=2, max_size=6))
def test_pairs_that_agree_give_the_probabilities_they_come_from(logits):
    p = np.exp(logits) / np.exp(logits).sum()
    scores = [[np.log(p[other] / p[one]) for one, other in pairs(range(len(p)))]]
    np.testing.assert_allclose(couple([SIGMOID] * len(scores[0]), np.array(scores))[0], p, rtol=1e-6, atol=1e-9)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e4, 1e4), min_size=6, max_size=6))
def test_coupled_rows_are_probabilities_whatever_the_scores(scores):
    found = couple([SIGMOID] * 6, np.array([scores]))
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found >= 0.0).all()


@pytest.fixture(scope="module", params=SOLVE)
def judged(request):
    """A head, scores of training and test records, their labels, and who was retained."""
    (X, y), (queries, truth) = problem(1), problem(2, count=60)
    retained = np.random.default_rng(3).random(len(y)) < 0.7
    head = SOLVE[request.param](X, y, retained)
    return request.param, head, (head.scores(X), head.scores(queries)), (y, truth), retained


def by_hand(kind, classes, fitted_to, labels, scores, normalised=True):
    """Probabilities (records × classes) from sigmoids that were fitted to these scores."""
    if kind == "one-vs-one":
        return couple(fit_pairs(fitted_to, labels, classes), scores)
    scaling = fit_platt(fitted_to, labels, classes)
    sigmoids = 1.0 / (1.0 + np.exp(scaling.a * (scores - scaling.centre) + scaling.b))
    return sigmoids / sigmoids.sum(1, keepdims=True) if normalised else sigmoids


@pytest.mark.parametrize(
    ("judged", "variant"), [(kind, variant) for kind in SOLVE for variant in OF_SCHEME[kind]], indirect=["judged"]
)
def test_variants_are_fitted_to_what_they_say(judged, variant):
    kind, head, scores, labels, retained = judged
    fitted_to = {
        "retained": (scores[0][retained], labels[0][retained]),
        "unnormalised": (scores[0][retained], labels[0][retained]),
        "everything": (scores[0], labels[0]),
        "test": (scores[1], labels[1]),
    }
    found = losses(variant, head, scores, labels, retained)
    for side in (0, 1):
        if variant == "softmax":
            p = np.exp(scores[side]) / np.exp(scores[side]).sum(1, keepdims=True)
        else:
            p = by_hand(kind, head.classes, *fitted_to[variant], scores[side], variant != "unnormalised")
        own = p[labels[side][:, None] == head.classes]
        np.testing.assert_allclose(found[side], -np.log(own), rtol=1e-9, atol=1e-12)


def test_variants_differ(judged):
    kind, head, scores, labels, retained = judged
    first = {losses(variant, head, scores, labels, retained)[0].tobytes() for variant in OF_SCHEME[kind]}
    assert len(first) == len(OF_SCHEME[kind])


def test_a_pairs_sigmoid_knows_only_its_two_classes():
    X, y = problem(4)
    head = solve_one_vs_one(X, y, None)
    scores = head.scores(X)
    for column, (one, other) in enumerate(pairs(range(len(head.classes)))):
        rows = np.isin(y, head.classes[[one, other]])
        wanted = fit_platt(scores[rows, column], y[rows] == head.classes[other], [False, True])
        found = fit_pairs(scores, y, head.classes)[column]
        assert (found.a, found.b, found.centre) == (wanted.a, wanted.b, wanted.centre)
