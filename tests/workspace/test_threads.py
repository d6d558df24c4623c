"""Threads share a workspace, and forked processes inherit one: predictions are those of a committed state."""

import multiprocessing
import os
import shutil
import threading
import traceback
import warnings

import numpy as np
import pytest

from maxrr.svm import FlatHeadWarning
from maxrr.workspace import Workspace, WorkspaceError, codec, rows
from tests.unlearning.problems import fresh, table
from tests.workspace.problems import HASHED, cases, copied, given, kinds, like

ASKED = table().select(table().ids[:20])


class Load:
    """Threads that do something again and again until they are stopped, and what they saw and what went wrong."""

    def __init__(self, *acts):
        self.over, self.seen, self.wrong = threading.Event(), [], []
        self.threads = [threading.Thread(target=self.repeat, args=(act,)) for act in acts]

    def repeat(self, act):
        while not self.over.is_set():
            try:
                self.seen.append(act())
            except Exception as error:
                self.wrong.append("".join(traceback.format_exception(error)))
                return

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def answer(workspace):
    return workspace.model.decision_function(ASKED).tobytes()


def test_predictions_while_another_thread_unlearns_are_those_of_a_committed_state(folder, records):
    """Ten requests, by which one class goes and then half of another, with everything asked beside them."""
    warnings.simplefilter("ignore", FlatHeadWarning)
    by_class = np.concatenate([records.ids[records.labels == label] for label in (1, 2, 0)])
    assert 20 < (records.labels == 1).sum() < 40
    with Workspace.open(folder) as workspace:
        states = {answer(workspace)}
        probabilities = {workspace.model.predict_proba(ASKED).tobytes()}
        labels = {workspace.model.predict(ASKED).tobytes()}
        others = [
            lambda: ("scores", answer(workspace)),
            lambda: ("labels", workspace.model.predict(ASKED).tobytes()),
            lambda: ("probabilities", workspace.model.predict_proba(ASKED).tobytes()),
            lambda: ("plan", workspace.model.plan(by_class[-1:]).requested),
            lambda: ("status", workspace.status().records, workspace.model.model_hash_),
            lambda: ("receipts", len(list(workspace.receipts()))),
        ]
        with Load(*others) as load:
            for some in by_class[:40].reshape(10, 4):
                workspace.model.unlearn(some, core_policy="keep-extractor")
                states.add(answer(workspace))
                labels.add(workspace.model.predict(ASKED).tobytes())
                probabilities.add(workspace.model.predict_proba(ASKED).tobytes())
            final, requests = workspace.model.model_hash_, workspace.status().requests
        assert load.wrong == []
        known = {"scores": states, "labels": labels, "probabilities": probabilities}
        assert [what for what, *value in load.seen if what in known and value[0] not in known[what]] == []
        assert {what for what, *_ in load.seen} == {"scores", "labels", "probabilities", "plan", "status", "receipts"}
    assert requests == 10
    with Workspace.open(folder) as workspace:
        assert (workspace.model.model_hash_, workspace.status().requests) == (final, requests)
        assert len(list(workspace.receipts())) == requests


def test_predictions_do_not_wait_for_a_request(workspace, records, monkeypatch):
    """The commit hangs; whoever predicts gets the state before."""
    before, entered, go = answer(workspace), threading.Event(), threading.Event()
    real = type(workspace._store).commit

    def slow(*args):
        entered.set()
        assert go.wait(60)
        return real(*args)

    workspace.model.predict_proba(ASKED)
    monkeypatch.setattr(type(workspace._store), "commit", slow)
    influential = kinds(workspace.model)[1]
    thread = threading.Thread(target=workspace.model.unlearn, args=(influential[:3],))
    thread.start()
    assert entered.wait(60)
    try:
        assert answer(workspace) == before
        assert workspace.model.score(records) > 0.3
        assert workspace.model.predict_proba(ASKED).shape == (20, 3)
        planned = []
        planning = threading.Thread(
            target=lambda: planned.append(workspace.model.plan(influential[:1]).already_forgotten)
        )
        planning.start()
        planning.join(0.2)
        assert planned == []  # it is told of what comes after
    finally:
        go.set()
        thread.join()
    planning.join()
    assert planned == [1]
    assert answer(workspace) != before


def test_predictions_while_another_thread_fits_again_and_fails(workspace, records):
    """A fit that fails at every point of its commit is not seen by those who predict."""
    before = answer(workspace)
    other = fresh(HASHED, records, epochs=1)

    def broken(*_):
        raise OSError(5, "broken")

    with Load(lambda: answer(workspace)) as load:
        for name in ("write_parts", "write_rows"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(workspace._store), name, broken)
                with pytest.raises(OSError, match="broken"):
                    like(workspace, other).fit(records)
    assert (load.wrong, set(load.seen)) == ([], {before})
    assert answer(workspace) == before


def test_two_threads_unlearn_one_after_the_other(folder, records):
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2]
        threads = [threading.Thread(target=workspace.model.unlearn, args=(free[each : each + 1],)) for each in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [receipt.number for receipt in workspace.receipts()] == [1, 2, 3, 4, 5, 6]
    with Workspace.open(folder, read_only=True) as workspace:
        assert workspace.status().records == len(records) - 6


def forked(work):
    """What a forked process makes of something."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            writer.send(work())
        finally:
            os._exit(0)
    writer.close()
    try:
        return reader.recv() if reader.poll(60) else None
    finally:
        os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_predicts_and_changes_nothing(folder, records):
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2]

        def work():
            said = []
            for act in (
                lambda: workspace.model.unlearn(free[:1]),
                lambda: workspace.model.replace(free[0].item(), np.ones(5)),
                lambda: workspace.model.fit(records),
            ):
                try:
                    act()
                except WorkspaceError as error:
                    said.append("opened in another process: open it again" in str(error))
            head = workspace.model.heads_.coef_.tobytes()
            return said, head, workspace.status().records, workspace.model.plan(free[:1]).requested

        with workspace.model._lock:  # as another thread may at that moment
            found = forked(work)
        assert found == ([True] * 3, workspace.model.heads_.coef_.tobytes(), len(records), 1)
        workspace.model.unlearn(free[:1])
    assert Workspace.open(folder).status().requests == 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_that_lives_on_keeps_nobody_out(folder):
    workspace = Workspace.open(folder)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)  # until the parent is done
        os._exit(0)
    try:
        os.close(reader)
        workspace.close()
        Workspace.open(folder).close()
    finally:
        os.close(writer)
        os.waitpid(child, 0)


def test_no_file_stays_open(folder, records):
    def opened():
        return len(os.listdir("/dev/fd"))

    Workspace.open(folder).close()
    before = opened()
    for read_only in (True, False) * 3:
        with Workspace.open(folder, read_only=read_only) as workspace:
            assert opened() == before + (not read_only)
            workspace.model.predict(records)
    assert opened() == before


def test_readers_open_and_reload_at_any_moment_of_a_writer(folder, records):
    """Every state that they find is one that was committed: its rows, heads and receipts belong together."""
    long_open = Workspace.open(folder, read_only=True)
    states = {}

    def look(reader):
        found = reader.status()
        return found.requests, found.records, found.model_hash, found.commitment

    def open_anew():
        with Workspace.open(folder, read_only=True) as reader:
            return look(reader)

    def reload():
        long_open.reload()
        return look(long_open)

    with Workspace.open(folder) as writer:
        core, influential, free = kinds(writer.model)
        states[look(writer)] = True
        with Load(open_anew, reload) as load:
            for id_ in (*influential[:6], *free[:6]):
                writer.model.unlearn([id_], core_policy="keep-extractor")
                states[look(writer)] = True
            given(writer, records).model.unlearn(core[:1], core_policy="retrain")
            states[look(writer)] = True
        assert load.wrong == []
        assert set(load.seen) <= set(states)
        assert len(set(load.seen)) > 2
        assert reload() == look(writer)


def test_a_reader_of_a_large_table_keeps_what_a_writer_erases(folder, records, monkeypatch):
    """A map of the file would become zeros under it, and probabilities would be fitted on these."""
    for module in (rows, codec):
        monkeypatch.setattr(module, "LARGE", 0)
    with Workspace.open(folder, read_only=True) as before:
        expected = before.model.predict_proba(records)
    reader = Workspace.open(folder, read_only=True)
    with Workspace.open(folder) as writer:
        given(writer, records).model.unlearn(kinds(writer.model)[0][:2], core_policy="retrain")
    assert np.array_equal(reader.model.predict_proba(records), expected)


def test_readers_beside_a_writer_have_snapshots(template, tmp_path, records):
    """They keep what they read, and nobody waits for them."""
    folder = copied(template("hash"), tmp_path / "workspace")
    reader = Workspace.open(folder, read_only=True)
    old = answer(reader)
    with Workspace.open(folder) as writer:
        influential = kinds(writer.model)[1]
        with Load(lambda: reader.status().requests, lambda: answer(reader)) as load:
            for id_ in influential[:5]:
                writer.model.unlearn([id_], core_policy="keep-extractor")
    assert (load.wrong, set(load.seen)) == ([], {0, old})
    assert (list(reader.receipts()), reader.model.plan(influential[:1]).requested) == ([], 1)
    later = Workspace.open(folder, read_only=True)
    shutil.rmtree(folder)  # what was read is in memory
    assert len(list(later.receipts())) == 5
    assert cases()["hash"][0].ids[0] == records.ids[0]
