"""Advice on the size of a core: tried on a sample, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr.core import Frozen
from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.nets import MLP
from maxrr.unlearning import MaxRR, advise
from maxrr.unlearning.advising import part_of

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
