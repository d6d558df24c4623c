"""Names of networks: which have one, what it makes, and that it trains to the same bytes as the network itself."""

import functools
import json

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.data import DataError, Dataset
from maxrr.nets import MLP, LeNet5, train
from maxrr.nets.naming import NamedNetwork, as_recorded, name_of, suited, with_outputs
from maxrr.nets.seeding import begin
from tests.nets import problems
from tests.nets.problems import bytes_of, digits, same_run, table

HERE = "tests.nets.problems"
OURS = {
    "LeNet-5": (LeNet5, ((1, 8, 8), 10)),
    "LeNet-5 in colour": (LeNet5, ((3, 12, 9), 4)),
    "MLP": (MLP, (6, 3, (128, 64))),
    "narrow MLP": (MLP, (4, 2, (5,))),
}


def stored(named):
    """As it comes back from a file, where tuples have become lists."""
    facts = json.loads(json.dumps({"maker": named.maker, "arguments": named.arguments}))
    return NamedNetwork(facts["maker"], tuple(facts["arguments"]))


# Which networks have a name


@pytest.mark.parametrize("kind", OURS)
def test_our_own_networks_have_one(kind):
    maker, arguments = OURS[kind]
    named = name_of(maker(*arguments))
    assert named == NamedNetwork(f"maxrr.nets:{maker.__name__}", arguments)
    assert named.our_own
    assert str(stored(named)()) == str(maker(*arguments))


def test_what_is_left_out_is_named_too():
    """Or another version's defaults would make another network."""
    assert name_of(LeNet5()).arguments == ((1, 28, 28), 10)
    assert name_of(MLP(6, classes=3)).arguments == (6, 3, (128, 64))


def test_a_name_is_its_own():
    named = NamedNetwork("somewhere:thing", (1,))
    assert name_of(named) is named


@pytest.mark.parametrize("maker", [problems.normalised, problems.dropping, problems.HeadFirst, problems.ResNet])
def test_functions_and_classes_that_can_be_imported(maker):
    named = name_of(maker)
    assert named == NamedNetwork(f"{HERE}:{maker.__name__}")
    assert not named.our_own
    assert bytes_of(begin(stored(named), 4)) == bytes_of(begin(maker, 4))


def test_what_is_of_this_library():
    assert name_of(LeNet5).our_own
    assert not NamedNetwork("maxrr.netsuite:LeNet5").our_own
    assert not NamedNetwork("maxrr:nets").our_own


def local():
    class Inside(nn.Linear):
        def __init__(self):
            super().__init__(6, 3)

    return Inside


class Outer:
    class Inner(nn.Linear):
        def __init__(self):
            super().__init__(6, 3)

    def make(self):
        return nn.Linear(6, 3)


class Larger(LeNet5):
    """Says something else than what it was made with."""


def imposter():
    """Goes by the name of something else."""
    return nn.Linear(6, 3)


imposter.__module__, imposter.__qualname__ = HERE, "normalised"


@pytest.mark.parametrize(
    "network",
    [
        lambda: nn.Linear(6, 3), local(), Outer.Inner, Outer().make, Larger(), imposter,
        functools.partial(nn.Linear, 6, 3), functools.partial(problems.normalised),
        nn.Linear(6, 3), nn.Sequential(nn.Linear(6, 3)), problems.ResNet(),
    ],
)  # fmt: skip
def test_others_have_none(network):
    assert name_of(network) is None


def test_the_script_itself_cannot_be_imported_elsewhere(monkeypatch):
    """Its functions are found under `__main__` here, and another script's there."""

    def make():
        return nn.Linear(6, 3)

    make.__module__, make.__qualname__ = "__main__", "make"
    monkeypatch.setattr("__main__.make", make, raising=False)
    assert name_of(make) is None


def test_frozen_weights_cannot_be_made_from_a_name():
    network = LeNet5((1, 8, 8))
    network[0].weight.requires_grad_(False)
    assert name_of(network) is None
    network[0].weight.requires_grad_(True)
    assert name_of(network) is not None


def test_a_network_that_was_changed_has_no_name():
    """What its name makes would be another."""
    other_end = LeNet5((1, 8, 8))
    other_end[-1].out_features = 3
    other_end[-1].weight = nn.Parameter(torch.zeros(3, 84))
    other_end[-1].bias = nn.Parameter(torch.zeros(3))
    longer = MLP(6, 3)
    longer.append(nn.Softmax(1))
    other_kind = MLP(6, 3, (5,))
    other_kind[2] = nn.Tanh()
    assert [name_of(network) for network in (other_end, longer, other_kind, LeNet5().double())] == [None] * 4


def test_weights_are_not_part_of_a_name():
    """Training draws them anew."""
    network = MLP(6, 3)
    before = name_of(network)
    trained = train(network, table(), 0, epochs=1, device="cpu").network
    assert name_of(trained) == name_of(network) == before


def test_asking_for_a_name_draws_nothing():
    network = LeNet5((1, 8, 8))
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    name_of(network)
    assert torch.rand(1) == expected


@pytest.mark.parametrize(
    "network",
    [
        MLP(np.int64(4), np.int64(3), [5, np.int64(2)]),
        LeNet5((np.int64(1), 8, 8), np.int64(4)),
        LeNet5([1, 8, 8], 4),
    ],
)
def test_a_name_is_plain_json(network):
    """Numbers of classes are often NumPy's, and layers come as lists."""
    named = name_of(network)
    assert str(stored(named)()) == str(network)


# What a name makes


@pytest.mark.parametrize(
    "maker",
    [
        "", "maxrr.nets", "maxrr.nets:", ":LeNet5", "LeNet5", "maxrr.nets:LeNet5:MLP", "maxrr.nets:LeNet5()",
        "maxrr.nets:LeNet5.forward", "maxrr.nets:nothing", "maxrr.nothing:LeNet5", "nothing_like_it:make",
        "maxrr..nets:LeNet5", ".nets:LeNet5", "maxrr.nets.naming:OUR_OWN",
    ],
)  # fmt: skip
def test_names_that_stand_for_nothing(maker):
    with pytest.raises(ValueError, match=r"package\.module:function|cannot be imported|not a function"):
        NamedNetwork(maker)()
    with pytest.raises(ValueError, match=r"package\.module:function|cannot be imported|not a function"):
        NamedNetwork.for_records(maker, (1, 8, 8), 10)


def test_what_makes_no_network():
    with pytest.raises(ValueError, match="json:dumps should make"):
        NamedNetwork("json:dumps", (3,))()


def no_arguments():
    return nn.Linear(6, 3)


def keywords_only(*, hidden=5, **others):
    return nn.Sequential(nn.Linear(6, hidden), nn.Linear(hidden, 3 + len(others)))


def of_records(shape, classes, hidden=4):
    assert isinstance(shape, tuple)
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), hidden), nn.Linear(hidden, classes))


def of_anything(*arguments):
    return of_records(*arguments)


@pytest.mark.parametrize(
    ("maker", "shape", "inputs", "outputs"),
    [
        ("no_arguments", (6,), 6, 3),
        ("keywords_only", (6,), 6, 3),
        ("of_records", (2, 5), 10, 7),
        ("of_anything", (2, 5), 10, 7),
    ],
)
def test_for_records(maker, shape, inputs, outputs):
    named = NamedNetwork.for_records(f"{__name__}:{maker}", shape, 7)
    assert stored(named)()(torch.zeros(2, *shape)).shape == (2, outputs)
    assert next(named().parameters()).shape[1] == inputs


@pytest.mark.parametrize(("maker", "shape"), [("LeNet5", (1, 8, 8)), ("MLP", (6,)), ("MLP", (1, 3, 3))])
def test_our_own_for_records(maker, shape):
    """By the name alone, as a command line has it."""
    named = stored(NamedNetwork.for_records(f"maxrr.nets:{maker}", shape, 4))
    assert named()(torch.zeros(2, *shape)).shape == (2, 4)


def test_functions_that_need_no_arguments_get_none():
    assert suited(no_arguments, (6,), 3) is no_arguments
    assert suited(keywords_only, (6,), 3) is keywords_only
    assert suited(of_records, (6,), 3) == NamedNetwork(f"{__name__}:of_records", ((6,), 3))


def test_a_function_with_arguments_needs_a_name():
    def inside(shape, classes):
        return of_records(shape, classes)

    with pytest.raises(DataError, match="into a module"):
        suited(inside, (6,), 3)


# Training from a name


def wide_table():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 4)).astype(np.float32)
    return Dataset(features, rng.integers(0, 2, 40), ("no", "yes"), np.arange(40))


TRAINED = {
    "LeNet-5": (LeNet5, ((1, 8, 8), 10), lambda: digits(100)),
    "MLP": (MLP, (6, 3, (128, 64)), table),
    "narrow MLP": (MLP, (4, 2, (5,)), wide_table),
}


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("kind", TRAINED)
def test_the_same_bytes_from_the_name_and_the_network(kind, seed):
    """A model that comes back from a folder trains again from the name, and is compared with bytes from the network."""
    maker, arguments, records = TRAINED[kind]
    network = maker(*arguments)
    named = stored(name_of(network))
    settings = {"epochs": 2, "batch_size": 16, "device": "cpu", "threads": 1}
    assert bytes_of(begin(named, seed)) == bytes_of(begin(network, seed))
    by_name, by_hand = (train(given, records(), seed, **settings) for given in (named, network))
    assert same_run(by_name, by_hand)
    assert type(by_name.network) is maker
    assert not same_run(by_name, train(named, records(), seed + 1, **settings))


def test_what_was_drawn_before_does_not_matter():
    """A name makes its network only when the seed is set."""
    named = name_of(MLP(6, 3))
    torch.manual_seed(1)
    first = bytes_of(begin(named, 3))
    torch.rand(5)
    assert bytes_of(begin(named, 3)) == first
    assert bytes_of(begin(named, 4)) != first


def test_a_function_is_given_what_a_file_has_recorded_whichever_name_it_comes_by():
    recorded = NamedNetwork(f"{__name__}:of_records", ((6,), 2))
    for given in (of_records, NamedNetwork(f"{__name__}:of_records", ((6,), 3)), NamedNetwork(recorded.maker)):
        assert as_recorded(given, recorded) is recorded
    elsewhere = NamedNetwork("maxrr.nets.networks:MLP", (6, 2))
    assert as_recorded(NamedNetwork("maxrr.nets:MLP", (6, 3)), elsewhere) is elsewhere
    assert as_recorded(MLP, elsewhere) is elsewhere
    other = NamedNetwork("not_imported:thing", ((6,), 3))
    assert as_recorded(other, NamedNetwork("not_imported_either:thing", ((6,), 2))) is other
    assert as_recorded(None, recorded) is None


def test_networks_of_ours_tell_as_many_classes_apart_as_asked():
    theirs = NamedNetwork(f"{__name__}:of_records", ((6,), 2))
    assert with_outputs(theirs, 3) is theirs
    for asked in (2, 3):
        assert with_outputs(NamedNetwork("maxrr.nets:MLP", (6, 2)), asked).arguments == (6, asked)
