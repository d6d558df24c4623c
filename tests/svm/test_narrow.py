"""Samples in float16 or float32, in memory or in a file, give the bytes that their numbers give in float64."""

import numpy as np
import pytest

from maxrr import LinearSVM
from maxrr.svm import validation
from maxrr.svm.snapshot import restored, taken


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(validation, "LARGE", 0)
    monkeypatch.setattr("maxrr.svm.arrays.BLOCK_BYTES", 8 * 7 * 50)  # fifty rows of seven numbers


def problem(dtype, count=400, classes=3):
    rng = np.random.default_rng(0)
    y = np.arange(count) % classes
    X = rng.normal(size=(count, 7)) + 1.5 * rng.normal(size=(classes, 7))[y]
    return X.astype(dtype), y


def same(model, other):
    assert all(certificate.decided for certificate in model.certificate_)
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert model.intercept_.tobytes() == other.intercept_.tobytes()
    assert np.array_equal(model.classes_, other.classes_)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_fit_forgetting_and_adding_end_in_the_bytes_of_float64(dtype):
    X, y = problem(dtype)
    model = LinearSVM().fit(X[:350], y[:350])
    kept = model._fitted.solution.samples.X
    assert kept.dtype == dtype
    assert not np.shares_memory(kept, X)
    same(model, LinearSVM().fit(X[:350].astype(np.float64), y[:350]))
    gone = np.union1d(model.support_[::3], [1, 2, 3])
    model.forget(gone)
    model.insert(X[350:], y[350:])
    assert model._fitted.solution.samples.X.dtype == dtype
    left = np.setdiff1d(np.arange(400), gone)
    same(model, LinearSVM().fit(X[left].astype(np.float64), y[left]))
    scores = X.astype(np.float64) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12, atol=1e-12)


def test_a_sample_that_the_narrow_type_cannot_hold_makes_all_of_them_wide():
    X, y = problem(np.float32)
    fine = np.full((3, 7), 0.1)
    model = LinearSVM().fit(X, y)
    model.insert(fine, [0, 1, 2])
    assert model._fitted.solution.samples.X.dtype == np.float64
    same(model, LinearSVM().fit(np.vstack([X.astype(np.float64), fine]), np.append(y, [0, 1, 2])))


def test_without_a_copy_the_file_itself_is_worked_on_and_erased(tmp_path):
    X, y = problem(np.float32)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, X.shape)
    mapped[:] = X
    model = LinearSVM(copy_X=False).fit(mapped, y)
    same(model, LinearSVM().fit(X, y))
    assert np.shares_memory(model._fitted.solution.samples.X, mapped)
    model.forget([5, 17])
    mapped.flush()
    stored = np.load(tmp_path / "X.npy")
    assert not stored[[5, 17]].any()
    assert np.array_equal(np.delete(stored, [5, 17], 0), np.delete(X, [5, 17], 0))


def test_a_file_that_cannot_be_written_is_copied(tmp_path):
    X, y = problem(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = LinearSVM(copy_X=False).fit(mapped, y)
    model.forget([5])
    assert np.array_equal(np.load(tmp_path / "X.npy"), X)


def test_numbers_that_are_not_finite_are_found_in_any_block():
    X, y = problem(np.float32)
    X[333, 2] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity"):
        LinearSVM().fit(X, y)


def test_a_snapshot_keeps_the_narrow_type():
    X, y = problem(np.float16)
    model = LinearSVM().fit(X, y)
    model.forget([3])
    alive = np.arange(400) != 3
    again = restored(1.0, X.copy(), y, alive, taken(model), copy_X=False)
    assert again._fitted.solution.samples.X.dtype == np.float16
    same(again, model)
    again.forget(again.support_[:5])
    model.forget(model.support_[:5])
    same(again, model)
