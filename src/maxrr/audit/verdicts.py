"""The rule that gives the verdict. Nothing in it is chosen after looking at the audited model.

1. One attack decides: LiRA, or the first that was asked for, where LiRA was not. It gives each model one number, larger
   if it finds more of the records.
2. p is the rank of the audited model's number among those of models retrained without the records. A model that
   remembers has a large one. From `BOTH_SIDES` retrained models on, a fifth of the allowed error goes to the other
   side: to be found far less than after retraining is a trace, too. With fewer that side could never show anything, so
   it is not tested.
3. p at or below `ALPHA`: residual influence found.
4. Otherwise, fewer retrained models than could ever show anything, or a test that finds less than `WORTH` of the models
   which do remember: not enough evidence.
5. Otherwise: indistinguishable at this power.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxrr.audit.checks import Floats
from maxrr.audit.ranks import rank_p_value, shadows_needed
from maxrr.audit.roc import interval

ALPHA = 0.05
TRACES = 0.8  # the share of ALPHA for models that remember, where both sides are tested
WORTH = 0.8  # the power from which on it means something that nothing was found
TOLERANCE = 1e-6  # standard deviations; models equal up to rounding are equal
FEWEST = shadows_needed(ALPHA)  # retrained models that can show anything
BOTH_SIDES = shadows_needed(ALPHA * (1.0 - TRACES) * (1.0 + 1e-9))
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

    @classmethod
    def of(cls, flagged: int, models: int) -> "Power":
        return cls(flagged, models, flagged / models, *interval(flagged, models))

    def __str__(self) -> str:
        return f"{self.flagged} of {self.models}"


@dataclass(frozen=True)
class Verdict:
    """What an audit says, in words a privacy team can use. Never that something is proven deleted.

    Attributes
    ----------
    words : str
    attack : str
        The attack that decides.
    p_value : float
        How often an honest retraining looks at least so much as if it remembered, at most.
    as_odd : int
        Of the retrained models so many do.
    chance : tuple of float
        What so few leave open of the chance that a retrained model does: the 95 % interval for `as_odd` of them.
    other_side : float
        The p-value of remembering as *little* as the audited model.
    both_sides : bool
        Whether there are enough models for that to count.
    power : Power
        How many models the same test finds of those that the question is about: where the records were core, an
        extractor that saw them below a head fitted again; else, a head that kept them.
    at_most : Power
        The same for models that kept the records in all their parts: more cannot be hoped for.
    """

    words: str
    attack: str
    p_value: float
    as_odd: int
    chance: tuple[float, float]
    other_side: float
    both_sides: bool
    power: Power
    at_most: Power

    def __str__(self) -> str:
        return f"{self.words} ({self.reason})" if self.words == NOT_ENOUGH else self.words

    @property
    def reason(self) -> str:
        """Why there is not enough evidence."""
        if self.p_value > ALPHA and self.power.rate < WORTH:
            return f"nothing found, but the same test finds {self.power} models that kept the records"
        return f"{FEWEST} retrained models are the fewest that can show anything"


def p_of_first(statistics: Floats) -> tuple[float, float, int]:
    """The p-value of the first model among the others; that of the other side; how many others have as much."""
    first, rest = float(statistics[0]), statistics[1:]
    # Models that are the same differ by rounding.
    near = TOLERANCE * float(np.std(statistics, ddof=1)) + 1e-9 * (1.0 + float(np.abs(statistics).max()))
    high, low = rank_p_value(first, rest, tolerance=near), rank_p_value(-first, -rest, tolerance=near)
    p = min(1.0, high / TRACES, low / (1.0 - TRACES)) if len(rest) >= BOTH_SIDES else high
    return p, low, int(np.count_nonzero(rest >= first - near))


def is_found(statistics: Floats) -> bool:
    """Whether the first model would be called one that remembers."""
    return p_of_first(statistics)[0] <= ALPHA + 1e-12


def decide(attack: str, audited: Floats, remembering: Sequence[Floats], before: Sequence[Floats]) -> Verdict:
    """The verdict on a model.

    Parameters
    ----------
    attack
        The one that decides.
    audited : (1 + retrained models,)
        Its numbers for the audited model and for the retrained ones.
    remembering, before
        The same with other models in the place of the audited one: such as the question is about, and such as kept the
        records in all their parts.
    """
    count = len(audited) - 1
    p, other_side, as_odd = p_of_first(audited)
    power, at_most = (Power.of(sum(map(is_found, models)), len(models)) for models in (remembering, before))
    words = INDISTINGUISHABLE
    if p <= ALPHA + 1e-12:
        words = FOUND
    elif count < FEWEST or power.rate < WORTH:
        words = NOT_ENOUGH
    return Verdict(
        words, attack, p, as_odd, interval(as_odd, count), other_side, count >= BOTH_SIDES, power, at_most
    )  # fmt: skip
