"""Two cores after longer trainings: one training passes through all lengths, and the rule is what was written down."""

from dataclasses import replace

import numpy as np
import pytest

from lab import core_epochs
from lab.core_epochs import CORES, LENGTHS, MARGIN, RANKINGS, decide, judge, lengths
from lab.frontier import measure_core
from lab.profiles import PAPER
from maxrr.core import MiddleCore
from tests.lab.problems import TINY, in_this_process, tiny_lab

SEEDS = 20


def found(lead, free=-0.05, spread=0.001, rankings=(0.0, 0.0, 0.0)):
    """What rankings could have given: the middle ahead by a mean lead, each ranking by something more."""
    noise = np.linspace(-spread, spread, SEEDS)
    quantities = [(lead + more + noise, free + noise) for more in rankings]
    return [
        {
            "middle": {"accuracy": (0.89 + accuracy).tolist(), "free": (0.6 + share).tolist()},
            "frequency": {"accuracy": [0.89] * SEEDS, "free": [0.6] * SEEDS},
        }
        for accuracy, share in quantities
    ]  # fmt: skip


def test_lengths_and_runs_at_the_papers_size(tmp_path):
    lab = replace(tiny_lab(tmp_path), profile=PAPER)
    assert lengths(lab) == [18, 36, 72]
    assert (len(RANKINGS), lab.profile.few, MiddleCore.runs, lab.profile.large) == (3, SEEDS, 10, 20_000)


@pytest.mark.parametrize(
    ("lead", "outcome"),
    [
        (0.0, "equivalent"),
        (0.0007, "equivalent"),
        (0.004, "middle leads"),
        (-0.004, "frequency leads"),
        (0.002, "open"),
    ],
)
def test_a_lead_is_judged_by_its_interval_and_the_margin(lead, outcome):
    assert judge(found(lead))["outcome"] == outcome


def test_the_interval_is_that_of_the_seeds_means_over_rankings():
    rng = np.random.default_rng(0)
    values = rng.normal(0.0005, 0.001, size=(3, SEEDS))
    rankings = [{**one, "middle": {**one["middle"], "accuracy": (0.89 + each).tolist()}}
                for one, each in zip(found(0.0), values, strict=True)]  # fmt: skip
    lead = judge(rankings)["accuracy"]
    over_seeds = values.mean(0)
    assert lead["mean"] == pytest.approx(over_seeds.mean())
    assert lead["reach"] == pytest.approx(1.7291328 * over_seeds.std(ddof=1) / np.sqrt(SEEDS))  # t of 19 at 95 %
    assert lead["rankings"] == pytest.approx(values.mean(1).tolist())


def test_one_ranking_beyond_the_margin_leaves_it_open():
    """The mean of the three is zero, and still a user who ranks once may lose more than the margin."""
    far = found(0.0, rankings=(1.5 * MARGIN, 0.0, -1.5 * MARGIN))
    assert judge(far)["accuracy"]["mean"] == pytest.approx(0.0)
    assert judge(far)["outcome"] == "open"


@pytest.mark.parametrize(
    ("leads", "free", "default"),
    [
        ((0.0, 0.0), -0.05, "frequency"),
        ((0.0, -0.004), -0.05, "frequency"),  # better in both
        ((0.0, 0.004), -0.05, "middle"),
        ((0.002, 0.0), -0.05, "middle"),  # open
        ((0.0, 0.0), 0.05, "middle"),
        ((0.0, 0.0), 0.0, "middle"),  # as many free: nothing to change for
    ],
)
def test_the_default_follows_from_both_longer_trainings(leads, free, default):
    assert decide([judge(found(lead, free)) for lead in leads]) == default


@pytest.mark.long
def test_one_training_is_trainings_of_all_lengths(measured, tmp_path):
    """The middle of the first ranking, trained anew for the shortest and the longest time."""
    lab = tiny_lab(tmp_path)
    pieces = measured["core-epochs"]["pieces"]
    with in_this_process():
        seed = core_epochs.seed_of(lab, core_epochs.STREAM, 1)
        core = CORES["middle"](replace(lab, seed=seed), TINY.large)
    models = replace(lab, seed=core_epochs.seed_of(lab, core_epochs.STREAM))
    for times in (LENGTHS[0], LENGTHS[-1]):
        epochs = times * TINY.recipe.epochs
        profile = replace(TINY, trials=TINY.few, recipe=replace(TINY.recipe, epochs=epochs))
        alone = measure_core(replace(models, profile=profile), core)
        mine = pieces["ranking 1"][str(epochs)]["middle"]
        np.testing.assert_allclose(mine["accuracy"], alone["accuracy"], atol=0.03)  # one test record in forty
        np.testing.assert_allclose(mine["free"], alone["free"], atol=0.04)


def test_rankings_and_models_have_seeds_of_their_own(tmp_path):
    lab, stream = tiny_lab(tmp_path), core_epochs.STREAM
    seeds = [
        core_epochs.seed_of(lab, stream),
        *(core_epochs.seed_of(lab, stream, number) for number in RANKINGS.values()),
    ]
    assert len({lab.seed, *seeds}) == 1 + len(seeds)
