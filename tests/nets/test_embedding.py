"""A record's features are the same bytes whichever others it is embedded with."""

import copy
import functools
import os
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from maxrr.data import Dataset, load
from maxrr.nets import MLP, LeNet5, embed, split, train
from maxrr.nets import seeding as pinning
from maxrr.nets.embedding import BLOCKS, FEW, embed_to_predict
from tests.cases import THOROUGH
from tests.nets.problems import ResNet, bytes_of, digits, normalised, pictures, table

BLOCK = BLOCKS["cpu"]


@functools.cache
def fashion(count=1500):
    _, test = load("fashion-mnist")
    return test.select(test.ids[:count])


@functools.cache
def lenet():
    torch.manual_seed(0)
    return split(LeNet5())[0]


@functools.cache
def whole():
    """The features of all of them in one go."""
    return embed(lenet(), fashion())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def numbered(features):
    return Dataset(features, np.zeros(len(features), dtype=np.int64), ("one",), np.arange(len(features)))


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 700])
def test_a_records_features_do_not_depend_on_which_others_are_embedded(count):
    dataset, rng = fashion(), np.random.default_rng(count)
    rows = rng.permutation(len(dataset))[:count]
    features = embed(lenet(), dataset.select(dataset.ids[rows]))
    assert features.shape == (count, 84)
    assert features.dtype == np.float32
    assert features.tobytes() == whole()[rows].tobytes()


def test_in_any_order():
    dataset = fashion()
    order = np.random.default_rng(0).permutation(len(dataset))
    assert embed(lenet(), dataset.select(dataset.ids[order])).tobytes() == whole()[order].tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_whatever_pytorchs_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        features = embed(lenet(), fashion())
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert features.tobytes() == whole().tobytes()


@settings(max_examples=25 if THOROUGH else 8)
@given(
    inputs=st.integers(1, 200), hidden=st.integers(1, 150), outputs=st.integers(1, 90), double=st.booleans(),
    count=st.integers(257, 300),
)  # fmt: skip
def test_in_any_place_of_a_block(inputs, hidden, outputs, double, count):
    """One record everywhere, among others: products of matrices of any width treat all rows alike."""
    rng = np.random.default_rng(inputs)
    torch.manual_seed(0)
    extractor = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    extractor = extractor.double() if double else extractor
    features = rng.normal(size=(count, inputs))
    features[::3] = features[0]
    result = embed(extractor, numbered(features.astype(np.float32)))[::3]
    assert result.tobytes() == np.repeat(result[:1], len(result), axis=0).tobytes()


@pytest.mark.parametrize("extractor", [split(ResNet())[0], split(LeNet5((1, 9, 7)))[0]])
def test_images_in_any_place_of_a_block(extractor):
    dataset = pictures(270, (1, 9, 7))
    features = embed(extractor, dataset)
    order = np.random.default_rng(0).permutation(270)
    assert embed(extractor, dataset.select(order)).tobytes() == features[order].tobytes()
    for row in (0, 100, 269):
        assert embed(extractor, dataset.select([row])).tobytes() == features[row].tobytes()


def test_they_are_the_networks_features():
    """1e-5 is the rounding of batches of another size."""
    dataset = fashion()
    with torch.no_grad():
        expected = lenet()(torch.from_numpy(np.array(dataset.inputs[:100])).float() * (1 / 255))
    assert np.allclose(whole()[:100], expected, atol=1e-5)
    run = train(MLP(64, 10), digits(), 0, epochs=1)
    extractor, prediction = split(run.network)
    with torch.no_grad():
        scores = prediction(torch.from_numpy(embed(extractor, digits())))
        assert torch.allclose(scores, run.network(torch.from_numpy(np.array(digits().inputs))), atol=1e-5)


def deep():
    """Forty layers, in each of which rounding adds up."""
    layers = [layer for _ in range(20) for layer in (nn.Linear(60, 60), nn.Tanh(), nn.LayerNorm(60))]
    return nn.Sequential(nn.Flatten(), nn.Linear(63, 60), *layers)


def attentive():
    return nn.Sequential(nn.Flatten(2), nn.TransformerEncoderLayer(63, 7, 40, batch_first=True), nn.Flatten())


class Squeezed(nn.Module):
    """Takes a batch of one record for one that has no batch."""

    def forward(self, x):
        return x.mean((2, 3), keepdim=True).squeeze()


def seeded(make):
    torch.manual_seed(0)
    return make()


@pytest.mark.parametrize(
    ("make", "off"),
    [
        (lambda: split(LeNet5((1, 9, 7)))[0], 1e-6), (lambda: split(ResNet())[0], 1e-6),
        (lambda: split(MLP(63, 3))[0], 1e-6), (attentive, 1e-6), (deep, 5e-6),
        (lambda: nn.Sequential(nn.Conv2d(1, 64, 3), nn.ReLU(), nn.Conv2d(64, 128, 3), nn.Flatten()), 1e-6),
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(63, 2000), nn.ReLU(), nn.Linear(2000, 300)), 1e-6),
        (lambda: nn.Sequential(nn.Conv2d(1, 8, 3), Squeezed()), 1e-6),
    ],
)  # fmt: skip
@pytest.mark.parametrize("count", [1, 2, 5, FEW, FEW + 1])
def test_a_few_to_predict(make, off, count):
    """As near to what heads are fitted on as is said, whichever others are predicted with them; more are its bytes."""
    dataset, rng = pictures(BLOCK + 50, (1, 9, 7)), np.random.default_rng(count)
    rows, extractor = rng.permutation(len(dataset))[:count], seeded(make).eval()
    fitted_on = embed(extractor, dataset)[rows]
    found = embed_to_predict(extractor, dataset.select(rows), "cpu")
    assert found.shape == fitted_on.shape
    assert (np.abs(found - fitted_on).max(1) <= off * np.abs(fitted_on).max(1)).all()
    if count > FEW:
        assert found.tobytes() == fitted_on.tobytes()
    else:
        alone = [embed_to_predict(extractor, dataset.select([row]), "cpu") for row in rows]
        assert found.tobytes() == np.concatenate(alone).tobytes()


def test_from_a_memory_map(tmp_path):
    np.save(tmp_path / "images.npy", fashion().inputs)
    mapped = numbered(np.load(tmp_path / "images.npy", mmap_mode="r"))
    assert isinstance(mapped.inputs, np.memmap)
    assert embed(lenet(), mapped).tobytes() == whole().tobytes()


@pytest.mark.parametrize("turn", [np.s_[::-1], np.s_[:, ::-1], np.s_[:, ::2]])
def test_views_of_arrays(turn):
    features = table(30).inputs[turn]
    extractor = nn.Linear(features.shape[1], 4)
    expected = embed(extractor, numbered(np.ascontiguousarray(features)))
    assert embed(extractor, numbered(features)).tobytes() == expected.tobytes()


class Failing(nn.Module):
    """Gives up after some blocks, and counts them."""

    def __init__(self, after=10**9, pause=0.0):
        super().__init__()
        self.linear, self.after, self.pause = nn.Linear(6, 4), after, pause
        self.calls, self.lock = [], threading.Lock()

    def __deepcopy__(self, memo):  # so that its calls can be counted
        return self

    def forward(self, x):
        with self.lock:
            self.calls.append(len(x))
        time.sleep(self.pause)
        if len(self.calls) > self.after:
            raise RuntimeError("no more")
        return self.linear(x)


def test_a_failure_is_raised():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError, match="no more"):
        embed(Failing(after=5), table(20 * BLOCK))
    assert torch.get_num_threads() == before
    assert not pinning._inside


def test_only_a_few_blocks_are_ahead():
    """However slow whoever takes them is, so that memory does not grow with the records."""
    extractor, cores = Failing(), len(os.sched_getaffinity(0))
    ahead, taken = [], []

    def progress(what, done, total):
        taken.append(done)
        time.sleep(0.01)
        ahead.append(len(extractor.calls) - len(taken))

    embed(extractor, table(40 * BLOCK), progress=progress)
    assert max(ahead) <= 2 * cores + 1
    assert extractor.calls == [BLOCK] * 42  # two more, to see whether neighbours matter


def test_progress():
    calls = []
    embed(nn.Linear(6, 4), table(700), progress=lambda *position: calls.append(position))
    assert calls == [("embedding", done, 700) for done in (256, 512, 700)]


def test_batch_normalisation_and_dropout_in_evaluation_mode():
    """Neighbours and luck do not matter, and the extractor is left as it was."""
    extractor = nn.Sequential(normalised(), nn.Dropout()).train()
    extractor(torch.randn(20, 6))
    before, dataset = bytes_of(extractor), table(100)
    one = embed(extractor, dataset)
    assert bytes_of(extractor) == before
    assert all(module.training for module in extractor.modules())
    assert embed(extractor, dataset.select([7, 3])).tobytes() == one[[7, 3]].tobytes()
    quiet = copy.deepcopy(extractor).eval()
    with torch.no_grad():
        assert np.allclose(quiet(torch.from_numpy(np.array(dataset.inputs))), one, atol=1e-5)
    assert all(weights.grad is None for weights in extractor.parameters())


class Counting(nn.Module):
    """An extractor that counts what it has seen, in evaluation mode, too."""

    def __init__(self, stored):
        super().__init__()
        self.layer = nn.Linear(6, 4)
        self.register_buffer("seen", torch.zeros(()), persistent=stored)

    def forward(self, inputs):
        self.seen += len(inputs)
        return self.layer(inputs)


def test_an_extractor_that_remembers_whom_it_has_seen_is_refused():
    with pytest.raises(ValueError, match="seen"):
        embed(Counting(stored=True), table(), device="cpu")
    assert embed(Counting(stored=False), table(), device="cpu").shape == (len(table()), 4)


def test_batch_normalisation_without_statistics():
    """It looks at the records beside it even in evaluation mode: refused, or none of it."""
    extractor = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, track_running_stats=False))
    dataset = table(40)
    try:
        whole, part = embed(extractor, dataset), embed(extractor, dataset.select([5, 9]))
    except ValueError as error:
        assert "neighbours" in str(error) or "batch" in str(error)  # noqa: PT017
    else:
        assert whole[[5, 9]].tobytes() == part.tobytes()


class MeanOfLongest(nn.Module):
    """A mean over as many positions as the longest record of the batch has."""

    def forward(self, tokens):
        longest = int((tokens > 0).sum(1).max())
        return tokens[:, :longest].mean(1, keepdim=True)


@pytest.mark.parametrize("longest", [0, 1, 7, 200, 255])
@pytest.mark.parametrize("length", [10, 600, 20_000])
def test_a_network_that_looks_at_the_longest_of_a_batch_is_refused(longest, length):
    """Wherever that one stands: with one position more of many, the others' features change by little."""
    tokens = np.ones((300, length), dtype=np.float32)
    tokens[:, -1] = 0
    tokens[longest, -1] = 1
    with pytest.raises(ValueError, match="on its neighbours"):
        embed(MeanOfLongest(), Dataset(tokens, [0] * 300, ("a",), np.arange(300)), device="cpu")


def test_a_frozen_pretrained_extractor():
    """Features only: nothing to train, and no linear layer at the end."""
    body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2)).requires_grad_(False)
    dataset = pictures(300)
    features = embed(body, dataset)
    assert features.shape == (300, 16)  # four channels of 2 × 2, in one row
    assert embed(nn.Flatten(), dataset).tobytes() == (dataset.inputs.reshape(300, -1) * np.float32(1 / 255)).tobytes()
    plain = table(30)
    assert embed(nn.Identity(), plain).tobytes() == plain.inputs.tobytes()
    assert embed(nn.Linear(6, 2).double(), plain).dtype == np.float64
    tokens = replace(plain, inputs=np.arange(180).reshape(30, 6))
    assert embed(nn.Flatten(), tokens).tobytes() == tokens.inputs.tobytes()


class Gives(nn.Module):
    def __init__(self, give):
        super().__init__()
        self.give = give

    def forward(self, x):
        return self.give(x)


@pytest.mark.parametrize(
    ("give", "found"),
    [
        (lambda x: (x, x), "tuple"),
        (lambda x: x.sum(1), r"\(256,\)"),
        (lambda x: x[:3], r"\(3, 6\)"),
        (lambda x: x.sum(), r"\(\)"),
        (lambda x: None, "NoneType"),
    ],
)
def test_extractors_that_are_none(give, found):
    with pytest.raises(ValueError, match="256 records"):
        embed(Gives(give), table(300))


def test_requests_that_cannot_be_met():
    with pytest.raises(ValueError, match="records to embed"):
        embed(nn.Linear(6, 4), table(1).without([0]))
    with pytest.raises(ValueError, match="'cpu' or 'cuda'"):
        embed(nn.Linear(6, 4), table(), device="meta")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="CUDA device here"):
            embed(nn.Linear(6, 4), table(), device="cuda")
    with pytest.raises((ValueError, RuntimeError), match="shape"):
        embed(nn.Linear(5, 4), table())
