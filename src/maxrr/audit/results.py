"""What an audit found, as plain values that can be written as JSON."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from maxrr.audit.distances import Beside
from maxrr.audit.verdicts import Power, Verdict
from maxrr.files import parse_json

VERSION = 3

Pair = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """A ROC curve of one attack, and what is read off it.

    Attributes
    ----------
    auc, auc_interval
        With a 95 % interval over records.
    auc_of_retrained
        Between these lie 95 % of the models retrained without the records: what honest forgetting looks like.
    balanced_accuracy
    tpr_at_1, tpr_at_01 : float
        True positives at 1 % and at 0.1 % false positives; with 95 % intervals.
    fpr, tpr : list of float
        The curve, thinned out.
    """

    auc: float
    auc_interval: Pair
    auc_of_retrained: Pair
    balanced_accuracy: float
    tpr_at_1: float
    tpr_at_1_interval: Pair
    tpr_at_01: float
    tpr_at_01_interval: Pair
    fpr: list[float]
    tpr: list[float]


@dataclass(frozen=True)
class Finding:
    """One attack against one model.

    Attributes
    ----------
    statistic : float
        The mean score of the forgotten records; for the threshold attack the share that it calls members.
    p_value : float
        By its rank among models retrained without the records, as the verdict has it (`maxrr.audit.verdicts`).
    curve : Curve or None
        Forgotten records in this model against the same records in retrained models. None for a single record, which
        has a p-value and no curve.
    """

    statistic: float
    p_value: float
    curve: Curve | None


@dataclass(frozen=True)
class Exposed:
    """One of the forgotten records, by its mark on the receipt, and how far it stands out in the audited model.

    `p_value` is for this record alone, `corrected` for the most exposed of so many: how often a retrained model has any
    record that stands out as far.
    """

    mark: str
    class_name: str
    score: float
    p_value: float
    corrected: float


@dataclass(frozen=True)
class Targeted:
    """The deciding attack on those records alone that leave most behind, as told by the shadow models."""

    records: int
    p_value: float
    power: Power


@dataclass(frozen=True)
class Others:
    """What forgetting did to retained records: how well the threshold attack tells them from test records.

    `exposed` is the share of retained records that the audited model is surer of than 95 % of the models before the
    request; `exposed_in_retrained` the same for models retrained without the forgotten records, with their range.
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
class AuditReport:
    """The result of `audit`.

    Attributes
    ----------
    core_touched : bool
        Whether some of the records were core, so that extractors may remember them.
    with_records, retrained : int
        Shadow models trained with the records, and without.
    targeted : Targeted or None
        What is found of the most exposed records; None where there are too few for that.
    findings
        By attack, then by model: "before" the request, "after" it, "retrained" without the records under the recorded
        seed, and retrained on "all" retained records, core or not.
    claimed_unlearned
        By model: the share of forgotten records that the paper's attack does not call members.
    distances
        Of the audited model to retraining, beside those of retrainings to each other.
    head_distance : float or None
        Of the head to one fitted from scratch on the same extractor, relative. None where the forgotten records were
        core: heads of different extractors cannot be compared.
    assumed : list of str
        What the verdict rests on.
    caveats : list of str
        What the audited model has and no shadow model does: an honest answer may stand out by it.
    """

    receipt: int
    guarantee: str
    model_hash: str
    records: int
    core_touched: bool
    with_records: int
    retrained: int
    verdict: Verdict
    findings: dict[str, dict[str, Finding]]
    claimed_unlearned: dict[str, float]
    by_class: dict[str, float]
    exposed: list[Exposed]
    targeted: Targeted | None
    distances: dict[str, Beside]
    head_distance: float | None
    others: Others
    assumed: list[str]
    caveats: list[str]
    environment: dict[str, Any]
    time: str
    seconds: float
    version: int = VERSION

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self) | {"words": str(self.verdict)}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "AuditReport":
        """What `to_json` wrote, to draw its page again."""
        facts = parse_json(text)
        if not isinstance(facts, dict) or facts.get("version") != VERSION:
            raise ValueError(f"this is no report of an audit, or one of another version than {VERSION}")
        facts.pop("words", None)
        try:
            return cls(**facts | read_parts(facts))
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ValueError(
                f"the report is damaged: something in it is missing or not as written ({error})"
            ) from error

    def __str__(self) -> str:
        found = self.verdict
        return (
            f"{found}: p = {found.p_value:.3g} by {self.retrained} models retrained without the {self.records:,} "
            f"record{'s' * (self.records != 1)}; of models that kept {'them' if self.records != 1 else 'it'}, "
            f"{found.power} are found"
        )


def read_parts(facts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a report that are more than a number or a text."""
    verdict, targeted, others = facts["verdict"], facts["targeted"], facts["others"]
    powers = {name: Power(**verdict[name]) for name in ("power", "at_most")}
    return {
        "verdict": Verdict(**verdict | powers | {"chance": tuple(verdict["chance"])}),
        "findings": {
            attack: {model: read_finding(found) for model, found in models.items()}
            for attack, models in facts["findings"].items()
        },
        "exposed": [Exposed(**one) for one in facts["exposed"]],
        "targeted": None if targeted is None else Targeted(**targeted | {"power": Power(**targeted["power"])}),
        "distances": {
            name: Beside(**one | {"quantiles": tuple(one["quantiles"])}) for name, one in facts["distances"].items()
        },
        "others": Others(**others | {"exposed_range": tuple(others["exposed_range"])}),
    }  # fmt: skip


def read_finding(found: dict[str, Any]) -> Finding:
    curve = found["curve"]
    if curve is not None:
        pairs = ("auc_interval", "auc_of_retrained", "tpr_at_1_interval", "tpr_at_01_interval")
        curve = Curve(**curve | {name: tuple(curve[name]) for name in pairs})
    return Finding(found["statistic"], found["p_value"], curve)
