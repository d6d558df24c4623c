"""Whether a network comes back from its layers and its `state_dict()` is seen before and after it is trained."""

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.nets import LeNet5, train, train_many
from maxrr.nets.probe import Fingerprint, check_comes_back, made_up, probed, with_weights_of
from maxrr.nets.seeding import pinned
from maxrr.parallel.engine import InProcess
from tests import hidden_networks as networks

SHAPE, KIND = (8,), np.dtype(np.float32)
EACH_TIME_ANOTHER = [networks.DrawnAttribute, networks.DrawnDeep, networks.UnregisteredLayer]
TOKENS = np.dtype(np.int64)
FINE = [
    networks.Plain, networks.Counting, networks.Cache, networks.Table, networks.Registered, networks.normed,
    networks.last_channels,
]  # fmt: skip


def records(count=60):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(count, 8)).astype(np.float32)
    return Dataset(inputs, (inputs[:, 0] > 0).astype(np.int64), ("no", "yes"), np.arange(count))


@pytest.mark.parametrize("kind", EACH_TIME_ANOTHER, ids=lambda kind: kind.__name__)
def test_what_is_another_each_time_is_refused_as_a_module_and_as_a_function(kind):
    for network in (kind(), kind):
        with pytest.raises(DataError, match=r"state_dict\(\) does not"):
            check_comes_back(network, SHAPE, KIND)


def test_a_module_with_a_table_in_a_plain_attribute_is_refused_and_a_function_that_makes_it_is_not():
    check_comes_back(networks.AttributeTable, SHAPE, KIND)
    with pytest.raises(DataError, match="perhaps 'places'"):
        check_comes_back(networks.AttributeTable(), SHAPE, KIND)


@pytest.mark.parametrize("kind", [networks.DrawnNumber, networks.Born])
def test_a_setting_that_is_drawn_is_refused_where_a_function_draws_it(kind):
    """Whether or not something depends on it: nobody could open such a model again."""
    with pytest.raises(DataError, match="made anew"):
        check_comes_back(kind, SHAPE, KIND)


def test_records_of_which_something_else_than_numbers_comes_are_not_looked_at():
    with pytest.raises(DataError, match="perhaps 'frequencies'"):
        check_comes_back(networks.Logarithms(), SHAPE, KIND)


def test_a_module_that_a_function_keeps_is_left_as_it_is():
    kept = networks.Plain()
    check_comes_back(lambda: kept, SHAPE, KIND)
    assert kept.training


def test_the_number_of_threads_stays_as_it_was():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pinned(1):
            Fingerprint.of(networks.Plain(), SHAPE, KIND)
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", FINE, ids=lambda kind: kind.__name__)
def test_what_comes_back_is_taken(kind):
    used = kind()
    with torch.no_grad():
        used(torch.randn(3, 8))  # caches are filled
    for network in (kind, used):
        check_comes_back(network, SHAPE, KIND)
    run = train(kind, records(), 0, epochs=2, device="cpu")
    assert probed(with_weights_of(run.network, kind(), SHAPE, KIND), SHAPE, KIND).tobytes() == probed(
        run.network, SHAPE, KIND
    ).tobytes()  # fmt: skip


@pytest.mark.parametrize("kind", [networks.MovedBuffer, networks.MovedNumber], ids=lambda kind: kind.__name__)
def test_what_training_moves_is_refused_when_it_is_trained(kind):
    """Here, as runs that were stored, or made by a worker, would be others."""
    check_comes_back(kind, SHAPE, KIND)
    with pytest.raises(DataError, match=r"state_dict\(\) does not"):
        train(kind, records(), 0, epochs=2, device="cpu")
    with pytest.raises(DataError, match=r"state_dict\(\) does not"):
        list(train_many(kind(), records(), range(3), epochs=2, device="cpu"))


def test_a_run_is_what_its_file_would_give(tmp_path):
    """Nothing that a forward pass left in the network is in the run."""
    run = train(networks.Cache, records(), 0, epochs=1)
    assert run.network.seen is None
    (stored,) = train_many(networks.Cache, records(), [0], epochs=1)
    (again,) = train_many(networks.Cache, records(), [0], epochs=1, engine=InProcess())
    assert vars(again.network)["maps"] == vars(stored.network)["maps"] == []


def test_fingerprints_tell_layers_and_hidden_numbers_apart_and_allow_rounding_elsewhere():
    torch.manual_seed(0)
    one, other = networks.AttributeTable(), networks.AttributeTable()
    other.load_state_dict(one.state_dict())
    mine, same = (Fingerprint.of(network, SHAPE, KIND) for network in (one, other))
    assert mine.differs_from(same, exactly=True) == ""
    other.places = other.places + 1e-7
    rounded = Fingerprint.of(other, SHAPE, KIND)
    assert rounded.differs_from(mine, exactly=True)
    assert not rounded.differs_from(mine, exactly=False)
    other.places = other.places + 0.1
    assert "features" in Fingerprint.of(other, SHAPE, KIND).differs_from(mine, exactly=False)
    assert "layers" in Fingerprint.of(other, SHAPE, KIND).differs_from(mine, exactly=True)
    tanh = networks.AttributeTable()
    tanh.activation = torch.tanh
    tanh.load_state_dict(one.state_dict())
    assert "layers" in Fingerprint.of(tanh, SHAPE, KIND).differs_from(mine, exactly=False)


def test_made_up_records_are_never_drawn_from_records_and_are_always_the_same():
    for kind in (np.float32, np.uint8, np.int64, bool):
        first, again = made_up((3, 2), np.dtype(kind)), made_up((3, 2), np.dtype(kind))
        assert (first.dtype, first.shape) == (np.dtype(kind), (64, 3, 2))
        assert first.tobytes() == again.tobytes()


def test_random_numbers_of_others_go_on_as_they_were():
    network = LeNet5((1, 8, 8))
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    check_comes_back(networks.Plain, SHAPE, KIND)
    Fingerprint.of(network, (1, 8, 8), np.dtype(np.uint8))
    assert torch.equal(torch.rand(4), expected)


class Picky(nn.Module):
    """Takes ones alone, as a layer for lengths of sequences does."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Linear(8, 2)

    def forward(self, x):
        if not bool((x == 1).all()):
            raise ValueError("lengths are ones")
        return self.weights(x)


def test_a_network_that_takes_no_random_records_is_given_ones_and_one_that_takes_nothing_is_refused():
    assert probed(Picky(), SHAPE, KIND).shape == (8, 2)
    with pytest.raises(DataError, match="takes no made-up"):
        probed(nn.Linear(7, 2), SHAPE, KIND)


@pytest.mark.parametrize("known", [50, 3000, 100_000])
def test_tokens_are_drawn_as_widely_as_the_network_takes_them(known):
    """0 and 1 alone would miss what a table says of words."""
    torch.manual_seed(0)
    network = networks.Words(known)
    before = probed(network, (9,), TOKENS)
    network.weights = network.weights.clone()
    network.weights[2:] += 1.0
    assert probed(network, (9,), TOKENS).tobytes() != before.tobytes()
    with pytest.raises(DataError, match="perhaps 'weights'"):
        check_comes_back(networks.Words(known), (9,), TOKENS)


def test_of_several_inputs_each_of_integers_is_drawn_widely_in_turn():
    kind = np.dtype([("tokens", "<i8", (9,)), ("lengths", "<i8"), ("mask", "?", (9,))])
    seen = []
    network = networks.Sequences(40, seen)
    probed(network, (), kind)
    assert max(int(tokens.max()) for tokens, _ in seen) >= 7
    assert max(int(lengths.max()) for _, lengths in seen) >= 2


def test_a_buffer_that_comes_with_the_first_record_is_refused_in_a_sentence():
    with pytest.raises(DataError, match=r"state_dict\(\) does not"):
        train(networks.Late, records(), 0, epochs=1, device="cpu")


def lazy():
    return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("network", [lazy(), lazy], ids=["module", "function"])
def test_layers_that_get_weights_at_the_first_call_are_refused(network):
    with pytest.raises(DataError, match="first call"):
        check_comes_back(network, SHAPE, KIND)
