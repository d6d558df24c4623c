"""What must not matter: the order of samples, the kind of array, its precision, the number of threads."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from maxrr import LinearSVM
from maxrr.svm.certificate import FORM
from tests.cases import examples
from tests.svm.problems import assert_equal, decided, make, problems

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


def same_bytes(one, other):
    return one.coef_.tobytes() == other.coef_.tobytes() and one.intercept_.tobytes() == other.intercept_.tobytes()


@examples(80)
@given(problems(), st.integers(0, 2**32 - 1))
def test_permuting_samples(problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem.y))
    one = problem.fit()
    other = problem.fit_on(order)
    assert_equal(one, other, problem.X)
    if decided(one, other):
        assert np.array_equal(one.support_, np.sort(order[other.support_]))


@examples(40)
@given(problems(), st.integers(0, 2**32 - 1))
def test_permuting_before_forgetting(problem, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(problem.y))
    one = problem.fit()
    other = problem.fit_on(order)
    # Forget a third of each class but its first two samples: every class stays.
    gone = np.concatenate([np.flatnonzero(problem.y == label)[2::3] for label in one.classes_])
    if len(gone):
        one.forget(gone)
        other.forget(np.flatnonzero(np.isin(order, gone)))
        assert_equal(one, other, problem.X)


@examples(60)
@given(problems(), st.booleans())
def test_tensors_and_arrays(problem, transposed):
    """The same numbers in torch, also where they do not lie in rows."""
    tensor = torch.tensor(problem.X.T.copy()).T if transposed else torch.tensor(problem.X)
    model = LinearSVM(problem.C).fit(tensor, torch.tensor(problem.y))
    assert_equal(model, problem.fit(), problem.X)
    assert isinstance(model.coef_, np.ndarray)
    scores = model.decision_function(tensor)
    assert isinstance(scores, np.ndarray)
    # One product with another layout: rounding of sums of d terms.
    expected = model.decision_function(problem.X)
    size = 1.0 + np.max(np.abs(problem.X.astype(float))) * np.max(np.abs(model.coef_)) * problem.X.shape[1]
    assert np.max(np.abs(scores - expected)) <= 1e-14 * (size + np.max(np.abs(model.intercept_)))


@examples(30)
@given(problems())
def test_tensors_forget_and_insert_like_arrays(problem):
    model = LinearSVM(problem.C).fit(torch.tensor(problem.X), problem.y)
    twin = problem.fit()
    gone = np.concatenate([np.flatnonzero(problem.y == label)[2::3] for label in twin.classes_])
    if len(gone):
        model.forget(torch.tensor(gone))
        twin.forget(gone)
        assert_equal(model, twin, problem.X)
        model.insert(torch.tensor(problem.X[gone]), problem.y[gone])
        assert_equal(model, problem.fit(), problem.X)


@pytest.mark.parametrize("layout", ["F", "strided", "read-only", "list"])
def test_layout_of_the_input(layout):
    problem = make("well_behaved", 2, n=50, d=5, classes=3)
    X = problem.X
    if layout == "F":
        given_X = np.asfortranarray(X)
    elif layout == "strided":
        given_X = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "read-only":
        given_X = X.copy()
        given_X.flags.writeable = False
    else:
        given_X = X.tolist()
    model = LinearSVM(problem.C).fit(given_X, problem.y)
    assert same_bytes(model, problem.fit())
    model.forget(model.support_[:3])
    twin = problem.fit()
    twin.forget(twin.support_[:3])
    assert same_bytes(model, twin)


@examples(40)
@given(problems(families=("single_precision", "integers")))
def test_narrow_numbers_equal_the_same_numbers_in_float64(problem):
    wide = LinearSVM(problem.C).fit(problem.X.astype(np.float64), problem.y)
    assert same_bytes(problem.fit(), wide)


@pytest.mark.parametrize("family", ["well_behaved", "rectified", "separable"])
def test_number_of_threads(family):
    """Sizes at which BLAS does use its threads."""
    problem = make(family, 0, n=4000, d=40, classes=4, C=0.1)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = problem.fit()
            model.forget(model.support_[::50])
        assert decided(model)
        results.append(model)
    assert same_bytes(*results)


def test_fitting_twice():
    problem = make("grid", 0, n=60, d=3, classes=4)
    model = problem.fit()
    assert same_bytes(model.fit(problem.X, problem.y), problem.fit())


@pytest.mark.parametrize(
    ("C", "digest"),
    [
        (0.01, "d1fb7f4bd8b204de625705454d64dfa9f6f02d828213399e6f21057249a01911"),
        (1.0, "ef6dcc78f3fc823d83f46b7e3a77f3133b6d469095820fcd52005467f79eaf57"),
    ],
)
def test_the_same_bytes_on_another_machine(C, digest):
    """Frozen. They belong to canonical form 2 (`FORM`): the exact solution, rounded, on any machine.

    A change here changes every model's hash: receipts issued before it can no longer be re-executed to the byte.
    """
    X, y = load_digits(return_X_y=True)
    model = LinearSVM(C).fit(X / 16, y)
    assert FORM == 2
    assert all(certificate.decided for certificate in model.certificate_)
    assert hashlib.sha256(model.coef_.tobytes() + model.intercept_.tobytes()).hexdigest() == digest
