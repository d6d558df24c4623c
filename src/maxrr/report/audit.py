"""The page of an audit: the verdict, what it rests on, and what each attack found."""

from maxrr.audit import AuditReport
from maxrr.audit.verdicts import ALPHA, BOTH_SIDES, FEWEST, FOUND, INDISTINGUISHABLE, TRACES, WORTH
from maxrr.report.attacks import NAMES, PREFIX, attacks, beside, claimed, curves, records
from maxrr.report.charts import strip
from maxrr.report.markup import Html, tag, together
from maxrr.report.page import hero, page, pairs, paragraphs, section, table
from maxrr.report.receipts import date
from maxrr.report.words import capitalised, count, duration, p_value, percent


def audit_page(report: AuditReport) -> str:
    """One self-contained HTML page that says what was found, how surely, and on which assumptions."""
    return page(
        f"MaxRR audit of receipt {report.receipt}: {report.verdict.words}",
        f"Audit of receipt {report.receipt}, {date(report)}",
        opening(report),
        warning(report),
        curves(report) if report.records > 1 else alone(report),
        attacks(report),
        claimed(report),
        records(report),
        distances(report),
        others(report),
        rule(report),
        foot=made(report),
    )


# The verdict


def headline(report: AuditReport) -> str:
    """The verdict about these records."""
    return f"{count(report.records, 'forgotten record')}: {report.verdict.words}."


def opening(report: AuditReport) -> Html:
    verdict, power = report.verdict, report.verdict.power
    low, high = verdict.chance
    lead = together(
        f"Receipt {report.receipt} says that {count(report.records, 'record')} were forgotten, as "
        if report.records > 1
        else f"Receipt {report.receipt} says that a record was forgotten, as ",
        tag("code", report.guarantee),
        f". The model was put among {count(report.retrained, 'model')} retrained without "
        f"{'them' if report.records > 1 else 'it'}, and attacked like each of these. {outcome(report)}",
    )
    facts = [
        (
            f"p = {p_value(verdict.p_value)}",
            f"{verdict.rank}; so many leave open that {percent(low)} to {percent(high)} of all such models do",
        ),
        (
            str(power),
            f"models that {kept(report)} are found by the same test: its power, {percent(power.low)} to "
            f"{percent(power.high)}" + ceiling(report),
        ),
        deciding(report),
        claim(report),
    ]
    return hero(headline(report), lead, facts)


def warning(report: AuditReport) -> Html:
    """What makes the verdict itself doubtful."""
    if not report.caveats:
        return together()
    said = (f"{capitalised(text)}." for text in report.caveats)
    return tag("aside", paragraphs("An honest answer may stand out here, too.", *said))


def outcome(report: AuditReport) -> str:
    """What the test says, and how much that is worth."""
    verdict, power = report.verdict, report.verdict.power
    if verdict.words == FOUND:
        if verdict.too_little:
            return "It stands out: the attack finds less in it than in models that never had the records."
        return "It stands out: something tells it from a model that never had the records."
    if verdict.words != INDISTINGUISHABLE and report.retrained < FEWEST:
        return f"So few cannot decide: {FEWEST} are the fewest that can show anything."
    if verdict.words != INDISTINGUISHABLE:
        return (
            f"It does not stand out. But of {power.models} models that {kept(report)} the same test finds "
            f"{power.flagged}: there was little to be found, or the attacks are too weak, and this says as little."
        )
    return f"It does not stand out, and {power} models that {kept(report)} would."


def kept(report: AuditReport) -> str:
    """What the models do that power is counted on."""
    them = "them" if report.records > 1 else "it"
    if report.core_touched:
        return f"have an extractor which saw {them}, below a head fitted again,"
    return f"kept {them} in the head"


def ceiling(report: AuditReport) -> str:
    """What could be hoped for at most."""
    if not report.core_touched:
        return ""
    return f"; of models that kept {'them' if report.records > 1 else 'it'} in all parts, {report.verdict.at_most}"


def deciding(report: AuditReport) -> tuple[str, str]:
    """The attack that decides, in one number."""
    attack = report.verdict.attack
    found = report.findings[attack]["after"]
    if found.curve is None:
        return f"{found.statistic:.3g}".replace("-", "−"), f"the score by {NAMES[attack]}, which decides"
    low, high = found.curve.auc_of_retrained
    return (
        f"{found.curve.auc:.2f}",
        f"AUC of {NAMES[attack]}, which decides; models retrained without the records have {low:.2f} to {high:.2f}",
    )


def claim(report: AuditReport) -> tuple[str, str]:
    """What the paper verifies by, beside the same for a model that never had the records."""
    audited, retrained = report.claimed_unlearned["after"], report.claimed_unlearned["retrained"]
    if report.records == 1:
        said = ("a member", "no member")
        return said[round(audited)], f"says the paper's attack of the record; {said[round(retrained)]} if retrained"
    return (
        percent(audited),
        f"of the records are 'claimed unlearned' by the paper's attack; {percent(retrained)} in a model retrained "
        "without them",
    )


def alone(report: AuditReport) -> Html:
    """A single record has a rank among models, and no curve."""
    low, high = map(percent, report.verdict.chance)
    return section(
        "One record, one p-value",
        "A curve needs many records. What one record can show is its rank: how many models that never had it treat it "
        "as oddly as the audited one does.",
        tag(
            "div",
            tag("strong", f"p = {p_value(report.verdict.p_value)}"),
            tag("span", f"{report.verdict.as_odd} of {count(report.retrained, 'retrained model')}: {low} to {high}"),
            class_="centre",
        ),
    )  # fmt: skip


# What surrounds them


def distances(report: AuditReport) -> Html:
    rows = []
    for name, found in report.distances.items():
        low, middle, high = found.quantiles
        drawn = strip(found.value, low, high, left=0.0, right=1.15 * max(found.value, high) or 1.0)
        spread = beside(drawn, f"{low:.3g} to {high:.3g}, median {middle:.3g}")
        rows.append((name, f"{found.value:.3g}", spread, p_value(found.p_value)))
    head = f"Its head is {report.head_distance or 0.0:.2g} of its length away from one fitted from scratch."
    if report.head_distance is None:
        head = "Heads cannot be compared: the forgotten records were core, so each stands on an extractor of its own."
    elif report.head_distance == 0.0:
        head = "Its head is the one that fitting from scratch on the same extractor gives."
    return section(
        "How far from retraining",
        "Two trainings from different seeds differ, too. So the distance of the audited model to the retrained ones is "
        f"shown beside their distances to each other, on test records. {head}",
        table(
            ("distance", "audited to retrained", "90 % of retrained to each other", "p"), rows,
            "Distances of the audited model to retrained ones, beside their distances to each other",
        ),
    )  # fmt: skip


def others(report: AuditReport) -> Html:
    found = report.others
    low, high = found.exposed_range
    exposed = found.p_value <= ALPHA
    return section(
        "More of the others is exposed than after retraining" if exposed else "No one else was exposed, as far as seen",
        f"Forgetting some can make a model cling to others. {count(found.records, 'retained record')} were looked at: "
        "of how many is the audited model surer than 95 % of the models before the request? This is no part of the "
        "verdict.",
        pairs(
            ("surer than 95 % of the models before", percent(found.exposed, 1)),
            (
                "the same in retrained models",
                f"{percent(found.exposed_in_retrained, 1)}, from {percent(low, 1)} to {percent(high, 1)}",
            ),
            ("p", p_value(found.p_value)),
            ("AUC of retained against test records, before", f"{found.auc_before:.3f}"),
            ("audited, after", f"{found.auc_after:.3f}"),
            ("retrained", f"{found.auc_retrained:.3f}"),
        ),
    )


def rule(report: AuditReport) -> Html:
    steps = (
        "One attack decides, and it was settled beforehand which: LiRA, or the first that was asked for, where LiRA "
        "was not. It gives each model one number, larger if it finds more of the records. The audited and the "
        "retrained models are scored alike, each by all the others.",
        "p is the rank of the audited model's number among theirs. "
        + (
            f"{percent(TRACES)} of the allowed error go to models that remember, {percent(1.0 - TRACES)} to models in "
            f"which the attack finds less than in retrained ones: that is a trace, too."
            if report.verdict.both_sides
            else f"Only remembering counts: that the attack finds far less than in retrained models could be shown by "
            f"{BOTH_SIDES} of them or more. By these {report.retrained} its p is {p_value(report.verdict.other_side)}."
        ),
        f"p at most {ALPHA}: residual influence found. An honest retraining is called so in at most {percent(ALPHA)} "
        "of audits.",
        f"Otherwise, fewer than {FEWEST} retrained models, or a test that finds less than {percent(WORTH)} of the "
        "models which kept the records: not enough evidence.",
        "Otherwise: indistinguishable from retraining at this power.",
    )
    return section(
        "How the verdict is reached, and what it rests on",
        f"{count(report.with_records, 'model')} with the records and {report.retrained} without, from their own seeds, "
        "were made for this, and erased. The comparison is always with retraining, never with test records: hard "
        "records look odd in a retrained model, too.",
        tag("ol", *(tag("li", step) for step in steps)),
        tag("h3", "Assumed"),
        tag("ul", *(tag("li", f"{capitalised(text)}.") for text in report.assumed)),
        tag(
            "aside",
            paragraphs(
                "An audit looks for traces. Where it finds none, there may be some that these attacks do not see. It "
                "cannot show that something is gone: where the guarantee is exact, a proof compares bytes instead."
            ),
        ),
    )


def made(report: AuditReport) -> Html:
    """How the numbers came about."""
    environment = report.environment
    return paragraphs(
        f"Model {report.model_hash[:PREFIX]}…, audited in {duration(report.seconds)}. "
        f"PyTorch {environment['torch_version']}, NumPy {environment['numpy_version']}, {environment['device']} with "
        f"{count(environment['threads'], 'thread')}, {environment['machine']}.",
        together("Made by ", tag("code", "maxrr audit"), ". The same facts are in its JSON."),
    )
