"""Frames and Parquet files give the records that the same table in a CSV file gives."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maxrr.data import Categories, DataError, Encoding, Number, from_frame, load, train_and_test
from maxrr.data.checks import check_identifiers
from maxrr.data.labels import as_classes
from maxrr.errors import UnreadableFile

COLUMNS = {
    "visit": [f"v{row}" for row in range(30)],
    "person": [f"p{row // 3}" for row in range(30)],
    "ill": ["yes" if row % 4 else "no" for row in range(30)],
    "age": [None if row == 7 else float(row) for row in range(30)],
    "country": [("de", "fr", None)[row % 3] for row in range(30)],
    "visits": list(range(30)),
    "counts": [1.0 + row % 2 for row in range(30)],
}
NAMES = {"label": "ill", "id": "visit", "subject": "person", "weight": "counts"}
ENCODING = Encoding({"age": Number(fill=0.0), "country": Categories(["de", "fr"], missing=True)})
TEXTS = ["visit", "person", "ill", "country"]
FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas strings": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas categories": lambda: pd.DataFrame(COLUMNS).astype(dict.fromkeys(TEXTS, "category")),
    "pandas on Arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col(*TEXTS).cast(pl.Categorical)),
    "Arrow": lambda: pa.table(COLUMNS),
    "Arrow dictionaries": lambda: pa.table(
        {name: pa.array(cells).dictionary_encode() if name in TEXTS else cells for name, cells in COLUMNS.items()}
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def from_csv(tmp_path_factory):
    """The two sides of the same table in a CSV file."""
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    pd.DataFrame(COLUMNS).to_csv(path, index=False)
    return load(path, **NAMES, encoding=ENCODING)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_the_same_table(kind, from_csv):
    sides = train_and_test(from_frame(FRAMES[kind](), **NAMES, encoding=ENCODING))
    assert [side.content_hash() for side in sides] == [side.content_hash() for side in from_csv]
    assert sides[0].columns == from_csv[0].columns
    assert sides[0].weights is not None


@pytest.mark.parametrize("kind", ["pandas categories", "polars categories", "Arrow dictionaries"])
def test_a_parquet_file_is_the_same_table(kind, from_csv, tmp_path):
    frame = FRAMES[kind]()
    path = tmp_path / "table.parquet"
    if kind.startswith("pandas"):
        frame.to_parquet(path)
    elif kind.startswith("polars"):
        frame.write_parquet(path)
    else:
        pq.write_table(frame, path)
    sides = load(path, **NAMES, encoding=ENCODING)
    assert [side.content_hash() for side in sides] == [side.content_hash() for side in from_csv]


def test_whole_numbers_with_gaps_are_the_same_categories():
    rule = Encoding({"x": Categories([1, 2], missing=True)})
    table = {"id": [0, 1, 2], "label": [0, 1, 0], "x": [1, None, 2]}
    for frame in (pd.DataFrame(table), pd.DataFrame(table).convert_dtypes(), pl.DataFrame(table)):
        assert from_frame(frame, encoding=rule).inputs.argmax(axis=1).tolist() == [0, 2, 1]


def test_floats_are_the_same_categories_in_a_file_of_text(tmp_path):
    """Programs write 1.0 for the category 1 where a column has gaps: it must not become another one."""
    rule = Encoding({"x": Categories([1, 2, "0.5"], other=True, missing=True)})
    frame = pd.DataFrame({"id": range(5), "label": [0, 1, 0, 1, 0], "x": [1.0, None, 2.0, 3.0, 0.5]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    expected = load(tmp_path / "table.csv", whole=True, encoding=rule)[0].in_order().inputs
    assert from_frame(frame, encoding=rule).inputs.tolist() == expected.tolist()
    assert expected.argmax(axis=1).tolist() == [0, 4, 1, 3, 2]


def test_no_labels():
    table = pl.DataFrame(COLUMNS).select("visit", "counts", "visits")
    records = from_frame(table, label=None, id="visit", subject=None)
    assert records.columns == ("counts", "visits")
    assert records.class_names == ("unknown",)
    assert records.subjects is None


HUGE = np.array([1, -(10**400)], dtype=object)
SMALL = {"id": ["a", "b"], "label": [0, 1], "x": [1.0, 2.0]}
BAD = {
    "a text": (
        SMALL | {"x": ["one", "two"]},
        {},
        r"'one' is not a number.*=Encoding\(\{'x': Categories\(\['one', …",
    ),
    "a gap": (
        SMALL | {"x": [1.0, None]},
        {},
        r"record 'b', column 'x': there is no value.*\{'x': Number\(fill=0\.0\)",
    ),
    "a date": (
        SMALL | {"x": [date(2020, 1, 1)] * 2},
        {},
        r"record 'a', column 'x': a .*days_since",
    ),
    "lists": (SMALL | {"x": [[1.0], [2.0]]}, {}, r"record 'a', column 'x': .*length"),
    "no id": (SMALL | {"id": ["a", None]}, {}, "record ids must be there for every record, and row 1"),
    "no class": (SMALL | {"label": ["a", None]}, {}, "labels must be there for every record, and row 1"),
    "no such column": (SMALL, {"label": "ill"}, "has no column 'ill'"),
    "no weight": (SMALL | {"w": [1.0, None]}, {"weight": "w"}, "record 'b' has the weight nan"),
    "a number that no float holds": (SMALL | {"x": HUGE}, {}, "column 'x': -inf is not finite in float32"),
    "a weight that no float holds": (SMALL | {"w": HUGE}, {"weight": "w"}, "record 'b' has the weight -inf"),
    "no ids": ({"label": [0, 1], "x": [1.0, 2.0]}, {}, "ids_from"),
    "no records": ({"id": [], "label": [], "x": []}, {}, "has no records"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_what_a_frame_must_not_hold(case, frame):
    table, options, words = BAD[case]
    with pytest.raises(DataError, match=words):
        from_frame(frame(table), **options)


def test_what_is_no_frame():
    for given in (np.zeros((2, 2)), pl.DataFrame(SMALL).lazy(), pd.DataFrame(np.zeros((2, 3)))):
        with pytest.raises(DataError, match=r"pandas or polars|of columns"):
            from_frame(given)


@pytest.mark.parametrize("option", [{"label": "x"}, {"weight": "x"}, {"encoding": ENCODING}])
def test_sources_without_columns_refuse_their_names(option):
    with pytest.raises(DataError, match=next(iter(option))):
        load("digits", **option)


def test_a_null_in_a_dictionary_is_missing_wherever_keys_are_taken():
    """NumPy is told another value for it."""
    given = pa.array(["a", "b", None]).dictionary_encode()
    for check in (lambda cells: check_identifiers(cells, "subject ids"), as_classes):
        with pytest.raises(DataError, match="row 2"):
            check(given)


@pytest.mark.parametrize("column", ["visit", "person", "ill"])
def test_a_row_is_counted_as_in_the_file(column, tmp_path):
    """Not as on the side of training or testing that the record would be on."""
    for row in range(30):
        table = COLUMNS | {column: [None if place == row else cell for place, cell in enumerate(COLUMNS[column])]}
        path = tmp_path / "table.parquet"
        pl.DataFrame(table).write_parquet(path)
        with pytest.raises(DataError, match=rf"^{path}: .* row {row} "):
            load(path, **NAMES, encoding=ENCODING)


@pytest.mark.parametrize("row", [3, 29])
def test_a_class_that_is_none_is_named_with_its_row(row, tmp_path):
    frame = pl.DataFrame(COLUMNS | {"ill": [0.5 if place == row else 1.0 for place in range(30)]})
    frame.write_parquet(tmp_path / "table.parquet")
    with pytest.raises(DataError, match=rf"labels .* row {row} has"):
        load(tmp_path / "table.parquet", **NAMES, encoding=ENCODING)


def test_damaged_files_are_refused(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(UnreadableFile):
        load(tmp_path / "bad.parquet")
