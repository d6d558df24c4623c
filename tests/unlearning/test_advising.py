"""Advice on the size of a core: tried on a sample, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from maxrr.core import Frozen
from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.nets import MLP
from maxrr.unlearning import MaxRR, advise
from maxrr.unlearning.advising import interval, part_of
from tests.unlearning.trainings import by_adamw

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # of few records


def people(count=1_000, noise=1.0):
    """Records of three classes, five of each person."""
    rng = np.random.default_rng(4)
    labels = np.arange(count) % 3
    inputs = noise * rng.normal(size=(count, 6)) + 2.0 * np.eye(6)[labels]
    return Dataset(inputs.astype(np.float32), labels, ("a", "b", "c"), np.arange(count), np.arange(count) // 5)


def model(start="seed"):
    return MaxRR(MLP(6, 3, hidden=(8,)), Frozen(), epochs=2, start=start, device="cpu")


def facts(advice):
    return [(trial.share, trial.accuracy, trial.influential) for trial in advice.trials]


def test_only_records_of_the_sample_are_looked_at():
    records = people()
    seen = part_of(records, 0.3, "key").ids
    others = np.setdiff1d(records.ids, seen)
    inputs = records.inputs.copy()
    inputs[others] = 1e3
    one, other = (
        advise(model(), each, shares=(0.2, 0.5), records=300, key="key")
        for each in (records, replace(records, inputs=inputs))
    )
    assert facts(one) == facts(other)
    assert one.sample == len(seen)
    for trial in one.trials:
        assert trial.low < trial.accuracy < trial.high
        assert 0 < trial.seconds < trial.retrain


def test_the_smallest_core_that_is_as_good_is_chosen_and_none_where_the_given_weights_do():
    advice = advise(model("given"), people(noise=0.1), shares=(0.5, 0.0, 0.2), records=600)
    assert [trial.accuracy for trial in advice.trials] == [1.0, 1.0, 1.0]
    assert (advice.best.share, advice.best.retrain) == (0.0, 0.0)
    drawn = advise(model(), people(noise=0.1), shares=(0.5, 0.0, 0.2), records=600)
    assert [trial.share for trial in drawn.trials] == [0.5, 0.2]
    assert drawn.best.share == 0.2


def test_a_request_costs_more_where_more_people_are_core_and_of_more_records():
    small, large = people(), people(2_000)
    few, many = advise(model(), small, shares=(0.1, 0.6), records=500).trials
    assert many.seconds > few.seconds
    assert advise(model(), large, shares=(0.6,), records=500).trials[0].retrain > 0


def test_what_cannot_be_tried_is_refused():
    with pytest.raises(DataError):
        advise(model(), people(), shares=(0.0,))
    with pytest.raises(DataError):
        advise(model(), people(60), records=1)


def for_records(shape, classes):
    network = MLP(shape[0], classes, hidden=(8,))
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(torch.linspace(-1.0, 1.0, weights.numel()).view_as(weights))
    return network


def test_the_network_as_it_is_given_is_tried_whatever_makes_it_and_trains_it():
    tried = advise(
        MaxRR(for_records, Frozen(), start="given", train=by_adamw, device="cpu"), people(), shares=(0.0, 0.5),
        records=400,
    )  # fmt: skip
    assert [trial.share for trial in tried.trials] == [0.0, 0.5]


@pytest.mark.parametrize(("persons", "each", "alike"), [(500, 1, 0.0), (30, 5, 0.5), (100, 5, 0.9), (8, 12, 0.5)])
def test_intervals_cover_the_truth_where_records_of_a_person_are_right_together(persons, each, alike):
    rng, truth, covered, runs = np.random.default_rng(0), 0.8, 0, 400
    for _ in range(runs):
        of_each = np.full(persons, truth)
        if alike:
            of_each = rng.beta(truth * (1 / alike - 1), (1 - truth) * (1 / alike - 1), persons)
        right = (rng.random((persons, each)) < of_each[:, None]).ravel()
        low, high = interval(right, np.repeat(np.arange(persons), each))
        covered += low <= truth <= high
    assert (
        covered / runs > 0.95 - 0.05
    )  # 4.6 standard deviations of a count of 400; of records alone it is 0.51 to 0.76


@pytest.mark.parametrize(("right", "people"), [([True] * 9, [1] * 9), ([True], None), ([False], [3])])
def test_one_person_tells_nothing_of_others(right, people):
    assert interval(np.array(right), None if people is None else np.array(people)) == (0.0, 1.0)


def test_records_of_one_person_each_have_wilsons_interval():
    found = binomtest(640, 800).proportion_ci(method="wilson")
    assert interval(np.arange(800) < 640, None) == pytest.approx((found.low, found.high), abs=1e-4)
    assert interval(np.ones(50, dtype=bool), None) == pytest.approx((0.925, 1.0), abs=1e-3)


def test_on_features_there_is_no_core_to_choose():
    with pytest.raises(DataError, match="no record is core"):
        advise(MaxRR.on_features(), Dataset(np.ones((40, 3)), np.arange(40) % 2, ("a", "b"), np.arange(40)))
