"""What an audit found, as plain values that can be written as JSON."""

import json
from dataclasses import dataclass
from typing import Any

from maxrr.audit.findings import Finding
from maxrr.files import from_plain, parse_json, to_plain
from maxrr.files.strict_json import body_of
from maxrr.plain_text import Shown

FORMAT, VERSION = "maxrr audit", 1
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
    fpr: list[float]
    tpr: list[float]


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
        said = f"{found}: p = {found.p_value:.3g} by LiRA, {found.rank}; {found.told}"
        return "\n".join([said, *(f"But {caveat}." for caveat in self.caveats)])
