"""The samples on the margin and the linear system that they make, up to date while samples come and go.

Scores of these samples are to rise by given amounts while the classes stay in balance: that asks for the inverse of the
matrix of their products. A sample more or less changes the inverse by one product of a vector with itself, and the
solution by a multiple of that vector, so that an update costs the square of the number of samples, not its cube.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from maxrr.svm.arrays import Bools, Floats, Ints

DEPENDENT = 1e-9  # of a sample's length: nearer than this to the span of those on the margin, it depends on them
FOLD = 16  # updates that are kept beside the inverse before they are added to it


class MarginSystem:
    """The samples on the margin, each in a slot, and the inverse of the matrix of their products.

    Every sample has one number more, √size: then the inverse exists for up to d + 1 of them, and a shift of b can be
    told from a change of w. Empty slots have zeros. The solution for one right side is kept up to date.
    """

    def __init__(self, X: Floats, size: float) -> None:
        slots = X.shape[1] + 1
        self.all, self.size = X, size
        self.places = np.full(slots, -1)
        self.X = np.zeros((slots, X.shape[1]))
        self.inverse = np.zeros((slots, slots))  # without Σ sign · vector vectorᵀ over the last updates
        self.vectors, self.signs, self.updates = np.zeros((slots, FOLD)), np.zeros(FOLD), 0
        self.right = np.zeros((slots, 2))  # what is asked of the scores, and ones
        self.solution = np.zeros((slots, 2))  # inverse · right

    @property
    def filled(self) -> Bools:
        return self.places >= 0

    def begin(self, places: Ints) -> bool:
        """Start with these samples; whether they are independent."""
        count = len(places)
        if not 0 < count <= len(self.places):
            return False
        self.places[:], self.X[:], self.inverse[:], self.vectors[:], self.updates = -1, 0.0, 0.0, 0.0, 0
        self.places[:count], self.X[:count] = places, self.all[places]
        gram = self.X[:count] @ self.X[:count].T + self.size
        factor, failed = dpotrf(gram)
        if failed or (np.diag(factor) <= DEPENDENT * np.sqrt(np.diag(gram))).any():
            return False
        upper = np.triu(dpotri(factor, overwrite_c=1)[0])
        self.inverse[:count, :count] = upper + np.triu(upper, 1).T
        return True

    def times(self, vectors: Floats) -> Floats:
        """inverse · vectors."""
        found: Floats = self.inverse @ vectors + self.vectors @ ((self.signs * (self.vectors.T @ vectors).T).T)
        return found

    def ask(self, scores: Floats) -> None:
        """How much the scores of the samples, by slot, are to rise."""
        self.right = np.column_stack([scores, self.filled])
        self.solution = self.times(self.right)

    def solve(self, tilt: float) -> tuple[Floats, float]:
        """Signed multipliers that sum up to −tilt and a shift of b, which raise the scores by as much as was asked."""
        found, balance = self.solution.T
        shift = (np.sum(found) + tilt) / np.sum(balance)
        return found - shift * balance, float(shift - self.size * tilt)

    def update(self, factor: float, vector: Floats) -> None:
        """Add factor · vector vectorᵀ to the inverse."""
        self.solution += np.outer(factor * vector, vector @ self.right)
        number = self.updates % FOLD
        self.vectors[:, number], self.signs[number] = np.sqrt(abs(factor)) * vector, np.sign(factor)
        self.updates += 1
        if number == FOLD - 1:
            self.inverse += (self.signs * self.vectors) @ self.vectors.T
            self.vectors[:] = 0.0

    def drop(self, place: int) -> None:
        """Take a sample out of its slot."""
        slot = int(np.flatnonzero(self.places == place)[0])
        column = self.inverse[slot] + self.vectors @ (self.signs * self.vectors[slot])
        self.solution -= np.outer(column, self.right[slot])
        self.places[slot], self.X[slot], self.right[slot] = -1, 0.0, 0.0
        self.update(-1.0 / column[slot], column)
        self.solution[slot] = 0.0

    def toward(self, place: int) -> tuple[Floats, float]:
        """A sample as a combination of those in slots, as far as that goes, and the square of what is left of it."""
        x = self.all[place]
        products = np.where(self.filled, self.X @ x + self.size, 0.0)
        found = np.where(self.filled, self.times(products), 0.0)
        length = float(x @ x) + self.size
        beyond = length - float(found @ products)
        return found, beyond if beyond > DEPENDENT**2 * length and not self.filled.all() else 0.0

    def take(self, place: int, toward: Floats, beyond: float, score: float) -> None:
        """Put a sample, whose score is to rise by `score`, into an empty slot."""
        slot = int(np.flatnonzero(~self.filled)[0])
        # What rounding left in that slot must not come back.
        self.inverse[slot] = self.inverse[:, slot] = self.vectors[slot] = 0.0
        toward[slot] = -1.0
        self.places[slot], self.X[slot], self.right[slot] = place, self.all[place], (score, 1.0)
        self.update(1.0 / beyond, toward)
