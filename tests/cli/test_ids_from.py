"""Records without ids: refused, or named by their content, and so in every later command."""

import json
import shutil
from pathlib import Path

import pytest

from maxrr.data import load
from tests.cli.shell import Shell

pytestmark = pytest.mark.usefixtures("here", "few_models")
LINES = [f"{'ill' if row % 4 else 'well'},{row % 4 + row / 100},{row % 7}" for row in range(60)]
FIT = ("--core", "full", "--epochs", 2)


@pytest.fixture
def unnamed(tmp_path: Path) -> Path:
    path = tmp_path / "unnamed.csv"
    path.write_text("\n".join(["state,age,weight", *LINES]))
    return path


def says(table: Path, reading: str = "") -> None:
    """Write how a table is read, beside it."""
    table.with_name(f"{table.name}.toml").write_text(f'label = "state"\n{reading}\n')


def test_a_table_without_ids_is_refused(shell: Shell, unnamed: Path, tmp_path: Path) -> None:
    says(unnamed)
    ended = shell("fit", unnamed, *FIT, "--out", tmp_path / "ws", code=1)
    assert "--id)" in ended.err
    assert ended.error == "missing-ids"
    assert not (tmp_path / "ws").exists()


def test_later_commands_read_the_same_ids(shell: Shell, unnamed: Path, tmp_path: Path) -> None:
    """The attack: the line of a forgotten record is deleted from the file, and all that follows is done again."""
    ws = tmp_path / "ws"
    shell("data", "prepare", unnamed, "--label", "state")  # by content, where there are no ids
    shell("fit", unnamed, *FIT, "--out", ws)
    training, _ = load(unnamed)
    gone = str(training.ids[7])
    assert shell("unlearn", ws, "--ids", gone, "--policy", "retrain", "--yes", "--json").json["requested"] == 1
    value = training.inputs[7]
    left = [line for line in LINES if [float(text) for text in line.split(",")[1:]] != pytest.approx(value.tolist())]
    assert len(left) == 59
    unnamed.write_text("\n".join(["state,age,weight", *left]))
    assert shell("replay", ws, 1, "--json").json["holds"]
    again = shell("fit", unnamed, *FIT, "--out", ws, "--json").json
    assert again["records"] == len(training) - 1
    unnamed.write_text("\n".join(["state,age,weight", *LINES]))  # somebody brings it back
    assert "forgotten" in shell("fit", unnamed, *FIT, "--out", ws, code=3).err


def test_the_notes_of_a_workspace(shell: Shell, unnamed: Path, tmp_path: Path) -> None:
    shell("data", "prepare", unnamed, "--label", "state", "--ids-from", "rows")
    shell("fit", unnamed, *FIT, "--out", tmp_path / "ws")
    source = shell("status", tmp_path / "ws", "--json").json["sources"][0]
    assert source["reading"] == 'label = "state"\nids_from = "rows"\n'
    assert shell("replay", tmp_path / "ws", 1, code=3)  # there is no receipt, and the source could be read


def test_ids_that_are_there(shell: Shell, visits_csv: Path, tmp_path: Path) -> None:
    table = shutil.copy(visits_csv, tmp_path / "visits.csv")
    options = ("--label", "state", "--id", "visit", "--subject", "person", "--ids-from", "content")
    assert shell("data", "prepare", table, *options, code=1).error == "data"
    assert not (tmp_path / "visits.csv.toml").exists()


def test_other_words(shell: Shell, unnamed: Path) -> None:
    assert "hash" in shell("data", "prepare", unnamed, "--label", "state", "--ids-from", "hash", code=2).err


def test_an_audit_finds_forgotten_records_by_content(shell: Shell, unnamed: Path, tmp_path: Path) -> None:
    """The forgotten records from a file of their own have the ids that they had among all."""
    ws = tmp_path / "ws"
    shell("data", "prepare", unnamed, "--label", "state")  # by content, where there are no ids
    shell("fit", unnamed, *FIT, "--out", ws)
    training, _ = load(unnamed)
    shell("unlearn", ws, "--ids", ",".join(training.ids[:3].tolist()), "--policy", "keep-extractor", "--yes")
    lines = {f"{float(line.split(',')[1]):.4f},{line.split(',')[2]}": line for line in LINES}
    gone = [lines[f"{age:.4f},{weight:.0f}"] for age, weight in training.inputs[:3].tolist()]
    (tmp_path / "gone.csv").write_text("\n".join(["state,age,weight", *reversed(gone)]))
    page = tmp_path / "audit.html"
    shell("audit", ws, 1, "--forgotten", tmp_path / "gone.csv", "--shadows", 8, "--out", page, code=5)
    assert json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["records"] == 3


def test_uneven_columns_are_warned_of_once(shell: Shell, tmp_path: Path) -> None:
    rows = [f"{row},{'ab'[row % 2]},{row % 2},{1000 * row}" for row in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["id,label,share,income", *rows]))
    ended = shell("fit", tmp_path / "table.csv", "--core", "full", "--epochs", 1, "--out", tmp_path / "ws")
    assert ended.err.count("Warning: column 'income' varies") == 1
    assert "Warning: " in ended.err


def test_even_columns_are_not(shell: Shell, visits_csv: Path, tmp_path: Path) -> None:
    ended = shell("fit", visits_csv, "--core", "full", "--epochs", 1, "--out", tmp_path / "ws")
    assert "varies" not in ended.err


def named(ids: list[str], swapped: bool = False) -> str:
    lines = [f"{id_},{line}" for id_, line in zip(ids, LINES, strict=False)]
    if swapped:
        lines = [",".join([id_, state, y, x]) for id_, state, x, y in (line.split(",") for line in lines)]
    return "\n".join([f"id,state,{'weight,age' if swapped else 'age,weight'}", *lines])


def test_ids_that_become_integers_are_still_the_same(shell: Shell, tmp_path: Path) -> None:
    """The attack: the only id that was no integer is deleted, and '1' becomes 1, which nobody has forgotten."""
    path, ws = tmp_path / "table.csv", tmp_path / "ws"
    says(path)
    path.write_text(named([*map(str, range(59)), "x59"]))
    shell("fit", path, *FIT, "--out", ws)
    shell("unlearn", ws, "--ids", "1,x59", "--policy", "retrain", "--yes")
    path.write_text(named(list(map(str, range(59)))))
    assert shell("replay", ws, 1, "--json").json["holds"]
    refused = shell("fit", path, *FIT, "--out", ws, code=3)
    assert refused.error == "already-forgotten"
    shell("fit", path, *FIT, "--out", ws, "--skip-forgotten")
    assert "holds" in shell("replay", ws, 1, "--json").out


def test_integers_that_become_texts_are_refused(shell: Shell, tmp_path: Path) -> None:
    path, ws = tmp_path / "table.csv", tmp_path / "ws"
    says(path)
    path.write_text(named(list(map(str, range(60)))))
    shell("fit", path, *FIT, "--out", ws)
    shell("unlearn", ws, "--ids", "1", "--policy", "retrain", "--yes")
    path.write_text(named([*map(str, range(59)), "x59"]))
    assert shell("fit", path, *FIT, "--out", ws, code=3).error == "already-forgotten"


def test_columns_that_change_places(shell: Shell, tmp_path: Path) -> None:
    """By their names they are the same records, also for whoever trains again."""
    path, ws = tmp_path / "table.csv", tmp_path / "ws"
    says(path)
    path.write_text(named(list(map(str, range(60)))))
    shell("fit", path, *FIT, "--out", ws)
    shell("unlearn", ws, "--ids", "1", "--policy", "retrain", "--yes")
    path.write_text(named(list(map(str, range(60))), swapped=True))
    assert shell("replay", ws, 1, "--json").json["holds"]
    assert shell("fit", path, *FIT, "--out", ws, code=3).error == "already-forgotten"
