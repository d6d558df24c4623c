"""`maxrr receipt`: a receipt in words, and whether what it says can be so."""

import json
from pathlib import Path

import pytest

from maxrr.unlearning import Receipt
from tests.cli.shell import Shell, copy_and_unlearn, kinds, receipt_file


@pytest.fixture(scope="module")
def answered(fitted_digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two requests carried out, the second approximately; nobody may change it."""
    of = kinds(fitted_digits)
    requests = (
        ("--ids", of["influential"][0]),
        ("--ids", f"{of['free'][0]},{of['core'][0]}", "--policy", "keep-extractor"),
    )
    return copy_and_unlearn(fitted_digits, tmp_path_factory.mktemp("answered"), *requests)


def test_a_receipt_in_words(shell: Shell, answered: Path) -> None:
    path = receipt_file(answered, 2)
    receipt = Receipt.from_json(path.read_text(encoding="utf-8"))
    shown = shell("receipt", "show", path).out
    assert shown == f"{receipt}\n"
    assert len(repr(receipt)) < 100
    assert [
        word for word in ("approximate-refit", receipt.model_after, receipt.commitment_after) if word not in shown
    ] == []
    assert shell("receipt", "show", path, "--json").json == json.loads(path.read_text(encoding="utf-8"))


def test_receipts_that_hold(shell: Shell, answered: Path) -> None:
    first, second = (receipt_file(answered, number) for number in (1, 2))
    assert shell("verify", first, "--json").json["holds"] is True
    assert "yes" in shell("verify", second, "--against", answered).out
    words = shell("receipt", "show", second).out
    for same in ((answered, 2), (answered, second)):
        assert shell("receipt", "show", *same).out == words


HEAD = {"class_hmac": "0" * 64, "decided": True, "error": 1e-15}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guarantee": "perfect"}, "'perfect'"),
        ({"requested": 5}, "add up"),
        ({"tombstones": []}, "0 tombstones for 1"),
        ({"records_after": 1}, "1419 fewer"),
        ({"guarantee": "exact-untouched"}, "untouched"),
        ({"guarantee": "exact-retrain"}, "exact-retrain with policy 'refuse'"),
        ({"guarantee": "approximate-refit"}, "approximate"),
        ({"bytes_claim": "within 3.2e-12"}, "claims 'within 3.2e-12', and its heads carry 'identical'"),
        ({"heads": []}, "no head"),
        ({"heads": [HEAD | {"decided": False, "error": 3.11e-12}]}, "claims 'identical', and its heads carry 'within"),
        (
            {"bytes_claim": "within 3.1e-12", "heads": [HEAD | {"decided": False, "error": 3.11e-12}]},
            "claims 'within 3.1e-12', and its heads carry 'within 3.2e-12'",
        ),
        (
            {"bytes_claim": "within 1.1e-08", "heads": [HEAD | {"decided": False, "error": 1.05e-8}]},
            "exact-refit with a head, number 1, that is known only to 1.1e-08",
        ),
    ],
)
def test_receipts_that_contradict_themselves(
    shell: Shell, answered: Path, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    fields = json.loads((receipt_file(answered, 1)).read_text(encoding="utf-8"))
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(fields | change))
    assert said in shell("verify", forged, code=4).out
    checks = shell("verify", forged, "--against", answered, "--json", code=4).json["checks"]
    assert next(iter(change)) in checks[1]["wrong"]


@pytest.mark.parametrize("change", [{"model_after": "abc"}, {"heads": [HEAD | {"error": -1.0}]}, {"time": "yesterday"}])
def test_what_no_receipt_has(shell: Shell, answered: Path, tmp_path: Path, change: dict[str, object]) -> None:
    fields = json.loads((receipt_file(answered, 1)).read_text(encoding="utf-8"))
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(fields | change))
    ended = shell("verify", forged, code=1)
    assert (ended.error, next(iter(change)) in ended.err) == ("unreadable-file", True)


def test_a_number_written_otherwise_is_no_receipt_that_was_handed_out(
    shell: Shell, answered: Path, tmp_path: Path
) -> None:
    text = (receipt_file(answered, 2)).read_text(encoding="utf-8")
    changed = tmp_path / "changed.json"
    changed.write_text(text.replace('"C":1.0,', '"C":1,'), encoding="utf-8")
    checks = shell("verify", changed, "--against", answered, "--json", code=4).json["checks"]
    assert checks[1]["wrong"] == "its receipt 2 has another C"
    assert shell("replay", answered, changed, code=4).error == "other-workspace"


def test_a_claim_that_is_no_larger_than_the_heads_carry_holds(shell: Shell, answered: Path, tmp_path: Path) -> None:
    fields = json.loads((receipt_file(answered, 1)).read_text(encoding="utf-8"))
    heads = [HEAD, HEAD | {"decided": False, "error": 3.11e-12}]
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(fields | {"heads": heads, "bytes_claim": "within 3.2e-12"}))
    assert shell("verify", path, "--json").json["holds"] is True
    shown = " ".join(shell("receipt", "show", path).out.split())
    said = "Decision values of the records are within 3.2e-12 of the exact ones (1 of 2 heads decided); no bytes"
    assert said in shown


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"version": 99}'])
@pytest.mark.parametrize("command", [("receipt", "show"), ("verify",)])
def test_files_that_are_no_receipts(shell: Shell, tmp_path: Path, command: tuple[str, ...], content: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    ended = shell(*command, path, code=1)
    assert str(path) in ended.err
    assert len(ended.err.splitlines()) == 1
