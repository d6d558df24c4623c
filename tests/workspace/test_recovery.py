"""What a killed process has promised is done before anybody reads; what is left behind is overwritten first."""

import contextlib
import itertools
import os
import threading
from unittest import mock

import pytest

from maxrr.core import FrequencyCore
from maxrr.workspace import Workspace
from maxrr.workspace.names import part_of
from maxrr.workspace.rows import Rows
from maxrr.workspace.store import Store
from tests.cases import some, stride
from tests.unlearning.problems import fresh
from tests.unlearning.search import holds_bytes
from tests.workspace.faults import Points
from tests.workspace.problems import NEW, belongs, cases, contents, copied, facts, found, given, kinds, like, needles


class Killed(BaseException):
    """Nobody cleans up after this."""


def killed(_):
    raise Killed


ACTS = {
    "untouched": (lambda w, ids, records: w.model.unlearn(ids, core_policy="keep-extractor"), 2),
    "refit": (lambda w, ids, records: w.model.unlearn(ids, core_policy="keep-extractor"), 1),
    "retrain": (lambda w, ids, records: given(w, records).model.unlearn(ids, core_policy="retrain"), 0),
    "replace": (lambda w, ids, records: w.model.replace(ids[0].item(), NEW, core_policy="keep-extractor"), 1),
}


def left(folder, act, records, whose):
    """A request that was committed and then killed; what was known of the record, and the state that was committed."""
    with Workspace.open(folder) as workspace:
        ids = kinds(workspace.model)[whose][:1]
        wanted = needles(workspace.model, records, ids[0].item())
        with mock.patch.object(Store, "finish", side_effect=Killed), pytest.raises(Killed):
            act(workspace, ids, records)
        committed = facts(workspace, records)
    return {what: needle for what, needle in wanted.items() if not what.startswith("id ")}, committed


@pytest.mark.parametrize("act", ACTS)
def test_a_reader_finishes_what_was_promised(folder, records, act):
    wanted, committed = left(folder, ACTS[act][0], records, ACTS[act][1])
    assert found(wanted, folder)
    with Workspace.open(folder, read_only=True) as workspace:
        assert found(wanted, folder) == set()
        assert facts(workspace, records) == committed
        assert workspace.receipt(1).receipt.number == 1
    assert set(contents(folder)) == belongs(folder)


def may_not(*_, **__):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("act", ACTS)
def test_a_reader_that_may_not_write_reads_as_if_it_were_done(folder, records, act):
    """With zeros in place of the rows that are to be erased. Whoever may write comes next, and erases them."""
    wanted, committed = left(folder, ACTS[act][0], records, ACTS[act][1])
    before = contents(folder)
    with mock.patch.object(Store, "enter", may_not), pytest.warns(UserWarning, match="still on the"):
        workspace = Workspace.open(folder, read_only=True)
    with workspace:
        assert facts(workspace, records) == committed
        assert holds_bytes(workspace, wanted.values()) == []
    assert contents(folder) == before
    Workspace.open(folder, read_only=True).close()
    assert found(wanted, folder) == set()


def test_a_reader_that_may_not_write_reads_beside_rubbish(folder, records):
    """Of a commit that never came: nothing that was forgotten is in it."""
    (folder / ".maxrr-0123456789abcdef.tmp").write_bytes(b"half")
    before = contents(folder)
    with mock.patch.object(Store, "enter", may_not), Workspace.open(folder, read_only=True) as workspace:
        assert workspace.status().records == len(records)
    assert contents(folder) == before


def test_rows_that_are_put_back_are_erased_whichever_request_forgot_them(folder, records):
    """By whoever opens the folder next: all rows are known that were erased since their file was written."""
    (path,) = folder.glob("rows-*.bin")
    old = path.read_bytes()
    with Workspace.open(folder) as workspace:
        _, influential, free = kinds(workspace.model)
        wanted = {}
        for ids in (free[:1], free[1:3], influential[:1], free[3:4]):
            for id_ in ids.tolist():
                wanted |= {f"{id_}: {what}": each for what, each in needles(workspace.model, records, id_).items()}
            workspace.model.unlearn(ids)
        after = facts(workspace, records)
    for read_only in (False, True):
        path.write_bytes(old)
        assert found(wanted, folder)
        with Workspace.open(folder, read_only=read_only) as workspace:
            assert facts(workspace, records) == after
        assert found(wanted, folder) == set()


@pytest.mark.parametrize("act", [*ACTS, "fit again"])
def test_what_leaves_is_overwritten_flushed_and_then_deleted(folder, records, act):
    """Zeros are on the disk before the name is gone: neither a power cut nor the device brings anything back."""
    log, kept = [], {}
    real = {name: getattr(os, name) for name in ("pwrite", "fsync", "unlink")}

    def noted(name):
        def call(target, *args, **options):
            if name == "unlink" and "dir_fd" not in options and os.path.isfile(target):
                with open(target, "rb") as file:
                    log.append((name, os.stat(target).st_ino, os.path.basename(target), not any(file.read())))
            elif name != "unlink":
                log.append((name, os.fstat(target).st_ino, None, None))
            return real[name](target, *args, **options)

        return call

    with Workspace.open(folder) as workspace:
        ids = kinds(workspace.model)[ACTS[act][1] if act in ACTS else 2][:1]
        before, token = contents(folder), workspace._store.token
        with mock.patch.multiple(os, **{name: noted(name) for name in real}):
            if act == "fit again":
                like(workspace, fresh(FrequencyCore(40, runs=2), records, epochs=1)).fit(records)
            else:
                ACTS[act][0](workspace, ids, records)
        after = contents(folder)
    gone = {name for name in before if name not in after}
    for name in gone:
        kept[name] = [event for event in log if event[2] == name]
        ((_, inode, _, zeros),) = kept[name]
        if part_of(name, token) == "secrets.json":
            continue
        assert zeros, name
        at = log.index(kept[name][0])
        written = max(number for number, event in enumerate(log[:at]) if event[:2] == ("pwrite", inode))
        assert ("fsync", inode, None, None) in log[written:at], name
        folders = [event for event in log[at:] if event[:2] == ("fsync", folder.stat().st_ino)]
        assert folders, "the folder is flushed after it"
    expected = {"untouched": set(), "refit": {"heads"}, "replace": {"heads"}}
    stems = {name.split("-")[0] for name in gone} - {"secrets"}
    assert stems == expected.get(act, {"rows", "heads", "extractor"})


def test_the_runs_of_a_ranking_are_overwritten_too(folder, records):
    contents_at_the_end = []
    remove = Store.finish.__globals__["remove"]

    def noted(path):
        if path.is_dir():
            contents_at_the_end.extend(each.read_bytes() for each in path.rglob("*.npz"))
        remove(path)

    with Workspace.open(folder) as workspace, mock.patch("maxrr.workspace.folder.remove", noted):
        like(workspace, fresh(FrequencyCore(40, runs=2), records, epochs=1)).fit(records)
    assert contents_at_the_end
    assert not any(any(content) for content in contents_at_the_end)


@pytest.mark.parametrize(
    ("act", "case"),
    [
        *some(2, [(act, "hash") for act in ("refit", "replace", "retrain")]),
        pytest.param("retrain", "hash in shards", marks=pytest.mark.long),
    ],
)
def test_interrupted_at_any_point_a_reader_finds_one_of_two_states_and_nothing_else(template, tmp_path, act, case):
    """As `test_crash`, with a reader as the first who comes."""
    records, counts = cases()[case][0], []
    do, whose = ACTS[act]
    for at in itertools.count(1, stride(2)):
        folder = copied(template(case), tmp_path / "workspace")
        workspace = Workspace.open(folder)
        ids = kinds(workspace.model)[whose][:1]
        wanted = needles(workspace.model, records, ids[0].item())
        old = workspace.model.model_hash_, workspace.model.content_hash_
        points = Points(at, killed, lasting=True)
        with points.patched(), contextlib.suppress(Killed):
            do(workspace, ids, records)
        workspace.close()
        if points.count < at:
            break
        with Workspace.open(folder, read_only=True) as reader:
            counts.append((reader.model.model_hash_, reader.model.content_hash_) != old)
            left_over = {what for what in found(wanted, folder) if act != "replace" or not what.startswith("id ")}
            assert not counts[-1] or left_over == set(), at
        assert set(contents(folder)) == belongs(folder), at
    assert counts == sorted(counts)
    assert {True, False} == set(counts)


def test_readers_who_come_together_finish_it_together(folder, records):
    """None keeps what it shares while it waits to have it alone."""
    wanted, _ = left(folder, ACTS["retrain"][0], records, 0)
    opened = []

    def come():
        opened.append(Workspace.open(folder, read_only=True, wait=60.0))

    threads = [threading.Thread(target=come) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [workspace.status().requests for workspace in opened] == [1] * 6
    assert found(wanted, folder) == set()


def test_what_can_be_erased_is_though_something_else_cannot(folder, records):
    with Workspace.open(folder) as workspace:
        ids = kinds(workspace.model)[1][:1]
        wanted = needles(workspace.model, records, ids[0].item())
        with (
            mock.patch.object(Rows, "erase", side_effect=OSError(28, "No space left on device")),
            pytest.warns(UserWarning, match="No space left"),
        ):
            workspace.model.unlearn(ids, core_policy="keep-extractor")
        multipliers = {name: needle for name, needle in wanted.items() if "multiplier" in name}
        assert multipliers
        assert found(wanted, folder)
        assert found(multipliers, folder) == set()  # the old heads are gone


def test_what_was_erased_last_is_flushed_again_by_who_works_here_next(folder, monkeypatch):
    """A flush that failed leaves zeros in memory that the device may not have, and nobody can tell."""
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    flushed, fsync = [], os.fsync

    def noted(descriptor):
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    Workspace.open(folder).close()
    assert any("rows-" in path for path in flushed)
