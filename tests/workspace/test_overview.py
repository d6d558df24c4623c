"""What the files alone say of a workspace is what the model that is made of them says."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from maxrr.core.shards import UntrainedShardsWarning, sharding_of
from maxrr.workspace import OlderCopyWarning, Workspace, WorkspaceError, overview
from maxrr.workspace.rows import Layout
from tests.workspace.problems import NEW, cases, facts_of, given, rewrite_facts


def of(folder, name):
    """A workspace of its own, with requests of every kind carried out."""
    records, model = cases()[name]
    with Workspace.create(folder, model, records, source={"name": name}) as workspace:
        workspace.model.unlearn(records.ids[:2], core_policy="keep-extractor")
        if "digits" not in name and "float64" not in name:
            workspace.model.replace(records.ids[5].item(), NEW, core_policy="keep-extractor")
        workspace.model.unlearn(records.ids[7:9], core_policy="keep-extractor")


@pytest.mark.parametrize("name", cases())
def test_it_is_the_status_of_an_open_workspace(tmp_path, name):
    of(tmp_path / "ws", name)
    found = overview(tmp_path / "ws")
    with Workspace.open(tmp_path / "ws", network=cases()[name][1].network, read_only=True) as workspace:
        assert found.status == workspace.status()
        assert found.receipts == tuple(workspace.receipts())


def people_of(model, subject_of):
    """The naive oracle: look at each person's records, and count the kind that is the most work to forget."""
    kinds = {}
    for kind in ("free", "influential", "core"):
        for id_ in model.ids_of(kind).tolist():
            kinds[subject_of[id_]] = kind  # the last is the most work
    return {kind: list(kinds.values()).count(kind) for kind in ("core", "influential", "free")}


@pytest.mark.parametrize("name", ["hash", "hash, words", "hash, ids around zero", "hash in shards", "frozen, words"])
def test_people_are_counted_by_kind(tmp_path, name):
    """After a fit, after requests that erase, move heads and train, after an addition, and when opened again."""
    records, model = cases()[name]
    first, later = records.without(records.ids[:12]), records.select(records.ids[:12])
    subject_of = dict(zip(records.ids.tolist(), records.subjects.tolist(), strict=True))
    seen = []

    def check(workspace):
        seen.append(workspace.status().people)
        assert seen[-1] == people_of(workspace.model, subject_of)
        assert overview(tmp_path / "ws").status == workspace.status()

    with Workspace.create(tmp_path / "ws", model, first) as workspace:
        check(given(workspace, records))
        for kind in ("free", "influential", "core"):
            ids = workspace.model.ids_of(kind)[:3]
            if len(ids):
                workspace.model.unlearn(ids, core_policy="retrain")
                check(workspace)
        for person in [subject_of[id_] for id_ in workspace.model.ids_of("free")[:2].tolist()]:
            workspace.model.unlearn(subjects=[person], core_policy="keep-extractor")
            check(workspace)
        workspace.model.add(later)
        check(workspace)
    with Workspace.open(tmp_path / "ws", network=model.network) as workspace:
        check(workspace)
    assert sum(seen[0].values()) == len(set(first.subjects.tolist()))
    assert len({tuple(people.values()) for people in seen}) > 2


def test_nobody_is_counted_where_records_name_nobody(tmp_path):
    of(tmp_path / "ws", "full, no subjects")
    assert overview(tmp_path / "ws").status.people is None


def test_a_class_that_lost_its_records(tmp_path):
    records, model = cases()["hash"]
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        workspace.model.unlearn(records.ids[records.labels == 0], core_policy="keep-extractor")
        expected = workspace.status()
    assert overview(tmp_path / "ws").status == expected
    assert expected.classes == ["kind 1", "kind 2"]


def test_shards_that_cannot_be_trained_are_remembered(tmp_path):
    """From the request on that left one of them without two classes."""
    records, model = cases()["hash in shards"]
    with Workspace.create(tmp_path / "ws", model, records) as workspace:
        core = workspace.model.core_.ids
        mine = core[sharding_of(model.core).of(core, records.subjects[records.rows(core)]) == 1]
        with pytest.warns(UntrainedShardsWarning, match="1 of the"):
            receipt = given(workspace, records).model.unlearn(mine, core_policy="retrain")
        assert "them keeps" in receipt.reason
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model._fitted.untrained == {1}
        given(workspace, records).model.unlearn(np.setdiff1d(core, mine)[:1], core_policy="retrain")  # says it no more
        expected = workspace.status()
    assert overview(tmp_path / "ws").status == expected


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(WorkspaceError, match="not a workspace"):
        overview(tmp_path)
    of(tmp_path / "ws", "hash")
    with Workspace.open(tmp_path / "ws") as workspace:  # which keeps no reader out
        assert overview(tmp_path / "ws").status == workspace.status()
    facts = facts_of(tmp_path / "ws")
    del facts["depended_on"]
    rewrite_facts(tmp_path / "ws", facts)
    with pytest.raises(WorkspaceError, match="describe a model"):
        overview(tmp_path / "ws")


def test_an_older_copy_is_warned_about(tmp_path):
    of(tmp_path / "ws", "hash")
    shutil.copytree(tmp_path / "ws", tmp_path / "copy")
    with Workspace.open(tmp_path / "ws") as workspace:
        workspace.model.unlearn(cases()["hash"][0].ids[20:21], core_policy="keep-extractor")
    with pytest.warns(OlderCopyWarning, match="request was carried"):
        overview(tmp_path / "copy")


@pytest.mark.parametrize("ids", ["<i8", "<U1", "<U123"])
@pytest.mark.parametrize("subjects", [None, "<i8", "<U7"])
@pytest.mark.parametrize(("features", "width"), [("<f4", 1), ("<f8", 20)])
@pytest.mark.parametrize("weights", [None, "<f8"])
def test_a_row_is_as_long_as_numpy_makes_it(ids, subjects, features, width, weights):
    layout = Layout(ids, subjects, features, width, weights)
    assert layout.size == layout.row.itemsize
    assert [layout.row.fields[name][1] for name in ("is", "label")] == [0, 1]


def test_no_model_is_made(tmp_path):
    of(tmp_path / "ws", "hash")
    code = (
        "import sys; from maxrr.workspace import overview; overview(sys.argv[1]); "
        "print(sorted({'torch', 'sklearn', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "ws"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
