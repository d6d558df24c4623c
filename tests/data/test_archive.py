"""Arrays in .npz files: one rule for the axes of images, and no objects."""

import zipfile

import numpy as np
import pytest

from maxrr.data import DataError
from maxrr.data.numpy_files import as_inputs
from maxrr.data.train_test import is_test
from tests.data.sources import load_by_rows

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.tile([3, 11], 10)
SIDES = {"x_train": X[:14], "y_train": Y[:14], "x_test": X[14:], "y_test": Y[14:]}


def stored(tmp_path, arrays):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_train_and_test(tmp_path, save):
    save(tmp_path / "data.npz", **SIDES)
    train, test = load_by_rows(tmp_path / "data.npz")
    assert np.array_equal(train.inputs, X[:14])
    assert np.array_equal(test.inputs, X[14:])
    assert train.class_names == test.class_names == ("3", "11")
    assert train.labels.tolist() == [0, 1] * 7
    assert np.array_equal(np.concatenate([train.ids, test.ids]), np.arange(20))


def test_ids_subjects_and_names(tmp_path):
    keys = {f"ids_{side}": [f"{side}{row}" for row in range(count)] for side, count in (("train", 14), ("test", 6))}
    people = {"subjects_train": np.arange(14) // 2, "subjects_test": np.arange(6)}
    arrays = SIDES | keys | people | {"class_names": list("abcdefghijkl")}
    train, test = load_by_rows(stored(tmp_path, arrays))
    assert train.ids[3] == "train3"
    assert test.subjects.tolist() == list(range(6))
    assert train.class_names == tuple("abcdefghijkl")
    assert np.array_equal(train.labels, Y[:14])


def test_one_array_is_split_by_id(tmp_path):
    ids = np.array([f"r{row}" for row in range(20)])
    words = np.where(Y == 3, "yes", "no")
    train, test = load_by_rows(stored(tmp_path, {"X": X, "y": words, "ids": ids}))
    assert np.array_equal(test.ids, ids[is_test(ids)])
    assert np.array_equal(train.inputs, X[~is_test(ids)])
    assert train.class_names == ("no", "yes")
    assert np.array_equal(train.labels, Y[~is_test(ids)] == 3)
    assert load_by_rows(stored(tmp_path, {"X": X, "y": Y}))[0].ids[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 10]


def test_named_classes_keep_their_order(tmp_path):
    words = np.where(Y == 3, "yes", "no")
    train, _ = load_by_rows(stored(tmp_path, {"X": X, "y": words, "class_names": ["yes", "maybe", "no"]}))
    assert train.class_names == ("yes", "maybe", "no")
    assert set(train.labels.tolist()) == {0, 2}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 7), (2, 7)),
        ((2, 6, 7), (2, 1, 6, 7)),
        ((2, 6, 7, 3), (2, 3, 6, 7)),
        ((2, 6, 7, 1), (2, 1, 6, 7)),
        ((2, 3, 6, 7), (2, 3, 6, 7)),
        ((2, 3, 6, 4), (2, 3, 6, 4)),  # channels first, if both would do
        ((2, 5, 6, 7), (2, 5, 6, 7)),
    ],
)
def test_channels_come_first(shape, expected):
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    found = as_inputs(array, "x")
    assert found.shape == expected
    assert found.flags.c_contiguous
    moved = len(shape) == 4 and shape != expected
    assert np.array_equal(found, array.transpose(0, 3, 1, 2) if moved else array.reshape(expected))


@pytest.mark.parametrize(
    ("given", "stored_as"),
    [
        ("u1", "u1"),
        ("f4", "f4"),
        ("f8", "f8"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("i8", "f4"),
        ("u2", "f4"),
        ("?", "f4"),
        ("f2", "f4"),
    ],
)
def test_types(given, stored_as):
    found = as_inputs(np.ones((2, 3), dtype=given), "x")
    assert found.dtype == np.dtype(stored_as)
    assert (found == 1).all()


def without(name):
    return {key: array for key, array in SIDES.items() if key != name}


NAN = np.where(X == 9, np.nan, X)
BAD = {
    "objects": (SIDES | {"y_train": np.array([None] * 14)}, "Object arrays"),
    "no labels": (without("y_test"), "lacks y_test"),
    "no arrays": ({}, "lacks X and y"),
    "a misspelt array": (SIDES | {"subject_train": Y[:14]}, "has subject_train, which means nothing here"),
    "ids of one side": (SIDES | {"ids_train": np.arange(14)}, "has ids for one side of train and test only"),
    "too few labels": (SIDES | {"y_train": Y[:13]}, r"y_train has shape \(13,\), but x_train has 14 records"),
    "too few ids": ({"X": X, "y": Y, "ids": Y[:3]}, r"ids has shape \(3,\), but X has 20 records"),
    "too few subjects": ({"X": X, "y": Y, "subjects": Y[:3]}, r"subjects has shape \(3,\), but X has 20 records"),
    "labels of two dimensions": ({"X": X, "y": Y[:, None]}, r"y has shape \(20, 1\)"),
    "labels as fractions": ({"X": X, "y": Y / 2}, "labels must be integers, booleans or strings, and row 0 has 1.5"),
    "labels of two kinds": (
        SIDES | {"y_test": np.array(["a"] * 6)},
        "integers on one side .* and strings on the",
    ),
    "a label in test only": (SIDES | {"y_test": np.arange(6)}, "label 0, 1, 2, 4, 5 is of no known class"),
    "a label outside the names": (SIDES | {"class_names": ["a", "b"]}, r"record 0 has label 3, outside the 2 classes"),
    "names as numbers": (SIDES | {"class_names": [1, 2]}, "class_names must be a list of strings"),
    "repeated ids": ({"X": X, "y": Y, "ids": Y}, "these repeat: 3, 11"),
    "common ids": (SIDES | {"ids_train": np.arange(14), "ids_test": np.arange(12, 18)}, "in train and in test: 12, 13"),
    "ids of two kinds": (
        SIDES | {"ids_train": np.arange(14), "ids_test": np.array(list("abcdef"))},
        "ids are integers on one",
    ),
    "NaN": ({"X": NAN, "y": Y}, "record 4 has NaN or infinity"),
    "beyond float32": ({"X": X.astype(np.longdouble) * 1e60, "y": Y}, "record 0 has NaN or infinity"),
    "words": ({"X": X.astype(str), "y": Y}, "X must hold numbers, not <U"),
    "complex numbers": ({"X": X * 1j, "y": Y}, "X must hold numbers, not complex64"),
    "one dimension": ({"X": X[:, 0], "y": Y}, r"X must be .* not \(20,\)"),
    "other shapes": (
        SIDES | {"x_test": np.zeros((6, 3), "f4")},
        r"of shape \(2,\), but test .* shape \(3,\)",
    ),
    "other types": (
        SIDES | {"x_test": X[14:].astype(np.uint8)},
        "records are float32 .* but test records uint8",
    ),
    "nothing to train on": ({name: array[:0] for name, array in SIDES.items()}, "no record is for training"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_archives(tmp_path, case):
    arrays, message = BAD[case]
    path = stored(tmp_path, arrays)
    with pytest.raises(DataError, match=message) as caught:
        load_by_rows(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_every_truncation_is_refused(tmp_path):
    whole = stored(tmp_path, SIDES).read_bytes()
    path = tmp_path / "cut.npz"
    for length in range(0, len(whole), 5):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"read as \.npz"):
            load_by_rows(path)


def test_a_damaged_array_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    np.savez_compressed(path, **SIDES)
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"read as \.npz"):
        load_by_rows(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X", b"not an array")
    with pytest.raises(DataError, match=r"data\.npz: "):
        load_by_rows(path)
    with open(path, "wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match=r"read as \.npz"):
        load_by_rows(path)
