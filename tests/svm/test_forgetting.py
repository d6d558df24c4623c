"""Forgetting equals never having seen: the paper's proposition, `forget`, `insert`, their cost, what stays behind."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from maxrr import LinearSVM
from maxrr.svm.heads import Work
from tests.cases import examples, seeds
from tests.svm.problems import assert_equal, decided, make, problems, snapshot

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


def chosen(data, rows):
    """Some of these rows, at least one."""
    mask = data.draw(st.integers(1, 2 ** min(len(rows), 60) - 1))
    return np.array([row for place, row in enumerate(rows) if mask >> (place % 60) & 1])


def without(problem, rows):
    return np.setdiff1d(np.arange(len(problem.y)), rows)


# What has no influence


@examples(100)
@given(problems(), st.data())
def test_removing_samples_without_influence_changes_nothing(problem, data):
    """The paper's proposition, by two routes: fitting from scratch, and forgetting."""
    model = problem.fit()
    outside = without(problem, model.support_)
    assume(len(outside))
    rows = chosen(data, outside)
    kept = without(problem, rows)
    assume(len(np.unique(problem.y[kept])) == len(model.classes_))
    assert_equal(problem.fit_on(kept), model, problem.X)
    before, certificates = (model.coef_.tobytes(), model.intercept_.tobytes()), model.certificate_
    model.forget(rows)
    assert (model.coef_.tobytes(), model.intercept_.tobytes()) == before
    assert model._fitted.solution.work == Work(cold_solves=0, passes=0)
    # The certificate follows too: it speaks of the samples that are left, of which the longest may be a shorter one.
    longest = np.max(np.linalg.norm(problem.X[kept].astype(float), axis=1))
    for now, then in zip(model.certificate_, certificates, strict=True):
        assert now == dataclasses.replace(then, error=now.error)
        assert now.error <= then.error
        assert now.error == pytest.approx(now.weight_error * longest + now.bias_error, rel=1e-6)


def test_bytes_are_claimed_on_ordinary_data():
    """Nearly always: or the byte tests would test nothing."""
    penalties = (0.01, 1.0, 100.0)
    claimed = [decided(make("well_behaved", seed, n=60, d=4, C=C).fit()) for seed in seeds(0, 40) for C in penalties]
    assert np.mean(claimed) >= 0.95


# forget = fit without


@examples(80)
@given(problems(), st.data())
def test_forget_equals_a_fit_without(problem, data):
    model = problem.fit()
    rows = chosen(data, list(range(len(problem.y))))
    kept = without(problem, rows)
    assume(len(np.unique(problem.y[kept])) >= 2)
    certificates = model.forget(rows)
    assert certificates == model.certificate_
    scratch = problem.fit_on(kept)
    assert_equal(model, scratch, problem.X)
    assert all(certificate.solved for certificate in certificates)
    if decided(model, scratch):  # row numbers keep their meaning
        assert np.array_equal(model.support_, kept[scratch.support_])
        for ours, theirs in zip(model.influential_, scratch.influential_, strict=True):
            assert np.array_equal(ours, kept[theirs])


@examples(60)
@given(problems(), st.data())
def test_forget_one_influential_sample(problem, data):
    model = problem.fit()
    row = data.draw(st.sampled_from(model.support_.tolist()))
    kept = without(problem, [row])
    assume(len(np.unique(problem.y[kept])) >= 2)
    model.forget(row)
    assert_equal(model, problem.fit_on(kept), problem.X)


@examples(60)
@given(problems())
def test_forget_all_influential_samples(problem):
    model = problem.fit()
    kept = without(problem, model.support_)
    assume(len(np.unique(problem.y[kept])) >= 2)
    model.forget(model.support_)
    assert_equal(model, problem.fit_on(kept), problem.X)


@examples(40)
@given(problems(), st.data())
def test_order_and_grouping_do_not_matter(problem, data):
    rows = chosen(data, list(range(len(problem.y))))[:12]
    kept = without(problem, rows)
    assume(len(np.unique(problem.y[kept])) >= 2)
    at_once = problem.fit()
    at_once.forget(rows)
    shuffled = np.array(data.draw(st.permutations(rows.tolist())))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=3)))
    in_parts = problem.fit()
    for part in np.split(shuffled, cuts):
        if len(part):
            in_parts.forget(part)
    assert_equal(in_parts, at_once, problem.X)
    assert_equal(in_parts, problem.fit_on(kept), problem.X)


def test_every_order_of_three_requests():
    problem = make("well_behaved", 3, n=60, d=3, classes=3)
    rows = problem.fit().support_[:3]
    results = []
    for order in itertools.permutations(rows):
        model = problem.fit()
        for row in order:
            model.forget([row])
        assert decided(model)
        results.append(model.coef_.tobytes() + model.intercept_.tobytes())
    assert len(set(results)) == 1


# insert undoes forget


@examples(80)
@given(problems(), st.data())
def test_insert_undoes_forget(problem, data):
    model, original = problem.fit(), problem.fit()
    rows = chosen(data, list(range(len(problem.y))))
    kept = without(problem, rows)
    assume(len(np.unique(problem.y[kept])) >= 2)
    model.forget(rows)
    certificates = model.insert(problem.X[rows], problem.y[rows])
    assert certificates == model.certificate_
    assert all(certificate.solved for certificate in certificates)
    assert_equal(model, original, problem.X)
    # The rows that came back have the next numbers; the others kept theirs.
    if decided(model, original):
        n = len(problem.y)
        number = dict(zip(rows.tolist(), range(n, n + len(rows)), strict=True))
        assert sorted(number.get(row, row) for row in original.support_.tolist()) == model.support_.tolist()


def test_forget_what_was_inserted():
    problem = make("well_behaved", 5, n=50, d=3, classes=3)
    model = problem.fit_on(np.arange(40))
    before = model.coef_.tobytes()
    model.insert(problem.X[40:], problem.y[40:])
    assert model.coef_.tobytes() == problem.fit().coef_.tobytes()
    model.forget(np.arange(40, 50))
    assert model.coef_.tobytes() == before


# Whole classes


@pytest.mark.parametrize("gone", [0, 1, 2, 3])
def test_forgetting_a_class_drops_its_head(gone):
    problem = make("well_behaved", 2, n=60, d=4, classes=4)
    model = problem.fit()
    model.forget(np.flatnonzero(problem.y == gone))
    assert gone not in model.classes_
    assert len(model.coef_) == len(model.intercept_) == len(model.certificate_) == 3
    assert_equal(model, problem.fit_on(problem.y != gone), problem.X)
    assert gone not in model.predict(problem.X)


@examples(40)
@given(problems(), st.data())
def test_from_three_classes_to_two_and_back(problem, data):
    classes = np.unique(problem.y)
    assume(len(classes) == 3)
    gone = data.draw(st.sampled_from(classes.tolist()))
    rows = np.flatnonzero(problem.y == gone)
    model = problem.fit()
    model.forget(rows)
    assert len(model.coef_) == 1
    assert_equal(model, problem.fit_on(problem.y != gone), problem.X)
    model.insert(problem.X[rows], problem.y[rows])
    assert_equal(model, problem.fit(), problem.X)


@examples(40)
@given(problems(), st.data())
def test_inserting_a_new_class(problem, data):
    """Also from two classes to three, where the one head there was serves both of its classes."""
    classes = np.unique(problem.y)
    assume(len(classes) >= 3)
    new = data.draw(st.sampled_from(classes.tolist()))
    rows = np.flatnonzero(problem.y == new)
    model = problem.fit_on(problem.y != new)
    model.insert(problem.X[rows], problem.y[rows])
    assert_equal(model, problem.fit(), problem.X)


def test_a_new_class_that_leaves_the_old_heads_alone():
    """Nothing of it comes near their margins, so they stay as they are: even the signs of their zeros."""
    X = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]])
    y = np.array([1, 0, 1, 0])
    model = LinearSVM(C=0.01).fit(X, y)
    far, label = np.array([[0.0, 900.0, 0.0], [0.0, 901.0, 0.0]]), np.array([2, 2])
    model.insert(far, label)
    assert_equal(model, LinearSVM(C=0.01).fit(np.vstack([X, far]), np.concatenate([y, label])), X)


# What it costs


def test_forgetting_makes_few_passes():
    """The working set is a few times the d + 1 samples on the margin, whatever n is; a pass certifies the result."""
    problem = make("well_behaved", 0, n=4000, d=5, classes=3)
    model = problem.fit()
    fit = model._fitted.solution.work
    assert fit.cold_solves == 3
    gone = model.support_[:: len(model.support_) // 8]
    for row in gone:
        model.forget([row])
        assert model._fitted.solution.work.cold_solves == 0
        assert model._fitted.solution.work.passes <= 0.5 * fit.passes
    model.forget(without(problem, np.union1d(model.support_, gone))[:50])
    assert (model._fitted.solution.work.passes, model._fitted.solution.work.cold_solves) == (0, 0)


@examples(60)
@given(problems(), st.data())
def test_forgetting_does_not_start_over(problem, data):
    """The cold solver is a fallback for updates that fail. None of these does."""
    model = problem.fit()
    row = data.draw(st.sampled_from(model.support_.tolist()))
    assume(np.count_nonzero(problem.y == problem.y[row]) > 1)
    model.forget([row])
    assert model._fitted.solution.work.cold_solves == 0


# What stays behind


def arrays_in(thing, seen=None):
    """Every array reachable from an object, through attributes and containers."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | type(None)):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
        if thing.base is not None:
            yield from arrays_in(thing.base, seen)
    elif hasattr(thing, "detach"):
        yield thing.detach().cpu().numpy()
    elif isinstance(thing, dict):
        for value in itertools.chain(thing.keys(), thing.values()):
            yield from arrays_in(value, seen)
    elif isinstance(thing, list | tuple | set | frozenset):
        for value in thing:
            yield from arrays_in(value, seen)
    elif hasattr(thing, "__dict__"):
        yield from arrays_in(vars(thing), seen)


def holds(model, value):
    """Whether a number or string is in any array of the model."""
    kinds = "U" if isinstance(value, str) else "iuf"
    return any(np.any(array == value) for array in arrays_in(vars(model)) if array.dtype.kind in kinds)


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("influential", [False, True])
def test_nothing_of_a_forgotten_sample_remains(influential, tensors):
    problem = make("well_behaved", 0, n=60, d=3, classes=3, C=1.0)
    n = len(problem.y)
    X = torch.tensor(problem.X) if tensors else problem.X
    model = LinearSVM().fit(X, problem.y)
    rows = (model.support_ if influential else without(problem, model.support_))[:3]
    contents = [*problem.X[rows].ravel().tolist(), *np.linalg.norm(problem.X[rows], axis=1)]
    screens = [head.screen for head in model._fitted.solution.heads]
    margins = [part for screen in screens for part in screen.distance[np.isin(screen.places, rows)].tolist()]
    assert margins
    assert all(holds(model, value) for value in contents[: problem.X.shape[1]])
    assert all(holds(model, value) for value in margins)
    assert all(holds(model, value) for value in problem.X[rows].ravel().tolist())
    model.forget(rows)
    assert not any(holds(model, value) for value in contents)
    assert not any(holds(model, value) for value in margins if value > 1e-9)
    assert holds(model, float(problem.X[(set(range(n)) - set(rows.tolist())).pop(), 0]))


def test_what_the_caller_gave_is_left_alone():
    """Forgetting erases the model's copy, not the caller's."""
    problem = make("well_behaved", 0, n=40, d=3, classes=2)
    X, y = problem.X.copy(), problem.y.copy()
    model = LinearSVM().fit(X, y)
    model.forget(model.support_[:2])
    assert X.tobytes() == problem.X.tobytes()
    assert y.tobytes() == problem.y.tobytes()


# Some samples instead of others, in one move


def exchanged(problem, model, leaving, X, y):
    """The model after the exchange, and the oracle: a fit from scratch on the samples that there are then."""
    kept = without(problem, leaving)
    everything = np.concatenate([problem.X[kept], X]), np.concatenate([problem.y[kept], y])
    scratch = LinearSVM(problem.C).fit(*everything)
    return model._with_more(X, y, instead_of=leaving), scratch


def check_exchange(problem, leaving, X, y):
    """It is the oracle, it knows which rows it holds, and the model before is as it was."""
    model = problem.fit()
    before = snapshot(model)
    after, scratch = exchanged(problem, model, leaving, X, y)
    kept = without(problem, leaving)
    assert_equal(after, scratch, problem.X)
    assert all(certificate.solved for certificate in after.certificate_)
    rows = np.concatenate([kept, len(problem.y) + np.arange(len(y))])
    assert after._rows.tolist() == rows.tolist()
    if decided(after, scratch):
        assert np.array_equal(after.support_, rows[scratch.support_])
    held, features = (after._rows, after._features_of(after._rows))
    assert held.tolist() == rows.tolist()
    assert features.tobytes() == np.concatenate([problem.X[kept], X]).astype(np.float64).tobytes()
    assert snapshot(model) == before
    assert model._rows.tolist() == list(range(len(problem.y)))
    return after


@examples(80)
@given(problems(), st.data())
def test_an_exchange_equals_a_fit_on_what_is_there_then(problem, data):
    """Samples of the same problem come in, as they are or moved."""
    n = len(problem.y)
    leaving = chosen(data, list(range(n)))[:8]
    coming = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8)))
    assume(len(np.unique(np.concatenate([problem.y[without(problem, leaving)], problem.y[coming]]))) >= 2)
    shift = data.draw(st.sampled_from([0, 1]))  # 0: duplicates of samples that stay or leave
    check_exchange(problem, leaving, problem.X[coming] + shift, problem.y[coming])


@examples(40)
@given(problems(), st.data())
def test_a_sample_in_its_own_place_changes_nothing(problem, data):
    model = problem.fit()
    rows = chosen(data, list(range(len(problem.y))))[:5]
    after = model._with_more(problem.X[rows], problem.y[rows], instead_of=rows)
    assert_equal(after, model, problem.X)


@examples(40)
@given(problems(), st.data())
def test_another_label_for_the_same_sample(problem, data):
    """Also one that no sample had before, below or above all others."""
    row = data.draw(st.integers(0, len(problem.y) - 1))
    label = data.draw(st.sampled_from([-1, 0, 1, 9]))
    kept = without(problem, [row])
    assume(len(np.unique(np.append(problem.y[kept], label))) >= 2)
    check_exchange(problem, [row], problem.X[[row]], np.array([label]))


@pytest.mark.parametrize(
    ("classes", "last_of", "label"),
    [
        (classes, last_of, label)
        for classes in (2, 3)
        for last_of in range(classes)
        for label in range(-1, classes + 1)
        if classes > 2 or label != 1 - last_of  # that would leave one class
    ],
)
def test_the_last_sample_of_a_class_is_exchanged(classes, last_of, label):
    """Heads go and come, and with two classes the one there is turns round."""
    problem = make("well_behaved", 11, n=30, d=3, classes=classes)
    rows = np.append(np.flatnonzero(problem.y != last_of), np.flatnonzero(problem.y == last_of)[0])
    alone = dataclasses.replace(problem, X=problem.X[rows], y=problem.y[rows])
    after = check_exchange(alone, [len(rows) - 1], 0.3 - alone.X[[-1]], np.array([label]))
    assert after.classes_.tolist() == np.union1d(alone.y[:-1], [label]).tolist()
    assert decided(after)


def test_an_exchange_that_leaves_one_class_is_refused():
    model = LinearSVM().fit([[0.0], [1.0], [3.0]], ["no", "no", "yes"])
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"'no'.* two classes"):
        model._with_more([[2.0]], ["no"], instead_of=[2])
    assert snapshot(model) == before


@pytest.mark.parametrize(
    ("rows", "words"), [([99], "unknown rows"), ([0, 0], "repeat"), ([0.5], "row numbers"), ([[0]], "row numbers")]
)
def test_an_exchange_is_checked(rows, words):
    problem = make("well_behaved", 0, n=20)
    model = LinearSVM().fit(problem.X, problem.y)
    before = snapshot(model)
    with pytest.raises(ValueError, match=words):
        model._with_more(problem.X[:1], problem.y[:1], instead_of=rows)
    assert snapshot(model) == before


def test_exchanging_one_sample_does_not_start_over():
    problem = make("well_behaved", 0, n=2000, d=5, classes=3)
    model = problem.fit()
    fit, row = model._fitted.solution.work, model.support_[:1]
    after = model._with_more(problem.X[row] + 0.1, problem.y[row], instead_of=row)
    assert after._fitted.solution.work.cold_solves == 0
    assert after._fitted.solution.work.passes <= 0.5 * fit.passes


def test_an_exchange_without_influence_costs_no_pass():
    """Far outside every margin, before and after."""
    problem = make("separable", 0, n=60, d=3, classes=3)
    model = problem.fit()
    outside = without(problem, model.support_)[:1]
    after = model._with_more(problem.X[outside], problem.y[outside], instead_of=outside)
    assert after.coef_.tobytes() == model.coef_.tobytes()
    assert (after._fitted.solution.work.cold_solves, after._fitted.solution.work.passes) == (0, 0)


@pytest.mark.parametrize("tensors", [False, True])
def test_nothing_of_an_exchanged_sample_remains_where_it_is_erased(tensors):
    """Both models have memory of their own: the old one is told which rows to erase, the new one knows."""
    problem = make("well_behaved", 0, n=60, d=3, classes=3)
    model = LinearSVM().fit(torch.tensor(problem.X) if tensors else problem.X, problem.y)
    rows = model.support_[:2]
    contents = [*problem.X[rows].ravel().tolist(), *np.linalg.norm(problem.X[rows], axis=1)]
    after = model._with_more(problem.X[:1] + 0.5, problem.y[:1], instead_of=rows)
    result = snapshot(after)
    assert any(holds(after, value) for value in contents)
    after._erase()
    assert not any(holds(after, value) for value in contents)
    assert any(holds(model, value) for value in contents)
    model._erase(rows)
    assert not any(holds(model, value) for value in contents)
    assert holds(model, float(problem.X[without(problem, rows)[0], 0]))
    assert snapshot(after) == result


def test_after_an_erasure_the_model_goes_on():
    problem = make("well_behaved", 3, n=60, d=3, classes=3)
    model = problem.fit()
    rows = model.support_[:3]
    after, _ = exchanged(problem, model, rows, problem.X[rows] + 0.5, problem.y[rows])
    after._erase()
    after._erase()
    assert after._rows.tolist() == [*without(problem, rows), 60, 61, 62]
    more = without(problem, rows)[:4]
    after.forget([*more, 61])
    left = np.setdiff1d(without(problem, rows), more)
    scratch = LinearSVM(problem.C).fit(
        np.concatenate([problem.X[left], problem.X[rows[[0, 2]]] + 0.5]),
        np.concatenate([problem.y[left], problem.y[rows[[0, 2]]]]),
    )
    assert_equal(after, scratch, problem.X)
    assert decided(after)


def test_erasing_nothing():
    model = make("well_behaved", 3).fit()
    before, features = snapshot(model), model._features_of(model._rows).tobytes()
    model._erase()
    model._erase([])
    assert snapshot(model) == before
    assert model._features_of(model._rows).tobytes() == features
