"""The start for graphics processors, run here on the processor: the same bytes at the end, wherever it leads."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given

from maxrr import LinearSVM
from maxrr.svm.arrays import on_accelerator
from maxrr.svm.cuda import newton as newton_cuda
from maxrr.svm.cuda import start as start_cuda
from maxrr.svm.problem import Penalties, Samples
from maxrr.svm.search import newton
from maxrr.svm.validation import sizes
from tests.cases import examples, some, thinned
from tests.svm.problems import FAMILIES, Problem, assert_equal, make, problems

pytestmark = [
    pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning"),  # some of these have no weights
    pytest.mark.usefixtures("tensors_on_a_device"),
]


def fit(problem, scale=1.0):
    return LinearSVM(problem.C).fit(torch.tensor(scale * problem.X), problem.y)


def samples_of(problem):
    _, codes = np.unique(problem.y, return_inverse=True)
    X = torch.tensor(problem.X, dtype=torch.float64)
    return Samples(X, *sizes(X), codes, codes >= 0, Penalties(problem.C, np.ones(len(codes)), np.ones(len(codes))))


def test_tensors_on_the_processor_take_the_other_path():
    assert not on_accelerator(torch.zeros(1))
    assert not on_accelerator(np.zeros(1))
    assert on_accelerator(torch.zeros(1, device="meta"))


@pytest.mark.parametrize("C", some(1, [1.0, 1e-3, 1e3]))
@pytest.mark.parametrize("family", thinned(2, FAMILIES))
def test_same_bytes_as_on_the_processor(family, C):
    for seed, classes in some(1, [(1, 4), (0, 2)]):
        problem = make(family, seed, n=60, d=4, classes=classes, C=C)
        model, other = fit(problem), problem.fit()
        assert_equal(model, other, problem.X)
        assert all(certificate.solved for certificate in model.certificate_)


@examples(25)
@given(problems())
def test_same_bytes_on_any_problem(problem):
    assert_equal(fit(problem), problem.fit(), problem.X)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_scale_of_features_does_not_matter(scale):
    problem = make("well_behaved", 3, n=300, d=5, classes=3)
    other = LinearSVM(problem.C).fit(scale * problem.X, problem.y)
    assert_equal(fit(problem, scale), other, scale * problem.X)


@pytest.mark.parametrize("limit", ["ENOUGH", "MOST", "MOST_STEPS"])
def test_thinned_or_cut_short_it_is_a_start_all_the_same(limit, monkeypatch):
    where = newton_cuda if limit == "MOST_STEPS" else start_cuda
    monkeypatch.setattr(where, limit, {"ENOUGH": 200, "MOST": 10, "MOST_STEPS": 3}[limit])
    problem = make("rectified", 5, n=3000, d=8, classes=4)
    model, other = fit(problem), problem.fit()
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert np.array_equal(model.support_, other.support_)


def test_it_ends_near_the_solution():
    """Otherwise it is no use: the solver should find the partition in one round, without another pass than that."""
    problem = make("well_behaved", 7, n=4000, d=10, classes=3)
    model = fit(problem)
    assert model._fitted.solution.work.passes <= 4
    guess = start_cuda.guess_run(samples_of(problem), [0, 1, 2])
    assert np.max(np.abs(guess.w - model.coef_)) <= 0.01 * np.max(np.abs(model.coef_))


@pytest.mark.parametrize("seed", range(3))
def test_with_few_samples_for_a_direction_it_ends_near_the_solution_too(seed, monkeypatch):
    """Some samples are unlike others: few of these give a rough direction, and put them far from where they belong."""
    monkeypatch.setattr(start_cuda, "ENOUGH", 400)
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, 3000)
    X = random.normal(size=(3000, 30)) + 0.5 * random.normal(size=(3, 30))[y]
    odd = np.flatnonzero(random.random(3000) < 0.05)
    X[odd, random.integers(0, 30, len(odd))] += 8.0 * random.normal(size=len(odd))
    for pair in combinations(range(3), 2):
        among = np.isin(y, pair)
        some, classes = X[among], (y[among] == pair[1]).astype(int)
        samples = samples_of(Problem("odd", seed, (len(some), 30, 2), 1.0, some, classes))
        (guess,) = start_cuda.guess_runs(samples, [samples.X], [(None, 1)])
        weights = LinearSVM().fit(some, classes).coef_
        assert np.max(np.abs(guess.w - weights)) <= 0.01 * np.max(np.abs(weights))


def test_a_nonsensical_guess_is_only_slow(monkeypatch):
    problem = make("well_behaved", 8, n=200, d=4, classes=3)
    monkeypatch.setattr(start_cuda, "minimise", lambda rows, heads, narrowest: heads)
    assert_equal(fit(problem), problem.fit(), problem.X)


@pytest.mark.parametrize("seed", [467962143, 34122934])
def test_where_a_guess_leads_astray_the_heads_start_without_it(seed):
    """Features of size 1e6: multipliers are a tiny part of C, and smoothings as narrow as the guess's lose them."""
    C, size = {467962143: (117.5272432673618, (2000, 4, 4)), 34122934: (0.02331995362301096, (2000, 8, 3))}[seed]
    problem = make("scaled_up", seed, *size, C=C)
    model, other = fit(problem), problem.fit()
    for ours, theirs in zip(model.certificate_, other.certificate_, strict=True):
        assert ours.solved or not theirs.solved


def test_erased_samples_leave_no_trace():
    """A class that arrives after a deletion needs a new head, from scratch, over the samples that are left."""
    problem = make("well_behaved", 9, n=120, d=4, classes=3)
    old, new = np.flatnonzero(problem.y < 2), np.flatnonzero(problem.y == 2)
    model = LinearSVM().fit(torch.tensor(problem.X[old]), problem.y[old])
    model.forget(np.arange(0, 40, 3))
    model.insert(torch.tensor(problem.X[new[:3]]), problem.y[new[:3]])
    assert model._fitted.solution.work.cold_solves == 2  # the new class, and the one that shared a head before
    model.insert(torch.tensor(problem.X[new[3:]]), problem.y[new[3:]])
    assert model._fitted.solution.work.cold_solves == 0  # where many samples change, all heads begin where they were
    rows = np.concatenate([np.delete(old, np.arange(0, 40, 3)), new])
    assert_equal(model, problem.fit_on(rows), problem.X)


@pytest.mark.parametrize(("family", "seed"), thinned(2, [(family, seed) for family in FAMILIES for seed in (2, 3)]))
def test_many_samples_leave_and_come_back(family, seed):
    problem = make(family, seed, n=150, d=5, classes=4)
    model, rng = fit(problem), np.random.default_rng(seed)
    for _ in range(2):
        rows = np.sort(rng.choice(len(problem.y), len(problem.y) // 3, replace=False))
        rows = rows[model._fitted.solution.samples.held[rows]]
        model.forget(rows)
    held = model._rows
    assert_equal(model, problem.fit_on(held), problem.X)
    gone = np.setdiff1d(np.arange(len(problem.y)), held)
    model.insert(torch.tensor(problem.X[gone]), problem.y[gone])
    assert_equal(model, problem.fit_on(np.concatenate([held, gone])), problem.X)


def test_heads_are_resumed_in_few_steps(monkeypatch):
    """All at once, and nearer to where they will be than a fit from scratch begins."""
    problem = make("rectified", 5, n=3000, d=20, classes=4)
    steps, step = [], newton_cuda.step
    monkeypatch.setattr(newton_cuda, "step", lambda *arguments: steps.append(1) or step(*arguments))
    model = fit(problem)
    cold = len(steps)
    rows = np.random.default_rng(0).choice(model.support_, 100, replace=False)
    after = model._without(rows)
    assert after._fitted.solution.work.cold_solves == 0
    assert 0 < len(steps) - cold < cold
    assert_equal(after, problem.fit_on(np.setdiff1d(np.arange(3000), rows)), problem.X)


def test_line_search_agrees_with_that_of_one_head():
    rng = np.random.default_rng(0)
    raised, change, cap = rng.normal(size=(5, 300)), rng.normal(size=(5, 300)) + 0.3, np.full(300, 1.0)
    curvature = rng.uniform(0.1, 2.0, (5, 1))
    offset = -rng.uniform(0.0, 5.0, (5, 1))
    slope = offset - (np.clip(raised, 0.0, 1.0) * change).sum(1, keepdims=True)
    slope[4], offset[4] = 1.0, offset[4] + 1.0 - slope[4]  # the last does not descend
    parts = [torch.tensor(part) for part in (raised, np.tile(cap, (5, 1)), 2.0 * change, change)]
    found = newton_cuda.line_search(
        *parts, slope=torch.tensor(slope), offset=torch.tensor(offset), curvature=torch.tensor(curvature)
    )
    for head in range(5):
        numbers = {"offset": float(offset[head, 0]), "curvature": float(curvature[head, 0])}
        expected = newton.line_search(
            raised[head], cap, 2.0, change[head], change[head], float(slope[head, 0]), **numbers
        )
        # Both end where the slope is a hundredth of the first; the chord of the last gap does so, too.
        assert float(found[head, 0]) == pytest.approx(expected, rel=0.03, abs=1e-12)
