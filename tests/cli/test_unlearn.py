"""`maxrr plan` and `maxrr unlearn`: the same answer before and after, refused whole or done whole."""

import io
import sys
from pathlib import Path
from typing import get_args

import pytest

from maxrr.cli.options import CorePolicy
from maxrr.unlearning import MaxRR, Receipt
from maxrr.unlearning.requests import KEEP, REFUSE, RETRAIN
from maxrr.workspace import Workspace
from tests.cli.shell import Shell, kinds, model_of, receipt_file
from tests.cli.terminal import Terminal
from tests.workspace.problems import history_in, receipts_in


def joined(ids: list[int]) -> str:
    return ",".join(map(str, ids))


@pytest.mark.parametrize(
    ("kind", "policy", "guarantee"),
    [
        ("free", "keep-extractor", "exact-untouched"),
        ("influential", "refuse", "exact-refit"),
        ("core", "keep-extractor", "approximate-refit"),
        ("core", "retrain", "exact-retrain"),
    ],
)
def test_the_plan_is_what_is_done(shell: Shell, digits: Path, kind: str, policy: str, guarantee: str) -> None:
    asked = ("--ids", joined(kinds(digits)[kind][:3]), "--policy", policy)
    before = model_of(digits)
    plan = shell("plan", digits, *asked, "--json").json
    assert model_of(digits) == before
    done = shell("unlearn", digits, *asked, "--yes")
    receipt = Receipt.from_json((receipt_file(digits, 1)).read_text(encoding="utf-8"))
    assert (plan["guarantee"], plan["refusal"]) == (receipt.guarantee, None)
    assert receipt.guarantee == guarantee
    assert (receipt.records_before, receipt.records_after) == (1420, 1417)
    assert (receipt.model_before == receipt.model_after) == (model_of(digits) == before)
    said = [guarantee, receipt.reason, f"maxrr receipt show {digits} 1"]
    assert [words for words in said if words not in done.out] == []
    assert ("An audit is due" in done.out) == (guarantee == "approximate-refit")


def test_ids_may_be_repeated(shell: Shell, digits: Path) -> None:
    one, other = kinds(digits)["influential"][:2]
    shown = shell("plan", digits, "--ids", one, "--ids", other).out
    assert "2 influential" in shown.split("\n")[0]
    assert "exact-refit" in shown
    receipt = shell("unlearn", digits, "--ids", f"{one}, {other}", "--yes", "--json").json
    assert (receipt["influential"], receipt["records_after"]) == (2, 1418)
    assert Receipt.from_json((receipt_file(digits, 1)).read_text(encoding="utf-8")).number == 1


@pytest.mark.parametrize(
    ("ids", "options", "said"),
    [
        (["9"], (), "no record has id 9"),  # which is a test record
        (["core"], (), "--policy retrain is exact-retrain, about "),
        (["all"], (), "Delete the model instead"),
    ],
)
def test_refusals(shell: Shell, digits: Path, ids: list[str], options: tuple[str, ...], said: str) -> None:
    of = kinds(digits)
    named = {"core": of["core"][:1], "all": [*of["core"], *of["influential"], *of["free"]]}.get(ids[0], ids)
    before = model_of(digits)
    assert said in shell("plan", digits, "--ids", joined(named), *options, code=3).out
    assert said in shell("plan", digits, "--ids", joined(named), *options, "--json", code=3).json["refusal"]
    ended = shell("unlearn", digits, "--ids", joined(named), *options, "--yes", code=3)
    assert (said in ended.err, len(ended.err.splitlines()), ended.out) == (True, 1, "")
    assert model_of(digits) == before
    assert not receipts_in(digits)


def test_what_could_be_asked_for_instead_is_told_to_programs(shell: Shell, digits: Path) -> None:
    of = kinds(digits)
    plan = shell("plan", digits, "--ids", joined(of["core"]), "--json", code=3).json
    retrain, keep = plan["alternatives"]
    assert (retrain["guarantee"], keep["guarantee"], keep["refusal"]) == (None, "approximate-refit", None)
    assert retrain["refusal"] in plan["refusal"]
    assert "core_policy" not in str(plan)


def test_subjects(shell: Shell, visits: Path) -> None:
    receipt = shell(
        "unlearn", visits, "--subject", "p1", "--subject", "p2", "--policy", "retrain", "--yes", "--json"
    ).json
    assert receipt["core"] == receipt["records_before"] - receipt["records_after"] > 2
    again = shell("unlearn", visits, "--subject", "p1", "--yes", "--json").json
    assert (again["already_forgotten"], again["tombstones"]) == (1, [])


def test_subjects_where_there_are_none(shell: Shell, fitted_digits: Path) -> None:
    assert shell("plan", fitted_digits, "--subject", "anna", code=1).error == "no-subjects"


def test_what_was_forgotten_before(shell: Shell, digits: Path) -> None:
    asked = ("--ids", joined(kinds(digits)["free"][:2]), "--yes")
    shell("unlearn", digits, *asked)
    assert shell("plan", digits, *asked[:2], "--json").json["already_forgotten"] == 2
    assert shell("unlearn", digits, *asked, "--json").json["already_forgotten"] == 2


def test_the_first_receipt_is_named_again(shell: Shell, visits: Path) -> None:
    for request in (("--ids", "v1"), ("--subject", "p3")):
        options = (*request, "--policy", "retrain", "--yes", "--json")
        first = shell("unlearn", visits, *options).json
        assert "earlier_receipts" not in first
        assert shell("unlearn", visits, *options).json["earlier_receipts"] == [first["number"]]
        assert shell("plan", visits, *request, "--json").json["earlier_receipts"] == [first["number"]]
        with Workspace.open(visits, read_only=True) as workspace:
            trace = workspace.find(id="v1") if "v1" in request else workspace.find(subject="p3")
        assert min(trace.receipts) == first["number"]


def test_a_plan_tells_its_conditions(shell: Shell, tmp_path: Path) -> None:
    lines = [f"{row},{'ab'[row % 2]},{1000 * (row % 5) + row % 2}" for row in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["id,label,income", *lines]))
    shell("data", "prepare", tmp_path / "a.csv")
    shell("fit", tmp_path / "a.csv", "--core", "full", "--epochs", 1, "--out", tmp_path / "ws")
    with Workspace.open(tmp_path / "ws", read_only=True) as workspace:
        plan = workspace.model.plan([1], core_policy="retrain")
        assert workspace.status().conditions == plan.conditions
    (condition,) = plan.conditions
    assert condition in str(plan)
    assert condition in shell("plan", tmp_path / "ws", "--ids", 1, "--policy", "retrain").out
    receipt = shell("unlearn", tmp_path / "ws", "--ids", 1, "--policy", "retrain", "--yes", "--json").json
    assert (receipt["conditions"], receipt["unconditional"]) == ([condition], False)


def test_what_an_earlier_request_left_is_asked_for_by_its_receipt(shell: Shell, visits: Path) -> None:
    shell("unlearn", visits, "--ids", "v1", "--policy", "keep-extractor", "--yes")
    upgrade = ("--receipt", 1, "--policy", "retrain")
    assert shell("plan", visits, *upgrade, "--json").json["guarantee"] == "exact-retrain"
    assert shell("unlearn", visits, *upgrade, "--yes", "--json").json["guarantee"] == "exact-retrain"
    assert shell("unlearn", visits, "--receipt", 7, "--yes", code=3).error == "unknown-receipt"


# Confirmation


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    answer = Terminal(typed)
    monkeypatch.setattr(sys, "stdin", answer)
    monkeypatch.setattr("tests.cli.shell.io.StringIO", Terminal)


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_somebody_is_asked(
    shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:  # fmt: skip
    one = kinds(digits)["free"][0]
    at_a_terminal(monkeypatch, typed)
    ended = shell("unlearn", digits, "--ids", one, code=code)
    assert "[y/N]" in ended.err
    assert "exact-untouched" in ended.out
    assert len(receipts_in(digits)) == (code == 0)


@pytest.mark.parametrize("how", [(), ("--json",)], ids=["people", "programs"])
def test_nobody_can_be_asked(shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]) -> None:
    one = kinds(digits)["free"][0]
    if how:
        at_a_terminal(monkeypatch, "y\n")
    else:
        monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    ended = shell("unlearn", digits, "--ids", one, *how, code=2)
    assert "--yes" in ended.err
    assert ended.json["error"] == "usage" if how else not ended.out
    assert not receipts_in(digits)


def test_what_was_shown_is_what_is_done(shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided again when the plan is carried out is the same."""
    from maxrr.unlearning import model
    from maxrr.unlearning.plans import make_plan
    from maxrr.workspace import workspace

    planned = []
    for module in (model, workspace):
        monkeypatch.setattr(module, "make_plan", lambda *args: planned.append(make_plan(*args)) or planned[-1])
    of = kinds(digits)
    receipt = shell("unlearn", digits, "--ids", of["influential"][0], "--yes", "--json").json
    (plan,) = planned
    assert (receipt["guarantee"], receipt["reason"]) == (plan.guarantee, plan.reason)


def test_a_plan_that_is_stale_is_refused(shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = kinds(digits)["free"][:2]
    with Workspace.open(digits, read_only=True) as reader:
        plan = reader.model.plan([one])
    shell("unlearn", digits, "--ids", other, "--yes")
    monkeypatch.setattr(MaxRR, "plan", lambda *_, **__: plan)
    ended = shell("unlearn", digits, "--ids", one, "--yes", code=3)
    assert ended.error == "stale"
    assert len(receipts_in(digits)) == 1


# What is needed for it


def test_raw_records_are_read_only_where_they_are_needed(shell: Shell, digits: Path) -> None:
    of = kinds(digits)
    nowhere = ("--source", "nowhere.npz", "--yes")
    shell("unlearn", digits, "--ids", of["influential"][0], *nowhere)
    before = model_of(digits)
    missing = shell("unlearn", digits, "--ids", of["core"][0], "--policy", "retrain", *nowhere, code=1)
    assert "nowhere.npz" in missing.err
    assert model_of(digits) == before


def test_other_records_than_those_that_were_fitted(shell: Shell, digits: Path, visits_csv: Path) -> None:
    core, before = kinds(digits)["core"][0], model_of(digits)
    wrong = ("--source", visits_csv, "--yes", "--policy", "retrain")
    assert "Error:" in shell("unlearn", digits, "--ids", core, *wrong, code=1).err
    assert model_of(digits) == before


@pytest.mark.parametrize("command", ["plan", "unlearn", "status"])
def test_a_workspace_in_use_or_missing(
    shell: Shell, digits: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("maxrr.cli.workspaces.WAIT", 0.0)
    asked = {"status": (), "plan": ("--ids", 3), "unlearn": ("--ids", 3, "--yes")}[command]
    with Workspace.open(digits):
        if command == "unlearn":
            assert shell(command, digits, *asked, code=1).error == "in-use"
        else:  # who only reads waits for nobody
            shell(command, digits, *asked)
    assert shell(command, digits / "nowhere", *asked, code=1).error == "not-a-workspace"
    assert shell(command, history_in(digits), *asked, code=1).error == "not-a-workspace"


def test_words_are_those_of_the_library() -> None:
    assert get_args(get_args(CorePolicy)[0]) == (REFUSE, RETRAIN, KEEP)


def test_other_words_are_wrong_usage(shell: Shell, fitted_digits: Path) -> None:
    for word in ("forget", "head"):
        assert "--policy" in shell("plan", fitted_digits, "--ids", 3, "--policy", word, code=2).err
