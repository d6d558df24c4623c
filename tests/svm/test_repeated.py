"""Weights are repetitions, and the optimum is an interior point's; `make long` has 256 features."""

import pytest

from tests.svm.repeated import check_interior_point, check_repeated


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_whole_weights_are_repeated_samples(C):
    check_repeated(120, 32, 3, C, seed=1)


def test_weights_against_an_interior_point():
    check_interior_point(120, 16, 1.0, seed=2)
