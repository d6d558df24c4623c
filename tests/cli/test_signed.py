"""Signed receipts, and signed replays and audits of them, through the command line."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from maxrr.evidence import Envelope, PublicKeys, SigningKey, make_key, rotate_key
from maxrr.unlearning.statements import HandedReceipt, replay_statement
from tests.cli.shell import Shell, copy_and_unlearn, kinds, receipt_file
from tests.cli.test_replay import replayed
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


def test_an_envelope_is_shown_as_the_receipt_in_it(
    shell: Shell, signed: Path, plain: Path, key: SigningKey, operator: Operator
) -> None:
    words = shell("receipt", "show", plain).out
    for option, note in ((), ", which --key checks"), (operator, ""):
        shown = shell("receipt", "show", signed, *option).out
        assert [line for line in words.splitlines() if " ".join(line.split()) not in " ".join(shown.split())] == []
        assert f"signed by the key {key.public.id}{note}" in " ".join(shown.split())
    assert "signed by" not in words
    assert shell("receipt", "show", signed, "--json").json == shell("receipt", "show", plain, "--json").json
    assert "it is not signed" in shell("receipt", "show", plain, *operator, code=4).err


def test_whether_a_receipt_is_signed(
    shell: Shell, signed: Path, plain: Path, operator: Operator, tmp_path: Path
) -> None:
    assert "by whom, --key checks" in shell("receipt", "verify", signed).out
    assert shell("receipt", "verify", signed, *operator, "--json").json["holds"] is True
    checks = shell("receipt", "verify", plain, *operator, "--json", code=4).json["checks"]
    assert [check["wrong"] for check in checks] == ["", "it is not signed"]
    make_key(tmp_path / "other.pem")
    other = ("--key", tmp_path / "other.pub")
    assert "not signed by a key that is trusted" in shell("receipt", "verify", signed, *other, code=4).out
    assert "not signed by a key that is trusted" in shell("receipt", "show", signed, *other, code=4).err
    assert shell("receipt", "verify", signed, *other, *operator).code == 0
    changed = signed.read_bytes().replace(b'"sig":"', b'"sig":"AAAA')
    (tmp_path / "changed.json").write_bytes(changed)
    assert "it was changed" in shell("receipt", "verify", tmp_path / "changed.json", *operator, code=4).out


def test_after_a_rotation_a_receipt_stays_valid(shell: Shell, signed: Path, operator: Operator, tmp_path: Path) -> None:
    new = rotate_key(tmp_path / "key.pem")
    shell("key", "show", "--key", tmp_path / "key.pem", "--out", tmp_path / "newer.pub")
    later = tmp_path / "later.json"
    later.write_bytes(HandedReceipt.sign(receipt(2, receipt().digest), new).to_bytes())
    for path in (signed, later):
        assert shell("receipt", "verify", path, "--key", tmp_path / "newer.pub").code == 0
    shell("receipt", "verify", later, *operator, code=4)


@pytest.mark.parametrize("content", [b'{"payload": "", "payloadType": "", "signatures": []}', b'"payloadType"'])
def test_envelopes_without_a_receipt(shell: Shell, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    for command in ("show", "verify"):
        ended = shell("receipt", command, path, code=1)
        assert str(path) in ended.err
        assert len(ended.err.splitlines()) == 1


def test_statements_about_a_receipt(
    shell: Shell, signed: Path, plain: Path, key: SigningKey, operator: Operator, tmp_path: Path
) -> None:
    path, auditor = tmp_path / "replay.json", make_key(tmp_path / "auditor.pem")
    handed = HandedReceipt.from_bytes(signed.read_bytes())
    path.write_bytes(Envelope.sign(replay_statement(replayed("identical"), handed), auditor).to_bytes())
    both = (*operator, "--key", tmp_path / "auditor.pub")
    verify = ("receipt", "verify", signed, "--statement", path)
    assert "replay.json is a signed replay of it, with the result: identical" in shell(*verify, *both).out
    assert "not signed by a key that is trusted" in shell(*verify, *operator, code=4).out
    assert "needs --key" in shell(*verify, code=2).err
    about_another = shell("receipt", "verify", plain, "--statement", path, *both, "--json", code=4).json
    assert about_another["checks"][2]["wrong"] == "it is about another receipt"
    assert "--statement" not in shell("receipt", "verify", signed, "--statement", signed, *both, code=4).err


@pytest.fixture(scope="module")
def answered_once(fitted_digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    request = ("--ids", kinds(fitted_digits)["influential"][0])
    return copy_and_unlearn(fitted_digits, tmp_path_factory.mktemp("answered"), request)


@pytest.fixture
def answered(answered_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(answered_once, tmp_path / "ws"))


Answer = Callable[[str], None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    def answers(result: str) -> None:
        monkeypatch.setattr("maxrr.unlearning.replaying.replay", lambda *_: replayed(result))

    return answers


@pytest.mark.parametrize(("result", "code"), [("identical", 0), ("different", 4), ("superseded", 5)])
def test_a_replay_is_signed_whatever_came_out(
    shell: Shell, answered: Path, answer: Answer, operator: Operator, tmp_path: Path, result: str, code: int
) -> None:
    answer(result)
    file = tmp_path / "replay.json"
    sign = ("--statement", file, "--key", tmp_path / "key.pem")
    for _ in range(2):  # an earlier statement is replaced
        shell("replay", answered, 1, *sign, code=code)
    path = receipt_file(answered, 1)
    handed = HandedReceipt.from_bytes(path.read_bytes())
    statement = Envelope.from_bytes(file.read_bytes()).verify(PublicKeys.load(operator[1]).keys)
    assert statement == replay_statement(replayed(result), handed)
    said = shell("receipt", "verify", path, *operator, "--statement", file, "--json", code=4).json  # nobody signed it
    assert said["checks"][2] == {
        "claim": f"{file} is a signed replay of it, with the result: {result}", "wrong": ""
    }  # fmt: skip


def test_what_must_be_so_before_a_replay(
    shell: Shell, answered: Path, answer: Answer, key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the work was begun")

    monkeypatch.setattr("maxrr.unlearning.replaying.replay", never)
    replay, file = ("replay", answered, 1), tmp_path / "replay.json"
    assert "maxrr key new" in shell(*replay, "--statement", file, code=1).err
    assert "--statement" in shell(*replay, "--key", tmp_path / "key.pem", code=2).err
    with_key = ("--key", tmp_path / "key.pem", "--statement")
    file.write_text("precious")
    assert "not a signed replay" in shell(*replay, *with_key, file, code=1).err
    assert file.read_text() == "precious"
    assert "in a workspace" in shell(*replay, *with_key, answered / "replay.json", code=1).err
