"""How long a plan says a request will take: what is counted, and that it follows from how long fitting took."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.core import HashCore
from maxrr.core.shards import sharding_of
from maxrr.nets.training import warm_up
from maxrr.unlearning import fitting as model_
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.facts import Durations
from tests.unlearning.problems import CORES, core_of, fresh, kinds, table, table_model

counts = st.integers(0, 5000)
seconds = st.floats(0.0, 1e6)

TRAIN, EMBED, HEAD = 1e6, 1e3, 1.0  # each far above what there can be of the next


@pytest.fixture
def model():
    """One whose seconds say what they are made of."""
    found = table_model()
    found._state = replace(found._state, durations=Durations(TRAIN, EMBED, HEAD))
    return found


def test_a_pace_is_seconds_a_piece():
    assert Durations.measured([6.0, 8.0, 9.0], core=3, records=4, heads=2) == Durations(2.0, 2.0, 4.5)


@pytest.mark.parametrize(("shards", "touched"), [(1, 1), (4, 3)])
def test_a_plan_counts_the_shards_that_are_trained_again(shards, touched):
    found = fresh(HashCore(0.9, key="house", shards=shards, by="record"), table()).fit(table())
    found._state = replace(found._state, durations=Durations(TRAIN, EMBED, HEAD))
    shard = sharding_of(found.core).of(found.core_.ids)
    plan = found.plan([found.core_.ids[shard == number][0] for number in range(touched)], core_policy="retrain")
    embedded = EMBED * plan.embeds * touched / shards
    assert plan.seconds == pytest.approx(TRAIN * plan.trains + embedded + HEAD * plan.heads)


def test_what_pytorch_loads_for_the_first_step_of_a_process_is_not_counted(monkeypatch):
    """It takes seconds, and a plan after a small first fit said that training again takes as long."""
    order, train = [], Blueprint.train_extractor
    clock = model_.time.perf_counter
    monkeypatch.setattr(model_, "warm_up", lambda device: order.append("warm up"))
    timed = lambda *given, **how: order.append("train") or train(*given, **how)  # noqa: E731
    monkeypatch.setattr(Blueprint, "train_extractor", timed)
    monkeypatch.setattr(model_.time, "perf_counter", lambda: order.append("clock") or clock())
    fresh(CORES["hash"], table()).fit(table())
    assert order[order.index("warm up") :][:3] == ["warm up", "clock", "train"]
    warm_up("cpu")


def test_without_a_core_nothing_is_trained():
    assert Durations.measured([0.0, 8.0, 9.0], core=0, records=4, heads=3).train == 0.0


@given(st.builds(Durations, seconds, seconds, seconds), counts, counts, counts, counts)
def test_what_is_counted(durations, forgotten, heads, trains, embeds):
    """Doing nothing takes no time, more of anything no less, and moving a head less than solving it."""
    moved, anew = (durations.expected(forgotten, heads, trains, embeds, how) for how in (False, True))
    assert durations.expected(forgotten, 0, 0, 0, False) == 0.0
    assert 0.0 <= moved <= anew
    assert anew == pytest.approx(trains * durations.train + embeds * durations.embed + heads * durations.head)
    assert moved <= durations.expected(forgotten + 100, heads, trains, embeds, False)
    assert anew <= durations.expected(forgotten, heads + 1, trains + 1, embeds + 1, True)


def test_what_moving_a_head_takes_is_a_share_of_a_solve():
    """By records for each head: thirty that move ten heads are a few for each."""
    durations = Durations(0.0, 0.0, 100.0)
    assert durations.expected(0, 2, 0, 0, False) == pytest.approx(2 * 15 / 2)
    assert durations.expected(80, 10, 0, 0, False) == pytest.approx(10 * 15 * 0.75)
    many = durations.expected(1000, 10, 0, 0, False)
    assert many == durations.expected(9999, 10, 0, 0, False) == pytest.approx(10 * 15)
    assert durations.expected(0, 2, 0, 0, False, 0.01) == pytest.approx(2 * 42 / 2)
    assert durations.expected(0, 2, 0, 0, False, 0.1) == 2 * 30
    assert durations.expected(0, 2, 0, 0, False, np.inf) == durations.expected(99, 2, 0, 0, False, np.inf) == 2 * 60


def test_a_fitted_model_has_a_pace():
    durations = table_model()._state.durations
    assert durations.train > 0.0
    assert durations.embed > 0.0
    assert durations.head > 0.0


def test_what_has_no_influence_takes_no_time(model):
    _, _, neither = kinds(model, table())
    assert model.plan(neither[:3]).seconds == 0.0


def test_a_head_that_moves(model):
    _, influential, _ = kinds(model, table())
    plan = model.plan(influential[:1])
    assert plan.heads >= 1
    most = min(0.15 + 27.0 * model.heads_.n_features_in_ / model._state.records.count, 0.6)
    assert plan.seconds == pytest.approx(plan.heads * most * (0.5 + 0.5 / plan.heads / 16) * HEAD)


def test_so_many_that_heads_are_fitted_anew():
    records = table(count=600)
    found = fresh(HashCore(0.05, key="house"), records).fit(records)
    found._state = replace(found._state, durations=Durations(TRAIN, EMBED, HEAD))
    _, influential, _ = kinds(found, records)
    few, many = found.plan(influential[:8]), found.plan(influential)
    assert few.seconds < 0.5 * few.heads * HEAD
    assert many.seconds == pytest.approx(many.heads * HEAD)
    assert found._state.heads._without(found._state.records.rows(influential))._fitted.solution.work.cold_solves > 0


def test_free_records_beside_it_take_no_more_time(model):
    _, influential, free = kinds(model, table())
    assert model.plan([influential[0], *free[:5]]).seconds == model.plan(influential[:1]).seconds


def test_training_again_is_all_of_it(model):
    core = core_of(model)
    plan = model.plan(core[:2], core_policy="retrain")
    records, left = len(table()) - 2, len(core) - 2
    assert (plan.trains, plan.embeds, plan.heads) == (left, records, 3)
    assert plan.seconds == pytest.approx(left * TRAIN + records * EMBED + 3 * HEAD)


def test_leaving_the_extractor_alone_trains_nothing(model):
    plan = model.plan(core_of(model)[:2], core_policy="keep-extractor")
    assert (plan.trains, plan.embeds) == (0, 0)
    assert plan.seconds < EMBED


def test_what_was_forgotten_before_takes_no_time(model):
    _, influential, _ = kinds(model, table())
    model.unlearn(influential[:1])
    assert model.plan(influential[:1]).seconds == 0.0


def test_a_pace_stays_through_requests(model):
    before = model._state.durations
    core, influential, _ = kinds(model, table())
    model.unlearn(influential[:1])
    model.replace(influential[1], np.zeros(5))
    model.unlearn(core[:1], core_policy="retrain")
    assert model._state.durations == before


def test_two_classes_have_one_head():
    records = table(classes=2)
    model = fresh(CORES["hash"], records).fit(records)
    plan = model.plan(core_of(model)[:1], core_policy="retrain")
    other = copy.deepcopy(model)
    other.unlearn(core_of(model)[:1], core_policy="retrain")
    assert plan.heads == len(other.heads_.coef_) == 1
