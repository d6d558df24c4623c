"""How a source is read is drafted, written beside it, and followed."""

import re

import numpy as np
import polars as pl
import pytest

from maxrr.data import Categories, DataError, Encoding, Number, load, prepare
from maxrr.data.doubts import doubts
from maxrr.data.reading import Reading, reading_of

ROWS = range(60)
FRAME = pl.DataFrame(
    {
        "row_id": [f"r{row}" for row in ROWS], "who": [f"p{row // 3}" for row in ROWS],
        "outcome": ["good" if row % 3 else "bad" for row in ROWS],
        "note": [f"text {row} of its own" for row in ROWS], "income": [1000.0 * row for row in ROWS],
        "born": [None if row == 0 else f"19{row + 20}-05-01" for row in ROWS],
        "town": ["" if row == 0 else "Rom" if row == 1 else ("Bonn", "Ulm")[row % 2] for row in ROWS],
        "share": [row % 2 / 2 for row in ROWS],
    }
)  # fmt: skip


def test_a_table_is_drafted_written_and_followed(tmp_path):
    FRAME.write_csv(tmp_path / "people.csv")
    file = prepare(tmp_path / "people.csv", label="outcome", subject="who")
    found = reading_of(tmp_path / "people.csv")
    assert (file.name, found.id, found.drop) == ("people.csv.toml", "row_id", ("note",))
    assert found.encoding == Encoding(
        {
            "income": Number(mean=30_000.0, width=10_000.0),
            "born": Number(fill=-18_000.0, mean=-18_000.0, width=1000.0, days_since="2000-01-01"),
            "town": Categories(["Bonn", "Ulm"], other=True, missing=True),
        }
    )
    records, _ = load(tmp_path / "people.csv", whole=True)
    assert len(records) == len(ROWS)
    assert records.columns[:2] == ("income", "born")
    born = records.select(["r30"]).inputs[0, 1]
    days = (np.datetime64("1950-05-01") - np.datetime64("2000-01-01")).astype(int)
    assert born == pytest.approx((days + 18_000) / 1000)
    assert "Rom" not in file.read_text()  # whom one category is about, it does not say
    with pytest.raises(DataError, match="already"):
        prepare(tmp_path / "people.csv", label="outcome")
    assert "share" not in load(tmp_path / "people.csv", drop=["note", "share"])[0].columns


def test_types_of_their_own_are_drafted_alike(tmp_path):
    vectors = [[float(row), 1.0, -1.0] for row in ROWS]
    frame = FRAME.with_columns(born=pl.col("born").str.to_date(), vector=pl.Series(vectors))
    frame.write_parquet(tmp_path / "people.parquet")
    FRAME.write_csv(tmp_path / "people.csv")
    for name in ("people.parquet", "people.csv"):
        prepare(tmp_path / name, label="outcome", subject="who")
    typed, texts = (reading_of(tmp_path / name) for name in ("people.parquet", "people.csv"))
    assert typed.encoding.rules["vector"] == Number(length=3)
    assert typed.encoding.rules | {} == {**texts.encoding.rules, "vector": Number(length=3)} | {
        "town": Categories(["Bonn", "Ulm"], other=True, missing=True)
    }
    records, _ = load(tmp_path / "people.parquet", whole=True)
    assert records.columns[-3:] == ("vector[0]", "vector[1]", "vector[2]")


def written(path, **columns):
    """A table of 60 records about 30 people, with more columns."""
    usual = {"id": [*ROWS], "subject": [row // 2 for row in ROWS], "label": ["ab"[row % 2] for row in ROWS]}
    pl.DataFrame(usual | columns).write_csv(path)
    return path


def test_what_few_people_have_in_common_is_not_written_down(tmp_path):
    path = written(
        tmp_path / "a.csv",
        town=["Thule" if row < 18 else "Bonn" for row in ROWS],  # of 9 people
        share=[1.0 if row else 1e9 for row in ROWS],
        rare=[None if row == 5 else 0.5 for row in ROWS],
        often=[None if row % 2 else 0.5 for row in ROWS],
    )
    text, found = prepare(path).read_text(), reading_of(path)
    assert "Thule" not in text
    assert found.encoding == Encoding(
        {
            "town": Categories(["Bonn"], other=True, missing=True),
            "rare": Number(fill=0.0),
            "often": Number(fill=0.0, indicator=True),
        }
    )
    assert found.drafted == ("town", "often")
    assert load(path)[0].drafted == 2


def test_constants_of_ones_own_are_not_drafted(tmp_path):
    path = written(tmp_path / "a.csv", income=[1000.0 * row for row in ROWS])
    file = prepare(path)
    assert load(path)[0].drafted == 1
    assert load(path, encoding=Encoding({"income": Number(width=5e4)}))[0].drafted == 0
    file.write_text(file.read_text().replace('drafted = ["income"]', "drafted = []"))
    assert load(path)[0].drafted == 0


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (["31.12.2021" if row == 17 else f"2024-05-{row % 28 + 1:02}" for row in ROWS], [19]),
        ([f"{row % 28 + 1:02}.05.2024" if row % 3 else "2024-05-01" for row in ROWS], [3, 4, 6]),
        ([f"{row % 7},5" if row == 4 else "3.14" for row in ROWS], [6]),
        ([f"{row % 28 + 1:02}.05.2024" for row in ROWS], [2, 3, 4]),
        ([f"{row % 12 + 1:02}/05/2024 10:30" for row in ROWS], [2, 3, 4]),
        ([f"{row + 1},5" for row in ROWS], [2, 3, 4]),
        ([f"{row + 1}.3 EUR" for row in ROWS], [2, 3, 4]),
        ([f"{row + 1} %" for row in ROWS], [2, 3, 4]),
    ],
)
def test_numbers_and_dates_that_are_written_in_another_way_are_a_problem(tmp_path, values, rows):
    path = written(tmp_path / "a.csv", odd=values, other=["?" if row == 9 else str(row) for row in ROWS])
    with pytest.raises(DataError) as caught:
        prepare(path)
    assert re.findall(r"line (\d+)", str(caught.value)) == [*map(str, rows), "11"]  # with the other column's
    assert not (tmp_path / "a.csv.toml").exists()


def test_small_numbers_and_words_with_digits_are_what_they_are(tmp_path):
    path = written(
        tmp_path / "a.csv", small=[f"{row + 1}e-07" for row in ROWS], size=["A4" if row % 2 else "B5" for row in ROWS],
        beds=[f"{row % 3} beds" for row in ROWS],
    )  # fmt: skip
    prepare(path)
    assert {name: type(rule) for name, rule in reading_of(path).encoding.rules.items()} == {
        "small": Number, "size": Categories, "beds": Categories,
    }  # fmt: skip


def test_a_draft_needs_no_other_scale(tmp_path):
    path = written(
        tmp_path / "a.csv", year=[2000 + row % 20 for row in ROWS], day=[f"2024-05-{row % 28 + 1:02}" for row in ROWS],
        income=[1e5 * (row % 7) for row in ROWS], town=["Ulm" if row % 2 else "Bonn" for row in ROWS],
    )  # fmt: skip
    prepare(path)
    assert doubts(load(path, whole=True)[0]) == []


def test_all_problems_are_listed_at_once_and_nothing_is_written(tmp_path):
    lines = [f"{row},{'' if row == 3 else 'ab'[row % 2]},{'unknown' if row == 5 else row}" for row in ROWS]
    (tmp_path / "table.csv").write_text("\n".join(["id,kind,age", *lines]))
    with pytest.raises(DataError) as caught:
        prepare(tmp_path / "table.csv", label="kind", subject="person")
    for word in ("'person'", "'kind' has no value for 1 records: line 5", "line 7 has 'unknown'"):
        assert word in str(caught.value)
    assert not (tmp_path / "table.csv.toml").exists()


def test_what_names_its_records_needs_little(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(20.0)[:, None], y=np.arange(20) % 2)
    assert reading_of(prepare(tmp_path / "a.npz", ids_from="rows").with_suffix("")).ids_from == "rows"
    assert sum(map(len, load(tmp_path / "a.npz"))) == 20
    np.save(tmp_path / "x.npy", np.arange(20.0)[:, None])
    (tmp_path / "meta.csv").write_text("id,label\n" + "".join(f"{row},{row % 2}\n" for row in range(20)))
    prepare(tmp_path / "x.npy", meta=tmp_path / "meta.csv")
    assert reading_of(tmp_path / "x.npy").meta == "meta.csv"  # wherever both may move
    assert (tmp_path / "x.npy.toml").read_text().count("#") == 1  # nothing is said of columns
    assert sum(map(len, load(tmp_path / "x.npy"))) == 20
    with pytest.raises(DataError, match="no file"):
        prepare("digits")


def test_what_is_written_is_read():
    rules = {"a b": Categories([1, "\x7f"], missing=True), "c": Number(fill=1, width=2.5)}
    told = ("w", ("", "x.y"), "content", "id", "m.csv", Encoding(rules))
    reading = Reading('a "b" \\ é', "", "subject", *told)
    assert Reading.from_toml(reading.to_toml()) == reading


@pytest.mark.parametrize("text", ["labl = 1", "label = 1", "drop = 'a'", "split_by = 'day'", "x", "encoding = 1"])
def test_what_is_not_known_is_refused(tmp_path, text):
    (tmp_path / "a.csv").write_text("id,label,x\n1,a,2\n")
    (tmp_path / "a.csv.toml").write_text(text)
    with pytest.raises(DataError, match=r"a\.csv\.toml"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["Free\ntext", 'a\nlabel = "x" #', "bell\a", "tab\t"])
def test_columns_of_any_name_are_passed_over_and_the_file_is_read(tmp_path, name):
    path = written(tmp_path / "a.csv", **{name: [f"text {row} of its own" for row in ROWS], "x": [*ROWS]})
    prepare(path)
    assert reading_of(path).drop == (name.strip(),)
    assert load(path, whole=True)[0].columns == ("x",)


def test_numbers_that_few_people_have_are_not_written_down(tmp_path):
    few = [48_133 + row if row < 18 else None for row in ROWS]  # of 9 people
    more = [48_133 + row if row < 20 else None for row in ROWS]  # of 10
    path = written(tmp_path / "a.csv", few=few, more=more)
    assert "4814" not in prepare(path).read_text().partition("[encoding.more]")[0]
    rules = reading_of(path).encoding.rules
    assert rules["few"] == Number(fill=0.0, indicator=True)
    assert rules["more"] == Number(fill=48_142.0, indicator=True, mean=48_142.0)


def test_infinite_numbers_and_ids_that_repeat_are_among_the_problems(tmp_path):
    odd = ["inf" if row == 3 else row for row in ROWS]
    lines = [f"{row % 58},{'ab'[row % 2]},{odd[row]},{'?' if row == 9 else row}" for row in ROWS]
    (tmp_path / "a.csv").write_text("\n".join(["id,label,odd,other", *lines]))
    with pytest.raises(DataError) as caught:
        prepare(tmp_path / "a.csv")
    for words in ("line 60 has '0', line 61 has '1' (2 such", "line 5 has 'inf'", "line 11 has '?'"):
        assert words in str(caught.value)


def test_a_column_of_infinite_numbers_alone_is_one_category(tmp_path):
    path = written(tmp_path / "a.csv", odd=["inf" for _ in ROWS], x=[*ROWS])
    prepare(path)
    assert reading_of(path).encoding.rules["odd"] == Categories(["inf"], other=True, missing=True)
