"""The rule that gives the verdict.

1. Every strong attack (LiRA, RMIA; or what was asked for, where neither was) gives a model one number, larger if it
   finds more of the records. The audited model and the models retrained without the records are standardised
   together, and a model's oddity is the largest of its numbers: one test, not one for each attack.
2. p is the rank of the audited model's oddity among theirs. Four fifths of the error go to odd on the side of
   remembering, one fifth to the other: an attack far below chance is a trace, too.
3. p at or below `ALPHA`: residual influence found.
4. Fewer retrained models than could ever show anything, or so few that the 95 % interval of p holds `ALPHA`: not enough
   evidence.
5. Otherwise: indistinguishable at this power, where power is the share of models *with* the records that the same test
   finds.
"""

import math
from dataclasses import dataclass

import numpy as np

from maxrr.audit.checks import Floats
from maxrr.audit.ranks import rank_p_value, shadows_needed
from maxrr.audit.roc import interval

ALPHA = 0.05
TRACES = 0.8  # the share of ALPHA for models that remember
MANY_TIMES = 20  # as many shadow models are the most that anybody is told to train
TOLERANCE = 1e-6  # standard deviations; models equal up to rounding are equal
INDISTINGUISHABLE = "indistinguishable from retraining at this power"
FOUND = "residual influence found"
NOT_ENOUGH = "not enough evidence"


@dataclass(frozen=True)
class Power:
    """How many of the models that still know the records the test would flag, and the 95 % interval of that rate."""

    flagged: int
    models: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What an audit says, in words a privacy team can use. Never that something is proven deleted.

    Attributes
    ----------
    words : str
    p_value : float
        The chance that a retrained model looks as odd as the audited one.
    p_interval : tuple of float
        What so few retrained models leave open of it.
    power : Power
        How many models that had the records the same test finds.
    more_shadows : int
        About how many more shadow models would decide; 0 if it is decided.
    strongest : str
        The attack that deviates most.
    """

    words: str
    p_value: float
    p_interval: tuple[float, float]
    power: Power
    more_shadows: int
    strongest: str

    def __str__(self) -> str:
        return f"{self.words} (needs about {self.more_shadows} more shadow models)" if self.more_shadows else self.words


def deviations(statistics: Floats) -> Floats:
    """How far each model is from all, in standard deviations, for each attack: (models × attacks)."""
    spread = statistics.std(axis=0, ddof=1)
    tiny = 1e-9 * (1.0 + np.abs(statistics).max(axis=0))  # models that are the same differ by rounding
    differ = spread > tiny
    return np.asarray(np.where(differ, (statistics - statistics.mean(axis=0)) / np.where(differ, spread, 1.0), 0.0))


def p_of_first(statistics: Floats) -> tuple[float, int]:
    """The p-value of the first model among the others, and which attack deviates most."""
    apart = deviations(statistics)
    high, low = apart.max(axis=1), -apart.min(axis=1)
    p_high = rank_p_value(float(high[0]), high[1:], tolerance=TOLERANCE)
    p_low = rank_p_value(float(low[0]), low[1:], tolerance=TOLERANCE)
    return min(1.0, p_high / TRACES, p_low / (1.0 - TRACES)), int(np.abs(apart[0]).argmax())


def decide(audited: Floats, retrained: Floats, with_records: Floats, attacks: list[str], per_null: float) -> Verdict:
    """The verdict on a model.

    Parameters
    ----------
    audited : (attacks,)
    retrained, with_records : (models, attacks)
        Statistics of models trained without the records, and with them.
    per_null : float
        How many shadow models there are for each retrained one.
    """
    count, needed = len(retrained), shadows_needed(ALPHA * TRACES)
    p, strongest = p_of_first(np.vstack([audited, retrained]))
    flagged = sum(p_of_first(np.vstack([one, retrained]))[0] <= ALPHA for one in with_records)
    low, high = interval(min(count, round(p * (1 + count)) - 1), count)
    words, more = INDISTINGUISHABLE, 0
    if count < needed:
        words, more = NOT_ENOUGH, math.ceil((needed - count) * per_null)
    elif p <= ALPHA:
        words = FOUND
    elif low <= ALPHA:
        # The interval of p shrinks with the root of the number of models, until it leaves ALPHA outside.
        shrunk = count * ((p - low) / (p - ALPHA)) ** 2
        words, more = NOT_ENOUGH, max(1, math.ceil((min(shrunk, MANY_TIMES * count) - count) * per_null))
    found = Power(flagged, len(with_records), flagged / len(with_records), *interval(flagged, len(with_records)))
    return Verdict(words, p, (low, high), found, more, attacks[strongest])
