"""A copy from a backup that has caught up with the newer one knows what that one knows of what is gone: whom it has
forgotten, which values must not come back, and which copies of the model were revoked."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from maxrr.errors import DataError
from maxrr.serving import Revocations
from maxrr.workspace import Workspace
from tests.workspace.outside import ADDED, NEW, RECORDS, add, forget, none_of
from tests.workspace.problems import holds, lacking

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.workspace.OlderCopyWarning")  # it is one, until it has caught up


@pytest.fixture(autouse=True)
def nobody_remembers(monkeypatch):
    """Nobody knows which copy is older: both are looked at afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)


@pytest.fixture
def caught_up(small, key, tmp_path):
    """Do something to a workspace, and let a copy from before catch up with it: both folders."""

    def after(*acts):
        newer, older = (shutil.copytree(small(key), tmp_path / name) for name in ("newer", "older"))
        with Workspace.open(newer, signing_key=key) as workspace:
            for act in acts:
                act(workspace)
        with Workspace.open(older, signing_key=key) as workspace:
            workspace.catch_up(newer)
        return newer, older

    return after


def revoked_export(workspace):
    workspace._keeper.note_export("onnx", workspace.folder.parent / "later.onnx", workspace.model)
    forget(workspace)


def add_and_forget(workspace):
    add(workspace)
    workspace.model.unlearn(ADDED.ids[:1])


def rectify_twice(workspace):
    """The first new value of the record is gone again, and was never in the backup."""
    id_ = str(workspace.model.ids_of("free")[0])
    workspace.model.replace(id_, NEW)
    workspace.model.replace(id_, -NEW)


def copy_of(values, label=0):
    """A record with these values under another id."""
    return replace(ADDED.select(ADDED.ids[:1]), inputs=np.array(values)[None], labels=[label], ids=["another one"])


def lets_in(folder, key, records):
    """Whether records are added in a copy of a workspace, where nothing allows copies."""
    copy = folder.with_name("tried")
    shutil.rmtree(copy, ignore_errors=True)
    with Workspace.open(shutil.copytree(folder, copy), signing_key=key) as workspace:
        try:
            workspace.model.add(records)
        except DataError:
            return False
    return True


@pytest.mark.parametrize("acts", [(forget,), (forget, add_and_forget), (rectify_twice, forget)])
def test_it_knows_whom_the_newer_one_has_forgotten(caught_up, key, acts):
    newer, older = caught_up(*acts)
    ids = np.concatenate([RECORDS.ids, ADDED.ids])
    with Workspace.open(newer, read_only=True) as one, Workspace.open(older, read_only=True) as other:
        assert other.model.has_forgotten(ids)[one.model.has_forgotten(ids)].all()
        assert not holds(other, ids)[one.model.has_forgotten(ids)].any()
        assert all(
            other.model.has_forgotten(subjects=each)
            for each in ADDED.subjects
            if one.model.has_forgotten(subjects=each)
        )
        assert lacking(other) == 0


def test_an_export_from_before_the_backup_is_revoked(caught_up):
    newer, older = caught_up(forget)
    assert len(Revocations.of(newer).revoked) == 1
    assert Revocations.of(older).revoked == Revocations.of(newer).revoked


def test_an_export_since_the_backup_stays_revoked(caught_up):
    """Whoever serves it asks this workspace whether it may."""
    newer, older = caught_up(revoked_export)
    lost = set(Revocations.of(newer).revoked) - set(Revocations.of(older).revoked)
    none_of(f"export {each} was revoked, and is not any more" for each in sorted(lost))


def test_values_of_a_record_of_the_backup_do_not_come_back(caught_up, key):
    gone = []

    def noted(workspace):
        gone.append(workspace.model.ids_of("free")[0])
        forget(workspace)

    newer, older = caught_up(noted)
    record = RECORDS.select(np.array(gone))
    returning = copy_of(record.inputs[0], record.labels[0])
    assert not lets_in(newer, key, returning)
    assert not lets_in(older, key, returning)


@pytest.mark.parametrize(
    ("act", "values"), [(add_and_forget, ADDED.inputs[0]), (rectify_twice, NEW)], ids=["added", "rectified"]
)
def test_values_that_never_were_in_the_backup_do_not_come_back(caught_up, key, act, values):
    newer, older = caught_up(forget, act)
    returning = copy_of(values)
    if lets_in(newer, key, returning):
        raise RuntimeError("the newer one lets them in, too")
    none_of(["the values of a forgotten record come back under another id"] if lets_in(older, key, returning) else [])
