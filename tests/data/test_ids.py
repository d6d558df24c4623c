"""Ids outlive the file: they are given, or follow from the record alone, or somebody asked for row numbers."""

import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxrr.data import DataError, Dataset, load
from maxrr.data.checks import LONGEST_IDENTIFIER, check_identifiers
from maxrr.data.labels import DIGITS, content_ids
from maxrr.errors import MissingIds
from tests.data.sources import drawn

ROWS = [f"{'ab'[row % 2]},{row},{row / 7}" for row in range(40)]


def table(tmp_path, rows, header="label,x,y"):
    path = tmp_path / "table.csv"
    path.write_text("\n".join([header, *rows]))
    return path


def archive(tmp_path, **arrays):
    np.savez(tmp_path / "data.npz", **arrays)
    return tmp_path / "data.npz"


def by_id(source, **options):
    """The inputs of every record, by id."""
    return {
        id_: record.tolist()
        for side in load(source, **options)
        for id_, record in zip(side.ids.tolist(), side.inputs, strict=True)
    }


X, Y = np.arange(40, dtype=np.float32).reshape(20, 2), np.tile([0, 1], 10)
SIDES = {"x_train": X[:14], "y_train": Y[:14], "x_test": X[14:], "y_test": Y[14:]}


def test_a_source_without_ids_is_refused_in_words(tmp_path):
    sources = {
        table(tmp_path, ROWS): "or another of 'label', 'x', 'y' by id=… (--id)",
        archive(tmp_path, X=X, y=Y): "give ids, or ids_from='content'",
    }
    for path, advice in sources.items():
        with pytest.raises(MissingIds) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: it does not say what its records are called")
        assert advice in str(caught.value)
        assert "row numbers" in str(caught.value)
    with pytest.raises(MissingIds, match="ids_train and ids_test"):
        load(archive(tmp_path, **SIDES))


@pytest.mark.parametrize("ids_from", ["content", "rows"])
def test_ids_that_are_there_are_not_made_again(tmp_path, ids_from):
    (tmp_path / "photos").mkdir()
    sources = [
        table(tmp_path, [f"{row},r{place}" for place, row in enumerate(ROWS)], "label,x,y,id"),
        archive(tmp_path, X=X, y=Y, ids=np.arange(20)),
        tmp_path / "photos",
        "digits",
        "fashion-mnist",
    ]
    for source in sources:
        with pytest.raises(DataError, match=r"leave ids_from \(--ids-from\)") as caught:
            load(source, ids_from=ids_from)
        assert str(caught.value).startswith(f"{source}: ")


def test_other_words_are_refused(tmp_path):
    with pytest.raises(DataError, match="'rows', not 'hash'"):
        load(table(tmp_path, ROWS), ids_from="hash")


def test_row_numbers_on_request(tmp_path):
    assert sorted(by_id(table(tmp_path, ROWS), ids_from="rows")) == list(range(40))
    train, test = load(archive(tmp_path, **SIDES), ids_from="rows")
    assert (train.ids.tolist(), test.ids.tolist()) == (list(range(14)), list(range(14, 20)))


@drawn
@given(st.permutations(range(40)), st.integers(0, 39))
def test_by_content_a_deleted_line_moves_no_id(tmp_path, order, gone):
    """The attack: with row numbers, the neighbour of a deleted record would have inherited its id."""
    before = by_id(table(tmp_path, ROWS), ids_from="content")
    after = by_id(table(tmp_path, [ROWS[row] for row in order if row != gone]), ids_from="content")
    assert len(before) == 40
    assert len(after) == 39
    assert after.items() <= before.items()


def test_by_content_the_sides_of_an_archive_share_no_id(tmp_path):
    twins = SIDES | {"x_test": X[:6]}
    train, test = load(archive(tmp_path, **twins), ids_from="content")
    assert test.ids.tolist() == [f"{id_}-2" for id_ in train.ids[:6]]
    assert len(set(train.ids)) == 14


@drawn
@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.integers(0, 2)))
def test_content_is_what_counts(numbers):
    ids = content_ids([numbers])
    kinds = ("u1", "f4", "f8", ">f4", ">f8")
    assert all(content_ids([numbers.astype(kind)]).tolist() == ids.tolist() for kind in kinds)
    assert content_ids([-1.0 * numbers * 0.0]).tolist() == content_ids([numbers * 0.0]).tolist()  # −0 is 0
    assert len(set(ids)) == len(ids)
    rows = [tuple(row) for row in numbers.tolist()]
    assert [id_.partition("-")[0] for id_ in ids] == [ids[rows.index(row)] for row in rows]
    counts = [rows[:place].count(row) + 1 for place, row in enumerate(rows)]
    assert [int(id_.partition("-")[2] or 1) for id_ in ids] == counts
    assert {len(id_.partition("-")[0]) for id_ in ids} == {DIGITS}


def test_the_order_of_columns_is_no_part_of_an_id(tmp_path):
    before = load(table(tmp_path, ROWS), ids_from="content")
    turned = [",".join([label, y, x]) for label, x, y in (row.split(",") for row in ROWS)]
    after = load(table(tmp_path, turned, "label,y,x"), ids_from="content")
    for one, other in zip(before, after, strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert np.array_equal(one.inputs, other.inputs[:, ::-1])


def test_labels_are_no_part_of_an_id(tmp_path):
    other = [row.replace("a,", "b,") if place % 4 else row for place, row in enumerate(ROWS)]
    assert by_id(table(tmp_path, ROWS), ids_from="content") == by_id(table(tmp_path, other), ids_from="content")


NUL = "must not have the character NUL in them, as 'A\\\\x00' does"
LONG = "x" * (LONGEST_IDENTIFIER + 1)


@pytest.mark.parametrize(
    "make", [list, tuple, lambda ids: np.array(ids, dtype=object)], ids=["list", "tuple", "objects"]
)
def test_ids_that_numpy_would_change_are_refused(make):
    """NumPy drops a NUL at the end: 'A\\0' asked for, 'A' found."""
    data = Dataset(X[:2], [0, 1], ("a", "b"), ["A", "B"], ["A", "B"])
    for ask in (data.rows, data.select, data.without, data.of_subjects):
        with pytest.raises(DataError, match=NUL):
            ask(make(["A\0", "B"]))
    for field in ("ids", "subjects"):
        with pytest.raises(DataError, match=NUL):
            Dataset(
                **{"inputs": X[:2], "labels": [0, 1], "class_names": ("a", "b"), "ids": [1, 2]}
                | {field: make(["A\0", "B"])}
            )
    with pytest.raises(DataError, match=NUL):
        data.rows("A\0")


def test_a_nul_in_the_middle_of_an_array():
    with pytest.raises(DataError, match="NUL"):
        check_identifiers(np.array(["ab", "a\0b"]), "ids")
    assert check_identifiers(np.array(["ab", "", "a"]), "ids").tolist() == ["ab", "", "a"]


@pytest.mark.parametrize("make", [list, np.array, lambda ids: np.array(ids, dtype=object)])
def test_ids_are_not_too_long(make):
    assert check_identifiers(make(["x" * LONGEST_IDENTIFIER, "y"]), "ids").tolist()[0] == "x" * LONGEST_IDENTIFIER
    with pytest.raises(DataError, match="not 1,001"):
        check_identifiers(make(["y", LONG]), "ids")


def test_one_long_id_takes_no_room_for_all(tmp_path):
    """As an array of strings these would be 80 GB."""
    rows = [f"a,{row},{row}" for row in range(4000)] + [f"a,1,{'x' * 100_000}"]
    with pytest.raises(DataError, match="1,000 characters"):
        load(table(tmp_path, rows, "label,x,id"))


@pytest.mark.parametrize("mixed", [[1, "a"], [True, 2], ["a", b"a"]])
def test_mixtures_are_not_made_equal(mixed):
    """NumPy makes strings of [1, 'a']."""
    for given_ in (mixed, np.array(mixed, dtype=object)):
        with pytest.raises(DataError, match=", ".join(sorted(type(item).__name__ for item in mixed))):
            check_identifiers(given_, "ids")


@pytest.mark.parametrize("given", [["a", None], ["a", float("nan")], [1, None], np.array([1.0, np.nan])])
def test_what_is_missing_is_named_by_its_row(given):
    with pytest.raises(DataError, match="row 1"):
        check_identifiers(given, "ids")


def test_what_else_is_no_id_is_named_by_its_row():
    with pytest.raises(DataError, match="UUID, int"):
        check_identifiers([1, uuid.uuid4()], "ids")
    with pytest.raises(DataError, match="64 bits"):
        check_identifiers([1, 2**70], "ids")


def test_columns_of_objects_are_ids():
    assert check_identifiers(np.array(["a", "b"], dtype=object), "ids").tolist() == ["a", "b"]
    assert check_identifiers(np.array([1, 2], dtype=object), "ids").dtype == np.int64
    with pytest.raises(DataError, match="64 bits"):
        check_identifiers([2**70, 1], "ids")
