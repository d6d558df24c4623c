"""One-vs-one: every head is that of its two classes alone, to the byte, whatever was forgotten and inserted before."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.svm import SVC

from maxrr.svm import ConvergenceError, FlatHeadWarning, LinearSVM, heads, pairs
from maxrr.svm.arrays import is_torch
from maxrr.svm.exact import deciding
from maxrr.svm.snapshot import taken
from tests.cases import examples, seeds, some
from tests.svm.oracles import with_clarabel
from tests.svm.problems import FAMILIES, UNSCALED, assert_equal, decided, make, problems, snapshot
from tests.svm.test_certificate import all_multipliers

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


def one_vs_one(C=1.0, **given):
    return LinearSVM(C, scheme="one-vs-one", **given)


def fit(problem, rows=slice(None), weights=None, **given):
    own = None if weights is None else weights[rows]
    return one_vs_one(problem.C, **given).fit(problem.X[rows], problem.y[rows], sample_weight=own)


def of_pairs(y):
    """The two classes of every head, and the rows of their samples."""
    return [(pair, np.flatnonzero(np.isin(y, pair))) for pair in combinations(np.unique(y), 2)]


def check_heads(model, X, y, rows, weights=None, class_weight=None):
    """Every head of the model is the only one of a model that saw nothing but the samples of its two classes.

    X and y are what the model holds, and `rows` the numbers that it has for them.
    """
    expected = of_pairs(y)
    assert len(model.coef_) == len(model.intercept_) == len(model.certificate_) == len(expected)
    for number, (pair, places) in enumerate(expected):
        own = None if weights is None else weights[places]
        by_class = {label: weight for label, weight in (class_weight or {}).items() if label in pair}
        alone = LinearSVM(model.C, class_weight=by_class).fit(X[places], y[places], sample_weight=own)
        assert alone.classes_.tolist() == list(pair)
        ours, theirs = model.certificate_[number], alone.certificate_[0]
        assert ours.solved
        assert theirs.solved
        if ours.decided and theirs.decided:
            assert model.coef_[number].tobytes() == alone.coef_[0].tobytes()
            assert model.intercept_[number] == alone.intercept_[0]
            assert np.array_equal(model.influential_[number], rows[places[alone.influential_[0]]])
            assert (ours.on_margin, ours.inside) == (theirs.on_margin, theirs.inside)
            assert ours.primal == pytest.approx(theirs.primal, rel=1e-9)


# Fit


@examples(80)
@given(problems())
def test_every_head_is_that_of_its_two_classes(problem):
    model = fit(problem)
    check_heads(model, problem.X, problem.y, np.arange(len(problem.y)))
    assert model.classes_.tolist() == np.unique(problem.y).tolist()
    assert np.array_equal(model.support_, np.unique(np.concatenate(model.influential_)))


@pytest.mark.parametrize("family", FAMILIES)
def test_two_classes_are_one_head_by_either_scheme(family):
    problem = make(family, 5, classes=2)
    assert snapshot(fit(problem)) == snapshot(problem.fit())
    assert np.array_equal(fit(problem).predict(problem.X), problem.fit().predict(problem.X))
    assert fit(problem).decision_function(problem.X).shape == (len(problem.y),)


@pytest.mark.parametrize("seed", seeds(0, 8))
def test_heads_and_predictions_are_those_of_scikit_learn(seed):
    problem = make("well_behaved", seed, n=150, d=5, classes=5)
    queries = make("well_behaved", seed + 100, n=150, d=5, classes=5).X
    theirs = SVC(kernel="linear", decision_function_shape="ovo", tol=1e-9).fit(problem.X, problem.y)
    model = fit(problem)
    scores = model.decision_function(queries)
    assert scores.shape == (len(queries), 10)
    np.testing.assert_allclose(scores, -theirs.decision_function(queries), atol=1e-5)  # theirs speak for the first
    assert np.array_equal(model.predict(queries), theirs.predict(queries))


@pytest.mark.parametrize("family", some(4, [name for name in UNSCALED if name != "nothing_but_conflict"]))
def test_heads_are_those_of_a_general_solver(family):
    problem = make(family, 3, n=60, d=4, classes=4)
    model = fit(problem)
    for number, (pair, places) in enumerate(of_pairs(problem.y)):
        X, y = problem.X[places].astype(np.float64), np.where(problem.y[places] == pair[1], 1.0, -1.0)
        w, _, optimum = with_clarabel(X, y, problem.C)
        assert model.certificate_[number].primal == pytest.approx(optimum, rel=1e-7)
        np.testing.assert_allclose(model.coef_[number], w, atol=1e-4 * (1.0 + np.max(np.abs(w))))


def test_multipliers_make_the_weights_and_are_of_the_pair_alone():
    problem = make("well_behaved", 1, n=90, d=4, classes=4)
    model = fit(problem)
    for number, ((pair, places), alpha) in enumerate(
        zip(of_pairs(problem.y), all_multipliers(model, len(problem.y)), strict=True)
    ):
        y = np.where(problem.y == pair[1], 1.0, -1.0)
        np.testing.assert_allclose((alpha * y) @ problem.X, model.coef_[number], atol=1e-9)
        assert abs(alpha @ y) < 1e-9
        assert set(model.influential_[number]) <= set(places)


# Forget and insert


@st.composite
def steps(draw):
    """What to do with a model: rows to forget or to put in, by numbers that are taken modulo what there is."""
    numbers = st.lists(st.integers(0, 10**6), min_size=1, max_size=8)
    return draw(st.lists(st.tuples(st.sampled_from(["forget", "insert", "exchange"]), numbers), min_size=1, max_size=4))


@examples(80)
@given(problems(), steps(), st.booleans())
@example(make("well_behaved", 0, classes=3), [("forget", [0]), ("insert", [0, 7]), ("forget", [41, 3, 5])], True)
@example(make("duplicates", 0, n=60, classes=4), [("exchange", [0, 9]), ("exchange", [1, 2])], False)
def test_any_sequence_ends_where_a_fit_does(problem, todo, weighted):
    """Some samples begin outside, among them perhaps all of a class."""
    n = len(problem.y)
    rng = np.random.default_rng(problem.seed)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else np.ones(n)
    begun = np.flatnonzero(problem.y != 0)
    assume(len(np.unique(problem.y[begun][weights[begun] > 0.0])) >= 2)
    model = fit(problem, begun, weights)
    sources = begun.tolist()  # by row number, the samples of the problem that the model was given
    there = set(range(len(sources)))
    for verb, numbers in todo:
        rows = sorted({sorted(there)[number % len(there)] for number in numbers})
        coming = [number % n for number in numbers]
        left = sorted(there - set(rows)) if verb != "insert" else sorted(there)
        after = [sources[row] for row in left] + (coming if verb != "forget" else [])
        if len(np.unique(problem.y[after][weights[after] > 0.0])) < 2:
            continue
        if verb == "forget":
            certificates = model.forget(rows)
            assert certificates == model.certificate_
        elif verb == "insert":
            model.insert(problem.X[coming], problem.y[coming], sample_weight=weights[coming])
        else:
            model = model.with_more(
                problem.X[coming], problem.y[coming], instead_of=rows, sample_weight=weights[coming]
            )  # fmt: skip
            model.erase()
        if verb != "forget":
            left += range(len(sources), len(sources) + len(coming))
            sources += coming
        there = set(left)
    kept = np.array(sources)[sorted(there)]
    assert model.rows_.tolist() == sorted(there)
    scratch = fit(problem, kept, weights)
    assert_equal(model, scratch, problem.X)
    if decided(model, scratch):
        rows = model.rows_
        for ours, theirs in zip(model.influential_, scratch.influential_, strict=True):
            assert np.array_equal(ours, rows[theirs])
    weigh = weights[kept] > 0.0
    check_heads(model, problem.X[kept][weigh], problem.y[kept][weigh], model.rows_[weigh], weights[kept][weigh])


def test_of_one_sample_only_the_heads_that_it_shapes_move():
    problem = make("well_behaved", 2, n=400, d=4, classes=5)
    model = fit(problem)
    row = int(model.support_[3])
    shaped = [row in rows for rows in model.influential_]
    assert any(shaped)
    assert not all(shaped)
    before, certificates = model.coef_, model.certificate_
    after = model.without([row])
    for number, moved in enumerate(shaped):
        assert (after.coef_[number].tobytes() == before[number].tobytes()) != moved
        if problem.y[row] not in of_pairs(problem.y)[number][0]:
            assert after.certificate_[number] == certificates[number]
    assert after.work_.cold_solves == 0
    idle = np.setdiff1d(np.arange(len(problem.y)), model.support_)
    model.forget(idle)
    assert (model.coef_.tobytes(), model.work_) == (before.tobytes(), heads.Work())
    assert not np.any(model.held_[1][np.isin(model.rows_, idle)])


@pytest.mark.parametrize("label", [-1, 1, 9])
def test_a_new_class_has_a_head_against_every_other(label):
    """Below, between and above those that are there."""
    problem = make("well_behaved", 4, n=90, d=3, classes=4)
    problem = dataclasses.replace(problem, y=2 * problem.y)
    model = fit(problem)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)) + 1.0, np.full(6, label)
    model.insert(X, y)
    assert model.work_.cold_solves == 4
    assert len(model.coef_) == 10
    everything = np.concatenate([problem.X, X]), np.concatenate([problem.y, y])
    assert_equal(model, one_vs_one().fit(*everything), problem.X)
    check_heads(model, *everything, np.arange(96))
    model.forget(range(90, 96))
    assert snapshot(model)[:3] == snapshot(fit(problem))[:3]
    assert (len(model.coef_), model.work_.cold_solves) == (6, 0)


def test_a_class_that_goes_leaves_two_and_one_head():
    problem = make("well_behaved", 6, n=60, d=3, classes=3)
    model = fit(problem)
    gone, kept = (np.flatnonzero(chosen) for chosen in (problem.y == 0, problem.y != 0))
    model.forget(gone)
    assert (len(model.coef_), model.classes_.tolist(), model.work_.cold_solves) == (1, [1, 2], 0)
    assert_equal(model, problem.fit_on(kept), problem.X)
    with pytest.raises(ValueError, match="only class 2"):
        model.forget(np.flatnonzero(problem.y == 1))
    model.insert(problem.X[gone], problem.y[gone])
    assert snapshot(model)[:3] == snapshot(fit(problem))[:3]


def test_without_and_with_more_leave_the_model():
    problem = make("rectified", 0, n=120, d=3, classes=4)
    model = fit(problem)
    before = snapshot(model)
    after = model.without(model.support_[:30])
    more = model.with_more(problem.X[:5] + 0.25, problem.y[:5], instead_of=[7])
    assert snapshot(model) == before
    assert_equal(after, fit(problem, after.rows_), problem.X)
    kept = np.delete(np.arange(120), 7)
    X, y = np.concatenate([problem.X[kept], problem.X[:5] + 0.25]), np.concatenate([problem.y[kept], problem.y[:5]])
    assert_equal(more, one_vs_one().fit(X, y), problem.X)


def test_many_samples_at_a_time_on_larger_data():
    """Screens that leave some samples out, paths and Newton's method, one after the other."""
    problem = make("well_behaved", 8, n=4000, d=3, classes=3)
    model, rng = fit(problem), np.random.default_rng(1)
    for count in (1, 1, 3, 40, 1, 400, 1):
        model.forget(rng.choice(model.support_, min(count, len(model.support_)), replace=False))
        assert model.work_.cold_solves == 0
    assert decided(model)
    assert_equal(model, fit(problem, model.rows_), problem.X)
    check_heads(model, problem.X[model.rows_], problem.y[model.rows_], model.rows_)


# Weights, kinds of input


def test_weights_of_samples_and_classes():
    problem = make("well_behaved", 9, n=90, d=4, classes=4)
    weights = 10.0 ** np.random.default_rng(0).uniform(-2.0, 2.0, 90)
    by_class = {0: 5.0, 2: 0.25}
    model = fit(problem, weights=weights, class_weight=by_class)
    check_heads(model, problem.X, problem.y, np.arange(90), weights, class_weight=by_class)
    theirs = SVC(kernel="linear", decision_function_shape="ovo", tol=1e-9, class_weight=by_class)
    theirs.fit(problem.X, problem.y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(problem.X), -theirs.decision_function(problem.X), atol=1e-4)
    rows = model.support_[::3]
    model.forget(rows)
    kept = np.setdiff1d(np.arange(90), rows)
    assert_equal(model, fit(problem, kept, weights, class_weight=by_class), problem.X)


@pytest.mark.parametrize("kind", ["float32", "float16", "narrow", "tensor", "float32 tensor"])
def test_other_kinds_of_input_give_the_same_bytes(kind, monkeypatch):
    problem = make("well_behaved", 10, n=120, d=4, classes=4)
    X = problem.X.astype(np.float16 if kind == "float16" else np.float32)
    given = {"tensor": torch.tensor(X.astype(np.float64)), "float32 tensor": torch.tensor(X)}.get(kind, X)
    if kind == "narrow":  # kept as it is, as large arrays are
        monkeypatch.setattr("maxrr.svm.validation.is_large", lambda X: True)
    model, wide = one_vs_one().fit(given, problem.y), one_vs_one().fit(X.astype(np.float64), problem.y)
    assert snapshot(model) == snapshot(wide)
    for svm, features in ((model, given), (wide, X.astype(np.float64))):
        svm.forget(svm.support_[:10])
        svm.insert(features[:3], problem.y[:3])
    assert snapshot(model)[:3] == snapshot(wide)[:3]
    assert np.array_equal(model.predict(given), wide.predict(X.astype(np.float64)))


def test_from_where_a_graphics_processor_can_bring_them(monkeypatch):
    """Run here on the processor."""
    for module in (heads, deciding):
        monkeypatch.setattr(module, "on_accelerator", is_torch)
    problem = make("well_behaved", 13, n=200, d=4, classes=4)
    model = one_vs_one().fit(torch.tensor(problem.X), problem.y)
    assert snapshot(model)[:3] == snapshot(fit(problem))[:3]
    model.forget(model.support_[:20])
    assert_equal(model, fit(problem, model.rows_), problem.X)


def test_in_processes_the_heads_are_the_same(monkeypatch):
    problem = make("well_behaved", 14, n=200, d=4, classes=4)
    monkeypatch.setattr(pairs, "WORTH_PROCESSES", 6)
    monkeypatch.setattr(pairs, "cores", lambda: 2)
    model = fit(problem)
    model.forget(model.support_[:20])
    monkeypatch.undo()
    assert_equal(model, fit(problem, model.rows_), problem.X)


# Votes


@examples(100)
@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_votes_are_counted_and_the_first_class_wins_a_tie(classes, seed):
    scores = np.random.default_rng(seed).integers(-1, 2, (20, classes * (classes - 1) // 2)).astype(float)
    for row, found in zip(scores.tolist(), pairs.vote(scores, classes).tolist(), strict=True):
        both = zip(row, combinations(range(classes), 2), strict=True)
        winners = [other if score > 0.0 else one for score, (one, other) in both]
        assert found == max(range(classes), key=lambda code: (winners.count(code), -code))


def test_predictions_are_votes_in_parts_as_at_once(monkeypatch):
    problem = make("well_behaved", 12, n=80, d=2, classes=4)
    model = fit(problem)
    expected = model.classes_[pairs.vote(model.decision_function(problem.X), 4)]
    assert np.array_equal(model.predict(problem.X), expected)
    monkeypatch.setattr("maxrr.svm.estimator.SCORED_BYTES", 8 * 6 * 7)
    assert np.array_equal(model.predict(problem.X), expected)


# Many classes; what goes wrong


@pytest.mark.long
def test_sixty_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([f"class {number:02d}" for number in range(60)], 6)
    X = rng.normal(size=(360, 4)) + 3.0 * rng.normal(size=(60, 4)).repeat(6, axis=0)
    model = one_vs_one().fit(X, y)
    assert model.coef_.shape == (1770, 4)
    assert model.work_.cold_solves == 1770
    assert decided(model)
    theirs = SVC(kernel="linear", decision_function_shape="ovo", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, -theirs.coef_, atol=1e-3)  # any b of an interval may be theirs
    model.forget(np.concatenate([model.support_[:2], np.flatnonzero(y == "class 59")]))
    assert (len(model.coef_), model.work_.cold_solves) == (1711, 0)
    some_of_them = np.flatnonzero(np.isin(y, np.unique(y)[[0, 7, 23, 58]]))
    few = one_vs_one().fit(X[np.intersect1d(model.rows_, some_of_them)], y[np.intersect1d(model.rows_, some_of_them)])
    columns = [list(combinations(range(59), 2)).index(pair) for pair in combinations((0, 7, 23, 58), 2)]
    assert (model.coef_[columns].tobytes(), model.intercept_[columns].tobytes()) == snapshot(few)[:2]


def test_the_scheme_is_a_parameter_and_stays_that_of_the_fit():
    problem = make("well_behaved", 0, n=60, d=3, classes=3)
    model = fit(problem)
    assert clone(model).get_params()["scheme"] == "one-vs-one"
    assert LinearSVM().get_params()["scheme"] == "one-vs-rest"
    before = model.predict(problem.X)
    model.set_params(scheme="one-vs-rest")
    assert np.array_equal(model.predict(problem.X), before)
    model.forget(model.support_[:1])
    assert_equal(model, fit(problem, model.rows_), problem.X)
    unknown = LinearSVM(scheme="ovo")
    with pytest.raises(ValueError, match="scheme must be 'one-vs-rest' or 'one-vs-one', not 'ovo'"):
        unknown.fit(problem.X, problem.y)


def test_progress_is_told_by_heads_and_a_checkpoint_is_refused(tmp_path):
    problem, said = make("well_behaved", 0, classes=4), []
    one_vs_one().fit(problem.X, problem.y, progress=lambda what, done, total, **_: said.append((what, done, total)))
    assert said == [("heads", done, 6) for done in range(1, 7)]
    model = one_vs_one()
    with pytest.raises(ValueError, match="a checkpoint is for one-vs-rest heads, and the scheme is 'one-vs-one'"):
        model.fit(problem.X, problem.y, checkpoint=tmp_path / "heads")
    assert not list(tmp_path.iterdir())


def test_messages_name_both_classes(monkeypatch):
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    with pytest.warns(FlatHeadWarning, match="the head of class 'b' against 'a' has weights of zero"):
        one_vs_one().fit(X, ["a", "b", "c", "c"])
    unsolved = dataclasses.replace(LinearSVM().fit(X, [0, 0, 1, 1]).certificate_[0], decided=False, error=1.0)
    monkeypatch.setattr(deciding, "certify", lambda *_, **__: unsolved)
    with pytest.raises(ConvergenceError, match="the head of class 1 against 0 is not solved"):
        one_vs_one().fit(X, [0, 1, 2, 2])


def test_only_one_vs_rest_is_kept_as_plain_arrays():
    model = fit(make("well_behaved", 0))
    with pytest.raises(ValueError, match=r"only one-vs-rest models are kept .* this one is one-vs-one"):
        taken(model)
