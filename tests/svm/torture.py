"""Features as real pipelines make them: badly scaled, tied, degenerate, out of small networks.

A family makes samples from a generator of random numbers and a wanted number of rows, the same ones every time. It
promises finite float64 features, at most that many rows, and two classes or more, each with two rows or more.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfTransformer
from torch import nn

from maxrr.data import load

Samples = tuple[NDArray[np.float64], NDArray[np.int64]]
Family = Callable[[np.random.Generator, int], Samples]


# Parts that families share


def labels(rng: np.random.Generator, n: int, classes: int) -> NDArray[np.int64]:
    """n labels, every class at least twice."""
    return rng.permutation(
        np.concatenate([np.arange(2 * classes) % classes, rng.integers(0, classes, n - 2 * classes)])
    )


def some_classes(rng: np.random.Generator, n: int, most: int = 6) -> int:
    """2 … most classes, two in half of all cases."""
    return 2 if rng.random() < 0.5 else int(rng.integers(2, min(most, n // 4) + 1))


def subset(rng: np.random.Generator, y: NDArray, n: int) -> NDArray[np.int64]:
    """At most n rows in random order, without classes that have a single one. Four or more always stay."""
    rows = rng.permutation(len(y))
    first = np.concatenate([rows[y[rows] == label][:2] for label in rng.permutation(np.unique(y))[:2]])
    rows = np.concatenate([first, rows[~np.isin(rows, first)]])[:n]
    seen, counts = np.unique(y[rows], return_counts=True)
    return rng.permutation(rows[np.isin(y[rows], seen[counts >= 2])])


def clouds(rng: np.random.Generator, n: int, d: int | None = None, classes: int | None = None) -> Samples:
    """A normal cloud for each class, from hopelessly mixed to nearly separate."""
    classes = some_classes(rng, n) if classes is None else classes
    d = int(rng.integers(2, 50)) if d is None else d
    y = labels(rng, n, classes)
    apart = rng.uniform(0.2, 3.0) / np.sqrt(max(1.0, d / 4))
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(classes, d))[y], y


def in_part(rng: np.random.Generator, X: NDArray, y: NDArray, n: int) -> Samples:
    rows = subset(rng, y, n)
    return X[rows].astype(np.float64), y[rows].astype(np.int64)


# Sets as scikit-learn ships them, not scaled


@lru_cache
def shipped(name: str) -> tuple[NDArray, NDArray]:
    return getattr(datasets, f"load_{name}")(return_X_y=True)


def raw_digits(rng, n):
    return in_part(rng, *shipped("digits"), n)


def raw_wine(rng, n):
    return in_part(rng, *shipped("wine"), n)


def raw_breast_cancer(rng, n):
    return in_part(rng, *shipped("breast_cancer"), n)


def raw_iris(rng, n):
    """Measured to a tenth: full of ties, with one class apart from the others."""
    return in_part(rng, *shipped("iris"), n)


# Small networks


@lru_cache
def images(source: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images as rows, 0 … 1, and their labels."""
    if source == "digits":
        X, y = shipped("digits")
        return (X / 16).astype(np.float32), y
    training, _ = load(source)
    rows = slice(20_000)
    return np.asarray(training.inputs[rows]).reshape(20_000, -1).astype(np.float32) / 255, training.labels[rows]


def layers(inputs: int, width: int, convolution: bool, norm: bool, dropout: float) -> nn.Sequential:
    """Everything up to the features: a convolution or a hidden layer, then `width` units with a ReLU."""
    if convolution:
        side = int(np.sqrt(inputs))
        parts: list[nn.Module] = [nn.Unflatten(1, (1, side, side)), nn.Conv2d(1, 6, 4, stride=2), nn.ReLU()]
        parts += [nn.Flatten()]
        hidden = 6 * ((side - 4) // 2 + 1) ** 2
    else:
        hidden = 2 * width
        parts = [nn.Linear(inputs, hidden), *([nn.BatchNorm1d(hidden)] if norm else []), nn.ReLU()]
    parts += [nn.Dropout(dropout), nn.Linear(hidden, width), *([nn.BatchNorm1d(width)] if norm else []), nn.ReLU()]
    return nn.Sequential(*parts)


@lru_cache(maxsize=64)
def embedded(
    source: str, width: int, convolution: bool, norm: bool, dropout: float, adam: bool, rate: float, epochs: int,
    seed: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:  # fmt: skip
    """Features of all images of a source, from a network trained on 1,500 of them.

    A step that makes a weight infinite or NaN is undone and ends the training, so that features are always finite.
    """
    X, y = images(source)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            features = layers(X.shape[1], width, convolution, norm, dropout)
            network = nn.Sequential(features, nn.Linear(width, 10))
            method = torch.optim.Adam if adam else torch.optim.SGD
            optimiser = method(network.parameters(), lr=rate, **({} if adam else {"momentum": 0.9}))
            inputs, targets = torch.from_numpy(X[:1500]), torch.from_numpy(y[:1500].astype(np.int64))
            for _ in range(epochs):
                for batch in torch.randperm(1500).split(64):
                    before = {name: value.clone() for name, value in network.state_dict().items()}
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(network(inputs[batch]), targets[batch]).backward()
                    optimiser.step()
                    # Up to 1e6 a weight stays far enough from infinity for two layers of float32.
                    if not all(bool((value.abs() < 1e6).all()) for value in network.state_dict().values()):
                        network.load_state_dict(before)
                        break
                else:
                    continue
                break
            features.eval()
            with torch.no_grad():
                parts = [features(part).numpy() for part in torch.from_numpy(X).split(2000)]
    finally:
        torch.set_num_threads(threads)
    return np.concatenate(parts), y


def through_network(rng: np.random.Generator, n: int, source: str, rates: dict[bool, list[float]]) -> Samples:
    """Features of a network of random shape. Few seeds, so that the same network often serves again."""
    adam = bool(rng.random() < 0.5)
    X, y = embedded(
        source,
        width=int(rng.choice([8, 16, 32, 64, 128])),
        convolution=bool(rng.random() < 0.3),
        norm=bool(rng.random() < 0.5),
        dropout=float(rng.choice([0.0, 0.2, 0.5])),
        adam=adam,
        rate=float(rng.choice(rates[adam])),
        epochs=int(rng.integers(1, 6)),
        seed=int(rng.integers(0, 3)),
    )
    return in_part(rng, X, y, n)


USUAL = {True: [3e-4, 1e-3, 3e-3, 1e-2], False: [1e-3, 1e-2, 5e-2]}
TOO_HIGH = {True: [0.05, 0.2, 1.0], False: [0.3, 1.0, 5.0]}


def digits_network(rng, n):
    return through_network(rng, n, "digits", USUAL)


def fashion_network(rng, n):
    return through_network(rng, n, "fashion-mnist", USUAL)


def dying_network(rng, n):
    """Trained at too high a rate: dead units, some or all, and others of enormous size."""
    return through_network(rng, n, str(rng.choice(["digits", "fashion-mnist"])), TOO_HIGH)


def random_relu(rng, n):
    """One random layer, with biases or not, over clouds or images."""
    X, y = clouds(rng, n) if rng.random() < 0.5 else in_part(rng, *images("fashion-mnist"), n)
    width = int(rng.choice([8, 32, 84, 128]))
    projected = X @ rng.normal(size=(X.shape[1], width)) / np.sqrt(X.shape[1])
    return np.maximum(projected + rng.uniform(-1.0, 0.5) * rng.random(width), 0.0), y


# Classes of very different sizes


def imbalanced(rng, n):
    """One class against another or several, up to 1 : 1,000 where the rows suffice."""
    few = max(2, round(n / (1 + 10 ** rng.uniform(0.5, 3.0))))
    classes = int(rng.integers(2, 4))
    y = np.concatenate([np.zeros(few, int), 1 + np.arange(n - few) % (classes - 1)])
    d = int(rng.integers(2, 60))
    X = rng.normal(size=(n, d)) + rng.uniform(0.0, 2.0) * rng.normal(size=(classes, d))[y]
    order = rng.permutation(n)
    return X[order], y[order]


# Words and tables


def word_counts(rng, n):
    """Documents over a Zipf vocabulary. Some are empty, many words never occur, short ones repeat each other."""
    classes = some_classes(rng, n)
    y = labels(rng, n, classes)
    words = int(min(10 ** rng.uniform(1.5, 3.0), max(60, 2_000_000 // n)))
    common = 1.0 / (np.arange(words) + 2.7) ** rng.uniform(0.9, 1.3)
    topics = common * np.exp(rng.uniform(0.1, 1.0) * rng.normal(size=(classes, words)))
    topics /= topics.sum(axis=1, keepdims=True)
    lengths = rng.lognormal(np.log(rng.uniform(3.0, 80.0)), 0.7, n).astype(int)
    X = rng.multinomial(lengths, topics[y]).astype(np.float64)
    return (np.minimum(X, 1.0) if rng.random() < 0.2 else X), y


def tf_idf(rng, n):
    X, y = word_counts(rng, n)
    weigh = TfidfTransformer(norm=str(rng.choice(["l1", "l2"])), sublinear_tf=bool(rng.random() < 0.5))
    return weigh.fit_transform(X).toarray().astype(np.float64), y


def one_hot(rng, n):
    """Several categorical columns, all levels kept, or all but one of each. Rows repeat, with other labels too."""
    classes = some_classes(rng, n)
    y = labels(rng, n, classes)
    parts = []
    for _ in range(int(rng.integers(1, 9))):
        levels = int(rng.integers(2, 30))
        often = 1.0 / np.arange(1, levels + 1) * np.exp(rng.uniform(0.0, 1.5) * rng.normal(size=(classes, levels)))
        steps = np.cumsum(often / often.sum(axis=1, keepdims=True), axis=1)
        level = np.minimum((rng.random((n, 1)) > steps[y]).sum(axis=1), levels - 1)
        parts.append(np.eye(levels)[level])
    first = int(rng.random() < 0.3)
    return np.concatenate([part[:, first:] for part in parts], axis=1), y


def unscaled_table(rng, n):
    """Ages, incomes, years, counts, rates and flags as they are in a file: columns of sizes 1e-3 … 1e6."""
    y = labels(rng, n, some_classes(rng, n, 4))
    pull = rng.uniform(0.0, 1.0) * y
    age = np.clip(np.round(rng.normal(45.0 + 8.0 * pull, 15.0)), 18, 99)
    income = np.round(rng.lognormal(10.5 + 0.3 * pull, 0.8), int(rng.choice([-2, 0, 2])))
    year = rng.integers(1990, 2026, n)
    visits, errors = rng.poisson(2.0 + 2.0 * pull), rng.poisson(0.05 + 0.1 * pull)
    flags = rng.random((n, int(rng.integers(1, 6)))) < (0.1 + 0.3 * pull)[:, None]
    rate = np.round(rng.gamma(2.0, 1e-3, n) * (1.0 + pull), 5)
    balance = np.round(rng.normal(0.0, 10 ** rng.uniform(3.0, 6.0), n), 2)
    kept = np.where(rng.random(n) < 0.3, 0.0, balance)  # a field that is often left empty
    return np.column_stack([age, income, year, visits, errors, flags, rate, balance, kept]).astype(np.float64), y


def mixed_scales(rng, n):
    """Columns of sizes 1e-3 … 1e6, some of them far from zero."""
    X, y = clouds(rng, n, int(rng.integers(2, 30)))
    shift = np.where(rng.random(X.shape[1]) < 0.3, rng.uniform(-10.0, 10.0, X.shape[1]), 0.0)
    return (X + shift) * 10.0 ** rng.uniform(-3.0, 6.0, X.shape[1]), y


# Rounded


def half_precision(rng, n):
    """float16, over all of its range, so that the small end is coarse."""
    X, y = clouds(rng, n)
    return (10.0 ** rng.uniform(-6.0, 3.0) * X).astype(np.float16).astype(np.float64), y


def brain_float(rng, n):
    """bfloat16: eight bits of precision, rounded to even."""
    X, y = clouds(rng, n)
    bits = (10.0 ** rng.uniform(-4.0, 4.0) * X).astype(np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64), y


def integer_embeddings(rng, n):
    """Quantised to a few or many levels."""
    X, y = clouds(rng, n)
    return np.clip(np.round(X * rng.choice([1.0, 4.0, 30.0, 127.0])), -128, 127), y


# Repeated


def duplicated(rng, n):
    """Each sample about `times` times, with the same label."""
    times = int(rng.choice([2, 3, 10]))
    X, y = clouds(rng, max(8, n // times), classes=2 if rng.random() < 0.5 else 3)
    rows = np.concatenate([np.arange(len(y)), rng.integers(0, len(y), n - len(y))])
    return X[rows], y[rows]


def contradicting(rng, n):
    """Some samples, or all, once more with another label."""
    again = int(n * rng.choice([0.05, 0.2, 0.5]))
    X, y = clouds(rng, n - again)
    rows = rng.permutation(n - again)[:again]
    classes = len(np.unique(y))
    return np.concatenate([X, X[rows]]), np.concatenate([y, (y[rows] + 1) % classes])


def near_duplicates(rng, n):
    """Samples once more with noise, mostly 1e-9, and a few of these with another label."""
    again = n // 2
    X, y = clouds(rng, n - again)
    rows = rng.permutation(n - again)[:again]
    noise = rng.choice([1e-12, 1e-9, 1e-9, 1e-9, 1e-6])
    other = rng.random(again) < rng.choice([0.0, 0.1])
    label = np.where(other, (y[rows] + 1) % len(np.unique(y)), y[rows])
    return np.concatenate([X, X[rows] + noise * rng.normal(size=(again, X.shape[1]))]), np.concatenate([y, label])


# Nothing to learn, or nothing to learn from


def random_labels(rng, n):
    """No signal: w is small, or exactly zero where classes differ in size."""
    X, y = clouds(rng, n)
    X = np.maximum(X, 0.0) if rng.random() < 0.3 else X
    return X, rng.permutation(y)


def dead_columns(rng, n):
    """Columns of zeros, of constants small and large, of one value but for a row, and copies of others."""
    X, y = clouds(rng, n, int(rng.integers(1, 20)))
    constants = np.tile([0.0, 0.0, 1.0, -1e3, 1e5, 0.1], (n, 1))[:, : int(rng.integers(1, 7))]
    single = np.zeros((n, 1))
    single[rng.integers(n)] = 10.0 ** rng.uniform(-2.0, 3.0)
    X = np.concatenate([X, constants, single, X[:, : int(rng.integers(0, 3))]], axis=1)
    return X[:, rng.permutation(X.shape[1])], y


def rank_deficient(rng, n):
    """Linear combinations of fewer columns, or more columns than rows."""
    if rng.random() < 0.4:
        n = min(n, 400)
        return clouds(rng, n, int(n * rng.uniform(1.05, 2.0)))
    X, y = clouds(rng, n, int(rng.integers(1, 15)))
    mixed = X @ rng.normal(size=(X.shape[1], int(rng.integers(X.shape[1], 4 * X.shape[1] + 2))))
    return (np.concatenate([X, mixed], axis=1) if rng.random() < 0.5 else mixed), y


# Easy ones, which are hard in another way


def unit_vectors(rng, n):
    """Normalised embeddings: each class a small cap of the sphere."""
    classes = some_classes(rng, n, 10)
    d = int(rng.choice([16, 64, 128]))
    y = labels(rng, n, classes)
    centres = rng.normal(size=(classes, d))
    X = centres[y] / np.linalg.norm(centres, axis=1)[y][:, None]
    X = X + 10 ** rng.uniform(-3.0, 0.0) * rng.normal(size=(n, d)) / np.sqrt(d)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return (X.astype(np.float32).astype(np.float64) if rng.random() < 0.5 else X), y


def separable_blobs(rng, n):
    """Far apart: few samples matter, and the weights are small."""
    classes = some_classes(rng, n)
    d = int(rng.integers(classes, classes + 30))
    y = labels(rng, n, classes)
    blobs = rng.uniform(-1.0, 1.0, (n, d)) / np.sqrt(d) + rng.uniform(3.0, 30.0) * np.eye(classes, d)[y]
    return 10.0 ** rng.uniform(-3.0, 3.0) * blobs, y


# A network's features in which one class is hardly seen


def weak_class(rng, n):
    """Features after a ReLU, at any scale, that say little or nothing of one class, a tenth of all."""
    y = (rng.permutation(n) < max(2, n // 10)).astype(np.int64)
    inputs = rng.normal(size=(n, 20)) + (0.5 * y[:, None] if rng.random() < 0.5 else 0.0)
    X = np.maximum(inputs @ rng.normal(size=(20, 64)), 0.0)
    return (10.0 ** rng.uniform(-3.0, 3.0) if rng.random() < 0.7 else 1.0) * X, y


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        raw_digits, raw_wine, raw_breast_cancer, raw_iris, digits_network, fashion_network, dying_network, random_relu,
        imbalanced, word_counts, tf_idf, one_hot, unscaled_table, mixed_scales, half_precision, brain_float,
        integer_embeddings, duplicated, contradicting, near_duplicates, random_labels, dead_columns, rank_deficient,
        unit_vectors, separable_blobs, weak_class,
    )
}  # fmt: skip
