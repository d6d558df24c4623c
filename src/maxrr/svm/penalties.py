"""What the loss of each sample weighs.

The loss of sample i counts Cᵢ times in every head, and Cᵢ is also the upper bound of its multipliers there. Cᵢ is the
exact product of two float64 numbers: C, and the weight of the sample times that of its class. So a sample of weight 3
is the same as three samples, whatever C, and one of weight zero takes no part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.limits import LARGEST_PENALTY, SMALLEST_PENALTY

ClassWeight = Mapping[Any, float]


@dataclass(frozen=True)
class Penalties:
    """Cᵢ of every sample, and what they came from.

    Samples that take no part, because they were erased or have weight zero, are given C: nobody looks.
    """

    C: float
    weights: Floats  # of the samples alone, as they were given
    bounds: Floats  # Cᵢ in units of C
    even: bool = field(init=False)  # whether every bound was 1 when this was made, those erased since included

    def __post_init__(self) -> None:
        object.__setattr__(self, "even", bool((self.bounds == 1.0).all()))

    @property
    def caps(self) -> Floats:
        """Cᵢ, rounded."""
        return self.C * self.bounds

    def erase(self, rows: Ints | slice) -> None:
        """Overwrite what is known of some samples."""
        self.weights[rows] = self.bounds[rows] = 1.0  # not zero: nothing divides by it, or takes it for absent

    def copied(self) -> "Penalties":
        """The same in memory of their own."""
        return Penalties(self.C, self.weights.copy(), self.bounds.copy())

    def only(self, rows: Ints) -> "Penalties":
        """Those of some samples."""
        return Penalties(self.C, self.weights[rows], self.bounds[rows])

    def followed_by(self, others: "Penalties") -> "Penalties":
        """Those of these samples and of others."""
        return Penalties(
            self.C, np.concatenate([self.weights, others.weights]), np.concatenate([self.bounds, others.bounds])
        )


def weigh(C: float, class_weight: ClassWeight | None, labels: Sequence[Any], weights: Floats) -> Penalties:
    """The penalties of samples with these labels and weights of their own."""
    of_classes = np.array([1.0 if class_weight is None else class_weight.get(label, 1.0) for label in labels])
    with np.errstate(over="ignore", under="ignore"):
        bounds = np.where(weights > 0.0, weights * of_classes, 1.0)
        caps = C * bounds
    beyond = np.flatnonzero(~((caps >= SMALLEST_PENALTY) & (caps <= LARGEST_PENALTY)))
    if len(beyond):
        row = int(beyond[0])
        raise ValueError(
            f"the loss of sample {row} weighs C · {bounds[row]:g} = {caps[row]:g}, which must be between "
            f"{SMALLEST_PENALTY:.0e} and {LARGEST_PENALTY:.0e}: choose weights around 1"
        )
    return Penalties(C, weights, bounds)
