"""`maxrr export` and `maxrr revocations`: the model for programs that only predict, and which copies are revoked."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from maxrr import serving
from maxrr.data import load
from maxrr.errors import Revoked
from maxrr.workspace import Workspace
from tests.cli.shell import Shell, kinds, model_of


@pytest.mark.long
def test_export(shell: Shell, digits: Path, tmp_path: Path) -> None:
    written = shell("export", digits, tmp_path / "model.onnx", "--json").json
    assert written["model_hash"] == model_of(digits)
    assert written["bytes"] == (tmp_path / "model.onnx").stat().st_size
    shell("unlearn", digits, "--ids", kinds(digits)["influential"][0], "--yes")
    shown = shell("export", digits, tmp_path / "model.onnx").out
    assert model_of(digits)[:12] in shown


def test_export_without_its_packages(
    shell: Shell, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "maxrr[onnx]" in shell("export", digits, tmp_path / "model.onnx", code=1).err
    assert not (tmp_path / "model.onnx").exists()


def test_a_folder_from_export_to_revocation(shell: Shell, features: Path, tmp_path: Path) -> None:
    _, test = load(features.parent / "x.npy")
    model = tmp_path / "model"
    written = shell("export", features, model, "--json").json
    assert (written["form"], written["model_hash"]) == ("numpy", model_of(features))
    assert "out of date" not in shell("status", features).out
    shell("revocations", features, "--out", tmp_path / "revoked.json")
    served = serving.load(model, revocations=tmp_path / "revoked.json", refresh=0)
    with Workspace.open(features, read_only=True) as workspace:
        assert np.array_equal(served.predict(test.inputs), workspace.model.predict(test))
    shell("unlearn", features, "--ids", kinds(features)["influential"][0], "--yes")
    assert str(model) in shell("status", features).out
    (noted,) = shell("status", features, "--json").json["exports"]
    assert (noted["id"], noted["out_of_date"], noted["revoked"]) == (written["export"], True, True)
    listed = json.loads(shell("revocations", features).out)["revoked"]
    assert listed == [written["export"]]
    shell("revocations", features, "--out", tmp_path / "revoked.json")
    with pytest.raises(Revoked):
        served.predict(test.inputs[:1])
    shown = shell("export", features, model).out
    assert model_of(features)[:12] in shown
    assert "out of date" not in shell("status", features).out
    assert served.reload()
    served.predict(test.inputs[:1])


def test_what_a_place_means(shell: Shell, digits: Path) -> None:
    assert "folder" in shell("export", digits, "model.pt", code=2).err


def test_a_folder_with_other_things_is_left_alone(shell: Shell, digits: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    assert "thesis.txt" in shell("export", digits, tmp_path / "mine", code=1).err
    assert shell("export", digits, digits / "model", code=1).error == "folder-taken"
    assert shell("status", digits, "--json").json["exports"] == []


def test_a_copy_of_the_same_numbers_is_not_called_another_model(shell: Shell, features: Path, tmp_path: Path) -> None:
    shell("export", features, tmp_path / "model")
    receipt = shell("unlearn", features, "--ids", kinds(features)["free"][0], "--yes", "--json").json
    assert receipt["guarantee"] == "exact-untouched"
    (noted,) = shell("status", features, "--json").json["exports"]
    assert (noted["out_of_date"], noted["revoked"]) == (True, True)
    assert "numbers may be the same" in " ".join(shell("status", features).out.split())
