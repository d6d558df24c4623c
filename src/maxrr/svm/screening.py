"""How far samples are from a head's margin, and which of them a change of its weights cannot bring there.

A margin y(w·x + b) changes by no more than |w' − w||x| + |b' − b| when the weights do. So a sample whose margin is
known to be further from 1 than that stays on its side, and nobody has to look at it. For the samples nearest to the
margin the distance is kept one by one; for all others, which would be many numbers per head, there is one bound.
"""

from dataclasses import dataclass, replace

import numpy as np

from maxrr.svm.arrays import Floats, Ints

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
        typical = float(np.mean(lengths)) or 1.0
        if len(distance) <= kept:
            return cls(np.arange(len(distance)), distance, np.inf, typical)
        scaled = distance / (lengths + typical)
        order = np.argpartition(scaled, kept)
        places = np.sort(order[:kept])
        return cls(places, distance[places], float(scaled[order[kept]]) * DOWN, typical)

    def after(self, by_w: float, by_b: float, lengths: Floats) -> "Screen":
        """The same bounds for weights and bias that differ by at most so much; `lengths` are those of all samples."""
        distance = self.distance * DOWN - moves(lengths[self.places], by_w, by_b)
        return replace(self, distance=distance, rest=self.rest * DOWN - max(by_w, by_b / self.typical) * UP)

    def with_known(self, places: Ints, distance: Floats) -> "Screen":
        """The same with what is known of these samples (sorted), whether they were near the margin or not."""
        others = ~np.isin(self.places, places, assume_unique=True, kind="table")
        everyone = np.concatenate([self.places[others], places])
        order = np.argsort(everyone, kind="stable")
        found = np.concatenate([self.distance[others], distance])[order]
        return replace(self, places=everyone[order], distance=found)

    def without(self, places: Ints) -> "Screen":
        """The same when these samples have gone."""
        kept = ~np.isin(self.places, places, kind="table")
        return replace(self, places=self.places[kept], distance=self.distance[kept])

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

    def in_doubt(self, slack_w: float, slack_b: float, lengths: Floats) -> Ints:
        """Which of the others may be."""
        return self.places[~(self.distance > moves(lengths[self.places], slack_w, slack_b))]


def moves(lengths: Floats, by_w: float, by_b: float) -> Floats:
    """How far margins of samples of these lengths can move, at most."""
    found: Floats = (by_w * lengths + by_b) * UP
    return found


def size(vector: Floats) -> float:
    """|vector|, rounded up."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) * UP if largest > 0.0 else 0.0
