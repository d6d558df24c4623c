"""Faults that were once reported, each as the smallest example of it."""

import itertools

import joblib
import numpy as np
import pytest

from maxrr import LinearSVM
from tests.svm import exact_oracle
from tests.svm.problems import make, snapshot

flat_heads_expected = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")


def bytes_of(model):
    return model.coef_.tobytes(), model.intercept_.tobytes()


# Bytes


def test_a_penalty_that_is_not_a_decimal_fraction():
    """The float64 0.1 is above 1/10, so that the exact bias is 2^−54 and not 0. Fit and forget took one each."""
    X, y = np.array([[2.0, 1.0, 2.0], [0.0, 4.0, 1.0], [3.0, 4.0, 3.0], [2.0, 3.0, 1.0]]), np.array([0, 1, 0, 1])
    exact = exact_oracle.solve(X, 2 * y - 1, 0.1)
    fitted = LinearSVM(0.1).fit(X, y)
    assert exact.b == 2.0**-54
    assert fitted.intercept_.tolist() == [2.0**-54]
    assert fitted.coef_[0].tolist() == [float(part) for part in exact.w]
    model = LinearSVM(0.1).fit(np.vstack([X, np.zeros(3)]), np.append(y, 1))
    model.forget([4])
    assert bytes_of(model) == bytes_of(fitted)
    assert model.certificate_[0].decided


@flat_heads_expected
def test_ties_of_large_features():
    X, y = np.array([[2e5], [0.0], [0.0], [3e5], [1e5]]), np.array([1, 0, 1, 1, 0])
    model, fitted = LinearSVM(100.0).fit(X, y), LinearSVM(100.0).fit(X[:4], y[:4])
    model.forget([4])
    assert bytes_of(model) == bytes_of(fitted)
    assert model.intercept_.tolist() == [1.0]
    assert model.certificate_[0].decided
    assert fitted.certificate_[0].decided


TWO_CLASSES_LEFT = [y for y in itertools.product([0, 1], repeat=5) if len({*y[:1], *y[2:]}) == 2]


@flat_heads_expected
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("y", TWO_CLASSES_LEFT, ids=lambda y: "".join(map(str, y)))
def test_ties_of_small_features(y, C):
    """All margins are within a millionth of ±b: only the bias tells the samples apart."""
    X, y, kept = np.array([[-3.0], [1.0], [-1.0], [1.0], [0.0]]) * 1e-6, np.array(y), [0, 2, 3, 4]
    model, fitted = LinearSVM(C).fit(X, y), LinearSVM(C).fit(X[kept], y[kept])
    model.forget([1])
    assert bytes_of(model) == bytes_of(fitted)
    assert model.certificate_[0].decided
    assert fitted.certificate_[0].decided
    assert model.support_.tolist() == [kept[row] for row in fitted.support_]


def test_margins_that_differ_by_less_than_float64_can_tell():
    """Which sample the bias comes from depends on the last bits of margins near 1, and the influential ones on that."""
    problem = make("scaled_down", 1, n=8, d=1, classes=2, C=0.001)
    exact = exact_oracle.solve(problem.X, 2 * problem.y - 1, problem.C)
    model = problem.fit_on(np.arange(1, len(problem.y)))
    model.insert(problem.X[:1], problem.y[:1])  # row 0 comes last
    back = [(row + 1) % len(problem.y) for row in model.support_]
    assert set(back) == exact.on | exact.inside
    assert set(problem.fit().support_.tolist()) == exact.on | exact.inside


def test_a_sample_without_influence_does_not_change_how_small_weights_are_rounded():
    """The third one is outside the margin, hardly, and its features are large: that is no reason for other bytes."""
    X, y = np.array([[1.0, 1e-40, 0.0], [-1.0, 2.3e-40, 0.0], [1.0 + 1e-12, 0.0, 1e6]]), np.array([1, 0, 1])
    model, fitted = LinearSVM(10.0).fit(X, y), LinearSVM(10.0).fit(X[:2], y[:2])
    assert model.support_.tolist() == [0, 1]
    assert bytes_of(model) == bytes_of(fitted)


# Classes that the features do not tell


@flat_heads_expected
@pytest.mark.parametrize("seed", range(3))
def test_a_weak_class(seed):
    """A tenth of the samples, taken at random: the head ended far above what w = 0 costs, and did not say so."""
    rng = np.random.default_rng(seed)
    X = np.maximum(rng.normal(size=(2000, 20)) @ rng.normal(size=(20, 20)), 0.0)
    y = (rng.random(2000) < 0.1).astype(int)
    certificate = LinearSVM().fit(X, y).certificate_[0]
    assert certificate.solved
    assert certificate.decided
    assert certificate.primal <= 2.0 * np.count_nonzero(y) * (1.0 + 1e-14)  # b = −1: each of the class pays 2


# Models from files


@pytest.mark.parametrize("mmap_mode", ["r", "c", "r+", None])
def test_a_model_loaded_as_a_memory_map_forgets(tmp_path, mmap_mode):
    """Its arrays may not be written to: it takes copies of those that it must erase."""
    problem = make("well_behaved", 0, n=60, d=3, classes=3)
    model = problem.fit()
    joblib.dump(model, tmp_path / "model.joblib")
    before = (tmp_path / "model.joblib").read_bytes()
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
    assert snapshot(loaded) == snapshot(model)
    rows = model.support_[:3]
    assert loaded.forget(rows) == model.forget(rows)
    assert snapshot(loaded) == snapshot(model)
    assert bytes_of(loaded) == bytes_of(problem.fit_on(np.setdiff1d(np.arange(60), rows)))
    assert not loaded._fitted.solution.samples.X[rows].any()
    assert loaded._rows.tolist() == model._rows.tolist()
    if mmap_mode != "r+":
        assert (tmp_path / "model.joblib").read_bytes() == before
    loaded.insert(problem.X[rows], problem.y[rows])
    assert bytes_of(loaded) == bytes_of(problem.fit())


# Arguments that were taken for something else


@pytest.mark.parametrize("verb", ["fit", "insert", "_with_more"])
def test_a_third_positional_argument_is_refused(verb):
    """In scikit-learn sample weights come there; here they have to be named."""
    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1, 0, 1])
    model = LinearSVM() if verb == "fit" else LinearSVM().fit(X, y)
    with pytest.raises(TypeError, match="positional"):
        getattr(model, verb)(X, y, np.array([1, 2, 3]))


@pytest.mark.parametrize("smallest", [2**53, 2**63, 2**64 - 2])
def test_labels_beyond_what_float64_and_int64_hold(smallest):
    """As unsigned integers they keep their identity."""
    X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([0, 1, 0, 1], dtype=np.uint64) + np.uint64(smallest)
    model = LinearSVM().fit(X, y)
    assert model.classes_.tolist() == [smallest, smallest + 1]
    assert model.predict(X).tolist() == y.tolist()
    model.forget([0])
    model.insert(X[:1], y[:1])
    assert model.classes_.tolist() == [smallest, smallest + 1]
    assert bytes_of(model) == bytes_of(LinearSVM().fit(X, y))


@pytest.mark.parametrize(
    ("known", "labels"),
    [
        (np.array([0.0, 2.0**53]), np.array([2**53 + 1])),
        (np.array([0.0, 2.0**53]), np.array([2**53 + 1], dtype=np.uint64)),
        (np.array([0, 2**53 + 1]), np.array([2.0**53])),
        (np.array([0, 2**63 + 1], dtype=np.uint64), np.array([-1])),
        (np.array([0, 2**63 + 1], dtype=np.uint64), np.array([2.0**62])),
    ],
)
def test_labels_that_cannot_be_told_apart_are_refused(known, labels):
    """Beside the known ones they would become float64, and equal to one of them or another than they are."""
    model = LinearSVM().fit([[0.0], [1.0]], known)
    before = snapshot(model)
    with pytest.raises(ValueError, match="told apart"):
        model.insert([[2.0]], labels)
    assert snapshot(model) == before


def test_neighbouring_integer_labels_are_kept_apart():
    model = LinearSVM().fit([[0.0, 0.0], [4.0, 0.0]], np.array([0, 2**53]))
    model.insert([[0.0, 4.0]], np.array([2**53 + 1]))
    assert model.classes_.tolist() == [0, 2**53, 2**53 + 1]


@pytest.mark.parametrize("row", [2**63, 2**64 - 1])
def test_row_numbers_beyond_int64_are_refused(row):
    """The last is −1 in 64 bits, and must not be taken for the row before the first or the last one."""
    model = LinearSVM().fit([[0.0], [1.0], [5.0]], [0, 1, 1])
    with pytest.raises(ValueError, match="unknown rows"):
        model.forget(np.array([row], dtype=np.uint64))
    assert model._rows.tolist() == [0, 1, 2]
    model.forget(np.array([2], dtype=np.uint64))
    assert model._rows.tolist() == [0, 1]


def test_labels_as_python_objects():
    """As a column of a table has them."""
    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array(["yes", "no", "yes"], dtype=object)
    model = LinearSVM().fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.forget([2])[0].decided
    model.insert(X[2:], y[2:])
    assert model.predict(X).tolist() == y.tolist()
