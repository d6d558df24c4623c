"""The rule by which an audit comes to its finding. Nothing in it is chosen after looking at the audited model.

1. One attack decides: LiRA. It gives each model a score for each record, larger if it takes the record for a member.
2. From these each model gets one number, how odd it is beside the others (`oddness`): in the mean of its scores,
   above or below, or in its records one by one. p is the rank of the audited model's number among those of models
   retrained without the records.
3. p at or below `ALPHA`: residual influence found. To treat records worse than retrained models do is a trace, too.
4. Otherwise, fewer retrained models than could ever show anything, a test that finds less than `WORTH` of the models
   which kept all records, or a mean score at or below `ALPHA` by its own rank on either side: not enough evidence.
5. Otherwise: indistinguishable at this power, which is told for models that kept a part of the records.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.audit.attacks import Floats, auc, balanced_accuracy, interval, roc, tpr_at, values_to_rank
from maxrr.files import from_plain, parse_json, to_plain
from maxrr.files.strict_json import body_of
from maxrr.plain_text import Shown

# The test that decides: where does the audited model stand among models retrained without the records?
#
# If it is one of them, as far as anybody can tell, every rank of its statistic is equally likely. That holds for any
# statistic, whatever its distribution, as long as all models are treated alike: scored by the same rule, each against
# the others. Test data is no substitute for retrained models: hard records score oddly in those too.


OTHER = 0.7  # how much it counts to stand out otherwise than by remembering
TOLERANCE = 1e-6  # standard deviations; models equal up to rounding are equal


def oddness(scores: Floats) -> Floats:
    """How far each model is from the others, of scores (…, models, records): shape (…, models).

    The largest of three numbers: how far its mean score is above theirs, how far below, and how far its records are,
    each by itself. A trace in few records, or one up in some and down in others, shows in the last alone. All are in
    standard deviations of the other models, so that they can be compared. Remembering is asked about first: to be
    below, or off in some records, counts `OTHER` as much.

    >>> int(oddness(np.array([[3.0, -3.0], [0.1, 0.2], [-0.1, 0.1], [0.2, 0.0]])).argmax())
    0
    """
    mean, records = deviations(scores)
    return np.asarray(np.maximum(mean, OTHER * np.maximum(-mean, records)))


def deviations(scores: Floats) -> tuple[Floats, Floats]:
    """Return how many standard deviations each model is above the others, in its mean score and record by record.

    A record counts by how widely it is scattered: LiRA scatters most where models that remember are easiest to tell.
    """
    away, spread = beside_others(scores)
    together, spread_together = beside_others(np.sqrt(np.sum(away**2 / spread, axis=-1, keepdims=True)))
    mean, spread = beside_others(scores.mean(axis=-1, keepdims=True))
    return (mean / on_its_side(mean, spread))[..., 0], (together / spread_together)[..., 0]


def on_its_side(away: Floats, spread: Floats) -> Floats:
    """Return the spread of the other models on the same side of the mean, drawn towards the spread of all.

    Losses are bounded on one side alone. Measured by a long tail on the other, nobody would stand out there.
    """
    above = away > 0.0
    same = (above == above.swapaxes(-1, -2)) & ~np.eye(away.shape[-2], dtype=bool)
    return np.asarray(np.sqrt((same @ away**2 + spread**2) / (1 + same.sum(axis=-1, keepdims=True))))


def beside_others(values: Floats) -> tuple[Floats, Floats]:
    """Return for each model (a row) how far it is above the mean of the others, and the spread of the others."""
    count, near = values.shape[-2], rounding(values, (-2, -1))
    from_all = values - values.mean(axis=-2, keepdims=True)
    away = from_all * count / (count - 1)
    scatter = np.sum(from_all**2, axis=-2, keepdims=True) - from_all * away  # a model's own part taken off
    spread = np.sqrt(np.maximum(scatter, 0.0) / max(count - 2, 1))
    return np.where(np.abs(away) > near, away, 0.0), np.maximum(spread, near)


def rounding(values: Floats, axes: tuple[int, ...] | None = None) -> Any:
    """Return the distance within which values along some axes, or all, are equal: equal models differ by rounding."""
    several = axes is not None
    largest = np.abs(values).max(axis=axes, keepdims=several)
    return TOLERANCE * np.std(values, axis=axes, keepdims=several) + 1e-9 * (1.0 + largest)


def rank_p_value(statistic: ArrayLike, null_statistics: ArrayLike, tolerance: float = 0.0) -> Any:
    """(1 + number of retrained models with at least this statistic) / (1 + number of retrained models).

    Under the null hypothesis it is at most α with a chance of at most α, for every α and every number of models.

    Parameters
    ----------
    statistic
        The statistic of the audited model: one number, or one per record, shape (records,). Large values speak for what
        is left of the records.
    null_statistics
        Of models retrained without the records, shape (models,) or (models, records).
    tolerance
        Statistics this near to each other count as equal, which only makes p-values larger. Retrained models may be
        the same to the byte, and a model equal to them up to rounding must not stand out.

    >>> float(rank_p_value(3.0, [0.1, 0.4, 0.2]))
    0.25
    >>> rank_p_value(np.array([3.0, 0.0]), [[0.1, 0.1], [0.4, 0.0], [0.2, 0.0]])
    array([0.25, 1.  ])
    """
    observed, null = np.asarray(statistic), np.asarray(null_statistics)
    return (1.0 + np.count_nonzero(null >= observed - tolerance, axis=0)) / (1.0 + len(null))


# What the test would find, had the model not forgotten: told for models that kept some of the records, or all.
#
# No model is trained for that. Shadow models that kept all of the records, and models retrained without them, are put
# together record by record: some records as one of the former has them, the rest as one of the latter does; or half way
# between the two in every record. A technique that pushes a model away from the records, by training on wrong labels,
# leaves a trace in the other direction; it is taken to be as large as that of having kept them.


ALPHA = 0.05
WORTH = 0.8  # the power from which on it means something that nothing was found
FEWEST = 19  # retrained models that can show anything: the first of 20 has a rank of `ALPHA`
SHARES = {"10 % kept": 0.1, "25 % kept": 0.25, "50 % kept": 0.5, "all kept": 1.0}
ALL, HALVED = "all kept", "half of each trace kept"
RELABELLED, MIXED = "relabelled", "half kept, half relabelled"
NEAR = 0.05  # a share that so few records come no nearer to is not told
DRAWS = 4  # mixtures with each shadow model
AT_ONCE = 1 << 15  # scores: so many stay near the processor


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
        """Compute the power from what was found among so many models."""
        rate = float(np.mean(found))
        return cls(rate, models, *interval(rate * models, models))

    def __str__(self) -> str:
        return f"{100 * self.rate:.0f} %"


def as_odd_as_first(scores: Floats) -> Any:
    """How many of the other models stand out at least as far as the first."""
    odd = oddness(scores)
    return np.count_nonzero(odd[..., 1:] >= odd[..., :1] - rounding(odd, (-1,)), axis=-1)


def is_found(scores: Floats, retrained: int | None = None) -> Any:
    """Whether the first model stands out, by its rank among so many retrained models."""
    return (1 + as_odd_as_first(scores)) / (1 + (retrained or scores.shape[-2] - 1)) <= ALPHA


def are_found(many: Iterable[Floats], whole: Floats) -> list[bool]:
    """Whether the first models stand out, by their ranks among the retrained ones of `whole`."""
    left, found, together = iter(many), list[bool](), max(1, AT_ONCE // whole.size)
    while some := list(islice(left, together)):
        found += is_found(np.stack(some), len(whole) - 1).tolist()
    return found


def power_by_alternative(remembering: Sequence[Floats]) -> dict[str, Power]:
    """Compute the power against each way of not forgetting.

    Parameters
    ----------
    remembering
        For each shadow model that kept the records, scores (models × records): its own, then those of retrained models.
    """
    records = remembering[0].shape[1]
    counts = {name: round(share * records) for name, share in SHARES.items()}
    counts = {name: kept for name, kept in counts.items() if kept and abs(kept / records - SHARES[name]) <= NEAR}
    found = {name: power_of(remembering, kept, 0) for name, kept in counts.items()}
    halved = (
        np.vstack([(scores[0] + scores[row]) / 2.0, np.delete(scores[1:], row - 1, axis=0)])
        for scores in remembering
        for row in rows_of(scores)
    )
    found[HALVED] = Power.of(are_found(halved, remembering[0]), len(remembering))
    found[RELABELLED] = power_of(remembering, 0, records)
    if records > 1:
        found[MIXED] = power_of(remembering, records // 2, records - records // 2)
    return found


def rows_of(scores: Floats) -> list[int]:
    """Choose some of the retrained models, evenly among all."""
    return [round(place) for place in np.linspace(1, len(scores) - 1, DRAWS)]


def power_of(remembering: Sequence[Floats], kept: int, opposite: int) -> Power:
    """Compute the power against models that keep some records, do the opposite for some, and forget the rest."""
    random, records = np.random.default_rng(0), remembering[0].shape[1]
    times = 1 if records in (kept, opposite) else DRAWS
    mixtures = (
        mixture(scores, random.permutation(records), kept, opposite, int(random.integers(1, len(scores))))
        for scores in remembering
        for _ in range(times)
    )
    return Power.of(are_found(mixtures, remembering[0]), len(remembering))


def mixture(scores: Floats, order: NDArray[np.int64], kept: int, opposite: int, honest: int) -> Floats:
    """Mix the scores of a model that kept the records, of its opposite, and of a retrained model, into the first row.

    That one is then no longer among the others: it would be half a twin.
    """
    found = scores.copy()
    away, as_retrained = order[kept : kept + opposite], order[kept + opposite :]
    lowest = 0.0 if scores.min() >= 0.0 else -np.inf  # scores that are never negative stay so
    found[0, away] = np.maximum(2.0 * scores[1:, away].mean(axis=0) - scores[0, away], lowest)
    found[0, as_retrained] = scores[honest, as_retrained]
    return np.delete(found, honest, axis=0) if len(as_retrained) else found


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
    p_value: float
    retrained: int
    as_odd: int
    chance: tuple[float, float]
    high: float
    low: float
    power: dict[str, Power]
    at_most: Power

    def __str__(self) -> str:
        why = {NOT_ENOUGH: reason, INDISTINGUISHABLE: worth, FOUND: side}[self.words]
        return f"{self.words} ({why(self)})"


def least_share(finding: Finding) -> str | None:
    """Return the smallest share of records whose keeping is found in 80 % of cases; None if even all are not enough."""
    found = None
    for name in reversed([name for name in SHARES if name in finding.power]):
        if finding.power[name].rate < WORTH:
            break
        found = name
    return found


def worth(finding: Finding) -> str:
    """Say what it means that nothing was found."""
    name, power = least_share(finding) or ALL, finding.power
    worst = min((RELABELLED, MIXED), key=lambda one: power[one].rate if one in power else 1.0)
    return f"models with {name} are found in {power[name]} of cases, {worst} in {power[worst]}"


def side(finding: Finding) -> str:
    """Say in which direction the model stands out."""
    if finding.high <= ALPHA:
        return "as if it remembered the records"
    return "as if it shunned the records" if finding.low <= ALPHA else "in some records more than in others"


def too_few(retrained: int) -> str:
    """Say that so few retrained models can never show anything; empty where they can."""
    said = f"{retrained} retrained models can never show anything, {FEWEST} are the fewest that can"
    return said if retrained < FEWEST else ""


def reason(finding: Finding) -> str:
    """Say why there is not enough evidence."""
    if said := too_few(finding.retrained):
        return said
    if finding.power[ALL].rate < WORTH:
        return f"nothing found, but of models that kept all records the same test finds {finding.power[ALL]}"
    return f"all in all it does not stand out, but its mean score alone does: {sides(finding)}"


def sides(finding: Finding) -> str:
    """Write the ranks of the mean score on both sides."""
    return f"{finding.high:.2g} on the high side and {finding.low:.2g} on the low side"


def power_in_words(finding: Finding) -> str:
    """Power by what models did instead of forgetting."""
    found = "; ".join(f"{name}: {power}" for name, power in finding.power.items())
    return f"of models that did not forget the same test finds, by what they did: {found}"


def rank_in_words(finding: Finding) -> str:
    """Where the audited model stands among the retrained ones."""
    return (
        f"{finding.as_odd} of {finding.retrained} models retrained without the records stand out at least as far from "
        "all the others"
    )


class Rank(NamedTuple):
    """Where the first of some models stands among the others, as `Finding` has it."""

    p: float
    as_odd: int
    high: float
    low: float


def rank_of_first(scores: Floats) -> Rank:
    """Rank the first model among the others."""
    as_odd, means = int(as_odd_as_first(scores)), scores.mean(axis=1)
    high, low = (float(rank_p_value(side[0], side[1:], rounding(means))) for side in (means, -means))
    return Rank((1 + as_odd) / len(scores), as_odd, high, low)


def decide(audited: Floats, remembering: Sequence[Floats], before: Sequence[Floats]) -> Finding:
    """Come to the finding about a model.

    Parameters
    ----------
    audited : (1 + retrained models, records)
        LiRA's scores for the audited model and for the retrained ones.
    remembering, before
        The same with other models in the place of the audited one: such as the question is about, and such as kept the
        records in all their parts.
    """
    count, rank = len(audited) - 1, rank_of_first(audited)
    power = power_by_alternative(remembering)
    at_most = Power.of([is_found(scores) for scores in before], len(before))
    words = words_for(rank, count, power[ALL].rate)
    return Finding(words, rank.p, count, rank.as_odd, interval(rank.as_odd, count), rank.high, rank.low, power, at_most)


def words_for(rank: Rank, retrained: int, power: float) -> str:
    """Choose the words, from the rank among so many retrained models and the share of those that kept all it finds."""
    if rank.p <= ALPHA:
        return FOUND
    enough = retrained >= FEWEST and power >= WORTH and min(rank.high, rank.low) > ALPHA
    return INDISTINGUISHABLE if enough else NOT_ENOUGH


# The report of an audit, as plain values that can be written as JSON.


FORMAT, VERSION = "maxrr audit", 1
POINTS = 200  # of a curve that is kept
Pair = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """A ROC curve of one attack, and what is read off it.

    Attributes
    ----------
    auc
        The area under the curve.
    auc_of_retrained
        Between these two values lie 95 % of the models retrained without the records: what honest forgetting gives.
    balanced_accuracy
        The accuracy of the best threshold, with members and others counted alike.
    tpr_at_1, tpr_at_01 : float
        The share of members found at 1 % and at 0.1 % false positives.
    fpr, tpr : list of float
        Points of the curve.
    """

    auc: float
    auc_of_retrained: Pair
    balanced_accuracy: float
    tpr_at_1: float
    tpr_at_01: float
    fpr: list[float] = field(repr=False)
    tpr: list[float] = field(repr=False)

    @classmethod
    def of(cls, scores: Floats) -> "Curve":
        """The curve of the first model's records against the same records in the other models."""
        mine, theirs = scores[0], scores[1:].ravel()
        drawn = roc(mine, theirs)
        others = [np.delete(scores[1:], number, axis=0).ravel() for number in range(len(scores) - 1)]
        areas = [auc(row, other) for row, other in zip(scores[1:], others, strict=True)]
        low, high = np.quantile(areas, [0.025, 0.975])
        shown = np.unique(np.linspace(0, len(drawn.fpr) - 1, POINTS).round().astype(int))
        early = np.searchsorted(drawn.fpr, np.geomspace(1e-4, 1.0, POINTS), side="right") - 1
        shown = np.unique(np.concatenate([shown, early]))
        return cls(
            auc(mine, theirs), (float(low), float(high)), balanced_accuracy(drawn), tpr_at(drawn, 0.01),
            tpr_at(drawn, 0.001), drawn.fpr[shown].tolist(), drawn.tpr[shown].tolist(),
        )  # fmt: skip


@dataclass(frozen=True)
class AttackResult:
    """One attack against one model.

    Attributes
    ----------
    statistic : float
        The mean score of the forgotten records; for the threshold attack the share that it calls members.
    p_value : float
        By its rank among models retrained without the records, by the rule of `maxrr.audit.findings`.
    curve : Curve or None
        Forgotten records in this model against the same records in retrained models. None for a single record, which
        has a p-value and no curve.
    """

    statistic: float
    p_value: float
    curve: Curve | None

    @classmethod
    def of(cls, attack: str, scores: Floats) -> "AttackResult":
        """What an attack makes of one model, whose scores are in row 0."""
        ranked = values_to_rank(attack, scores)
        return cls(float(ranked[0].mean()), rank_of_first(ranked).p, Curve.of(scores) if scores.shape[1] > 1 else None)


@dataclass(frozen=True)
class ExposedRecord:
    """One of the forgotten records, and how far it stands out in the audited model.

    Attributes
    ----------
    tombstone
        The HMAC of its id, by which the receipt names it.
    class_name
        Its class.
    score
        The deciding attack's score, higher for members.
    p_value
        How often the record stands out as far in a retrained model, at most.
    corrected
        How often a retrained model has any record that stands out as far, at most.
    """

    tombstone: str
    class_name: str
    score: float
    p_value: float
    corrected: float


@dataclass(frozen=True)
class AuditReport(Shown):
    """The result of `audit`.

    Attributes
    ----------
    receipt : int
        The number of the receipt that was audited.
    guarantee : str
        The guarantee on that receipt.
    model_hash : str
        The hash of the audited model.
    records : int
        How many records were forgotten.
    core_touched : bool
        Whether some of the records were core, so that extractors may remember them.
    finding : Finding
        What the deciding attack found, with its power.
    attacks : dict of str to dict of str to AttackResult
        What each attack found, by attack, then by model: "before" the request, "after" it, and
        "retrained" without the records under the recorded seed.
    claimed_unlearned
        By model: the share of forgotten records that the paper's attack does not call members.
    exposed : list of ExposedRecord
        The forgotten records that stand out most in the audited model, ten at most.
    assumed : list of str
        What the finding rests on.
    caveats : list of str
        What may make the finding another one: what sets the audited model apart from all shadow models, test records
        that were not set aside at `fit`, and earlier audits.
    environment : dict
        Where shadow models were trained, as `maxrr.nets.recipe.Environment` has it.
    time : str
        When the audit ended, in UTC (ISO 8601).
    seconds : float
        How long it took.
    earlier : int
        How many audits of the same receipt came to a finding before, by this model or in its workspace.
    """

    receipt: int
    guarantee: str
    model_hash: str
    records: int
    core_touched: bool
    finding: Finding
    attacks: dict[str, dict[str, AttackResult]]
    claimed_unlearned: dict[str, float]
    exposed: list[ExposedRecord]
    assumed: list[str]
    caveats: list[str]
    environment: dict[str, Any]
    time: str
    seconds: float
    earlier: int = 0

    def to_json(self) -> str:
        """The report as JSON.

        Returns
        -------
        str
            All fields, and the finding in words.
        """
        said = {"format": FORMAT, "version": VERSION, "words": str(self.finding)} | to_plain(self)
        return json.dumps(said, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "AuditReport":
        """Read a report that `to_json` wrote.

        Parameters
        ----------
        text
            The JSON.

        Returns
        -------
        AuditReport
            The same report.

        Raises
        ------
        ValueError
            The text is no report of an audit, or one of another version, or it is damaged.
        """
        facts = body_of(parse_json(text), FORMAT, VERSION)
        facts.pop("words", None)
        try:
            return from_plain(cls, facts)
        except ValueError as error:
            raise ValueError(f"the report is damaged: {error}") from error

    def __str__(self) -> str:
        found = self.finding
        said = f"{found}: p = {found.p_value:.3g} by LiRA, {rank_in_words(found)}; {power_in_words(found)}"
        return "\n".join([said, *(f"But {caveat}." for caveat in self.caveats)])
