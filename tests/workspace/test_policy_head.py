"""Workspaces and receipts from when the policy `keep-extractor` was called `head`.

tests/fixtures/policy_head was written by commit 42e050b: records of `tests.unlearning.problems.table`, a workspace that
forgot a free and an influential record, two core ones under `head`, replaced one under `head`, retrained without one,
and forgot another under `head`; and the bundle of its model.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.shell import Shell
from tests.workspace.problems import NEW, copied, kinds, with_replaced

from maxrr.data import Dataset
from maxrr.unlearning import Bundle
from maxrr.unlearning.consistency import contradictions, is_latest, lies, not_of
from maxrr.workspace import Workspace

FIXTURE = Path(__file__).parents[1] / "fixtures" / "policy_head"
REPLACED = 700_000_066


@pytest.fixture
def folder(tmp_path):
    made = copied(FIXTURE / "workspace", tmp_path / "workspace")
    for path in (made, *made.rglob("*")):  # Git does not keep who may read and write
        path.chmod(0o700 if path.is_dir() else 0o600)
    return made


@pytest.fixture
def records():
    """What it was fitted on, with the replaced record as it is now."""
    with np.load(FIXTURE / "records.npz") as file:
        names = tuple(file["class_names"].tolist())
        found = Dataset(file["features"], file["labels"], names, file["ids"], file["subjects"])
    return with_replaced(found, REPLACED, NEW)


def test_old_receipts_hold(folder):
    bundle = Bundle.load(FIXTURE / "model.bundle")
    with Workspace.open(folder) as workspace:
        receipts = list(workspace.receipts())
        assert [receipt.core_policy for receipt in receipts] == ["head", "head", "head", "head", "retrain", "head"]
        for receipt in receipts:
            assert list(contradictions(receipt)) == []
            assert (not_of(receipt, bundle), list(lies(receipt, bundle))) == ("", [])
        assert is_latest(receipts[-1], bundle)
        assert workspace.bundle().receipts == bundle.receipts
        assert workspace.model_hash_ == bundle.model_hash
    file = folder / "receipts" / "000006.json"
    shell = Shell()
    assert shell("receipt", "verify", file, "--workspace", folder, "--json").json["holds"] is True
    assert "approximate-refit" in shell("receipt", "show", file).out


def test_an_old_workspace_goes_on_forgetting(folder, records):
    with Workspace.open(folder) as workspace:
        core, influential, free = kinds(workspace.model)
        last = list(workspace.receipts())[-1]
        assert workspace.unlearn(free[:1]).previous == last.digest
        assert workspace.unlearn(influential[:1]).guarantee == "exact-refit"
        receipt = workspace.unlearn(core[:1], core_policy="keep-extractor")
        assert (receipt.core_policy, receipt.core_left_in_extractor) == ("keep-extractor", 2)
        assert list(contradictions(receipt)) == []
        receipt = workspace.unlearn(core[1:2], core_policy="retrain", records=records)
        assert (receipt.guarantee, receipt.unconditional, receipt.number) == ("exact-retrain", True, 10)
    with Workspace.open(folder) as workspace:
        assert [receipt.core_policy for receipt in workspace.receipts()][-5:] == [
            "head", "refuse", "refuse", "keep-extractor", "retrain",
        ]  # fmt: skip
