"""What was forgotten is in no file any more: every byte below the folder, cache and temporary folder is searched."""

import errno
import os
import tempfile

import numpy as np
import pytest

from maxrr.core import FrequencyCore
from maxrr.workspace import Workspace
from tests.unlearning.problems import fresh
from tests.unlearning.search import holds_bytes
from tests.workspace.problems import NEW, belongs, cases, contents, copied, found, given, kinds, like, needles

ACTS = {
    "untouched": lambda w, ids, records: w.model.unlearn(ids, core_policy="keep-extractor"),
    "refit": lambda w, ids, records: w.model.unlearn(ids, core_policy="keep-extractor"),
    "approximate": lambda w, ids, records: w.model.unlearn(ids, core_policy="keep-extractor"),
    "retrain": lambda w, ids, records: given(w, records).model.unlearn(ids, core_policy="retrain"),
    "technique": lambda w, ids, records: given(w, records).model.unlearn(ids, core_policy=lambda net, *_: net),
    "fit again": lambda w, ids, records: (
        w.model.unlearn(ids, core_policy="keep-extractor"),
        w.model.fit(records.without(ids)),
    ),
    "subject": lambda w, ids, records: w.model.unlearn(
        subjects=[records.subjects[records.ids == ids[0]][0]], core_policy="keep-extractor"
    ),
}
WHOSE = {"untouched": 2, "refit": 1, "subject": 1, "fit again": 1}  # of `kinds`; core ones otherwise
NEVER_KEPT = {
    "raw", "raw in float32", "raw in float64", "raw as bytes",
    "id in utf-8", "id in utf-16-le", "id in JSON", "id in digits", "hash in letters",
    "content in letters", "features in float64",
}  # fmt: skip


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """Where else a program might leave something behind."""
    folders = [tmp_path / "temporary", tmp_path / "cache", tmp_path / "home"]
    for folder, name in zip(folders, ("TMPDIR", "XDG_CACHE_HOME", "HOME"), strict=True):
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(folders[2])
    yield folders
    tempfile.tempdir = None


def telling(model, records, whose):
    """Three records of a kind, of which most is known, and all of that."""
    known = {id_: needles(model, records, id_) for id_ in kinds(model)[whose].tolist()}
    ids = sorted(known, key=lambda id_: -len(known[id_]))[:3]
    return ids, {f"{id_}: {what}": needle for id_ in ids for what, needle in known[id_].items()}


@pytest.mark.parametrize("case", ["hash, words", "digits"])
@pytest.mark.parametrize("act", ACTS)
def test_nothing_of_a_forgotten_record_is_left(template, tmp_path, surroundings, case, act):
    records, _ = cases()[case]
    folder = copied(template(case), tmp_path / "workspace")
    with Workspace.open(folder) as workspace:
        model = workspace.model
        ids, wanted = telling(model, records, WHOSE.get(act, 0))
        before = found(wanted, folder, *surroundings)
        expected = {name for name in wanted if name.split(": ")[1] not in NEVER_KEPT}
        assert before == expected  # the id, its features, their hashes and multipliers, all there
        if act == "refit":
            assert any("multiplier" in name for name in before)
        if act == "subject":
            wanted = {name: needle for name, needle in wanted.items() if name.startswith(f"{ids[0]}: ")}
        ACTS[act](workspace, ids, records)
        assert found(wanted, folder, *surroundings) == set()  # at once, not only when it is closed
        assert "HMAC" in workspace.status().facts["kept of these"]
    assert found(wanted, folder, *surroundings) == set()
    assert [contents(other) for other in surroundings] == [{}, {}, {}]


@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
def test_nothing_of_a_replaced_record_is_left_but_its_id(template, tmp_path, surroundings, policy):
    records, _ = cases()["hash, words"]
    folder = copied(template("hash, words"), tmp_path / "workspace")
    with Workspace.open(folder) as workspace:
        core, influential, _ = kinds(workspace.model)
        id_ = (core if policy == "retrain" else influential)[0].item()
        wanted = needles(workspace.model, records, id_)
        assert {"hash", "content", "features in float32"} <= found(wanted, folder)
        given(workspace, records).model.replace(id_, NEW, core_policy=policy)
        assert found(wanted, folder, *surroundings) == {"id in utf-32-le"}
        wanted |= needles(workspace.model, with_new(records, id_), id_)
        workspace.model.unlearn([id_], core_policy="keep-extractor")
        assert found(wanted, folder, *surroundings) == set()


def with_new(records, id_):
    features = np.array(records.inputs)
    features[records.ids == id_] = NEW
    return type(records)(features, records.labels, records.class_names, records.ids, records.subjects)


def test_requests_one_after_the_other_leave_nothing_of_any(template, tmp_path):
    """Rows that earlier requests erased stay erased when the file is added to, or written anew."""
    records, _ = cases()["hash, words"]
    folder = copied(template("hash, words"), tmp_path / "workspace")
    with Workspace.open(folder) as workspace:
        core, influential, free = kinds(workspace.model)
        wanted = {}
        for number, ids in enumerate([free[:1], free[1:3], influential[:1], core[:1], free[3:4]]):
            for id_ in ids:
                wanted |= {f"{id_}: {what}": bytes_ for what, bytes_ in needles(workspace.model, records, id_).items()}
            if number == 2:
                workspace.model.replace(free[5].item(), NEW)
            workspace.model.unlearn(ids, core_policy="keep-extractor")
            assert found(wanted, folder) == set()
    with Workspace.open(folder) as workspace:
        assert workspace.status().forgotten == 7  # and the one that was replaced
        assert found(wanted, folder) == set()


def test_receipts_do_not_name_anybody(template, tmp_path):
    folder = copied(template("hash, words"), tmp_path / "workspace")
    with Workspace.open(folder) as workspace:
        ids = kinds(workspace.model)[1][:2]
        wanted = {str(id_): str(id_).encode() for id_ in ids} | {"somebody": b"person"}
        workspace.model.unlearn(ids, core_policy="keep-extractor")
        receipt = workspace.receipt(1).to_bytes()
        assert not [name for name, needle in wanted.items() if needle in receipt]
        assert b"tombstones" in receipt


def test_a_purge_that_failed_is_finished_by_the_next_request(workspace, records, monkeypatch):
    """Not only by the next process: the record would be there as long as this one lives."""
    _, _, free = kinds(workspace.model)
    wanted = needles(workspace.model, records, free[0].item())
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", broken_in_place)
        with pytest.warns(UserWarning, match="clearing up in"):
            workspace.model.unlearn(free[:1])
    assert found(wanted, workspace.folder)
    workspace.model.unlearn(free[1:2])
    assert found(wanted, workspace.folder) == set()
    workspace.close()
    with Workspace.open(workspace.folder) as again:
        assert again.status().records == len(records) - 2


def broken_in_place(descriptor, content, offset, pwrite=os.pwrite):
    """Files can grow, and nothing in them can be overwritten."""
    if offset < os.fstat(descriptor).st_size:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return pwrite(descriptor, content, offset)


@pytest.mark.parametrize("again", [False, True])
def test_the_ranking_of_a_fit_that_was_interrupted_goes_with_the_next_request(workspace, records, again):
    """Its votes say something about every record."""

    def stop(*_, solved=0, **__):
        if solved:
            raise KeyboardInterrupt

    fitted_with = workspace.model.get_params(deep=False)
    with pytest.raises(KeyboardInterrupt):
        like(workspace, fresh(FrequencyCore(40, runs=2), records, epochs=1)).fit(records, progress=stop)
    assert any("votes" in name for name in contents(workspace.folder))
    if again:
        workspace.close()
        workspace = Workspace.open(workspace.folder)
        assert any("votes" in name for name in contents(workspace.folder))
    workspace.model.set_params(**fitted_with)
    with workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert set(contents(workspace.folder)) == belongs_to(workspace)


def belongs_to(workspace):
    """The names of its files, as a copy of it has them."""
    return belongs(copied(workspace.folder, workspace.folder.with_name("beside")))


@pytest.mark.parametrize("act", ["untouched", "refit", "retrain"])
def test_nothing_is_left_in_the_memory_of_the_workspace_either(template, tmp_path, act):
    records, _ = cases()["hash, words"]
    with Workspace.open(copied(template("hash, words"), tmp_path / "workspace")) as workspace:
        ids, wanted = telling(workspace.model, records, WHOSE.get(act, 0))
        assert len(holds_bytes(workspace, wanted.values())) > 3 * len(ids)
        ACTS[act](workspace, ids, records)
        left = holds_bytes(workspace, wanted.values())
        assert [name for name in wanted if wanted[name] in left] == []


def test_a_purge_that_failed_is_told_after_the_memory_was_cleared(workspace, records, monkeypatch):
    """Also to callers for whom a warning is an error: by then everything that can be done is done."""
    free = kinds(workspace.model)[2]
    wanted = needles(workspace.model, records, free[0].item())
    monkeypatch.setattr(os, "pwrite", broken_in_place)
    with pytest.raises(UserWarning, match="request was carried"):
        workspace.model.unlearn(free[:1])
    monkeypatch.undo()
    assert holds_bytes(workspace, wanted.values()) == []
    assert workspace.status().requests == 1
