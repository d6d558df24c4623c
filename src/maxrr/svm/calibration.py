"""Platt scaling: from one-vs-rest decision values to probabilities.

Each head gets a sigmoid, fitted by maximum likelihood to the labels; the sigmoids of a sample are divided by their sum.
The paper's membership inference (`alg:mia`) compares the cross-entropies of these probabilities.

The order of the samples does not change a byte of the result: each head sorts its (score, label) pairs, and equal pairs
are interchangeable. Sums are NumPy's pairwise ones; no BLAS, hence no threads. Weights of samples and classes do not
enter: probabilities are about the samples as often as they occur.

References
----------
J. Platt, "Probabilistic outputs for support vector machines", 1999.
H.-T. Lin, C.-J. Lin, R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines", 2007.
F. Bach, "Self-concordant analysis for logistic regression", 2010.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Differences of scores below LARGEST_SCORE cannot overflow. Scores spread by less than SMALLEST_SPAN count as constant:
# their slope, at most about n² / span, would not fit into a float64.
LARGEST_SCORE = 1e300
SMALLEST_SPAN = 1e-280
MAX_ITERATIONS = 200  # 18 were the most needed over thousands of adversarial heads


def best_classes(scores: Floats) -> NDArray[np.int64]:
    """The place of each sample's class by its scores: that of the highest, or by its sign where two share a head.

    >>> best_classes(np.array([[0.5, -1.0, 2.0]])), best_classes(np.array([-0.5, 0.1]))
    (array([2]), array([0, 1]))
    """
    if scores.ndim == 2 and scores.shape[1] > 1:
        return np.asarray(scores.argmax(axis=1))
    return (scores.ravel() > 0.0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class PlattScaling:
    """One fitted sigmoid per head: ``p(f) = 1 / (1 + exp(a (f - centre) + b))``; a head that ranks well has a < 0.

    Platt's own offset is ``b - a * centre``. Apart, the two keep the digits that this difference loses when scores
    differ little, as those of a head with small weights do: nearly all of them then lie near -1.

    Attributes
    ----------
    a, b, centre : ndarray of shape (n_heads,)
        Slopes, offsets and median scores; a single head stands for two classes.
    """

    a: Floats
    b: Floats
    centre: Floats

    def probabilities(self, scores: ArrayLike) -> Floats:
        """Turn decision values into probabilities.

        Parameters
        ----------
        scores : array-like of shape (n, K), or (n,) or (n, 1) for two classes
            Decision values, as `fit_platt` takes them.

        Returns
        -------
        ndarray of shape (n, K)
            One column per class, in the order of the `classes` given to `fit_platt`. Every row is finite, in [0, 1],
            sums to 1 up to rounding, and does not depend on the other rows.
        """
        columns = _as_columns(scores, n_heads=self.a.size)
        with np.errstate(over="ignore"):
            logits = -(self.a * (columns - self.centre) + self.b)
        logits = np.clip(logits, -LARGEST_SCORE, LARGEST_SCORE)
        if self.a.size == 1:
            logits = np.hstack([-logits, logits])
        # The softmax of log-sigmoids is the sigmoids over their sum, and survives when all of them underflow.
        log_sigmoid = np.minimum(logits, 0.0) - np.log1p(np.exp(-np.abs(logits)))
        relative = np.exp(log_sigmoid - log_sigmoid.max(axis=1, keepdims=True))
        return np.asarray(relative / relative.sum(axis=1, keepdims=True))


def fit_platt(scores: ArrayLike, y: ArrayLike, classes: ArrayLike) -> PlattScaling:
    """Fit one sigmoid per head by maximum likelihood with Platt's smoothed targets.

    Parameters
    ----------
    scores : array-like of shape (n, K), or (n,) or (n, 1) for two classes
        Decision values. Column k speaks for ``classes[k]``; with two classes the only column speaks for ``classes[1]``.
    y : array-like of shape (n,)
        Labels. Every class must have a sample.
    classes : array-like of shape (K,)
        The distinct labels, in the order of the columns.

    Returns
    -------
    PlattScaling
        The fitted sigmoids.

    Raises
    ------
    ValueError
        Scores are not finite, a label is not among the classes, or a class has no sample.

    Examples
    --------
    >>> scaling = fit_platt([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], list("aababb"), ["a", "b"])
    >>> scaling.probabilities([-1e6, 0.0, 1e6]).round(3)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    labels, names = np.asarray(y), np.asarray(classes)
    if names.ndim != 1 or names.size < 2 or np.unique(names).size != names.size:
        raise ValueError(f"classes must be at least two distinct labels in one dimension, got {names!r}")
    columns = _as_columns(scores, n_heads=1 if names.size == 2 else names.size)
    if labels.shape != columns.shape[:1]:
        raise ValueError(f"y must hold a label for each of the {len(columns)} rows of scores, got shape {labels.shape}")
    member = labels[:, None] == names
    if not member.any(axis=1).all():
        row = int(np.argmin(member.any(axis=1)))
        raise ValueError(f"y[{row}] = {labels.tolist()[row]!r} is not one of the classes {names.tolist()}")
    if not member.any(axis=0).all():
        empty = int(np.argmin(member.any(axis=0)))
        raise ValueError(f"no sample of class {names.tolist()[empty]!r}: its sigmoid has nothing to fit")

    positive = member[:, 1:] if names.size == 2 else member
    heads = [_fit_head(columns[:, head], positive[:, head]) for head in range(columns.shape[1])]
    a, b, centre = (np.array(parameter, dtype=np.float64) for parameter in zip(*heads, strict=True))
    return PlattScaling(a, b, centre)


def _as_columns(scores: ArrayLike, n_heads: int) -> Floats:
    """Scores as (n, n_heads) float64, checked."""
    columns = np.asarray(scores, dtype=np.float64)
    if columns.ndim == 1 and n_heads == 1:
        columns = columns[:, None]
    if columns.ndim != 2 or columns.shape[1] != n_heads:
        raise ValueError(f"scores must have shape (n, {n_heads}), got {columns.shape}")
    usable = np.abs(columns) <= LARGEST_SCORE  # also false for NaN
    if not usable.all():
        row, head = np.argwhere(~usable)[0]
        raise ValueError(f"scores must be finite and at most {LARGEST_SCORE:g}: {columns[row, head]} in row {row}")
    # How NumPy sums a row depends on its memory layout. And -0.0, which sorts as equal to 0.0, has other bytes.
    return np.ascontiguousarray(columns) + 0.0


def _fit_head(scores: Floats, positive: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Slope, offset and centre of one head."""
    order = np.lexsort((positive, scores))
    scores, positive = scores[order], positive[order]
    n_positive = int(np.count_nonzero(positive))
    n_negative = scores.size - n_positive
    # Platt's targets are 1 - doubt for positives, doubt for negatives: short of 0 and 1, so the optimum is finite.
    doubt = np.where(positive, 1.0 / (n_positive + 2), 1.0 / (n_negative + 2))

    # The median needs no rounding and ignores outliers.
    centre = float(scores[scores.size // 2])
    x = scores - centre
    span = float(np.max(np.abs(x)))
    if span < SMALLEST_SPAN:  # nothing tells the samples apart: the mean target, with slope 0
        target = np.where(positive, 1.0 - doubt, doubt)
        return 0.0, float(np.log(np.sum(1.0 - target) / np.sum(target))), centre
    exponent = int(np.frexp(span)[1])
    # A power of two brings |x| to at most 1 without rounding: squares can then not overflow.
    a, b = _newton(np.ldexp(x, -exponent), np.where(positive, -1.0, 1.0), doubt)
    return float(np.ldexp(a, -exponent)), b, centre


def _newton(x: Floats, side: Floats, doubt: Floats) -> tuple[float, float]:
    """Minimise over a and b the sum of ``-(1 - doubt) log sigmoid(margin) - doubt log sigmoid(-margin)``.

    Here ``margin = side * (a x + b)``, positive where the sigmoid is on the sample's side of one half.
    """

    def loss(a: float, b: float) -> float:
        margin = side * (a * x + b)
        # Lin, Lin & Weng: the identity -log sigmoid(-m) = m - log sigmoid(m) leaves one exponential, at most 1.
        return float(np.sum(doubt * margin - np.minimum(margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))))

    n_positive = np.count_nonzero(side < 0.0)
    a, b = 0.0, float(np.log((x.size - n_positive + 1.0) / (n_positive + 1.0)))
    for _ in range(MAX_ITERATIONS):
        # 1. Derivatives of each sample's loss with respect to u = a x + b.
        u = a * x + b
        margin = side * u
        decay = np.exp(-np.abs(margin))
        first = side * (doubt - np.where(margin > 0.0, decay, 1.0) / (1.0 + decay))
        second = decay / (1.0 + decay) ** 2
        # 2. Newton's direction. Centring x by the curvature makes the 2 × 2 Hessian diagonal: no determinant cancels.
        weight = float(np.sum(second))
        pivot = float(np.sum(second * x)) / weight
        centred = x - pivot
        spread = float(np.sum(second * centred**2))
        step_a = -float(np.sum(first * centred)) / spread
        step_pivot = -float(np.sum(first)) / weight
        step_b = step_pivot - step_a * pivot
        change = np.abs(step_a * centred + step_pivot)
        # 3. Newton squares the error: after a change this small, only rounding is left.
        if np.all(change <= 1e-9 * (1.0 + np.abs(u))):
            return a + step_a, b + step_b
        # 4. Backtrack, though never below the length that descends for certain because |loss'''| <= loss'' (Bach).
        #    Near the optimum that is the full step, so the rounding of the loss cannot stop us short of it.
        decrement = step_a**2 * spread + step_pivot**2 * weight
        largest = float(np.max(change))
        certain = float(np.log1p(largest)) / largest
        length, here = 1.0, loss(a, b)
        while length > certain and loss(a + length * step_a, b + length * step_b) > here - 1e-4 * length * decrement:
            length = max(0.5 * length, certain)
        a, b = a + length * step_a, b + length * step_b
    raise RuntimeError(f"Platt scaling of {x.size} scores did not converge in {MAX_ITERATIONS} iterations")
