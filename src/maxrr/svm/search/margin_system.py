"""The samples on the margin and the linear system that they make, up to date while samples come and go.

Scores of these samples are to rise by given amounts while the classes stay in balance: that asks for the inverse of the
matrix of their products. A sample more or less changes the inverse by one product of a vector with itself, and the
solution by a multiple of that vector, so that an update costs the square of the number of samples, not its cube. With
few features the inverse is kept as it is. With many, where it does not fit into a processor's cache, it is kept as the
factor of the matrix for the samples at the beginning and a list of what has happened since.
"""

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dtrtrs

from maxrr.svm.arrays import Bools, Floats, Ints

DEPENDENT = 1e-9  # of a sample's length: nearer than this to the span of those on the margin, it depends on them
CANCELLED = 1e-6  # of the square of a sample's length: where less than this is left, digits were lost
MOST_UPDATES = 256  # on the list
SMALL = 128  # slots up to which the inverse is kept as it is


class MarginSystem:
    """The samples on the margin, each in a slot, and the inverse of the matrix of their products.

    Every sample has one number more, √size: then the inverse exists for up to d + 1 of them, and a shift of b can be
    told from a change of w. Empty slots have zeros. The solution for one right side is kept up to date.
    """

    def __init__(self, X: Floats, size: float) -> None:
        slots = X.shape[1] + 1
        self.all, self.size, self.count = X, size, 0
        self.places = np.full(slots, -1)
        self.X = np.zeros((slots, X.shape[1]))
        self.factor: Floats = np.zeros((0, 0))  # upper triangular
        self.inverse = np.zeros((slots, slots), order="F") if slots <= SMALL else None
        self.vectors, self.signs, self.updates = np.zeros((MOST_UPDATES, slots)), np.zeros(MOST_UPDATES), 0
        self.right = np.zeros((2, slots))  # what is asked of the scores, and ones
        self.solution = np.zeros((2, slots))  # right · inverse

    @property
    def filled(self) -> Bools:
        return self.places >= 0

    @property
    def full(self) -> bool:
        return self.count == len(self.places)

    def begin(self, places: Ints) -> bool:
        """Start with these samples; whether they are independent."""
        self.count = count = len(places)
        if not 0 < count <= len(self.places):
            return False
        self.places[:], self.X[count:], self.right[1] = -1, 0.0, 0.0
        self.places[:count], self.X[:count], self.right[1, :count] = places, self.all[places], 1.0
        gram = self.X[:count] @ self.X[:count].T + self.size
        try:
            self.factor, self.updates = np.asarray(np.linalg.cholesky(gram).T, dtype=np.float64), 0
        except np.linalg.LinAlgError:
            return False
        if self.inverse is not None:
            half = dtrtrs(self.factor, np.eye(count), trans=1)[0]
            self.inverse[:] = 0.0
            self.inverse[:count, :count] = half.T @ half
        return not (self.factor.diagonal() <= DEPENDENT * np.sqrt(gram.diagonal())).any()

    def times(self, vector: Floats) -> Floats:
        """inverse · vector."""
        if self.inverse is not None:
            product: Floats = np.dot(self.inverse, vector)
            return product
        count, vectors = len(self.factor), self.vectors[: self.updates]
        found: Floats = (self.signs[: self.updates] * (vectors @ vector)) @ vectors
        found[:count] += dtrtrs(self.factor, dtrtrs(self.factor, vector[:count], trans=1)[0])[0]
        return found

    def ask(self, scores: Floats) -> None:
        """How much the scores of the samples, by slot, are to rise."""
        self.right[0] = scores
        self.solution[0], self.solution[1] = self.times(self.right[0]), self.times(self.right[1])

    def solve(self, tilt: float) -> tuple[Floats, float]:
        """Signed multipliers that sum up to −tilt and a shift of b, which raise the scores by as much as was asked."""
        (found, balance), (total, weight) = self.solution, self.solution @ self.right[1]
        shift = float((total + tilt) / weight)
        return found - shift * balance, shift - self.size * tilt

    def note(self, factor: float, vector: Floats) -> None:
        """factor · vectorᵀ vector is added to the inverse."""
        if self.inverse is not None:
            dger(factor, vector, vector, a=self.inverse, overwrite_a=1)
        else:
            np.multiply(vector, abs(factor) ** 0.5, out=self.vectors[self.updates])
            self.signs[self.updates] = 1.0 if factor > 0.0 else -1.0
        self.updates += 1

    def column(self, slot: int) -> Floats:
        """One of the inverse."""
        if self.inverse is not None:
            return self.inverse[:, slot].copy()
        unit = np.zeros(len(self.places))
        unit[slot] = 1.0
        return self.times(unit)

    def drop(self, slot: int) -> None:
        """Take a sample out of its slot."""
        column = self.column(slot)
        factor = -1.0 / column[slot]
        # The solution without what was asked of the sample, and then without the sample.
        asked = self.right[:, slot].copy()
        self.places[slot], self.X[slot], self.right[:, slot] = -1, 0.0, 0.0
        self.solution += (factor * (self.right @ column) - asked)[:, None] * column
        self.solution[:, slot] = 0.0
        self.count -= 1
        self.note(factor, column)
        if self.inverse is not None:
            self.inverse[slot] = self.inverse[:, slot] = 0.0

    def toward(self, place: int) -> tuple[Floats, float]:
        """A sample as a combination of those in slots, as far as that goes, and the square of what is left of it."""
        x, filled = self.all[place], self.right[1]
        products = self.X @ x + self.size * filled
        found = self.times(products) * filled
        length = float(x @ x) + self.size
        beyond = length - float(found @ products)
        if beyond < CANCELLED * length:  # what is left is mostly rounding: look at it itself
            rest, missing = x - found @ self.X, 1.0 - float(found.sum())
            found += self.times(self.X @ rest + self.size * missing * filled) * filled
            rest, missing = x - found @ self.X, 1.0 - float(found.sum())
            beyond = float(rest @ rest) + self.size * missing**2
        return found, beyond if beyond > DEPENDENT**2 * length and not self.full else 0.0

    def take(self, place: int, toward: Floats, beyond: float, score: float) -> int:
        """Put a sample, whose score is to rise by `score`, into an empty slot; which one."""
        slot = int(self.places.argmin())
        toward[slot] = -1.0
        self.places[slot], self.X[slot], self.right[:, slot] = place, self.all[place], (score, 1.0)
        self.solution += ((self.right @ toward) / beyond)[:, None] * toward
        self.count += 1
        self.note(1.0 / beyond, toward)
        return slot
