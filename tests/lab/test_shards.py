"""The core in shards: costs are those of every possible request, accuracies those of plain trainings."""

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import shards
from lab.profiles import PROFILES
from lab.shard_costs import Speeds, expected_touched, expected_work, in_shards, in_slices, spared
from lab.shard_networks import FULL, MIDDLE, shard_rows
from lab.shards import PART, Case, cases, measure, summarise
from lab.votes import by_majority, by_mean
from maxrr import LinearSVM
from maxrr.core import FullCore, HashCore, MiddleCore
from maxrr.core.shards import TIE_BREAKER, Sharding, sharding_of
from maxrr.nets import embed, split, train
from tests.lab.problems import RECORDS, TINY, tiny_lab, with_ranking

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ABSENT = ("cryptography", "jinja2", "markupsafe", "matplotlib", "rich", "typer")


# Costs


@st.composite
def requests(draw):
    """Sizes of shards, a population that may be larger, how many records are asked for, and slices."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    population = sum(sizes) + draw(st.integers(0, 3))
    return sizes, population, draw(st.integers(1, min(population, 4))), draw(st.integers(1, 3))


def shard_members(sizes):
    """The records of each shard, numbered one shard after the other."""
    ends = np.cumsum([0, *sizes])
    return [range(first, last) for first, last in itertools.pairwise(ends.tolist())]


def retrained(sizes, epochs, slices, gone):
    """Records × epochs of one request, step by step: from the first slice that loses a record on."""
    total = 0.0
    for members in shard_members(sizes):
        parts = [
            members[len(members) * number // slices : len(members) * (number + 1) // slices] for number in range(slices)
        ]
        hit = [number for number, part in enumerate(parts) if gone & set(part)]
        for number in range(hit[0], slices) if hit else ():
            left = [record for part in parts[: number + 1] for record in part if record not in gone]
            total += 2.0 * epochs / (slices + 1) * len(left)
    return total


def every_request(population, requested):
    return [set(gone) for gone in itertools.combinations(range(population), requested)]


@given(requests())
def test_expected_work_is_the_mean_over_all_requests(case):
    sizes, population, requested, slices = case
    asked = every_request(population, requested)
    naive = np.mean([retrained(sizes, 6, slices, gone) for gone in asked])
    assert expected_work(in_slices(sizes, 6, slices), population, requested) == pytest.approx(naive, abs=1e-9)
    touched = np.mean([sum(bool(gone & set(members)) for members in shard_members(sizes)) for gone in asked])
    assert expected_touched(sizes, population, requested) == pytest.approx(touched)


@given(requests(), st.integers(0, 3))
def test_expected_seconds_are_the_mean_over_all_requests(case, influential):
    sizes, population, requested, _ = case
    core = sum(sizes)
    influential = min(influential, population - core)
    speeds = Speeds(0.5, 0.25, 1, 2.0, 8.0, {requested: 3.0})
    seconds = []
    for gone in every_request(population, requested):
        touched = sum(bool(gone & set(members)) for members in shard_members(sizes))
        took = (0.5 + 2.0) * touched + 0.25 * retrained(sizes, 6, 1, gone)
        outside = gone & set(range(core, core + influential))
        seconds.append(took + (8.0 if touched else 3.0 if outside else 0.0))
    found = speeds.request(in_shards(sizes, 6), sizes, influential, population, requested)
    assert found == pytest.approx(np.mean(seconds))


def test_one_slice_is_no_slice():
    assert in_slices([5, 7], 18, 1) == in_shards([5, 7], 18)


def test_slices_spare_a_third_at_most():
    """As SISA's paper has it for one record: (2R + 1) / 3R of the work without slices, and 2/3 in the limit."""
    for slices in (1, 4, 16):
        sliced, plain = (
            expected_work(way, 16_000, 1) for way in (in_slices([16_000], 18, slices), in_shards([16_000], 18))
        )
        assert sliced / plain == pytest.approx((2 * slices + 1) / (3 * slices), rel=1e-4)
        assert sum(stage.records * stage.epochs for stage in in_slices([16_000], 18, slices)) == 18 * 16_000


def test_shards_by_hash_are_touched_as_if_records_were_thrown_into_them():
    """Over all keys a shard of K = fN core records is missed by r records with probability (1 - f/S)^r, nearly."""
    found = expected_touched([5_000] * 4, 60_000, 10)
    assert found == pytest.approx(4 * (1 - (1 - 20_000 / 60_000 / 4) ** 10), rel=1e-3)
    assert spared(20_000, 60_000, 1) == pytest.approx(2 / 3)


def test_several_networks_are_trained_side_by_side():
    alone, two = (Speeds(0.0, 1.0, count, 0.0, 0.0, {}) for count in (1, 2))
    stages = in_shards([10, 10], 1)
    assert two.training(stages, [10, 10], 20, 20 - 1) == pytest.approx(alone.training(stages, [10, 10], 20, 19) / 2)
    assert two.training(stages, [10, 10], 20, 1) == alone.training(stages, [10, 10], 20, 1)


# Votes


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_votes_by_hand(seed, networks):
    scores = np.random.default_rng(seed).normal(size=(networks, 20, 4))
    majority, mean = by_majority(scores), by_mean(scores)
    for record in range(20):
        each = [np.exp(one[record]) / np.exp(one[record]).sum() for one in scores]
        probable = sum(each) / networks
        assert mean[record] == max(range(4), key=lambda label: probable[label])
        votes = Counter(int(np.argmax(one[record])) for one in scores)
        most = [label for label in range(4) if votes[label] == max(votes.values())]
        assert majority[record] == max(most, key=lambda label: probable[label])


def test_more_votes_beat_more_probability():
    scores = np.log(np.array([[[0.6, 0.4]], [[0.6, 0.4]], [[0.01, 0.99]]]))
    assert (by_majority(scores).tolist(), by_mean(scores).tolist()) == ([0], [1])


# Cases


def test_shards_are_those_of_the_library(lab):
    ids = lab.training.ids
    fraction = TINY.large / RECORDS
    for core, way in (
        (FULL, FullCore(2)), (MIDDLE, MiddleCore(TINY.large, shards=2)), ("hash", HashCore(fraction, TIE_BREAKER, 2))
    ):  # fmt: skip
        found = shard_rows(lab, core, 2)
        together = np.sort(np.concatenate(found))
        if core == MIDDLE:
            assert np.array_equal(np.sort(lab.ranking.nearest(MiddleCore._share, TINY.large)), ids[together])
        else:
            assert np.array_equal(ids[way.is_core(ids)], ids[together])
        for number, rows in enumerate(found):
            assert set(sharding_of(way).of(ids[rows])) == {number}


def test_an_empty_shard_is_refused(lab):
    with pytest.raises(ValueError, match="some are empty"):
        shard_rows(lab, MIDDLE, 64)


@pytest.mark.parametrize("case", [Case(MIDDLE, 2, 1.0, 9), Case(FULL, 1, 1.0, 3), Case(MIDDLE, 2, 0.5, 9)])
def test_a_case_by_hand(lab, measured, case):
    """Each shard's network alone, one SVM over all of their features, and the vote of the same networks."""
    found, how = measured[PART]["pieces"][case.name], TINY.recipe
    blocks, scores = [], []
    template = shards.network(lab, case.width)
    for number, rows in enumerate(shard_rows(lab, case.core, case.shards)):
        run = train(
            template, lab.training.select(lab.training.ids[rows]), Sharding(case.shards).seed(lab.seeds(1)[0], number),
            epochs=case.epochs, batch_size=how.batch_size, lr=how.lr, device="cpu", threads=1,
        )  # fmt: skip
        extractor, _ = split(run.network)
        blocks.append([embed(extractor, side, device="cpu") for side in (lab.training, lab.test)])
        scores.append(embed(run.network, lab.test, device="cpu"))
    X, queries = (np.hstack(side) for side in zip(*blocks, strict=True))
    heads = LinearSVM().fit(X, lab.training.labels)
    assert found["accuracy"] == [heads.score(queries, lab.test.labels)]
    assert found["vote"] == [np.mean(by_majority(np.stack(scores)) == lab.test.labels)]
    assert found["features"] == X.shape[1]
    core = np.concatenate(shard_rows(lab, case.core, case.shards))
    assert found["influential"] == [len(np.setdiff1d(heads.support_, core))]


def test_epochs_grow_with_shards_and_work_does_not():
    known = {case.name: case for case in cases(PROFILES["paper"])}
    assert {(case.shards, case.epochs) for case in known.values() if case.core == FULL} == {
        (1, 18), (2, 27), (4, 36), (8, 36), (16, 36)
    }  # fmt: skip
    assert "middle, S = 4, width 0.25, 72 epochs" in known
    assert len(known) == len(cases(PROFILES["paper"]))


# The study


def test_the_result_has_every_method(measured):
    found = measured[PART]
    assert found["cells"].keys() == {case.name for case in cases(TINY)}
    lines = found["work"]
    assert {line["method"] for line in lines} == {"MaxRR", "SISA"}
    (again,) = [line for line in lines if (line["method"], line["S"], line["slices"]) == ("SISA", 1, 1)]
    assert again["work"]["random"]["1"] == pytest.approx(TINY.recipe.epochs * (RECORDS - 1))
    for line in lines:
        (seconds,) = line["seconds"].values()
        assert (
            line["work"]["random"].keys() == line["touched"]["random"].keys() == seconds["random"].keys() == {"1", "10"}
        )
        if line["core"] != FULL:
            assert line["work"]["random"]["1"] < line["work"]["core"]["1"]


def test_an_interrupted_study_goes_on(lab, measured, tmp_path, monkeypatch):
    other, done = with_ranking(tiny_lab(tmp_path), lab.ranking), []

    def stop(lab, case, whole=shards.try_case):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(case)
        return whole(lab, case)

    with monkeypatch.context() as patch:
        patch.setattr(shards, "try_case", stop)
        with pytest.raises(KeyboardInterrupt):
            measure(other)
    kept = json.loads((tmp_path / "shards.json").read_text())["pieces"]
    assert list(kept) == [case.name for case in done]
    partly = summarise(other, other.results(PART))
    assert partly["cells"] == {name: measured[PART]["cells"][name] for name in kept}
    found = measure(other)
    assert found["pieces"].keys() == measured[PART]["pieces"].keys()
    assert found["cells"] == measured[PART]["cells"]
    assert {name: found["pieces"][name] for name in kept} == kept


def test_seconds_of_a_second_machine_stand_beside_those_of_the_first(lab, measured, tmp_path):
    other = with_ranking(tiny_lab(tmp_path), lab.ranking)
    results, known = other.results(PART), measured[PART]
    pieces = dict(known["pieces"])
    (name,) = [name for name in pieces if name.startswith("seconds, ")]
    pieces["seconds, NVIDIA H200"] = pieces[name]
    results.write({"setting": results.setting, "made": {}, "pieces": pieces})
    for line in measure(other)["work"]:
        first, second = line["seconds"].values()
        assert first == second
