"""What a process did before does not change the bytes that it computes."""

import threading
import warnings

import numpy as np
import pytest
import torch

from maxrr.data import Dataset
from maxrr.nets import MLP, LeNet5, embed, split, train
from maxrr.nets.seeding import pinned
from maxrr.nets.training_function import OwnTraining
from tests.nets.problems import table


def images():
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 3
    features = rng.random((120, 1, 12, 12)).astype(np.float32) + labels[:, None, None, None]
    return Dataset(features, labels, ("a", "b", "c"), np.arange(120))


def computed():
    """The bytes of a trained network, and of its features."""
    run = train(LeNet5((1, 12, 12), 3), images(), 0, epochs=2, device="cpu", threads=1)
    weights = [value.numpy().tobytes() for value in run.network.state_dict().values()]
    return weights, embed(split(run.network)[0], images(), device="cpu").tobytes()


def in_bfloat16():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that it goes on without oneDNN
        train(MLP(6, 3).bfloat16(), table(), 0, epochs=1, device="cpu")


def without_onednn():
    torch.backends.mkldnn.set_flags(False)


def with_more_threads():
    torch.set_num_threads(torch.get_num_threads() + 1)


def with_products_in_fewer_bits():
    torch.set_float32_matmul_precision("medium")


@pytest.fixture
def restored():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    torch.backends.mkldnn.set_flags(True)


@pytest.mark.parametrize("before", [in_bfloat16, without_onednn, with_more_threads, with_products_in_fewer_bits])
def test_what_was_before_does_not_matter(before, restored):
    expected = computed()
    before()
    settings = torch.get_num_threads(), torch.backends.mkldnn.set_flags(None, None, None, None)[0]
    assert computed() == expected
    assert (torch.get_num_threads(), torch.backends.mkldnn.set_flags(None, None, None, None)[0]) == settings


def by_hand(network, dataset, seed, device):
    """A training function of the caller's own."""
    inputs, labels = torch.from_numpy(np.array(dataset.inputs)).float(), torch.from_numpy(np.array(dataset.labels))
    optimiser = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs), labels).backward()
        optimiser.step()
    return network


@pytest.mark.parametrize("recipe", [None, OwnTraining.by(by_hand)])
def test_shorter_types_that_the_caller_asks_for_do_not_matter(recipe):
    def found():
        run = train(LeNet5((1, 12, 12), 3), images(), 0, recipe=recipe, device="cpu", threads=1)
        return [value.numpy().tobytes() for value in run.network.state_dict().values()]

    expected, features = found(), computed()
    with torch.autocast("cpu", torch.bfloat16):
        assert found() == expected
        assert computed() == features


def test_precision_is_as_it_was_afterwards(restored):
    torch.set_float32_matmul_precision("medium")
    computed()
    assert torch.get_float32_matmul_precision() == "medium"


def test_with_another_number_of_threads_one_waits():
    before, entered = torch.get_num_threads(), []
    inside, leave = threading.Event(), threading.Event()

    def same():
        with pinned(1):
            torch.set_num_threads(1)
            inside.set()
            leave.wait(10)

    def another():
        with pinned(2), pinned(3):  # who is inside does not wait for himself
            entered.append("another")

    threads = threading.Thread(target=same), threading.Thread(target=another)
    with pinned(1):
        threads[0].start()
        assert inside.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive()
    assert entered == []
    leave.set()
    for thread in threads:
        thread.join(10)
    assert entered == ["another"]
    assert torch.get_num_threads() == before
