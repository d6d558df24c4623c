"""The grid of readings, and the rule that picks the best: on support vectors and accuracy alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lab import readings
from lab.comparison import spread
from lab.profiles import PAPER, PROFILES
from lab.published import published, table
from lab.readings import (
    GRID,
    Reading,
    choose,
    count_by_runs,
    expected,
    jackknife,
    judge,
    leave_one_out,
    moved,
    profile_of,
    score,
)
from lab.rule import RELATIVE
from lab.stacking import train_together
from maxrr.core.ranking import ranking_seeds
from tests.lab.problems import TINY, tiny_lab

ROOT = Path(__file__).parents[2]
STORED = ROOT / "results" / "paper" / "readings.json"
PAPERS = list(table()["No"].values())
MEAN, ERROR = np.mean(PAPERS), spread() / 6**0.5


def papers_counts(runs=10, records=6_000_000):
    """So many records that rounding does not matter."""
    return [round(records * share) for share in expected(runs)]


# The rule


def test_the_papers_own_histogram_thinned_has_score_zero():
    for runs in (9, 10):
        assert score(papers_counts(runs), [MEAN] * runs) == pytest.approx(0.0, abs=1e-3)


def test_all_of_the_papers_runs_give_its_histogram_back():
    found = published()["support_vector_histogram"]
    counts = (60_000 * np.array(expected(100))).round().astype(int).tolist()
    assert counts[1:] == list(found["count_by_number_of_runs"].values())
    assert counts[0] == 60_000 - found["derived"]["ever_support"]


def test_thinning_is_drawing_runs():
    """By drawing: a record of j runs of 100 is in as many of ten as fall among its j."""
    rng, draws = np.random.default_rng(0), 40
    often = np.repeat(*zip(*((int(j), n) for j, n in published()["support_vector_histogram"][
        "count_by_number_of_runs"].items()), strict=True))  # fmt: skip
    drawn = [np.bincount(rng.hypergeometric(often, 100 - often, 10), minlength=11) for _ in range(draws)]
    np.testing.assert_allclose(np.mean(drawn, 0)[1:], 60_000 * np.array(expected(10))[1:], rtol=0.03)


def test_a_score_by_hand():
    """A tenth of those ever influential is moved to another column; accuracy is three errors away."""
    counts = papers_counts()
    tenth = round(0.1 * sum(counts[1:]))
    counts[10] -= tenth
    counts[0] += tenth
    assert moved(counts) == pytest.approx(0.1, abs=1e-5)
    assert score(counts, [MEAN] * 10) == pytest.approx(0.1 / RELATIVE, abs=1e-3)
    assert score(counts, [MEAN - 3.0 * ERROR] * 10) == pytest.approx(5.0, abs=1e-3)  # 3, 4, 5


def test_of_equal_scores_the_shortest_training_is_the_best():
    found = {one: {"by_runs": papers_counts(), "accuracy": [MEAN] * 10} for one in GRID}
    assert choose(GRID, found) == Reading("divided", 128, "one-vs-rest", 3)
    better = Reading("raw", 32, "one-vs-one", 18)
    found = {one: value if one == better else value | {"accuracy": [MEAN + 0.01] * 10} for one, value in found.items()}
    assert choose(GRID, found) == better


def test_the_grid_is_that_of_the_rule():
    assert len(GRID) == len({one.name for one in GRID}) == 90
    assert {one.epochs for one in GRID} == {3, 5, 8, 12, 18}
    assert {one.batch_size for one in GRID} == {32, 64, 128}
    assert (PAPER.trials, PAPER.recipe.lr, PAPER.pixels) == (10, 1e-3, "divided")


# Noise


def worlds(rng, shift, records=20_000):
    """Ten runs of records with the paper's frequencies, and effects of runs that move all records together."""
    often = np.repeat(*zip(*((int(j), n) for j, n in published()["support_vector_histogram"][
        "count_by_number_of_runs"].items()), strict=True))  # fmt: skip
    share = rng.choice(np.concatenate([np.zeros(60_000 - len(often)), often / 100]), records)
    with np.errstate(divide="ignore"):
        logits = np.log(share) - np.log1p(-share)
    effects = rng.normal(shift, 0.25, 10)
    support = rng.random((10, records)) < 1.0 / (1.0 + np.exp(-(logits + effects[:, None])))
    return {"accuracy": (MEAN - 0.004 * effects + rng.normal(0.0, 0.003, 10)).tolist(), **count_by_runs(support)}


def test_the_jackknifes_error_is_that_of_repeating_everything():
    rng = np.random.default_rng(1)
    found = [worlds(rng, 0.5) for _ in range(40)]
    true = np.std([score(one["by_runs"], one["accuracy"]) for one in found], ddof=1)
    told = np.sqrt(np.mean([jackknife(leave_one_out(one)) ** 2 for one in found]))
    assert 0.7 < told / true < 1.5


def test_the_best_is_within_its_own_noise_and_what_is_far_is_not():
    rng = np.random.default_rng(2)
    near, far = worlds(rng, 0.0), worlds(rng, 1.5)
    assert judge(near, near)["behind"] == 0.0
    assert judge(near, near)["within_noise"]
    told = judge(far, near)
    assert told["behind"] > 4.0
    assert not told["within_noise"]


def test_histograms_without_a_run_are_those_of_the_others():
    support = np.random.default_rng(0).random((4, 50)) < 0.4
    found = count_by_runs(support)
    assert found["by_runs"] == np.bincount(support.sum(0), minlength=5).tolist()
    for run, counts in enumerate(found["without"]):
        assert counts == np.bincount(np.delete(support, run, 0).sum(0), minlength=4).tolist()
    assert found["a_run"] == support.sum(1).tolist()


# Measuring


def test_a_look_after_three_epochs_is_a_training_of_three(tmp_path):
    """Byte for byte in a stack; by itself on the CPU the same network is trained but for rounding."""
    lab, seeds, looked = tiny_lab(tmp_path).with_pixels("standardised"), [3, 4], {}

    def flat(networks):
        return [torch.cat([value.detach().ravel() for value in one.parameters()]) for one in networks]

    def look(epoch, networks):
        looked[epoch] = flat(networks)

    train_together(lab, seeds, recipe=replace(TINY.recipe, epochs=6), look=look)
    short = replace(TINY.recipe, epochs=3)
    for one, other in zip(looked[3], flat(train_together(lab, seeds, recipe=short)), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(looked[3], flat(lab.train(seeds, lab.training, recipe=short)), strict=True):
        assert float((one - other).abs().mean()) < 1e-5
    assert not torch.equal(looked[3][0], looked[6][0])


def test_every_reading_is_measured_with_the_rankings_seeds(lab, measured):
    found = measured["readings"]
    grid = readings.GRID
    assert list(found["cells"]) == list(found["scores"]) == [one.name for one in grid]
    assert found["runs"] == 2
    assert list(found["pieces"]) == list(dict.fromkeys(one.training for one in grid))
    for scheme in ("one-vs-rest", "one-vs-one"):
        best = found["best"][scheme]
        scores = {one.name: found["scores"][one.name] for one in grid if one.heads == scheme}
        assert scores[best["name"]]["score"] == min(one["score"] for one in scores.values())
        assert scores[best["name"]]["within_noise"]
    looked = found["pieces"]["divided, batches of 32"]["one-vs-rest, 3 epochs"]
    seeds, recipe = ranking_seeds(lab.seed, 2), replace(lab.profile.recipe, batch_size=32, epochs=3)
    features = lab.embed(iter(train_together(lab, seeds, recipe=recipe)))
    solved = list(lab.fit_heads(features, [None] * 2, "one-vs-rest"))
    assert looked["accuracy"] == lab.accuracies(features, solved)
    assert looked["a_run"] == [int(heads.influential.sum()) for heads in solved]


def test_the_winners_profile():
    best = {"one-vs-one": {"pixels": "raw", "epochs": 5, "batch_size": 32, "heads": "one-vs-one", "name": "…"}}
    found = profile_of({"best": best}, "one-vs-one", PAPER)
    assert (found.name, found.heads, found.pixels) == ("reading-one", "one-vs-one", "raw")
    assert found.recipe == replace(PAPER.recipe, epochs=5, batch_size=32)
    assert (found.ranked, found.runs, found.few) == (100, 100, 20)


def test_profiles_of_readings_are_the_winners_of_the_stored_grid():
    """`profiles` names the winners. The stored scores are those of the stored counts."""
    content = json.loads(STORED.read_text(encoding="utf-8"))
    for scheme in ("one-vs-rest", "one-vs-one"):
        wanted = profile_of(content, scheme, PAPER)
        assert PROFILES[wanted.name] == wanted
    found = {one: content["pieces"][one.training][one.look] for one in GRID}
    for scheme, best in content["best"].items():
        winner = choose([one for one in GRID if one.heads == scheme], found)
        assert winner.name == best["name"]
        for one in GRID:
            if one.heads == scheme:
                assert content["scores"][one.name] == pytest.approx(judge(found[one], found[winner]))
