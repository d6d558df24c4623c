"""Result files: a piece is measured once, an interrupted part goes on, and no file is touched that is not ours."""

import json
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import pytest
import torch

from lab.results import LOCK, SLACK, Clock, OutOfTimeError, Results

SETTING = {"profile": {"name": "tiny", "fractions": [0.5]}, "seed": 0}
CPU = torch.device("cpu")


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "new" / "part.json", SETTING, CPU)


def never():
    pytest.fail("it was measured")


def test_a_piece_is_measured_once(results):
    assert results.piece("one", lambda: {"values": (1, 2), 3: None}) == {"values": [1, 2], "3": None}
    again = Results(results.path, SETTING, CPU)
    assert again.piece("one", never) == {"values": [1, 2], "3": None}


def test_what_failed_is_measured_again_and_nothing_else(results):
    def measure_all(second):
        return results.piece("one", first), results.piece("two", second)

    def first():
        measured.append("one")
        return {"value": 1}

    def interrupted():
        raise KeyboardInterrupt

    measured = []
    with pytest.raises(KeyboardInterrupt):
        measure_all(interrupted)
    assert measure_all(lambda: {"value": 2}) == ({"value": 1}, {"value": 2})
    assert measured == ["one"]
    assert list(json.loads(results.path.read_text())["pieces"]) == ["one", "two"]


def test_the_whole_stands_beside_its_pieces(results):
    results.piece("one", lambda: {"value": 1})
    assert "cells" not in results.read()
    whole = results.finish({"title": "A part", "cells": {}})
    assert results.read() == whole == json.loads(results.path.read_text())
    assert (whole["setting"], whole["pieces"]) == (SETTING, {"one": {"value": 1}})
    assert set(whole["made"]) == {"one"}
    assert whole["made"]["one"]["device"] == "cpu"
    assert results.piece("one", never) == {"value": 1}


def test_two_processes_lose_none_of_their_pieces(results):
    def meanwhile():
        Results(results.path, SETTING, CPU).piece("theirs", lambda: {"value": 2})
        return {"value": 1}

    results.piece("ours", meanwhile)
    assert results.read()["pieces"] == {"theirs": {"value": 2}, "ours": {"value": 1}}


def test_a_new_piece_takes_back_what_was_finished_without_it(results):
    results.piece("one", lambda: {"value": 1})
    results.finish({"title": "A part", "cells": {}})
    results.piece("two", lambda: {"value": 2})
    assert set(results.read()) == {"setting", "made", "pieces"}


@pytest.mark.parametrize("other", [{**SETTING, "seed": 1}, {**SETTING, "profile": {"name": "tiny"}}])
def test_a_file_of_another_profile_or_seed_is_refused_and_untouched(results, other):
    results.piece("one", lambda: {"value": 1})
    before = results.path.read_bytes()
    stranger = Results(results.path, other, CPU)
    for ask in (lambda: stranger.piece("two", never), lambda: stranger.finish({}), stranger.read):
        with pytest.raises(ValueError, match=r"part\.json was made"):
            ask()
    assert results.path.read_bytes() == before


@pytest.mark.parametrize("damage", [b"", b'{"setting": {"pro', b"[]", b"5", b"{}", b"\xff\xfe"])
def test_a_damaged_file_is_refused_with_what_to_do(results, damage):
    results.path.parent.mkdir()
    results.path.write_bytes(damage)
    with pytest.raises(ValueError, match="result of ours"):
        results.piece("one", never)
    assert results.path.read_bytes() == damage


def test_nothing_is_half_written(results, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    results.piece("one", lambda: {"value": 1})
    before = results.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("maxrr.files.atomic.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            results.piece("two", lambda: {"value": 2})
    assert results.path.read_bytes() == before
    assert {path.name for path in results.path.parent.iterdir()} == {results.path.name, LOCK}


def test_what_cannot_be_written_leaves_the_file_as_it_was(results):
    results.piece("one", lambda: {"value": 1})
    before = results.path.read_bytes()
    with pytest.raises(TypeError):
        results.piece("two", lambda: {"value": object()})
    assert results.path.read_bytes() == before


def test_pieces_that_are_written_at_the_same_time(results):
    def add(worker):
        for number in range(20):
            results.piece(f"{worker}, {number}", dict)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(add, range(2)))
    assert len(results.read()["pieces"]) == 40


def test_no_piece_is_begun_that_may_end_too_late():
    clock = Clock(perf_counter() + 60.0)
    clock.allow(1_000.0)  # the first: no other call would end it
    clock.allow(60.0 / SLACK - 5.0)
    with pytest.raises(OutOfTimeError):
        clock.allow(60.0 / SLACK + 1.0)
