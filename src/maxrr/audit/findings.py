"""The rule by which an audit comes to its finding. Nothing in it is chosen after looking at the audited model.

1. One attack decides: LiRA, or the first that was asked for, where LiRA was not. It gives each model a score for each
   record, larger if it takes the record for a member.
2. From these each model gets one number, how odd it is beside the others (`ranks.oddness`): in the mean of its scores,
   above or below, or in its records one by one. p is the rank of the audited model's number among those of models
   retrained without the records.
3. p at or below `ALPHA`: residual influence found. To treat records worse than retrained models do is a trace, too.
4. Otherwise, fewer retrained models than could ever show anything, a test that finds less than `WORTH` of the models
   which kept all records, or a mean score at or below `ALPHA` by its own rank on either side: not enough evidence.
5. Otherwise: indistinguishable at this power, which is told for models that kept a part of the records (`power`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from maxrr.audit.checks import Floats
from maxrr.audit.power import (
    ALL,
    ALPHA,
    FEWEST,
    MIXED,
    RELABELLED,
    WORTH,
    Power,
    as_odd_as_first,
    is_found,
    least_found,
    power_by_alternative,
)
from maxrr.audit.ranks import rank_p_value, rounding
from maxrr.audit.roc import interval
from maxrr.plain_text import Shown

INDISTINGUISHABLE = "indistinguishable from retraining at this power"
FOUND = "residual influence found"
NOT_ENOUGH = "not enough evidence"


@dataclass(frozen=True)
class Finding(Shown):
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
        How many of these stand out at least as far from all the others.
    chance : tuple of float
        The 95 % interval of the chance that a retrained model does, from `as_odd` of `retrained`.
    high, low : float
        The rank of the audited model's mean score on either side: how often a retrained one has so large a mean, as
        if it remembered, and how often so small a one, at most.
    power : dict of str to Power
        How often the same test finds models that did not forget, by what they did instead: kept a share of the records,
        were trained on wrong labels for them, or each with one half. Where the records were core, the extractors of
        these saw them and their heads were fitted again without them; otherwise their heads kept them.
    at_most : Power
        The same for models that kept all records in all their parts: the most that the test can find.
    """

    words: str
    attack: str
    p_value: float
    retrained: int
    as_odd: int
    chance: tuple[float, float]
    high: float
    low: float
    power: dict[str, Power]
    at_most: Power

    def __str__(self) -> str:
        said = self.reason if self.words == NOT_ENOUGH else self.worth if self.words == INDISTINGUISHABLE else self.side
        return f"{self.words} ({said})"

    @property
    def least(self) -> str | None:
        """The least share of the records whose keeping is found in 80 % of cases; None where not even all of them."""
        return least_found(self.power)

    @property
    def worth(self) -> str:
        """What it means that nothing was found."""
        name = self.least or ALL
        worst = min((RELABELLED, MIXED), key=lambda one: self.power[one].rate if one in self.power else 1.0)
        return f"models with {name} are found in {self.power[name]} of cases, {worst} in {self.power[worst]}"

    @property
    def side(self) -> str:
        """In which direction the model stands out."""
        if self.high <= ALPHA:
            return "as if it remembered the records"
        return "as if it shunned the records" if self.low <= ALPHA else "in some records more than in others"

    @property
    def sides(self) -> str:
        """The ranks of the mean, in words."""
        return f"{self.high:.2g} on the high side and {self.low:.2g} on the low side"

    @property
    def told(self) -> str:
        """Power by what models did instead of forgetting."""
        found = "; ".join(f"{name}: {power}" for name, power in self.power.items())
        return f"of models that did not forget the same test finds, by what they did: {found}"

    @property
    def reason(self) -> str:
        """Why there is not enough evidence."""
        if self.retrained < FEWEST:
            return f"{self.retrained} retrained models can never show anything, {FEWEST} are the fewest that can"
        if self.power[ALL].rate < WORTH:
            return f"nothing found, but of models that kept all records the same test finds {self.power[ALL]}"
        return f"all in all it does not stand out, but its mean score alone does: {self.sides}"

    @property
    def rank(self) -> str:
        """Where the audited model stands among the retrained ones."""
        return (
            f"{self.as_odd} of {self.retrained} models retrained without the records stand out at least as far from "
            "all the others"
        )


class Rank(NamedTuple):
    """Where the first of some models stands among the others, as `Finding` has it."""

    p: float
    as_odd: int
    high: float
    low: float


def rank_of_first(scores: Floats) -> Rank:
    """The p-value of the first model among the others, by the rule above."""
    as_odd, means = as_odd_as_first(scores), scores.mean(axis=1)
    high, low = (
        rank_p_value(float(side[0]), side[1:], tolerance=rounding(means)) for side in (means, -means)
    )  # fmt: skip
    return Rank((1 + as_odd) / len(scores), as_odd, high, low)


def decide(attack: str, audited: Floats, remembering: Sequence[Floats], before: Sequence[Floats]) -> Finding:
    """The finding about a model.

    Parameters
    ----------
    attack
        The one that decides.
    audited : (1 + retrained models, records)
        Its scores for the audited model and for the retrained ones.
    remembering, before
        The same with other models in the place of the audited one: such as the question is about, and such as kept the
        records in all their parts.
    """
    count, rank = len(audited) - 1, rank_of_first(audited)
    power = power_by_alternative(remembering)
    at_most = Power.of([is_found(scores) for scores in before], len(before))
    words = INDISTINGUISHABLE
    if rank.p <= ALPHA:
        words = FOUND
    elif count < FEWEST or power[ALL].rate < WORTH or min(rank.high, rank.low) <= ALPHA:
        words = NOT_ENOUGH
    return Finding(
        words, attack, rank.p, count, rank.as_odd, interval(rank.as_odd, count), rank.high, rank.low, power, at_most
    )  # fmt: skip
