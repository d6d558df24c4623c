"""`maxrr fit embeddings.npy`, with a table beside it, from the file to a replayed receipt."""

import numpy as np
import polars as pl
import pytest

from maxrr import MaxRR
from maxrr.data import load
from tests.cli.shell import Shell, receipt_file


@pytest.mark.usefixtures("here")
def test_embeddings_in_the_shell(features, tmp_path):
    shell, ws, source = Shell(), tmp_path / "ws", features.parent / "x.npy"
    fitted = shell("fit", source, "--out", ws, "--json").json
    assert fitted["accuracy"] > 0.8
    training, _ = load(source)
    gone = training.of_subjects([int(training.subjects[0])])
    assert shell("unlearn", ws, "--subject", training.subjects[0], "--yes").code == 0
    oracle = MaxRR.on_features().fit(training.without(gone))
    assert shell("status", ws, "--json").json["model_hash"] == oracle.model_hash_
    assert shell("replay", ws, 1, "--json").json["outcome"] == "identical"
    audited = shell("audit", ws, 1, "--source", source, code=1)
    assert (audited.out, "a replay compares with that one" in audited.err) == ("", True)  # no training is announced
    assert shell("bundle", ws, tmp_path / "bundle").code == 0
    source.with_name("x.npy.toml").unlink()  # the bundle carries it, too
    there = tmp_path / "bundle", receipt_file(ws, 1), "--source", source
    assert shell("replay", *there, "--json").json["outcome"] == "identical"
    answer = shell("predict", ws, source, "--json")
    assert answer.code == 0


def test_embeddings_in_a_table_are_those_of_a_file(tmp_path):
    """Without a network, and from the same records the same model."""
    rng, shell = np.random.default_rng(2), Shell()
    topics = np.arange(120) % 2
    vectors = (rng.normal(size=(120, 4)) + 2 * topics[:, None]).astype(np.float32)
    about = {"id": np.arange(120), "label": topics}
    pl.DataFrame({**about, "v": pl.Series(vectors, dtype=pl.Array(pl.Float32, 4))}).write_parquet(
        tmp_path / "a.parquet"
    )
    np.save(tmp_path / "a.npy", vectors)
    pl.DataFrame(about).write_csv(tmp_path / "a.csv")
    shell("data", "prepare", tmp_path / "a.parquet")
    shell("data", "prepare", tmp_path / "a.npy", "--meta", tmp_path / "a.csv")
    found = [
        shell("fit", tmp_path / f"a.{kind}", "--out", tmp_path / kind, "--json").json for kind in ("npy", "parquet")
    ]
    assert [each["core"] for each in found] == [0, 0]
    assert found[0]["model_hash"] == found[1]["model_hash"]
    said = shell("fit", tmp_path / "a.parquet", "--out", tmp_path / "words").out
    trained = shell("fit", tmp_path / "a.parquet", "--core", "0.5", "--epochs", "1", "--out", tmp_path / "trained").out
    assert ("hash:0.33" in said, "--core 0.5" in trained) == (True, True)  # what else there is, what was chosen


@pytest.fixture
def days(tmp_path):
    """Two files of embeddings, each with a table that says what its rows are."""
    rng = np.random.default_rng(1)
    for day, first in (("monday", 0), ("tuesday", 100)):
        topics = np.arange(100) % 2
        np.save(tmp_path / f"{day}.npy", (rng.normal(size=(100, 4)) + 2 * topics[:, None]).astype(np.float32))
        lines = [f"{first + number},{'ab'[topic]}" for number, topic in enumerate(topics)]
        (tmp_path / f"{day}.csv").write_text("\n".join(["id,label", *lines]))
        Shell()("data", "prepare", tmp_path / f"{day}.npy", "--meta", tmp_path / f"{day}.csv")
    Shell()("fit", tmp_path / "monday.npy", "--out", tmp_path / "ws")
    return tmp_path


def test_added_embeddings_have_a_table_of_their_own(days):
    """That of the fit says nothing of them, though it may have as many rows."""
    says_how = days / "tuesday.npy.toml"
    says_how.rename(days / "away")
    assert Shell()("add", days / "ws", days / "tuesday.npy", "--yes", code=1).error == "data"
    (days / "away").rename(says_how)
    planned = Shell()("add", days / "ws", days / "tuesday.npy", "--plan", "--json").json
    assert (planned["heads"], planned["embeds"]) == (1, 0)
    Shell()("add", days / "ws", days / "tuesday.npy", "--yes")
    assert "maxrr refit" not in Shell()("status", days / "ws").out


@pytest.mark.usefixtures("here")
def test_embeddings_that_moved_with_their_tables(days):
    shell, ws = Shell(), days / "ws"
    shell("add", ws, days / "tuesday.npy", "--yes")
    (days / "new").mkdir()
    for day in ("monday", "tuesday"):
        for suffix in (".npy", ".csv"):
            (days / f"{day}{suffix}").rename(days / "new" / f"{day}{suffix}")
    both = [each for day in ("monday", "tuesday") for each in ("--source", days / "new" / f"{day}.npy")]
    assert shell("replay", ws, 1, *both, "--json").json["outcome"] == "identical"


def test_a_network_of_the_environment_is_not_put_before_embeddings_in_silence(days, monkeypatch):
    (days / "before_embeddings.py").write_text("from torch import nn\ndef flat():\n    return nn.Flatten()\n")
    monkeypatch.chdir(days)
    monkeypatch.setenv("MAXRR_NETWORK", "before_embeddings:flat")
    given = ("fit", "tuesday.npy", "--out", "new")
    for core in ((), ("--core", "frozen")):
        ended = Shell()(*given, *core, code=2)
        assert (ended.error, "MAXRR_NETWORK" in ended.err) == ("usage", True)
    assert not (days / "new").exists()
    monkeypatch.delenv("MAXRR_NETWORK")
    Shell()(*given, "--core", "frozen", "--network", "before_embeddings:flat")
