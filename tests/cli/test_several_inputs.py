"""Records with several inputs in the shell: from an .npz file with an array for each, by a network of one's own."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.shell import Shell, kinds
from tests.several_inputs import LENGTH, sentences

NETWORK = "tests.several_inputs:text_network"


def test_from_a_file_to_an_answer(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, labels, ids = sentences()
    several = {f"X.{name}": part for name, part in inputs.items()}
    data, few, key = tmp_path / "texts.npz", tmp_path / "few.npz", tmp_path / "core.key"
    key.write_text("house")  # a drawn key draws another core each time, and by some of them no head is learned
    np.savez(data, **several, y=labels, ids=ids)
    np.savez(few, **{name: part[:3] for name, part in inputs.items()})
    assert shell("fit", data, "--out", tmp_path / "ws", code=2).error == "usage"
    (tmp_path / "recipe.toml").write_text("lr = 0.02\nepochs = 40")
    monkeypatch.setenv("MAXRR_NETWORK", NETWORK)
    shell("fit", data, "--out", tmp_path / "ws", "--core", f"hash:0.5:{key}", "--recipe", tmp_path / "recipe.toml")
    answers = shell("predict", tmp_path / "ws", few, "--json").json
    assert [answer["record"] for answer in answers] == [f"{few}:{row}" for row in range(3)]

    one = kinds(tmp_path / "ws")["free"][0]
    np.savez(few, tokens=np.arange(LENGTH), mask=np.ones(LENGTH, dtype=bool))
    receipt = shell("replace", tmp_path / "ws", one, few, "--yes", "--json").json
    assert receipt["guarantee"].startswith("exact")
    np.savez(few, tokens=np.arange(LENGTH))
    assert "lacks mask" in shell("predict", tmp_path / "ws", few, code=1).err
    np.savez(few, tokens=np.arange(LENGTH), mask=np.full(LENGTH, 0.5))
    assert "are no bool" in shell("predict", tmp_path / "ws", few, code=1).err
    np.save(tmp_path / "one.npy", np.arange(LENGTH))
    assert shell("predict", tmp_path / "ws", tmp_path / "one.npy", code=1).error == "other-shape"
    one = kinds(tmp_path / "ws")["core"][0]
    shell("unlearn", tmp_path / "ws", "--ids", one, "--policy", "keep-extractor", "--yes")
