"""Arrays and data frames that `fit` is given: what is a class, what is an id, what columns are called."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from maxrr.data import DataError
from maxrr.unlearning.given_records import as_dataset, column_names
from tests.unlearning.problems import table, table_model

X = np.arange(8.0).reshape(4, 2)


class Frame:
    """As much of a data frame as counts."""

    def __init__(self, columns):
        self.columns = columns

    def __array__(self, dtype=None, copy=None):
        return X if dtype is None else X.astype(dtype)


def test_a_data_frame_names_its_columns():
    dataset, _ = as_dataset(Frame(["age", "weight"]), [0, 1, 0, 1], None, None)
    assert dataset.columns == ("age", "weight")
    assert np.array_equal(dataset.inputs, X)
    assert as_dataset(X, [0, 1, 0, 1], None, None)[0].columns is None
    assert as_dataset(Frame(range(2)), [0, 1, 0, 1], None, None)[0].columns is None  # numbers are no names
    with pytest.raises(DataError, match="different strings"):
        as_dataset(Frame(["age", "age"]), [0, 1, 0, 1], None, None)
    assert column_names(SimpleNamespace()) is None


def test_a_frame_with_texts_is_sent_to_where_they_are_declared():
    frame = pd.DataFrame({"age": [31, 45, 52, 60], "country": ["de", "fr", "de", "it"]})
    with pytest.raises(DataError, match="'country' are not of numbers"):
        as_dataset(frame, [0, 1, 0, 1], None, None)
    assert as_dataset(frame[["age"]], [0, 1, 0, 1], None, None)[0].columns == ("age",)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([1.0, 0.0, 1.0, 0.0], [0, 1]),
        ([True, False, True, True], [False, True]),
        (np.array(["b", "a", "b", "a"], dtype=object), ["a", "b"]),
        ([3, 1, 3, 1], [1, 3]),
    ],
)
def test_labels(y, classes):
    dataset, kind = as_dataset(X, y, None, None)
    assert kind == np.array(classes).dtype.kind
    assert dataset.class_names == tuple(map(str, classes))


@pytest.mark.parametrize(
    "y", [[0.5, 1.0, 0.5, 1.0], [np.nan, 1.0, 0.0, 1.0], ["a", None, "a", "b"], ["a", 1, "a", 1], [[0], [1], [0], [1]]]
)
def test_what_is_no_label(y):
    """Each fraction, and each NaN, was a class of its own."""
    with pytest.raises(DataError, match="labels must be"):
        as_dataset(X, y, None, None)


def test_ids_and_subjects_that_numpy_would_change():
    for given in ({"ids": ["a", "b", "c", "d\0"], "subjects": None}, {"ids": None, "subjects": ["a", "b", "c", "d\0"]}):
        with pytest.raises(DataError, match="NUL"):
            as_dataset(X, [0, 1, 0, 1], **given)
    ids = np.array(["a", "b", "c", "d"], dtype=object)
    assert as_dataset(X, [0, 1, 0, 1], ids, ids)[0].ids.tolist() == ["a", "b", "c", "d"]


def test_requests_that_numpy_would_change():
    """'r0' and a NUL forgot 'r0'."""
    records = table()
    model = table_model().fit(records.inputs, records.labels, ids=[f"r{row}" for row in range(len(records))])
    for asked in (["r0\0"], "r0\0", np.array(["r0\0"], dtype=object)):
        with pytest.raises(DataError, match="NUL"):
            model.plan(asked, core_policy="keep-extractor")
        with pytest.raises(DataError, match="NUL"):
            model.unlearn(asked, core_policy="keep-extractor")
    with pytest.raises(DataError, match="1,000 characters"):
        model.plan(["x" * 1001], core_policy="keep-extractor")
    with pytest.raises(DataError, match="int, str"):
        model.plan([1, "r0"], core_policy="keep-extractor")
    assert model.plan("r0").requested == 1
