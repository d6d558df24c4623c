"""Signed receipts, through the command line."""

import shutil
from pathlib import Path

import pytest

from maxrr.evidence import SigningKey, make_key, rotate_key
from maxrr.unlearning.statements import HandedReceipt
from tests.cli.shell import Shell
from tests.plain_receipts import receipt

Operator = tuple[str, Path]


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "key.pem")


@pytest.fixture
def operator(key: SigningKey, tmp_path: Path) -> Operator:
    """The option with the operator's public key."""
    shutil.copy(tmp_path / "key.pub", tmp_path / "operator.pub")
    return "--key", tmp_path / "operator.pub"


@pytest.fixture
def signed(key: SigningKey, tmp_path: Path) -> Path:
    path = tmp_path / "signed.json"
    path.write_bytes(HandedReceipt.sign(receipt(), key).to_bytes())
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.json"
    path.write_text(receipt().to_json(), encoding="utf-8")
    return path


def test_an_envelope_is_shown_as_the_receipt_in_it(shell: Shell, signed: Path, plain: Path, key: SigningKey) -> None:
    words = shell("receipt", "show", plain).out
    shown = shell("receipt", "show", signed).out
    assert [line for line in words.splitlines() if " ".join(line.split()) not in " ".join(shown.split())] == []
    assert key.public.id in shown
    assert "signed by" not in words
    assert shell("receipt", "show", signed, "--json").json == shell("receipt", "show", plain, "--json").json


def test_whether_a_receipt_is_signed(
    shell: Shell, signed: Path, plain: Path, operator: Operator, tmp_path: Path
) -> None:
    assert shell("verify", signed, "--json", code=5).json["holds"] is False
    assert shell("verify", signed, *operator, "--json").json["holds"] is True
    checks = shell("verify", plain, *operator, "--json", code=4).json["checks"]
    assert [check["wrong"] for check in checks] == ["", "it is not signed"]
    make_key(tmp_path / "other.pem")
    other = ("--key", tmp_path / "other.pub")
    shell("verify", signed, *other, code=4)
    assert shell("verify", signed, *other, *operator).code == 0
    changed = signed.read_bytes().replace(b'"sig":"', b'"sig":"AAAA')
    (tmp_path / "changed.json").write_bytes(changed)
    shell("verify", tmp_path / "changed.json", *operator, code=4)


def test_after_a_rotation_a_receipt_stays_valid(shell: Shell, signed: Path, operator: Operator, tmp_path: Path) -> None:
    new = rotate_key(tmp_path / "key.pem")
    shell("key", "show", tmp_path / "key.pem", "--out", tmp_path / "newer.pub")
    later = tmp_path / "later.json"
    later.write_bytes(HandedReceipt.sign(receipt(2, receipt().digest), new).to_bytes())
    for path in (signed, later):
        assert shell("verify", path, "--key", tmp_path / "newer.pub").code == 0
    shell("verify", later, *operator, code=4)


@pytest.mark.parametrize("content", [b'{"payload": "", "payloadType": "", "signatures": []}', b'"payloadType"'])
def test_envelopes_without_a_receipt(shell: Shell, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    for command in (("receipt", "show"), ("verify",)):
        ended = shell(*command, path, code=1)
        assert str(path) in ended.err
        assert len(ended.err.splitlines()) == 1
