"""The page of an audit: the finding and what it rests on, in full, and never more than that."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.audit import AuditReport, audit
from maxrr.audit.attacks import ATTACKS
from maxrr.audit.findings import FOUND, INDISTINGUISHABLE, NOT_ENOUGH, AttackResult, rank_in_words, sides
from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import MLP
from maxrr.report.audit import TRACES, audit_page
from maxrr.report.charts import Axes, Trace, roc_chart, strip
from maxrr.report.page import environment, is_report
from maxrr.report.words import p_value, percent
from maxrr.unlearning import MaxRR
from tests.report.reading import all_of, read

HOSTILE = "\"'><script>alert(1)</script><img src=http://x onerror=alert(1)>&amp;"


@pytest.fixture(scope="session")
def audited(few_models: None) -> AuditReport:
    """An audit that really happened, of a small model with all attacks."""
    training, test = load("digits")
    training, test = training.select(training.ids[:120]).in_order(), test.select(test.ids[:60])
    # Wide and long enough that every head has weights by far, on any machine.
    model = MaxRR(MLP(64, 10, hidden=(32,)), HashCore(0.4, key="test"), epochs=10).fit(training)
    ids = model.core_.ids[:12]
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    return audit(model, receipt, training.select(ids), test, shadows=8)


@pytest.fixture(scope="session")
def of_one(audited: AuditReport) -> AuditReport:
    """The same as if it had been about a single record."""
    attacks = {
        attack: {model: replace(found, curve=None) for model, found in models.items()}
        for attack, models in audited.attacks.items()
    }
    claims = dict.fromkeys(audited.claimed_unlearned, 1.0)
    return replace(audited, records=1, attacks=attacks, exposed=audited.exposed[:1], claimed_unlearned=claims)


def judged(report: AuditReport, words: str, rate: float = 1.0, low: float = 0.5) -> AuditReport:
    """The report with another finding."""
    power = {name: replace(one, rate=rate) for name, one in report.finding.power.items()}
    found = replace(report.finding, words=words, power=power, high=0.5, low=low, retrained=39)
    return replace(report, finding=found)


def test_everything_has_a_name() -> None:
    said = vars(environment("maxrr.report").get_template("attack_words.html.jinja").module)
    assert set(said["names"]) == set(said["questions"]) == set(ATTACKS)
    assert set(said["models"]) == set(TRACES)
    assert len({(trace.dashes, trace.shape) for trace in TRACES.values()}) == len(TRACES)


def test_it_is_whole_and_asks_for_nothing(audited: AuditReport) -> None:
    page = audit_page(audited)
    reader = read(page)
    assert is_report(page)
    assert [len(all_of(reader, name)) for name in ("html", "title", "main", "h1")] == [1] * 4
    assert [each for each in reader.elements if {"src", "href"} & set(each.attributes)] == []
    pictures = [each.attributes for each in all_of(reader, "svg")]
    assert [each for each in pictures if each.get("aria-hidden") != "true" and not each.get("aria-label")] == []
    levels = [int(each.name[1]) for each in reader.elements if re.fullmatch(r"h\d", each.name)]
    assert max(after - before for before, after in pairwise(levels)) == 1


def test_what_was_found_is_on_it(audited: AuditReport) -> None:
    text = read(audit_page(audited)).text
    finding = audited.finding
    expected = [
        f"12 forgotten records: {finding.words}.",
        "approximate-refit",
        f"p = {p_value(finding.p_value)}",
        rank_in_words(finding),
        f"the 95 % interval of this share is {percent(finding.chance[0])} to {percent(finding.chance[1])}",
        f"Of models that kept them in all parts, heads too, {finding.at_most} are found.",
        *(f"{percent(told.low)} to {percent(told.high)}" for told in finding.power.values()),
        sides(finding),
        *(one.tombstone[:12] for one in audited.exposed),
        *(f"{text[0].upper()}{text[1:]}." for text in audited.assumed),
        f"PyTorch {audited.environment['torch_version']}",
    ]
    assert [words for words in expected if words not in text] == []


def test_every_attack_has_a_line_for_every_model(audited: AuditReport) -> None:
    cells = [each.text.replace("\u00a0", " ") for each in all_of(read(audit_page(audited)), "td")]
    for models in audited.attacks.values():
        for found in models.values():
            assert found.curve is not None
            assert f"{found.curve.auc:.2f}" in cells
            assert percent(found.curve.tpr_at_1) in cells
            low, high = found.curve.auc_of_retrained
            assert f"{low:.2f} to {high:.2f}" in cells


@pytest.mark.parametrize(
    ("words", "rate", "low", "said"),
    [
        (FOUND, 1.0, 0.025, "It stands out, as if it shunned the records"),
        (FOUND, 1.0, 0.5, "It stands out, in some records more than in others"),
        (NOT_ENOUGH, 0.25, 0.5, "the same test finds 25 %: there was little to be found, or the attacks are too weak"),
        (NOT_ENOUGH, 1.0, 0.025, "with a rank of 0.5 on the high side and 0.025 on the low side: too near to a"),
        (
            INDISTINGUISHABLE,
            1.0,
            0.5,
            "Models with 10 % kept are found in 100 % of cases, relabelled in 100 %.",
        ),
    ],
)
def test_findings_are_said_as_they_are(audited: AuditReport, words: str, rate: float, low: float, said: str) -> None:
    reader = read(audit_page(judged(audited, words, rate, low)))
    (title,) = all_of(reader, "h1")
    assert title.text == f"12 forgotten records: {words}."
    assert said in reader.text
    assert not re.search(r"proven|deleted", reader.text)


def test_a_single_record_has_a_p_value_and_no_curve(audited: AuditReport, of_one: AuditReport) -> None:
    many, one = read(audit_page(audited)), read(audit_page(of_one))
    assert len([each for each in all_of(many, "svg") if "chart" in each.attributes["class"]]) == 2
    assert [each for each in all_of(one, "svg") if "chart" in each.attributes["class"]] == []
    (centre,) = (each for each in all_of(one, "div") if each.attributes.get("class") == "centre")
    assert f"p = {p_value(of_one.finding.p_value)}" in centre.text
    assert "a record was" in one.text.split("Receipt 1")[1]
    assert "no member" in one.text
    assert "AUC of LiRA" not in one.text


def test_hostile_text_stays_text(audited: AuditReport) -> None:
    def changed(text: str) -> AuditReport:
        exposed = [replace(one, class_name=text) for one in audited.exposed]
        return replace(audited, exposed=exposed, assumed=[text], guarantee=text)

    found, expected = read(audit_page(changed(HOSTILE))), read(audit_page(changed("mild")))
    assert [each.name for each in found.elements] == [each.name for each in expected.elements]
    assert [sorted(each.attributes) for each in found.elements] == [
        sorted(each.attributes) for each in expected.elements
    ]
    assert HOSTILE in found.text


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12), st.sampled_from([20, 5000]))
def test_a_curve_is_where_its_rates_are(points: list[tuple[float, float]], records: int) -> None:
    fpr, tpr = (np.sort([*column, 0.0, 1.0]) for column in zip(*points, (0.0, 0.0), strict=True))
    how = Trace("audited", "", "diamond")
    chart = roc_chart([(how, fpr, tpr)], records=records, width=960.0, height=440.0, label="x", style="wide")
    line, marks = (each.attributes["d"] for each in all_of(read(chart), "path"))
    axes = Axes(0.01 if records == 20 else 1e-4, 960.0, 440.0)
    corners = [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", line)]
    assert corners == [
        pytest.approx((axes.x(x), axes.y(y)), abs=0.01)
        for x, y in zip(fpr.tolist(), tpr.tolist(), strict=True)
        if y >= axes.lowest_tpr
    ]
    assert all(52.0 <= x <= 952.0 and 30.0 <= y <= 396.0 for x, y in corners)
    assert marks.count("M") <= 4
    assert axes.x(1e-9) == axes.x(1e-4) < axes.x(1.0)


def test_a_strip_keeps_to_its_scale() -> None:
    reader = read(strip(5.0, 0.2, 0.4, left=0.0, right=1.0, tick=0.5))
    (span,) = all_of(reader, "rect")
    assert float(span.attributes["x"]) == pytest.approx(6.0 + 108.0 * 0.2 - 1.0)
    assert float(span.attributes["width"]) == pytest.approx(108.0 * 0.2 + 2.0)
    (mark,) = all_of(reader, "path")
    assert float(re.findall(r"M([\d.]+)", mark.attributes["d"])[0]) < 114.0


def test_a_finding_without_a_curve_is_a_single_record(of_one: AuditReport) -> None:
    cells = [each.text for each in all_of(read(audit_page(of_one)), "td")]
    found: AttackResult = of_one.attacks["lira"]["after"]
    assert f"{found.statistic:.3g}".replace("-", "−") in cells
    assert p_value(found.p_value) in cells
