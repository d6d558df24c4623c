"""What objects look like in notebooks: as printed, with nothing in it that runs or must not be shown."""

import functools
from html import escape
from pathlib import Path

import numpy as np
import pytest
import sklearn

from maxrr.audit import AuditReport
from maxrr.data import Dataset
from maxrr.unlearning import Replay
from maxrr.workspace.status import Status
from tests.unlearning.problems import table_model

HOSTILE = "<script>alert(1)</script>"
NAMES = ["forgotten-person-1", "forgotten-person-2"]


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
        HOSTILE, "0" * 16, 98, 0, 50, 48, {"core": 0, "influential": 30, "free": 19}, 1, ["no", HOSTILE], 3, 1, 2,
        "identical", [HOSTILE], "0" * 64, "0" * 64, [], [], {"classes": f"no, {HOSTILE}"},
    )  # fmt: skip
    things = {
        "model": model, "plan": plan, "refused": refused,
        "receipt": receipt, "replay": found, "report": report, "finding": report.finding,
        "status": status,
    }  # fmt: skip
    return {name: (thing._repr_html_(), str(thing)) for name, thing in things.items()}, model._fitted.key


@pytest.mark.parametrize("kind", ["plan", "refused", "receipt", "replay", "report", "finding", "status"])
def test_it_is_what_print_says_and_runs_nothing(kind):
    html, text = shown()[0][kind]
    assert html == f"<pre>{escape(text)}</pre>"
    assert len(text) > 10
    assert HOSTILE not in html


@pytest.mark.parametrize("kind", ["model", "plan", "receipt", "status"])
def test_it_names_nobody_and_shows_no_key(kind):
    text, key = "".join(shown()[0][kind]), shown()[1]
    assert not [name for name in NAMES if name in text]
    assert key.hex() not in text
    assert repr(key)[2:-1] not in text


def test_a_model_is_shown_as_scikit_learn_shows_it():
    for model in (sklearn.clone(table_model()), table_model()):
        assert "sk-container" in model._repr_mimebundle_()["text/html"]
