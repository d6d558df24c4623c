"""What a fit takes in memory: features as they are given, in memory or in a file, and many classes."""

import tracemalloc

import numpy as np
import pytest

from maxrr import LinearSVM
from tests.svm.memory_run import measure

ROWS, COLUMNS = 200_000, 384
WORKING = 8 * 4000 * COLUMNS * 8 + 200 * ROWS
"""Bytes beside the features: eight times 4,000 samples in float64, and 200 bytes for every sample; 138 MB here.

For two cores, to which `memory_run` keeps.
"""


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_features_are_copied_once_and_not_widened(dtype):
    """Half of the features more than the copy that is kept; float64 of all would be two or four times the features."""
    found = measure("--rows", ROWS, "--columns", COLUMNS, "--dtype", dtype)
    assert found["fit"] <= 1.5 * found["features"] + WORKING
    assert found["forget"] <= 0.5 * found["features"] + WORKING


def test_a_file_is_never_loaded_whole(tmp_path):
    """Worked on where it is: the process has less than half of it in memory of its own, in a fit and in a request."""
    found = measure("--rows", ROWS, "--columns", COLUMNS, "--file", tmp_path / "X.npy", "--in-place")
    assert found["fit"] <= 0.5 * found["features"] + WORKING
    assert found["forget"] <= 0.25 * found["features"]


D = 16


def taken(n: int, classes: int) -> tuple[int, int]:
    """Bytes at the peak of a fit, and how many pairs of a head and a sample that shapes it there are."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    centres = rng.normal(size=(classes, D))
    X = 4.0 * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[y] + 0.05 * rng.normal(size=(n, D))
    tracemalloc.start()
    try:
        model = LinearSVM().fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak, sum(map(len, model.influential_))


def test_memory_does_not_grow_with_samples_times_classes():
    """Per sample: its features, and 80 bytes for each of the sixteen heads that are solved at a time.

    Per head 20,000 bytes: mostly the distances of the samples nearest to its margin, whose number does not depend on
    how many there are; and 64 for every sample that shapes it. One number for every sample and head would be 1,600
    bytes more per sample, and 48,000 per head.
    """
    (of_few_samples, pairs), (of_few_classes, fewer) = taken(2000, 200), taken(6000, 50)
    large, most = taken(6000, 200)
    assert large - of_few_samples <= 4000 * (1.5 * 8 * D + 16 * 80) + 64 * (most - pairs)
    assert large - of_few_classes <= 150 * 20_000 + 64 * (most - fewer)
