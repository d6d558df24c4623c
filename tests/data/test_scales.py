"""A network drowns in one column what another says: that is told before it is trained."""

import numpy as np
import pytest

from maxrr.data import Dataset, checks
from maxrr.data.scales import unevenness

RNG = np.random.default_rng(0)
EVEN = RNG.normal(size=(200, 3)).astype(np.float32)


def table(inputs, columns=("age", "share", "income")):
    count = len(inputs)
    return Dataset(inputs, np.zeros(count, dtype=int), ("a",), np.arange(count), columns=columns)


def test_columns_alike_are_not_mentioned():
    assert unevenness(table(EVEN)) == ""
    assert unevenness(table(EVEN * [1, 50, 1])) == ""
    assert unevenness(table(EVEN * [1, 0, 1])) == ""  # a constant column harms nobody
    assert unevenness(table(EVEN * 0 + [1, 5, 1e6])) == ""
    assert unevenness(table(EVEN * [1, 0, 1] + [0, 1e5, 3])) == ""
    assert unevenness(table(EVEN[:0])) == ""


def test_a_wide_column_is_named(monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 100)
    said = unevenness(table(EVEN * np.float32([1, 1, 1e5])))
    assert said.startswith("column 'income' varies 9.8e+04 times")
    assert "times as much as column '" in said
    assert "scale the columns" in said
    assert unevenness(table(EVEN * [1, 1e-3, 1], columns=None)).endswith(
        "times as much as column 1: scale the columns to about 1, by constants that do not depend on the records"
    )


def test_a_column_far_from_zero_is_named():
    assert unevenness(table(EVEN + np.float32([0, 2020, 0]))).startswith(
        "column 'share' is about 2.02e+03 everywhere, give or take"
    )


@pytest.mark.parametrize("shape", [(5, 1, 2, 2)])
def test_images_are_not_looked_at(shape):
    images = np.zeros(shape, dtype=np.uint8)
    assert unevenness(Dataset(images, np.zeros(5, dtype=int), ("a",), np.arange(5))) == ""
