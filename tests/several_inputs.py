"""Networks with several inputs or with token ids, and records for them: small, and learned in seconds."""

import numpy as np
import torch
from torch import nn

from maxrr.data import Dataset

WORDS, LENGTH, KINDS = 30, 6, ("kind 0", "kind 1", "kind 2")


class Text(nn.Module):
    """The mean of the embeddings of tokens that are there, and a layer on it."""

    def __init__(self, words=WORDS, classes=3):
        super().__init__()
        self.embedding, self.hidden, self.head = nn.Embedding(words, 6), nn.Linear(6, 8), nn.Linear(8, classes)

    def forward(self, tokens, mask):
        there = mask.unsqueeze(-1)
        mean = (self.embedding(tokens) * there).sum(1) / there.sum(1)
        return self.head(torch.relu(self.hidden(mean)))


class PictureAndTable(nn.Module):
    """An image and a row of a table, side by side."""

    def __init__(self):
        super().__init__()
        self.picture, self.row = nn.Conv2d(1, 2, 3), nn.Linear(2, 3)
        self.head = nn.Linear(2 * 4 + 3, 3)

    def forward(self, picture, row):
        assert picture.dtype == row.dtype == torch.float32
        return self.head(torch.cat([torch.relu(self.picture(picture)).flatten(1), torch.relu(self.row(row))], 1))


def text_network(shape, classes):
    """As the shell makes it: from the shape of each input."""
    assert shape == {"mask": (LENGTH,), "tokens": (LENGTH,)}
    return Text(classes=classes)


def sentences(count=90, seed=0):
    """Token ids, padded with zeros, and where they are; labels and record ids. Classes overlap in their words."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % 3)
    mask = np.arange(LENGTH) < rng.integers(4, LENGTH + 1, count)[:, None]
    tokens = rng.integers(1, 16, (count, LENGTH)) + 7 * labels[:, None]
    return {"tokens": np.where(mask, tokens, 0), "mask": mask}, labels, 500 + 3 * rng.permutation(count)


def texts(count=90, seed=0):
    """The same as a dataset."""
    inputs, labels, ids = sentences(count, seed)
    return Dataset(inputs, labels, KINDS, ids, ids % 20)


def pictures_and_rows(count=80, seed=0):
    """Images in bytes and rows of a table, by place."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % 3)
    pictures = rng.integers(0, 200, (count, 1, 4, 4)) + 20 * labels[:, None, None, None]
    rows = rng.normal(size=(count, 2)) + labels[:, None]
    inputs = pictures.astype(np.uint8), rows.astype(np.float32)
    return Dataset(inputs, labels, KINDS, 500 + 3 * rng.permutation(count))
