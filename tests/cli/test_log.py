"""`maxrr verify` of a log: checked through the command line, by somebody who has the public key."""

import shutil
from pathlib import Path

import pytest

from maxrr.evidence import Checkpoint, PublicKeys, SigningKey, make_key
from maxrr.evidence.log import LogWriter
from tests.cli.shell import Shell
from tests.evidence import vectors
from tests.evidence.logs import contents, flipped, log_of, numbers
from tests.workspace.outside import created

ORIGIN = "example.com/maxrr"


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "key.pem")


@pytest.fixture
def operator(key: SigningKey, tmp_path: Path) -> tuple[str, Path]:
    """The option with the operator's public key."""
    return "--key", tmp_path / "key.pub"


@pytest.fixture
def log(key: SigningKey, tmp_path: Path) -> Path:
    log_of(tmp_path / "log", 200, 300, key=key)
    return tmp_path / "log"


Operator = tuple[str, Path]


def test_a_log_that_holds(shell: Shell, log: Path, key: SigningKey, operator: Operator) -> None:
    shown = shell("verify", log, *operator).out
    assert [word for word in (ORIGIN, "300", key.public.id, "  yes") if word not in shown] == []
    said = shell("verify", log, *operator, "--json").json
    assert (said["holds"], said["entries"], said["origin"], said["key"]) == (True, 300, ORIGIN, key.public.id)
    assert shell("verify", log / "checkpoint", *operator, "--json").json["entries"] == 300


@pytest.mark.parametrize("signer", vectors.TWINS, ids=["first", "second"])
def test_the_signer_is_told_from_one_with_the_same_four_bytes(shell: Shell, tmp_path: Path, signer: SigningKey) -> None:
    PublicKeys(tuple(key.public for key in vectors.TWINS)).save(tmp_path / "twins.pub")
    (tmp_path / "checkpoint").write_text(vectors.checkpoint(3, bytes(32), signer), encoding="utf-8")
    said = shell("verify", tmp_path / "checkpoint", "--key", tmp_path / "twins.pub", "--json").json
    assert said["key"] == signer.public.id


def test_the_first_thing_wrong_is_named(shell: Shell, log: Path, operator: Operator) -> None:
    for name, content in contents(log).items():
        if name == "checkpoint" or ".p/200" in name:
            continue
        (log / name).write_bytes(flipped(content, 8 * len(content) - 3))
        (check,) = shell("verify", log, *operator, "--json", code=4).json["checks"]
        assert "entry" in check["wrong"] or name in check["wrong"]
        assert check["wrong"] in " ".join(shell("verify", log, *operator, code=4).out.split())
        (log / name).write_bytes(content)
    shell("verify", log, *operator)


def test_another_key_vouches_for_nothing(shell: Shell, log: Path, operator: Operator, tmp_path: Path) -> None:
    make_key(tmp_path / "other.pem")
    other = ("--key", tmp_path / "other.pub")
    for place in (log, log / "checkpoint"):
        assert shell("verify", place, *other, "--json", code=4).json["checks"][0]["held"] is False
    assert shell("verify", log, *other, *operator).code == 0
    assert "private key" in shell("verify", log, "--key", tmp_path / "key.pem", code=1).err


def test_what_became_of_a_log(shell: Shell, log: Path, key: SigningKey, operator: Operator, tmp_path: Path) -> None:
    kept, backup = tmp_path / "kept", Path(shutil.copytree(log, tmp_path / "backup"))
    shutil.copy(log / "checkpoint", kept)
    writer = LogWriter.open(log, ORIGIN, key)
    writer.append(numbers(300, 600))

    def compared(old: Path, new: Path, code: int = 0) -> str:
        said = shell("verify", new, "--against", old, *operator, "--json", code=code).json
        assert said["holds"] is (code == 0)
        assert (said["checks"][-1]["wrong"] == "") is (code == 0)
        return str(said["outcome"])

    assert compared(kept, backup) == compared(log, log) == "same"
    assert compared(kept, log) == compared(backup, log) == "extends"
    assert compared(log, kept, 4) == compared(log, backup, 4) == "older"
    assert compared(kept, log / "checkpoint", 5) == "not known"
    LogWriter.open(backup, ORIGIN, key).append([b"another".ljust(32)])
    assert compared(backup, log, 4) == compared(log, backup, 4) == "split view"
    forged = Checkpoint.sign(ORIGIN, 600, bytes(32), key).to_bytes()
    (tmp_path / "forged").write_bytes(forged)
    assert compared(tmp_path / "forged", log, 4) == compared(log / "checkpoint", tmp_path / "forged", 4) == "split view"
    (tmp_path / "two").write_bytes(Checkpoint.sign("example.com/two", 3, bytes(32), key).to_bytes())
    assert "two logs" in shell("verify", tmp_path / "two", "--against", kept, *operator, code=4).out


def test_no_log(shell: Shell, log: Path, operator: Operator, tmp_path: Path, fitted_digits: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert shell("verify", tmp_path / "empty", *operator, code=1).error == "no-log"
    assert shell("verify", fitted_digits, *operator, code=1).error == "not-signed"
    shell("verify", tmp_path / "nothing", *operator, code=1)
    assert "--key" in shell("verify", log, code=2).err


def test_a_workspace_is_not_taken_for_a_log(shell: Shell, log: Path, operator: Operator, tmp_path: Path) -> None:
    """Where its log was moved into its place, receipts would not be looked at."""
    created(tmp_path / "ws", SigningKey.generate())
    for pattern in ("history-*", "heads-*"):
        shutil.copy(next((tmp_path / "ws").glob(pattern)), log)
    assert shell("verify", log, *operator, code=4).error == "log-missing"
