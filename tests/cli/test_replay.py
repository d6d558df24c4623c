"""`maxrr replay`: the outcome, what it means, and receipts that nothing can be replayed from."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from maxrr.data import load
from maxrr.unlearning import Bundle, MaxRR, Replay
from maxrr.workspace import Workspace
from tests.cli.shell import Shell, copy_and_unlearn, kinds, receipt_file
from tests.unlearning.problems import table


@pytest.fixture(scope="module")
def answered_once(fitted_digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one request carried out, which nobody may change."""
    request = ("--ids", kinds(fitted_digits)["influential"][0])
    return copy_and_unlearn(fitted_digits, tmp_path_factory.mktemp("answered"), request)


@pytest.fixture
def answered(answered_once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(answered_once, tmp_path / "ws"))


def replayed(outcome: str, comparison: str = "identical") -> Replay:
    return Replay(outcome, "extractor and heads", comparison, "", 0.0, [], "", ["when it was"], 1.0)


@pytest.mark.usefixtures("here")
def test_a_replay_of_the_present_state(shell: Shell, features: Path) -> None:
    for kind in ("influential", "free"):
        shell("unlearn", features, "--ids", kinds(features)[kind][0], "--yes")
    source = ("--source", features.parent / "x.npy")
    shown = shell("replay", features, receipt_file(features, 1), *source, code=5).out
    assert "superseded" in shown


@pytest.mark.parametrize(
    ("result", "code"), [
        ("identical", 0), ("within 3.2e-12", 5), ("identical in part", 5), ("not comparable here", 5), ("different", 4),
        ("the receipt is false", 4),
    ]
)  # fmt: skip
def test_exit_codes(
    shell: Shell, answered: Path, monkeypatch: pytest.MonkeyPatch, result: str, code: int
) -> None:  # fmt: skip
    monkeypatch.setattr("maxrr.unlearning.replaying.replay", lambda *_: replayed(result, result))
    shown = shell("replay", answered, "1", code=code).out
    assert shown.splitlines()[1].split(maxsplit=1) == ["outcome", result]
    assert shown.endswith(f"{replayed(result, result)}\n")
    assert repr(replayed(result, result)) == f"<Replay: {result}>"
    assert shell("replay", answered, "1", "--json", code=code).json["holds"] is (code == 0)


@pytest.mark.usefixtures("here")
def test_whoever_holds_the_data_needs_no_workspace(shell: Shell, answered: Path, tmp_path: Path) -> None:
    bundle, receipt = tmp_path / "model.bundle", receipt_file(answered, 1)
    shell("bundle", answered, bundle)
    assert bundle.stat().st_mode & 0o077 == 0
    found = shell("replay", bundle, receipt, "--source", "digits", "--json").json
    assert (found["outcome"], found["holds"]) == ("identical", True)
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(json.loads(receipt.read_text()) | {"C": 3.0}))
    shell("replay", bundle, forged, "--source", "digits", code=4)


@pytest.mark.usefixtures("here")
def test_a_bundle_of_all_records_takes_those_that_the_source_sets_aside(shell: Shell, tmp_path: Path) -> None:
    records = table()
    source = tmp_path / "all.npz"
    np.savez(source, X=records.inputs, y=records.labels, ids=records.ids)
    everything, _ = load(source, whole=True)
    with Workspace.create(tmp_path / "ws", MaxRR.on_features(), everything) as workspace:
        workspace.model.unlearn(everything.ids[:2])
    shell("bundle", tmp_path / "ws", tmp_path / "b")
    words = ("replay", tmp_path / "b", receipt_file(tmp_path / "ws", 1), "--source", source, "--json")
    assert shell(*words).json["outcome"] == "identical"


def test_records_that_the_model_does_not_know_refute_a_receipt(shell: Shell, answered: Path, tmp_path: Path) -> None:
    """As where somebody has left records out, and no tombstone says that they were forgotten."""
    bundle, receipt = tmp_path / "model.bundle", receipt_file(answered, 1)
    shell("bundle", answered, bundle)
    replace(Bundle.load(bundle), tombstones=frozenset()).save(bundle)
    ended = shell("replay", bundle, receipt, "--source", "digits", code=4)
    assert "digits: " in ended.err
    assert ended.error == "refuted"


def test_a_bundle_that_is_not_there_is_named(shell: Shell, answered: Path, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.bundle"
    ended = shell("replay", missing, receipt_file(answered, 1), "--source", "digits", code=1)
    assert str(missing) in ended.err


def test_a_folder_that_is_not_there(shell: Shell, tmp_path: Path) -> None:
    assert shell("replay", tmp_path / "nowhere", 1, code=1).error == "not-a-workspace"


def test_a_bundle_has_no_records(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "model.bundle").touch()
    assert "--source" in shell("replay", tmp_path / "model.bundle", "receipt.json", code=2).err
    for words in ((), ("ws",)):
        assert "Usage" in shell("replay", *words, code=2).err


def test_only_receipts_that_were_handed_out(shell: Shell, answered: Path, tmp_path: Path) -> None:
    fields = json.loads((receipt_file(answered, 1)).read_text(encoding="utf-8"))
    other = tmp_path / "other.json"
    for change in ({"model_after": "0" * 64}, {"number": 7}):
        other.write_text(json.dumps(fields | change))
        assert shell("replay", answered, other, code=4).error == "other-workspace"
    other.write_text("{}")
    assert shell("replay", answered, other, code=1).error == "unreadable-file"
    assert shell("replay", answered, 7, code=3).error == "unknown-receipt"
    assert shell("replay", answered, "nowhere.json", code=1).error == "file-missing"


def test_without_the_raw_records(shell: Shell, answered: Path) -> None:
    assert "nowhere.npz" in shell("replay", answered, 1, "--source", "nowhere.npz", code=1).err


def test_a_bundle_is_written_over_nothing_but_a_bundle(shell: Shell, answered: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("precious")
    assert shell("bundle", answered, table, code=1).error == "file-exists"
    assert table.read_text() == "precious"
    assert shell("bundle", answered, answered / "bundle", code=1).error == "folder-taken"
    assert shell("export", answered, answered / "model.onnx", code=1).error == "folder-taken"
    shell("status", answered)
    for _ in range(2):
        shell("bundle", answered, tmp_path / "b")
