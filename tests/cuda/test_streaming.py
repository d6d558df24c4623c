"""What can only be seen on a GPU: samples in main memory are sent there in blocks, within a budget."""

import numpy as np
import pytest
import torch

from maxrr.svm import LinearSVM, estimator
from maxrr.svm.arrays import Device
from maxrr.svm.cuda import streamed_start as start_streamed

BUDGET = 1 << 26


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_streamed_on_cuda(dtype, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=20_000)
    X = (rng.normal(size=(10, 64))[y] + rng.normal(size=(len(y), 64))).astype(dtype)
    starts, guess_run = [], start_streamed.guess_run
    monkeypatch.setattr(start_streamed, "guess_run", lambda *given: starts.append(guess_run(*given)) or starts[-1])
    resident = LinearSVM(device="cuda").fit(X, y)
    assert not starts
    monkeypatch.setattr(estimator, "asked_for", lambda name: Device("cuda", BUDGET) if name else None)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model = LinearSVM(device="cuda").fit(X, y)
    assert starts
    assert None not in starts
    assert 0 < torch.cuda.max_memory_allocated() - before <= BUDGET
    other = LinearSVM().fit(X.astype(np.float64), y)
    assert model.coef_.tobytes() == other.coef_.tobytes() == resident.coef_.tobytes()
    assert model.intercept_.tobytes() == other.intercept_.tobytes() == resident.intercept_.tobytes()
    rows = other.support_[:40]
    for changed in (model, resident, other):
        changed.forget(rows)
        changed.insert(X[rows], y[rows])
    assert model.coef_.tobytes() == other.coef_.tobytes() == resident.coef_.tobytes()
