"""The rule by which an audit comes to its finding. Nothing in it is chosen after looking at the audited model.

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
from typing import NamedTuple

import numpy as np

from maxrr import notebook
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
    """How many of the models that still know the records the test would flag.

    Attributes
    ----------
    flagged, models
        How many are flagged, of how many.
    rate, low, high
        Their share, and its 95 % interval.
    """

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
class Finding:
    """What an audit found, in words a privacy team can use. It never says that something is proven deleted.

    Attributes
    ----------
    words : str
        The finding in words: `INDISTINGUISHABLE`, `FOUND` or `NOT_ENOUGH`.
    attack : str
        The attack that decides.
    p_value : float
        How often an honest retraining stands out at least so far, at most.
    retrained : int
        How many models were retrained without the records.
    as_odd : int
        How many of these look at least as much as if they remembered; where `too_little`, at least as little.
    chance : tuple of float
        The 95 % interval of the chance that a retrained model looks so, from `as_odd` of `retrained`.
    too_little : bool
        Whether p speaks for the other side: the attack finds less in the audited model than in retrained ones.
    other_side : float
        The p-value of remembering as *little* as the audited model.
    both_sides : bool
        Whether there are enough models for that to count.
    power : Power
        How many of the models that still know the records the same test finds. Where the records were core, their
        extractors saw them and their heads were fitted again without them; otherwise their heads kept them.
    at_most : Power
        The same for models that kept the records in all their parts: the most that the test can find.
    """

    words: str
    attack: str
    p_value: float
    retrained: int
    as_odd: int
    chance: tuple[float, float]
    too_little: bool
    other_side: float
    both_sides: bool
    power: Power
    at_most: Power

    def __str__(self) -> str:
        return f"{self.words} ({self.reason})" if self.words == NOT_ENOUGH else self.words

    @property
    def _tone(self) -> str:
        return {INDISTINGUISHABLE: notebook.GOOD, FOUND: notebook.BAD}.get(self.words, notebook.PLAIN)

    @property
    def _facts(self) -> list[tuple[str, str]]:
        among = f"among {self.retrained} models retrained without the records"
        return [
            ("p", f"{self.p_value:.2g} by {self.attack}, {among}"),
            ("power", f"of models that kept the records, {self.power} are found"),
        ]

    def _repr_html_(self) -> str:
        return notebook.card(f"Finding: {self}", notebook.facts(self._facts), tone=self._tone)

    @property
    def reason(self) -> str:
        """Why there is not enough evidence."""
        if self.retrained < FEWEST:
            return f"{self.retrained} retrained models can never show anything, {FEWEST} are the fewest that can"
        return f"nothing found, but the same test finds {self.power} models that kept the records"

    @property
    def rank(self) -> str:
        """Where the audited model stands among the retrained ones."""
        way = "little" if self.too_little else "much"
        return (
            f"{self.as_odd} of {self.retrained} models retrained without the records look at least as {way} as if they "
            "remembered"
        )


class Rank(NamedTuple):
    """Where the first of some models stands among the others: its p, as `Finding` has these."""

    p: float
    other_side: float
    as_odd: int
    too_little: bool


def rank_of_first(statistics: Floats) -> Rank:
    """The p-value of the first model among the others, by the rule above."""
    first, rest, near = float(statistics[0]), statistics[1:], rounding(statistics)
    high, low = rank_p_value(first, rest, tolerance=near), rank_p_value(-first, -rest, tolerance=near)
    above, below = int(np.count_nonzero(rest >= first - near)), int(np.count_nonzero(rest <= first + near))
    if len(rest) < BOTH_SIDES:
        return Rank(high, low, above, False)
    much, little = high / TRACES, low / (1.0 - TRACES)
    return Rank(min(1.0, much, little), low, *((below, True) if little < much else (above, False)))


def rounding(values: Floats) -> float:
    """How near to each other values count as equal: models that are the same differ by rounding."""
    return TOLERANCE * float(np.std(values, ddof=1)) + 1e-9 * (1.0 + float(np.abs(values).max()))


def is_found(statistics: Floats) -> bool:
    """Whether the first model would be called one that remembers."""
    return rank_of_first(statistics).p <= ALPHA + 1e-12


def decide(attack: str, audited: Floats, remembering: Sequence[Floats], before: Sequence[Floats]) -> Finding:
    """The finding about a model.

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
    rank = rank_of_first(audited)
    power, at_most = (Power.of(sum(map(is_found, models)), len(models)) for models in (remembering, before))
    words = INDISTINGUISHABLE
    if rank.p <= ALPHA + 1e-12:
        words = FOUND
    elif count < FEWEST or power.rate < WORTH:
        words = NOT_ENOUGH
    return Finding(
        words, attack, rank.p, count, rank.as_odd, interval(rank.as_odd, count), rank.too_little, rank.other_side,
        count >= BOTH_SIDES, power, at_most,
    )  # fmt: skip
