"""The samples that the benchmarks run on."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maxrr import data

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def load(file: Path | None, n: int | None) -> tuple[Floats, Labels]:
    """The first n samples (all if None) of an .npz file with arrays X and y, or of Fashion-MNIST's ReLU features."""
    if file is None:
        training, _ = data.load("fashion-mnist")
        X, y = relu_features(training.inputs.reshape(len(training), -1)), training.labels
    else:
        arrays = np.load(file, allow_pickle=False)
        X, y = arrays["X"].astype(np.float64, copy=False), arrays["y"].astype(np.int64, copy=False)
    return np.ascontiguousarray(X[:n]), y[:n]


def relu_features(pixels: NDArray[np.uint8]) -> Floats:
    """84 fixed random ReLU features of images with 28 × 28 pixels."""
    weights = np.random.default_rng(0).normal(size=(784, 84)) / 28
    return np.maximum(pixels / 255 @ weights, 0.0)


def signs(y: Labels) -> Floats:
    """One row of ±1 a head: each class against the rest, or of two classes the second against the first."""
    classes = np.unique(y)
    return np.where(y == classes[-1 if len(classes) == 2 else 0 :, None], 1.0, -1.0)
