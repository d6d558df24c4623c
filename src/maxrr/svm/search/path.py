"""From a point near the solution to the solution itself, or from the solution of one problem to that of another.

The loss is piecewise quadratic, and its pieces meet where margins are 1. So go down along lines on which the samples on
the margin stay there. At the lowest point of such a line either one more sample has come to the margin, or its
minimum with these samples on the margin is reached. Then their multipliers follow from a linear system
(`MarginSystem`), and one that is out of its bounds says that its sample is to leave: to the side of that bound, along
the next line. Samples that the line leads across the margin on its way only change what it costs to go on. Every line
leads down, and where no multiplier is out of its bounds the problem is solved: an active set method with exact line
searches, in which the sample that leaves is the one whose line falls most steeply.

Nothing here has to be believed: what comes out is a guess for `exact/multipliers.py`. Where samples are tied or too
many change sides, it gives up.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dgemm, dger
from scipy.linalg.lapack import dpotri, dtrtrs

from maxrr.svm.arrays import Bools, Floats, Ints

# The samples on the margin and the linear system that they make, up to date while samples come and go.
#
# Scores of these samples are to have given values while the classes stay in balance. The matrix of that system has the
# products of the samples, bordered by ones. A sample more or less changes its inverse by one product of a vector with
# itself, so that an update costs the square of the number of samples, not its cube.


DEPENDENT = 1e-9  # of a sample's length: nearer than this to the span of those on the margin, it depends on them
CANCELLED = 1e-6  # of the square of a sample's length: where less than this is left, digits were lost
TOGETHER = 32  # updates are added to the inverse at once, each of which would read and write all of it,
SMALL = 256  # unless it has fewer rows than this
ROOM = 64  # for so many samples more: with too much of it, products are of zeros


class MarginSystem:
    """The samples on the margin, each in a slot, and the inverse of their system. Empty slots have zeros.

    Vectors have a number for each slot, and one more: for the balance of the classes, or b.
    """

    def __init__(self, X: Floats, small: int = SMALL) -> None:
        self.all, self.small = X, small

    @property
    def filled(self) -> Ints:
        return np.flatnonzero(self.places >= 0)

    @property
    def full(self) -> bool:
        return bool(self.count > self.all.shape[1])

    def begin(self, places: Ints) -> bool:
        """Put these samples into slots; return whether they are independent."""
        self.count, dimension = (count := len(places)), self.all.shape[1]
        if not 0 < count <= dimension + 1:
            return False
        self.slots = slots = min(count + ROOM, dimension + 1)
        self.places, self.X, self.right = np.full(slots, -1), np.zeros((slots, dimension)), np.zeros(slots + 1)
        self.older, self.diagonal = np.zeros((slots + 1, slots + 1), order="F"), np.zeros(slots + 1)
        self.vectors, self.factors = np.zeros((slots + 1, TOGETHER), order="F"), np.zeros(TOGETHER)
        self.updates, self.waiting = 0, 0  # so many in all, and of these are yet to be added
        self.places[:count], self.X[:count] = places, self.all[places]
        # With one number more for every sample, √size, the matrix of their products has an inverse.
        gram = self.X[:count] @ self.X[:count].T
        size = float(gram.diagonal().max()) or 1.0
        gram += size
        try:
            factor = np.asarray(np.linalg.cholesky(gram).T, dtype=np.float64)
        except np.linalg.LinAlgError:
            return False
        if (factor.diagonal() <= DEPENDENT * np.sqrt(gram.diagonal())).any():
            return False
        inverse = np.triu(dpotri(factor)[0])
        self.older[:count, :count], self.older[-1, -1] = inverse + np.triu(inverse, 1).T, size
        self.diagonal[:] = self.older.diagonal()
        half = dtrtrs(factor, np.ones(count), trans=1)[0]
        balance = np.zeros(self.slots + 1)
        balance[:count], balance[-1] = dtrtrs(factor, half)[0], -1.0
        self.update(-1.0 / float(half @ half), balance)
        return True

    def solve(self, scores: Floats, tilt: float) -> Floats:
        """Signed multipliers that sum up to `tilt`, and then a b, with which the samples get these scores."""
        self.right[:-1], self.right[-1] = scores, tilt
        found = self.older @ self.right
        if self.waiting:
            found += self.vectors @ (self.factors * (self.right @ self.vectors))
        return np.asarray(found)

    def column(self, slot: int) -> Floats:
        """A column of the inverse."""
        if not self.waiting:
            return self.older[:, slot].copy()
        return np.asarray(self.older[:, slot] + self.vectors @ (self.factors * self.vectors[slot]))

    def update(self, factor: float, vector: Floats) -> None:
        """Add factor · vectorᵀ vector to the inverse."""
        self.diagonal += factor * vector * vector
        self.updates += 1
        if self.slots < self.small:
            dger(factor, vector, vector, a=self.older, overwrite_a=1)
            return
        if not self.waiting:
            self.vectors[:] = 0.0
        self.vectors[:, self.waiting], self.factors[self.waiting] = vector, factor
        self.waiting += 1
        if self.waiting == TOGETHER:
            dgemm(1.0, self.vectors * self.factors, self.vectors, trans_b=1, beta=1.0, c=self.older, overwrite_c=1)
            self.waiting = 0

    def drop(self, slot: int, column: Floats) -> None:
        """Take a sample out of its slot, which has this column of the inverse."""
        if self.count > 1:
            self.update(-1.0 / column[slot], column)
        self.older[slot] = self.older[:, slot] = self.vectors[slot] = self.diagonal[slot] = 0.0
        self.places[slot], self.X[slot] = -1, 0.0
        self.count -= 1

    def toward(self, place: int) -> tuple[Floats, float, Floats]:
        """A sample as a combination of the others, as far as that goes; the square of what is left; the products."""
        x = self.all[place]
        products = self.X @ x
        found, length = self.solve(products, 1.0), float(x @ x)
        beyond = length - float(found[:-1] @ products) - float(found[-1])
        if beyond < CANCELLED * length:  # what is left is mostly rounding: look at it itself
            found += self.solve(self.X @ (x - found[:-1] @ self.X), 1.0 - float(found[:-1].sum()))
            rest = x - found[:-1] @ self.X
            beyond = float(rest @ rest)
        return found, beyond if beyond > DEPENDENT**2 * length else 0.0, products

    def take(self, place: int, toward: Floats, beyond: float) -> int:
        """Put a sample into an empty slot; return which."""
        slot = int(self.places.argmin())
        toward[slot] = -1.0
        self.update(1.0 / beyond, toward)
        self.places[slot], self.X[slot] = place, self.all[place]
        self.count += 1
        return slot


OUTSIDE, MARGIN, INSIDE = 1.0, 0.0, -1.0  # on which side of the margin
DRIFTED, FINE = 1e-9, 1e-11  # margins that are off by more than this, on the way and at its end
AT_BOUND = 1e-9  # of its upper bound: a multiplier nearer than this to a bound is at it
PAUSE = 1e-24  # of the square of the weights: no step
MOST_PAUSES = 20  # so many lines in a row that lead nowhere mean that samples are tied
WATCHED = 1 << 16  # numbers of the samples nearest to the margin, and (d + 1)/2 samples, are watched for meeting it,
LOOK = 32  # and after so many lines it is looked which ones these should be
ANEW = 384  # updates after which the system is factored anew


@dataclass(frozen=True)
class Followed:
    """The end of a path: weights, intercept, and the parts of the samples that the path followed."""

    w: Floats
    b: float
    on_margin: Bools
    inside: Bools
    multipliers: Floats


@dataclass(frozen=True)
class Line:
    """A line on which the samples on the margin stay there. Its slope is bend · way − fall, until others meet it."""

    step: Floats  # of w
    shift: float  # of b
    fall: float
    bend: float


class Path:
    """One head on its way: samples (m × d) with the upper bounds of their multipliers, and which are on the margin.

    Samples that are not given are taken to stay where they are: `pull` and `tilt` are Σ αᵢyᵢxᵢ and Σ αᵢyᵢ over them.
    `found` has the multipliers and b at the lowest point with these samples on the margin.
    """

    def __init__(
        self, X: Floats, y: Floats, w: Floats, b: float, on_margin: Bools, caps: Floats, pull: Floats, tilt: float
    ) -> None:
        self.X, self.y, self.w, self.b, self.caps, self.pull, self.tilt = X, y, w, b, caps, pull, tilt
        self.side = np.where(on_margin, MARGIN, OUTSIDE)  # until it was looked
        self.on_margin = MarginSystem(X)
        self.lowest = self.steady = False  # whether that is here, and whether all was looked at here

    @np.errstate(all="ignore")  # numbers may overflow
    def follow(self, most_lines: int) -> Followed | None:
        """The solution, or None if that takes more lines, samples are tied or numbers too far apart."""
        pauses, possible = 0, self.begin() and self.look()
        for lines in range(1, most_lines + 1):
            if not possible:
                return None
            line = self.down() or self.off()
            if line is None:
                if self.steady:
                    return self.end()
                possible = self.look(FINE)
                continue
            self.steady = False
            length, meeting = self.go(line)
            self.lowest = meeting < 0
            pauses = 0 if length > 0.0 else pauses + 1
            possible = math.isfinite(length) and pauses <= MOST_PAUSES
            possible = possible and (self.lowest or self.join(meeting))
            if possible and lines % LOOK == 0:
                possible = self.look()
        return None

    def begin(self) -> bool:
        """Factor the system anew; return whether it has a solution."""
        if not self.on_margin.begin(np.flatnonzero(self.side == MARGIN)):
            return False
        places = self.on_margin.places
        self.signs, self.tops = np.where(places >= 0, (self.y[places], self.caps[places]), ((0.0,), (1.0,)))
        self.slack = AT_BOUND * self.tops
        self.find()
        return True

    def find(self) -> None:
        """Compute anew what is kept up to date."""
        self.found = self.on_margin.solve(self.signs - self.on_margin.X @ self.pull, -self.tilt)

    def cross(self, places: Ints) -> tuple[Floats, float]:
        """Let samples change from one side to the other; return how they pull more than before."""
        sides = -self.side[places]
        signed = -sides * self.caps[places] * self.y[places]
        change, total = signed @ self.X[places], float(signed.sum())
        self.side[places], self.pull, self.tilt = sides, self.pull + change, self.tilt + total
        return change, total

    def look(self, tolerance: float = DRIFTED) -> bool:
        """Look at all samples, and factor the system anew where its many updates have lost too many digits."""
        if self.on_margin.updates < ANEW and self.recompute(tolerance):
            return True
        return self.begin() and self.recompute(tolerance)

    def recompute(self, tolerance: float) -> bool:
        """Recompute the margins of all samples, free of accumulated rounding, and choose those to watch."""
        system, filled = self.on_margin, self.on_margin.filled
        members = system.places[filled]
        if self.lowest:
            self.find()
            self.w, self.b = self.pull + self.found[:-1] @ system.X, float(self.found[-1])
        for _ in range(3):
            margins = self.y * (self.X @ self.w + self.b)
            off = np.zeros(system.slots)
            off[filled] = self.y[members] * (1.0 - margins[members])
            if np.abs(off).max() <= tolerance:
                break
            change = system.solve(off, 0.0)
            self.w, self.b = self.w + change[:-1] @ system.X, self.b + float(change[-1])
        else:
            return False
        crossed = np.flatnonzero(self.side * (margins - 1.0) < -tolerance)
        self.steady = not len(crossed)
        if len(crossed):
            self.cross(crossed)
        self.lowest = self.lowest and self.steady
        self.find()
        # The nearest are watched. Each line until the next look may add one that leaves the margin.
        distances = np.abs(margins - 1.0)
        distances[members] = np.inf
        width = self.X.shape[1] + 1
        count = min(WATCHED // width + width // 2, len(distances) - len(members))
        nearest = np.argpartition(distances, count - 1)[:count] if count else members[:0]
        self.watched, self.numbers = np.append(nearest, np.full(LOOK, -1)), np.full(len(distances), -1)
        self.numbers[nearest], self.next_number = np.arange(count), count
        self.rows = np.zeros((count + LOOK, width), dtype=np.float32)  # for who comes next, 24 bits are enough
        self.rows[:count, :-1], self.rows[:count, -1] = self.X[nearest], 1.0
        self.rows[:count] *= self.y[nearest, None]
        self.direction = np.empty_like(self.rows[0])
        self.sides = np.append(self.side[nearest], np.zeros(LOOK))
        self.distance = np.append(np.maximum(self.side[nearest] * (margins[nearest] - 1.0), 0.0), np.zeros(LOOK))
        return True

    def put(self, place: int, side: float) -> None:
        """Put a sample that leaves the margin to one side of it, and watch it."""
        if self.numbers[place] < 0:
            self.numbers[place], self.watched[self.next_number] = self.next_number, place
            np.multiply(self.X[place], self.y[place], out=self.rows[self.next_number, :-1], casting="same_kind")
            self.rows[self.next_number, -1] = self.y[place]
            self.next_number += 1
        self.side[place] = self.sides[self.numbers[place]] = side
        if side == INSIDE:
            self.pull_by(place, float(self.caps[place] * self.y[place]))

    def pull_by(self, place: int, signed: float) -> None:
        """Let a sample pull at the weights with this multiplier more."""
        self.pull, self.tilt = self.pull + signed * self.X[place], self.tilt + signed

    def down(self) -> Line | None:
        """The line to the lowest point with these samples on the margin; None at this point."""
        if self.lowest or self.on_margin.full:
            return None
        step = self.pull + self.found[:-1] @ self.on_margin.X - self.w
        bend = float(step @ step)
        return Line(step, float(self.found[-1]) - self.b, bend, bend) if bend > PAUSE * float(self.w @ self.w) else None

    def off(self) -> Line | None:
        """The line on which a sample leaves whose multiplier is out of its bounds; None where all are within them.

        It is the one that gains most on its way, as far as no others meet it.
        """
        system, multipliers = self.on_margin, self.found[:-1] * self.signs
        beyond = np.maximum(-multipliers, multipliers - self.tops)
        gains = np.where(beyond > self.slack, beyond * beyond / np.abs(system.diagonal[:-1]), 0.0)
        slot = int(gains.argmax())
        if not gains[slot] > 0.0:
            return None
        side, place = OUTSIDE if multipliers[slot] < 0.0 else INSIDE, int(system.places[slot])
        column = system.column(slot)
        toward = side * self.signs[slot]
        bend = float(column[slot]) if system.count > 1 else 0.0  # one sample leaves only b to change
        line = Line(toward * (column[:-1] @ system.X), float(toward * column[-1]), float(beyond[slot]), bend)
        self.found += column * (toward * beyond[slot] / column[slot])
        self.found[slot] = 0.0
        system.drop(slot, column)
        self.signs[slot], self.tops[slot], self.slack[slot] = 0.0, 1.0, AT_BOUND
        self.put(place, side)
        return line

    def go(self, line: Line) -> tuple[float, int]:
        """Go along a line to its lowest point; return how far that is, and which sample is met there or −1."""
        self.direction[:-1], self.direction[-1] = line.step, line.shift
        speed = self.sides * (self.rows @ self.direction)
        nearing = (line.bend * self.distance < -line.fall * speed).nonzero()[0]
        rates = -speed[nearing]
        times = self.distance[nearing] / rates
        meeting, crossed, slope = -1, list[int](), -line.fall
        for number in times.argsort().tolist():
            length, watched = float(times[number]), int(nearing[number])
            if slope + line.bend * length >= 0.0:
                break
            slope += float(self.caps[self.watched[watched]] * rates[number])
            if slope + line.bend * length >= 0.0:
                meeting = watched
                break
            crossed.append(watched)
        if meeting < 0:
            length = -slope / line.bend if line.bend > 0.0 else math.inf
        self.w, self.b = self.w + length * line.step, self.b + length * line.shift
        self.distance += length * speed
        if crossed:
            change, total = self.cross(self.watched[crossed])
            self.sides[crossed] *= -1.0
            self.distance[crossed] *= -1.0
            self.found -= self.on_margin.solve(self.on_margin.X @ change, total)
        return length, meeting

    def join(self, number: int) -> bool:
        """Let a sample that was watched come to the margin; return whether it does not depend on those there."""
        place = int(self.watched[number])
        sign, top = float(self.y[place]), float(self.caps[place])
        signed = sign * top if self.sides[number] == INSIDE else 0.0  # its multiplier until now
        self.side[place] = self.sides[number] = MARGIN
        self.distance[number] = 0.0
        if not 0 < self.on_margin.count < self.on_margin.slots:
            self.pull_by(place, -signed)
            return self.begin()
        toward, beyond, products = self.on_margin.toward(place)
        if not beyond > 0.0:
            return False
        score = float(self.X[place] @ self.pull) + float(products @ self.found[:-1]) + float(self.found[-1])
        slot = self.on_margin.take(place, toward, beyond)
        self.found -= toward * ((sign - score) / beyond)
        self.found[slot] += signed
        self.pull_by(place, -signed)
        self.signs[slot], self.tops[slot], self.slack[slot] = sign, top, AT_BOUND * top
        return True

    def end(self) -> Followed:
        """Return what was found."""
        on_margin, inside = self.side == MARGIN, self.side == INSIDE
        multipliers, filled = np.where(inside, self.caps, 0.0), self.on_margin.filled
        members = self.on_margin.places[filled]
        multipliers[members] = np.clip((self.found[:-1] * self.signs)[filled], 0.0, self.caps[members])
        return Followed(self.w, self.b, on_margin, inside, multipliers)
