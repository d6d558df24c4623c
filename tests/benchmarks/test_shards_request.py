"""Pieces of `benchmarks/shards_request.py`: in which order, on which cores, and what is told of them."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("shards_request")


def piece(accuracy, request, epochs=18, seconds=100.0):
    return {"accuracy": accuracy, "request": request, "fit": 60.0, "epochs": epochs, "seconds": seconds}


def test_ten_seeds_of_one_4_and_8_shards_come_first(script):
    found = script.pieces()
    first = [name for name in script.SETTINGS if script.SETTINGS[name].recipe.schedule == "cosine"]
    assert sorted({script.SETTINGS[name].shards for name in first}) == [1, 4, 8]
    assert found[:30] == [(name, seed) for seed in range(10) for name in first]
    assert len(found) == len(set(found)) == sum(setting.seeds for setting in script.SETTINGS.values())


def test_differences_are_paired_by_seed(script):
    rng = np.random.default_rng(0)
    one, four = 0.895 + 0.002 * rng.normal(size=10), 0.88 + 0.002 * rng.normal(size=9)  # one seed is missing
    kept = {
        **{f"{script.ONE}, seed {seed}": piece(value, 50.0) for seed, value in enumerate(one)},
        **{f"4 shards, falling rate, seed {seed}": piece(value, 25.0) for seed, value in enumerate(four)},
    }
    told = script.summarise(kept)
    low, high = stats.ttest_rel(four, one[:9]).confidence_interval(0.9)
    against = told["4 shards, falling rate"]["against"]
    assert (against["gain"] - against["reach"], against["gain"] + against["reach"]) == pytest.approx((low, high))
    assert (against["faster"], against["seeds"]) == (2.0, 9)
    assert "against" not in told[script.ONE]
    assert told.keys() == {script.ONE, "4 shards, falling rate"}


class Done:
    """A process that has measured its piece."""

    returncode = 0

    def __init__(self, name):
        self.name = name

    def poll(self):
        return 0

    def communicate(self):
        return f"a warning\n{json.dumps(piece(0.9, 30.0, seconds=3.0))}\n", None


def start_all(script, monkeypatch, path, minutes, cores):
    started = []
    monkeypatch.setattr(script, "start", lambda which, here, _: started.append((which, tuple(here))) or Done(which))
    monkeypatch.setattr(script, "POLL", 0.0)
    monkeypatch.setattr(script.os, "sched_getaffinity", lambda _: set(range(16)))
    command = ["shards_request.py", "--out", str(path), "--minutes", str(minutes), "--cores", str(cores)]
    monkeypatch.setattr(sys, "argv", command)
    script.main()
    return started


def test_each_piece_has_two_cores_and_none_is_measured_twice(script, monkeypatch, tmp_path, capsys):
    path = tmp_path / "found.json"
    started = start_all(script, monkeypatch, path, 60, 7)
    assert {here for _, here in started} == {(0, 1), (2, 3), (4, 5)}
    assert sorted(which for which, _ in started) == sorted(script.pieces())
    assert capsys.readouterr().out.endswith("0 pieces are left\n")
    assert start_all(script, monkeypatch, path, 60, 7) == []


def test_no_piece_is_begun_that_may_end_late(script, monkeypatch, tmp_path, capsys):
    """Of the settings that nothing is known of the shortest may take more than two minutes."""
    path = tmp_path / "found.json"
    assert start_all(script, monkeypatch, path, 2, 4) == []
    assert "43 pieces" in capsys.readouterr().out
    path.write_text(json.dumps({"pieces": {f"{script.ONE}, seed 0": piece(0.9, 30.0, seconds=3.0)}}))
    started = start_all(script, monkeypatch, path, 2, 4)
    assert {name for (name, _), _ in started} == {script.ONE}
    assert len(started) == 9
