"""Sentences of the docs that were false once: each must stand there, and hold."""

import re
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from maxrr import MaxRR
from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.unlearning import Bundle, Receipt
from maxrr.workspace import Workspace
from tests.workspace.problems import receipts_in

DOCS = Path(__file__).parent.parent
CALLS: list[str] = []


def make() -> nn.Module:
    CALLS.append("called")
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def records() -> Dataset:
    labels = np.arange(40) % 2
    features = np.random.default_rng(0).normal(size=(40, 3)) + labels[:, None]
    return Dataset(features.astype(np.float32), labels, ("no", "yes"), np.arange(40) + 500)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("docs") / "ws"
    model = MaxRR(make, HashCore(0.5, key="k"), epochs=2, device="cpu")
    with Workspace.create(place, model, records()) as workspace:
        for id_ in (501, 502, 503):
            workspace.model.unlearn([id_], core_policy="keep-extractor")
    return place


def said(file: str, sentence: str) -> None:
    """The sentence is in the file, however its lines are broken."""
    text = re.sub(r"\s+", " ", (DOCS / file).read_text(encoding="utf-8"))
    assert sentence in text, f"{file} no longer says: {sentence}"


def test_receipts_are_chained(folder: Path) -> None:
    said("docs/specifications/workspace.md", "Each receipt names the one before it by its hash")
    with Workspace.open(folder) as workspace:
        receipts = list(workspace.receipts())
    assert [receipt.previous for receipt in receipts] == ["", receipts[0].digest, receipts[1].digest]


def test_opening_runs_nobodys_code(folder: Path) -> None:
    said("docs/specifications/workspace.md", "Opening a folder runs no code but this library's.")
    said("docs/specifications/workspace.md", "it never calls it")
    CALLS.clear()
    with Workspace.open(folder) as workspace:
        workspace.status()
        workspace.model.plan([510], core_policy="keep-extractor")
    assert CALLS == []


def test_whoever_holds_the_data_can_check(folder: Path, tmp_path: Path) -> None:
    said("README.md", "An auditor who gets the data and a bundle from you can check that.")
    said("docs/concepts.md", "`model.bundle().save(file)`")
    said("docs/concepts.md", "no raw records and no code")
    with Workspace.open(folder, network=make) as workspace:
        workspace.model.bundle().save(tmp_path / "b")
        secret = workspace.model._fitted.secret
    said("docs/concepts.md", "and not the secret, which could tell who was forgotten")
    assert secret not in (tmp_path / "b").read_bytes()
    assert secret.hex().encode() not in (tmp_path / "b").read_bytes()
    assert b"pickle" not in (tmp_path / "b").read_bytes()
    for record in records().inputs:
        assert record.tobytes() not in (tmp_path / "b").read_bytes()
    assert list(Bundle.load(tmp_path / "b", network=make).ids) == [500, *range(504, 540)]


def test_rows_name_nobody_by_their_neighbours(folder: Path) -> None:
    said("docs/specifications/workspace.md", "in an order that only the key knows")
    with Workspace.open(folder) as workspace:
        ids = workspace.model._fitted.records.ids
    held = ids[ids > 0]
    assert sorted(held.tolist()) != held.tolist()


def test_nothing_on_a_receipt_is_a_hash_without_the_key(folder: Path) -> None:
    said(
        "docs/concepts.md",
        "Somebody who has the dataset but neither key nor secret cannot try out which record a receipt is about.",
    )
    text = receipts_in(folder)[0].decode()
    for id_ in (501, 502, 503):
        assert records().without([id_]).content_hash() not in text
    assert Receipt.from_json(text).number == 1


def test_a_name_goes_with_its_class(tmp_path: Path) -> None:
    said("docs/concepts.md", "the name of a class without records")
    data = records()
    labels = data.labels.copy()
    labels[7] = 2
    named = Dataset(data.inputs, labels, ("no", "yes", "Anna Meier"), data.ids)
    with Workspace.create(tmp_path / "ws", MaxRR(make3, HashCore(0.5, key="k"), epochs=2, device="cpu"), named) as held:
        held.model.unlearn([507], core_policy="keep-extractor")
        held.model.unlearn([508], core_policy="keep-extractor")
    for path in (tmp_path / "ws").rglob("*"):
        assert not path.is_file() or b"Anna Meier" not in path.read_bytes(), path


def make3() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
