"""From a nearly solved head to a decided one.

The samples with margins near 1 are polished (`exact/multipliers.py`), the solution is enclosed (`enclosure.py`) and
published (`rounding.py`), and one pass over all samples with the published weights shows that every other sample is
strictly on the side that was taken for granted. Samples for which it does not show this join the ones near the margin.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from maxrr.svm.arrays import NO_EXPONENT, Bools, Floats, Ints, marked
from maxrr.svm.certificate import Certificate
from maxrr.svm.exact.basis import Near
from maxrr.svm.exact.enclosure import Enclosure, Published, enclose, publish
from maxrr.svm.exact.fixed_point import Fixed, Integers, combination, integers, signed_sums
from maxrr.svm.exact.multipliers import Polished, Search, UnpolishedError, ends
from maxrr.svm.problem import UP, Head, InsideSum, Samples, Screen, Trial

UNIT = 2.0**-53
TOUCHING = 2.0**-60  # margins within this of 1 are on it
CLOSE = 1e-11  # margins within this of 1, in units of their terms, are polished
BITS = 168  # of the margins, and more the more bytes there are
MORE_BITS = 192  # where these do not decide every byte
MOST_BITS = 3 * MORE_BITS
MOST_TRIES = 12
KEPT, LEAST_KEPT = 64, 8  # times d + 1: of so many samples it is kept how far they are from the margin, between these
KEPT_NUMBERS = 1 << 23  # as many as have so many features together
MOST_STRAYED = 4  # times d + 1: more samples on the wrong side mean that the guess was poor
NARROW = 2.0**-70  # an enclosure of b wider than this does not settle it,
WIDE = 1e-12  # and wider than this, times the root of C|x|² that a gap is seen through, no bits will help


@dataclass(frozen=True, eq=False)
class Candidate:
    """Samples near the margin and inside it, all others taken to be outside, and what follows if that is so."""

    near: Bools
    inside: Bools
    a: Floats  # all multipliers, in units of C
    places: Ints  # of those near the margin
    known: InsideSum
    polished: Polished
    enclosure: Enclosure
    published: Published

    @property
    def settles_bias(self) -> bool:
        """Whether b is known. If not, its interval may end at samples that are not among those near the margin."""
        width = self.enclosure.high - self.enclosure.low
        return self.published.decided or width <= NARROW * (1.0 + abs(self.published.b))


def propose(samples: Samples, trial: Trial, near: Bools, inside: Bools, a: Floats, b: float) -> Candidate | None:
    """The candidate for these samples near the margin and inside it; None if no multipliers fit."""
    near, inside = near & samples.alive, inside & ~near & samples.alive
    trial.known = known = inside_sum(samples, trial.y, np.flatnonzero(inside), trial.known)
    places = np.flatnonzero(near)
    problem = Near(
        samples.rows(places), trial.y[places], samples.penalties.C, samples.bounds[places], known.total, known.tilt
    )
    try:
        bits = BITS + 2 * problem.X.shape[1].bit_length()
        search = Search(problem, a[places], b, bits, trial.patient, trial.fine_work)
        try:
            polished, enclosure, published = decide(samples, problem, search, places, known)
        finally:
            trial.fine_work = search.fine_work
    except (UnpolishedError, OverflowError):
        return None
    a = np.where(inside, samples.bounds, 0.0)
    a[places] = polished.multipliers.rounded()
    return Candidate(near, inside, a, places, known, polished, enclosure, published)


def finish(samples: Samples, trial: Trial, a: Floats, margins: Floats, b: float) -> Head | None:
    """Prove the head from these multipliers (in units of C), margins and bias, if they are near enough to it."""
    near = ((a > 0.0) & (a < samples.bounds)) | (np.abs(margins - 1.0) <= CLOSE * sizes(samples, margins, b))
    candidate = propose(samples, trial, near, margins < 1.0, a, b)
    return None if candidate is None else confirm(samples, trial, candidate)


def confirm(samples: Samples, trial: Trial, candidate: Candidate, margins: Floats | None = None) -> Head | None:
    """Prove the head from a candidate that is right, or becomes right in a few tries."""
    y, limit, searched = trial.y, MOST_STRAYED * (samples.X.shape[1] + 1), False
    for _ in range(MOST_TRIES):
        published = candidate.published
        if margins is None:
            margins = all_margins(samples, y, published.w, published.b)
        near, b = candidate.near, published.b
        if candidate.settles_bias or searched:
            bound = side_bound(samples, published)
            beyond = np.where(candidate.inside, 1.0 - margins, margins - 1.0)  # how far on the side taken for granted
            unclear = samples.alive & ~near & ~(beyond > bound)
            if not unclear.any():
                return assemble(samples, trial, candidate, margins)
            if np.count_nonzero(unclear & (beyond < -bound)) > limit:
                return None
            near = near | unclear
        else:
            searched = True
            b = bias(samples, y, margins, b)
            near = near | (np.abs(margins + y * (b - published.b) - 1.0) <= CLOSE * sizes(samples, margins, b))
        found = propose(samples, trial, near, candidate.inside, candidate.a, b)
        if found is None:
            return None
        candidate, margins = found, None
    return None


def all_margins(samples: Samples, y: Floats, w: Floats, b: float) -> Floats:
    """Compute the margins of all samples, in one pass over the data."""
    return np.where(samples.alive, y * (samples.scores(w[:, None])[:, 0] + b), np.inf)


def sizes(samples: Samples, margins: Floats, b: float) -> Floats:
    """The size of the terms of each margin, roughly."""
    largest = float(np.max(np.abs(margins[samples.alive]), initial=0.0)) + abs(b)
    return 1.0 + abs(b) + largest * samples.lengths / (float(np.max(samples.lengths)) or 1.0)


def decide(
    samples: Samples, problem: Near, search: Search, places: Ints, known: InsideSum
) -> tuple[Polished, Enclosure, Published]:
    """Compute multipliers, enclosure and published numbers with as many bits as it takes to decide the bytes."""
    lengths = samples.lengths[places]
    most = search.bits + MOST_BITS
    found: tuple[Polished, Enclosure, Published] | None = None
    while True:
        try:
            polished = search.run()
        except UnpolishedError:
            if found is not None:
                return found  # with bounds that leave some bytes open
            if search.rough is None:
                raise
            polished = search.rough
        enclosure = enclose(problem, polished, lengths)
        if enclosure is None:
            raise UnpolishedError("b is not optimal")
        dead = (polished.w.values == 0) & (known.filled == 0) & ~problem.X.any(axis=0)
        largest = largest_exponent(samples, places, known.places, polished, enclosure)
        published = publish(polished, enclosure, largest, np.flatnonzero(dead))
        found = polished, enclosure, published
        wide = WIDE * math.sqrt(search.steep) * (1.0 + abs(published.b))
        if published.decided or enclosure.high - enclosure.low > wide or search.bits >= most:
            return found
        search.widen(MORE_BITS)


def largest_exponent(
    samples: Samples, places: Ints, inside: Ints, polished: Polished, enclosure: Enclosure
) -> int | None:
    """The least c with all influential features below 2^c; None if it is not yet known which these are."""
    short = polished.shortfall.rounded()
    doubt = (enclosure.radius * samples.lengths[places] + max(-enclosure.low, enclosure.high)) * UP
    if (np.abs(np.abs(short) - TOUCHING) <= doubt + TOUCHING * 2.0**-50).any():
        return None
    influential = np.concatenate([places[short >= -TOUCHING], inside])
    return int(np.max(samples.exponents[influential], initial=max(samples.base_exponent, NO_EXPONENT)))


def inside_sum(samples: Samples, y: Floats, places: Ints, known: InsideSum | None) -> InsideSum:
    """The sums over the samples inside, from those over nearly the same samples if there are such."""
    known = known or samples.base or sums(samples, y, places)
    count = len(samples.codes)
    gone, fresh = known.places[~marked(places, count)[known.places]], places[~marked(known.places, count)[places]]
    if samples.base is None and len(gone) + len(fresh) > len(places) // 2:
        return sums(samples, y, places)
    for others, plus, with_counts in ((fresh, Fixed.plus, np.add), (gone, Fixed.minus, np.subtract)):
        if len(others):
            more = sums(samples, y, others)
            pairs = ((known.total, more.total), (known.tilt, more.tilt), (known.weight, more.weight))
            total, tilt, weight = (plus(*pair).reduced() for pair in pairs)
            known = InsideSum(places, total, tilt, weight, with_counts(known.filled, more.filled))
    return known


def sums(samples: Samples, y: Floats, places: Ints) -> InsideSum:
    """The sums over some samples, for bounds cᵢ in units of C."""
    return sums_of_heads(samples, [(places, y[places])])[0]


def sums_of_heads(samples: Samples, parts: list[tuple[Ints, Floats]]) -> list[InsideSum]:
    """The sums over some samples for each head, from their places and signs; in one pass for all where they can be."""
    if not (parts and samples.penalties.even):
        return [weighted_sum(samples, places, signs) for places, signs in parts]
    everyone = np.unique(np.concatenate([places for places, _ in parts]))
    factors = np.zeros((len(parts), len(everyone)), dtype=np.int8)
    for row, (places, signs) in zip(factors, parts, strict=True):
        row[np.searchsorted(everyone, places)] = signs
    found = signed_sums(samples.X, everyone, factors)
    return [
        InsideSum(places, total, one_number(int(np.sum(signs))), one_number(len(places)), filled)
        for (places, signs), (total, filled) in zip(parts, found, strict=True)
    ]


def weighted_sum(samples: Samples, places: Ints, signs: Floats) -> InsideSum:
    """The sums over some samples with these signs and bounds that are not all the same."""
    factors = Fixed.of(samples.bounds[places] * signs)
    total, filled = Fixed.zeros(samples.X.shape[1]), np.zeros(samples.X.shape[1], dtype=np.int64)
    for part in samples.parts(places):
        X = samples.rows(places[part])
        filled += np.count_nonzero(X, axis=0)
        total = total.plus(combination(X, Fixed(factors.values[part], factors.bits)))
    tilt, weight = (integers([int(np.sum(part))]) for part in (factors.values, abs(factors.values)))
    return InsideSum(places, total, Fixed(tilt, factors.bits), Fixed(weight, factors.bits), filled)


def bias(samples: Samples, y: Floats, margins: Floats, b: float) -> float:
    """Return the optimal intercept nearest to zero, to rounding, for weights that give these margins with intercept b.

    `multipliers.ends` says how it is found.
    """
    points, rises = (b + y * (1.0 - margins))[samples.alive], samples.bounds[samples.alive]
    return middle_bias(points, rises, y[samples.alive], tilt_beyond(samples, y))


def middle_bias(points: Floats, rises: Floats | Integers, y: Floats, tilt: float = 0) -> float:
    """The optimal b nearest to zero, for samples that turn at these points; `tilt` is what others add to the slope."""
    order = np.argsort(points)
    first, last = ends(order, rises, np.sum(rises[y > 0.0]) + tilt)
    most = len(order) - 1  # where rounding says that the slope is never positive
    return float(np.median([points[order[min(first, most)]], 0.0, points[order[min(last, most)]]]))


def tilt_beyond(samples: Samples, y: Floats) -> float:
    """Σ cᵢyᵢ over samples inside the margin that are not among these."""
    if samples.base is None:
        return 0.0
    places = samples.base.places
    return float(samples.base.tilt.rounded()[0]) - float(samples.bounds[places] @ y[places])


def margin_error(lengths: Floats, w: Floats, b: float, weight_error: float, bias_error: float) -> Floats:
    """How far a margin computed in float64 at (w, b) can be from that of the exact solution.

    A dot product of d terms is off by at most d units of |x||w| whatever the order of its sum; the rest is slack.
    """
    unit = (len(w) + 4) * UNIT
    slope = unit * float(np.linalg.norm(w)) + weight_error
    return (slope * lengths + unit * (1.0 + abs(b)) + bias_error) * UP


def side_bound(samples: Samples, published: Published) -> Floats:
    """Margins further than this from 1 prove on which side they are, at the polished weights and at the exact ones."""
    return margin_error(
        samples.lengths, published.w, published.b, published.weight_error + published.moved_w,
        published.bias_error + published.moved_b,
    ) + 2.0 * TOUCHING  # fmt: skip


def assemble(samples: Samples, trial: Trial, candidate: Candidate, margins: Floats) -> Head:
    """Make the head with its certificate."""
    polished, published, places = candidate.polished, candidate.published, candidate.places
    short = polished.shortfall.rounded()
    touching, below = np.abs(short) <= TOUCHING, short > TOUCHING
    on_margin = places[touching]
    inside = np.sort(np.concatenate([candidate.known.places, places[below]]))
    certificate = certify(
        samples, published.w, loss_of(samples, candidate, margins), candidate.enclosure.gap, published.weight_error,
        published.bias_error, decided=published.decided, on_margin=len(on_margin), inside=len(inside),
    )  # fmt: skip
    return Head(
        trial.positive, published.w, published.b, on_margin, inside, samples.penalties.C * candidate.a[on_margin],
        certificate, candidate.known, screen_of(samples, published.w, published.b, margins),
    )  # fmt: skip


def screen_of(samples: Samples, w: Floats, b: float, margins: Floats) -> Screen:
    """Build the screen of samples with these margins, as float64 says; of a part of all samples, it knows each one."""
    most = kept(len(w)) if samples.base is None else len(margins)
    return Screen.of(distances(samples.lengths, w, b, margins), samples.lengths, most)


def kept(features: int) -> int:
    """Return how many samples a screen knows one by one: all of them are looked at when the weights change."""
    return min(KEPT * (features + 1), max(LEAST_KEPT * (features + 1), KEPT_NUMBERS // features))


def distances(lengths: Floats, w: Floats, b: float, margins: Floats) -> Floats:
    """Lower bounds for the distances of margins from 1, given the margins that float64 computed."""
    return np.abs(margins - 1.0) - margin_error(lengths, w, b, 0.0, 0.0)


def certify(
    samples: Samples, w: Floats, loss: float, gap: float, weight_error: float, bias_error: float,
    *, decided: bool, on_margin: int, inside: int,
) -> Certificate:  # fmt: skip
    """Make the certificate from what was proved; the loss is that of all samples, in units of C."""
    primal = 0.5 * float(w @ w) + samples.penalties.C * loss
    error = (weight_error * samples.longest + bias_error) * UP
    relative = gap / primal if primal > 0.0 else math.inf if gap > 0.0 else 0.0
    return Certificate(decided, weight_error, bias_error, error, relative, primal, on_margin, inside)


def loss_of(samples: Samples, candidate: Candidate, margins: Floats) -> float:
    """Σ cᵢ max(0, 1 − mᵢ) over all samples: of those inside by their sums, without rounding."""
    known, w, b = candidate.known, Fixed.of(candidate.published.w), Fixed.of(np.array([candidate.published.b]))
    scores = Fixed(integers([int(np.sum(known.total.values * w.values))]), known.total.bits + w.bits).plus(
        Fixed(known.tilt.values * b.values, known.tilt.bits + b.bits)
    )
    losses = samples.bounds[candidate.places] * np.maximum(0.0, 1.0 - margins[candidate.places])
    return float(known.weight.minus(scores).rounded()[0]) + float(np.sum(losses))


def one_number(value: int) -> Fixed:
    return Fixed(integers([value]), 0)


def with_longest(certificate: Certificate, samples: Samples) -> Certificate:
    """Return the certificate after samples without influence have come or gone."""
    error = (certificate.weight_error * samples.longest + certificate.bias_error) * UP
    return replace(certificate, error=error)
