"""Mails whose senders ask to be forgotten: measured on the guide's sample, and what the guide says of all of them."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from lab import mails
from maxrr.data import Dataset, load
from tests.small_networks import here  # noqa: F401

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docs" / "guides" / "mails"


@pytest.fixture(scope="module")
def sides():
    return load(SAMPLE / "mails.npy", meta=SAMPLE / "mails.csv", subject="sender")


@pytest.mark.long
def test_senders_are_forgotten_exactly(sides, here):  # noqa: F811
    found = mails.measure(*sides)
    assert sum(found["mails"].values()) == len(sides[0])
    assert sum(found["senders"].values()) == found["training"]["senders"] == len(np.unique(sides[0].subjects))
    assert found["test"]["senders"] == len(np.unique(sides[1].subjects))
    for place in ("memory", "workspace"):
        kinds = found["seconds"][place]
        assert kinds["all mails free"]["guarantees"] == ["exact-untouched"]
        assert "exact-refit" in kinds["an influential mail"]["guarantees"]  # a few may be free when others have gone
    assert found["most mails"]["mails"] == 11
    assert found["most mails"]["replay"] == "identical"


def test_the_sample_names_no_sender(tmp_path):
    rng = np.random.default_rng(0)
    people = [f"someone-{number // 3}@example.org" for number in range(60)]
    ids = [f"mail-{number}" for number in range(60)]
    records = Dataset(rng.normal(size=(60, 4)), np.arange(60) % 2, ("ham", "spam"), ids, people)
    mails.write_sample(tmp_path, records)
    assert "@" not in (tmp_path / "mails.csv").read_text(encoding="utf-8")
    with open(tmp_path / "mails.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    told = {row["id"]: row["sender"] for row in rows}
    assert len(set(zip(people, (told[id_] for id_ in ids), strict=True))) == len(set(people)) == len(set(told.values()))
    sample = load(tmp_path / "mails.npy", meta=tmp_path / "mails.csv", subject="sender", whole=True)[0]
    assert sample.inputs.dtype == np.float16
    assert np.array_equal(sample.inputs, records.select(sample.ids).inputs.astype(np.float16))


def test_what_the_guide_says_was_measured():
    page = (ROOT / "docs" / "guides" / "mails.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", page, flags=re.MULTILINE))
    found = json.loads((ROOT / "results" / "public-weights" / "mails.json").read_text(encoding="utf-8"))
    training, test, seconds, most = (found[name] for name in ("training", "test", "seconds", "most mails"))
    free, untouched = found["mails"]["free"], found["senders"]["all mails free"]
    memory, durable = ([one["seconds"] for one in seconds[place].values()] for place in ("memory", "workspace"))
    assert rows == {
        "learned from, tested on": f"{training['mails']:,} mails by {training['senders']:,} senders, "
        f"{test['mails']:,} by {test['senders']} others",
        "accuracy; recall of ham, of spam": f"{found['accuracy']:.3f}; {found['recall']['ham']:.3f}, "
        f"{found['recall']['spam']:.3f}",
        "free mails": f"{free:,} ({100 * free / training['mails']:.0f} %)",
        "senders all of whose mails are free": f"{untouched:,} ({100 * untouched / training['senders']:.0f} %)",
        "fit": f"{seconds['fit']:.1f} s",
        "forget a sender, all mails free": f"{1e3 * memory[0]:.0f} ms; in a workspace, durable, "
        f"{1e3 * durable[0]:.0f} ms",
        "forget a sender with an influential mail": f"{memory[1]:.1f} s; in a workspace {durable[1]:.1f} s",
        f"forget the sender of {most['mails']} mails": f"{most['seconds']:.1f} s; accuracy then {most['accuracy']:.3f}",
    }
