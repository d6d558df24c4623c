"""`maxrr add` and `maxrr refit`: records of another day, from the shell."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from maxrr.data import load
from maxrr.nets.naming import NamedNetwork
from maxrr.unlearning.bundles import facts_in
from maxrr.workspace import Workspace
from tests.cli.shell import Shell, kinds, model_of, receipt_file

HEADER = "visit,person,state,age,weight"


def lines_of(rows: range, state: str | None = None) -> list[str]:
    return [
        f"v{row},p{row // 3},{state or ('ill' if row % 4 else 'well')},{row % 4 + row / 100},{row % 7}" for row in rows
    ]


@pytest.fixture
def monday(tmp_path: Path) -> Path:
    """Visits of a later day. Their columns are called as when fitting."""
    path = tmp_path / "monday.csv"
    path.write_text("\n".join([HEADER, *lines_of(range(60, 72))]))
    return path


def test_all_records_of_a_source_are_added(shell: Shell, visits: Path, monday: Path) -> None:
    before = shell("status", visits, "--json").json
    planned = shell("add", visits, monday, "--plan", "--json").json
    assert (planned["added"], planned["requested"], planned["guarantee"]) == (12, 0, "exact-refit")
    assert "12 added" in planned["conditions"][0]
    assert "12 to add" in shell("add", visits, monday, "--plan").out
    assert shell("status", visits, "--json").json == before
    assert "say --yes" in shell("add", visits, monday, code=2).err
    shown = shell("add", visits, monday, "--yes").out
    assert "12 records" in shown
    after = shell("status", visits, "--json").json
    assert (after["records"], after["waiting_for_fit"]) == (before["records"] + 12, 12)
    assert [each["source"] for each in after["sources"][1:]] == [str(monday)]
    told = shell("status", visits).out
    assert "maxrr refit" in told
    assert "+12" in told
    shown = shell("receipt", "show", receipt_file(visits, 1)).out
    assert "12 records" in shown
    assert "12 added" in shown
    shell("verify", receipt_file(visits, 1), "--against", visits)
    again = shell("add", visits, monday, "--yes", code=1)
    assert (again.error, "12 of the" in again.err) == ("id-taken", True)


@pytest.mark.usefixtures("here")
def test_what_is_trained_again_reads_every_source(shell: Shell, visits: Path, monday: Path, tmp_path: Path) -> None:
    shell("add", visits, monday, "--yes")
    one = kinds(visits)["core"][0]
    receipt = shell("unlearn", visits, "--ids", one, "--policy", "retrain", "--yes", "--json").json
    assert (receipt["guarantee"], receipt["unconditional"]) == ("exact-retrain", False)
    assert shell("replay", visits, 2, "--json").json["outcome"] == "identical"
    # A bundle elsewhere is replayed with both files, in whichever way they are brought.
    with Workspace.open(visits, read_only=True) as workspace:
        first = workspace.sources[0]["source"]
    shell("bundle", visits, tmp_path / "bundle")
    brought = ("replay", tmp_path / "bundle", receipt_file(visits, 2), "--source", first)
    shell(*brought, "--source", monday)
    assert "12 of the" in shell(*brought, code=1).err
    # All of it in one file, and the added ones among those that a fit would set aside.
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join([HEADER, *lines_of(range(72))]))
    monday.rename(tmp_path / "moved.csv")
    assert shell("replay", visits, 2, code=1).error == "records-missing"
    assert shell("replay", visits, 2, "--source", whole, "--json").json["outcome"] == "identical"


FOR_CLASSES = """
from torch import nn

def small(shape, classes):
    return nn.Sequential(nn.Linear(shape[0], 7), nn.Tanh(), nn.Linear(7, classes))
"""


@pytest.mark.usefixtures("here")
def test_additions_are_replayed_where_a_function_of_ones_own_makes_the_network(
    shell: Shell, visits_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = "made_for_classes:small"
    (tmp_path / "made_for_classes.py").write_text(FOR_CLASSES)
    monkeypatch.chdir(tmp_path)
    new = lines_of(range(60, 72))
    (tmp_path / "new.csv").write_text("\n".join([HEADER, *new]))
    (tmp_path / "whole.csv").write_text("\n".join([HEADER, *lines_of(range(60)), *new]))
    monkeypatch.setenv("MAXRR_NETWORK", maker)
    shell("fit", visits_csv, "--core", "hash:0.5", "--epochs", "2", "--out", "ws")
    shell("add", "ws", "new.csv", "--yes")
    assert shell("replay", "ws", 1, "--json").json["outcome"] == "identical"
    shell("bundle", "ws", "model.bundle")
    named = facts_in("model.bundle").network
    assert (named.maker, named.arguments[1]) == (maker, 2)
    brought = ("--source", visits_csv, "--source", "new.csv")
    found = shell("replay", "model.bundle", receipt_file(tmp_path / "ws", 1), *brought, "--json").json
    assert found["outcome"] == "identical"
    core = kinds(tmp_path / "ws")["core"][0]
    shell("unlearn", "ws", "--ids", core, "--policy", "retrain", "--yes")
    assert shell("replay", "ws", 2, "--json").json["outcome"] == "identical"
    shell("refit", "ws")
    with Workspace.open("ws", network=NamedNetwork(maker), read_only=True) as workspace:
        model = workspace.model
        records = load("whole.csv", label="state", id="visit", subject="person", whole=True)[0]
        held = model._fitted.records
        assert clone(model).fit(records.select(np.sort(held.ids[held.alive]))).model_hash_ == model.model_hash_


@pytest.mark.usefixtures("here")
def test_added_columns_may_be_in_another_order(shell: Shell, visits: Path, visits_csv: Path, tmp_path: Path) -> None:
    tuesday = tmp_path / "tuesday.csv"
    swapped = [",".join([*cells[:3], cells[4], cells[3]]) for line in [HEADER, *lines_of(range(60, 72))]
               if (cells := line.split(","))]  # fmt: skip
    tuesday.write_text("\n".join(swapped))
    shell("add", visits, tuesday, "--yes")
    shell("unlearn", visits, "--ids", "v60", "--yes")
    shell("bundle", visits, tmp_path / "bundle")
    brought = ("--source", visits_csv, "--source", tuesday)
    for how in ((visits, 2), (tmp_path / "bundle", receipt_file(visits, 2), *brought)):
        assert shell("replay", *how, "--json").json["outcome"] == "identical"


def test_a_refit_takes_in_what_waited_and_leaves_out_what_was_forgotten(
    shell: Shell, visits: Path, monday: Path, tmp_path: Path, visits_csv: Path
) -> None:
    shell("add", visits, monday, "--yes")
    gone = kinds(visits)["core"][:2]
    shell("unlearn", visits, "--ids", ",".join([*gone, "v60"]), "--policy", "retrain", "--yes")
    fitted = shell("refit", visits, "--json").json
    assert (fitted["waiting_for_fit"], fitted["requests"]) == (0, 2)
    assert fitted["core"] == fitted["records"]
    assert fitted["conditions"] == []
    # A fit from scratch of just these gives the same.
    left = {*kinds(visits)["core"]}
    assert not left & {*gone, "v60"}
    everyone = visits_csv.read_text().splitlines()[1:] + lines_of(range(60, 72))
    (tmp_path / "left.csv").write_text("\n".join([HEADER, *(line for line in everyone if line.split(",")[0] in left)]))
    with Workspace.open(visits) as workspace:
        records, _ = load(tmp_path / "left.csv", label="state", id="visit", subject="person", whole=True)
        model = workspace.model
        assert model.content_hash_ == records.content_hash()
        assert clone(model).fit(records).model_hash_ == model.model_hash_
    # It goes on from there: the next addition is refused what was forgotten.
    shell("refit", visits)
    (tmp_path / "back.csv").write_text("\n".join([HEADER, *lines_of(range(60, 61))]))
    assert shell("add", visits, tmp_path / "back.csv", "--yes", code=3).error == "already-forgotten"


@pytest.mark.usefixtures("here")
def test_a_new_class_is_refused(shell: Shell, visits: Path, tmp_path: Path) -> None:
    path = tmp_path / "dead.csv"
    path.write_text("\n".join([HEADER, *lines_of(range(80, 86), "dead")]))
    assert shell("add", visits, path, "--yes", code=1).error == "unknown-class"
    assert shell("status", visits, "--json").json["classes"] == ["ill", "well"]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["visit,person,state,age", "v90,p1,ill,2"], "columns"),
        ([HEADER], "no records"),
        (["visit,state,age,weight", "v90,ill,1,2"], "person"),
    ],
)
def test_what_does_not_fit(shell: Shell, visits: Path, tmp_path: Path, lines: list[str], named: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(lines))
    before = model_of(visits)
    assert named in shell("add", visits, path, "--yes", code=1).err
    assert model_of(visits) == before


def test_somebody_forgotten_is_known_and_on_the_receipt(shell: Shell, visits: Path) -> None:
    with Workspace.open(visits, read_only=True) as workspace:
        fitted = workspace.model._fitted
        person = str(fitted.records.subjects[0])
    shell("unlearn", visits, "--subject", person, "--policy", "keep-extractor", "--yes")
    receipt = receipt_file(visits, 1)
    assert person not in receipt.read_text()
    again = shell("plan", visits, "--subject", person, "--json").json
    assert (again["already_forgotten"], again["action"]) == (1, "nothing")
    assert "receipt 1" in again["reason"]
    assert shell("plan", visits, "--subject", "p999", code=3).error == "unknown-subject"
    shell("verify", receipt, "--against", visits)
    assert "1 person" in shell("receipt", "show", receipt).out
    assert "1 person" in shell("status", visits).out


@pytest.mark.usefixtures("here")
def test_sources_that_moved_are_read_as_each_of_them_was(
    shell: Shell, visits: Path, visits_csv: Path, tmp_path: Path
) -> None:
    """Not all of them as the first."""
    friday, folder = tmp_path / "friday.csv", tmp_path / "elsewhere"
    friday.write_text("\n".join(["visit,person,diagnosis,age,weight", *lines_of(range(60, 72))]))
    shell("data", "prepare", friday, "--label", "diagnosis", "--id", "visit", "--subject", "person")
    shell("add", visits, friday, "--yes")
    folder.mkdir()
    friday.rename(folder / "moved.csv")
    both = ("--source", visits_csv, "--source", folder / "moved.csv")
    assert shell("replay", visits, 1, *both, "--json").json["outcome"] == "identical"
