"""What the solver works on: samples with their classes, and one head among them, solved or not yet."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from maxrr.once import once
from maxrr.svm.arrays import (
    LARGEST_PENALTY,
    NO_EXPONENT,
    SMALLEST_PENALTY,
    AnyArray,
    Bools,
    Floats,
    Ints,
    joined,
    like,
    located,
    times,
    to_numpy,
    wide,
    without,
)
from maxrr.svm.certificate import Certificate
from maxrr.svm.exact.fixed_point import Fixed

# What the loss of each sample weighs.
#
# The loss of sample i counts Cᵢ times in every head, and Cᵢ is also the upper bound of its multipliers there. Cᵢ is the
# exact product of two float64 numbers: C, and the weight of the sample times that of its class. So a sample of weight 3
# is the same as three samples, whatever C, and one of weight zero takes no part.


ClassWeight = Mapping[Any, float]


@dataclass(frozen=True)
class Penalties:
    """Cᵢ of every sample, and what they came from.

    Samples that take no part, because they were erased or have weight zero, are given C: nobody looks.
    """

    C: float
    weights: Floats  # of the samples alone, as they were given
    bounds: Floats  # Cᵢ in units of C
    even: bool = field(init=False)  # whether every bound was 1 when this was made, those erased since included

    def __post_init__(self) -> None:
        object.__setattr__(self, "even", bool((self.bounds == 1.0).all()))

    @property
    def caps(self) -> Floats:
        """Cᵢ, rounded."""
        return self.C * self.bounds

    def erase(self, rows: Ints | slice) -> None:
        """Overwrite what is known of some samples."""
        self.weights[rows] = self.bounds[rows] = 1.0  # not zero: nothing divides by it, or takes it for absent

    def copied(self) -> "Penalties":
        """Copy the penalties."""
        return Penalties(self.C, self.weights.copy(), self.bounds.copy())

    def only(self, rows: Ints) -> "Penalties":
        """The penalties of some samples."""
        return Penalties(self.C, self.weights[rows], self.bounds[rows])

    def followed_by(self, others: "Penalties") -> "Penalties":
        """The penalties of these samples followed by those of others."""
        weights, bounds = [self.weights, others.weights], [self.bounds, others.bounds]
        return Penalties(self.C, np.concatenate(weights), np.concatenate(bounds))


def weigh(C: float, class_weight: ClassWeight | None, labels: Sequence[Any], weights: Floats) -> Penalties:
    """The penalties of samples with these labels and weights of their own."""
    of_classes = np.array([1.0 if class_weight is None else class_weight.get(label, 1.0) for label in labels])
    with np.errstate(over="ignore", under="ignore"):
        bounds = np.where(weights > 0.0, weights * of_classes, 1.0)
        caps = C * bounds
    beyond = np.flatnonzero(~((caps >= SMALLEST_PENALTY) & (caps <= LARGEST_PENALTY)))
    if len(beyond):
        row = int(beyond[0])
        raise ValueError(
            f"the loss of sample {row} weighs C · {bounds[row]:g} = {caps[row]:g}, which must be between "
            f"{SMALLEST_PENALTY:.0e} and {LARGEST_PENALTY:.0e}: choose weights around 1"
        )
    return Penalties(C, weights, bounds)


def cleared(flags: Bools, rows: Ints) -> Bools:
    """Copy flags, clear those of some rows, and make the copy read-only."""
    found = flags.copy()
    found[rows] = False
    found.flags.writeable = False
    return found


# The same object with something else in it: as `dataclasses.replace`, in a fifth of the time.


T = TypeVar("T")


def changed(one: T, **changes: Any) -> T:
    """Copy a frozen dataclass with other values for some fields, in a fifth of the time of `dataclasses.replace`.

    What was computed from the fields and kept beside them is not copied. `__post_init__` is not called.
    """
    known = vars(one)
    other = object.__new__(type(one))
    vars(other).update({name: known[name] for name in one.__dataclass_fields__}, **changes)  # type: ignore[attr-defined]
    return other


# How far samples are from a head's margin, and which of them a change of its weights cannot bring there.
#
# A margin y(w·x + b) changes by no more than |w' − w||x| + |b' − b| when the weights do. So a sample whose margin is
# known to be further from 1 than that stays on its side, and nobody has to look at it. One bound says so for all
# samples but those nearest to the margin, whose margins are computed anew whenever the weights change.
#
# Of the weights before, nothing is to be read from it: the distances are those of the weights as they are, and the two
# numbers that are carried along are rounded to a few bits.


UP, DOWN = 1.0 + 2.0**-30, 1.0 - 2.0**-30  # cover the rounding of a bound itself, a sum of at most millions of terms


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
        """Build a screen from distances of samples, infinite for those that take no part; it knows `kept` of them."""
        everyone = np.flatnonzero(distance < np.inf)
        whole = cls(everyone, distance[everyone], np.inf, power_of_two(float(np.mean(lengths))))
        return whole.of_nearest(kept, lengths)

    def of_nearest(self, kept: int, lengths: Floats) -> "Screen":
        """Return a screen that knows only the `kept` nearest samples one by one; `lengths` are those of all samples."""
        if len(self.places) <= kept:
            return self
        scaled = self.distance / (lengths[self.places] + self.typical)
        order = np.argpartition(scaled, kept)
        nearest, rest = np.sort(order[:kept]), few_bits(float(scaled[order[kept]]) * DOWN)
        return replace(self, places=self.places[nearest], distance=self.distance[nearest], rest=min(self.rest, rest))

    def after(self, by_w: float, by_b: float, places: Ints, distance: Floats) -> "Screen":
        """Return the screen after weights and bias moved by at most so much; samples that it knows are given anew."""
        rest = few_bits(self.rest * DOWN - max(by_w, by_b / self.typical) * UP)
        return Screen(places, distance, rest, self.typical)

    def with_known(self, places: Ints, distance: Floats) -> "Screen":
        """Return a screen that knows these samples (sorted) as well, whether it knew them before or not."""
        others = ~np.isin(self.places, places, assume_unique=True, kind="table")
        everyone = np.concatenate([self.places[others], places])
        order = np.argsort(everyone, kind="stable")
        found = np.concatenate([self.distance[others], distance])[order]
        return replace(self, places=everyone[order], distance=found)

    def without(self, places: Ints) -> "Screen":
        """The screen without samples that are gone; this one where it knows none of them."""
        there, distance = without(places, self.places, self.distance)
        return self if there is self.places else Screen(there, distance, self.rest, self.typical)

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
    """Round a positive number down to three bits; return others unchanged."""
    if not 0.0 < value < math.inf:
        return value
    part, exponent = math.frexp(value)
    return math.ldexp(math.floor(8.0 * part), exponent - 3)


def power_of_two(value: float) -> float:
    """Return a power of two near a number; 1 for zero."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0.0 else 1.0


def moves(lengths: Floats, by_w: float, by_b: float) -> Floats:
    """How far margins of samples of these lengths can move, at most."""
    return (by_w * lengths + by_b) * UP


def size(vector: Floats) -> float:
    """|vector|, rounded up."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) * UP if largest > 0.0 else 0.0


PART_BYTES = 1 << 23  # of samples in float64 that are fetched at a time where there may be many


@dataclass
class Counter:
    """How often all samples were looked at."""

    passes: int = 0


@dataclass(frozen=True, eq=False)
class InsideSum:
    """Sums over samples inside the margin, without rounding: kept, so that removing one costs one row.

    The cᵢ are Cᵢ in units of C. Of a part of the samples, `places` are those among the part; the sums are over all.
    """

    places: Ints
    total: Fixed  # Σ cᵢyᵢxᵢ
    tilt: Fixed  # Σ cᵢyᵢ, one number
    weight: Fixed  # Σ cᵢ, one number
    filled: Ints  # how many numbers of each feature are not zero


@dataclass(frozen=True)
class Samples:
    """All samples of a model. Erased ones keep their place, but not their contents.

    `lengths` are those of the rows of X, and `exponents` the least c with all numbers of a row below 2^c in size;
    `codes` numbers the class of each sample. Those that are held and have a weight are `alive`: they take part.

    Where these are a part of all samples, `base` sums up samples inside the margin of the head that they are for: those
    of its `places`, and all that are not among these samples. The others are taken to be outside.
    """

    X: AnyArray
    lengths: Floats
    exponents: Ints
    codes: Ints
    held: Bools
    penalties: Penalties
    counter: Counter = field(default_factory=Counter, compare=False)
    base: InsideSum | None = None
    base_exponent: int = NO_EXPONENT  # the largest among samples that are in `base` alone

    @once
    def alive(self) -> Bools:
        """Which samples the problem is about."""
        return self.held & (self.penalties.weights > 0.0)

    @once
    def counts(self) -> Ints:
        """How many samples of each class take part."""
        return np.bincount(self.codes[self.alive])

    @once
    def present(self) -> list[int]:
        """The classes that have samples which take part."""
        return np.flatnonzero(self.counts).tolist()

    @once
    def longest(self) -> float:
        """The length of the longest sample that is held, whatever its weight: decision values are for all."""
        return float(np.max(self.lengths[self.held], initial=0.0))

    @property
    def caps(self) -> Floats:
        """Cᵢ, the upper bounds of the multipliers."""
        return self.penalties.caps

    def caps_at(self, places: Ints) -> Floats:
        """Cᵢ of some samples."""
        return self.penalties.C * self.penalties.bounds[places]

    @property
    def bounds(self) -> Floats:
        """Cᵢ in units of C."""
        return self.penalties.bounds

    def counting(self) -> "Samples":
        """Return the samples with a counter at zero."""
        return replace(self, counter=Counter())

    def signs(self, positive: int) -> Floats:
        """+1 for the samples of one class, −1 for the rest."""
        return np.where(self.codes == positive, 1.0, -1.0)

    def scores(self, weights: Floats) -> Floats:
        """X @ weights (d × heads): one pass over the data."""
        self.counter.passes += 1
        return to_numpy(times(self.X, like(weights, self.X)))

    def in_main_memory(self) -> "Samples":
        """Return the samples with their features in main memory."""
        return replace(self, X=to_numpy(self.X))

    def as_kept(self, positions: Ints) -> AnyArray:
        """Some samples' features, in the type and on the device of X."""
        return self.X[like(positions, self.X)]

    def rows(self, positions: Ints) -> Floats:
        """Some samples' features in main memory, in float64."""
        found: Floats = wide(to_numpy(self.as_kept(positions)))
        return found

    def scores_at(self, positions: Ints, w: Floats) -> Floats:
        """x·w for some samples, a part of them at a time."""
        there = like(w, self.X)
        parts = [to_numpy(times(self.as_kept(positions[part]), there)) for part in self.parts(positions)]
        return np.concatenate(parts) if parts else np.empty(0)

    def combined(self, positions: Ints, multipliers: Floats) -> Floats:
        """Σ multiplierᵢxᵢ over some samples, a part of them at a time."""
        total = np.zeros(self.X.shape[1])
        for part in self.parts(positions):
            total += multipliers[part] @ self.rows(positions[part])
        return total

    def parts(self, positions: Ints) -> list[slice]:
        """Stretches of these samples that take little memory in float64."""
        step = max(1, PART_BYTES // (8 * self.X.shape[1]))
        return [slice(first, first + step) for first in range(0, len(positions), step)]

    def only(self, places: Ints, base: InsideSum | None = None, base_exponent: int = NO_EXPONENT) -> "Samples":
        """Some of the samples, in main memory and in float64."""
        return Samples(
            self.rows(places), self.lengths[places], self.exponents[places], self.codes[places], self.held[places],
            self.penalties.only(places), Counter(), base, base_exponent,
        )  # fmt: skip

    def without(self, places: Ints) -> "Samples":
        """Return the samples without those at some places, found without looking at all of them."""
        lighter = changed(self, held=cleared(self.held, places), counter=Counter())
        took_part = places[self.penalties.weights[places] > 0.0]
        known = lighter.__dict__
        known["counts"] = self.counts - np.bincount(self.codes[took_part], minlength=len(self.counts))
        if self.lengths[places].max(initial=-1.0) < self.longest:
            known["longest"] = self.longest
        return lighter

    def followed_by(self, X: AnyArray, sizes: tuple[Floats, Ints], codes: Ints, penalties: Penalties) -> "Samples":
        """Return these samples followed by others, whose lengths and exponents are `sizes`."""
        return Samples(
            joined([self.X, X]),
            np.concatenate([self.lengths, sizes[0]]),
            np.concatenate([self.exponents, sizes[1]]),
            np.concatenate([self.codes, codes]),
            np.concatenate([self.held, np.ones(len(codes), dtype=bool)]),
            self.penalties.followed_by(penalties),
        )


@dataclass(frozen=True)
class Head:
    """One head, solved: weights, the samples on its margin and inside it, and the certificate.

    It stands for the class `positive`, against all others.

    `multipliers` are those of the samples on the margin (the ones inside have Cᵢ, the rest 0). `known` sums up samples
    that are inside, and `screen` says how far from the margin the others are; both are None until they are needed.
    """

    positive: int
    w: Floats
    b: float
    on_margin: Ints
    inside: Ints
    multipliers: Floats
    certificate: Certificate
    known: InsideSum | None = None
    screen: Screen | None = None

    def unseen(self, places: Ints) -> "Head":
        """Return the head after removing samples that do not shape it, and discard their stored distances."""
        screen = self.screen and self.screen.without(places)
        if screen is self.screen:
            return self
        other = changed(self, screen=screen)
        other.__dict__["influential"] = self.influential
        return other

    @once
    def influential(self) -> Ints:
        """The samples that shape the head, sorted."""
        return np.sort(np.concatenate([self.on_margin, self.inside]))

    def shaped_by(self, places: Ints) -> Ints:
        """The samples among these that shape the head."""
        return places[located(places, self.influential)[1]]

    def influential_multipliers(self, caps: Floats) -> Floats:
        """The multipliers of the influential samples, in the same order."""
        found = caps[self.influential]
        found[np.searchsorted(self.influential, self.on_margin)] = self.multipliers
        return found


@dataclass(frozen=True)
class Change:
    """Samples that have left or arrived since a head was solved, of those that shape it."""

    leaving: Ints
    arriving: Ints

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.leaving) + len(self.arriving)


@dataclass
class Trial:
    """One head on its way to a solution: where it is, and what it takes for granted about samples far from there."""

    positive: int
    y: Floats
    w: Floats
    b: float
    margins: Floats
    alpha: Floats
    width: float  # of the smoothed kink, in units of the margin
    reach: float  # samples with margins further from 1 than this are left out of the working set
    held: Floats  # the multipliers these are taken to keep
    pull: Floats  # Σ heldᵢyᵢxᵢ
    tilt: float  # Σ heldᵢyᵢ
    spread: float = np.inf  # how far from 1 the margins in the band were when last seen
    rounds: int = 0
    patient: bool = False  # whether to pivot for long: nothing else has helped
    fine_work: float = 2e7  # products of integers yet allowed for bases of many bits: a few seconds
    known: InsideSum | None = None  # of samples inside the margin, most of which still are
    near: bool = False  # whether the solution is so near that a path is tried first
    # Samples of the working set wherever they are: those that arrived, or crossed the margin.
    moved: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def hold(self, samples: Samples, held: Floats) -> None:
        """Change which multipliers are taken for granted, touching only the samples whose multiplier changes."""
        changed = np.flatnonzero(held != self.held)
        if len(changed):
            signed = (held - self.held)[changed] * self.y[changed]
            self.pull = self.pull + samples.combined(changed, signed)
            self.tilt += float(np.sum(signed))
        self.held = held

    def with_held(self, working: Ints, alpha: Floats) -> Floats:
        """All multipliers: those of a working set, and the ones taken for granted."""
        everything = self.held.copy()
        everything[working] = alpha
        return everything
