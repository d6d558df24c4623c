"""What may be the name of a class."""

import numpy as np
import pytest

from maxrr.data import DataError
from maxrr.data.labels import as_classes, index_labels
from tests.data.sources import load_by_rows


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([3, 1], [3, 1]),
        (np.array([3, 1], dtype=np.uint8), [3, 1]),
        ([1.0, -2.0], [1, -2]),
        (np.array([2.0**53 - 1, 0.0]), [2**53 - 1, 0]),
        ([1, 2.0], [1, 2]),
        (["a", "b"], ["a", "b"]),
        (np.array(["a", "b"], dtype=object), ["a", "b"]),
        (np.array([1, 2], dtype=object), [1, 2]),
        ([True, False], [True, False]),
        (np.array([True, False], dtype=object), [True, False]),
    ],
)
def test_integers_booleans_and_strings(given, expected):
    found = as_classes(given)
    assert found.tolist() == expected
    assert [type(value) for value in found.tolist()] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 1.0], "labels must be integers, booleans or strings, and row 0 has 0.5"),
        ([np.nan, 1.0], "and row 0 has nan"),
        (np.array([np.inf, 1.0], dtype=np.float32), "and row 0 has inf"),
        ([2.0**53, 1.0], "and row 0 has 9"),
        (np.array([2.0**24, 1.0], dtype=np.float32), "and row 0 has 16777216.0"),
        (np.array(["a", None], dtype=object), "row 1 has None"),
        (np.array(["a", np.nan], dtype=object), "row 1 has nan"),
        (["a", 1], "int, str"),
        ([None, None], "row 0 has None"),
        ([True, 2], "bool, int"),
        ([b"a", b"b"], "all integers or all strings"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "all integers or all strings"),
        ([1j, 2j], "all integers or all strings"),
        ([[1], [2]], "not list"),
        (["a\0", "a"], "NUL"),
    ],
)
def test_all_else_is_no_class(given, message):
    with pytest.raises(DataError, match=message):
        as_classes(given)


def test_both_sides_of_a_source():
    of_train, of_test, names = index_labels([1.0, 0.0], [0, 1], None)
    assert (of_train.tolist(), of_test.tolist(), names) == ([1, 0], [0, 1], ("0", "1"))
    assert index_labels([True, False], [True], None)[2] == ("False", "True")
    assert index_labels([True, False], [True], ("no", "yes"))[0].tolist() == [1, 0]
    with pytest.raises(DataError, match="side of train"):
        index_labels([True, False], [1], None)


@pytest.mark.parametrize("labels", [[0.5] * 20, [np.nan] * 20, [0.0] * 19 + [np.inf]])
def test_archives_of_fractions(tmp_path, labels):
    np.savez(tmp_path / "data.npz", X=np.zeros((20, 2), "f4"), y=np.array(labels))
    with pytest.raises(DataError, match="integers, booleans"):
        load_by_rows(tmp_path / "data.npz")
