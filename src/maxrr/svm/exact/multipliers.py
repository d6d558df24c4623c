"""The multipliers of one head to hundreds of bits: an active set method whose residuals are exact.

The solver hands over the samples near the margin with its guess of their multipliers; all others are taken to stay
inside (multiplier Cᵢ) or outside (0). Of the samples near the margin some, the *basis*, have affinely independent
features. Asking for margins of exactly 1 in the basis gives a linear system for its multipliers. It is solved in
float64 again and again, each time for the error that is left, which `fixed_point.py` computes without rounding: every
round adds some forty bits. A multiplier that leaves [0, Cᵢ] leaves the basis at its bound; a sample on the wrong side
of the margin enters.

Nothing here has to be believed. What is handed on are multipliers that are admissible, exactly, and the weights that
belong to them; `enclosure.py` derives from these how far the solution can be.
"""

from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.exact.basis import (
    DEPENDENT,
    MOST,
    NOTHING,
    Basis,
    FineBasis,
    Near,
    all_rounded_to,
    independent,
    round_to,
    share_out,
)
from maxrr.svm.exact.fixed_point import MANTISSA, Fixed, Integers, Slices, integers, scaled

ONE = Fixed(integers([1]), 0)
COARSE = 44  # bits of multipliers that are fixed without being determined
INTERIOR = 1e-9  # multipliers this far from their bounds, of Cᵢ and relative to the furthest, are between them
MOST_ROUNDS = 60  # of refinement
STALLED = 0.25  # a round that leaves more than this of the error leads nowhere,
MOST_PATIENCE = 3  # and this many in a row are enough
SLACK = 8  # bits of the residual that rounding of many multipliers may leave
MOST_PIVOTS = 36  # from a good guess there are none, or a few
FEW, MANY_PIVOTS = 200, 200  # so few samples are worth more of them
VERY_MANY_PIVOTS = 1000  # where nothing else has helped
FINE_WORK = 40_000  # products of integers that what else belongs to a basis of many bits takes as long as
ROUGH = 1e-12  # of its terms: what float64 says of a margin
GUARD = 24  # bits by which a multiplier may be out of its bounds, or a margin off, by the rounding of others


@dataclass(frozen=True, eq=False)
class Polished:
    """Admissible multipliers of the samples near the margin, and what follows from them, all of it exact.

    `multipliers` are in units of C; `w` is C Σ aᵢyᵢxᵢ over all samples, `shortfall` 1 − mᵢ of those near the margin.
    """

    multipliers: Fixed
    w: Fixed
    b: Fixed  # one number
    shortfall: Fixed


@dataclass(frozen=True, eq=False)
class Target:
    """Multipliers of the basis and b, the weights that follow, and how much the scores of the basis lack."""

    a: Integers
    b: int
    w: Fixed
    lacking: Fixed


class UnpolishedError(ArithmeticError):
    """No admissible multipliers were found from this guess."""


class Search:
    """The active set method, from a guess of the multipliers (in units of C) and of b; margins are good to 2^−bits."""

    def __init__(
        self, near: Near, guess: Floats, b: float, bits: int, patient: bool = False, fine_work: float = np.inf
    ) -> None:
        steep = near.steepness()
        if not (np.isfinite(guess).all() and np.isfinite(b) and np.isfinite(steep)):
            raise UnpolishedError("the numbers are too far apart for float64")
        bits = max(bits, near.whole_bounds.bits, near.tilt.bits) + max(0, int(np.frexp(steep)[1]))
        self.near, self.bits, self.steep = near, bits, max(1.0, steep)
        self.top: Integers = near.whole_bounds.at(bits)
        self.signs = integers(int(sign) for sign in near.y)
        self.slices = near.slices
        self.patient, self.fine_work = patient, fine_work
        self.rough: Polished | None = None  # of a patient search: the last one that float64 cannot tell from the end
        self.most_pivots = VERY_MANY_PIVOTS if patient else MANY_PIVOTS if len(near.y) <= FEW else MOST_PIVOTS
        self.basis: Basis | FineBasis | None = None  # of the members, if it is known
        room = np.minimum(guess, near.bounds - guess)
        typical, part = float(np.max(room, initial=0.0)), room / near.bounds
        bound = near.bounds * np.round(guess / near.bounds)
        guess = np.where(part <= INTERIOR * np.max(part, initial=0.0), bound, guess)
        places = np.flatnonzero((guess > 0.0) & (guess < near.bounds))
        if len(places):
            basis = Basis(near, places) if len(places) <= near.X.shape[1] + 1 else None
            if basis is None or not basis.independent():
                members = places[independent(near.X[places], room[places])]
                basis = Basis(near, members)
                if len(members) < len(places):
                    guess = share_out(near, guess, b, basis, places)
                places = members
            if basis.independent():
                self.basis = basis
        self.members: list[int] = places.tolist()
        coarse = min(max(COARSE + max(0, -int(np.frexp(typical)[1])), near.whole_bounds.bits), bits)
        whole = all_rounded_to(guess, coarse)
        self.a: Integers = whole << (bits - coarse)
        self.b = round_to(b, bits)
        # Σ aᵢyᵢxᵢ and Σ aᵢyᵢ over all samples outside the basis.
        whole[self.members] = 0
        self.held = near.pull
        if any(whole):
            self.held = self.held.plus(self.slices.combination(Fixed(whole * self.signs, coarse)))
        self.held_tilt = int(near.tilt.at(bits)[0]) + (int(np.sum(whole * self.signs)) << (bits - coarse))

    def widen(self, bits: int) -> None:
        """Switch to finer units."""
        self.a, self.b, self.held_tilt = self.a << bits, self.b << bits, self.held_tilt << bits
        self.bits, self.top = self.bits + bits, self.top << bits

    def run(self) -> Polished:
        """Multipliers that satisfy the optimality conditions on the samples near the margin, to about 2^−bits."""
        for _ in range(self.most_pivots):
            target = self.target()
            if self.step_to(target.a):
                self.b = target.b
                self.balance()
                w, short = self.from_target(target)
                complete = len(self.members) == len(self.a)
                entering = None if complete else self.entering(*self.roughly(w))
                if entering is None:
                    state = self.state(w, short)
                    if not complete:
                        entering = self.entering(state.shortfall.rounded(), 2.0 ** -(self.bits // 2))
                    if entering is None:
                        return self.finish(state)
                    if self.patient:
                        self.rough = self.finish(state)
                self.enter(*entering)
        raise UnpolishedError("the active set did not come to rest")

    def hold(self, place: int, times: int) -> None:
        """Add a sample's part to what is outside the basis, or with times = −1 take it away."""
        signed = times * int(self.a[place]) * int(self.signs[place])
        row = Fixed.of(self.near.X[place])
        self.held = self.held.plus(Fixed(row.values * signed, row.bits + self.bits))
        self.held_tilt += signed

    def factorise(self) -> Basis | FineBasis:
        """The basis of the current members."""
        if self.basis is None or self.basis.members.tolist() != self.members:
            basis = Basis(self.near, np.array(self.members))
            fine = not basis.independent() and len(self.members) <= MOST
            self.basis = self.fine_basis() if fine else basis
        return self.basis

    def fine_basis(self) -> FineBasis:
        """The basis of the current members with many bits, unless the head has had enough of them."""
        self.fine_work -= len(self.members) ** 2 * (len(self.members) + self.near.X.shape[1]) + FINE_WORK
        if self.fine_work < 0.0:
            raise UnpolishedError("samples on the margin depend on each other but for their last digits")
        return FineBasis(self.near, np.array(self.members))

    def state(self, w: Fixed, short: Fixed) -> Polished:
        """What follows from the current multipliers, with which the basis falls short by so much."""
        b = Fixed(integers([self.b]), self.bits)
        if self.members != list(range(len(self.a))):
            short = shortfall(self.slices, self.signs, w, b)
        return Polished(Fixed(self.a.copy(), self.bits), w, b, short)

    def roughly(self, w: Fixed) -> tuple[Floats, float]:
        """1 − mᵢ in float64, and how far that may be off."""
        steep, b = w.rounded(), scaled(self.b, self.bits)
        size = float(np.max(np.abs(self.near.X), axis=0, initial=0.0) @ np.abs(steep)) + abs(b) + 1.0
        return 1.0 - self.near.y * (self.near.X @ steep + b), ROUGH * size

    def imbalance(self, a: Integers) -> int:
        """Σ aᵢyᵢ over all samples, with these multipliers of the basis."""
        return int(sum((a * self.signs[self.members]).tolist())) + self.held_tilt

    def target(self) -> Target:
        """The multipliers of the basis and b when it has margins of 1, to the last bit or so."""
        members, signs, slices = self.members, self.signs[self.members], self.slices.of_rows(self.members)
        a, b = self.a[members], self.b
        w = self.held.plus(slices.combination(Fixed(a * signs, self.bits))).times(self.near.C)
        lacking = shortfall(slices, signs, w, Fixed(integers([b]), self.bits)).times_each(signs)
        if not members:
            return Target(a, b, w, lacking)
        basis = self.factorise()
        least, patience, imbalance = np.inf, 0, self.imbalance(a)
        for _ in range(MOST_ROUNDS):
            off, rounded = scaled(imbalance, self.bits), lacking.rounded()
            residual = max(float(np.max(np.abs(rounded))), self.steep * abs(off))
            if residual <= len(members) * self.steep * 2.0 ** (SLACK - self.bits):
                return Target(a, b, w, lacking)
            patience = patience + 1 if residual > STALLED * least else 0
            least = min(least, residual)
            if patience > MOST_PATIENCE:
                raise UnpolishedError("samples on the margin depend on each other too closely")
            further = Fixed(lacking.values[1:] - lacking.values[0], lacking.bits).rounded()
            change, shift = basis.step(float(rounded[0]), further, off, self.bits)
            a, b, imbalance = a + change * signs, b + shift, imbalance + sum(change.tolist())
            moved, raised = self.effect(slices, change)
            w, lacking = w.plus(moved), lacking.minus(raised).minus(Fixed(integers([shift]), self.bits))
        raise UnpolishedError("refinement takes too many rounds")

    def effect(self, slices: Slices, change: Integers) -> tuple[Fixed, Fixed]:
        """How w and the scores of the basis change with its signed multipliers.

        A change of a few digits costs much less than to begin again with all digits of the multipliers.
        """
        moved = slices.combination(Fixed(change, self.bits))
        return moved.times(self.near.C), slices.product(moved).times(self.near.C)  # C last: it may have many digits

    def from_target(self, target: Target) -> tuple[Fixed, Fixed]:
        """w, and by how much the margins of the basis fall short, at the current multipliers, close to the target."""
        signs, w, lacking = self.signs[self.members], target.w, target.lacking
        change = (self.a[self.members] - target.a) * signs
        if any(change):
            moved, raised = self.effect(self.slices.of_rows(self.members), change)
            w, lacking = w.plus(moved), lacking.minus(raised)
        return w, lacking.times_each(signs)

    def step_to(self, target: Integers) -> bool:
        """Move to the target as far as the bounds allow; at a bound one sample leaves the basis."""
        slack, tops = 1 << GUARD, self.top[self.members]
        if all(-slack <= value <= top + slack for value, top in zip(target, tops, strict=True)):
            self.a[self.members] = integers(min(max(value, 0), top) for value, top in zip(target, tops, strict=True))
            return True
        share, leaving = 2.0, -1
        for number, (place, value) in enumerate(zip(self.members, target, strict=True)):
            here, top = int(self.a[place]), int(self.top[place])
            if not 0 <= value <= top:
                room = here if value < 0 else top - here
                part = room / abs(int(value) - here)
                if part < share:
                    share, leaving = part, number
        part = round_to(share, MANTISSA)
        for place, value in zip(self.members, target, strict=True):
            moved = int(self.a[place]) + ((int(value) - int(self.a[place])) * part >> MANTISSA)
            self.a[place] = min(max(moved, 0), self.top[place])
        place = self.members.pop(leaving)
        self.a[place] = self.top[place] if target[leaving] > self.top[place] else 0
        self.hold(place, 1)
        return False

    def entering(self, off: Floats, tolerance: float) -> tuple[int, int] | None:
        """The sample most on the wrong side of the margin, and whether its multiplier must rise (1) or fall (−1).

        `off` is 1 − mᵢ, of which only what is beyond the tolerance counts.
        """
        can_rise, can_fall = (self.a < self.top).astype(bool), (self.a > 0).astype(bool)
        if not self.members and self.held_tilt:
            # No multiplier is between its bounds: first one has to make up for what is lacking.
            toward = -np.sign(self.held_tilt) * self.near.y
            useful = np.where(toward > 0.0, can_rise, can_fall)
            place = int(np.argmin(np.where(useful, np.abs(off), np.inf)))
            return (place, int(toward[place])) if useful[place] else None
        low, high = can_rise & (off > tolerance), can_fall & (off < -tolerance)
        wrong = np.where(low | high, np.abs(off), 0.0)
        wrong[self.members] = 0.0
        place = int(np.argmax(wrong))
        return (place, 1 if low[place] else -1) if wrong[place] > 0.0 else None

    def enter(self, place: int, rise: int) -> None:
        """Let a sample into the basis; if it depends on the basis, in exchange for another or up to its own bound."""
        self.hold(place, -1)
        if not self.members:
            self.members = [place]
            return
        basis = self.factorise()
        coefficients, distance = basis.coefficients(self.near.X[place])
        if distance <= DEPENDENT and isinstance(basis, Basis) and len(self.members) <= MOST:  # look with more digits
            basis = self.fine_basis()
            coefficients, distance = basis.coefficients(self.near.X[place])
        distance = distance if distance > (NOTHING if isinstance(basis, FineBasis) else DEPENDENT) else 0.0
        if not np.isfinite(coefficients).all():
            raise UnpolishedError("the numbers are too far apart for float64")
        if distance > 0.0 and len(self.members) <= self.near.X.shape[1]:
            self.members.append(place)
            return
        # Raising a by s while the basis gives way leaves the weights as they are: Σ yᵢaᵢ(xᵢ, 1) stays.
        limit, leaving = (int(self.top[place] - self.a[place]) if rise > 0 else int(self.a[place])), -1
        slopes = -rise * self.near.y[place] * coefficients * self.near.y[self.members]
        for number, (member, slope) in enumerate(zip(self.members, slopes, strict=True)):
            if abs(slope) > 1e-9:
                room = int(self.top[member] - self.a[member]) if slope > 0 else int(self.a[member])
                reach = round_to(scaled(room, self.bits) / abs(slope), self.bits)
                if reach < limit:
                    limit, leaving = reach, number
        for member, slope in zip(self.members, slopes, strict=True):
            moved = int(self.a[member]) + round_to(scaled(limit, self.bits) * slope, self.bits)
            self.a[member] = min(max(moved, 0), self.top[member])
        self.a[place] += rise * limit
        if leaving >= 0:
            place, self.members[leaving] = self.members[leaving], place
            self.a[place] = self.top[place] if slopes[leaving] > 0 else 0
        self.hold(place, 1)

    def balance(self) -> None:
        """Let Σ aᵢyᵢ be zero to the last bit, at the cost of the multiplier with the most room."""
        off = self.imbalance(self.a[self.members])
        if off and self.members:
            room = self.a[self.members], self.top[self.members] - self.a[self.members]  # downwards, upwards
            space, place = max(
                (int(room[int(self.signs[place] * off < 0)][number]), place)
                for number, place in enumerate(self.members)
            )
            if space >= abs(off):
                self.a[place] -= int(self.signs[place]) * off

    def finish(self, state: Polished) -> Polished:
        """Return the multipliers, if they are admissible."""
        if self.imbalance(self.a[self.members]):
            raise UnpolishedError("no multiplier is between its bounds, and they do not balance")
        if not all(0 <= value <= top for value, top in zip(self.a, self.top, strict=True)):
            raise UnpolishedError("a multiplier is out of its bounds")
        return with_bias_nearest_zero(self.near, state)


def shortfall(slices: Slices, signs: Integers, w: Fixed, b: Fixed) -> Fixed:
    """1 − mᵢ of these samples."""
    score = slices.product(w).plus(b)
    return ONE.minus(score.times_each(signs))


def with_bias_nearest_zero(near: Near, state: Polished) -> Polished:
    """The same weights with the b of `enclosure.py`, as far as samples near the margin tell where its interval ends."""
    offsets = state.shortfall.values * integers(int(sign) for sign in near.y)
    order, (rises, below) = np.argsort(offsets), near.slopes()
    first, last = ends(order, rises, below)
    enough = below <= int(np.sum(rises))
    bits = max(state.b.bits, state.shortfall.bits)
    zero = -int(state.b.at(bits)[0])
    low = int(offsets[order[first]]) << bits - state.shortfall.bits if below > 0 and enough else 0
    high = int(offsets[order[last]]) << bits - state.shortfall.bits if below >= 0 and last < len(order) else 0
    shift = Fixed(integers([sorted((low, zero, high))[1]]), bits)
    signed = Fixed(integers(int(sign) for sign in near.y) * shift.values[0], bits)
    return Polished(state.multipliers, state.w, state.b.plus(shift), state.shortfall.minus(signed))


# Where the optimal biases of a head begin and end, given its weights. The loss of a head is piecewise linear in b. Its
# slope rises by Cᵢ at every tᵢ = yᵢ − w·xᵢ, the b at which sample i has margin 1, from minus the sum of Cᵢ over the
# positive samples on the far left. The optimal b go from the first tᵢ at which the slope is no longer negative to the
# first at which it is positive. Both ends are monotone in each of the tᵢ, so that bounds on these give bounds on both.


def ends(order: Ints, rises: Floats | Integers, below: float) -> tuple[int, int]:
    """The places in `order`, which sorts the turning points, where the slope is no longer negative, and positive.

    Left of all these points it is −`below`, and it rises by `rises` at each of them. A place beyond the last says that
    it does not come to that.

    >>> ends(np.array([2, 0, 1]), np.array([1.0, 3.0, 1.0]), 2.0)
    (1, 2)
    """
    slopes = np.cumsum(rises[order])
    return int(np.searchsorted(slopes, below, "left")), int(np.searchsorted(slopes, below, "right"))
