"""The driver of the readings: piece by piece, on time, and all the way from the grid to the winners' parts."""

import json
import sys
from dataclasses import replace

import pytest
from benchmarks import readings as driver
from tests.paper.problems import TINY, in_this_process, sides
from tests.small_networks import one_thread  # noqa: F401

from maxrr.paper import PROFILES, readings
from maxrr.paper.results import Results


@pytest.fixture
def started(tmp_path, monkeypatch):
    """The script with these arguments, on the tiny profile and a grid of four readings; its exit code."""
    monkeypatch.setitem(PROFILES, "smoke", TINY)
    monkeypatch.setattr("maxrr.paper.lab.load", lambda name: sides())
    few = [one for one in readings.GRID if one.training == "raw, batches of 32" and one.epochs in (3, 5)]
    for name, value in {"GRID": few, "EPOCHS": (3, 5), "BATCHES": (32,), "PIXELS": ("raw",)}.items():
        monkeypatch.setattr(readings, name, value)

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["readings.py", "--profile", "smoke", "--out", str(tmp_path), *arguments])
        with in_this_process():
            return driver.main()

    return start


def test_from_the_grid_to_the_winners_parts(started, tmp_path):
    assert started("--stage", "grid") == 0
    grid = json.loads((tmp_path / "smoke" / "readings.json").read_text())
    assert len(grid["cells"]) == 4
    for heads, folder in (("one-vs-rest", "reading-rest"), ("one-vs-one", "reading-one")):
        assert started("--stage", "parts", "--heads", heads) == 0
        for part in driver.ORDER:
            content = json.loads((tmp_path / folder / f"{part}-digits.json").read_text())
            assert content["cells"]
            stored = content["setting"]["profile"]
            assert (stored["heads"], stored["pixels"], stored["name"]) == (heads, "raw", folder)
            assert stored["recipe"]["epochs"] == grid["best"][heads]["epochs"]


def test_parts_wait_for_the_whole_grid(started, tmp_path):
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke" / "readings.json").write_text('{"pieces": {}}')
    with pytest.raises(SystemExit, match="not complete"):
        started("--stage", "parts")


def test_a_call_without_time_measures_one_piece_and_the_next_goes_on(started, tmp_path):
    assert started("--stage", "grid") == 0
    arguments = ("--stage", "parts", "--heads", "one-vs-one", "--minutes", "0")
    there = []
    for _ in range(3):
        assert started(*arguments) == driver.LEFT
        files = (json.loads(path.read_text()) for path in (tmp_path / "reading-one").glob("*.json"))
        there.append(sum(len(content["pieces"]) for content in files))
    assert there == [1, 2, 3]


def test_no_piece_is_begun_that_may_end_too_late():
    clock = driver.Clock(minutes=1.0)
    clock.allow(1_000.0)  # the first: no other call would end it
    clock.allow(60.0 / driver.SLACK - 5.0)
    with pytest.raises(driver.OutOfTimeError):
        clock.allow(60.0 / driver.SLACK + 1.0)


def test_pieces_are_guessed_by_the_models_that_they_take(tmp_path):
    profile = replace(TINY, ranked=100, runs=100, few=20, fractions=(0.25, 0.5, 0.75, 1.0))
    made = {"setting": {}, "pieces": {}, "made": {"ranking": {"seconds": 100.0}}}
    (tmp_path / "histogram.json").write_text(json.dumps(made))
    for other in ("agreement", "frontier"):  # of which nothing is measured here: they say nothing
        (tmp_path / f"{other}.json").write_text(json.dumps({**made, "made": {"core20k": {"seconds": 900.0}}}))
    grid = {**made, "made": {"raw, batches of 128": {"seconds": 60.0}}}
    (tmp_path / "readings.json").write_text(json.dumps(grid))

    def guess(part, piece):
        results = Results(tmp_path / f"{part}.json", {}, "cpu")
        return driver.TimedResults(**vars(results), profile=profile).guess(piece)

    assert guess("table", "No and SVM") == pytest.approx(400.0)  # 100 trained and 700 fitted, beside 100 and 100
    assert guess("table", "top10k") == pytest.approx(150.0)
    assert guess("sensitivity", "support") == 0.0
    assert guess("verification", "core20k") == 100.0  # nothing of its kind so far: as the longest piece
    assert guess("readings", "raw, batches of 64") == pytest.approx(80.0)
