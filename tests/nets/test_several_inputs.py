"""Networks with several inputs are trained and embedded like others, one at a time or many together."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from maxrr.data import Dataset
from maxrr.nets import embed, split, stacked, train, train_many, training
from maxrr.nets.embedding import BLOCKS
from maxrr.nets.inputs import as_tensor, call, ready, records
from maxrr.nets.recipe import Recipe
from maxrr.nets.seeding import begin
from tests.nets.problems import bytes_of
from tests.several_inputs import PictureAndTable, Text, pictures_and_rows, sentences, texts

CASES = [(Text, texts), (PictureAndTable, pictures_and_rows)]


@pytest.mark.parametrize(("network", "data"), CASES)
def test_in_any_order_and_company(network, data):
    dataset = data(300)
    run = train(network(), dataset, 0, epochs=2, threads=1)
    turned = dataset.select(dataset.ids[::-1])
    assert bytes_of(train(network(), turned, 0, epochs=2, threads=1).network) == bytes_of(run.network)
    (again,) = train_many(network(), turned, [0], epochs=2)
    assert bytes_of(again.network) == bytes_of(run.network)
    extractor, prediction = split(run.network)
    features = embed(extractor, dataset)
    assert len(dataset) > BLOCKS["cpu"]
    for row in (0, 290):
        assert embed(extractor, dataset.select(dataset.ids[[row]])).tobytes() == features[row].tobytes()
    inputs = {name: torch.from_numpy(np.array(dataset.inputs[name])) for name in dataset.inputs.dtype.names}
    with torch.no_grad():
        expected = call(run.network, ready(inputs, torch.float32))
        assert torch.allclose(prediction(torch.from_numpy(features)), expected, atol=1e-5)


@pytest.mark.parametrize(("network", "data"), CASES)
def test_many_step_together(network, data):
    """To rounding: sums are in another order."""
    dataset, recipe = data(), Recipe(3, 32, 1e-2)
    found = records(dataset, begin(network(), 0), torch.device("cpu"))
    assert training.why_not_stacked(begin(network(), 0), found, Recipe()) is None
    stack = stacked.Stack([begin(network(), seed) for seed in (0, 1)], found, recipe)
    stacked.fit(stack, recipe, [0, 1], lambda *_: None)
    for seed, together in zip((0, 1), stack.fitted(), strict=True):
        alone = train(network(), dataset, seed, epochs=3, batch_size=32, lr=1e-2, threads=1).network.state_dict()
        assert all(torch.allclose(together[name], value, atol=1e-4) for name, value in alone.items())


def test_pixels_and_floats_are_read_and_integers_stay():
    both = {"0": torch.tensor([[0, 255]], dtype=torch.uint8), "1": torch.ones(1, dtype=torch.float64)}
    kept = {"2": torch.tensor([3], dtype=torch.int32), "3": torch.tensor([True])}
    found = ready(both | kept, torch.float32)
    assert {name: part.dtype for name, part in found.items()} == {
        "0": torch.float32, "1": torch.float32, "2": torch.int32, "3": torch.bool,
    }  # fmt: skip
    assert found["0"].tolist() == [[0.0, 1.0]]


def test_a_field_between_others_is_a_tensor():
    array = np.zeros(1, [("mask", "?"), ("tokens", "<i8", (3,))])
    array["tokens"] = 5
    assert as_tensor(array["tokens"]).tolist() == [[5, 5, 5]]


class Lengths(nn.Module):
    """Takes no sequence of length zero."""

    def __init__(self):
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(30, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, tokens, length):
        packed = pack_padded_sequence(self.embedding(tokens), length.cpu(), batch_first=True, enforce_sorted=False)
        return self.head(self.rnn(packed)[1][-1])


class Attention(nn.Module):
    """NaN for a record of which nothing is there."""

    def __init__(self):
        super().__init__()
        self.embedding, self.score, self.head = nn.Embedding(30, 4), nn.Linear(4, 1), nn.Linear(4, 3)

    def forward(self, tokens, mask):
        values = self.embedding(tokens)
        weights = self.score(values).masked_fill(~mask.unsqueeze(-1), -torch.inf).softmax(1)
        return self.head((weights * values).sum(1))


def test_blocks_are_filled_up_with_what_the_network_takes():
    inputs, labels, ids = sentences(70)
    lengths = {"tokens": inputs["tokens"], "length": inputs["mask"].sum(1)}
    for network, given in ((Lengths(), lengths), (Attention(), inputs)):
        dataset = Dataset(given, labels, ("0", "1", "2"), ids)
        extractor = split(train(network, dataset, 0, epochs=1, threads=1).network)[0]
        features = embed(extractor, dataset)
        assert embed(extractor, dataset.select(ids[9])).tobytes() == features[9].tobytes()


def test_an_extractor_with_other_arguments():
    with pytest.raises(ValueError, match=r"0, 1: .*forward"):
        embed(nn.Linear(2, 3), pictures_and_rows())
    with pytest.raises(ValueError, match="inputs mask, tokens"):
        embed(PictureAndTable(), texts())
