"""`maxrr status`: what is there, for people and for programs."""

from pathlib import Path

import pytest

from maxrr.data import load
from maxrr.workspace import Workspace, overview
from tests.cli.shell import Shell, kinds
from tests.workspace.problems import cases


@pytest.fixture
def answered(shell: Shell, digits: Path) -> Path:
    """A workspace with two requests carried out, the second approximately."""
    of = kinds(digits)
    shell("unlearn", digits, "--ids", of["influential"][0], "--yes")
    shell("unlearn", digits, "--ids", f"{of['free'][0]},{of['core'][0]}", "--policy", "keep-extractor", "--yes")
    return digits


def test_status(shell: Shell, answered: Path) -> None:
    found = shell("status", answered, "--json").json
    assert (found["records"], found["forgotten"], found["requests"]) == (1417, 3, 2)
    assert [(entry["number"], entry["records"], entry["guarantee"]) for entry in found["receipts"]] == [
        (1, 1, "exact-refit"),
        (2, 2, "approximate-refit"),
    ]
    shown = shell("status", answered).out
    assert "2 requests" in shown
    assert "An audit is" in shown
    status = overview(answered).status
    assert len(repr(status)) < 200
    said = str(status).splitlines()
    assert [line for line in said[1:-2] if line not in shown.splitlines()] == []  # the first names the folder
    assert "audit" in status.facts["due"]
    assert status.people is None
    assert [line.split()[-1] for line in shown.splitlines() if line.lstrip().startswith(("1 ", "2 "))] == [
        "exact-refit",
        "approximate-refit",
    ]


def test_the_model_as_it_is_is_scored(shell: Shell, answered: Path) -> None:
    found = shell("status", answered, "--scores", "--json").json
    _, test = load("digits")
    with Workspace.open(answered, read_only=True) as workspace:
        assert found["accuracy"] == workspace.model.score(test)
        assert found["recall"] == workspace.model.recall(test)
    assert found["test_records"] == len(test)
    assert "accuracy" not in shell("status", answered, "--json").json


def test_a_damaged_file_is_named(shell: Shell, answered: Path) -> None:
    (path,) = answered.glob("heads-*.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    ended = shell("status", answered, code=1)
    assert path.name in ended.err
    assert len(ended.err.splitlines()) == 1


def test_ids_by_kind(shell: Shell, answered: Path, tmp_path: Path) -> None:
    counts = shell("status", answered, "--json").json
    for kind, ids in kinds(answered).items():
        found = shell("status", answered, "--list", kind, "--json").json
        assert found == {"kind": kind, "records": counts[kind], "ids": sorted(ids)}
        ended = shell("status", answered, "--list", kind)
        assert ended.out.splitlines() == [str(each) for each in sorted(ids)]
    listed = tmp_path / "free.txt"
    listed.write_text("\n".join(shell("status", answered, "--list", "free").out.splitlines()[:3]))
    assert shell("plan", answered, "--ids-file", listed, "--json").json["guarantee"] == "exact-untouched"


def test_people_are_counted_beside_records(shell: Shell, tmp_path: Path) -> None:
    records, model = cases()["hash"]
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        expected = workspace.status()
    assert expected.people is not None
    assert shell("status", tmp_path / "ws", "--json").json["people"] == expected.people
    lines = [line.split() for line in shell("status", tmp_path / "ws").out.splitlines()]
    for kind, people in expected.people.items():
        (row,) = [line for line in lines if line[:1] == [kind]]
        assert (row[1], row[4]) == (str(getattr(expected, kind)), str(people))
