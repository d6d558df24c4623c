"""What objects look like in notebooks: it is HTML that runs nothing, and tells nothing that must not be shown."""

import functools
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import sklearn

from maxrr import notebook
from maxrr.audit import AuditPlan, AuditReport
from maxrr.audit.work import AuditWork
from maxrr.data import Dataset
from maxrr.unlearning import Replay
from maxrr.workspace.status import Status
from tests.unlearning.problems import table_model

HOSTILE = "<script>alert(1)</script>"
NAMES = ["forgotten-person-1", "forgotten-person-2"]


class Seen(HTMLParser):
    """Which tags are opened, and whether each is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name != "style"]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@functools.cache
def shown():
    """One of each kind, as notebooks show them."""
    rng = np.random.default_rng(0)
    ids = np.array([*NAMES, *(f"id-{number}" for number in range(98))])
    labels = np.arange(100) % 2
    records = Dataset(rng.normal(size=(100, 3)) + labels[:, None], labels, ("no", HOSTILE), ids, np.arange(100) // 2)
    model = type(table_model()).on_features().fit(records)
    plan = model.plan(NAMES)
    refused = model.plan(["nobody"])
    receipt = model.unlearn(NAMES)
    report = AuditReport.from_json((Path(__file__).parent / "audit/stored/report.json").read_text())
    found = Replay("identical", "heads", "identical", HOSTILE, 0.1, [HOSTILE], HOSTILE, [HOSTILE], 1.0)
    status = Status(
        HOSTILE, "0" * 16, 98, 0, 50, 48, ["no", HOSTILE], 1, 3, 1, 2, "", 0, "", 1, 1, "identical", [HOSTILE], False,
        [], "0" * 64, "0" * 64, {}, [], [], 10,
    )  # fmt: skip
    things = {
        "dataset": records, "weighted": replace(records, weights=np.ones(100)), "model": model, "plan": plan,
        "refused": refused, "receipt": receipt, "replay": found, "report": report, "finding": report.finding,
        "status": status, "work": AuditWork(32, 32, 1, 2.5),
        "audit plan": AuditPlan(2, 1.0, {32: 0.5}, {32: 35}, {32: 10.0}),
    }  # fmt: skip
    return {name: thing._repr_html_() for name, thing in things.items()}, model._fitted.key


KINDS = [
    "dataset", "weighted", "model", "plan", "refused", "receipt", "replay", "report", "finding", "status", "work",
    "audit plan",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_well_formed_and_runs_nothing(kind):
    seen = Seen(shown()[0][kind])
    assert seen.tags <= {"div", "span", "table", "tr", "td", "br"}
    assert seen.open == []


@pytest.mark.parametrize("kind", ["model", "plan", "receipt", "status", "work"])
def test_it_names_nobody_and_shows_no_key(kind):
    text, key = shown()[0][kind], shown()[1]
    assert not [name for name in NAMES if name in text]
    assert key.hex() not in text
    assert repr(key)[2:-1] not in text


def test_a_model_is_shown_as_scikit_learn_shows_it_until_it_is_fitted():
    model = sklearn.clone(table_model())
    assert "sk-container" in model._repr_mimebundle_()["text/html"]
    fitted = table_model()._repr_mimebundle_()
    assert "influential" in fitted["text/html"]
    assert fitted["text/plain"].startswith("MaxRR(")
    with sklearn.config_context(display="text"):
        assert "text/html" not in table_model()._repr_mimebundle_()


def test_many_classes_are_summed_up():
    many = Dataset(np.zeros((40, 1)), np.arange(40) % 20, tuple(f"class {n}" for n in range(20)), np.arange(40))
    assert "10 others 20" in many._repr_html_()


def test_shares_of_nothing():
    assert "core 0" in notebook.shares({"core": 0})
