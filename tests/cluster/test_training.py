"""Networks that are trained by a cluster's workers: the bytes of this machine, and each kept as soon as it is there."""

from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import nn

from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import MLP, Recipe, train_many
from maxrr.parallel import Ray
from maxrr.parallel.engine import Engine, InProcess, Threads
from maxrr.unlearning import MaxRR
from tests.small_networks import one_thread  # noqa: F401

pytestmark = pytest.mark.usefixtures("cluster")

NETWORK, SEEDS = MLP(64, 10, hidden=(16,)), (5, 2, 9)


@dataclass
class Watched:
    """An engine that notes what it is given."""

    engine: Engine
    items: list = field(default_factory=list)

    def map(self, function, items, *shared):
        self.items += items
        return self.engine.map(function, items, *shared)


@pytest.fixture(scope="module")
def digits():
    training, _ = load("digits")
    return training.select(training.ids[:200])


def weights(network):
    return [value.numpy().tobytes() for value in network.state_dict().values()]


def facts(runs):
    return [(run.seed, run.loss, run.accuracy, run.environment, weights(run.network)) for run in runs]


def test_has_the_bytes_of_this_machine(digits, engine):
    without = [digits.ids[:3], digits.ids[40:43], digits.ids[80:83]]
    settings = {"epochs": 2, "lr": 0.01, "device": "cpu", "without": without}
    here, there = (list(train_many(NETWORK, digits, SEEDS, **settings, engine=one)) for one in (None, engine))
    assert facts(here) == facts(there)
    assert not any(run.network.training for run in there)


DROPOUT = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Dropout(0.3), nn.Linear(8, 10))


@pytest.mark.parametrize("network", [NETWORK, DROPOUT], ids=["plain", "dropout"])
def test_threads_draw_one_at_a_time(digits, network):
    """PyTorch has one source of random numbers for all of them."""
    settings = {"epochs": 1, "device": "cpu"}
    here = [run for seed in range(8) for run in train_many(network, digits, [seed], **settings)]
    state = torch.get_rng_state()
    assert facts(here) == facts(train_many(network, digits, range(8), **settings, engine=Threads(4)))
    assert torch.equal(state, torch.get_rng_state())


def test_another_default_type_is_refused(digits):
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ValueError, match="default type, float32"):
            train_many(NETWORK, digits, SEEDS, device="cpu", engine=InProcess())
    finally:
        torch.set_default_dtype(torch.float32)


def test_networks_that_draw_numbers_as_they_go(digits):
    """Here one at a time, since PyTorch has one source of these; each worker has its own."""
    network = DROPOUT
    with pytest.warns(UserWarning, match="one at a"):
        here = list(train_many(network, digits, SEEDS, epochs=1, device="cpu"))
    assert facts(here) == facts(train_many(network, digits, SEEDS, epochs=1, device="cpu", engine=Ray()))


def test_a_run_that_fails_is_named_and_comes_after_those_before(digits, engine):
    """Of three runs one sees records that no network can be trained on."""
    inputs = digits.inputs.copy()
    inputs[:3] = 3e38
    without = [digits.ids[:3], digits.ids[3:6], digits.ids[:3]]
    runs = train_many(
        NETWORK, replace(digits, inputs=inputs), SEEDS, epochs=2, lr=0.01, device="cpu", without=without, engine=engine
    )
    assert next(runs).seed == 5
    with pytest.raises(ValueError, match="seed 2 diverged"):
        next(runs)


def test_tells_how_far_it_is(digits):
    told = []

    def progress(what, done, total, **numbers):
        told.append((done, total, set(numbers)))

    recipe = Recipe(epochs=2, lr=0.01)
    list(train_many(NETWORK, digits, SEEDS, recipe=recipe, device="cpu", progress=progress, engine=Ray()))
    each = 2 * len(digits)
    assert told == [(0, 3 * each, set()), *((count * each, 3 * each, {"loss", "accuracy"}) for count in (1, 2, 3))]


# Models


def test_a_core_in_shards(digits, engine):
    """Fitted, and after a request that trains several of them again."""

    def model(where):
        core = HashCore(0.8, key="house", shards=4)
        return MaxRR(NETWORK, core, epochs=8, batch_size=16, lr=0.01, device="cpu", engine=where).fit(digits)

    watched = Watched(engine)
    here, there = model(None), model(watched)
    for leaving in (None, here.core_.ids[:6].copy()):
        if leaving is not None:
            watched.items.clear()
            for one in (here, there):
                one.unlearn(leaving, core_policy="retrain")
        assert len(watched.items) > 1
        assert weights(here.extractor_) == weights(there.extractor_)
        assert here.model_hash_ == there.model_hash_
