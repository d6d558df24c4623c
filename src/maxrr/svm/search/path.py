"""From a point near the solution to the solution itself, or from the solution of one problem to that of another.

Any multipliers within their bounds, with any b, solve a problem that is somewhat different: one that asks of each
sample not for a margin of 1 but for the margin that it has. And what was solved before some samples left or arrived is
the solution of a problem in which they weigh as much as before. So let all these differences fade, linearly with a time
t from 0 to 1: the margins asked for become 1, samples that leave weigh less and less, samples that arrive more and
more. The solution follows continuously. As long as no sample changes sides, those on the margin have to keep the
margin asked for, which is a linear system (`MarginSystem`): weights, bias and multipliers move along a straight
line. It ends where a multiplier meets a bound, or a margin the one asked for. Then that sample changes
sides, the system is updated for it, and the next line begins. At t = 1 the problem is solved.

Nothing here has to be believed: what comes out is a guess for `exact/multipliers.py`. Where samples are tied or too
many change sides, it gives up.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dtrtrs

from maxrr.svm.arrays import GOLDEN, Bools, Floats, Ints

# The samples on the margin and the linear system that they make, up to date while samples come and go.
#
# Scores of these samples are to rise by given amounts while the classes stay in balance: that asks for the inverse of
# the matrix of their products. A sample more or less changes the inverse by one product of a vector with itself, and
# the solution by a multiple of that vector, so that an update costs the square of the number of samples, not its cube.


DEPENDENT = 1e-9  # of a sample's length: nearer than this to the span of those on the margin, it depends on them
CANCELLED = 1e-6  # of the square of a sample's length: where less than this is left, digits were lost
TOGETHER = 32  # updates are added to the inverse at once: each would read and write all of it


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
        self.older, self.updates = np.zeros((slots, slots), order="F"), 0  # the inverse before the latest updates
        self.vectors, self.factors = np.zeros((slots, TOGETHER), order="F"), np.zeros(TOGETHER)  # and these updates
        self.right = np.zeros((2, slots))  # what is asked of the scores, and ones
        self.solution = np.zeros((2, slots))  # right · inverse

    @property
    def filled(self) -> Bools:
        return self.places >= 0

    @property
    def full(self) -> bool:
        return self.count == len(self.places)

    def begin(self, places: Ints) -> bool:
        """Put these samples into slots; return whether they are independent."""
        self.count = count = len(places)
        if not 0 < count <= len(self.places):
            return False
        self.places[:], self.X[count:], self.right[1] = -1, 0.0, 0.0
        self.places[:count], self.X[:count], self.right[1, :count] = places, self.all[places], 1.0
        gram = self.X[:count] @ self.X[:count].T + self.size
        try:
            factor = np.asarray(np.linalg.cholesky(gram).T, dtype=np.float64)
        except np.linalg.LinAlgError:
            return False
        half, self.updates = dtrtrs(factor, np.eye(count), trans=1)[0], 0
        self.older[:], self.vectors[:] = 0.0, 0.0
        self.older[:count, :count] = half.T @ half
        return not (factor.diagonal() <= DEPENDENT * np.sqrt(gram.diagonal())).any()

    def times(self, vector: Floats) -> Floats:
        """inverse · vector."""
        return self.older @ vector + self.vectors @ (self.factors * (vector @ self.vectors))

    def ask(self, scores: Floats) -> None:
        """Set how much the scores of the samples, by slot, are to rise."""
        self.right[0] = scores
        self.solution[0], self.solution[1] = self.times(self.right[0]), self.times(self.right[1])

    def solve(self, tilt: float) -> tuple[Floats, float]:
        """Signed multipliers that sum up to −tilt and a shift of b, which raise the scores by as much as was asked."""
        (found, balance), (total, weight) = self.solution, self.solution @ self.right[1]
        shift = float((total + tilt) / weight)
        return found - shift * balance, shift - self.size * tilt

    def note(self, factor: float, vector: Floats) -> None:
        """Add factor · vectorᵀ vector to the inverse."""
        number = self.updates % TOGETHER
        self.vectors[:, number], self.factors[number] = vector, factor
        self.updates += 1
        if number == TOGETHER - 1:
            dgemm(1.0, self.vectors * self.factors, self.vectors, trans_b=1, beta=1.0, c=self.older, overwrite_c=1)
            self.vectors[:] = 0.0

    def drop(self, slot: int) -> None:
        """Take a sample out of its slot."""
        column = self.older[:, slot] + self.vectors @ (self.factors * self.vectors[slot])
        factor = -1.0 / column[slot]
        # The solution without what was asked of the sample, and then without the sample.
        asked = self.right[:, slot].copy()
        self.places[slot], self.X[slot], self.right[:, slot] = -1, 0.0, 0.0
        self.solution += (factor * (self.right @ column) - asked)[:, None] * column
        self.solution[:, slot] = 0.0
        self.count -= 1
        self.note(factor, column)
        self.older[slot] = self.older[:, slot] = self.vectors[slot] = 0.0

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


# Distances that change linearly with time, and which of them is the first to vanish.


class Race:
    """Distances that shrink over time, to find which vanishes first. Infinite distances take no part.

    >>> race = Race(np.array([3.0, 1.0, 2.0]))
    >>> race.speed[:] = -1.0, 1.0, -2.0
    >>> race.first()
    (1.0, 2)
    """

    def __init__(self, distance: Floats) -> None:
        self.distance, self.speed = distance, np.zeros_like(distance)

    def first(self) -> tuple[float, int]:
        """Return how long it takes until a distance vanishes, and which distance; −1 if none does."""
        nearing = (self.speed < 0.0).nonzero()[0]
        if not len(nearing):
            return np.inf, -1
        lengths = self.distance[nearing] / self.speed[nearing]
        number = lengths.argmax()
        return max(-float(lengths[number]), 0.0), int(nearing[number])


OUTSIDE, MARGIN, INSIDE = 1.0, 0.0, -1.0  # on which side of the margin
DRIFTED, FINE = 1e-7, 1e-11  # margins that are off by more than this, on the way and at its end
AT_BOUND = 1e-9  # of its upper bound: a multiplier nearer than this to a bound is at it
PAUSE = 1e-12  # a line shorter than this leads nowhere,
MOST_PAUSES = 20  # and so many in a row mean that samples are tied
ROUNDING = 1e-13  # of a margin near 1
CLEAR = 0.1  # of how far a sample is out of place, at most: so much clear of the margin it is
WATCHED = 96  # samples at least, or (d + 1)/2, are watched for meeting the margin,
NEARER = 1e-3  # times as near as they are samples out of place count,
LOOK = 32  # and after so many events it is looked which ones these should be
ANEW = 192  # updates after which the system is factored anew
MOST_LEGS = 8  # from 0 to 1: once more, if samples that were not watched have crossed


@dataclass(frozen=True)
class Followed:
    """The end of a path: weights, intercept, and the parts of the samples that the path followed."""

    w: Floats
    b: float
    on_margin: Bools
    inside: Bools
    multipliers: Floats


class Path:
    """One head on its way: samples (m × d), their multipliers, and the upper bounds of these at both ends.

    Samples that are not given are taken to stay where they are; `off` is Σ αᵢyᵢ over all, those included.

    What can end a line takes part in a race. Its distances are, by slot, how far the multipliers of the samples on the
    margin are above zero, then how far they are below their upper bounds, and then how far the samples that are watched
    are from the margin asked for. `alpha` has the multipliers of samples on the margin only when they were settled.
    """

    def __init__(
        self, X: Floats, y: Floats, w: Floats, b: float, alpha: Floats, first: Floats, last: Floats, off: float
    ) -> None:
        self.X, self.y, self.w, self.b, self.alpha = X, y, w.copy(), b, alpha.copy()
        slack = AT_BOUND * first
        between = (alpha > slack) & (alpha < first - slack)
        self.margins = y * (X @ w + b)
        inside = np.where(first > 0.0, alpha >= first - slack, self.margins < 1.0)
        self.side = np.where(between, MARGIN, np.where(inside, INSIDE, OUTSIDE))
        self.on_margin, self.slots = MarginSystem(X, float(np.vdot(X, X)) / max(len(X), 1) or 1.0), X.shape[1] + 1
        self.signs, self.rises = np.zeros((2, self.slots))  # yᵢ and `rise` of the samples in slots
        self.direction = np.ones(X.shape[1] + 2)  # how w, b and time change per unit of time
        self.parts = np.modf(np.arange(1.0, len(y) + 1.0) * GOLDEN)[0]  # from 0 to 1, all different
        self.set_out(first, last, off)

    def set_out(self, first: Floats, last: Floats, off: float) -> None:
        """Begin a leg from 0 to 1, along which the corrections that make the present point a solution fade out."""
        self.time, self.first, self.last, self.rise, self.off = 0.0, first, last, last - first, off
        self.moving = np.flatnonzero(self.rise)
        self.left = -1  # the sample that has just left the margin, and does not come back at once
        self.lift = 1.0 - self.asked_here()
        self.lift[np.abs(self.lift) <= ROUNDING] = 0.0

    def asked_here(self) -> Floats:
        """Return for each sample the margin to ask for, so that the present point is optimal.

        A sample on the margin is asked for the margin that it has, any other for one that it misses or exceeds. Samples
        on the wrong side are moved by different parts, so that they do not all reach the margin at once.
        """
        clear = np.maximum(self.side * (1.0 - self.margins), 0.0) * (1.0 + CLEAR * self.parts)
        return np.where(self.side == MARGIN, self.margins, 1.0 - self.side * clear)

    def distances(self) -> Floats:
        """Return how far samples are from the margin that is asked for now; negative on its wrong side."""
        return self.side * (self.margins - 1.0 + (1.0 - self.time) * self.lift)

    def cap(self, place: int) -> float:
        """Return the present upper bound of a multiplier."""
        return float(self.first[place] + self.time * self.rise[place])

    @np.errstate(all="ignore")  # numbers may overflow
    def follow(self, most_events: int) -> Followed | None:
        """The solution at the end, or None if that takes more events, samples are tied or numbers too far apart."""
        legs, pauses, possible = 1, 0, self.begin()
        for events in range(1, most_events + 1):
            if not (possible and self.aim()):
                return None
            length, number = self.race.first()
            self.advance(min(length, 1.0 - self.time))
            if self.time < 1.0:
                pauses = pauses + 1 if length <= PAUSE else 0
                possible = pauses <= MOST_PAUSES and self.change(number)
                if possible and events % LOOK == 0:
                    self.settle()
                    possible = (self.on_margin.updates < ANEW and self.look()) or self.begin()
            else:
                self.settle()
                if not (self.look(FINE) or self.begin(FINE)):
                    return None
                if not (self.out_of_bounds().any() or (self.distances() < -FINE).any()):
                    return self.end()
                # Samples that were not watched have crossed, or rounding was too much: the same again, from here.
                legs += 1
                possible = legs <= MOST_LEGS and self.set_out_again()
        return None

    def begin(self, tolerance: float = DRIFTED) -> bool:
        """Factor the system anew, and look at all samples; whether it has a solution."""
        return self.on_margin.begin(np.flatnonzero(self.side == MARGIN)) and self.look(tolerance)

    def settle(self) -> None:
        """Note the multipliers of the samples on the margin."""
        filled = self.on_margin.filled
        self.alpha[self.on_margin.places[filled]] = self.race.distance[: self.slots][filled]

    def look(self, tolerance: float = DRIFTED) -> bool:
        """Recompute the margins of all samples, free of accumulated rounding, and start the race to the next event."""
        filled = self.on_margin.filled
        members = self.on_margin.places[filled]
        for attempt in range(3):
            if self.time > 0.0 or attempt:  # where a leg begins they are known
                self.margins = self.y * (self.X @ self.w + self.b)
            off = np.zeros(self.slots)
            asked = 1.0 - (1.0 - self.time) * self.lift[members]
            off[filled] = self.y[members] * (asked - self.margins[members])
            if np.abs(off).max() <= tolerance:
                break
            self.on_margin.ask(off)
            signed, shift = self.on_margin.solve(0.0)
            self.w, self.b = self.w + signed @ self.on_margin.X, self.b + shift
            self.alpha[members] += signed[filled] * self.y[members]
        else:
            return False
        if self.time < 1.0:  # samples that crossed are asked for what they have
            crossed = self.distances() < -DRIFTED
            self.lift[crossed] = (1.0 - self.asked_here()[crossed]) / (1.0 - self.time)
        self.line_up(filled, members)
        self.ask()
        return True

    def line_up(self, filled: Bools, members: Ints) -> None:
        """Start a race of the samples on the margin and those that are watched.

        These are the ones nearest to it, those on the move, and of those out of place, which come to the margin when
        what is asked of them has faded, as many as there are slots.
        """
        distances = self.distances()
        nearness = np.where(self.side == MARGIN, np.inf, np.abs(distances))
        misplaced = self.side * (self.margins - 1.0) < -FINE
        nearness[misplaced] *= NEARER
        nearness[self.moving] = -1.0
        more = min(int(np.count_nonzero(misplaced)), self.slots) + len(self.moving)
        count = min(max(self.slots // 2, WATCHED) + more, len(nearness) - 1)
        watched = np.argpartition(nearness, count)[:count]
        # Each event until the next look may add one that has left the margin.
        self.watched, self.numbers = np.concatenate([watched, np.full(LOOK, -1)]), np.full(len(nearness), -1)
        self.numbers[watched], self.next_number = np.arange(count), count
        self.rows = np.zeros((count + LOOK, len(self.direction)), dtype=np.float32)
        self.rows[:count] = self.approach(watched)
        self.signs[:], self.rises[:] = 0.0, 0.0
        self.signs[filled], self.rises[filled] = self.y[members], self.rise[members]
        room = np.full((2, self.slots), np.inf)
        room[0, filled] = self.alpha[members]
        room[1, filled] = self.first[members] + self.time * self.rise[members] - self.alpha[members]
        self.race = Race(np.concatenate([*room, distances[watched], np.full(LOOK, np.inf)]))

    def approach(self, places: Ints) -> NDArray[np.float32]:
        """Rows whose products with the direction tell how fast distances of these samples change.

        For which sample comes next, 24 bits are enough.
        """
        rows, side = np.empty((len(places), len(self.direction)), dtype=np.float32), self.side[places]
        signed = side * self.y[places]
        np.multiply(self.X[places], signed[:, None], out=rows[:, :-2])
        rows[:, -2], rows[:, -1] = signed, -side * self.lift[places]
        return rows

    def out_of_bounds(self) -> Bools:
        """Samples on the margin whose multipliers rounding has taken out of their bounds, at the end."""
        slack = AT_BOUND * self.last
        found: Bools = (self.side == MARGIN) & ((self.alpha < -slack) | (self.alpha > self.last + slack))
        return found

    def set_out_again(self) -> bool:
        """Another leg, from where this one ended, with multipliers put back to their bounds."""
        out, inside = self.out_of_bounds(), self.alpha > 0.0
        change = np.where(out, np.where(inside, self.last, 0.0) - self.alpha, 0.0)
        self.alpha, self.w = self.alpha + change, self.w + (change * self.y) @ self.X
        self.side[out] = np.where(inside, INSIDE, OUTSIDE)[out]
        self.margins = self.y * (self.X @ self.w + self.b)
        self.set_out(self.last, self.last, float(change @ self.y))
        return self.begin()

    def ask(self) -> None:
        """What the lines from here have to do: follow the samples inside whose bounds change."""
        moving = self.moving[self.side[self.moving] == INSIDE]
        signed = self.rise[moving] * self.y[moving]
        self.pull, self.tilt = signed @ self.X[moving], float(signed.sum()) + self.off
        self.on_margin.ask(self.lift[self.on_margin.places] * self.signs - self.on_margin.X @ self.pull)

    def aim(self) -> bool:
        """Compute the direction from here, and how fast distances change; return whether all numbers are finite."""
        change, shift = self.on_margin.solve(self.tilt)
        w, speed, slots = self.direction[:-2], self.race.speed, self.slots
        np.dot(change, self.on_margin.X, out=w)
        w += self.pull
        self.direction[-2] = shift
        if not math.isfinite(shift):
            return False
        if self.on_margin.full and not self.lift.any():  # d + 1 margins that stay determine w and b
            self.direction[:-1] = 0.0
        np.multiply(change, self.signs, out=speed[:slots])
        np.subtract(self.rises, speed[:slots], out=speed[slots : 2 * slots])
        speed[2 * slots :] = self.rows @ self.direction.astype(np.float32)
        if self.left >= 0 and self.numbers[self.left] >= 0:
            number = 2 * slots + self.numbers[self.left]
            speed[number] = max(speed[number], 0.0)
        return True

    def advance(self, length: float) -> None:
        """Go along the line."""
        self.w += length * self.direction[:-2]
        self.b += length * float(self.direction[-2])
        self.time += length
        self.race.distance += length * self.race.speed

    def change(self, number: int) -> bool:
        """Let the sample whose distance has vanished change sides; whether the system still has a solution."""
        if number >= 2 * self.slots:
            return self.join(int(self.watched[number - 2 * self.slots]))
        self.leave(number % self.slots, OUTSIDE if number < self.slots else INSIDE)
        return self.on_margin.count > 0

    def leave(self, slot: int, side: float) -> None:
        """Let a sample leave the margin."""
        place = int(self.on_margin.places[slot])
        self.on_margin.drop(slot)
        self.signs[slot] = self.rises[slot] = 0.0
        self.race.distance[slot] = self.race.distance[self.slots + slot] = np.inf
        self.put(place, side)

    def put(self, place: int, side: float) -> None:
        """Put a sample to this side of the margin, which it is just leaving, and its multiplier to that bound."""
        self.side[place], self.alpha[place] = side, self.cap(place) if side == INSIDE else 0.0
        if self.numbers[place] < 0:
            self.numbers[place], self.watched[self.next_number] = self.next_number, place
            self.next_number += 1
        number, self.left = int(self.numbers[place]), place
        self.rows[number] = self.approach(np.array([place]))[0]
        self.race.distance[2 * self.slots + number] = 0.0
        if self.rise[place] != 0.0:
            self.ask()

    def join(self, place: int) -> bool:
        """Let a sample that was watched come to the margin; whether the system still has a solution."""
        before, self.side[place], self.left = float(self.side[place]), MARGIN, -1
        self.alpha[place] = self.cap(place) if before == INSIDE else 0.0
        self.rows[self.numbers[place]] = 0.0
        return self.take(place) or self.exchange(place, before)

    def take(self, place: int) -> bool:
        """Let a sample join those on the margin, unless it depends on them."""
        toward, beyond = self.on_margin.toward(place)
        if beyond > 0.0:
            score = float(self.lift[place] * self.y[place] - self.X[place] @ self.pull)
            slot = self.on_margin.take(place, toward, beyond, score)
            self.signs[slot], self.rises[slot] = self.y[place], self.rise[place]
            self.race.distance[slot] = self.alpha[place]
            self.race.distance[self.slots + slot] = self.cap(place) - self.alpha[place]
            if self.rise[place] != 0.0:
                self.ask()
        return beyond > 0.0

    def exchange(self, place: int, before: float) -> bool:
        """Let a sample that depends on those on the margin take over from them, until one of them meets a bound.

        The weights stay as they are meanwhile. If its own multiplier gets to its other bound first, it goes there.
        """
        alpha, room = self.race.distance[: 2 * self.slots].reshape(2, self.slots)  # of it, and up to the upper bound
        slopes = -before * self.y[place] * self.signs * self.on_margin.toward(place)[0]
        lengths = np.where(slopes < 0.0, alpha, room) / np.abs(slopes)
        lengths = np.where(np.abs(slopes) > AT_BOUND, np.maximum(lengths, 0.0), np.inf)
        slot = int(lengths.argmin())
        length, cap = float(lengths[slot]), self.cap(place)
        change = min(cap, length) * slopes
        self.race.distance[: 2 * self.slots] += np.concatenate([change, -change])
        if cap < length:
            self.put(place, -before)
            return True
        self.alpha[place] += before * length
        self.leave(slot, INSIDE if slopes[slot] > 0.0 else OUTSIDE)
        return self.take(place)

    def end(self) -> Followed:
        """Return what was found, without samples that weigh nothing."""
        on_margin, inside = ((self.side == side) & (self.last > 0.0) for side in (MARGIN, INSIDE))
        multipliers = np.where(on_margin, self.alpha, np.where(inside, self.last, 0.0))
        return Followed(self.w, self.b, on_margin, inside, multipliers)
