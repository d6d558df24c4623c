"""`maxrr prove`: the verdict, what it means, and receipts that nothing can be proved from."""

import json
from pathlib import Path

import pytest
from tests.cli.shell import Shell, kinds

from maxrr.unlearning import Verdict
from maxrr.workspace import Workspace


@pytest.fixture
def answered(shell: Shell, digits: Path) -> Path:
    """A workspace with one request carried out."""
    shell("unlearn", digits, "--ids", kinds(digits)["influential"][0], "--yes")
    return digits


def verdict(said: str, result: str = "identical") -> Verdict:
    return Verdict(said, "extractor and head", result, "", 0.0, [], "", ["when it was"], 1.0)


@pytest.mark.usefixtures("here")
def test_a_proof_of_the_present_state(shell: Shell, answered: Path) -> None:
    shell("unlearn", answered, "--ids", kinds(answered)["free"][0], "--yes")
    shown = shell("prove", answered, answered / "receipts" / "000001.json", code=5).out
    assert "superseded" in shown
    assert "its present state" in shown
    assert "extractor and head: identical" in shown


@pytest.mark.parametrize(
    ("result", "code"), [("identical", 0), ("within 3.2e-12", 5), ("identical in part", 5), ("different", 4)]
)  # fmt: skip
def test_exit_codes(
    shell: Shell, answered: Path, monkeypatch: pytest.MonkeyPatch, result: str, code: int
) -> None:  # fmt: skip
    monkeypatch.setattr(Workspace, "prove", lambda *_: verdict(result, result))
    assert f"verdict       {result}" in shell("prove", answered, "1", code=code).out
    assert shell("prove", answered, "1", "--json", code=code).json["holds"] is (code == 0)
    monkeypatch.setattr(Workspace, "prove", lambda *_: verdict("not comparable here", result))
    assert "the head was proved, from the stored features" in shell("prove", answered, "1", code=5).out
    monkeypatch.setattr(Workspace, "prove", lambda *_: verdict("the receipt is false", result))
    assert "something that it says is not so" in shell("prove", answered, "1", code=4).out


def test_whoever_holds_the_data_needs_no_workspace(shell: Shell, answered: Path, tmp_path: Path) -> None:
    bundle, receipt = tmp_path / "model.bundle", answered / "receipts" / "000001.json"
    assert "Keep it from the public" in shell("bundle", answered, bundle).out
    assert bundle.stat().st_mode & 0o077 == 0
    found = shell("prove", bundle, receipt, "--source", "digits", "--json").json
    assert (found["verdict"], found["holds"]) == ("identical", True)
    assert "--source" in shell("prove", bundle, receipt, code=2).err
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(json.loads(receipt.read_text()) | {"C": 3.0}))
    shown = shell("prove", bundle, forged, "--source", "digits", code=4).out
    assert "something in it was changed" in shown


def test_only_receipts_that_were_handed_out(shell: Shell, answered: Path, tmp_path: Path) -> None:
    fields = json.loads((answered / "receipts" / "000001.json").read_text(encoding="utf-8"))
    other = tmp_path / "other.json"
    for change in ({"model_after": "0" * 64}, {"number": 7}):
        other.write_text(json.dumps(fields | change))
        assert "not a receipt that" in shell("prove", answered, other, code=4).err
    other.write_text("{}")
    assert "not a receipt" in shell("prove", answered, other, code=1).err
    assert "no receipt 7: it has 1" in shell("prove", answered, 7, code=1).err
    assert "nowhere.json" in shell("prove", answered, "nowhere.json", code=1).err


def test_without_the_raw_records(shell: Shell, answered: Path) -> None:
    assert "nowhere.npz" in shell("prove", answered, 1, "--source", "nowhere.npz", code=1).err


def test_a_bundle_is_written_over_nothing_but_a_bundle(shell: Shell, answered: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("precious")
    assert "is not a bundle" in shell("bundle", answered, table, code=1).err
    assert table.read_text() == "precious"
    assert "in the workspace" in shell("bundle", answered, answered / "workspace.json", code=1).err
    assert "in the workspace" in shell("export", answered, answered / "model.onnx", code=1).err
    shell("status", answered)
    for _ in range(2):
        shell("bundle", answered, tmp_path / "b")
