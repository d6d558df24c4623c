"""What each attack found in each model, as figures and tables."""

from functools import partial

from maxrr.audit import AuditReport
from maxrr.audit.results import Curve, Finding
from maxrr.audit.verdicts import ALPHA
from maxrr.report.charts import Group, bar, strip
from maxrr.report.curves import Trace, chance_key, roc_chart, trace_key
from maxrr.report.markup import Html, tag, together
from maxrr.report.page import figure, named, section, table
from maxrr.report.words import capitalised, count, p_value, percent

NAMES = {
    "threshold": "the paper's threshold attack", "lira": "LiRA", "rmia": "RMIA", "lira-logit": "LiRA on logits",
    "lira-offline": "offline LiRA", "features": "LiRA on features", "probe": "the membership probe",
    "loss": "loss", "entropy": "entropy", "modified-entropy": "modified entropy",
}  # fmt: skip
ASKS = {
    "threshold": "Is the model surer of the record than of most test records? One threshold for all, easy and hard: "
    "a weak attack, shown because the paper used it.",
    "lira": "Is the loss of this very record as in models that had it, or as in models that did not? Likelihood "
    "ratios of all records together decide.",
    "lira-logit": "LiRA on logits, the signal that it was published with.",
    "rmia": "Has the model gained more on this record than on test records, beside what other models make of both? "
    "Nearly as strong, with fewer models.",
    "lira-offline": "How unusual is it to be so sure of this very record, for a model that did not have it? LiRA "
    "without the models that had it.",
    "features": "Does the extractor still know the record? On each extractor a head is fitted with the record, and its "
    "margin there is looked at as LiRA does: a head that is fitted again forgets, features may not.",
    "probe": "A linear probe learns to tell core records, which the extractor saw, from test records by their "
    "features, and is asked about the forgotten ones.",
    "loss": "A baseline: a small loss speaks for a member.",
    "entropy": "A baseline: a clear-cut prediction speaks for a member, whether it is right or not.",
    "modified-entropy": "A baseline: a clear-cut prediction speaks for a member if it is right.",
}
MODELS = {
    "before": "before the request", "after": "audited, after it", "retrained": "retrained without",
    "all": "trained on all others",
}  # fmt: skip
TRACES = {
    "before": Trace("before", "9 4", "circle"), "after": Trace("audited", "", "diamond"),
    "retrained": Trace("retrained", "2 4", "square"), "all": Trace("rest", "7 3 2 3", "circle"),
}  # fmt: skip
CLASSES = 12  # that are shown, the most exposed first
PREFIX = 12  # digits of a mark that are shown


def curves(report: AuditReport) -> Html:
    """The ROC curves of the attack that decides."""
    attack = report.verdict.attack
    found = {name: curve for name in MODELS if (curve := report.findings[attack][name].curve)}
    order = sorted(found, key=lambda name: name == "after")  # the curve that the page is about lies on top
    chart = partial(
        roc_chart, [(TRACES[name], found[name].fpr, found[name].tpr) for name in order], records=report.records,
        label=f"ROC curves of {NAMES[attack]}. AUC: "
        + "; ".join(f"{MODELS[name]} {curve.auc:.2f}" for name, curve in found.items()),
    )  # fmt: skip
    keys = [(trace_key(TRACES[name]), f"{MODELS[name]}: AUC {curve.auc:.2f}") for name, curve in found.items()]
    keys.append((chance_key(), "chance"))
    chances = report.records * report.retrained
    return section(
        f"What {NAMES[attack]} sees",
        "How many of the forgotten records the attack recognises in a model, and how often it is wrong about the same "
        "records in models retrained without them. The left end counts most: there it is hardly ever wrong.",
        figure(
            f"Both axes are logarithmic. {count(report.records, 'record')} in "
            f"{count(report.retrained, 'retrained model')} make {chances:,} chances to be wrong: left of "
            f"{100.0 / chances:.2g} % it never is.",
            tag("ul", *(tag("li", tag("span", *key, class_="named")) for key in keys), class_="legend"),
            chart(width=960.0, height=440.0, style="wide"),
            chart(width=340.0, height=320.0, style="narrow"),
        ),
    )


def attacks(report: AuditReport) -> Html:
    """A table for each attack."""
    lead = "A score of the record, higher for a member, and its rank among the retrained models."
    note = (
        "The p of a line is that attack's alone, by the rule below. The verdict is by one of them, the one on top of "
        "this page: of so many p-values some are small by chance."
    )
    of_attack = of_one
    if report.records > 1:
        lead = (
            "The models before the request, retrained without the records, and trained on all others, core or not, are "
            "made with the recorded seed, to compare with. The last is of another recipe, with an extractor that saw "
            "more, and may stand out by that: the verdict does not look at it. In a bar lie 95 % of the models "
            "retrained from other seeds; the diamond is the model."
        )
        note = (
            "TPR is the share of the records that is recognised where 1 % or 0.1 % of the same records in retrained "
            "models are taken for members. In brackets are 95 % intervals over records. Balanced accuracy is at the "
            f"best threshold for these very scores, so chance lies above one half. {note}"
        )
        of_attack = of_many
    return section(
        "Every attack, against every model",
        lead,
        *(
            together(
                tag("h3", capitalised(NAMES[attack])),
                tag("p", ASKS[attack], class_="quiet"),
                of_attack(attack, found),
            )
            for attack, found in report.findings.items()
        ),
        tag("aside", tag("p", note)),
    )


def of_many(attack: str, found: dict[str, Finding]) -> Html:
    headings = (
        "model", "AUC", "beside retrained models", "balanced accuracy", "TPR at 1 %", "TPR at 0.1 %", "p"
    )  # fmt: skip
    rows = [
        (model_named(model), *cells(curve), p_value(found[model].p_value))
        for model in MODELS
        if (curve := found[model].curve)
    ]
    return dense(table(headings, rows, f"{NAMES[attack]}: what it finds in each model"))


def cells(curve: Curve) -> tuple[str, ...]:
    """What is read off a curve."""
    low, high = curve.auc_of_retrained
    (low_1, high_1), (low_01, high_01) = curve.tpr_at_1_interval, curve.tpr_at_01_interval
    return (
        f"{curve.auc:.2f} [{curve.auc_interval[0]:.2f}, {curve.auc_interval[1]:.2f}]",
        beside(strip(curve.auc, low, high, left=0.0, right=1.0, tick=0.5), f"{low:.2f} to {high:.2f}"),
        percent(curve.balanced_accuracy),
        f"{percent(curve.tpr_at_1)} [{100 * low_1:.0f}, {100 * high_1:.0f}]",
        f"{percent(curve.tpr_at_01)} [{100 * low_01:.0f}, {100 * high_01:.0f}]",
    )


def of_one(attack: str, found: dict[str, Finding]) -> Html:
    rows = [
        (model_named(model), score(found[model].statistic), p_value(found[model].p_value)) for model in MODELS
    ]  # fmt: skip
    return dense(table(("model", "score", "p"), rows, f"{NAMES[attack]}: what it says of the record in each model"))


def claimed(report: AuditReport) -> Html:
    """The number that the paper verifies by."""
    return section(
        "What the paper would have said",
        "The share of the forgotten records that its attack does not take for members, 'claimed unlearned'. Compare it "
        "with the retrained model, which never had them, not with 100 %.",
        figure(
            "Of the forgotten records, all on one scale.",
            *(
                measured(MODELS[name], report.claimed_unlearned[name], percent(report.claimed_unlearned[name]), style)
                for name, style in ((name, trace.style) for name, trace in TRACES.items())
            ),
        ),
    )


def records(report: AuditReport) -> Html:
    """The forgotten records by class, and those that stand out most."""
    attack = report.verdict.attack
    rows = [
        (
            tag("code", one.mark[:PREFIX]), one.class_name, score(one.score), p_value(one.p_value),
            p_value(one.corrected),
        )
        for one in report.exposed
    ]  # fmt: skip
    headings = ("mark on the receipt", "class", "score", "p of this record", "p as one of all")
    lead = f"By {NAMES[attack]}, in the audited model. A mark is tied to a record's id by the key of the model alone."
    if report.records > 1:
        lead += (
            f" The p of a record by itself is {ALPHA} or less for one in twenty by chance; the other says how often a "
            "retrained model has any record that stands out as far."
        )
    if report.targeted is not None:
        found = report.targeted
        lead += (
            f" The {count(found.records, 'record')} that leave most behind in models which had them, taken together: "
            f"p = {p_value(found.p_value)}, and {found.power} models that kept them are found. This is no part of the "
            "verdict."
        )
    return section(
        "Whose records stand out",
        lead,
        *([by_class(report.by_class)] if report.by_class else []),
        tag("h3", "Most exposed"),
        dense(table(headings, rows, "Most exposed records")),
    )


def by_class(aucs: dict[str, float]) -> Html:
    ordered = sorted(aucs.items(), key=lambda item: -item[1])
    more = len(ordered) - CLASSES
    return figure(
        "AUC for each class of forgotten records, the largest first; the line is chance. A class of few records strays "
        "far from it." + (f" {count(more, 'more class', 'more classes')} in the JSON." if more > 0 else ""),
        tag("h3", "By class"),
        tag(
            "div",
            *(measured(name, auc, f"{auc:.2f}", "rest", kind="") for name, auc in ordered[:CLASSES]),
            class_="halves",
        ),
    )


# Parts


def model_named(model: str) -> Html:
    trace = TRACES[model]
    return named(Group(model, trace.style, trace.shape), MODELS[model])


def measured(what: str, share: float, text: str, style: str, kind: str = "wide-name") -> Html:
    """A bar between its name and its number."""
    return tag("div", tag("span", what), tag("div", bar(share, style), tag("span", text)), class_=f"timing {kind}")


def score(value: float) -> str:
    """Three digits, with a true minus.

    >>> score(-50.123)
    '−50.1'
    """
    return f"{value:.3g}".replace("-", "−")


def beside(drawn: Html, text: str) -> Html:
    """A small picture and its numbers in one cell."""
    return tag("span", drawn, text, class_="beside")


def dense(drawn: Html) -> Html:
    """A table of many short lines."""
    return tag("div", drawn, class_="dense")
