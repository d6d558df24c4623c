"""Where heads start that are solved from scratch.

Early Newton steps need only a rough direction, and a few thousand samples give that as well as all of them.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from maxrr.parallel.engine import Engine
from maxrr.svm.arrays import GOLDEN, NO_EXPONENT, Floats, Ints
from maxrr.svm.exact.deciding import sums_of_heads
from maxrr.svm.exact.flat import ENOUGH_FREE, flat_head
from maxrr.svm.problem import Head, InsideSum, Samples, Trial
from maxrr.svm.search import newton
from maxrr.svm.search.bands import NOTHING, Band, trial_at
from maxrr.svm.search.newton import Light
from maxrr.svm.search.working_set import REACH, SMALLEST, for_each_head

ENOUGH = 4000  # samples for a guess,
PER_FEATURE = 8  # or so many for each feature,
WORTH = 8  # where there are so many times as many: with fewer, all of them tell sooner what a part does not
WIDEST = 2.0  # beyond 1, so that the first band contains every sample
NARROWEST = 0.1  # the guess is good to about this much of a margin, and more accuracy would be wasted on it,
COARSER = 3.0  # or to so much more, where there are many features for so few samples:
MANY_FEATURES = ENOUGH // 16  # more than this, and not enough samples for a larger part
NARROWING = 5.0
ACCURACY = 0.02
LARGEST_BAND = 200  # times d + 1: with more samples than this near the margin there is no band

Sides = tuple[Ints, Floats, Ints, Floats]


@dataclass(frozen=True)
class Guess:
    """Where all heads of a run are before their working sets are worked on, in few numbers: cheap to send to a process.

    Weights, biases and smoothings of the heads, and the multipliers strictly between their bounds.

    The i-th of these multipliers belongs to `sample[i]` in head number `head[i]`. All others follow from the margins.
    """

    w: Floats  # (heads × d)
    b: Floats
    width: Floats
    head: Ints
    sample: Ints
    multiplier: Floats

    def of(self, heads: slice, samples: Ints) -> "Guess":
        """The guess of some heads over some of the samples, which are sorted and have the places of those left now."""
        numbers = np.arange(len(self.b))[heads]
        mine = np.isin(self.head, numbers)
        return Guess(
            self.w[heads], self.b[heads], self.width[heads], self.head[mine] - numbers[0],
            np.searchsorted(samples, self.sample[mine]), self.multiplier[mine],
        )  # fmt: skip

    def bands(self, samples: Samples, classes: list[int], engine: Engine) -> list[Band | Head | None]:
        """The heads as bands, or solved; None for a head with more samples near its margin than a band is for."""
        scores = samples.scores(self.w.T.copy())
        found = list(engine.map(partial(self.sides, samples, classes, scores), range(len(classes))))
        sides = {number: side for number, side in enumerate(found) if isinstance(side, tuple)}
        known = sums_of_heads(samples, [(far, signs) for _, _, far, signs in sides.values()])
        bands = engine.map(
            lambda one: self.band(samples, classes[one[0]], *one), zip(sides, sides.values(), known, strict=True)
        )
        by_number = dict(zip(sides, bands, strict=True))
        return [side if isinstance(side, Head) else by_number.get(number) for number, side in enumerate(found)]

    def sides(self, samples: Samples, classes: list[int], scores: Floats, number: int) -> Sides | Head | None:
        """The samples near a head's margin, with their multipliers; and those far inside, with their signs.

        Or the head itself, if it is proved to have no weights.
        """
        y, width = samples.signs(classes[number]), float(self.width[number])
        margins = np.where(samples.alive, y * (scores[:, number] + self.b[number]), np.inf)
        mine, alpha = self.head == number, np.where(margins < 1.0, samples.caps, 0.0)
        alpha[self.sample[mine]] = self.multiplier[mine]
        count = int(np.count_nonzero(mine))
        if count >= ENOUGH_FREE * (self.w.shape[1] + 1) and (head := flat_head(samples, classes[number], alpha, None)):
            return head
        distance, smallest = np.abs(margins - 1.0), SMALLEST * (count + 1)
        reach = float(np.partition(distance, smallest)[smallest]) if len(distance) > smallest else np.inf
        near = (distance <= max(reach, 2.0 * REACH * width)) & samples.alive
        near[self.sample[mine]] = True
        places = np.flatnonzero(near)
        if len(places) > max(LARGEST_BAND * (self.w.shape[1] + 1), len(y) // 2):
            return None
        far = np.flatnonzero((margins < 1.0) & ~near)
        return places, alpha[places], far, y[far]

    def band(self, samples: Samples, positive: int, number: int, sides: Sides, known: InsideSum) -> Band:
        """Build the band of one head."""
        (places, alpha, far, _), w, b = sides, self.w[number], float(self.b[number])
        exponent = int(np.max(samples.exponents[far], initial=NO_EXPONENT))
        part = samples.only(places, replace(known, places=NOTHING), exponent)
        trial = trial_at(part, part.signs(positive), positive, w, b, alpha, float(self.width[number]))
        return Band(places, far, part, trial, w, b, None)


def start_heads(samples: Samples, classes: list[int], engine: Engine) -> list[Trial]:
    """Unfinished heads near their solutions, at a guess; for few samples at the origin. One pass over the data."""
    order = np.flatnonzero(samples.alive)
    guesses = for_each_head(engine, lambda positive: guess_head(samples, positive, order), classes)
    scores = samples.scores(np.stack([w for w, _, _ in guesses], axis=1))
    trials = []
    for positive, (w, b, width), score in zip(classes, guesses, scores.T, strict=True):
        y = samples.signs(positive)
        margins = np.where(samples.alive, y * (score + b), np.inf)
        alpha = np.where(samples.alive, centres(1.0 - margins, samples.caps, width), 0.0)
        reach = max(1.0, width) if len(order) > ENOUGH else 1.0  # a guess that ended early has the margins far off
        trials.append(Trial(positive, y, w, b, margins, alpha, width, reach, np.zeros(len(y)), np.zeros_like(w), 0.0))
    return trials


def guess_head(samples: Samples, positive: int, order: Ints) -> tuple[Floats, float, float]:
    """Guess weights, bias and a width for one head."""
    w, width = np.zeros(samples.X.shape[1]), first_width(samples)
    if len(order) <= ENOUGH:
        return w, 0.0, width
    y = samples.signs(positive)
    size = part_size(len(order), len(w))
    chosen, weight = thin([order[y[order] == sign] for sign in (1.0, -1.0)], size or ENOUGH)
    cap = samples.penalties.C * (samples.bounds[chosen] * weight)
    length = float(np.mean(samples.lengths[chosen])) or 1.0
    many = size is None and len(w) > MANY_FEATURES
    return solve_roughly(samples.rows(chosen), y[chosen], cap, samples.penalties.even, width, length, many)


def part_size(samples: int, features: int) -> int | None:
    """How many samples give a good guess where there are so many features; None if all of them are not many more.

    >>> part_size(60_000, 84), part_size(60_000, 768), part_size(20_000, 768)
    (4000, 6144, None)
    """
    size = max(ENOUGH, PER_FEATURE * features)
    return size if samples >= WORTH * size else None


def first_width(samples: Samples) -> float:
    """Wide enough for every sample to be in the band, and for multipliers far below C to be resolved.

    On separable data multipliers are of the order of 1/|x|², which may be a tiny fraction of C: smoothing with a
    steepness of C would drown them in rounding.
    """
    steepness = samples.bounds[samples.alive] * samples.lengths[samples.alive] ** 2
    return max(WIDEST, 0.5 * samples.penalties.C * float(np.mean(steepness)))


def centres(shortfall: Floats, cap: Floats, width: float) -> Floats:
    """Multipliers for samples that have none yet: half way up where the margin is 1, by the slope of the smoothing."""
    sigma = cap / (2.0 * width)
    return np.clip(np.minimum(0.5 * cap, WIDEST * sigma) + sigma * shortfall, 0.0, cap)


def solve_roughly(
    X: Floats, y: Floats, cap: Floats, even: bool, width: float, length: float, many: bool
) -> tuple[Floats, float, float]:
    """Newton on ever narrower smoothings of a small problem; where it ends, and a width to go on with.

    With many features for so few samples it ends as soon as these tell no more.
    """
    w, b, alpha = np.zeros(X.shape[1]), 0.0, centres(np.ones(len(y)), cap, width)
    typical = float(np.mean(cap))
    share = None if even else cap / typical  # what samples stand for alone makes little difference
    light = Light.of(X)
    narrowest = NARROWEST * (COARSER if many else 1.0)
    while True:
        problem = newton.Smoothed(X, y, cap, alpha, typical / (2.0 * width), np.zeros(X.shape[1]), 0.0, share, light)
        point = newton.minimise(problem, w, b, length, ACCURACY * min(1.0, width), np.inf)
        w, b, alpha = point.w, point.b, point.multipliers
        between = int(np.count_nonzero((alpha > 0.0) & (alpha < cap)))
        if width <= narrowest or (many and between <= X.shape[1]):
            return w, b, 2.0 * width
        width = max(width / NARROWING, narrowest)


def thin(groups: list[Ints], size: int) -> tuple[Ints, Floats]:
    """About so many samples of some groups, one of each stretch of them, and how many each stands for.

    A small group keeps more of its members than its share.
    """
    chosen, weight = [], []
    total = sum(map(len, groups))
    for members in filter(len, groups):
        stride = max(1, len(members) // max(size * len(members) // total, size // 20))
        kept = members[spaced(len(members), stride)]
        chosen.append(kept)
        weight.append(np.full(len(kept), len(members) / len(kept)))
    return np.concatenate(chosen), np.concatenate(weight)


def spaced(count: int, stride: int) -> Ints:
    """The places of one in each stretch of so many, at various parts of it.

    With the same part of all, samples whose classes take turns would all be of one class.

    >>> spaced(20, 4)
    array([ 0,  6,  8, 15, 17])
    """
    first = np.arange(0, count, stride)
    parts = np.modf(np.arange(len(first)) * GOLDEN)[0]
    places: Ints = first + (parts * np.minimum(stride, count - first)).astype(np.int64)
    return places
