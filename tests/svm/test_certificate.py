"""Every head is solved, and no certificate claims more than is true: an exact solver says what is."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.parallel.engine import InProcess
from maxrr.svm import Certificate, ConvergenceError, FlatHeadWarning, estimator
from maxrr.svm.certificate import EXACT
from maxrr.svm.exact import fallback, rounding
from maxrr.svm.exact.basis import FineBasis, Near
from maxrr.svm.exact.enclosure import enclose
from maxrr.svm.exact.fixed_point import Fixed, integers
from maxrr.svm.exact.multipliers import Polished
from maxrr.svm.problem import Penalties, Samples, Trial
from maxrr.svm.search import working_set
from maxrr.svm.search.start import start_heads
from maxrr.svm.validation import sizes
from tests.cases import examples, seeds
from tests.svm import exact_oracle, nasty
from tests.svm.problems import FAMILIES, assert_equal, make, problems, snapshot

flat_heads_expected = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
EPSILON = 2.0**-52
TOUCHING = Fraction(1, 2**60)  # margins this close to 1 are on it


def signs_of_heads(model, y):
    """±1 for every head, from the labels alone."""
    positives = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    return [np.where(y == positive, 1.0, -1.0) for positive in positives]


def all_multipliers(model, n):
    alphas = []
    for rows, multipliers in zip(model.influential_, model.multipliers_, strict=True):
        alpha = np.zeros(n)
        alpha[rows] = multipliers
        alphas.append(alpha)
    return alphas


def assert_within(certificate, w, b, exact, X):
    """The published numbers are as near to the exact ones as the certificate says, in rational arithmetic."""
    off = [Fraction(ours) - theirs for ours, theirs in zip(w.tolist(), exact.w, strict=True)]
    assert sum(part**2 for part in off) <= Fraction(certificate.weight_error) ** 2
    assert abs(Fraction(b) - exact.b) <= Fraction(certificate.bias_error)
    for row in X.tolist():
        change = sum((Fraction(x) * part for x, part in zip(row, off, strict=True)), Fraction(b) - exact.b)
        assert abs(change) <= Fraction(certificate.error)


def rounded(x: Fraction, floor: int) -> float:
    """The canonical form of a fraction, from 3,000 bits of it."""
    whole, rest = divmod(x.numerator << 3000, x.denominator)
    found = rounding.canonical(2 * whole + (rest > 0), 3001, int(rest > 0), floor)
    assert found is not None
    return found


# Against the exact solution


@flat_heads_expected
@pytest.mark.parametrize("family", nasty.FAMILIES)
def test_true_errors_are_within_the_proven_bounds(family):
    for seed in seeds(0, 20):
        X, y, C = nasty.problem(family, seed)
        model = LinearSVM(C).fit(X, y)
        assert_within(model.certificate_[0], model.coef_[0], float(model.intercept_[0]), exact_oracle.solve(X, y, C), X)


@flat_heads_expected
@pytest.mark.parametrize("family", nasty.FAMILIES)
def test_decided_bytes_are_those_of_the_exact_solution(family):
    """All of these problems are decided. What is published is w* and b*, rounded by the rule, and nothing else."""
    for seed in seeds(20, 20):
        X, y, C = nasty.problem(family, seed)
        model = LinearSVM(C).fit(X, y)
        exact = exact_oracle.solve(X, y, C)
        assert model.certificate_[0].decided
        influential = X[sorted(exact.on | exact.inside)]
        floor = rounding.FLOOR - int(np.frexp(np.max(np.abs(influential)))[1])
        wanted = [rounded(part, floor) if influential[:, k].any() else 0.0 for k, part in enumerate(exact.w)]
        assert model.coef_[0].tobytes() == np.array(wanted).tobytes()
        assert model.intercept_.tobytes() == np.array([rounded(exact.b, rounding.FLOOR)]).tobytes()


@flat_heads_expected
@pytest.mark.parametrize("family", nasty.FAMILIES)
def test_influential_samples_are_those_of_the_exact_solution(family):
    for seed in seeds(40, 20):
        X, y, C = nasty.problem(family, seed)
        model = LinearSVM(C).fit(X, y)
        margins = exact_oracle.solve(X, y, C).margins
        influential = [row for row, margin in enumerate(margins) if margin <= 1 + TOUCHING]
        inside = sum(margin < 1 - TOUCHING for margin in margins)
        certificate = model.certificate_[0]
        assert model.influential_[0].tolist() == influential
        assert (certificate.on_margin, certificate.inside) == (len(influential) - inside, inside)


@examples(150)
@given(st.sampled_from(nasty.FAMILIES), st.integers(0, 2**32 - 1), st.sampled_from(["random", "near", "bounds"]))
def test_bounds_hold_for_any_multipliers(family, seed, kind):
    """Where no proof is found, what is known follows from some multipliers. Wrong ones must show as wide bounds."""
    X, y, C = nasty.problem(family, seed % 1000)
    exact = exact_oracle.solve(X, y, C)
    rng = np.random.default_rng(seed)
    a = np.array([float(multiplier / Fraction(C)) for multiplier in exact.multipliers])
    if kind == "random":
        a = rng.uniform(size=len(y))
    elif kind == "near":
        a = a + 10.0 ** rng.uniform(-16.0, 0.0) * rng.normal(size=len(y))
    else:
        a = np.where(rng.random(len(y)) < 0.3, rng.integers(0, 2, len(y)), a)
    everyone, penalties = np.ones(len(y), dtype=bool), Penalties(C, np.ones(len(y)), np.ones(len(y)))
    samples = Samples(X, *sizes(X), (y > 0).astype(np.int64), everyone, penalties)
    head = fallback.head_with_bounds(samples, start_heads(samples, [1], InProcess())[0], a)
    assert not head.certificate.decided
    assert_within(head.certificate, head.w, head.b, exact, X)
    # What the multipliers say of the objective holds as well.
    least = sum(part**2 for part in exact.w) / 2 + Fraction(C) * sum(max(0, 1 - margin) for margin in exact.margins)
    primal = Fraction(head.certificate.primal)
    rounding_of_it = Fraction(1e-12) * (1 + primal + Fraction(C) * sum(map(abs, exact.margins)))
    assert primal - least <= Fraction(head.certificate.relative_gap) * primal + rounding_of_it
    # Samples may be called influential that are not, but none is missed.
    influential = {row for row, margin in enumerate(exact.margins) if margin <= 1}
    assert influential <= set(head.influential.tolist())


# Every problem


@flat_heads_expected
@examples(250)
@given(problems())
@example(make("single_precision", 108222827, n=48, d=1, classes=2, C=70.74577312563336))  # these were once not solved
@example(make("conflicting_duplicates", 1962662231, n=15, d=4, classes=2, C=0.2601433103284711))
@example(make("constant_columns", 2018719848, n=38, d=2, classes=3, C=138.57132196693632))
@example(make("rectified", 1376380926, n=44, d=3, classes=3, C=0.0013923815580296174))
@example(make("scaled_down", 181, n=50, d=1, classes=3, C=100.0))
def test_every_head_is_decided(problem):
    for certificate in problem.fit().certificate_:
        assert certificate.decided
        assert certificate.solved
        assert certificate.relative_gap <= 1e-10


@flat_heads_expected
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_at_both_ends_of_the_penalty(family, C):
    for certificate in make(family, seed=1, n=50, d=4, classes=3, C=C).fit().certificate_:
        assert certificate.decided


@flat_heads_expected
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("difference", [EPSILON, 1e-13])
def test_nearly_repeated_samples(difference, C):
    """Duplicates whose features were computed twice differ in their last digits."""
    for seed in seeds(0, 40):
        problem = make("duplicates", seed, n=30, d=2, classes=2, C=C)
        noise = np.random.default_rng(seed).integers(-1, 2, problem.X.shape)
        model = LinearSVM(C).fit(problem.X * (1.0 + difference * noise), problem.y)
        assert all(certificate.decided for certificate in model.certificate_), seed


def dependent(seed=0):
    """Columns that depend on each other but for rounding, and labels that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(300, 8)) @ rng.normal(size=(8, 100)), rng.integers(3, size=300)


@flat_heads_expected
def test_columns_that_depend_on_each_other_up_to_rounding_end_in_bounds(monkeypatch):
    """Noise alone tells multipliers apart there: after so many bases of many bits a head keeps float64's."""
    made = []

    class Counted(FineBasis):
        def __init__(self, *given):
            made.append(self)
            super().__init__(*given)

    monkeypatch.setattr("maxrr.svm.exact.multipliers.FineBasis", Counted)
    monkeypatch.setattr("maxrr.svm.exact.multipliers.FINE_WORK", 1_000_000)
    X, y = dependent()
    model = LinearSVM().fit(X, y)
    assert all(known.solved and known.error < 1e-9 for known in model.certificate_)
    assert not all(known.decided for known in model.certificate_)
    assert len(made) <= 3 * Trial.fine_work / 1_000_000


@flat_heads_expected
def test_bounds_are_those_of_the_multipliers_that_tell_more(monkeypatch):
    """The objective is least without weights, up to rounding, and without multipliers nothing bounds it."""
    monkeypatch.setattr(fallback, "finish", lambda *given: None)
    X, y = np.random.default_rng(0).normal(size=(300, 4)), np.arange(300) < 20
    samples = Samples(X, *sizes(X), y.astype(int), np.ones(300, dtype=bool), Penalties(1.0, np.ones(300), np.ones(300)))
    (trial,) = start_heads(samples, [1], InProcess())
    head = fallback.solve_surely(samples, trial)
    assert not head.certificate.decided
    assert head.certificate.relative_gap < 1e-6


@flat_heads_expected
@examples(80)
@given(problems())
def test_weights_and_multipliers_meet_the_textbook_conditions(problem):
    """In extended precision: 0 ≤ α ≤ C, Σ αy = 0, w = Σ αyx, P = D, and only influential samples have multipliers."""
    model = problem.fit()
    X, C = problem.X.astype(np.longdouble), np.longdouble(problem.C)
    heads = zip(
        signs_of_heads(model, problem.y), all_multipliers(model, len(X)), model.coef_, model.intercept_,
        model.certificate_, model.influential_, strict=True,
    )  # fmt: skip
    for y, alpha, w, b, certificate, influential in heads:
        margins = y * (X @ w.astype(np.longdouble) + b)
        primal = w @ w / 2 + C * np.sum(np.maximum(0, 1 - margins))
        v = (alpha * y) @ X
        dual = np.sum(alpha.astype(np.longdouble)) - v @ v / 2
        # A margin is a float64 sum of terms up to `scale`, each loss counts C times, and v sums n terms.
        scale = 1 + abs(b) + np.linalg.norm(w) * np.max(np.linalg.norm(problem.X.astype(float), axis=1))
        close = 64 * EPSILON * len(y) * float(C) * scale
        assert abs(certificate.primal - primal) <= close
        assert abs(primal - dual) <= close
        assert abs(np.sum(alpha * y)) <= 4 * EPSILON * len(y) * float(C)
        assert certificate.on_margin + certificate.inside == len(influential)
        # The influential samples are those with margin up to 1: nothing was left out, nothing added.
        tie = 1e-12 * scale
        assert np.all(margins[influential] <= 1 + tie)
        assert np.all(np.delete(margins, influential) > 1 - tie)
        assert np.all((alpha >= 0) & (alpha <= problem.C))


@pytest.mark.parametrize(
    ("decided", "error", "solved"),
    [(True, 0.0, True), (True, 1.0, True), (False, EXACT, True), (False, 2.0 * EXACT, False), (False, np.nan, False)],
)
def test_what_is_called_solved(decided, error, solved):
    assert Certificate(decided, 0.0, 0.0, error, 0.0, 1.0, 0, 0).solved is solved


# The bias where it is not unique


def test_bias_is_the_admissible_value_nearest_zero():
    """w = 0.2; every b in [−0.8, 0] is optimal. The midpoint would move when the third sample goes; 0 does not."""
    X, y = [[1.0], [-1.0], [-5.0]], [1, -1, -1]
    model = LinearSVM(C=0.1).fit(X, y)
    assert model.coef_.tolist() == [[0.2]]
    assert model.intercept_.tolist() == [0.0]
    without = LinearSVM(C=0.1).fit(X[:2], y[:2])
    assert without.intercept_.tolist() == [0.0]
    assert model.forget([2])[0].solved
    assert model.intercept_.tobytes() == without.intercept_.tobytes()


def test_bias_at_the_end_of_its_interval():
    """w = C·(9 − 7), and margins ≤ 1 ask for −2.4 ≤ b ≤ −0.8: zero is not among them."""
    model = LinearSVM(C=0.1).fit([[7.0], [9.0]], [-1, 1])
    assert model.coef_.tolist() == [[0.2]]
    assert model.intercept_ == pytest.approx(-0.8, abs=1e-15)


@flat_heads_expected
@examples(100)
@given(problems())
def test_moving_the_bias_towards_zero_costs(problem):
    """The loss is piecewise linear in b with slopes in C·ℤ: unless b is nearest zero, a step that way is free."""
    model = problem.fit()
    X = problem.X.astype(float)
    for y, w, b in zip(signs_of_heads(model, problem.y), model.coef_, model.intercept_, strict=True):
        loss_at = lambda bias, y=y, w=w: problem.C * np.sum(np.maximum(0.0, 1.0 - y * (X @ w + bias)))  # noqa: E731
        scale = 1.0 + abs(b) + np.max(np.abs(X @ w))
        step = 1e-6 * scale
        if abs(b) > step:
            # Half of C·step: kinks lie within 1e-12·scale of b, and the sum is rounded.
            assert loss_at(b - np.sign(b) * step) - loss_at(b) >= 0.5 * problem.C * step


# Heads that are not solved


def take_proofs_away(monkeypatch):
    """As if no proof were ever found: what is left are bounds, which are wide."""
    for module, name in ((working_set, "confirm"), (working_set, "finish"), (fallback, "finish")):
        monkeypatch.setattr(module, name, lambda *_: None)


@pytest.fixture
def without_proofs(monkeypatch):
    take_proofs_away(monkeypatch)


def unproved():
    return make("well_behaved", 0, n=30, d=3, classes=2)


def test_an_unsolved_head_is_an_error_that_says_what_to_do():
    """Features of both signs, from 1e-80 to 1e80 within a column: float64 cannot tell apart what they ask for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2)) * 10.0 ** rng.integers(-80, 81, (24, 2))
    with pytest.raises(ConvergenceError, match=r"not solved.*Column 0.*Scale"):
        LinearSVM().fit(X, np.array(["cat", "dog"])[np.arange(24) % 2])


def test_the_bounds_of_an_unsolved_head_are_true(without_proofs, monkeypatch):
    """What would be refused: its certificate does not say that it is solved, and its bounds hold all the same."""
    problem = unproved()
    monkeypatch.setattr(estimator, "check_heads", lambda found: None)
    model = LinearSVM().fit(problem.X, problem.y)
    certificate = model.certificate_[0]
    assert not certificate.solved
    assert not certificate.decided
    assert certificate.error > EXACT
    assert all(((multipliers >= 0.0) & (multipliers <= problem.C)).all() for multipliers in model.multipliers_)
    exact = exact_oracle.solve(problem.X, 2 * problem.y - 1, problem.C)
    assert_within(certificate, model.coef_[0], float(model.intercept_[0]), exact, problem.X)


@pytest.mark.parametrize("verb", ["fit", "insert", "with_more", "exchange", "forget", "without"])
def test_an_unsolved_head_leaves_the_model_as_it_was(verb, monkeypatch):
    problem = unproved()
    model = problem.fit_on(np.arange(20))
    before, features = snapshot(model), model._features_of(model._rows).tobytes()
    take_proofs_away(monkeypatch)
    X, y, row = problem.X[20:], problem.y[20:], model.support_[:1]
    with pytest.raises(ConvergenceError, match="class 1"):
        {
            "fit": lambda: model.fit(X, y),
            "insert": lambda: model.insert(X, y),
            "with_more": lambda: model._with_more(X, y),
            "exchange": lambda: model._with_more(X, y, instead_of=row),
            "forget": lambda: model.forget(row),
            "without": lambda: model._without(row),
        }[verb]()
    assert snapshot(model) == before
    assert model._features_of(model._rows).tobytes() == features
    assert model._rows.tolist() == list(range(20))


def test_a_solved_head_follows_an_unsolved_one(monkeypatch):
    """What is solved later is solved from there or from scratch, to the same bytes."""
    problem = unproved()
    model = LinearSVM()
    with monkeypatch.context() as patch:
        take_proofs_away(patch)
        patch.setattr(estimator, "check_heads", lambda found: None)
        model.fit(problem.X, problem.y)
    row = int(model.support_[0])
    assert model.forget([row])[0].decided
    assert_equal(model, problem.fit_on(np.delete(np.arange(len(problem.y)), row)), problem.X)


def test_a_gap_that_underflows_without_c_is_counted():
    """Both samples are too far out for their multipliers of 2^−900 C: the gap is 2^−1199 C, with C at its largest."""
    ones = Fixed(integers([1, 1]), 0)
    near = Near(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), 1e50, np.ones(2), Fixed.zeros(1), Fixed.zeros(1))
    beyond = Polished(Fixed(ones.values, 900), Fixed.zeros(1), Fixed.zeros(1), Fixed(-ones.values, 300))
    found = enclose(near, beyond, np.ones(2))
    assert found is not None
    gap = Fraction(1e50) / 2**1199
    assert Fraction(found.gap) >= gap
    assert Fraction(found.radius) ** 2 >= 2 * gap


# Heads without weights

FLAT = np.array([[0.0], [1.0], [0.0], [1.0], [7.0]]), np.array(["ant", "ant", "bee", "bee", "cow"])


def test_a_head_without_weights_is_named_with_a_cure():
    """As many ants as bees in each place. The cow is elsewhere: its head has weights."""
    with pytest.warns(FlatHeadWarning) as caught:
        model = LinearSVM(0.25).fit(*FLAT)
    flat = model.classes_[~model.coef_.any(axis=1)]
    assert set(flat) <= {"ant", "bee"}
    (message,) = [str(warning.message) for warning in caught]
    assert ", ".join(repr(str(label)) for label in flat) in message
    assert "of zero" in message
    assert "class_weight" in message


def test_a_larger_c_helps_where_only_rounding_left_no_weights():
    """The warning says when no C does: where nothing was rounded."""
    X, y = np.array([[1e-30], [-1e-30], [-2e-30]]), [1, 0, 0]
    with pytest.warns(FlatHeadWarning, match="`weight_error` is 0"):
        flat = LinearSVM().fit(X, y)
    assert flat.certificate_[0].weight_error > 0.0
    assert LinearSVM(1e35).fit(X, y).coef_.any()
    with pytest.warns(FlatHeadWarning):
        exactly = LinearSVM().fit(np.ones((3, 1)), y)
    assert exactly.certificate_[0].weight_error == 0.0
    with pytest.warns(FlatHeadWarning):
        assert not LinearSVM(1e35).fit(np.ones((3, 1)), y).coef_.any()


def test_many_heads_without_weights_are_one_warning():
    y = np.arange(24) % 12
    with pytest.warns(FlatHeadWarning, match="2, 3, 4") as caught:
        LinearSVM().fit(np.zeros((24, 2)), y)
    assert len(caught) == 1


def test_forgetting_warns_of_a_head_without_weights():
    X, y = np.array([[0.0], [1.0], [0.0], [1.0], [-7.0], [7.0]]), np.array([0, 0, 1, 1, 0, 1])
    model = LinearSVM().fit(X, y)
    assert model.coef_.any()
    with pytest.warns(FlatHeadWarning, match="weights of zero"):
        model.forget([4, 5])
    assert not model.coef_.any()
    assert model._rows.tolist() == [0, 1, 2, 3]
    assert model.certificate_[0].decided


def test_a_head_with_weights_is_no_reason_to_warn(recwarn):
    make("well_behaved", 0).fit().forget([0])
    assert not recwarn.list
