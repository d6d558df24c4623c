"""The page of an audit: its words are in `templates/audit.html.jinja`, its charts are made here."""

from functools import partial

from maxrr.audit import AuditReport, findings
from maxrr.audit.findings import WORTH
from maxrr.report.charts import Trace, bar, chance_swatch, roc_chart, strip, trace_swatch
from maxrr.report.page import render
from maxrr.report.words import day

TRACES = {
    "before": Trace("before", "9 4", "circle"),
    "after": Trace("audited", "", "diamond"),
    "retrained": Trace("retrained", "2 4", "square"),
}


def audit_page(report: AuditReport) -> str:
    """One self-contained HTML page that says what was found, how surely, and on which assumptions.

    Parameters
    ----------
    report : maxrr.audit.AuditReport
        The result of an audit.

    Returns
    -------
    str
        The page. It needs no other file and loads nothing from the network.
    """
    decisive = report.attacks["lira"]
    curves = {model: curve for model in TRACES if (curve := decisive[model].curve)}
    order = sorted(curves, key=lambda model: model == "after")  # the curve that the page is about lies on top
    return render(
        __package__,
        "audit.html.jinja",
        report=report,
        rules=findings,
        day=day(report.time),
        traces=TRACES,
        curves=curves,
        roc_chart=partial(
            roc_chart,
            [(TRACES[model], curves[model].fpr, curves[model].tpr) for model in order],
            records=report.records,
        ),
        trace_swatch=trace_swatch,
        chance_swatch=chance_swatch,
        bar=bar,
        strip_of_auc=partial(strip, left=0.0, right=1.0, tick=0.5),
        strip_of_power=partial(strip, left=0.0, right=1.0, tick=WORTH),
    )
