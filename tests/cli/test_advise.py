"""`maxrr advise`, on the digits."""

from pathlib import Path

import numpy as np

from tests.cli.shell import Shell


def test_cores_are_tried_and_one_is_named(shell: Shell) -> None:
    found = shell("advise", "digits", "--shares", "0.3,0.6", "--epochs", 1, "--records", 400, "--json").json
    assert [trial["share"] for trial in found["trials"]] == [0.3, 0.6]
    assert found["best"] in found["trials"]
    assert 0 < found["tested"] < found["sample"] < 500


def test_shares_are_numbers(shell: Shell) -> None:
    assert shell("advise", "digits", "--shares", "few", code=2).out == ""


def test_given_weights_are_those_of_a_network_that_is_named(shell: Shell) -> None:
    assert shell("advise", "digits", "--start", "given", code=2).error == "usage"
    assert shell("fit", "digits", "--start", "given:ours", "--out", "ws", code=2).error == "usage"


def test_features_need_no_core(shell: Shell, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(60, 4)))
    lines = [f"r{row},{'ab'[row % 2]}" for row in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["id,label", *lines]) + "\n")
    shell("data", "prepare", tmp_path / "x.npy", "--meta", tmp_path / "x.csv")
    assert shell("advise", tmp_path / "x.npy", code=1).error == "failed"
