"""`maxrr key`: made once, shown without anything private, succeeded by another."""

from pathlib import Path

import pytest

from maxrr.evidence import PublicKeys, SigningKey
from maxrr.evidence.public_keys import default_place
from tests.cli.shell import Shell


@pytest.fixture(autouse=True)
def no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


def secrets_in(folder: Path) -> list[str]:
    """The secret part of each private key below a folder."""
    return [path.read_text().splitlines()[1] for path in folder.rglob("*.pem")]


def test_from_the_first_key_to_the_third(shell: Shell, tmp_path: Path) -> None:
    said = [shell("key", "new")]
    first = SigningKey.load(default_place()).public
    said.append(shell("key", "show", "--out", tmp_path / "operator.pub"))
    assert PublicKeys.load(tmp_path / "operator.pub").keys == (first,)
    said += [
        shell("key", "rotate"),
        shell("key", "rotate"),
        shell("key", "show"),
        shell("key", "show", "--json"),
    ]
    third = SigningKey.load(default_place()).public
    assert said[5].json["id"] == third.id
    assert third.id in said[3].out
    assert said[5].json["former"][-1] == first.id
    assert third.pem.decode() in said[4].out
    said.append(shell("key", "show", "--out", tmp_path / "newer.pub"))
    assert (tmp_path / "newer.pub").read_bytes() == default_place().with_suffix(".pub").read_bytes()
    secrets = secrets_in(tmp_path)
    assert len(secrets) == 1
    assert not any(secret in each.out + each.err for secret in secrets for each in said)
    assert not any(secret in path.read_text() for secret in secrets for path in tmp_path.rglob("*.pub"))


def test_whether_a_new_key_follows(shell: Shell, tmp_path: Path) -> None:
    old, new = tmp_path / "old.pub", tmp_path / "new.pub"
    shell("key", "new")
    shell("key", "show", "--out", old)
    shell("verify", old, "--against", old)
    shell("key", "rotate")
    shell("key", "show", "--out", new)
    shell("verify", new, "--against", old)
    assert shell("verify", new, "--against", old, "--json").json["holds"] is True
    shell("verify", old, "--against", new, code=4)
    shell("key", "new", tmp_path / "other.pem")
    assert shell("verify", tmp_path / "other.pub", "--against", old, "--json", code=4).json["holds"] is False
    assert "private key" in shell("verify", new, "--against", tmp_path / "other.pem", code=1).err
    assert "--against" in shell("verify", new, code=2).err


def test_what_is_there_stays(shell: Shell, tmp_path: Path) -> None:
    shell("key", "new", tmp_path / "key.pem")
    before = (tmp_path / "key.pem").read_bytes()
    assert shell("key", "new", tmp_path / "key.pem", code=1).error == "file-exists"
    shell("key", "show", tmp_path / "key.pem", "--out", tmp_path / "key.pem", code=1)
    (tmp_path / "letter").write_text("Dear Anna")
    shell("key", "show", tmp_path / "key.pem", "--out", tmp_path / "letter", code=1)
    assert (tmp_path / "key.pem").read_bytes() == before
    assert (tmp_path / "letter").read_text() == "Dear Anna"


def test_without_a_key(shell: Shell) -> None:
    assert shell("key", "show", code=1).error == "key-missing"
    assert shell("key", "rotate", code=1).error == "key-missing"


def test_from_the_environment(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("key", "new", tmp_path / "key.pem")
    made = shell("key", "show", tmp_path / "key.pem", "--json").json
    monkeypatch.setenv("MAXRR_SIGNING_KEY", (tmp_path / "key.pem").read_text())
    assert shell("key", "show", "--json").json["id"] == made["id"]
    assert shell("key", "rotate", code=2).error == "usage"
    assert made["id"] not in shell("key", "rotate", tmp_path / "key.pem").out
    text = (tmp_path / "key.pem").read_text()
    monkeypatch.setenv("MAXRR_SIGNING_KEY", text.replace("MC4C", "MC4D"))
    assert text.splitlines()[1][8:] not in shell("key", "show", code=1).err


def test_a_key_that_others_can_read(shell: Shell, tmp_path: Path) -> None:
    shell("key", "new", tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o644)
    for command in ("show", "rotate"):
        assert "chmod 600" in shell("key", command, tmp_path / "key.pem", code=1).err


def test_no_key_is_put_into_a_workspace(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "history-0123456789abcdef.bin").write_bytes(b"maxrr history 1\n")
    assert shell("key", "new", tmp_path / "ws" / "keys" / "key.pem", code=1).error == "folder-taken"
    assert not (tmp_path / "ws" / "keys").exists()


@pytest.mark.filterwarnings("default")
def test_what_a_kill_left_is_finished_and_told(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    shell("key", "new", path)
    made = shell("key", "show", path, "--json").json["id"]
    path.with_suffix(".pub").unlink()
    again = shell("key", "new", path)
    assert made in again.out
    assert "Warning" in again.err
    SigningKey.generate().save(tmp_path / "key.pem.next")
    assert "Warning" in shell("key", "rotate", path).err
    assert "Warning" not in shell("key", "rotate", path).err
    (tmp_path / "link.pem").symlink_to(path)
    shell("key", "rotate", tmp_path / "link.pem", code=1)


def test_a_first_key_on_an_empty_machine(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    shell("key", "new")
    assert default_place().parent.parent == tmp_path / "home" / "config"
    assert default_place().exists()
