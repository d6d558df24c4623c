"""`maxrr catch-up`: a copy from a backup, through the command line."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from maxrr.evidence import make_key
from tests.cli.shell import Shell, kinds, receipt_file

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.workspace.OlderCopyWarning")


def test_a_restored_copy_forgets_what_was_forgotten_since(shell: Shell, digits: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(digits, tmp_path / "backup"))
    gone = kinds(digits)["free"][:2]
    shell("unlearn", digits, "--ids", ",".join(map(str, gone)), "--yes")
    ended = shell("catch-up", backup, "--from", digits)
    assert [place in ended.out for place in (str(backup), str(digits))] == [True, True]
    assert shell("status", backup, "--json").json["requests"] == 2
    assert not set(gone) & {id_ for ids in kinds(backup).values() for id_ in ids}
    assert shell("catch-up", backup, "--from", digits, code=1).error == "workspace"


def test_what_to_say_about_core_records(shell: Shell, digits: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(digits, tmp_path / "backup"))
    shell("unlearn", digits, "--ids", kinds(digits)["core"][0], "--policy", "keep-extractor", "--yes")
    words = " ".join(shell("catch-up", backup, "--from", digits, code=3).err.split())
    assert "--policy retrain" in words.split("exact-retrain")[0]
    assert "core_policy" not in words
    shell("catch-up", backup, "--from", digits, "--policy", "keep-extractor", "--json")
    assert shell("catch-up", backup, "--from", tmp_path / "nowhere", code=1).error == "workspace"


@pytest.fixture
def restored(shell: Shell, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backup that signs, put back after two requests of which it knows the first. The newer copy is beside it."""
    make_key(tmp_path / "key.pem")
    monkeypatch.setenv("MAXRR_SIGNING_KEY", (tmp_path / "key.pem").read_text())
    free = kinds(digits)["free"]
    shell("unlearn", digits, "--ids", free[0], "--yes")
    shell("receipt", "for", digits, 1, "--id", free[0], "--out", tmp_path / "before.html")
    shutil.copytree(digits, tmp_path / "backup")
    shell("unlearn", digits, "--ids", free[1], "--yes")
    shutil.copy(digits / "log" / "checkpoint", tmp_path / "kept")
    digits.rename(tmp_path / "newer")
    return Path(shutil.copytree(tmp_path / "backup", digits))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_command_that_would_go_on_refuses(shell: Shell, restored: Path, tmp_path: Path) -> None:
    core, one = kinds(restored)["core"][0], kinds(restored)["free"][0]
    np.save(tmp_path / "new.npy", np.zeros((1, 8, 8), dtype=np.float32))
    before, beside = contents(restored), set(tmp_path.iterdir())
    for command in (
        ("unlearn", restored, "--ids", one, "--yes"),
        ("unlearn", restored, "--ids", core, "--policy", "retrain", "--yes"),
        ("replace", restored, one, tmp_path / "new.npy", "--yes"),
        ("add", restored, "digits", "--yes"),
        ("refit", restored),
        ("fit", "digits", "--out", restored, "--core", "hash:0.4"),
        ("export", restored, tmp_path / "model.onnx"),
        ("export", restored, tmp_path / "model"),
        ("revocations", restored, "--out", tmp_path / "revoked.json"),
        ("bundle", restored, f"{tmp_path}/bundle/"),
    ):
        assert shell(*command, code=3).error == "older-copy", command
    shell("plan", restored, "--ids", one)
    shell("status", restored)
    shell("receipt", "show", restored, 1)
    assert contents(restored) == before
    assert set(tmp_path.iterdir()) == beside


@pytest.mark.usefixtures("here")
def test_a_loss_is_accepted_and_stands_on_what_follows(shell: Shell, restored: Path, tmp_path: Path) -> None:
    operator = ("--key", tmp_path / "key.pub")
    shell("catch-up", restored, code=2)
    reason = "the disk is broken"
    shell("catch-up", restored, "--gone", reason)
    one = kinds(restored)["free"][0]
    shell("unlearn", restored, "--ids", one, "--yes")
    receipt = shell("receipt", "show", receipt_file(restored, 3), "--json").json
    assert [(loss["reason"], loss["entries"], loss["kept"]) for loss in receipt["losses"]] == [(reason, 2, 1)]
    for page in ("after.html", "after.json"):
        shell("receipt", "for", restored, 3, "--id", one, "--out", tmp_path / page)
        assert reason in " ".join(shell("verify", tmp_path / page, *operator).out.split())
    assert reason in (tmp_path / "after.html").read_text()
    words = shell("receipt", "show", receipt_file(restored, 3)).out
    assert reason in " ".join(words.split())
    assert shell("verify", restored, *operator, "--json").json["entries"] == 3
    shell("verify", tmp_path / "before.html", *operator)
    shell("verify", tmp_path / "before.html", "--against", restored, *operator, code=4)
    (aside,) = restored.glob("log-before-*")
    shell("verify", tmp_path / "before.html", "--against", aside, *operator)
    shell("verify", restored, "--against", tmp_path / "kept", *operator, code=4)
    shell("replay", restored, 3)
    shell("unlearn", tmp_path / "newer", "--ids", one, "--yes", code=3)
    shell("catch-up", tmp_path / "newer", "--from", restored, code=1)
