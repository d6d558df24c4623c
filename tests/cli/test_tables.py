"""Tables in the shell: Parquet files, declared encodings, weights, and people whose records are for testing."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from maxrr import MaxRR
from maxrr.cli.workspaces import options_for
from maxrr.data import Encoding, load
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
DECLARED = {"country": {"categories": ["de", "fr"], "other": True}, "age": {"fill": 2.0}}
OPTIONS = ("--label", "state", "--id", "visit", "--subject", "person", "--weight", "counts")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    FRAME.write_parquet(folder / "people.parquet")
    FRAME.write_csv(folder / "people.csv")
    (folder / "encoding.json").write_text(json.dumps(DECLARED))
    return folder / "people.parquet"


@pytest.fixture(scope="module")
def fitted(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people") / "ws"
    encoding = table.parent / "encoding.json"
    Shell()("fit", table, *OPTIONS, "--encoding", encoding, "--epochs", 2, "--out", folder)
    encoding.unlink()  # the workspace knows it
    return folder


def test_new_files_are_encoded_as_those_that_were_fitted(shell: Shell, fitted: Path, table: Path) -> None:
    answers = [shell("predict", fitted, table.with_suffix(suffix), "--json").json for suffix in (".parquet", ".csv")]
    classes = [[answer["class"] for answer in found] for found in answers]
    assert classes[0] == classes[1]
    assert len(classes[0]) == len(ROWS)


def test_a_new_category_is_an_error_where_none_is_declared(shell: Shell, fitted: Path, tmp_path: Path) -> None:
    FRAME.with_columns(country=pl.lit(None)).write_parquet(tmp_path / "new.parquet")
    ended = shell("predict", fitted, tmp_path / "new.parquet", code=1)
    assert "column 'country': there is no value" in ended.err


def test_raw_records_are_found_again(shell: Shell, fitted: Path) -> None:
    """With the same encoding, weights and split."""
    shell("unlearn", fitted, "--subject", LEARNED[0], "--policy", "retrain", "--yes")


def test_a_person_whose_records_are_all_for_testing(shell: Shell, fitted: Path) -> None:
    plan = shell("plan", fitted, "--subject", TESTED[0])
    assert "3 records about these people, all for testing" in " ".join(plan.out.split())
    answer = shell("unlearn", fitted, "--subject", TESTED[0], "--yes", "--json").json
    assert answer == {"requested": 0, "test_records": 3, "receipt": None}


def test_people_of_both_kinds(shell: Shell, fitted: Path) -> None:
    both = ("--subject", LEARNED[1], "--subject", TESTED[0])
    found = shell("plan", fitted, *both, "--policy", "retrain", "--json").json
    assert (found["requested"], found["test_records"]) == (3, 3)
    ended = shell("plan", fitted, *both, "--subject", "nobody", code=3)
    assert "no record is about 'nobody'" in ended.err
    assert TESTED[0] not in ended.err


def test_nobody_is_called_unknown_while_the_source_is_not_at_hand(shell: Shell, fitted: Path, table: Path) -> None:
    away = table.rename(table.with_name("away.parquet"))
    try:
        for command in (("plan",), ("unlearn", "--yes")):
            ended = shell(command[0], fitted, "--subject", TESTED[0], *command[1:], code=1)
            said = " ".join(ended.err.split())
            assert "no record is about" not in said
            assert f"about '{TESTED[0]}', and whether records for testing are about them cannot be told" in said
            assert f"came from {table}, and nothing is there" in said
        shell("plan", fitted, "--subject", LEARNED[1], "--policy", "retrain")  # of whom all records are learned
        for command in (("plan",), ("unlearn", "--yes")):
            moved = shell(command[0], fitted, "--subject", TESTED[0], "--source", away, *command[1:], "--json").json
            assert moved["test_records"] == 3
    finally:
        away.rename(table)


def test_somebody_forgotten_before_stops_a_request_for_others(shell: Shell, fitted: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(fitted, tmp_path / "ws"))
    again, other = LEARNED[2:4]
    shell("unlearn", folder, "--subject", again, "--policy", "keep-extractor", "--yes")
    both = ("--subject", again, "--subject", other, "--policy", "keep-extractor", "--yes")
    said = " ".join(shell("unlearn", folder, *both, code=3).err.split())
    assert f"'{again}' was forgotten on 20" in said
    assert "Nothing else of the request is done: leave them out" in said
    shell("unlearn", folder, "--subject", other, "--policy", "keep-extractor", "--yes")


def test_people_who_come_in_by_being_added(shell: Shell, fitted: Path, table: Path, tmp_path: Path) -> None:
    """Those who were forgotten, and those whose other records are for testing."""
    folder = Path(shutil.copytree(fitted, tmp_path / "ws"))
    gone, tested = LEARNED[4], TESTED[1]
    shell("unlearn", folder, "--subject", gone, "--policy", "keep-extractor", "--yes")
    rows = FRAME.filter(pl.col("person").is_in([gone, tested, LEARNED[5]]))
    rows.with_columns(visit="w" + pl.col("visit"), age=pl.col("age") + 0.001).write_parquet(tmp_path / "more.parquet")
    more = (folder, tmp_path / "more.parquet")
    assert "about 1 person forgotten here before: they come in" in " ".join(shell("add", *more, "--plan").err.split())
    assert shell("add", *more, "--plan", "--json").json["forgotten_people"] == 1
    assert "about 1 person forgotten here" in " ".join(shell("add", *more, "--yes").err.split())
    refitted = shell("refit", folder)
    said = "records about 1 person were added whose other records are for testing"
    assert said in " ".join(refitted.err.split())
    # A fit takes the source that it is given, and nothing else.
    (tmp_path / "encoding.json").write_text(json.dumps(DECLARED))
    options = (*OPTIONS, "--encoding", tmp_path / "encoding.json", "--skip-forgotten", "--epochs", 1, "--out", folder)
    again = " ".join(shell("fit", table, *options).err.split())
    assert "9 records are no longer in the workspace, for fit takes the given source alone" in again
    assert f"What was added came from {more[1]}" in again
    assert "no longer" not in shell("fit", table, *options).err


def test_a_person_on_both_sides(shell: Shell, table: Path, tmp_path: Path) -> None:
    (tmp_path / "encoding.json").write_text(json.dumps(DECLARED))
    Shell()(
        "fit", table, *OPTIONS, "--encoding", tmp_path / "encoding.json", "--split-by", "id", "--epochs", 1, "--out",
        tmp_path / "ws",
    )  # fmt: skip
    who = next(who for who in LEARNED if 0 < sum(is_test(FRAME.filter(person=who)["visit"].to_numpy())) < 3)
    ended = shell("plan", tmp_path / "ws", "--subject", who, "--policy", "retrain")
    assert "about these people for testing: used for nothing but scores" in " ".join(ended.err.split())


def test_names_of_columns_mean_nothing_for_images(shell: Shell, tmp_path: Path) -> None:
    ended = shell("fit", "digits", "--label", "state", "--out", tmp_path / "ws", code=1)
    assert "digits: has no columns that label (--label) could mean" in ended.err


def test_workspaces_from_before_there_were_splits_by_subject_are_read_as_then() -> None:
    before = {"name": "a.csv", "label": "state", "id": "id", "subject": "subject"}
    found = options_for(before, "a.csv")
    assert (found["split_by"], found["label"], found["weight"], found["encoding"]) == ("id", "state", None, Encoding())
    assert options_for(before, "a.npz") == {"ids_from": None, "split_by": "id"}


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with an id that no option names, and an index without a name."""
    path = tmp_path_factory.mktemp("numbered") / "visits.csv"
    lines = [f"{row},{row},{row // 2 + 100},{'ill' if row % 4 else 'well'},{row % 4}" for row in range(60)]
    path.write_text("\n".join([",id,person_id,label,age", *lines]))
    return path


def test_columns_that_became_inputs_are_named(shell: Shell, numbered: Path, tmp_path: Path) -> None:
    described = shell("data", "describe", numbered)
    fitted = shell("fit", numbered, "--epochs", 1, "--out", tmp_path / "ws")
    for ended in (described, fitted):
        assert "Inputs: '', 'person_id', 'age'." in ended.out
        assert "the inputs '', 'person_id' look like ids: name them with --id or --subject" in " ".join(
            ended.err.split()
        )
    assert shell("data", "describe", numbered, "--json").json["columns"] == ["", "person_id", "age"]


def test_a_workspace_keeps_what_is_dropped(shell: Shell, numbered: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    ended = shell("fit", numbered, "--drop", "", "--subject", "person_id", "--epochs", 1, "--out", folder)
    assert "Inputs: 'age'." in ended.out
    assert "look like" not in ended.err
    assert len(shell("predict", folder, numbered, "--json").json) == 60
    (tmp_path / "more.csv").write_text("id,person_id,label,age\n100,200,ill,3\n101,200,well,0\n")
    shell("add", folder, tmp_path / "more.csv", "--yes")
    shell("refit", folder)


def test_an_export_takes_rows_of_the_table(shell: Shell, fitted: Path, table: Path, tmp_path: Path) -> None:
    from maxrr import serving

    shell("export", fitted, "--serving", tmp_path / "model")
    served = serving.load(tmp_path / "model")
    assert served.columns == ("age", "country")
    answers = shell("predict", fitted, table, "--json").json
    rows = FRAME.select("country", "age").to_dicts()
    found = [served.classes[best] for best in served.predict_proba(rows).argmax(axis=1)]
    assert found == [answer["class"] for answer in answers]


@pytest.mark.usefixtures("here")
def test_a_workspace_made_in_python_is_worked_on_there_if_it_cannot_tell_how_its_table_is_read(
    shell: Shell, table: Path, tmp_path: Path
) -> None:
    """What it can tell, the shell goes by."""
    how = {"label": "state", "id": "visit", "subject": "person", "weight": "counts"}
    encoding = Encoding.from_json(json.dumps(DECLARED))
    records, _ = load(table, **how, encoding=encoding)  # type: ignore[arg-type]
    with Workspace.create(tmp_path / "ws", MaxRR.on_features(), records) as workspace:
        workspace.model.unlearn(records.ids[0])
    replay = ("replay", tmp_path / "ws", 1, "--source", table)
    for ended in (shell(*replay, code=1), shell(*replay, "--label", "state", code=2)):
        said = " ".join(ended.err.split())
        assert "was made in Python, and not told how its records are read" in said
        assert "Workspace.open(folder, records=load_training)" in said
    source = how | {"encoding": encoding.to_json(), "split_by": "subject"}
    with Workspace.create(tmp_path / "told", MaxRR.on_features(), records, source=source) as workspace:
        workspace.model.unlearn(records.ids[0])
    assert shell("replay", tmp_path / "told", 1, "--source", table, "--json").json["outcome"] == "identical"


def test_without_a_column_for_the_class_it_is_said_which_option_names_it(shell, visits_csv, tmp_path):
    said = shell("fit", visits_csv, "--out", tmp_path / "ws", code=1).err
    assert "has no column 'label': its columns are 'visit', 'person', 'state', 'age', 'weight'" in said
    assert "Say which of them is the label: label=…, in the shell --label" in said
    assert not (tmp_path / "ws").exists()
