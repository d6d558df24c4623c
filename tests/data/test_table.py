"""CSV files: cells become inputs, labels, ids and subjects; a bad cell is named with its line and column."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.data import DataError, Dataset, load
from maxrr.data.train_test import is_test
from tests.data.sources import drawn, load_by_rows


def stored(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def whole(source, **columns):
    """Both sides together, in the order of their ids."""
    train, test = load_by_rows(source, **columns)
    assert train.class_names == test.class_names
    for side, for_test in ((train, False), (test, True)):
        assert (is_test(side.ids if side.subjects is None else side.subjects) == for_test).all()
    subjects = None if train.subjects is None else np.concatenate([train.subjects, test.subjects])
    return Dataset(
        np.concatenate([train.inputs, test.inputs]),
        np.concatenate([train.labels, test.labels]),
        train.class_names,
        np.concatenate([train.ids, test.ids]),
        subjects,
    ).in_order()


def test_columns_by_their_usual_names(tmp_path):
    text = "x,label,id,subject,y\n1,b,r1,7,-2e1\n\n0.5,a,r2,7, 3 \n , ,,,\n1e-3,b,r3,8,4\n"
    data = whole(stored(tmp_path, text))
    assert data.inputs.dtype == np.float32
    assert np.array_equal(data.inputs, np.array([[1, -20], [0.5, 3], [1e-3, 4]], dtype=np.float32))
    assert [data.class_names[label] for label in data.labels] == ["b", "a", "b"]
    assert data.ids.tolist() == ["r1", "r2", "r3"]
    assert data.subjects.tolist() == [7, 7, 8]


def test_columns_by_other_names(tmp_path):
    path = stored(tmp_path, "who,what,number,x\np,10,3,1\nq,9,1,2\nr,10,2,3\n")
    data = whole(path, label="what", id="number", subject="who")
    assert data.ids.tolist() == [1, 2, 3]
    assert data.class_names == ("9", "10")
    assert data.subjects.tolist() == ["q", "r", "p"]
    assert data.inputs[:, 0].tolist() == [2, 3, 1]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mark_at_the_start_and_line_ends_do_not_matter(tmp_path, end):
    text = "label,x\na,1\nb,2\n".replace("\n", end)
    plain, marked = whole(stored(tmp_path, text)), whole(stored(tmp_path, text, "utf-8-sig"))
    assert marked.content_hash() == plain.content_hash()
    assert plain.ids.tolist() == [0, 1]


@pytest.mark.parametrize("ids", [["1", "02"], ["1", "x"], ["1", str(2**70)], ["1", "+2"], ["1", "2.0"]])
def test_ids_that_are_not_all_plain_integers_are_strings(tmp_path, ids):
    rows = "".join(f"a,1,{id_}\n" for id_ in ids)
    assert whole(stored(tmp_path, "label,x,id\n" + rows)).ids.tolist() == sorted(ids)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)


@drawn
@given(st.lists(st.tuples(TEXTS, st.floats(width=32)), unique_by=lambda row: row[0].strip(), min_size=1))
def test_what_the_csv_module_writes_is_read(tmp_path, rows):
    rows = [(id_.strip(), number) for id_, number in rows if id_.strip() and np.isfinite(number)]
    path = tmp_path / "table.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "label", "x"), *((id_, "same", repr(number)) for id_, number in rows)])
    if not rows or is_test(np.array([id_ for id_, _ in rows])).all():
        with pytest.raises(DataError, match="no record"):
            load(path)
        return
    data = whole(path)
    assert {str(id_): number for id_, number in zip(data.ids, data.inputs[:, 0].tolist(), strict=True)} == dict(rows)


BAD = {
    "a word": ("label,x,y\na,1,2\n\nb,1,two\n", "line 4, column 'y': 'two' is not a number"),
    "nothing": ("label,x\na,\nb,1\n", "line 2, column 'x': there is no value"),
    "a decimal comma": ('label,x\na,"1,5"\n', "line 2, column 'x': '1,5' is not a number"),
    "an underscore": ("label,x\na,2024_01\n", "'2024_01' is not a number"),
    "NaN": ("label,x\na,1\nb,NaN\n", "line 3, column 'x': there is no value"),
    "infinity": ("label,x\na,-inf\n", "line 2, column 'x': -inf is not finite"),
    "too large": ("label,x\na,1e39\n", r"line 2, column 'x': 1e\+39 is not finite in float32"),
    "too few values": ("label,x,y\na,1\n", "line 2 has 2 values, but the header names 3"),
    "too many values": ("label,x\na,1,2\n", "line 2 has 3 values"),
    "no label": ("label,x\n,1\n", "line 2 has nothing in column 'label'"),
    "a label that is missing": ("label,x\n1,1\nNaN,1\n0,1\n", "line 3 has 'NaN' among the values of column 'label'"),
    "a NUL in a label": ("label,x\na\0,1\n", "column 'label' must not have the character NUL"),
    "a digit that is none of ours": ("label,x\na,\uff11\n", "is not a number"),
    "no id": ("label,x,id\na,1,\n", "line 2 has nothing in column 'id'"),
    "no subject": ("label,x,subject\na,1,\n", "line 2 has nothing in column 'subject'"),
    "no label column": ("class,x\na,1\n", "no column 'label': its columns are 'class', 'x'"),
    "another separator": ("label;x\na;1\n", "semicolons"),
    "a column twice": ("label,x,x\na,1,2\n", "names a column twice"),
    "no inputs": ("label,id\na,1\n", "has no inputs"),
    "no records": ("label,x\n\n", "has no records"),
    "an empty file": ("", "no column 'label': its columns are nothing"),
    "repeated ids": ("label,x,id\na,1,7\na,2,7\n", "unique, but these repeat: 7"),
    "an open quote": ('label,x\na,"1\n', "cannot be read as CSV: unexpected end of data"),
    "Latin-1": ("label,x\né,1\n".encode("latin-1"), "is not text in UTF-8"),
    "a zip file": (b"PK\x03\x04\xff\xfe\x00", "is not text in UTF-8"),
    "a class in test only": ("label,x\n" + "a,1\n" * 8 + "b,1\n", "label 'b' is of no known class"),
    "nothing to train on": ("label,x,id\na,1,8\n", "no record is for training, and 1 are for testing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(tmp_path, case):
    text, message = BAD[case]
    path = stored(tmp_path, text)
    with pytest.raises(DataError, match=message) as caught:
        load_by_rows(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("column", ["label", "id", "subject"])
def test_a_column_asked_for_must_be_there(tmp_path, column):
    path = stored(tmp_path, "label,x\na,1\n")
    with pytest.raises(DataError, match="no column 'patient'"):
        load(path, **{column: "patient"})


def test_columns_have_names(tmp_path):
    path = stored(tmp_path, "label,weight,id,age\na,1,7,2\na,3,9,4\na,5,1,6\n")
    train, test = load(path)
    assert train.columns == test.columns == ("weight", "age")
    assert whole(path).inputs.tolist() == [[5, 6], [1, 2], [3, 4]]


def test_words_may_be_classes_whatever_they_mean(tmp_path):
    assert whole(stored(tmp_path, "label,x\nnan,1\nb,2\n")).class_names == ("b", "nan")
