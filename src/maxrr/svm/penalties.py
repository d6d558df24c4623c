"""What the loss of each sample weighs.

The loss of sample i counts Cᵢ times in every head, and Cᵢ is also the upper bound of its multipliers. It is the float64
number C · (sample weight · weight of the sample's class), computed once: from there on it means exactly what it says. A
sample of weight zero takes no part.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.validation import LARGEST_PENALTY, SMALLEST_PENALTY

ClassWeight = Mapping[Any, float]


@dataclass(frozen=True)
class Penalties:
    """Cᵢ of every sample, and the weights that they came from.

    Samples that take no part, because they were erased or have weight zero, are given C: nobody looks.
    """

    C: float
    weights: Floats  # those of the samples alone, as given
    caps: Floats  # Cᵢ
    even: bool = field(init=False)  # whether all samples weigh the same; stays known after some were erased

    def __post_init__(self) -> None:
        object.__setattr__(self, "even", bool((self.caps == self.C).all()))

    @classmethod
    def even_for(cls, C: float, count: int) -> "Penalties":
        """All weights are 1."""
        return cls(C, np.ones(count), np.full(count, C))

    @property
    def unit(self) -> float:
        """What multipliers are counted in: every Cᵢ is a float64 number of units, exactly."""
        return self.C if self.even else math.ldexp(1.0, math.frexp(self.C)[1] - 1)

    @property
    def bounds(self) -> Floats:
        """Cᵢ in units."""
        return self.caps / self.unit

    def erase(self, rows: Ints) -> None:
        """Overwrite what is known of some samples."""
        self.weights[rows], self.caps[rows] = 1.0, self.C

    def copied(self) -> "Penalties":
        """The same in memory of their own."""
        return Penalties(self.C, self.weights.copy(), self.caps.copy())

    def followed_by(self, others: "Penalties") -> "Penalties":
        """Those of these samples and of others."""
        return Penalties(
            self.C, np.concatenate([self.weights, others.weights]), np.concatenate([self.caps, others.caps])
        )


def weigh(C: float, class_weight: ClassWeight | None, labels: Sequence[Any], weights: Floats) -> Penalties:
    """The penalties of samples with these labels and weights of their own."""
    if class_weight is None:
        factors = weights
    else:
        factors = weights * np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        caps = np.where(weights > 0.0, C * factors, C)
    beyond = np.flatnonzero(~((caps >= SMALLEST_PENALTY) & (caps <= LARGEST_PENALTY)))
    if len(beyond):
        row = int(beyond[0])
        raise ValueError(
            f"sample {row} weighs C · {factors[row]:g} = {caps[row]:g}, and must be between {SMALLEST_PENALTY:.0e} "
            f"and {LARGEST_PENALTY:.0e}: weights need not add up to anything, so choose them around 1"
        )
    return Penalties(C, weights, caps)
