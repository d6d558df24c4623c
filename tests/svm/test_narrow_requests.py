"""float16 and float32 under requests, in memory or in a file, kept so or not: the bytes are those of float64."""

from functools import cache

import numpy as np
import pytest

from maxrr import LinearSVM
from maxrr.svm import validation

CLASSES, D, FIRST, MORE = 3, 9, 90, 30


def samples(dtype, count, seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(count) % CLASSES)
    X = rng.normal(size=(count, D)) + np.random.default_rng(0).normal(size=(CLASSES, D))[y]
    return X.astype(dtype), y


def arriving(dtype):
    """Samples of the classes that there are, and then of a new one, away from them."""
    X, y = samples(dtype, MORE, seed=2)
    X[20:] += dtype(3.0)
    y[20:] = CLASSES
    return X, y


def given(X, place, folder):
    """The same numbers where a caller may have them."""
    if place == "in memory":
        return X
    if place == "in columns":
        return np.asfortranarray(X)
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r+" if place == "in a file" else "r")


def shown(model):
    """What must not depend on how samples are kept."""
    assert all(certificate.decided for certificate in model.certificate_)
    return (
        model.coef_.tobytes(), model.intercept_.tobytes(), model.classes_.tolist(), model._rows.tolist(),
        [rows.tolist() for rows in model.influential_], [(c.on_margin, c.inside) for c in model.certificate_],
    )  # fmt: skip


def requests(X, y, more, labels, copied=True):
    """A model after a fit, after samples have left and come, and after an exchange that brings a class."""
    model = LinearSVM(copy_X=copied).fit(X, y)
    yield model
    gone = np.union1d(model.support_[::5], np.setdiff1d(np.arange(FIRST), model.support_)[:3])
    model.forget(gone[:1])
    model.forget(gone[1:])
    model.insert(more[:20], labels[:20])
    yield model
    yield model._with_more(more[20:], labels[20:], instead_of=model.support_[:2])


@cache
def expected(dtype):
    """The same requests with a float64 copy, and a fit from scratch."""
    X, y = samples(dtype, FIRST, seed=1)
    more, labels = arriving(dtype)
    models = list(requests(X.astype(np.float64), y, more.astype(np.float64), labels))
    everything, rows = np.concatenate([X, more]).astype(np.float64), models[-1]._rows
    scratch = LinearSVM().fit(everything[rows], np.concatenate([y, labels])[rows])
    assert models[-1].coef_.tobytes() == scratch.coef_.tobytes()
    return [shown(model) for model in (models[1], models[2])], everything[rows].tobytes()


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("place", ["in memory", "in columns", "in a file", "in a file to read"])
@pytest.mark.parametrize("large", [0, validation.LARGE])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_every_request_ends_in_the_bytes_of_float64(dtype, large, place, copied, tmp_path, monkeypatch):
    """Below the size from which narrow types are kept, and above it."""
    wanted, features = expected(dtype)
    monkeypatch.setattr(validation, "LARGE", large)
    X, y = samples(dtype, FIRST, seed=1)
    more, labels = arriving(dtype)
    mine = X.copy()
    _, *models = requests(given(mine, place, tmp_path), y, more, labels, copied)
    assert [shown(model) for model in models] == wanted
    assert models[-1]._features_of(models[-1]._rows).astype(np.float64).tobytes() == features
    if copied or place == "in a file to read":  # what was given is as it was
        kept = np.load(tmp_path / "X.npy") if place.startswith("in a file") else mine
        assert kept.tobytes() == X.tobytes()


@pytest.mark.parametrize("large", [0, validation.LARGE])
def test_numbers_at_the_ends_of_float16(large, monkeypatch):
    """Its smallest number, its largest, and both zeros."""
    monkeypatch.setattr(validation, "LARGE", large)
    X, y = samples(np.float16, 80, seed=3)
    ends = np.finfo(np.float16)
    X[:4, 0] = [ends.smallest_subnormal, -ends.tiny, -0.0, 0.0]
    X[::7, 1] = np.float16(ends.smallest_subnormal) * (y[::7] + 1)
    X[5, 2] = ends.max
    model = LinearSVM().fit(X, y)
    assert shown(model) == shown(LinearSVM().fit(X.astype(np.float64), y))
    rows = np.delete(np.arange(80), 5)
    model.forget([5])
    scratch = LinearSVM().fit(X[rows].astype(np.float64), y[rows])
    assert model.coef_.tobytes() == scratch.coef_.tobytes()
    assert model.intercept_.tobytes() == scratch.intercept_.tobytes()
