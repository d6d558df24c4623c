"""Samples and classes that weigh: the same answers as other solvers, as repeated samples, and as a fit from scratch."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.svm import SVC

from maxrr import LinearSVM
from maxrr.parallel.engine import InProcess
from maxrr.svm.exact import fallback
from maxrr.svm.problem import Samples, weigh
from maxrr.svm.search.start import start_heads
from maxrr.svm.validation import sizes
from tests.cases import examples, seeds
from tests.svm import exact_oracle, nasty
from tests.svm.oracle_run import weights as nasty_weights
from tests.svm.oracles import with_clarabel
from tests.svm.problems import FAMILIES, UNSCALED, assert_equal, decided, make, problems, snapshot
from tests.svm.test_certificate import assert_within, signs_of_heads
from tests.svm.test_snapshot import again

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


def weights_of(model):
    """What each sample counts."""
    return model._fitted.solution.samples.penalties.weights[model._rows]


def drawn(problem, seed=0, power=3.0):
    """Weights from 1e-3 to 1e3."""
    return 10.0 ** np.random.default_rng([problem.seed, seed]).uniform(-power, power, len(problem.y))


def fit(problem, weights, rows=slice(None), **given):
    return LinearSVM(problem.C, **given).fit(problem.X[rows], problem.y[rows], sample_weight=weights[rows])


def bytes_of(model):
    return model.coef_.tobytes(), model.intercept_.tobytes(), model.classes_.tolist()


# What they mean


@examples(40)
@given(problems(most=30), st.integers(0, 2**32 - 1))
def test_whole_weights_are_repeated_samples(problem, seed):
    """The two problems have the same exact answer, whatever C, and so the same bytes."""
    times = np.random.default_rng(seed).integers(1, 5, len(problem.y))
    weighted = fit(problem, times)
    repeated = LinearSVM(problem.C).fit(np.repeat(problem.X, times, axis=0), np.repeat(problem.y, times))
    assert decided(weighted, repeated)
    assert bytes_of(weighted) == bytes_of(repeated)


@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_count_for_the_samples_of_a_class_in_every_head(classes):
    problem = make("well_behaved", 3, n=80, d=4, classes=classes)
    by_class, own = {0: 5.0, 1: 0.3}, drawn(problem, power=1.0)
    factor = np.array([by_class.get(label, 1.0) for label in problem.y])
    model = LinearSVM(problem.C, class_weight=by_class).fit(problem.X, problem.y, sample_weight=own)
    assert bytes_of(model) == bytes_of(fit(problem, own * factor))
    assert weights_of(model).tolist() == own.tolist()
    assert weights_of(LinearSVM(class_weight=by_class).fit(problem.X, problem.y)).tolist() == [1.0] * 80


def test_weights_of_one_are_none():
    problem = make("rectified", 1, n=60)
    ones = np.ones(len(problem.y))
    assert snapshot(fit(problem, ones)) == snapshot(problem.fit())
    assert snapshot(fit(problem, ones, class_weight={0: 1.0, 1: 1, 2: np.float32(1.0)})) == snapshot(problem.fit())


@examples(40)
@given(problems(most=40), st.data())
def test_samples_without_weight_shape_nothing(problem, data):
    none = data.draw(st.lists(st.sampled_from(range(len(problem.y))), min_size=1, max_size=10, unique=True))
    rest = np.delete(np.arange(len(problem.y)), none)
    assume(len(np.unique(problem.y[rest])) >= 2)
    weights = drawn(problem)
    weights[none] = 0.0
    model = fit(problem, weights)
    assert_equal(model, fit(problem, weights, rest), problem.X)
    assert not np.isin(none, model.support_).any()
    assert model._rows.tolist() == list(range(len(problem.y)))
    model.forget(none)
    assert model._fitted.solution.work.passes == 0
    assert model._rows.tolist() == rest.tolist()
    assert_equal(model, fit(problem, weights, rest), problem.X)


def test_the_error_is_that_of_samples_without_weight_too():
    """Their decision values are looked at like all others. They may be the longest, by far."""
    rng = np.random.default_rng(5)
    y = np.arange(24) % 3
    X = rng.normal(size=(24, 2)) + y[:, None]
    X[[3, 4, 5]] *= 1e6
    weights = np.where(np.isin(np.arange(24), [3, 4, 5]), 0.0, 1.0)
    model = LinearSVM().fit(X, y, sample_weight=weights)
    counted = weights > 0.0
    for label, w, b, found in zip((0, 1, 2), model.coef_, model.intercept_, model.certificate_, strict=True):
        exact = exact_oracle.solve(X[counted], np.where(y[counted] == label, 1.0, -1.0), 1.0)
        assert_within(found, w, b, exact, X)
    begun = LinearSVM().fit(X[6:], y[6:])
    begun.insert(X[:6], y[:6], sample_weight=weights[:6])
    assert errors_of(begun) == pytest.approx(errors_of(model), abs=1e-30)
    model.forget([3, 4, 5])
    kept = weights > 0.0
    assert errors_of(model) == pytest.approx(errors_of(LinearSVM().fit(X[kept], y[kept])), abs=1e-30)


def errors_of(model):
    return [certificate.error for certificate in model.certificate_]


def test_a_class_without_weight_is_not_there():
    problem = make("well_behaved", 3, n=40, classes=3)
    weights = np.where(problem.y == 1, 0.0, 1.0)
    model = fit(problem, weights)
    assert model.classes_.tolist() == [0, 2]
    model.insert(problem.X[problem.y == 1], problem.y[problem.y == 1])
    assert bytes_of(model) == bytes_of(problem.fit())
    with pytest.raises(ValueError, match="two classes"):
        model.forget(np.flatnonzero(problem.y != 1))
    with pytest.raises(ValueError, match="2; all others"):
        fit(problem, np.where(problem.y == 2, 1.0, 0.0))
    with pytest.raises(ValueError, match="sample weights"):
        fit(problem, np.zeros(len(problem.y)))


def test_a_small_class_is_found():
    """1 to 50, and the classes overlap: without weights hardly any of the small class is recognised."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [5000, 100])
    X = rng.normal(size=(5100, 4)) + 1.2 * y[:, None]
    unseen = rng.normal(size=(2000, 4)) + 1.2
    plain, weighted = LinearSVM(0.1).fit(X, y), LinearSVM(0.1, class_weight={1: 50.0}).fit(X, y)
    assert decided(plain, weighted)
    assert np.mean(plain.predict(unseen) == 1) < 0.3
    assert np.mean(weighted.predict(unseen) == 1) > 0.8


# Other solvers


@examples(40)
@given(problems(families=tuple(f for f in UNSCALED if f != "constant_columns"), C=st.just(0.1), most=40))
def test_the_optimum_is_the_oracles(problem):
    """As in `test_oracles`: 1e-8 leaves an interior point three digits to lose, and weights follow by convexity."""
    weights = drawn(problem, power=1.0)
    model = fit(problem, weights)
    X = problem.X.astype(float)
    for y, certificate, ours in zip(signs_of_heads(model, problem.y), model.certificate_, model.coef_, strict=True):
        w, _, value = with_clarabel(X, y, problem.C * weights)
        close = 1e-8 * max(1.0, value)
        assert abs(certificate.primal - value) <= close
        assert np.linalg.norm(w - ours) <= np.sqrt(2.0 * close)


@pytest.mark.parametrize("classes", [2, 3])
def test_agrees_with_svc(classes):
    """One head after the other. libsvm keeps its kernel in single precision."""
    problem, by_class = make("well_behaved", 4, n=80, d=3, classes=classes), {0: 4.0, 1: 0.5}
    weights = drawn(problem, power=0.5)
    model = fit(problem, weights, class_weight=by_class)
    scores = model.decision_function(problem.X).reshape(len(problem.y), -1)
    counted = weights * np.array([by_class.get(label, 1.0) for label in problem.y])
    for y, score in zip(signs_of_heads(model, problem.y), scores.T, strict=True):
        svc = SVC(C=problem.C, kernel="linear", tol=1e-9).fit(problem.X, y, sample_weight=counted)
        assert np.max(np.abs(svc.decision_function(problem.X) - score)) <= 1e-4


@pytest.mark.parametrize("family", nasty.FAMILIES)
def test_bounds_hold_for_any_multipliers(family):
    """Where no proof is found, what is known follows from some multipliers: that too holds with weights."""
    for seed in seeds(0, 8):
        X, y, C = nasty.problem(family, seed)
        w = np.maximum(nasty_weights(y, seed), 0.5)
        exact = exact_oracle.solve(X, y, [Fraction(C) * Fraction(weight) for weight in w.tolist()])
        rng = np.random.default_rng(seed)
        a = np.array([float(multiplier / Fraction(C)) for multiplier in exact.multipliers])
        a += 10.0 ** rng.uniform(-16.0, 0.0) * rng.normal(size=len(y))
        everyone = np.ones(len(y), dtype=bool)
        samples = Samples(X, *sizes(X), (y > 0).astype(np.int64), everyone, weigh(C, None, y.tolist(), w))
        head = fallback.head_with_bounds(samples, start_heads(samples, [1], InProcess())[0], a)
        assert_within(head.certificate, head.w, head.b, exact, X)
        least = sum(part**2 for part in exact.w) / 2 + sum(
            Fraction(C) * Fraction(weight) * max(0, 1 - margin)
            for weight, margin in zip(w.tolist(), exact.margins, strict=True)
        )
        primal = Fraction(head.certificate.primal)
        assert primal - least <= (Fraction(head.certificate.relative_gap) + Fraction(1e-12)) * (1 + primal)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sure_way_ends_in_the_same_bytes(family):
    problem = make(family, 2, n=40, d=3, classes=2)
    weights, everyone = drawn(problem), np.ones(len(problem.y), dtype=bool)
    X = problem.X.astype(float)
    samples = Samples(X, *sizes(X), problem.y, everyone, weigh(problem.C, None, problem.y.tolist(), weights))
    head = fallback.solve_surely(samples, start_heads(samples, [1], InProcess())[0])
    assert head.certificate.decided
    assert head.w.tobytes() == fit(problem, weights).coef_.tobytes()


# Forgetting and inserting


@examples(48)
@given(problems(), st.data())
def test_any_way_ends_in_the_bytes_of_a_fit(problem, data):
    """Samples leave and come back, in any order and with their weights, some of them to a model without any."""
    n, weights, rng = len(problem.y), drawn(problem), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weights[rng.random(n) < 0.3] = 1.0
    begun = np.flatnonzero(weights == 1.0) if rng.random() < 0.3 else rng.permutation(n)[: n // 2]
    assume(len(np.unique(problem.y[begun])) >= 2)
    model, row_of = fit(problem, weights, begun), {place: row for row, place in enumerate(begun.tolist())}
    used = len(begun)
    for _ in range(3):
        gone = rng.permutation(list(row_of))[: rng.integers(1, 6)]
        left = np.setdiff1d(list(row_of), gone)
        if len(np.unique(problem.y[left])) >= 2:
            model.forget([row_of.pop(place) for place in gone.tolist()])
        fresh = rng.permutation(np.setdiff1d(np.arange(n), list(row_of)))[: rng.integers(1, 9)]
        model.insert(problem.X[fresh], problem.y[fresh], sample_weight=weights[fresh])
        row_of |= {place: used + number for number, place in enumerate(fresh.tolist())}
        used += len(fresh)
    held = rng.permutation(list(row_of))
    assert_equal(model, fit(problem, weights, held), problem.X)
    assert weights_of(model).tolist() == [weights[place] for place, _ in sorted(row_of.items(), key=lambda at: at[1])]


def test_exchange_keeps_the_weights_of_classes():
    """`set_params` is for the next fit."""
    problem, weights = make("well_behaved", 1, n=60, classes=3), {0: 7.0, 2: 0.2}
    model = LinearSVM(class_weight=weights).fit(problem.X[:40], problem.y[:40])
    model.set_params(class_weight={0: 1000.0})
    weights[0] = 1000.0
    later = model._with_more(problem.X[40:], problem.y[40:], instead_of=[1, 3], sample_weight=np.full(20, 2.0))
    rows = np.delete(np.arange(60), [1, 3])
    own = np.where(rows < 40, 1.0, 2.0)
    expected = LinearSVM(class_weight={0: 7.0, 2: 0.2}).fit(problem.X[rows], problem.y[rows], sample_weight=own)
    assert bytes_of(later) == bytes_of(expected)


def test_forgotten_weights_are_overwritten():
    problem = make("well_behaved", 0, n=60)
    weights = drawn(problem)
    model = fit(problem, weights)
    rows = model.support_[:4]
    model.forget(rows)
    penalties = model._fitted.solution.samples.penalties
    for numbers in (penalties.weights, penalties.bounds):
        assert not np.isin(weights[rows], numbers).any()
    assert weights[rows].all()  # the caller's own


@examples(40)
@given(problems(), st.integers(0, 2**32 - 1))
def test_snapshots_carry_weights(problem, seed):
    weights, by_class = drawn(problem, seed), {0: 3.0, 1: 0.7}
    weights[:1] = 0.0
    assume(len(np.unique(problem.y[3:])) == len(np.unique(problem.y[1:])) == len(np.unique(problem.y)))
    model = fit(problem, weights, class_weight=by_class)
    model.forget([1])
    back = again(model, problem.X, problem.y)
    assert snapshot(back) == snapshot(model)
    assert weights_of(back).tolist() == weights_of(model).tolist()
    for each in (model, back):
        each.forget([2])
        each.insert(problem.X[1:2], problem.y[1:2], sample_weight=weights[1:2])
    assert_equal(back, model, problem.X)


# Larger problems, and other ways to the same answer


def test_more_samples_than_a_guess_takes():
    problem = make("rectified", 7, n=6000, d=5, classes=3)
    weights = drawn(problem)
    model = fit(problem, weights)
    assert decided(model)
    rows = model.support_[::50]
    model.forget(rows)
    assert model._fitted.solution.work.cold_solves == 0
    assert bytes_of(model) == bytes_of(fit(problem, weights, np.setdiff1d(np.arange(len(problem.y)), rows)))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_start_for_graphics_processors(family, request):
    problem = make(family, 1, n=60, d=4, classes=3)
    weights = drawn(problem)
    expected = fit(problem, weights)
    request.getfixturevalue("tensors_on_a_device")
    model = LinearSVM(problem.C).fit(torch.tensor(problem.X), problem.y, sample_weight=torch.tensor(weights))
    assert_equal(model, expected, problem.X)


# What is refused

X, Y = np.array([[1.0, 0.0], [-1.0, 0.5], [2.0, 1.0], [-2.0, 0.0]]), np.array([0, 1, 0, 1])

BAD_WEIGHTS = {
    "negative": ([1.0, 1.0, -0.5, 1.0], r"sample_weight\[2\] is -0.5"),
    "NaN": ([1.0, np.nan, 1.0, 1.0], r"sample_weight\[1\] is nan"),
    "infinite": ([1.0, 1.0, 1.0, np.inf], r"sample_weight\[3\] is inf"),
    "too few": ([1.0, 1.0, 1.0], "each of the 4 samples"),
    "two dimensions": ([[1.0], [1.0], [1.0], [1.0]], "each of the 4 samples"),
    "one number": (2.0, "each of the 4 samples"),
    "words": (["a", "b", "c", "d"], "must be numbers"),
    "too small": ([1.0, 1e-60, 1.0, 1.0], r"sample 1 weighs C · 1e-60"),
    "too large": ([1.0, 1.0, 1e60, 1.0], r"sample 2 weighs C · 1e\+60"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_sample_weights(case):
    weights, message = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=message):
        LinearSVM().fit(X, Y, sample_weight=weights)
    model = LinearSVM().fit(X, Y)
    before = snapshot(model)
    for verb in (model.fit, model.insert, model._with_more):
        with pytest.raises(ValueError, match=message):
            verb(X, Y, sample_weight=weights)
    assert snapshot(model) == before


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, "5", None])
def test_bad_class_weights(weight):
    with pytest.raises(ValueError, match="weight of class"):
        LinearSVM(class_weight={1: weight}).fit(X, Y)


def test_weights_computed_from_the_samples_are_refused():
    with pytest.raises(ValueError, match=r"sample.*each one forgotten.*fixed"):
        LinearSVM(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="a dictionary"):
        LinearSVM(class_weight=[1.0, 2.0]).fit(X, Y)


def test_a_weight_for_a_class_that_comes_later_counts():
    names = np.array(["fraud", "fine"])[Y]
    model = LinearSVM(class_weight={"fruad": 50.0}).fit(X, names)
    model.insert(X[:1] + 1.0, ["fruad"])
    everything = np.concatenate([X, X[:1] + 1.0]), np.append(names, "fruad")
    assert bytes_of(model) == bytes_of(LinearSVM(class_weight={"fruad": 50.0}).fit(*everything))


@pytest.mark.parametrize("weight", [1e-30, 1e-38, 1e-45])
def test_a_weight_may_be_as_small_as_it_is_allowed_to_be(weight):
    """Also of a sample inside the margin, whose weight has finer digits than multipliers are counted in."""
    X, y = np.array([[2.0], [3.0], [-2.0], [-3.0], [1.0]]), np.array([1, 1, 0, 0, 0])
    model = LinearSVM().fit(X, y, sample_weight=[1.0, 1.0, 1.0, 1.0, weight])
    assert all(certificate.decided for certificate in model.certificate_)
    assert 4 in model.support_
    again = LinearSVM().fit(X[:4], y[:4])
    again.insert(X[4:], y[4:], sample_weight=[weight])
    assert again.coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("requests", [[[4]], [[4, 5]], [[5], [4]], [[5, 6], [4]], [[4, 5, 6]]])
def test_a_class_that_keeps_samples_without_weight_alone_is_gone(requests):
    """All other weights are 1, so that nothing else tells those of weight zero apart."""
    X = np.array([[2.0, 0], [3, 1], [-2, 0], [-3, 1], [0, 4], [1, 5], [1, 6], [0, 7]])
    y, weights = np.array(list("aabbcccc")), np.array([1.0, 1, 1, 1, 1, 0, 0, 0])
    model = LinearSVM().fit(X, y, sample_weight=weights)
    for rows in requests:
        model.forget(rows)
    kept = np.setdiff1d(np.arange(8), np.concatenate(requests))
    fresh = LinearSVM().fit(X[kept], y[kept], sample_weight=weights[kept])
    assert model.classes_.tolist() == fresh.classes_.tolist() == ["a", "b"]
    assert bytes_of(model) == bytes_of(fresh)


def test_a_request_that_leaves_one_class_with_weight_is_refused():
    X, y = np.array([[2.0, 0], [3, 1], [-2, 0], [-3, 1], [-4, 1]]), np.array(list("aabbb"))
    model = LinearSVM().fit(X, y, sample_weight=[1.0, 1, 1, 0, 0])
    with pytest.raises(ValueError, match="two classes"):
        model.forget([2, 3])


def test_the_error_forgets_the_longest_sample_also_if_it_has_no_weight():
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(40, 3)), np.arange(40) % 2, np.ones(40)
    X[7], weights[7] = 1e9, 0.0
    model, rest = LinearSVM().fit(X, y, sample_weight=weights), np.arange(40) != 7
    before = model.certificate_[0].error
    model.forget([7])
    fresh = LinearSVM().fit(X[rest], y[rest], sample_weight=weights[rest])
    assert model.certificate_[0].error == fresh.certificate_[0].error < before
