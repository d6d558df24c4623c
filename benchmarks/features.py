"""The samples that the benchmarks run on."""

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

FOLDER = Path("/usr/share/datasets/fashion-mnist")
NOISE = 0.01  # of a feature's standard deviation: repeated samples differ, and stay where they were


def load(file: Path | None, n: int | None) -> tuple[Floats, Labels]:
    """The first n samples (all if None) of an .npz file with arrays X and y, or of Fashion-MNIST's ReLU features."""
    if file is None:
        X, y = relu_features(images("train-images-idx3-ubyte.gz")), labels("train-labels-idx1-ubyte.gz")
    else:
        arrays = np.load(file, allow_pickle=False)
        X, y = arrays["X"].astype(np.float64, copy=False), arrays["y"].astype(np.int64, copy=False)
    return np.ascontiguousarray(X[:n]), y[:n]


def relu_features(pixels: NDArray[np.uint8]) -> Floats:
    """84 fixed random ReLU features of images with 28 × 28 pixels."""
    weights = np.random.default_rng(0).normal(size=(784, 84)) / 28
    return np.maximum(pixels / 255 @ weights, 0.0)


def images(name: str) -> NDArray[np.uint8]:
    return idx(name, header=16).reshape(-1, 784)


def labels(name: str) -> Labels:
    return idx(name, header=8).astype(np.int64)


def idx(name: str, header: int) -> NDArray[np.uint8]:
    """The bytes of an IDX file after its header."""
    path = Path(os.environ.get("MAXRR_DATA", FOLDER)) / name
    if not path.exists():
        raise SystemExit(
            f"{path} is missing. The benchmark runs on Fashion-MNIST: install Debian's package dataset-fashion-mnist, "
            "or set MAXRR_DATA to a folder with its four .gz files, or give other features with --features FILE.npz"
        )
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def signs(y: Labels) -> Floats:
    """One row of ±1 a head: each class against the rest, or of two classes the second against the first."""
    classes = np.unique(y)
    return np.where(y == classes[-1 if len(classes) == 2 else 0 :, None], 1.0, -1.0)


def repeated(X: Floats, y: Labels, n: int) -> tuple[Floats, Labels]:
    """n samples: the first ones, and when they run out the same again with a little noise, so that none are equal.

    Filled block by block, so that building them needs no more memory than they do.
    """
    rng, spread = np.random.default_rng(1), NOISE * X.std(axis=0)
    larger = np.empty((n, X.shape[1]))
    for start in range(0, n, len(X)):
        block = larger[start : start + len(X)]
        if start:
            rng.standard_normal(out=block)
            block *= spread
            block += X[: len(block)]
        else:
            block[:] = X[: len(block)]
    return larger, np.resize(y, n)
