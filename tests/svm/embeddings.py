"""Synthetic embeddings with label noise, and two ways of requests that must end where a fit ends."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr import LinearSVM


def embeddings(n: int, d: int, classes: int, noise: float = 0.05, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Float32 features of length about 1.4 around one centre per class, some with the label of another."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    X = (rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[y]) / np.sqrt(d)
    return X.astype(np.float32), np.where(rng.random(n) < noise, rng.integers(0, classes, n), y)


def assert_same(model: LinearSVM, rows: NDArray[Any], other: LinearSVM, others: NDArray[Any]) -> None:
    """Equal bytes and partitions, where row i of a model is sample rows[i]; every head is decided."""
    assert all(certificate.decided for each in (model, other) for certificate in each.certificate_)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert model.intercept_.tobytes() == other.intercept_.tobytes()
    for ours, theirs in zip(model.influential_, other.influential_, strict=True):
        assert np.sort(rows[ours]).tolist() == np.sort(others[theirs]).tolist()
    for mine, its in zip(model.certificate_, other.certificate_, strict=True):
        assert (mine.on_margin, mine.inside) == (its.on_margin, its.inside)


def check_any_order(X: NDArray[Any], y: NDArray[Any], few: int, seed: int = 0) -> None:
    """A fit in another order, forgetting before inserting, and inserting (with new classes) before forgetting.

    `few` is how many samples leave and how many arrive.
    """
    rng, n = np.random.default_rng(seed), len(y)
    order = rng.permutation(n)
    late, rest = order[:few], order[few:]
    first = LinearSVM().fit(X[rest], y[rest])
    influential = rng.permutation(first.support_)
    leaving = np.concatenate([influential[: few - 2], np.setdiff1d(np.arange(len(rest)), influential)[:2]])
    gone = rest[leaving]
    held = rng.permutation(np.setdiff1d(np.arange(n), gone))
    scratch = LinearSVM().fit(X[held].astype(np.float64), y[held])

    first.forget(leaving[:1])
    first.forget(leaving[1 : few // 2])
    first.insert(X[late[:1]], y[late[:1]])
    first.insert(X[late[1:]], y[late[1:]])
    first.forget(leaving[few // 2 :])
    assert_same(first, np.concatenate([rest, late]), scratch, held)

    new = y == np.max(y)
    begun, later = (rng.permutation(np.flatnonzero(part)) for part in (~new, new))
    second = LinearSVM().fit(X[begun], y[begun])
    known = np.concatenate([begun, later])
    second.insert(X[later], y[later])
    second = second._without(np.flatnonzero(np.isin(known, gone[::2])))
    second.forget(np.flatnonzero(np.isin(known, gone[1::2])))
    assert_same(second, known, scratch, held)
