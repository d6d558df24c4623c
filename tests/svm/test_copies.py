"""Two models never share what one of them may erase: a copy forgets, and the other goes on as it was."""

import copy

import numpy as np
import pytest
import torch

from maxrr import LinearSVM
from tests.svm.problems import assert_equal, make, snapshot


def problem_and_model(kind=np.asarray):
    problem = make("well_behaved", 4, n=40, d=3, classes=3)
    return problem, LinearSVM().fit(kind(problem.X), problem.y)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, LinearSVM._read_only])
@pytest.mark.parametrize("first", ["the copy", "the original"])
def test_what_one_forgets_the_other_still_has(copied, first):
    """The original's next answer was decided, and wrong by 0.18."""
    problem, model = problem_and_model()
    other = copied(model)
    one, two = (other, model) if first == "the copy" else (model, other)
    gone, next_ = model.support_[:5], model.support_[5:7]
    before = snapshot(two)
    one.forget(gone)
    one.insert(problem.X[:1] + 0.5, problem.y[:1])
    assert snapshot(two) == before
    if copied is LinearSVM._read_only and first == "the original":  # whose erasure nobody may escape
        with pytest.raises(ValueError, match="erased by another"):
            two.forget(next_)
        with pytest.raises(ValueError, match="erased by another"):
            two.insert(problem.X[:1], problem.y[:1])
        assert snapshot(two) == before
        return
    two.forget(next_)
    assert_equal(two, problem.fit_on(np.delete(np.arange(len(problem.y)), next_)), problem.X)


def test_tensors_are_copied_as_well():
    problem, model = problem_and_model(torch.as_tensor)
    copy.copy(model).forget(model.support_[:5])
    gone = model.support_[5:7]
    model.forget(gone)
    assert_equal(model, problem.fit_on(np.delete(np.arange(len(problem.y)), gone)), problem.X)


def test_a_model_that_was_handed_out_erases_nothing():
    _, model = problem_and_model()
    handed = model._read_only()
    held = (model._rows, model._features_of(model._rows))
    for change in (handed._erase, handed._without(model.support_[:2])._erase):
        with pytest.raises(ValueError, match="read-only"):
            change(model.support_[:2])
    handed.C = 7.0
    assert model.C == 1.0
    assert np.array_equal(model._rows, held[0])
    assert np.array_equal(model._features_of(model._rows), held[1])


def test_a_copy_of_a_model_that_is_not_fitted_is_not_fitted():
    model = LinearSVM(class_weight={0: 2.0})
    other = copy.copy(model)
    other.class_weight[0] = 3.0
    assert model.class_weight == {0: 2.0}
    assert not other.__sklearn_is_fitted__()
