"""What the test would find, had the model not forgotten: told for models that kept some of the records, or all.

No model is trained for that. Shadow models that kept all of the records, and models retrained without them, are put
together record by record: some records as one of the former has them, the rest as one of the latter does; or half way
between the two in every record. A technique that pushes a model away from the records, by training on wrong labels,
leaves a trace in the other direction; it is taken to be as large as that of having kept them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxrr.audit.checks import Floats
from maxrr.audit.ranks import oddness, rounding, shadows_needed
from maxrr.audit.roc import interval

ALPHA = 0.05
WORTH = 0.8  # the power from which on it means something that nothing was found
FEWEST = shadows_needed(ALPHA)  # retrained models that can show anything
SHARES = {"10 % kept": 0.1, "25 % kept": 0.25, "50 % kept": 0.5, "all kept": 1.0}
ALL, HALVED = "all kept", "half of each trace kept"
RELABELLED, MIXED = "relabelled", "half kept, half relabelled"
NEAR = 0.05  # a share that so few records come no nearer to is not told
DRAWS = 4  # mixtures with each shadow model


@dataclass(frozen=True)
class Power:
    """How often the test finds a model that treats the records in a certain way.

    Attributes
    ----------
    rate : float
        The share that is found.
    models : int
        How many models that kept the records it was counted on.
    low, high : float
        The 95 % interval of the rate, for so many models.
    """

    rate: float
    models: int
    low: float
    high: float

    @classmethod
    def of(cls, found: Sequence[bool], models: int) -> "Power":
        """Power by what was found, of this number of models, each looked at equally often."""
        rate = float(np.mean(found))
        return cls(rate, models, *interval(rate * models, models))

    def __str__(self) -> str:
        return f"{100 * self.rate:.0f} %"


def as_odd_as_first(scores: Floats) -> int:
    """How many of the other models stand out at least as far as the first."""
    odd = oddness(scores)
    return int(np.count_nonzero(odd[1:] >= odd[0] - rounding(odd)))


def is_found(scores: Floats, retrained: int | None = None) -> bool:
    """Whether the first of these models stands out, by its rank among this number of retrained ones."""
    return (1 + as_odd_as_first(scores)) / (1 + (retrained or len(scores) - 1)) <= ALPHA


def power_by_alternative(remembering: Sequence[Floats]) -> dict[str, Power]:
    """Power by what a model may do with the records.

    Parameters
    ----------
    remembering
        For each shadow model that kept the records, scores (models × records): its own, then those of retrained models.
    """
    records = remembering[0].shape[1]
    counts = {name: round(share * records) for name, share in SHARES.items()}
    counts = {name: kept for name, kept in counts.items() if kept and abs(kept / records - SHARES[name]) <= NEAR}
    found = {name: power_of(remembering, kept, 0) for name, kept in counts.items()}
    halved = [is_found(np.vstack([(scores[0] + scores[row]) / 2.0, np.delete(scores[1:], row - 1, axis=0)]),
                       retrained=len(scores) - 1)
              for scores in remembering for row in rows_of(scores)]  # fmt: skip
    found[HALVED] = Power.of(halved, len(remembering))
    found[RELABELLED] = power_of(remembering, 0, records)
    if records > 1:
        found[MIXED] = power_of(remembering, records // 2, records - records // 2)
    return found


def rows_of(scores: Floats) -> list[int]:
    """Some of the retrained models, evenly among all."""
    return [round(place) for place in np.linspace(1, len(scores) - 1, DRAWS)]


def power_of(remembering: Sequence[Floats], kept: int, opposite: int) -> Power:
    """Power against models with so many records kept, so many the opposite of kept, and the others forgotten."""
    random, records = np.random.default_rng(0), remembering[0].shape[1]
    times = 1 if records in (kept, opposite) else DRAWS
    found = [
        is_found(mixture(scores, random.permutation(records), kept, opposite, int(random.integers(1, len(scores)))),
                 retrained=len(scores) - 1)
        for scores in remembering
        for _ in range(times)
    ]  # fmt: skip
    return Power.of(found, len(remembering))


def mixture(scores: Floats, order: NDArray[np.int64], kept: int, opposite: int, honest: int) -> Floats:
    """Scores with a mixture in the first row: of the model there, its opposite, and a retrained one.

    That one is then no longer among the others: it would be half a twin.
    """
    found = scores.copy()
    away, as_retrained = order[kept : kept + opposite], order[kept + opposite :]
    lowest = 0.0 if scores.min() >= 0.0 else -np.inf  # scores that are never negative stay so
    found[0, away] = np.maximum(2.0 * scores[1:, away].mean(axis=0) - scores[0, away], lowest)
    found[0, as_retrained] = scores[honest, as_retrained]
    return np.delete(found, honest, axis=0) if len(as_retrained) else found


def least_found(power: dict[str, Power]) -> str | None:
    """The least share that is found often enough, as are all larger ones; None where not even all records are."""
    found = None
    for name in reversed([name for name in SHARES if name in power]):
        if power[name].rate < WORTH:
            break
        found = name
    return found
