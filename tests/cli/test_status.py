"""`maxrr status`, `maxrr receipt` and `maxrr export`: what is there, for people and for programs."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.shell import Shell, kinds, model_of

from maxrr.unlearning import Receipt


@pytest.fixture
def answered(shell: Shell, digits: Path) -> Path:
    """A workspace with two requests carried out, the second approximately."""
    of = kinds(digits)
    shell("unlearn", digits, "--ids", of["influential"][0], "--yes")
    shell("unlearn", digits, "--ids", f"{of['free'][0]},{of['core'][0]}", "--policy", "keep-extractor", "--yes")
    return digits


def test_status(either: Shell, answered: Path) -> None:
    found = either("status", answered, "--json").json
    assert (found["records"], found["forgotten"], found["requests"]) == (1417, 3, 2)
    assert [(entry["number"], entry["records"], entry["guarantee"]) for entry in found["receipts"]] == [
        (1, 1, "exact-refit"),
        (2, 2, "approximate-refit"),
    ]
    shown = either("status", answered).out
    assert "3 records in 2 requests" in shown
    assert "An audit is due" in shown
    assert [line.split()[-1] for line in shown.splitlines() if line.lstrip().startswith(("1 ", "2 "))] == [
        "exact-refit",
        "approximate-refit",
    ]


def test_a_damaged_file_is_named(shell: Shell, answered: Path) -> None:
    (path,) = answered.glob("head-*.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    ended = shell("status", answered, code=1)
    assert path.name in ended.err
    assert len(ended.err.splitlines()) == 1


# Receipts


def test_a_receipt_in_words(either: Shell, answered: Path) -> None:
    path = answered / "receipts" / "000002.json"
    receipt = Receipt.from_json(path.read_text(encoding="utf-8"))
    shown = either("receipt", "show", path).out
    assert [
        word for word in ("approximate-refit", receipt.model_after, receipt.manifest_after) if word not in shown
    ] == []
    assert either("receipt", "show", path, "--json").json == json.loads(path.read_text(encoding="utf-8"))


def test_receipts_that_hold(either: Shell, answered: Path) -> None:
    first, second = (answered / "receipts" / f"00000{number}.json" for number in (1, 2))
    assert either("receipt", "verify", first, "--json").json["holds"] is True
    assert "yes" in either("receipt", "verify", second, "--workspace", answered).out


def test_whether_a_record_is_on_a_receipt(shell: Shell, digits: Path) -> None:
    one, other = kinds(digits)["free"][:2]
    shell("unlearn", digits, "--ids", one, "--yes")
    verify = ("receipt", "verify", digits / "receipts" / "000001.json", "--workspace", digits)
    shell(*verify, "--id", one)
    assert "its mark is not on the receipt" in shell(*verify, "--id", other, code=4).out
    assert "--workspace" in shell(*verify[:3], "--id", one, code=2).err


HEAD = {"class_mark": "0" * 64, "decided": True, "error": 1e-15}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guarantee": "perfect"}, "'perfect'"),
        ({"requested": 5}, "add up"),
        ({"record_marks": []}, "0 marks for 1"),
        ({"records_after": 1}, "1419 fewer"),
        ({"model_after": "abc"}, "64 hexadecimal digits"),
        ({"guarantee": "exact-untouched"}, "untouched"),
        ({"guarantee": "exact-retrain"}, "exact-retrain with policy 'refuse'"),
        ({"guarantee": "approximate-refit"}, "approximate"),
        ({"bytes_claim": "within 3.2e-12"}, "claims 'within 3.2e-12', and its heads carry 'identical'"),
        ({"heads": []}, "no head"),
        ({"heads": [HEAD | {"error": -1.0}]}, "no number"),
        ({"heads": [HEAD | {"decided": False, "error": 3.11e-12}]}, "claims 'identical', and its heads carry 'within"),
        (
            {"bytes_claim": "within 3.1e-12", "heads": [HEAD | {"decided": False, "error": 3.11e-12}]},
            "claims 'within 3.1e-12', and its heads carry 'within 3.2e-12'",
        ),
        (
            {"bytes_claim": "within 1.1e-08", "heads": [HEAD | {"decided": False, "error": 1.05e-8}]},
            "exact-refit with a head, number 1, that is known only to 1.1e-08",
        ),
        ({"time": "yesterday"}, "'yesterday'"),
    ],
)
def test_receipts_that_contradict_themselves(
    shell: Shell, answered: Path, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    fields = json.loads((answered / "receipts" / "000001.json").read_text(encoding="utf-8"))
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(fields | change))
    assert said in shell("receipt", "verify", forged, code=4).out
    checks = shell("receipt", "verify", forged, "--workspace", answered, "--json", code=4).json["checks"]
    assert next(iter(change)) in checks[1]["wrong"]


def test_a_claim_that_is_no_larger_than_the_heads_carry_holds(either: Shell, answered: Path, tmp_path: Path) -> None:
    fields = json.loads((answered / "receipts" / "000001.json").read_text(encoding="utf-8"))
    heads = [HEAD, HEAD | {"decided": False, "error": 3.11e-12}]
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(fields | {"heads": heads, "bytes_claim": "within 3.2e-12"}))
    assert either("receipt", "verify", path, "--json").json["holds"] is True
    shown = " ".join(either("receipt", "show", path).out.split())
    said = "Decision values of the records are within 3.2e-12 of the exact ones (1 of 2 heads decided); no bytes"
    assert said in shown


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"version": 99}'])
@pytest.mark.parametrize("command", ["show", "verify"])
def test_files_that_are_no_receipts(shell: Shell, tmp_path: Path, command: str, content: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    ended = shell("receipt", command, path, code=1)
    assert str(path) in ended.err
    assert len(ended.err.splitlines()) == 1


# Export


def test_export(shell: Shell, digits: Path, tmp_path: Path) -> None:
    written = shell("export", digits, tmp_path / "model.onnx", "--json").json
    assert written["model_hash"] == model_of(digits)
    assert written["bytes"] == (tmp_path / "model.onnx").stat().st_size
    shell("unlearn", digits, "--ids", kinds(digits)["influential"][0], "--refit", "influential", "--yes")
    shown = shell("export", digits, tmp_path / "model.onnx").out
    assert f"model {model_of(digits)[:12]}" in shown


def test_export_without_its_packages(
    shell: Shell, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "maxrr[onnx]" in shell("export", digits, tmp_path / "model.onnx", code=1).err
    assert not (tmp_path / "model.onnx").exists()
