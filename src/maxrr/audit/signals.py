"""One number per record that tells members from others: what a model's probabilities say about a record.

All take probabilities of shape (records, classes), whose rows sum to 1, and most take the true labels as indices of
columns. Members tend to have a small cross-entropy, entropy and modified entropy, and a large logit.

The complement 1 − p of a row's largest probability is summed from the other classes: where p rounds to 1 it still
tells records apart. Probabilities and complements below `FLOOR` count as `FLOOR`, so that every signal is finite.

References
----------
L. Song, P. Mittal, "Systematic evaluation of privacy risks of machine learning models", 2021.
N. Carlini et al., "Membership inference attacks from first principles", 2022.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from maxrr.audit.checks import Floats, finite

FLOOR = 1e-45
"""The least probability that counts. Logits stay within ±104, cross-entropies below 104."""

ROUNDING = 1e-5  # how far the rows of probabilities made in float32 may be from summing to 1


def cross_entropy(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """−log p_y of each record, shape (records,): the loss that the paper's `alg:mia` compares.

    >>> cross_entropy([[0.5, 0.5], [1.0, 0.0]], [0, 0]).round(3)
    array([0.693, 0.   ])
    """
    # log(1 + e^−logit) = −log p, and keeps its digits where p is nearly 1.
    return np.asarray(np.logaddexp(0.0, -logit(probabilities, labels)))


def logit(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """log(p_y / (1 − p_y)) of each record, shape (records,): nearly Gaussian over models, which LiRA needs.

    >>> logit([[0.5, 0.5], [1.0, 0.0], [1e-20, 1.0]], [0, 0, 1]).round(1)
    array([  0. , 103.6,  46.1])
    """
    p, y = _checked(probabilities, labels)
    rows = np.arange(len(p))
    return np.asarray(_log(p[rows, y]) - _log(_complements(p)[rows, y]))


def entropy(probabilities: ArrayLike) -> Floats:
    """−Σ p log p of each record, shape (records,): how undecided the model is, whatever the label.

    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(3)
    array([0.693, 0.   ])
    """
    p = _simplex(probabilities)
    return np.asarray(0.0 - np.sum(xlogy(p, p), axis=1))


def modified_entropy(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """−(1 − p_y) log p_y − Σ_{k≠y} p_k log(1 − p_k) of each record, shape (records,).

    Entropy calls a confident error as certain as a confident hit; this one is large where the model is surely wrong.

    >>> modified_entropy([[0.9, 0.1], [0.1, 0.9]], [0, 0]).round(3)
    array([0.021, 4.145])
    """
    p, y = _checked(probabilities, labels)
    rows, complements = np.arange(len(p)), _complements(p)
    terms = p * _log(complements)
    terms[rows, y] = complements[rows, y] * _log(p[rows, y])
    return np.asarray(0.0 - terms.sum(axis=1))


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, FLOOR)))


def _complements(p: Floats) -> Floats:
    """1 − p without cancellation: only a row's largest probability can be near 1."""
    rows, largest = np.arange(len(p)), p.argmax(axis=1)
    others = p.copy()
    others[rows, largest] = 0.0
    complements = 1.0 - p
    complements[rows, largest] = others.sum(axis=1)
    return complements


def _simplex(probabilities: ArrayLike) -> Floats:
    p = finite(probabilities, "probabilities", dimensions=2)
    wrong = (p < 0.0).any(axis=1) | (np.abs(p.sum(axis=1) - 1.0) > ROUNDING)
    if p.shape[1] < 2 or wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"probabilities of two classes or more must sum to 1 in each row, got {p[row]} in row {row}")
    return p


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    p, y = _simplex(probabilities), np.asarray(labels)
    if y.shape != p.shape[:1] or y.dtype.kind not in "iu":
        raise ValueError(f"labels must be {len(p)} indices of columns, got {y.dtype} of shape {y.shape}")
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(f"labels must be from 0 to {p.shape[1] - 1}, got {y.min()} to {y.max()}")
    return p, y.astype(np.intp)
