"""How far samples are from a head's margin, and which of them a change of its weights cannot bring there.

A margin y(w·x + b) changes by no more than |w' − w||x| + |b' − b| when the weights do. So a sample whose margin is
known to be further from 1 than that stays on its side, and nobody has to look at it. One bound says so for all samples
but those nearest to the margin, whose margins are computed anew whenever the weights change.

Of the weights before, nothing is to be read from it: the distances are those of the weights as they are, and the two
numbers that are carried along are rounded to a few bits.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from maxrr.svm.arrays import Floats, Ints, without

UP, DOWN = 1.0 + 2.0**-30, 1.0 - 2.0**-30  # cover the rounding of a bound itself


@dataclass(frozen=True, eq=False)
class Screen:
    """Lower bounds for the distance of margins from 1, at the published weights as they are.

    Which side a sample is on is not said here: the head knows which ones are inside.
    """

    places: Ints  # of samples near the margin, sorted
    distance: Floats  # of their margins from 1, at least
    rest: float  # all others are at least this times (|x| + `typical`) from it
    typical: float  # length of a sample

    @classmethod
    def of(cls, distance: Floats, lengths: Floats, kept: int) -> "Screen":
        """For all samples at these distances, infinite for those that take no part; `kept` of them one by one."""
        everyone = np.flatnonzero(distance < np.inf)
        return cls(everyone, distance[everyone], np.inf, power_of_two(float(np.mean(lengths)))).of_nearest(
            kept, lengths
        )

    def of_nearest(self, kept: int, lengths: Floats) -> "Screen":
        """The same with no more samples than this one by one; `lengths` are those of all samples."""
        if len(self.places) <= kept:
            return self
        scaled = self.distance / (lengths[self.places] + self.typical)
        order = np.argpartition(scaled, kept)
        nearest, rest = np.sort(order[:kept]), few_bits(float(scaled[order[kept]]) * DOWN)
        return replace(self, places=self.places[nearest], distance=self.distance[nearest], rest=min(self.rest, rest))

    def after(self, by_w: float, by_b: float, places: Ints, distance: Floats) -> "Screen":
        """For weights and bias that differ by at most so much; all samples that were near the margin are given anew."""
        rest = few_bits(self.rest * DOWN - max(by_w, by_b / self.typical) * UP)
        return Screen(places, distance, rest, self.typical)

    def with_known(self, places: Ints, distance: Floats) -> "Screen":
        """The same with what is known of these samples (sorted), whether they were near the margin or not."""
        others = ~np.isin(self.places, places, assume_unique=True, kind="table")
        everyone = np.concatenate([self.places[others], places])
        order = np.argsort(everyone, kind="stable")
        found = np.concatenate([self.distance[others], distance])[order]
        return replace(self, places=everyone[order], distance=found)

    def without(self, places: Ints) -> "Screen":
        """The same when these samples have gone."""
        there, distance = without(places, self.places, self.distance)
        return Screen(there, distance, self.rest, self.typical)

    def nearest(self, count: int) -> Ints:
        """About so many samples that may be nearest to the margin, sorted."""
        if len(self.places) <= count:
            return self.places
        return np.sort(self.places[np.argpartition(self.distance, count)[:count]])

    def rest_in_doubt(self, slack_w: float, slack_b: float) -> bool:
        """Whether samples that are not known one by one may be on another side than they were.

        The slack is how far the exact solution can be from the published weights and bias.
        """
        return not self.rest > max(slack_w, slack_b / self.typical) * UP


def few_bits(value: float) -> float:
    """A positive number rounded down to three bits; others are not of use."""
    if not 0.0 < value < math.inf:
        return value
    part, exponent = math.frexp(value)
    return math.ldexp(math.floor(8.0 * part), exponent - 3)


def power_of_two(value: float) -> float:
    """One near a number; 1 for zero."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0.0 else 1.0


def moves(lengths: Floats, by_w: float, by_b: float) -> Floats:
    """How far margins of samples of these lengths can move, at most."""
    found: Floats = (by_w * lengths + by_b) * UP
    return found


def size(vector: Floats) -> float:
    """|vector|, rounded up."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) * UP if largest > 0.0 else 0.0
