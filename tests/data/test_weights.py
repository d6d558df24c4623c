"""Weights: kept with their records, and part of their hashes only where they are given."""

import numpy as np
import pytest

from maxrr.data import DataError, Dataset, load
from maxrr.unlearning.records import HeldRecords

INPUTS = np.arange(8, dtype=np.float32).reshape(4, 2)
PLAIN = Dataset(INPUTS, [0, 1, 0, 1], ("a", "b"), ["p", "q", "r", "s"])
WEIGHTED = Dataset(INPUTS, [0, 1, 0, 1], ("a", "b"), ["p", "q", "r", "s"], weights=[4, 1, 0.5, 2])


def test_weights_stay_with_their_records():
    assert WEIGHTED.weights.dtype == np.float64
    assert WEIGHTED.select(["s", "p"]).weights.tolist() == [2.0, 4.0]
    assert WEIGHTED.without(["q"]).in_order().weights.tolist() == [4.0, 0.5, 2.0]
    assert PLAIN.select(["s"]).weights is None


def test_a_record_without_a_weight_has_the_hash_it_always_had():
    assert PLAIN.content_hash() == "7bdaffa450975b6970f1dd68940754a5949c308f57eac4194038da5681418022"


def test_a_weight_changes_the_hash_of_its_record_alone():
    heavier = Dataset(INPUTS, [0, 1, 0, 1], ("a", "b"), ["p", "q", "r", "s"], weights=[4, 1, 0.5, 3])
    assert (WEIGHTED.record_hashes() != heavier.record_hashes()).any(axis=1).tolist() == [False, False, False, True]
    assert (WEIGHTED.record_hashes() != PLAIN.record_hashes()).any(axis=1).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [([1, 1, 0, 1], "'r' has the weight 0.0"), ([1, np.nan, 1, 1], "'q' has the weight nan"), ([1, 2], "shape"),
     (["a"] * 4, "must be numbers")],
)  # fmt: skip
def test_weights_are_positive_numbers(weights, words):
    with pytest.raises(DataError, match=words):
        Dataset(INPUTS, [0, 1, 0, 1], ("a", "b"), ["p", "q", "r", "s"], weights=weights)


def test_a_model_holds_and_erases_them():
    held = HeldRecords.of(WEIGHTED)
    assert held.content_hash == WEIGHTED.content_hash()
    left = held.without(np.array([0]))
    held.owe(np.array([0]))
    left.erase()
    assert left.retained().weights.tolist() == [1.0, 0.5, 2.0]
    assert held.weights[0] == 0.0
    assert left.with_added(held).weights.tolist() == [0.0, 1.0, 0.5, 2.0] * 2


def test_in_an_npz_file(tmp_path):
    x, y, ids = np.arange(40.0).reshape(20, 2), np.arange(20) % 2, np.arange(20)
    np.savez(tmp_path / "one.npz", X=x, y=y, ids=ids, weights=ids + 1.0)
    for side in load(tmp_path / "one.npz"):
        assert np.array_equal(side.weights, side.ids + 1.0)
    np.savez(tmp_path / "short.npz", X=x, y=y, ids=ids, weights=ids[:3])
    with pytest.raises(DataError, match="weights per record"):
        load(tmp_path / "short.npz")
