"""Tables in the shell: Parquet files, declared encodings, weights, and people whose records are for testing."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from maxrr import MaxRR
from maxrr.data import load
from maxrr.data.train_test import is_test
from maxrr.workspace import Workspace
from tests.cli.shell import Shell

ROWS = range(90)
PEOPLE = [f"p{row // 3}" for row in ROWS]
TESTED = [who for who in dict.fromkeys(PEOPLE) if is_test(np.array([who]))[0]]
LEARNED = [who for who in dict.fromkeys(PEOPLE) if who not in TESTED]
FRAME = pl.DataFrame(
    {
        "visit": [f"v{row}" for row in ROWS], "person": PEOPLE, "state": ["ill" if row % 4 else "well" for row in ROWS],
        "age": [None if row % 10 == 0 else row % 4 + row / 100 for row in ROWS],
        "country": [("de", "fr", "it")[row % 3] for row in ROWS], "counts": [1.0 + row % 2 for row in ROWS],
    }
)  # fmt: skip
READING = """
label = "state"
id = "visit"
subject = "person"
weight = "counts"
encoding.country = {categories = ["de", "fr"], other = true}
encoding.age = {fill = 2.0}
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    FRAME.write_parquet(folder / "people.parquet")
    FRAME.write_csv(folder / "people.csv")
    (folder / "people.parquet.toml").write_text(READING)
    return folder / "people.parquet"


@pytest.fixture(scope="module")
def fitted(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people") / "ws"
    says_how = table.with_name("people.parquet.toml")
    Shell()("fit", table, "--epochs", 2, "--out", folder)
    says_how.unlink()  # the workspace knows it
    return folder


def test_new_files_are_encoded_as_those_that_were_fitted(shell: Shell, fitted: Path, table: Path) -> None:
    answers = [shell("predict", fitted, table.with_suffix(suffix), "--json").json for suffix in (".parquet", ".csv")]
    classes = [[answer["class"] for answer in found] for found in answers]
    assert classes[0] == classes[1]
    assert len(classes[0]) == len(ROWS)


def test_a_new_category_is_an_error_where_none_is_declared(shell: Shell, fitted: Path, tmp_path: Path) -> None:
    FRAME.with_columns(country=pl.lit(None)).write_parquet(tmp_path / "new.parquet")
    ended = shell("predict", fitted, tmp_path / "new.parquet", code=1)
    assert ended.error == "data"


def test_raw_records_are_found_again(shell: Shell, fitted: Path) -> None:
    """With the same encoding, weights and split."""
    shell("unlearn", fitted, "--subject", LEARNED[0], "--policy", "retrain", "--yes")


def test_a_person_whose_records_are_all_for_testing(shell: Shell, fitted: Path) -> None:
    """The model has learned from none of them, and neither has a request for others beside them an effect."""
    for people in ((TESTED[0],), (LEARNED[1], TESTED[0]), ("nobody",)):
        asked = [word for who in people for word in ("--subject", who)]
        for command in (("plan",), ("unlearn", "--yes")):
            ended = shell(command[0], fitted, *asked, "--policy", "retrain", *command[1:], code=3)
            assert people[-1] in ended.err
            assert LEARNED[1] not in ended.err


def test_somebody_forgotten_before_is_counted_beside_others(shell: Shell, fitted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(fitted, tmp_path / "ws"))
    again, other = LEARNED[2:4]
    first = shell("unlearn", folder, "--subject", again, "--policy", "keep-extractor", "--yes", "--json").json
    both = ("--subject", again, "--subject", other, "--policy", "keep-extractor", "--yes")
    said = shell("unlearn", folder, *both, "--json").json
    assert (said["already_forgotten"], said["records_before"] - said["records_after"]) == (1, said["requested"] - 1)
    once_more = shell("unlearn", folder, "--subject", again, "--yes", "--json").json
    assert f"receipt {first['number']}" in once_more["reason"]


def test_people_who_come_in_by_being_added(shell: Shell, fitted: Path, table: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(fitted, tmp_path / "ws"))
    gone = LEARNED[4]
    shell("unlearn", folder, "--subject", gone, "--policy", "keep-extractor", "--yes")
    rows = FRAME.filter(pl.col("person").is_in([gone, TESTED[1], LEARNED[5]]))
    rows.with_columns(visit="w" + pl.col("visit"), age=pl.col("age") + 0.001).write_parquet(tmp_path / "more.parquet")
    more = (folder, tmp_path / "more.parquet")
    assert shell("add", *more, "--plan", "--json").json["forgotten_people"] == 1
    assert "1 person" in shell("add", *more, "--yes").err
    shell("refit", folder)
    # A fit takes the source that it is given, and nothing else.
    whole = Path(shutil.copy(table, tmp_path / "people.parquet"))
    (tmp_path / "people.parquet.toml").write_text(READING)
    options = ("--skip-forgotten", "--epochs", 1, "--out", folder)
    again = shell("fit", whole, *options).err
    assert ("9 records" in again, str(more[1]) in again) == (True, True)
    assert "9 records" not in shell("fit", whole, *options).err


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with an id that no option names, and an index without a name."""
    path = tmp_path_factory.mktemp("numbered") / "visits.csv"
    lines = [f"{row},{row},{row // 2 + 100},{'ill' if row % 4 else 'well'},{row % 4}" for row in range(60)]
    path.write_text("\n".join([",id,person_id,label,age", *lines]))
    return path


def test_columns_that_became_inputs_are_named(shell: Shell, numbered: Path, tmp_path: Path) -> None:
    ended = shell("fit", numbered, "--epochs", 1, "--out", tmp_path / "ws")
    for shown, inputs in ((ended.out, ["", "person_id", "age"]), (ended.err, ["", "person_id"])):
        assert ", ".join(map(repr, inputs)) in shown


def test_a_workspace_keeps_what_is_dropped(shell: Shell, numbered: Path, tmp_path: Path) -> None:
    folder, table = tmp_path / "ws", Path(shutil.copy(numbered, tmp_path / "visits.csv"))
    assert 'drop = [""]' in shell("data", "prepare", table, "--subject", "person_id").out
    ended = shell("fit", table, "--epochs", 1, "--out", folder)
    assert (ended.out.splitlines()[0].split(), ended.err.count("person_id")) == (["Inputs:", "'age'."], 0)
    assert len(shell("predict", folder, table, "--json").json) == 60
    (tmp_path / "more.csv").write_text(",id,person_id,label,age\n0,100,200,ill,3\n1,101,200,well,0\n")
    shell("add", folder, tmp_path / "more.csv", "--yes")
    shell("refit", folder)


def test_an_export_takes_rows_of_the_table(shell: Shell, table: Path, tmp_path: Path) -> None:
    from maxrr import serving

    whole, fitted = shutil.copy(table, tmp_path / "people.parquet"), tmp_path / "ws"
    (tmp_path / "people.parquet.toml").write_text(READING)
    shell("fit", whole, "--core", "frozen", "--out", fitted)
    shell("export", fitted, tmp_path / "model")
    served = serving.load(tmp_path / "model")
    assert served.columns == ("age", "country")
    answers = shell("predict", fitted, table, "--json").json
    rows = FRAME.select("country", "age").to_dicts()
    assert served.predict(rows).tolist() == [answer["class"] for answer in answers]


@pytest.mark.usefixtures("here")
def test_a_workspace_made_in_python_goes_by_what_it_was_told_or_by_what_lies_beside_the_source(
    shell: Shell, table: Path, tmp_path: Path
) -> None:
    records, _ = load(table, reading=READING)
    told = {"source": str(table), "reading": READING}
    for name, source in (("ws", None), ("told", told)):
        with Workspace.create(tmp_path / name, MaxRR.on_features(), records, source=source) as workspace:
            workspace.model.unlearn(records.ids[0])
            assert source is None or len(load(**workspace.sources[0])[0]) == len(records)
    assert shell("replay", tmp_path / "ws", 1, code=1).error == "records-missing"
    assert shell("replay", tmp_path / "ws", 1, "--source", table, code=1).error == "missing-column"
    whole = shutil.copy(table, tmp_path / "people.parquet")
    (tmp_path / "people.parquet.toml").write_text(READING)
    assert shell("replay", tmp_path / "ws", 1, "--source", whole, "--json").json["outcome"] == "identical"
    assert shell("replay", tmp_path / "told", 1, "--json").json["outcome"] == "identical"


def test_without_a_column_for_the_class_it_is_said_how_to_name_it(shell, visits_csv, tmp_path):
    table = shutil.copy(visits_csv, tmp_path / "visits.csv")
    ended = shell("fit", table, "--out", tmp_path / "ws", code=1)
    assert ended.error == "missing-column"
    for said in ("'visit', 'person', 'state', 'age', 'weight'", "maxrr data prepare"):
        assert said in ended.err
    assert not (tmp_path / "ws").exists()
