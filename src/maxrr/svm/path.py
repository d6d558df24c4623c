"""From a point near the solution to the solution itself, or from the solution of one problem to that of another.

Any multipliers within their bounds, with any b, solve a problem that is somewhat different: one that asks of each
sample not for a margin of 1 but for the margin that it has. And what was solved before some samples left or arrived is
the solution of a problem in which they weigh as much as before. So let all these differences fade, linearly with a time
t from 0 to 1: the margins asked for become 1, samples that leave weigh less and less, samples that arrive more and
more. The solution follows continuously. As long as no sample changes sides, those on the margin have to keep the
margin asked for, which is a linear system (`margin_system.py`): weights, bias and multipliers move along a straight
line. It ends where a multiplier meets a bound, or a margin the one asked for. Then that sample changes sides, the
system is updated for it, and the next line begins. At t = 1 the problem is solved.

Nothing here has to be believed: what comes out is a guess for `exact_multipliers.py`. Where samples are tied or too
many change sides, it gives up.
"""

from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Bools, Floats
from maxrr.svm.margin_system import MarginSystem

OUTSIDE, MARGIN, INSIDE = 0, 1, 2
DRIFTED, FINE = 1e-7, 1e-11  # margins that are off by more than this, on the way and at its end
AT_BOUND = 1e-9  # of its upper bound: a multiplier nearer than this to a bound is at it
PAUSE = 1e-12  # a line shorter than this leads nowhere,
MOST_PAUSES = 20  # and so many in a row mean that samples are tied
ROUNDING = 1e-13  # of a margin near 1
CLEAR = 0.1  # of how far a sample is out of place, at most: so much clear of the margin it is
GOLDEN = 0.6180339887498949
WATCHED = 2  # times d + 1: so many samples are watched for meeting the margin,
LOOK = 16  # and after so many events it is looked which ones these should be
MOST_LEGS = 8  # from 0 to 1: once more, if samples that were not watched have crossed
ANEW = 256  # updates after which it is computed anew


@dataclass(frozen=True)
class Followed:
    """Where a path ended, for the samples that it was about."""

    w: Floats
    b: float
    on_margin: Bools
    inside: Bools
    multipliers: Floats


@dataclass(frozen=True)
class Line:
    """How everything changes per unit of time."""

    w: Floats
    b: float
    multipliers: Floats  # signed, by slot
    margins: Floats  # of the samples that are watched


class Path:
    """One head on its way: samples (m × d), their multipliers, and the upper bounds of these at both ends.

    Samples that are not given are taken to stay where they are; `off` is Σ αᵢyᵢ over all, those included.
    """

    def __init__(
        self, X: Floats, y: Floats, w: Floats, b: float, alpha: Floats, first: Floats, last: Floats, off: float
    ) -> None:  # fmt: skip
        self.X, self.y, self.w, self.b, self.alpha = X, y, w, b, alpha.copy()
        slack = AT_BOUND * first
        between = (alpha > slack) & (alpha < first - slack)
        self.margins = y * (X @ w + b)
        inside = np.where(first > 0.0, alpha >= first - slack, self.margins < 1.0)
        self.side = np.where(between, MARGIN, np.where(inside, INSIDE, OUTSIDE))
        self.on_margin = MarginSystem(X, float(np.mean(np.sum(X * X, axis=1))) or 1.0)
        self.parts = np.modf(np.arange(1.0, len(y) + 1.0) * GOLDEN)[0]  # from 0 to 1, all different
        self.set_out(first, last, off)

    def set_out(self, first: Floats, last: Floats, off: float) -> None:
        """A leg from 0 to 1, on which all that makes this point a solution fades."""
        self.time, self.first, self.last, self.rise, self.off = 0.0, first, last, last - first, off
        self.left = -1  # which sample has just left the margin, and does not come back at once
        self.lift = 1.0 - self.asked_here()
        self.lift[np.abs(self.lift) <= ROUNDING] = 0.0

    def asked_here(self) -> Floats:
        """Margins that make this point a solution: those on the margin have them, and others are clear of them.

        Samples out of place are so by various parts, so that they do not all come to the margin at once.
        """
        inside = self.side == INSIDE
        out_of_place = np.maximum(np.where(inside, self.margins - 1.0, 1.0 - self.margins), 0.0)
        clear = out_of_place * (1.0 + CLEAR * self.parts)
        return np.where(self.side == MARGIN, self.margins, np.where(inside, 1.0 + clear, 1.0 - clear))

    def asked(self) -> Floats:
        """The margins that are asked for now."""
        return 1.0 - (1.0 - self.time) * self.lift

    def follow(self, most_events: int) -> Followed | None:
        """The solution at the end, or None if that takes more events, samples are tied or numbers too far apart."""
        with np.errstate(all="ignore"):
            return self.lead(most_events)

    def lead(self, most_events: int) -> Followed | None:
        """The same, where numbers may overflow."""
        legs, pauses = 1, 0
        possible = self.begin()
        for events in range(1, most_events + 1):
            line = self.line() if possible else None
            if line is None or not (np.isfinite(line.w).all() and np.isfinite(line.multipliers).all()):
                return None
            length, place, side = self.next_event(line)
            self.advance(line, length)
            if place >= 0:
                pauses = pauses + 1 if length <= PAUSE else 0
                possible = pauses <= MOST_PAUSES and self.change(place, side)
                if possible and events % LOOK == 0:
                    possible = (self.on_margin.updates < ANEW and self.look()) or self.begin()
            elif not (self.look(FINE) or self.begin(FINE)):
                return None
            elif self.solved():
                return self.end()
            else:  # samples that were not watched have crossed, or rounding was too much: the same again, from here
                legs += 1
                possible = legs <= MOST_LEGS and self.set_out_again()
        return None

    def begin(self, tolerance: float = DRIFTED) -> bool:
        """Compute the inverse anew, and look at all samples; whether it exists."""
        return self.on_margin.begin(np.flatnonzero(self.side == MARGIN)) and self.look(tolerance)

    def look(self, tolerance: float = DRIFTED) -> bool:
        """Margins of all samples, without what rounding has done to them, and which samples to watch."""
        filled = self.on_margin.filled
        members = self.on_margin.places[filled]
        for _ in range(3):
            self.margins = self.y * (self.X @ self.w + self.b)
            off = np.zeros(len(filled))
            off[filled] = (self.y * (self.asked() - self.margins))[members]
            if np.max(np.abs(off)) <= tolerance:
                break
            self.on_margin.ask(off)
            signed, shift = self.on_margin.solve(0.0)
            self.w, self.b = self.w + signed @ self.on_margin.X, self.b + shift
            self.alpha[members] += signed[filled] * self.y[members]
        else:
            return False
        if self.time < 1.0:  # samples that crossed are asked for what they have
            crossed = self.crossed(DRIFTED)
            self.lift[crossed] = (1.0 - self.asked_here()[crossed]) / (1.0 - self.time)
        distance = np.where(self.side == MARGIN, np.inf, np.abs(self.asked() - self.margins))
        count = min(WATCHED * (self.X.shape[1] + 1), len(distance) - 1)
        nearest = np.argpartition(distance, count)[:count]
        self.watched = np.union1d(nearest, np.flatnonzero(self.rise != 0.0))
        self.X_watched = self.X[self.watched].astype(np.float32)  # enough for which comes next
        self.ask()
        return True

    def out_of_bounds(self) -> Bools:
        """Samples on the margin whose multipliers rounding has taken out of their bounds, at the end."""
        slack = AT_BOUND * self.last
        found: Bools = (self.side == MARGIN) & ((self.alpha < -slack) | (self.alpha > self.last + slack))
        return found

    def solved(self) -> bool:
        """Whether this is the solution, at the end."""
        return not (self.out_of_bounds().any() or self.crossed(FINE).any())

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
        moving = np.flatnonzero((self.side == INSIDE) & (self.rise != 0.0))
        signed = self.rise[moving] * self.y[moving]
        self.pull, self.tilt = signed @ self.X[moving], float(np.sum(signed)) + self.off
        members = self.on_margin.places
        raised = np.where(members >= 0, (self.lift * self.y)[members], 0.0)
        self.on_margin.ask(raised - self.on_margin.X @ self.pull)

    def crossed(self, tolerance: float) -> Bools:
        """Samples on the other side than they are taken to be."""
        beyond = np.where(self.side == INSIDE, self.margins - self.asked(), self.asked() - self.margins)
        found: Bools = (beyond > tolerance) & (self.side != MARGIN)
        return found

    def line(self) -> Line:
        """The direction from here."""
        change, b = self.on_margin.solve(self.tilt)
        w = self.pull + change @ self.on_margin.X
        if self.on_margin.filled.all() and not self.lift.any():  # d + 1 margins that stay determine w and b
            w, b = np.zeros_like(w), 0.0
        margins = self.y[self.watched] * (self.X_watched @ w.astype(np.float32) + np.float32(b))
        return Line(w, b, change, margins.astype(np.float64))

    def next_event(self, line: Line) -> tuple[float, int, int]:
        """How long the line is, which sample ends it and where that goes; −1 if none does before the end."""
        filled, watched = self.on_margin.filled, self.watched
        members = self.on_margin.places[filled]
        rise, change = self.rise[members], line.multipliers[filled] * self.y[members]
        alpha, caps = self.alpha[members], self.first[members] + self.time * rise
        room = 1.0 - (1.0 - self.time) * self.lift[watched] - self.margins[watched]
        speed = line.margins - self.lift[watched]
        nearing = np.where(self.side[watched] == INSIDE, speed > 0.0, speed < 0.0) & (self.side[watched] != MARGIN)
        nearing &= watched != self.left
        ends = [(1.0 - self.time, -1, OUTSIDE)]
        for ending, way, pace, places, side in (
            (change < 0.0, alpha, -change, members, OUTSIDE),
            (change > rise, caps - alpha, change - rise, members, INSIDE),
            (nearing, room, speed, watched, MARGIN),
        ):
            candidates = np.flatnonzero(ending)
            if len(candidates):
                lengths = way[candidates] / pace[candidates]
                number = int(np.argmin(lengths))
                ends.append((max(float(lengths[number]), 0.0), int(places[candidates[number]]), side))
        return min(ends)

    def advance(self, line: Line, length: float) -> None:
        """Go along the line."""
        filled = self.on_margin.filled
        members = self.on_margin.places[filled]
        self.w, self.b, self.time = self.w + length * line.w, self.b + length * line.b, self.time + length
        self.margins[self.watched] += length * line.margins
        self.alpha[members] += length * line.multipliers[filled] * self.y[members]

    def change(self, place: int, side: int) -> bool:
        """Let a sample change sides; whether the system still has a solution."""
        caps = self.first + self.time * self.rise
        before, self.side[place] = int(self.side[place]), side
        self.alpha[place] = caps[place] if INSIDE in (before, side) else 0.0
        possible, self.left = True, place if side != MARGIN else -1
        if side != MARGIN:
            self.on_margin.drop(place)
            possible = bool(self.on_margin.filled.any())
        elif not self.take(place):
            possible = self.exchange(place, before, caps)
        if self.rise[place] != 0.0 or (self.left >= 0 and self.rise[self.left] != 0.0):
            self.ask()
        return possible

    def take(self, place: int) -> bool:
        """Let a sample join those on the margin, unless it depends on them."""
        toward, beyond = self.on_margin.toward(place)
        if beyond > 0.0:
            score = float(self.lift[place] * self.y[place] - self.X[place] @ self.pull)
            self.on_margin.take(place, toward, beyond, score)
        return beyond > 0.0

    def exchange(self, place: int, before: int, caps: Floats) -> bool:
        """Let a sample that depends on those on the margin take over from them, until one of them meets a bound.

        The weights stay as they are meanwhile. If its own multiplier gets to its other bound first, it goes there.
        """
        filled = self.on_margin.filled
        members = self.on_margin.places[filled]
        rise = 1.0 if before == OUTSIDE else -1.0
        slopes = -rise * self.y[place] * self.y[members] * self.on_margin.toward(place)[0][filled]
        alpha = self.alpha[members]
        rooms = np.where(slopes < 0.0, alpha / -slopes, (caps[members] - alpha) / slopes)
        rooms = np.where(np.abs(slopes) > AT_BOUND, np.maximum(rooms, 0.0), np.inf)
        number = int(np.argmin(rooms))
        room = min(float(rooms[number]), float(caps[place]))
        self.alpha[members] += room * slopes
        self.alpha[place] += rise * room
        if room < rooms[number]:
            self.left, self.side[place] = place, INSIDE if before == OUTSIDE else OUTSIDE
            return True
        other = int(members[number])
        self.side[other] = INSIDE if slopes[number] > 0.0 else OUTSIDE
        self.alpha[other] = caps[other] if slopes[number] > 0.0 else 0.0
        self.left = other
        self.on_margin.drop(other)
        return self.take(place)

    def end(self) -> Followed:
        """What was found, with samples that weigh nothing left out."""
        on_margin, inside = ((self.side == side) & (self.last > 0.0) for side in (MARGIN, INSIDE))
        multipliers = np.where(on_margin, self.alpha, np.where(inside, self.last, 0.0))
        return Followed(self.w, self.b, on_margin, inside, multipliers)
