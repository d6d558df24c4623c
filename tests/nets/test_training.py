"""One run: the same bytes for the same seed, and what the definitions say."""

import copy
import dataclasses
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from maxrr.nets import MLP, LeNet5, Recipe, train
from maxrr.nets import runs as runs_cpu
from maxrr.nets.recipe import batch_sizes
from maxrr.nets.seeding import begin, shuffle
from tests.nets.problems import (
    ResNet,
    Tied,
    WithBuffer,
    bytes_of,
    digits,
    dropping,
    normalised,
    pictures,
    reordered,
    same_run,
    table,
)


def oracle(network, dataset, seed, epochs, batch_size, lr):
    """The definitions, spelled out: Adam written down, one record after the other."""
    network = begin(network, seed)
    ordered = np.argsort(dataset.ids)
    trained = [weights for weights in network.parameters() if weights.requires_grad]
    first, second, steps = [0.0] * len(trained), [0.0] * len(trained), 0
    dtype = trained[0].dtype
    for epoch in range(epochs):
        order = ordered[shuffle(seed, epoch, len(dataset))].tolist()
        starts = list(range(0, len(order), batch_size))
        if len(order) % batch_size == 1 and len(starts) > 1:
            starts.pop()  # a single record joins the batch before it
        loss_sum, correct = 0.0, 0
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            inputs, labels = [], []
            for row in order[start:end]:
                values = torch.tensor(np.asarray(dataset.inputs[row])).to(dtype)
                inputs.append(values * (1 / 255) if dataset.inputs.dtype == np.uint8 else values)
                labels.append(int(dataset.labels[row]))
            scores = network(torch.stack(inputs))
            losses = [-scores[at].log_softmax(0)[label] for at, label in enumerate(labels)]
            gradients = torch.autograd.grad(sum(losses) / len(losses), trained)
            steps += 1
            with torch.no_grad():
                for at, (weights, slope) in enumerate(zip(trained, gradients, strict=True)):
                    first[at] = 0.9 * first[at] + 0.1 * slope
                    second[at] = 0.999 * second[at] + 0.001 * slope**2
                    mean, square = first[at] / (1.0 - 0.9**steps), second[at] / (1.0 - 0.999**steps)
                    weights -= lr * mean / (square.sqrt() + 1e-8)
            loss_sum += float(sum(losses).detach())
            correct += sum(int(scores[at].argmax()) == label for at, label in enumerate(labels))
    return network, loss_sum / len(dataset), correct / len(dataset)


@dataclasses.dataclass
class Heard:
    """A report that remembers."""

    calls: list = dataclasses.field(default_factory=list)

    def __call__(self, what, done, total, **numbers):
        self.calls.append((what, done, total, numbers))


def frozen_first():
    network = MLP(6, 3, hidden=(8, 5))
    network[1].requires_grad_(False)
    return network


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 17, 23])
def test_equal_to_the_definitions(count):
    """Batches of 8: fewer records than that, just as many, a smaller last batch, one left over."""
    dataset = reordered(table(count, dtype=np.float64))
    network = MLP(6, 3, hidden=(7,)).double()
    expected, loss, accuracy = oracle(network, dataset, seed=3, epochs=3, batch_size=8, lr=0.01)
    run = train(network, dataset, 3, epochs=3, batch_size=8, lr=0.01, threads=1)
    for ours, theirs in zip(run.network.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=0.0, atol=1e-12)
    assert abs(run.loss - loss) < 1e-12
    assert abs(run.accuracy - accuracy) < 1e-12


@pytest.mark.parametrize(
    ("network", "dataset"),
    [
        (LeNet5((1, 8, 8), 3), pictures(20)),
        (frozen_first(), table(20)),
        (Tied(), table(20)),
        (WithBuffer(), table(20)),
        (MLP(6, 5, hidden=(4,)), table(20)),  # more scores than classes
    ],
)
def test_equal_to_the_definitions_for_other_networks(network, dataset):
    network = copy.deepcopy(network).double()
    expected, loss, _ = oracle(network, dataset, seed=0, epochs=2, batch_size=6, lr=0.003)
    run = train(network, dataset, 0, epochs=2, batch_size=6, lr=0.003)
    assert abs(run.loss - loss) < 1e-12
    for ours, theirs in zip(run.network.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=0.0, atol=1e-12)
        assert ours.requires_grad == theirs.requires_grad


@given(count=st.integers(1, 500), batch_size=st.integers(1, 70))
def test_batches_cover_the_records(count, batch_size):
    sizes = batch_sizes(Recipe(batch_size=batch_size), count)
    assert sum(sizes) == count
    assert all(size == batch_size for size in sizes[:-1])
    assert sizes[-1] <= batch_size + 1
    assert min(sizes) > 1 or count == 1 or batch_size == 1


@pytest.mark.parametrize("make", [lambda: MLP(6, 3), normalised, dropping, frozen_first, Tied, WithBuffer])
def test_the_same_seed_gives_the_same_bytes_in_any_order_of_records(make):
    dataset, network = table(50), make()
    one = train(network, dataset, 1, epochs=3, batch_size=8)
    torch.rand(5)
    assert same_run(train(network, dataset, 1, epochs=3, batch_size=8), one)
    assert same_run(train(network, reordered(dataset), 1, epochs=3, batch_size=8), one)
    assert not same_run(train(network, dataset, 2, epochs=3, batch_size=8), one)
    torch.manual_seed(0)
    assert same_run(train(network, reordered(dataset, 1), 1, epochs=3, batch_size=8), one)


@pytest.mark.parametrize("threads", [1, 2])
def test_images_too(threads):
    torch.set_num_threads(threads)
    dataset, network = digits(), LeNet5((1, 8, 8))
    one = train(network, dataset, 0, epochs=2)
    assert same_run(train(network, reordered(dataset), 0, epochs=2), one)
    assert bytes_of(train(lambda: LeNet5((1, 8, 8)), dataset, 0, epochs=2).network) == bytes_of(one.network)


@pytest.mark.parametrize("ids", [[f"record {number}" for number in range(40)], range(-40, 40, 2), range(100, 60, -1)])
def test_any_ids(ids):
    dataset = table(40, ids=np.array(list(ids)))
    runs = [train(MLP(6, 3), records, 0, epochs=2, batch_size=16) for records in (dataset, reordered(dataset))]
    assert same_run(*runs)


def test_the_network_given_is_left_as_it_was():
    network = normalised().eval()
    before = bytes_of(network)
    run = train(network, table(), 0, epochs=1)
    assert bytes_of(network) == before
    assert all(weights.grad is None and weights.requires_grad for weights in network.parameters())
    assert not any(module.training for module in network.modules())
    assert run.network is not network


def test_what_comes_back():
    run = train(normalised(), table(), 7, epochs=2, batch_size=8, threads=1)
    assert run.seed == 7
    assert not any(module.training for module in run.network.modules())
    assert all(weights.grad is None and weights.requires_grad for weights in run.network.parameters())
    places = [weights.untyped_storage().nbytes() for weights in run.network.parameters()]
    assert places == [weights.numel() * 4 for weights in run.network.parameters()]  # each on its own
    assert (run.environment.device, run.environment.threads) == ("cpu", 1)
    assert run.environment.torch_version == torch.__version__


def test_it_learns():
    """Two blobs two standard deviations of their means apart: a majority vote is right for half, this for most."""
    run = train(MLP(6, 3), table(200), 0, epochs=20, batch_size=16)
    assert run.accuracy > 0.9
    assert run.loss < 0.5


def test_pixels_in_bytes_are_read_as_0_to_1():
    dataset = pictures()
    scaled = dataclasses.replace(dataset, inputs=dataset.inputs.astype(np.float32) * np.float32(1 / 255))
    network = LeNet5((1, 8, 8), 3)
    assert same_run(train(network, dataset, 0, epochs=1), train(network, scaled, 0, epochs=1))


def test_memory_mapped_features(tmp_path):
    dataset = digits()
    np.save(tmp_path / "features.npy", dataset.inputs)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    one = train(LeNet5((1, 8, 8)), dataset, 0, epochs=1)
    again = dataclasses.replace(dataset, inputs=mapped)
    assert isinstance(again.inputs, np.memmap)
    assert same_run(train(LeNet5((1, 8, 8)), again, 0, epochs=1), one)
    assert same_run(train(LeNet5((1, 8, 8)), reordered(again), 0, epochs=1), one)


@pytest.mark.parametrize("turn", [np.s_[::-1], np.s_[:, ::-1], np.s_[:, ::2]])
def test_views_of_arrays(turn):
    whole = table(40, columns=12, dtype=np.float64)
    view = dataclasses.replace(whole, inputs=whole.inputs[turn])
    copied = dataclasses.replace(whole, inputs=np.ascontiguousarray(whole.inputs[turn]))
    network = MLP(view.shape[0], 3)
    assert same_run(train(network, view, 0, epochs=1), train(network, copied, 0, epochs=1))


def test_frozen_layers_are_not_touched():
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    network(torch.randn(20, 6) + 1.0)
    network[:2].requires_grad_(False)
    run = train(network, table(), 0, epochs=3, batch_size=8)
    assert bytes_of(run.network[:2]) == bytes_of(network[:2])
    assert bytes_of(run.network[3]) != bytes_of(begin(network, 0)[3])


def test_batch_normalisation_learns_its_statistics():
    dataset = table(17)
    run = train(normalised(), dataset, 0, epochs=3, batch_size=8)
    assert run.network[1].num_batches_tracked == 6  # two batches an epoch: 8, and 9
    assert train(ResNet(), pictures(9), 0, epochs=1, batch_size=8).network.blocks[0].first_norm.num_batches_tracked == 1


def test_dropout_draws_from_the_seed_and_leaves_pytorchs_numbers_alone():
    before = torch.get_rng_state()
    one, other = (train(dropping(), table(), seed, epochs=2) for seed in (0, 1))
    assert bytes_of(one.network) != bytes_of(other.network)
    torch.set_rng_state(before)
    network = dropping()
    before = torch.get_rng_state()
    assert same_run(train(network, table(), 0, epochs=2), one)
    assert torch.equal(torch.get_rng_state(), before)


class Drawing(MLP):
    """Its hidden numbers are halved now and then, as a source of random numbers of this process says."""

    def __init__(self, draw, first=0):
        super().__init__(6, 3)
        self.draw, self.left = draw, first

    def forward(self, records):
        self.left -= self.training
        return super().forward(records) * (0.5 if self.training and self.left < 0 and self.draw() < 0.5 else 1.0)


@pytest.mark.parametrize(
    "network",
    [Drawing(random.random), Drawing(lambda: np.random.rand()), Drawing(lambda: torch.rand(1).item(), first=3)],  # noqa: NPY002 (others use it)
    ids=["Python", "NumPy", "after some steps"],
)
def test_whatever_draws_gives_the_bytes_of_the_seed(network):
    one, again = (train(network, table(), 0, epochs=4, batch_size=8) for _ in range(2))
    assert same_run(one, again)
    assert bytes_of(one.network) != bytes_of(train(MLP(6, 3), table(), 0, epochs=4, batch_size=8).network)


def test_fewer_records_than_a_batch_and_a_single_one():
    for count in (1, 2, 5):
        run = train(MLP(6, 3), table(count), 0, epochs=2, batch_size=64)
        assert np.isfinite(run.loss)


def test_progress():
    heard = Heard()
    run = train(MLP(6, 3), table(70), 0, epochs=4, batch_size=16, progress=heard)
    done = [call[1] for call in heard.calls]
    assert {(what, total) for what, _, total, _ in heard.calls} == {("training", 280)}
    assert done == sorted(set(done))
    assert done[-1] == 280
    assert heard.calls[-1][3] == {"loss": pytest.approx(run.loss), "accuracy": pytest.approx(run.accuracy)}


def test_progress_within_an_epoch(monkeypatch):
    """Long epochs are heard of before they end."""
    heard = Heard()
    monkeypatch.setattr(runs_cpu, "GLANCE", 0.01)
    train(LeNet5((1, 8, 8), 3), pictures(300), 0, epochs=1, batch_size=1, progress=heard)
    done = [call[1] for call in heard.calls]
    assert done == sorted(set(done))
    assert any(0 < each < 300 for each in done)
    assert all(set(numbers) == {"loss", "accuracy"} for _, through, _, numbers in heard.calls if through)


def test_threads_are_as_before():
    before = 2
    torch.set_num_threads(before)
    for threads in (1, 2, None):
        run = train(MLP(6, 3), table(), 0, epochs=1, threads=threads)
        assert torch.get_num_threads() == before
        assert run.environment.threads == (before if threads is None else threads)
    with pytest.raises(ValueError, match="diverged"):
        train(MLP(6, 3), table(), 0, epochs=3, lr=1e30, threads=1)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("lr", "epochs"), [(1e30, 5), (1e300, 1), (float("inf"), 1)])
def test_divergence(lr, epochs):
    """Also in the very last step, when the loss is not yet infinite."""
    with pytest.raises(ValueError, match="seed 4 diverged"):
        train(MLP(6, 3), table(20), 4, epochs=epochs, lr=lr)


@pytest.mark.parametrize(
    ("network", "dataset", "message"),
    [
        (MLP(5, 3), table(), r"float32 of shape \(6,\)"),
        (LeNet5(), pictures(), r"shape \(1, 8, 8\)"),
        (LeNet5(), table(), r"float32 of shape \(6,\)"),
        (LeNet5((3, 8, 8)), pictures(shape=(8, 8, 3)), "moveaxis"),
        (MLP(6, 2), table(), r"each of the 3 classes, but gives \(2,\)"),
        (
            nn.Sequential(nn.Linear(6, 3), nn.Unflatten(1, (3, 1))),
            table(),
            r"each of the 3 classes, but gives \(3, 1\)",
        ),
        (nn.Sequential(nn.Linear(6, 3), nn.Flatten(0)), table(), r"each of the 3 classes, but gives \(\)"),
        (nn.Sequential(nn.Linear(6, 3), nn.LSTM(3, 3)), table(), "tuple"),
        (nn.Sequential(nn.Linear(6, 4).double(), nn.Linear(4, 3)), table(), "weights are of several types"),
        (MLP(6, 3).requires_grad_(False), table(), "use embed"),
        (normalised(), table(1), r"cannot be trained on 1 record\(s\) at a time"),
        (MLP(6, 3), table(1).without([0]), "no records to train on"),
    ],
)
def test_networks_and_records_that_do_not_go_together(network, dataset, message):
    with pytest.raises(ValueError, match=message):
        train(network, dataset, 0, epochs=1)


def test_batch_normalisation_of_single_records():
    with pytest.raises(ValueError, match="trained on 1"):
        train(normalised(), table(), 0, epochs=1, batch_size=1)


@pytest.mark.parametrize(
    "options",
    [{"epochs": 0}, {"epochs": -1}, {"batch_size": 0}, {"lr": 0.0}, {"lr": -1.0}, {"lr": float("nan")}],
)
def test_recipes_that_are_none(options):
    with pytest.raises(ValueError, match="takes one epoch"):
        train(MLP(6, 3), table(), 0, **options)


def test_other_requests_that_cannot_be_met():
    with pytest.raises(ValueError, match="thread or more"):
        train(MLP(6, 3), table(), 0, threads=0)
    with pytest.raises(ValueError, match="'cuda', not 'meta'"):
        train(MLP(6, 3), table(), 0, device="meta")
    with pytest.raises(ValueError, match="whole number"):
        train(MLP(6, 3), table(), -1)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda")])
def test_cuda_where_there_is_none(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="here: use device='cpu'"):
        train(MLP(6, 3), table(), 0, device=device)


def test_a_record_less_changes_the_run():
    dataset = table()
    run = train(MLP(6, 3), dataset, 0, epochs=1)
    assert not same_run(train(MLP(6, 3), dataset.without([7]), 0, epochs=1), run)
