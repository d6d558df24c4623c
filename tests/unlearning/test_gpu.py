"""Requests to models whose heads were fitted on a GPU; tensors in main memory stand for those there."""

import numpy as np
import pytest

from maxrr.svm import arrays, heads, validation
from maxrr.svm.cuda import start
from maxrr.unlearning import blueprint as making
from maxrr.unlearning.blueprint import Blueprint
from tests.unlearning.problems import kinds, table, table_model


@pytest.mark.parametrize("adds", [False, True])
def test_many_records_move_heads_where_they_were_solved(adds, monkeypatch):
    """The same bytes, features in main memory, and none of what left."""
    model, other = table_model(), table_model()
    for module in (arrays, validation, heads):
        monkeypatch.setattr(module, "on_accelerator", arrays.is_torch)
    monkeypatch.setattr(Blueprint, "solves_on_gpu", property(lambda blueprint: blueprint is model._fitted.blueprint))
    monkeypatch.setattr(making, "MOST_CHANGED", 2)
    resumed = []
    monkeypatch.setattr(start, "resume_run", lambda *given, run=start.resume_run: resumed.append(1) or run(*given))
    monkeypatch.setattr(heads, "most_changed", lambda samples: 2)
    ids = kinds(model, table())[1][:8].tolist()
    before = model._fitted.heads._fitted.solution.samples.X
    for each in (model, other):
        if adds:
            records = table()
            new = (
                records.inputs[:8] + 0.5,
                np.array(records.class_names)[records.labels[:8]],
                np.arange(8) + 1_000_000,
                records.subjects[:8],
            )
            each.add(*new)
        each.unlearn(ids)
    assert resumed
    assert model.heads_.coef_.tobytes() == other.heads_.coef_.tobytes()
    assert model.heads_.intercept_.tobytes() == other.heads_.intercept_.tobytes()
    samples = model._fitted.heads._fitted.solution.samples
    assert isinstance(samples.X, np.ndarray)
    assert not samples.X[~samples.held].any()
    assert adds or np.shares_memory(samples.X, before)
