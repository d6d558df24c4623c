"""`maxrr verify` and `maxrr receipt for`: what the person gets, written and checked through the command line."""

import base64
import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from maxrr.evidence import Dossier, Envelope, PublicKeys
from maxrr.evidence.dossiers import CLAIMS
from maxrr.evidence.envelopes import NOTHING_TYPE, Statement, Subject
from maxrr.report.dossier import dossier_page
from maxrr.workspace import Workspace
from tests.cli.shell import Shell
from tests.cli.test_starting import ARRAYS, SLOW, imported
from tests.evidence.forgeries import FORGED, KEY, OPERATOR, OTHER, TRUE, UNREADABLE
from tests.evidence.test_dossiers import published


@pytest.fixture
def key(tmp_path: Path) -> Path:
    Path(tmp_path / "operator.pub").write_bytes(KEY.public.pem)
    return tmp_path / "operator.pub"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "alice.html"
    path.write_bytes(dossier_page(Dossier.from_object(TRUE)).encode())
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "alice.json"
    path.write_bytes(Dossier.from_object(TRUE).to_bytes())
    return path


def test_a_true_page_is_verified(shell: Shell, page: Path, plain: Path, key: Path) -> None:
    shown = shell("verify", page, "--key", key).out
    assert len(re.findall(r"  yes$", shown, re.MULTILINE)) == len(CLAIMS) + 1
    assert all(said in shown for said in ("alice", "scan-0, scan-4, scan-8", "2026-03-01T07:45:10+00:00: exact-refit"))
    assert len(re.findall(r"  yes$", shell("verify", plain, "--key", key).out, re.MULTILINE)) == len(CLAIMS)


def test_as_json(shell: Shell, page: Path, key: Path) -> None:
    said = shell("verify", page, "--key", key, "--json").json
    assert said["holds"] is True
    assert [check["wrong"] for check in said["checks"]] == [""] * (len(CLAIMS) + 1)
    assert said["receipt"]["number"] == 3
    other = page.with_name("other.pub")
    Path(other).write_bytes(OTHER.public.pem)
    said = shell("verify", page, "--key", other, "--json", code=4).json
    assert said["holds"] is False
    assert "receipt" not in said


@pytest.mark.parametrize("name", FORGED)
def test_forgeries_end_with_4(shell: Shell, tmp_path: Path, key: Path, name: str) -> None:
    forged, expected = FORGED[name]
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(forged))
    shown = shell("verify", path, "--key", key, code=4).out
    (line,) = [line for line in shown.splitlines() if line.startswith(CLAIMS[expected])]
    assert "  no: " in line
    assert "exact-refit" not in shown


def test_a_page_with_other_words_ends_with_4(shell: Shell, page: Path, key: Path) -> None:
    page.write_text(page.read_text(encoding="utf-8").replace("were forgotten", "were kept"), encoding="utf-8")
    shown = shell("verify", page, "--key", key, code=4).out
    assert shown.count("  no: ") == 1
    assert shown.count("  yes") == len(CLAIMS)


def test_a_page_of_another_version_ends_with_5(shell: Shell, page: Path, key: Path) -> None:
    older = re.sub('(name="maxrr-version" content=")[^"]+', r"\g<1>0.0.9", page.read_text(encoding="utf-8"))
    page.write_text(older, encoding="utf-8")
    shown = shell("verify", page, "--key", key, code=5).out
    assert ("0.0.9" in shown, "exact-refit" in shown) == (True, True)
    other = page.with_name("other.pub")
    Path(other).write_bytes(OTHER.public.pem)
    shell("verify", page, "--key", other, code=4)


@pytest.mark.parametrize(
    "changed",
    [{"version": 99, "more": 1}, {"more": 1}, {"version": None}, {"version": [7]}, {"version": {}}, {"time": None},
     {"heads": None}, {"heads": [1]}, {"heads": "a"}, {"losses": 1}, {"losses": [1]}, {"guarantee": 5}, {"recipe": []}],
    ids=str,
)  # fmt: skip
def test_a_receipt_that_has_no_words_does_not_change_the_answer(
    shell: Shell, tmp_path: Path, page: Path, key: Path, changed: dict[str, Any]
) -> None:
    said = json.loads(base64.b64decode(TRUE["envelope"]["payload"]))
    about = Subject("model", said["predicate"]["model_after"])
    envelope = Envelope.sign(Statement((about,), said["predicateType"], said["predicate"] | changed), KEY)
    dossier = TRUE | {"envelope": json.loads(envelope.to_bytes()), "log": OPERATOR.log(3, 7, envelope)}
    text = Dossier.from_object(dossier).to_bytes()
    (tmp_path / "newer.json").write_bytes(text)
    before, _, rest = page.read_text(encoding="utf-8").partition('id="dossier">')
    whole = before + 'id="dossier">' + text.decode() + rest[rest.index("</script>") :]
    (tmp_path / "same.html").write_text(whole, encoding="utf-8")
    newer = re.sub('(name="maxrr-version" content=")[^"]+', r"\g<1>99.0", whole)
    (tmp_path / "newer.html").write_text(newer, encoding="utf-8")
    for name, code in {"newer.json": 0, "newer.html": 5, "same.html": 4}.items():  # this version made no such page
        shown = shell("verify", tmp_path / name, "--key", key, code=code)
        assert ("has no words for the signed receipt" in shown.out) == (code != 4)
        answer = shell("verify", tmp_path / name, "--key", key, "--json", code=code)
        assert answer.json["holds"] is (code == 0)
        for words in (shown.out, shown.err, answer.out):
            assert not re.search("NoneType|argument|object is|__|unhashable", words)


@pytest.mark.parametrize(
    "content", [b"", b"<p>hello</p>", b"{}", b"\xff\xfe", *map(str.encode, map(json.dumps, UNREADABLE.values()))]
)
def test_what_is_no_dossier_ends_with_1(shell: Shell, tmp_path: Path, key: Path, content: bytes) -> None:
    (tmp_path / "odd").write_bytes(content)
    ended = shell("verify", tmp_path / "odd", "--key", key, code=1)
    assert ended.err.startswith(f"Error: {tmp_path / 'odd'}: ")


@pytest.mark.parametrize("said", [{"subjects": 5}, {"ids": "anna"}, {"subjects": {"a": 1}}])
def test_an_answer_that_was_made_up(shell: Shell, tmp_path: Path, said: dict[str, object]) -> None:
    answer = Statement((Subject("model", "0" * 64),), NOTHING_TYPE, said)
    (tmp_path / "answer.json").write_bytes(answer.to_bytes())
    assert shell("verify", tmp_path / "answer.json", code=1).error == "unreadable-file"


def test_what_is_not_signed_cannot_be_verified(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "model.bundle").write_bytes(b"\x10\0\xff")
    ended = shell("verify", tmp_path / "model.bundle", code=1)
    assert (ended.error, "maxrr replay" in ended.err) == ("unreadable-file", True)


def test_keys(shell: Shell, tmp_path: Path, page: Path, key: Path) -> None:
    shell("verify", page, code=2)
    shell("verify", page, "--key", tmp_path / "none.pub", code=1)
    shell("verify", page, "--key", page, code=1)
    both = PublicKeys((KEY.public,)).succeeded_by(OTHER.public, KEY, "2026-03-01T00:00:00+00:00")
    both.save(tmp_path / "both.pub")
    shell("verify", page, "--key", tmp_path / "both.pub")


def test_the_log_of_today(shell: Shell, tmp_path: Path, plain: Path, key: Path) -> None:
    published(tmp_path / "log", 20)
    published(tmp_path / "rewritten", 20, b" rewritten")
    published(tmp_path / "split", 7, b" rewritten")
    for name, code in {"log": 0, "rewritten": 4, "split": 4}.items():
        said = shell("verify", plain, "--key", key, "--against", tmp_path / name, "--json", code=code).json
        assert {check["name"]: check["held"] for check in said["checks"]}["log"] is (code == 0)


def test_it_starts_without_what_it_does_not_need(page: Path, plain: Path, key: Path) -> None:
    assert imported("verify", page, "--key", key) & (SLOW | ARRAYS) == {"jinja2"}  # to make the page again
    assert imported("verify", plain, "--key", key) & (SLOW | ARRAYS) == set()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a workspace is asked for, which gives the true dossier."""
    calls: list[dict[str, Any]] = []

    def dossier(self: Workspace, number: int, *, subject: Any = None, ids: Any = None) -> dict[str, Any]:
        calls.append({"number": number, "subject": subject, "ids": ids})
        return TRUE

    monkeypatch.setattr(Workspace, "dossier", dossier, raising=False)
    return calls


def test_a_person_gets_a_page(
    shell: Shell, fitted_visits: Path, tmp_path: Path, key: Path, asked: list[dict[str, Any]]
) -> None:  # fmt: skip
    page, plain = tmp_path / "new" / "alice.html", tmp_path / "alice.json"
    shown = shell("receipt", "for", fitted_visits, 12, "--subject", "p4", "--out", page).out
    assert str(page) in shown
    shell("receipt", "for", fitted_visits, 3, "--id", "v1", "--id", "v2", "--out", plain)
    assert asked == [
        {"number": 12, "subject": "p4", "ids": None}, {"number": 3, "subject": None, "ids": ["v1", "v2"]},
    ]  # fmt: skip
    for path in (page, plain):
        shell("verify", path, "--key", key)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shell("receipt", "for", fitted_visits, 12, "--subject", "p4", "--out", page)  # again


@pytest.mark.usefixtures("asked")
def test_what_cannot_be_written(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    who = ("receipt", "for", fitted_visits, 12)
    shell(*who, "--out", tmp_path / "alice.html", code=2)
    shell(*who, "--subject", "p4", "--id", "v1", "--out", tmp_path / "alice.html", code=2)
    shell(*who, "--subject", "p4", "--out", tmp_path / "alice.pdf", code=2)
    shell(*who, "--subject", "p4", "--out", fitted_visits / "alice.html", code=1)
    (tmp_path / "mine.html").write_text("mine")
    assert shell(*who, "--subject", "p4", "--out", tmp_path / "mine.html", code=1).error == "file-exists"
    assert (tmp_path / "mine.html").read_text() == "mine"


def test_nothing_is_handed_out_that_does_not_hold(
    shell: Shell, fitted_visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    forged, _ = FORGED["a proof of another record"]
    monkeypatch.setattr(Workspace, "dossier", lambda *_, **__: forged, raising=False)
    shell("receipt", "for", fitted_visits, 3, "--id", "v1", "--out", tmp_path / "alice.html", code=1)
    assert not (tmp_path / "alice.html").exists()


def test_json_names_the_checks_and_what_came_of_them(shell: Shell, tmp_path: Path, page: Path, key: Path) -> None:
    def held(path: Path, code: int, *options: object) -> dict[str, bool | None]:
        said = shell("verify", path, "--key", key, "--json", *options, code=code).json
        assert said["holds"] is (code == 0)
        return {check["name"]: check["held"] for check in said["checks"]}

    published(tmp_path / "log", 20)
    assert held(page, 0, "--against", tmp_path / "log") == dict.fromkeys([*CLAIMS, "page", "log"], True)
    older = re.sub('(name="maxrr-version" content=")[^"]+', r"\g<1>0.0.9", page.read_text(encoding="utf-8"))
    page.write_text(older, encoding="utf-8")
    assert held(page, 5) == dict.fromkeys(CLAIMS, True) | {"page": None}
    Path(tmp_path / "other.pub").write_bytes(OTHER.public.pem)
    said = shell("verify", page, "--key", tmp_path / "other.pub", "--json", code=4).json["checks"]
    assert {check["name"]: check["held"] for check in said} == {
        "signed": False, "receipt": None, "before": None, "after": None, "checkpoint": False, "logged": None,
        "keys": True, "page": None,
    }  # fmt: skip
    shown = shell("verify", page, "--key", tmp_path / "other.pub", code=4).out
    assert (shown.count("not known: "), shown.count("--against OLD")) == (5, 2)


def test_what_is_wrong_with_a_page_is_no_receipt_either(shell: Shell, tmp_path: Path, key: Path) -> None:
    (tmp_path / "odd.html").write_text("<p>hello</p>")
    for command in (("verify", "--key", key), ("receipt", "show")):
        assert str(tmp_path / "odd.html") in shell(*command, tmp_path / "odd.html", code=1).err
