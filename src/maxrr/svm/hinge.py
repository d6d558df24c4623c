"""The problem of one head, and the certificate that a point solves it.

Primal:  minimise P(w, b) = ½|w|² + C Σ max(0, 1 − mᵢ) with margins mᵢ = yᵢ (w·xᵢ + b), yᵢ = ±1.
Dual (the paper's `eq:dual_svm`):  maximise D(α) = Σ αᵢ − ½|Σ αᵢyᵢxᵢ|² subject to 0 ≤ αᵢ ≤ C and Σ αᵢyᵢ = 0.

D(α) ≤ P(w, b) always, with equality only at the solution, so the gap P − D bounds how far a point is from optimal.
Written with v = Σ αᵢyᵢxᵢ it is a sum of terms that are never negative,

    P − D = ½|w − v|² + Σ_{mᵢ<1} (C − αᵢ)(1 − mᵢ) + Σ_{mᵢ>1} αᵢ(mᵢ − 1) − b Σ αᵢyᵢ,

apart from the last, which vanishes for admissible α; where rounding leaves a little of Σ αᵢyᵢ, it is charged in full.
We compute the gap in this form: nothing cancels, so a gap of 1e-16 of the objective is seen as such.
"""

from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Array, Bools, Floats, to_numpy

EPSILON = float(np.finfo(np.float64).eps)

SOLVED = 1e-10
"""A relative gap below this is a solution; the solver stops at far smaller ones where it can."""

TIE = 1e-14
"""Margins within this of 1, relative to the rounding scale of the head, count as exactly 1: the sample is free."""

SEPARATION_BOUND = 1e-9
"""With `Certificate.separation` above this the partition is decided, and equal bytes are claimed."""

KKT_BOUND = 1e-11
"""With a worse `Certificate.kkt_violation` nothing is decided: its separation is zero."""


@dataclass(frozen=True)
class Certificate:
    """How well one head is solved. Made by `certify` from samples, weights and multipliers alone.

    Attributes
    ----------
    primal, dual
        The two objectives; the optimum lies between them.
    relative_gap
        (primal − dual) / primal, in the cancellation-free form above. The primal objective is positive for any data
        with two classes, whatever its scale.
    kkt_violation
        The worst breach of the optimality conditions. Multipliers outside [0, C], in units of C; multipliers on the
        wrong bound for their margin, in units of the margin or of C, whichever is less; w ≠ Σ αᵢyᵢxᵢ, in units of the
        margin, or relative to the terms of the sum where these are larger; Σ αᵢyᵢ ≠ 0, relative to Σ αᵢ.
    n_free, n_bounded
        Samples with margin exactly 1 (within `TIE`), and below it. Together the influential ones.
    separation
        How clearly the partition is decided: the distance to 1 of the nearest margin that is not free, relative to
        the head's rounding scale 1 + |b| + |w|·max|x| over its free samples. Weights depend on the partition only,
        and the partition only on margins, so above `SEPARATION_BOUND` the bytes are decided. Zero where the
        optimality conditions hold too badly to decide anything (`KKT_BOUND`), or the resolution is above that bound.
    resolution
        What rounding leaves open in the decision values, relative to the rounding scale: 2⁻⁵² max|x| Σ αᵢ|xᵢ| over it.
        Where only ½|w|² decides between solutions, it cannot do so more finely than Σ αᵢyᵢxᵢ can be summed. Tiny for
        features of moderate size; features of size 1e6 with C = 1e3 leave everything open.
    multiplier_separation
        The nearest free multiplier's distance to its bounds, relative to C. Zero for ties and repeated samples,
        where the multipliers are not unique while the weights are: no byte depends on it.
    rounding_floor
        The relative gap that float64 leaves when every free margin is off by its rounding: C Σ 8·2⁻⁵²·scale over the
        free samples, relative to the primal objective. Above 1e-10 only for data separable by a wide margin with a
        huge C|x|², where the objective is tiny beside C.
    """

    primal: float
    dual: float
    relative_gap: float
    kkt_violation: float
    n_free: int
    n_bounded: int
    separation: float
    resolution: float
    multiplier_separation: float
    rounding_floor: float

    @property
    def solved(self) -> bool:
        """Whether the gap is as small as asked, or as rounding allows."""
        return self.relative_gap <= max(SOLVED, self.rounding_floor)

    @property
    def decided(self) -> bool:
        """Whether the weights are claimed to the byte, not only to rounding."""
        return self.separation > SEPARATION_BOUND


def rounding_scale(length: float, w: Floats, b: float) -> float:
    """The size of the terms that add up to a margin of 1: rounding errors of margins are this times 2⁻⁵² or so.

    `length` is that of the longest free sample.
    """
    return 1.0 + abs(b) + float(np.linalg.norm(w)) * length


def partition(margins: Floats, scale: float) -> tuple[Bools, Bools]:
    """Masks of the free samples (margin 1 up to rounding) and the bounded ones (below)."""
    tie = TIE * scale
    return np.abs(margins - 1.0) <= tie, margins < 1.0 - tie


def certify(X: Array, y: Array, w: Array, b: float, multipliers: Array, C: float) -> Certificate:
    """Check one head from scratch: samples, signs yᵢ = ±1, weights, multipliers, and nothing else.

    >>> X, y = np.array([[1.0], [-1.0], [-5.0]]), np.array([1.0, -1.0, -1.0])
    >>> certify(X, y, np.array([1.0]), 0.0, np.array([0.5, 0.5, 0.0]), C=1.0).relative_gap
    0.0
    """
    features, signs, w, alpha = (to_numpy(part).astype(np.float64, copy=False) for part in (X, y, w, multipliers))
    margins = signs * (features @ w + b)
    free, _ = partition(margins, 1.0 + abs(b))
    lengths = np.linalg.norm(features, axis=1)
    free, bounded = partition(margins, rounding_scale(float(np.max(lengths[free], initial=0.0)), w, b))
    influential = np.flatnonzero(alpha != 0.0)
    terms = (alpha * signs)[influential, None] * features[influential]
    return assemble(
        margins, free, bounded, alpha, w, b, C,
        lengths=lengths,
        combination=terms.sum(axis=0),
        imbalance=float(np.sum(alpha * signs)),
    )  # fmt: skip


def assemble(
    margins: Floats, free: Bools, bounded: Bools, alpha: Floats, w: Floats, b: float, C: float,
    *, lengths: Floats, combination: Floats, imbalance: float,
) -> Certificate:  # fmt: skip
    """The certificate from margins and multipliers.

    `lengths` are those of the samples, `combination` is Σ αᵢyᵢxᵢ and `imbalance` Σ αᵢyᵢ.
    """
    scale = rounding_scale(float(np.max(lengths[free], initial=0.0)), w, b)
    longest = float(np.max(lengths[alpha != 0.0], initial=0.0))
    terms = float(np.sum(np.abs(alpha) * lengths)) * longest  # what adds up to a margin, at most
    slack = np.maximum(0.0, 1.0 - margins)
    primal = 0.5 * float(w @ w) + C * float(np.sum(slack))
    dual = float(np.sum(alpha)) - 0.5 * float(combination @ combination)
    excess = np.where(alpha > 0.0, margins - 1.0, 0.0)  # α = 0 on infinite margins must not give NaN
    distance = w - combination
    # α off balance is not admissible. Balancing it changes margins' terms, each of which is at most this large.
    gap = 0.5 * float(distance @ distance) + (1.0 + abs(b) + float(np.linalg.norm(w)) * longest) * abs(imbalance)
    gap += float(np.sum((C - alpha) * slack)) + float(np.sum(alpha * np.maximum(0.0, excess)))
    shortfall = np.where(alpha < C, slack, 0.0)
    violations = [
        float(np.max(-alpha, initial=0.0)) / C,
        float(np.max(alpha - C, initial=0.0)) / C,
        float(np.max(np.minimum(shortfall, (C - alpha) / C), initial=0.0)),
        float(np.max(np.minimum(np.maximum(0.0, excess), alpha / C), initial=0.0)),
        float(np.linalg.norm(distance)) * longest / max(1.0, terms),
        abs(imbalance) / max(float(np.sum(alpha)), 1e-300),
    ]
    violation = max(violations)
    nearest = float(np.min(np.abs(margins[~free] - 1.0), initial=np.inf))
    resolution = EPSILON * terms / scale
    at_free = alpha[free]
    return Certificate(
        primal=primal,
        dual=dual,
        relative_gap=gap / primal,
        kkt_violation=violation,
        n_free=int(np.count_nonzero(free)),
        n_bounded=int(np.count_nonzero(bounded)),
        separation=nearest / scale if violation <= KKT_BOUND and resolution <= SEPARATION_BOUND else 0.0,
        resolution=resolution,
        multiplier_separation=float(np.min(np.minimum(at_free, C - at_free), initial=C)) / C,
        rounding_floor=8.0 * EPSILON * scale * C * np.count_nonzero(free) / primal,
    )
