"""What the solver works on: samples with their classes, and one head among them, solved or not yet."""

from dataclasses import dataclass

import numpy as np

from maxrr.svm import canonical
from maxrr.svm.arrays import Array, Bools, Floats, Ints, like, rows, to_numpy
from maxrr.svm.hinge import Certificate


@dataclass(frozen=True)
class Samples:
    """All samples of a classifier. Erased ones keep their place, but not their contents.

    `codes` numbers the class of each sample, `rank` its place in the canonical order (that of the keys).
    """

    X: Array
    codes: Ints
    rank: Ints
    alive: Bools

    def signs(self, positive: int) -> Floats:
        """+1 for the samples of one class, −1 for the rest."""
        return np.where(self.codes == positive, 1.0, -1.0)

    def scores(self, weights: Floats) -> Floats:
        """X @ weights (d × heads): one pass over the data."""
        return to_numpy(self.X @ like(weights, self.X))

    def rows(self, positions: Ints) -> Floats:
        """Some samples' features in main memory."""
        return to_numpy(rows(self.X, positions))

    def in_order(self, chosen: Bools) -> Ints:
        """The positions of the chosen samples in canonical order."""
        positions = np.flatnonzero(chosen)
        return positions[np.argsort(self.rank[positions])]


@dataclass(frozen=True)
class Head:
    """One head, solved: weights, the partition they came from (positions in canonical order), and the proof.

    `margins` holds yᵢ(w·xᵢ + b) for every sample, infinite where a sample was erased; `multipliers` those of the free
    samples (the bounded ones have C, the rest 0).
    """

    positive: int
    w: Floats
    b: float
    margins: Floats
    free: Ints
    bounded: Ints
    multipliers: Floats
    certificate: Certificate

    def alpha(self, C: float) -> Floats:
        """All multipliers."""
        alpha = np.zeros(len(self.margins))
        alpha[self.bounded] = C
        alpha[self.free] = self.multipliers
        return alpha


@dataclass
class Trial:
    """One head on its way to a solution: where it is, and what it takes for granted about samples far from there."""

    positive: int
    y: Floats
    w: Floats
    b: float
    margins: Floats
    alpha: Floats
    width: float  # of the smoothed kink, in units of the margin
    reach: float  # samples with margins further from 1 than this are left out of the working set
    frozen: Bools  # those among them taken to be bounded
    pull: Floats  # C Σ yᵢxᵢ over them
    tilt: float  # C Σ yᵢ over them
    warm: bool = False  # the partition is already a good guess
    rounds: int = 0
    patience: int = 6
    spread: float = np.inf
    best: Head | None = None

    def freeze(self, samples: Samples, C: float, frozen: Bools) -> None:
        """Change which samples are taken for bounded, touching only those that change."""
        for changed, sign in ((frozen & ~self.frozen, C), (self.frozen & ~frozen, -C)):
            positions = np.flatnonzero(changed)
            if len(positions):
                y = self.y[positions]
                self.pull = self.pull + sign * canonical.signed_sum(samples.rows(positions), y)
                self.tilt += sign * float(np.sum(y))
        self.frozen = frozen
