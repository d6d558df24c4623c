"""How far a model is from retraining, beside how far retrainings are from each other.

A distance alone says nothing: two trainings with other seeds differ too. So each is shown beside that spread.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from maxrr.audit.attacks import FLOOR
from maxrr.audit.findings import rank_p_value
from maxrr.audit.roc import Floats, finite, same_shape

QUANTILES = (0.05, 0.5, 0.95)
TIED = 1e-9  # mean distances that differ relatively by less count as equal: they may differ by rounding alone


@dataclass(frozen=True)
class Distance:
    """The audited model's distance to retraining, beside that of retrainings to each other.

    Attributes
    ----------
    value
        Mean distance of the audited model to the retrained ones.
    mean, quantiles
        Mean and quantiles (`QUANTILES`) of the distances between two retrained models.
    p_value
        The rank p-value: how often a retrained model is at least as far from the others, at most.
    """

    value: float
    mean: float
    quantiles: tuple[float, ...]
    p_value: float


def disagreement(predictions_a: ArrayLike, predictions_b: ArrayLike) -> float:
    """The share of records for which two models predict different labels; both of shape (records,).

    >>> disagreement([0, 1, 2, 1], [0, 1, 1, 1])
    0.25
    """
    one, other = np.asarray(predictions_a), np.asarray(predictions_b)
    same_shape(one, other, "the two models' predictions")
    if one.ndim != 1 or not one.size:
        raise ValueError(f"predictions must be labels of one record or more, got shape {one.shape}")
    return float(np.mean(one != other))


def kl(p: ArrayLike, q: ArrayLike) -> float:
    """Mean over records of Σ p log(p / q), in nats; both of shape (records, classes), q not below `FLOOR`.

    It is not symmetric: for `beside` take the mean of both directions.

    >>> print(round(kl([[0.5, 0.5]], [[0.25, 0.75]]), 4))
    0.1438
    """
    one, other = finite(p, "p", dimensions=2), finite(q, "q", dimensions=2)
    same_shape(one, other, "the two models' probabilities")
    if min(one.min(), other.min()) < 0.0:
        raise ValueError("probabilities must not be negative")
    return float(np.mean(np.sum(xlogy(one, one) - xlogy(one, np.maximum(other, FLOOR)), axis=1)))


def heads_distance(w_a: ArrayLike, b_a: ArrayLike, w_b: ArrayLike, b_b: ArrayLike) -> float:
    """The Frobenius norm of the difference of two heads (weights and intercepts), over the larger of their norms.

    It has a meaning only where both heads stand on the same extractor. From 0 to 2, and symmetric.

    Parameters
    ----------
    w_a, w_b
        Weights, shape (heads, features).
    b_a, b_b
        Intercepts, shape (heads,).

    >>> heads_distance([[3.0]], [4.0], [[3.0]], [0.0])
    0.8
    """
    one, other = _head(w_a, b_a), _head(w_b, b_b)
    same_shape(one, other, "the two heads")
    larger = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
    return float(np.linalg.norm(one - other)) / larger if larger > 0.0 else 0.0


def beside(target_to_each: ArrayLike, pairs_among_retrained: ArrayLike) -> Distance:
    """The audited model's distances to retrained models, beside the distances among these.

    For the p-value the models, the audited one among them, stand in a row: the statistic of each is its mean distance
    to all others. So all are treated alike, and the p-value is valid if the audited model is like the others.

    Parameters
    ----------
    target_to_each
        Shape (models,).
    pairs_among_retrained
        Shape (models, models), symmetric; its diagonal is not looked at. Two models or more.

    >>> beside([4.0, 4.0, 4.0], [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    Distance(value=4.0, mean=2.0, quantiles=(1.1, 2.0, 2.9), p_value=0.25)
    """
    to_each, pairs = finite(target_to_each, "target_to_each"), finite(pairs_among_retrained, "pairs", dimensions=2)
    models = to_each.size
    if models < 2 or pairs.shape != (models, models):
        raise ValueError(
            f"two retrained models or more are needed, and a distance for every two: "
            f"got {models} distances to them and pairs of shape {pairs.shape}"
        )
    if not np.allclose(pairs, pairs.T, rtol=1e-9, atol=0.0):
        raise ValueError("distances among the retrained models must be symmetric; take the mean of both directions")
    among = pairs[np.triu_indices(models, k=1)]
    others = (np.sum(pairs, axis=1) - np.diagonal(pairs) + to_each) / models
    value = float(np.mean(to_each))
    quantiles = tuple(float(quantile) for quantile in np.quantile(among, QUANTILES))
    return Distance(value, float(np.mean(among)), quantiles, rank_p_value(value, others, tolerance=TIED * abs(value)))


def _head(weights: ArrayLike, intercepts: ArrayLike) -> NDArray[np.float64]:
    w, b = finite(weights, "weights", dimensions=2), finite(intercepts, "intercepts")
    if len(w) != len(b):
        raise ValueError(f"there are {len(w)} heads in the weights and {len(b)} in the intercepts")
    head: Floats = np.column_stack([w, b])
    return head
