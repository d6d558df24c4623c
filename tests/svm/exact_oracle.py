"""The linear soft-margin SVM with a free bias, solved in rational arithmetic: an oracle without rounding.

Minimise ½|w|² + Σ Cᵢ max(0, 1 − yᵢ(w·xᵢ + b)). Every number given is taken as the rational number it is. The weights
are unique; the optimal biases are a closed interval, and the answer has the one nearest to zero.

The method is the criss-cross method for linear complementarity problems, on the optimality conditions. Each sample's
multiplier is at zero, at its bound, or free; the free samples are affinely independent, so that demanding margin one
of them determines everything. Sample i gives two conditions, numbered 2i and 2i + 1: at zero, margin ≥ 1 (2i); at the
bound, margin ≤ 1 (2i + 1); free, multiplier ≥ 0 (2i) and ≤ Cᵢ (2i + 1). One pivot sees to one broken condition, and
nothing needs to be feasible on the way. With the least number chosen wherever there is a choice, no state comes twice,
degenerate or not, because the matrix of the problem is positive semidefinite; so the search ends. A bounded number of
pivots that choose by size comes first, since these are usually fewer; they are tried on the problem, and if that fails
on a row of problems with ever greater C, which ends with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

ZERO, FREE, BOUND = 0, 1, 2  # where a multiplier is

Vector = list[int]


@dataclass(frozen=True)
class Exact:
    """The optimum. Weights, bias and margins are unique; the multipliers are one optimal choice of perhaps many."""

    w: tuple[Fraction, ...]
    b: Fraction
    margins: tuple[Fraction, ...]
    multipliers: tuple[Fraction, ...]

    @property
    def inside(self) -> set[int]:
        """Rows with margin below one."""
        return {i for i, margin in enumerate(self.margins) if margin < 1}

    @property
    def on(self) -> set[int]:
        """Rows with margin exactly one."""
        return {i for i, margin in enumerate(self.margins) if margin == 1}

    @property
    def outside(self) -> set[int]:
        """Rows with margin above one."""
        return {i for i, margin in enumerate(self.margins) if margin > 1}


def solve(X: Any, y: Any, C: Any, by_size: bool = True) -> Exact:
    """The optimum, checked exactly before it is returned: a mistake here is an AssertionError, not a wrong answer.

    C is one number or one per sample. Without by_size every pivot is one by least number; this changes the way to the
    answer, and perhaps the multipliers.
    """
    rows = [[Fraction(value) for value in row] for row in _plain(X)]
    labels = [int(label) for label in _plain(y)]
    bounds = [Fraction(value) for value in _plain(C)] if np.ndim(C) else [_scalar(C)] * len(rows)
    if not len(rows) == len(labels) == len(bounds) or len({len(row) for row in rows}) > 1:
        raise ValueError("X, y and C must agree in length, and the rows of X among themselves")
    if set(_plain(y)) != {-1, 1} or min(bounds) <= 0:
        raise ValueError("both labels, -1 and 1, must be present, and C must be positive")
    search = _Search(rows, labels, bounds)
    if by_size and not search.by_size():
        for halvings in reversed(range(60)):
            search.halve_bounds(halvings)
            if not search.by_size():
                break
        search.halve_bounds(0)
    while (least := min((number for _, number in search.broken()), default=None)) is not None:
        search.pivot(least)
    multipliers = search.multipliers()
    w = tuple(
        sum((a * label * row[k] for a, label, row in zip(multipliers, labels, rows, strict=True) if a), Fraction(0))
        for k in range(len(rows[0]))
    )
    scores = [sum((u * v for u, v in zip(w, row, strict=True)), Fraction(0)) for row in rows]
    low, high = bias_interval(scores, labels, bounds)
    b = min(max(low, Fraction(0)), high)
    margins = tuple(label * (score + b) for label, score in zip(labels, scores, strict=True))
    _check(w, b, margins, multipliers, labels, bounds)
    return Exact(w, b, margins, multipliers)


def bias_interval(
    scores: Sequence[Fraction], labels: Sequence[int], bounds: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """The least and the greatest b that minimise Σ Cᵢ max(0, 1 − yᵢ(scoreᵢ + b)); both labels must be present.

    The sum is convex and linear between the points yᵢ − scoreᵢ, at each of which its slope grows by Cᵢ.
    """
    slope = -sum(bound for bound, label in zip(bounds, labels, strict=True) if label > 0)
    steps: dict[Fraction, Fraction] = {}
    for score, label, bound in zip(scores, labels, bounds, strict=True):
        steps[label - score] = steps.get(label - score, Fraction(0)) + bound
    low = None
    for at, step in sorted(steps.items()):
        slope += step
        if low is None and slope >= 0:
            low = at
        if slope > 0:
            assert low is not None
            return low, at
    raise AssertionError("the slope never became positive")


def _check(
    w: Sequence[Fraction],
    b: Fraction,
    margins: Sequence[Fraction],
    multipliers: Sequence[Fraction],
    labels: Sequence[int],
    bounds: Sequence[Fraction],
) -> None:
    """Assert that feasible multipliers, of which w is the combination, give the value that w and the margins give.

    No value of the dual exceeds one of the primal, so both are then optimal, and so is the bias in the margins. The
    biases optimal together with the only optimal w are those that minimise the sum of losses at this w. That none of
    them is nearer to zero follows from the slopes of that sum at b, to either side, which are read from the margins.
    """
    assert all(0 <= a <= bound for a, bound in zip(multipliers, bounds, strict=True))
    assert sum(a * label for a, label in zip(multipliers, labels, strict=True)) == 0
    loss = sum(bound * (1 - margin) for bound, margin in zip(bounds, margins, strict=True) if margin < 1)
    assert sum(value * value for value in w) + loss == sum(multipliers)
    left = right = Fraction(0)
    for margin, label, bound in zip(margins, labels, bounds, strict=True):
        below, above = (margin <= 1, margin < 1) if label > 0 else (margin < 1, margin <= 1)
        left -= label * below * bound
        right -= label * above * bound
    assert left <= 0 <= right
    assert b <= 0 or left < 0
    assert b >= 0 or right > 0


def _plain(values: Any) -> list[Any]:
    """Python's own numbers, in lists, from an array or a sequence, without a change of value."""
    return list((values if isinstance(values, np.ndarray) else np.array(values, dtype=object)).tolist())


def _scalar(value: float | Fraction) -> Fraction:
    return Fraction(value) if isinstance(value, int | Fraction) else Fraction(float(value))


def _dot(u: Sequence[int], v: Sequence[int]) -> int:
    return sum([p * q for p, q in zip(u, v, strict=True)])


def _positive_solve(system: list[Vector]) -> tuple[Vector, int]:
    """For rows [G | g] of integers with G positive definite: det G · G⁻¹g and det G, by divisions without remainder."""
    size, last = len(system), 1
    for k in range(size):
        top = system[k]
        pivot = top[k]
        assert pivot > 0
        for row in system[k + 1 :]:
            lead = row[k]
            for col in range(k + 1, size + 1):
                row[col] = (pivot * row[col] - lead * top[col]) // last
        last = pivot
    answer = [0] * size
    for k in reversed(range(size)):
        row = system[k]
        answer[k] = (last * row[size] - sum([row[j] * answer[j] for j in range(k + 1, size)])) // row[k]
    return answer, last


class _Search:
    """The state of each multiplier, and what follows from it, in integers.

    With rows x/p and bounds c/q (all x and c integers), multipliers are kept as integers over q·det and the score of a
    row, w·x, as an integer over p²·q·det, where det > 0 is new in each state.
    """

    def __init__(self, rows: list[list[Fraction]], labels: list[int], bounds: list[Fraction]) -> None:
        p = lcm(*(value.denominator for row in rows for value in row))
        self.q = lcm(*(bound.denominator for bound in bounds))
        self.unit = self.one = p * p * self.q
        self.x = [[value.numerator * (p // value.denominator) for value in row] for row in rows]
        self.c = [bound.numerator * (self.q // bound.denominator) for bound in bounds]
        self.y = labels
        self.at = [ZERO] * len(rows)
        self.at[0] = FREE
        self.free = [0]
        self._settle()

    def multipliers(self) -> tuple[Fraction, ...]:
        """The multipliers in this state."""
        found = [Fraction(self.c[i], self.q) if at == BOUND else Fraction(0) for i, at in enumerate(self.at)]
        for j, signed in zip(self.free, self.signed, strict=True):
            found[j] = Fraction(self.y[j] * signed, self.q * self.det)
        return tuple(found)

    def broken(self) -> Iterator[tuple[tuple[bool, int], int]]:
        """The broken conditions: how badly (those of free samples foremost), and the number."""
        for j, signed in zip(self.free, self.signed, strict=True):
            multiplier = self.y[j] * signed
            if multiplier < 0:
                yield (True, -multiplier), 2 * j
            elif (over := multiplier - self.c[j] * self.det) > 0:
                yield (True, over), 2 * j + 1
        one = self.one * self.det
        for i, (x, label, at) in enumerate(zip(self.x, self.y, self.at, strict=True)):
            if at != FREE:
                above = label * (_dot(self.w, x) + self.b) - one
                if at == ZERO and above < 0:
                    yield (False, -above), 2 * i
                elif at == BOUND and above > 0:
                    yield (False, above), 2 * i + 1

    def by_size(self) -> bool:
        """Pivots for the condition broken worst, up to four a sample; whether none is broken any more."""
        for _ in range(4 * len(self.x)):
            worst = max(self.broken(), default=None)
            if worst is None:
                return True
            self.pivot(worst[1])
        return False

    def halve_bounds(self, times: int) -> None:
        """The same state in the problem whose bounds are the given ones, halved so many times.

        Instead of the bounds, the multipliers' unit is changed, which is where the margin one gets its size from.
        """
        self.one = self.unit << times
        self._settle()

    def pivot(self, number: int) -> None:
        """The pivot for this broken condition."""
        i = number // 2
        if self.at[i] == FREE:
            self._release(i, number)
        else:
            self._admit(i, number)
        self.free = [j for j, at in enumerate(self.at) if at == FREE]
        self._settle()

    def _release(self, i: int, number: int) -> None:
        """A free multiplier out of its range goes to the end it passed; where none else is free, another becomes so.

        That other is one whose move into its range brings this one back, by the balance Σ αy = 0.
        """
        self.at[i] = BOUND if number % 2 else ZERO
        if len(self.free) > 1:
            return
        wanted = self.y[i] if number % 2 else -self.y[i]
        choices = [
            2 * j + (at == BOUND)
            for j, at in enumerate(self.at)
            if j != i and (self.y[j] if at == ZERO else -self.y[j]) == wanted
        ]
        self.at[min(choices) // 2] = FREE

    def _admit(self, i: int, number: int) -> None:
        """A sample on the wrong side of its margin becomes free, where it is affinely independent of the free ones.

        Otherwise the free samples determine its margin: it changes to the other end, or takes the place of one of
        them, which leaves to the end that mends the margin.
        """
        first, *others = self.free
        base = self.x[first]
        towards = [p - q for p, q in zip(self.x[i], base, strict=True)]
        products = [_dot(edge, towards) for edge in self.edges]
        shares, det = _positive_solve([[*row, value] for row, value in zip(self.gram, products, strict=True)])
        if det * _dot(towards, towards) > _dot(shares, products):
            self.at[i] = FREE
            return
        mend = self.y[i] if self.at[i] == ZERO else -self.y[i]
        choices = [number ^ 1]
        for j, share in zip([first, *others], [det - sum(shares), *shares], strict=True):
            if share:
                choices.append(2 * j + (mend * self.y[j] * share < 0))
        choice = min(choices)
        if choice == number ^ 1:
            self.at[i] = BOUND if self.at[i] == ZERO else ZERO
        else:
            self.at[i] = FREE
            self.at[choice // 2] = BOUND if choice % 2 else ZERO

    def _settle(self) -> None:
        """Multipliers of the free samples, weights and bias, from: their margins are one, and Σ αy = 0."""
        bound = [(self.x[i], self.y[i] * self.c[i]) for i, at in enumerate(self.at) if at == BOUND]
        first, *others = self.free
        base = self.x[first]
        rest = -sum(share for _, share in bound)
        start = [rest * value for value in base]
        for x, share in bound:
            start = [total + share * value for total, value in zip(start, x, strict=True)]
        self.edges = [[p - q for p, q in zip(self.x[j], base, strict=True)] for j in others]
        self.gram = [[_dot(u, v) for v in self.edges] for u in self.edges]
        target = [
            self.one * (self.y[j] - self.y[first]) - _dot(edge, start)
            for j, edge in zip(others, self.edges, strict=True)
        ]
        signed, self.det = _positive_solve([[*row, value] for row, value in zip(self.gram, target, strict=True)])
        self.signed = [rest * self.det - sum(signed), *signed]
        self.w = [self.det * value for value in start]
        for share, edge in zip(signed, self.edges, strict=True):
            self.w = [total + share * value for total, value in zip(self.w, edge, strict=True)]
        self.b = self.one * self.det * self.y[first] - _dot(self.w, base)
