"""Features and penalties of any size: only their product C|x|² decides what a head is."""

import numpy as np
import pytest

from maxrr import LinearSVM
from tests.cases import some
from tests.svm.problems import make

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # where C|x|² is next to nothing


@pytest.mark.parametrize("family", ["separable", "duplicates"])
@pytest.mark.parametrize("scale", some(2, [66, -133, 43, -66, 50]))
def test_features_of_any_size_are_penalties_of_another(family, scale):
    """With features 2^k times as large and C = 1, w is 2^−k times that with C = 4^k, to the byte; b is the same."""
    problem = make(family, 0, n=40, d=4, classes=3)
    power = max(scale, -80)  # a C below 1e-50 is refused
    reference = LinearSVM(C=4.0**power).fit(problem.X, problem.y)
    found = LinearSVM(C=4.0 ** (power - scale)).fit(np.ldexp(problem.X, scale), problem.y)
    assert all(certificate.decided for certificate in (*found.certificate_, *reference.certificate_))
    assert np.array_equal(np.ldexp(found.coef_, scale), reference.coef_)
    assert np.array_equal(found.intercept_, reference.intercept_)


@pytest.mark.parametrize(("scale", "C"), some(2, [(1e20, 1.0), (1e-30, 1.0), (1e30, 1e-20), (1e15, 1.0)]))
def test_requests_at_any_size_end_in_the_bytes_of_a_fit(scale, C):
    problem = make("separable", 1, n=40, d=4, classes=3)
    X = problem.X * scale
    model = LinearSVM(C=C).fit(X, problem.y)
    gone = model.support_[:2]
    kept = np.delete(np.arange(len(X)), gone)
    assert all(certificate.decided for certificate in model.forget(gone))
    again = LinearSVM(C=C).fit(X[kept], problem.y[kept])
    assert np.array_equal(model.coef_, again.coef_)
    assert np.array_equal(model.intercept_, again.intercept_)
