"""Weighted samples with 256 features, against repeated ones and an interior point."""

import pytest

from tests.svm.repeated import check_interior_point, check_repeated


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_whole_weights_are_repeated_samples(C):
    check_repeated(1500, 256, 6, C, seed=1)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_weights_against_an_interior_point(C):
    check_interior_point(1200, 128, C, seed=2)
