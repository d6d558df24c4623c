"""One table in four forms, a CSV file, a Parquet file, and frames of pandas and polars, is one dataset."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from maxrr.data import Categories, DataError, Encoding, from_frame, load
from maxrr.unlearning.record_kind import RecordKind

N = 40
BASE = {
    "id": [f"r{row}" for row in range(N)],
    "label": [row % 2 for row in range(N)],
    "x": [row / 4 for row in range(N)],
}
VALUES = {
    "integers": [row % 12 for row in range(N)],
    "whole floats": [float(row % 12) for row in range(N)],
    "booleans": [row % 2 == 0 for row in range(N)],
    "decimals": [Decimal(row % 12) for row in range(N)],
    "decimals with digits": [Decimal(f"{row % 12}.00") for row in range(N)],
    "days": [date(2024, 1, 1 + row % 12) for row in range(N)],
    "digits with zeros": [f"{row % 12:03}" for row in range(N)],
}
NAMES = ["integers", "whole floats", "booleans", "digits with zeros"]
DIFFERENT = {"integers": list(range(N)), "digits with zeros": [f"{row:03}" for row in range(N)]}


def forms(columns, folder, **options):
    """The records of the table in each form. Both libraries write files: they spell booleans differently."""
    pandas, polars = pd.DataFrame(columns), pl.DataFrame(columns)
    pandas.to_csv(folder / "pandas.csv", index=False)
    pandas.to_parquet(folder / "pandas.parquet")
    polars.write_csv(folder / "polars.csv")
    polars.write_parquet(folder / "polars.parquet")
    files = [folder / f"{library}.{form}" for library in ("pandas", "polars") for form in ("csv", "parquet")]
    found = {path.name: load(path, whole=True, **options)[0] for path in files}
    return found | {"pandas": from_frame(pandas, **options), "polars": from_frame(polars, **options)}


def check_same(found):
    first = found["polars"]
    for name, records in found.items():
        assert records.content_hash() == first.content_hash(), name
        assert records.class_names == first.class_names, name


@pytest.mark.parametrize("values", NAMES)
def test_labels(values, tmp_path):
    check_same(forms(BASE | {"label": VALUES[values]}, tmp_path))


@pytest.mark.parametrize("column", ["id", "subject", "label"])
@pytest.mark.parametrize("values", ["decimals", "days"])
def test_what_has_a_type_of_its_own_is_no_name(column, values):
    """Nobody can tell how a file of text would have it."""
    for frame in (pd.DataFrame, pl.DataFrame):
        with pytest.raises(DataError, match="write them as strings"):
            from_frame(frame(BASE | {column: VALUES[values]}))


@pytest.mark.parametrize("values", DIFFERENT)
@pytest.mark.parametrize("column", ["id", "subject"])
def test_ids_and_subjects(column, values, tmp_path):
    check_same(forms(BASE | {column: DIFFERENT[values]}, tmp_path))


@pytest.mark.parametrize("values", [each for each in VALUES if each != "days"])
def test_inputs(values, tmp_path):
    check_same(forms(BASE | {"x": VALUES[values]}, tmp_path))


def test_days_are_no_inputs(tmp_path):
    with pytest.raises(DataError, match="not a number"):
        forms(BASE | {"x": VALUES["days"]}, tmp_path)


@pytest.mark.parametrize("values", VALUES)
def test_categories(values, tmp_path):
    declared = sorted({str(value) for value in VALUES[values]})
    check_same(forms(BASE | {"x": VALUES[values]}, tmp_path, encoding=Encoding({"x": Categories(declared)})))


def test_a_workspace_has_digits_as_it_knows_them(tmp_path):
    """A column of texts says that they are texts, and a file of text cannot say so: '7' and 7 are one record here."""
    found = forms(BASE | {"id": list(map(str, range(N))), "subject": ["7"] * N}, tmp_path)
    assert found["polars"].ids.dtype.kind == "U"
    assert found["polars.csv"].ids.dtype.kind == "i"
    for as_texts in (True, False):
        kind = RecordKind((1,), np.dtype(np.float32), ("x",), ("0", "1"), text_ids=as_texts, text_subjects=as_texts)
        check_same({name: kind.conform(records) for name, records in found.items()})


def test_a_workspace_knows_its_classes_by_the_names_that_a_file_of_text_gave_them(tmp_path):
    """As it did before 1.0 was the class 1."""
    kind = RecordKind((1,), np.dtype(np.float32), ("x",), ("0.0", "1.0"), text_ids=True)
    for records in forms(BASE, tmp_path).values():
        assert kind.conform(records).class_names == ("0.0", "1.0")


def test_whole_numbers_that_no_float_tells_apart_are_two(tmp_path):
    large = ["9007199254740992.0", "9007199254740993.0"]
    lines = ["id,label,x", *(f"{row},{large[row % 2]},{row}" for row in range(N))]
    (tmp_path / "large.csv").write_text("\n".join(lines))
    assert load(tmp_path / "large.csv", whole=True)[0].class_names == ("9007199254740992", "9007199254740993")
    for one, other in (large, ["9.007199254740992e+15", "9.007199254740993e+15"]):
        assert Categories([one, other]).encode([other, one]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("column", ["id", "subject", "label"])
def test_blanks_around_what_a_record_is_called_are_no_other_name(column, tmp_path):
    """Without them in a file of text, and refused elsewhere: 'r5' that was forgotten does not come back as 'r5 '."""
    plain = BASE | {"subject": BASE["id"], "label": ["a", "b"] * (N // 2)}
    padded = pd.DataFrame(plain | {column: [f"{text} " for text in plain[column]]})
    pd.DataFrame(plain).to_csv(tmp_path / "plain.csv", index=False)
    padded.to_csv(tmp_path / "padded.csv", index=False)
    padded.to_parquet(tmp_path / "padded.parquet")
    np.save(tmp_path / "x.npy", np.ones((N, 2)))
    expected, found = (load(tmp_path / f"{name}.csv", whole=True)[0] for name in ("plain", "padded"))
    assert found.content_hash() == expected.content_hash()
    said = f"the values of column '{column}' must have no blanks around them, and row 0 has "
    for frame in (padded, padded.astype("string"), pl.DataFrame(padded), padded.astype({column: "category"})):
        with pytest.raises(DataError, match=said):
            from_frame(frame[["id", "subject", "label"]].assign(x=1.0) if isinstance(frame, pd.DataFrame) else frame)
    with pytest.raises(DataError, match=f"padded.parquet: {said}"):
        load(tmp_path / "padded.parquet")
    with pytest.raises(DataError, match=f"padded.parquet: {said}"):
        load(tmp_path / "x.npy", meta=tmp_path / "padded.parquet")


@pytest.mark.parametrize("name", ["ids", "subjects"])
def test_blanks_around_ids_in_an_archive(name, tmp_path):
    named = {"ids": np.array(BASE["id"]), "subjects": np.array(BASE["id"])}
    named[name] = np.array([f" {text}" for text in BASE["id"]])
    np.savez(tmp_path / "x.npz", X=np.ones((N, 2)), y=BASE["label"], **named)
    with pytest.raises(DataError, match="no blanks around"):
        load(tmp_path / "x.npz")


def test_blanks_around_categories_do_not_matter(tmp_path):
    columns = BASE | {"x": [("de", "fr ", " it")[row % 3] for row in range(N)]}
    found = forms(columns, tmp_path, encoding=Encoding({"x": Categories([" de", "fr"], other=True)}))
    check_same(found)
    assert found["polars"].inputs[:3].tolist() == np.eye(3).tolist()


def test_texts_that_read_like_numbers_or_booleans_are_other_labels_in_a_file_of_text(tmp_path):
    for texts, in_csv in ((["1.0", "2.0"], ("1", "2")), (["false", "true"], ("False", "True"))):
        for name, records in forms(BASE | {"label": texts * (N // 2)}, tmp_path).items():
            assert records.class_names == (in_csv if name.endswith(".csv") else tuple(texts)), name
            kind = RecordKind((1,), np.dtype(np.float32), ("x",), in_csv, text_ids=True)
            assert kind.conform(records).class_names == in_csv
