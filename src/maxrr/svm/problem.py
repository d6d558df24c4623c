"""What the solver works on: samples with their classes, and one head among them, solved or not yet."""

from dataclasses import dataclass, field, replace

import numpy as np

from maxrr.once import once
from maxrr.svm.arrays import (
    AnyArray,
    Bools,
    Floats,
    Ints,
    any_among,
    like,
    located,
    namespace,
    rows,
    times,
    to_numpy,
    wide,
)
from maxrr.svm.certificate import Certificate
from maxrr.svm.changed import changed
from maxrr.svm.device import Device
from maxrr.svm.fixed_point import Fixed
from maxrr.svm.flags import Flags
from maxrr.svm.limits import NO_EXPONENT
from maxrr.svm.penalties import Penalties
from maxrr.svm.screening import Screen

PART_BYTES = 1 << 23  # of samples in float64 that are fetched at a time where there may be many


@dataclass
class Counter:
    """How much of the data was fetched."""

    passes: int = 0
    rows: int = 0


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

    def negated(self) -> "InsideSum":
        """The same, seen from the other class."""
        return replace(self, total=self.total.negated(), tilt=self.tilt.negated())


@dataclass(frozen=True)
class Samples:
    """All samples of a model. Erased ones keep their place, but not their contents.

    `lengths` are those of the rows of X, and `exponents` the least c with all numbers of a row below 2^c in size;
    `codes` numbers the class of each sample. Those that are held and have a weight are `alive`: they take part.

    Where these are a part of all samples, `base` sums up samples inside the margin of the head that they are for: those
    of its `places`, and all that are not among these samples. The others are taken to be outside.

    Where X has rows of other samples, too, `chosen` are the rows of these; None stands for all.

    Where X is in main memory, a `device` may be given that does the products with it.
    """

    X: AnyArray
    lengths: Floats
    exponents: Ints
    codes: Ints
    held: Bools | Flags
    penalties: Penalties
    counter: Counter = field(default_factory=Counter, compare=False)
    base: InsideSum | None = None
    base_exponent: int = NO_EXPONENT  # the largest among samples that are in `base` alone
    chosen: Ints | None = None
    device: Device | None = None

    @once
    def alive(self) -> Bools:
        """Which samples the problem is about."""
        part: Bools = self.held & (self.penalties.weights > 0.0)
        return part

    @once
    def counts(self) -> Ints:
        """How many samples of each class take part."""
        return np.bincount(self.codes[self.alive])

    @once
    def present(self) -> list[int]:
        """The classes that have samples which take part."""
        found: list[int] = np.flatnonzero(self.counts).tolist()
        return found

    @once
    def longest(self) -> float:
        """The length of the longest sample that is held, whatever its weight: decision values are for all."""
        return float(np.max(self.lengths[np.asarray(self.held)], initial=0.0))

    @property
    def caps(self) -> Floats:
        """Cᵢ, the upper bounds of the multipliers."""
        return self.penalties.caps

    def caps_at(self, places: Ints) -> Floats:
        """Those of some samples."""
        found: Floats = self.penalties.C * self.penalties.bounds[places]
        return found

    @property
    def bounds(self) -> Floats:
        """The same in units of C."""
        return self.penalties.bounds

    def counting(self) -> "Samples":
        """The same samples, with a counter at zero."""
        return replace(self, counter=Counter())

    def signs(self, positive: int) -> Floats:
        """+1 for the samples of one class, −1 for the rest."""
        return np.where(self.codes == positive, 1.0, -1.0)

    def scores(self, weights: Floats) -> Floats:
        """X @ weights (d × heads): one pass over the data."""
        self.counter.passes += 1
        self.counter.rows += len(self.codes)
        if self.device is not None:
            from maxrr.svm import streaming  # brings torch

            return streaming.scores(self.features, weights, self.device)
        return to_numpy(times(self.features, like(weights, self.X)))

    @once
    def features(self) -> AnyArray:
        """The rows of X that are these samples'; copied if they are not all, when somebody wants all at once."""
        return self.X if self.chosen is None else rows(self.X, self.chosen)

    def everything(self) -> AnyArray:
        """All features, where and as they are."""
        self.counter.rows += len(self.codes)
        return self.features

    def on_device(self, positions: Ints) -> AnyArray:
        """Some samples' features, where and as X is."""
        self.counter.rows += len(positions)
        return rows(self.X, self.row_numbers(positions))

    def row_numbers(self, positions: Ints) -> Ints:
        """Where some samples are in X."""
        return positions if self.chosen is None else self.chosen[positions]

    def rows(self, positions: Ints) -> Floats:
        """Some samples' features in main memory, in float64."""
        found: Floats = wide(to_numpy(self.on_device(positions)))
        return found

    def scores_at(self, positions: Ints, w: Floats) -> Floats:
        """x·w for some samples, a part of them at a time."""
        there = like(w, self.X)
        parts = [to_numpy(times(self.on_device(positions[part]), there)) for part in self.parts(positions)]
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

    def among(self, places: Ints) -> "Samples":
        """Some of the samples, as a problem of their own on the same X. These are not a part of others."""
        return Samples(
            self.X, self.lengths[places], self.exponents[places], self.codes[places], self.held[places],
            self.penalties.only(places), chosen=places, device=self.device,
        )  # fmt: skip

    def parcel(self) -> tuple[AnyArray, "Samples"]:
        """What a worker process needs of such a part, the features by themselves: they are sent in another way."""
        return self.features, replace(self, X=np.empty((0, self.X.shape[1])), chosen=None)

    def without(self, places: Ints) -> "Samples":
        """The same samples when these are no longer held. What is known of all is found without looking at all."""
        lighter = changed(self, held=Flags.of(self.held).without(places), counter=Counter())
        took_part = places[self.penalties.weights[places] > 0.0]
        known = lighter.__dict__
        known["counts"] = self.counts - np.bincount(self.codes[took_part], minlength=len(self.counts))
        if self.lengths[places].max(initial=-1.0) < self.longest:
            known["longest"] = self.longest
        return lighter

    def followed_by(self, X: AnyArray, sizes: tuple[Floats, Ints], codes: Ints, penalties: Penalties) -> "Samples":
        """These samples and others; `sizes` are lengths and exponents of the others."""
        return Samples(
            namespace(self.X).concat([self.X, X]),
            np.concatenate([self.lengths, sizes[0]]),
            np.concatenate([self.exponents, sizes[1]]),
            np.concatenate([self.codes, codes]),
            np.concatenate([self.held, np.ones(len(codes), dtype=bool)]),
            self.penalties.followed_by(penalties),
            device=self.device,
        )


@dataclass(frozen=True)
class Head:
    """One head, solved: weights, the samples on its margin and inside it, and the certificate.

    It stands for the class `positive`, among all samples or, if a class is given that it is `against`, those of these
    two.

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
    against: int | None = None

    def unseen(self, places: Ints) -> "Head":
        """The same head when samples have gone that do not shape it: of how near they were nothing stays."""
        if self.screen is None or not any_among(places, self.screen.places):
            return self
        other = changed(self, screen=self.screen.without(places))
        other.__dict__["influential"] = self.influential
        return other

    @once
    def influential(self) -> Ints:
        """The samples that shape the head, sorted."""
        return np.sort(np.concatenate([self.on_margin, self.inside]))

    def shaped_by(self, places: Ints, caps: Floats) -> tuple[Ints, Floats]:
        """Those of these samples that shape the head, and their multipliers; `caps` are the upper bounds of these."""
        (at, touching), (_, inside) = located(places, self.on_margin), located(places, self.inside)
        multipliers = np.where(inside, caps, 0.0)
        multipliers[touching] = self.multipliers[at[touching]]
        shaping = touching | inside
        return places[shaping], multipliers[shaping]

    def influential_multipliers(self, caps: Floats) -> Floats:
        """The multipliers of these samples, in the same order."""
        found = caps[self.influential]
        found[np.searchsorted(self.influential, self.on_margin)] = self.multipliers
        return found


@dataclass(frozen=True)
class Change:
    """Samples that have left or arrived since a head was solved, of those that shape it."""

    leaving: Ints
    multipliers: Floats  # which these had
    arriving: Ints

    @property
    def count(self) -> int:
        """How many they are."""
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
    known: InsideSum | None = None  # of samples inside the margin, most of which still are
    near: bool = False  # whether the solution is so near that a path is tried first
    # Samples of the working set wherever they are: those that arrived, or crossed the margin.
    moved: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    change: Change | None = None  # what makes the problem differ from one that was solved here

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
