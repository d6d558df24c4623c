"""Several inputs are one array: the same bytes in whichever order they are given, and no field is left out."""

import numpy as np
import pytest

from maxrr.data import DataError, Dataset
from maxrr.data.fields import as_facts, from_facts, packed
from maxrr.data.hashes import value_hashes
from tests.data.sources import load_by_rows

TOKENS = np.array([[7, 3, 0], [5, 0, 0], [9, 2, 4]])
MASK = TOKENS > 0
LENGTH = MASK.sum(1)


def texts(**changes):
    inputs = {"tokens": TOKENS, "mask": MASK, "length": LENGTH} | changes
    return Dataset(inputs, [0, 1, 0], ("no", "yes"), ["a", "b", "c"])


def test_one_field_for_each_input():
    data = texts()
    assert data.inputs.dtype.names == ("length", "mask", "tokens")
    assert np.array_equal(data.inputs["tokens"], TOKENS)
    assert data.inputs.dtype.itemsize == 8 + 3 + 3 * 8  # no gaps
    assert data.shape == ()
    assert data.select(["c"]).inputs["length"].tolist() == [3]
    places = Dataset(tuple(TOKENS[:, :1] + place for place in range(11)), [0, 1, 0], ("no", "yes"), [1, 2, 3])
    assert places.inputs.dtype.names == tuple(map(str, range(11)))


def test_the_order_of_inputs_does_not_matter():
    turned = Dataset({"mask": MASK, "length": LENGTH, "tokens": TOKENS}, [0, 1, 0], ("no", "yes"), ["a", "b", "c"])
    assert turned.content_hash() == texts().content_hash()
    loose = np.zeros(3, np.dtype([("tokens", "<i8", (3,)), ("mask", "?", (3,)), ("length", "<i8")], align=True))
    for name in loose.dtype.names:
        loose[name] = texts().inputs[name]
    for array in (loose, loose[::1][["length", "mask", "tokens"]]):
        given = Dataset(array, [0, 1, 0], ("no", "yes"), ["a", "b", "c"])
        assert given.inputs.tobytes() == texts().inputs.tobytes()


@pytest.mark.parametrize(
    "changes",
    [{"tokens": TOKENS + 1}, {"mask": ~MASK}, {"length": LENGTH + 1}, {"length": LENGTH.astype(np.int32)},
     {"tokens": TOKENS[:, :2]}],
)  # fmt: skip
def test_hashes_are_over_every_input(changes):
    one, other = texts(), texts(**changes)
    assert (one.record_hashes() != other.record_hashes()).any(axis=1).all()
    assert one.content_hash() != other.content_hash()


def test_hashes_are_over_the_names_of_inputs():
    one, other = ({"tokens": TOKENS, name: MASK} for name in ("mask", "nask"))
    hashes = [Dataset(inputs, [0, 1, 0], ("no", "yes"), ["a", "b", "c"]).content_hash() for inputs in (one, other)]
    assert hashes[0] != hashes[1]
    assert not np.array_equal(value_hashes(packed(one)), value_hashes(packed(other)))


def test_hashes_of_values_do_not_depend_on_the_type():
    others = {"tokens": TOKENS.astype(np.float32), "mask": MASK.astype(np.int8), "length": LENGTH.astype(np.int16)}
    assert np.array_equal(value_hashes(texts().inputs), value_hashes(packed(others)))
    assert np.array_equal(value_hashes(300 + TOKENS), value_hashes((300.0 + TOKENS).astype(np.float32)))


def test_large_integers_are_told_apart():
    large = np.array([[2**24], [2**24 + 1], [2**53], [2**53 + 1], [2**63 - 1], [-(2**63)]])
    assert len({digest.tobytes() for digest in value_hashes(large)}) == len(large)


def test_a_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "texts.npy", texts().inputs)
    mapped = np.load(tmp_path / "texts.npy", mmap_mode="r")
    data = Dataset(mapped, [0, 1, 0], ("no", "yes"), ["a", "b", "c"])
    assert isinstance(data.inputs, np.memmap)
    assert data.content_hash() == texts().content_hash()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "one input or more"),
        ({"tokens": TOKENS, "mask": MASK[:2]}, "one row per record, but mask has 2, tokens has 3"),
        ({"tokens": [[1, 2], [3], [4]]}, "'tokens' has records of different lengths, .* pad them"),
        ({"tokens": TOKENS.astype(np.uint16)}, "inputs 'tokens' must be uint8 .* not uint16"),
        ({"two words": TOKENS}, "none is called 'two words'"),
        ({"class": TOKENS}, "none is called 'class'"),
        ({1: TOKENS}, "none is called 1"),
        ({"tokens": TOKENS[:, :0]}, "inputs 'tokens' must be .* numbers in each"),
        ({"tokens": 3}, "one row per record"),
        ({"share": np.array([0.5, np.nan, 1.0])}, "record 'b' has NaN or infinity in inputs 'share'"),
        (np.zeros((3, 2), [("x", "<f4")]), r"one row per record, and not the shape \(3, 2\)"),
        ({"x": np.zeros(3, [("y", "<f4")])}, "'x' must be an array"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_go_together(inputs, message):
    with pytest.raises(DataError, match=message):
        Dataset(inputs, [0, 1, 0], ("no", "yes"), ["a", "b", "c"])


def test_types_in_json():
    for dtype in (texts().inputs.dtype, np.dtype(np.float32)):
        assert from_facts(as_facts(dtype)) == dtype


def test_an_array_for_each_input_in_a_file(tmp_path):
    path = tmp_path / "texts.npz"
    several = {f"X.{name}": part for name, part in {"tokens": TOKENS, "mask": MASK, "length": LENGTH}.items()}
    np.savez(path, **several, y=[0, 1, 0], ids=["a", "b", "c"], class_names=["no", "yes"])
    train, _ = load_by_rows(path, whole=True)
    assert train.content_hash() == texts().content_hash()
    sides = {f"x_{side}.tokens": TOKENS for side in ("train", "test")} | {"y_train": [0, 1, 0], "y_test": [0, 1, 0]}
    np.savez(path, **sides)
    train, test = load_by_rows(path)
    assert train.inputs["tokens"].dtype == test.inputs["tokens"].dtype == np.int64
    np.savez(path, **{name.replace("x_test.tokens", "x_test.words"): part for name, part in sides.items()})
    with pytest.raises(DataError, match="test records words"):
        load_by_rows(path)
    np.savez(path, **several, X=TOKENS, y=[0, 1, 0])
    with pytest.raises(DataError, match=r"X and X\.tokens"):
        load_by_rows(path)
    np.savez(path, **{"X.tokens": TOKENS, "X.mask": MASK[:2]}, y=[0, 1, 0])
    with pytest.raises(DataError, match="row per record"):
        load_by_rows(path)


@pytest.mark.parametrize("facts", ["<U9", "O", "<M8[s]", "<c16", (("a", "<f4", (2,)), ("b", "<U9", (1,)))])
def test_what_is_stored_is_a_type_of_numbers(facts):
    with pytest.raises(ValueError, match="no numbers"):
        from_facts(facts)
