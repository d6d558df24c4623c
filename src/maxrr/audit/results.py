"""What an audit found, as plain values that can be written as JSON."""

import json
from dataclasses import dataclass
from typing import Any

from maxrr.audit.distances import Distance
from maxrr.audit.findings import Finding
from maxrr.evidence import Statement
from maxrr.files import from_plain, parse_json, to_plain
from maxrr.plain_text import Shown
from maxrr.unlearning.statements import AUDIT_TYPE, HandedReceipt, about_receipt

VERSION = 5

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
class EffectOnOthers:
    """What forgetting did to retained records: how well the threshold attack tells them from test records.

    Attributes
    ----------
    records
        How many retained records were looked at.
    auc_before, auc_after, auc_retrained
        The attack's AUC in the model before the request, after it, and retrained with the recorded seed.
    exposed
        The share of retained records that the audited model is surer of than 95 % of the models before the request.
    exposed_in_retrained, exposed_range
        The mean of that share in retrained models, and the range of 95 % of them.
    p_value
        By the rank of `exposed` among retrained models.
    """

    records: int
    auc_before: float
    auc_after: float
    auc_retrained: float
    exposed: float
    exposed_in_retrained: float
    exposed_range: Pair
    p_value: float


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
    with_records, retrained : int
        How many shadow models were trained with the records, and without them.
    finding : Finding
        What the deciding attack found, with its power.
    attacks : dict of str to dict of str to AttackResult
        What each attack found, by attack, then by model: "before" the request, "after" it, "retrained" without the
        records under the recorded seed, and retrained on "all" retained records, core or not.
    claimed_unlearned
        By model: the share of forgotten records that the paper's attack does not call members.
    by_class : dict of str to float
        The deciding attack's AUC for the forgotten records of each class; empty for a single record.
    exposed : list of ExposedRecord
        The forgotten records that stand out most in the audited model, ten at most.
    distances
        The distances of the audited model to retraining, beside those of retrained models to each other.
    heads_distance : float or None
        The relative distance of the heads to those fitted from scratch on the same extractor. None where the forgotten
        records were core: heads on different extractors cannot be compared.
    others : EffectOnOthers
        What forgetting did to retained records.
    assumed : list of str
        What the finding rests on.
    caveats : list of str
        What may make the finding another one: what sets the audited model apart from all shadow models, test records
        that were not set aside at `fit`, and earlier audits.
    environment : dict
        Where shadow models were trained, as `maxrr.nets.Environment` has it.
    time : str
        When the audit ended, in UTC (ISO 8601).
    seconds : float
        How long it took.
    earlier : int
        How many audits of the same receipt came to a finding before, by this model or in its workspace.
    version : int
        The version of the JSON form.
    """

    receipt: int
    guarantee: str
    model_hash: str
    records: int
    core_touched: bool
    with_records: int
    retrained: int
    finding: Finding
    attacks: dict[str, dict[str, AttackResult]]
    claimed_unlearned: dict[str, float]
    by_class: dict[str, float]
    exposed: list[ExposedRecord]
    distances: dict[str, Distance]
    heads_distance: float | None
    others: EffectOnOthers
    assumed: list[str]
    caveats: list[str]
    environment: dict[str, Any]
    time: str
    seconds: float
    earlier: int = 0
    version: int = VERSION

    def to_json(self) -> str:
        """The report as JSON.

        Returns
        -------
        str
            All fields, and the finding in words.
        """
        return json.dumps(to_plain(self) | {"words": str(self.finding)}, indent=2, ensure_ascii=False)

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
        facts = parse_json(text)
        version = facts.get("version") if isinstance(facts, dict) else None
        if version != VERSION or type(version) is not int:
            raise ValueError(f"this is no report of an audit, or one of another version than {VERSION}")
        facts.pop("words", None)
        try:
            return from_plain(cls, facts)
        except ValueError as error:
            raise ValueError(f"the report is damaged: {error}") from error

    def __str__(self) -> str:
        found = self.finding
        said = f"{found}: p = {found.p_value:.3g} by {found.attack}, {found.rank}; {found.told}"
        return "\n".join([said, *(f"But {caveat}." for caveat in self.caveats)])


# An audit as a statement about a receipt, which can be signed.


def audit_statement(report: AuditReport, handed: HandedReceipt) -> Statement:
    """What an audit found, as a statement about the receipt.

    Parameters
    ----------
    report : AuditReport
        What was found.
    handed : HandedReceipt
        The receipt that was audited.

    Returns
    -------
    Statement
        What can be signed, by the operator or by whoever audited the model: the report as its JSON has it.
    """
    return about_receipt(handed, AUDIT_TYPE, report.to_json())
