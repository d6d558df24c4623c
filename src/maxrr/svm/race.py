"""Distances that change linearly with time, and which of them is the first to vanish."""

import numpy as np

from maxrr.svm.arrays import Floats


class Race:
    """Distances, and how fast they change; infinite ones take no part.

    >>> race = Race(np.array([3.0, 1.0, 2.0]))
    >>> race.speed[:] = -1.0, 1.0, -2.0
    >>> race.first()
    (1.0, 2)
    """

    def __init__(self, distance: Floats) -> None:
        self.distance, self.speed = distance, np.zeros_like(distance)

    def first(self) -> tuple[float, int]:
        """How long it takes until a distance vanishes, and which: at once for one below zero; −1 if none does."""
        nearing = (self.speed < 0.0).nonzero()[0]
        if not len(nearing):
            return np.inf, -1
        lengths = self.distance[nearing] / self.speed[nearing]
        number = lengths.argmax()
        return max(-float(lengths[number]), 0.0), int(nearing[number])

    def advance(self, length: float) -> None:
        self.distance += length * self.speed
