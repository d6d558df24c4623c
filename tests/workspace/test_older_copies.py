"""A copy that is known to be older signs nothing: it catches up, or somebody accepts the loss of the newer one."""

import multiprocessing
import os
import shutil
import warnings
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from maxrr.errors import EvidenceError, OlderCopy, OtherLog
from maxrr.evidence import Log, SigningKey, check_log, compare_logs
from maxrr.evidence.log import LogRelation
from maxrr.serving import Revocations, export
from maxrr.unlearning import Receipt, replay
from maxrr.unlearning.consistency import contradictions
from maxrr.unlearning.forgetting import execute
from maxrr.workspace import OlderCopyWarning, Workspace, WorkspaceError, check_receipt_log, older_copies
from maxrr.workspace.names import origin_of
from tests.workspace.problems import (
    NEW,
    NEWCOMERS,
    contents,
    copied,
    facts,
    given,
    holds,
    kinds,
    lacking,
    reopened,
    together,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.workspace.OlderCopyWarning")
KEY = SigningKey.generate()
REASON = "the disk is broken, and nothing of it was published"


@pytest.fixture(params=["signed", "unsigned"])
def key(request):
    return KEY if request.param == "signed" else None


@pytest.fixture
def copies(template, tmp_path, key):
    """A backup from after the first request, put back in the place of the workspace; and that, with two more."""
    folder = copied(template("hash"), tmp_path / "workspace")
    with Workspace.open(folder, signing_key=key) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
        backup = copied(folder, tmp_path / "backup")
        workspace.model.unlearn(free[1:2])
        workspace.model.unlearn(free[2:3])
    newer = folder.rename(tmp_path / "newer")
    shutil.copytree(backup, folder)
    return folder, newer, free[1:3]


VERBS = {
    "unlearn": lambda workspace, records, free: workspace.model.unlearn(free[:1]),
    "batch": lambda workspace, records, free: together(workspace, [free[:1], free[1:2]]),
    "execute": lambda workspace, records, free: workspace.model.execute(workspace.model.plan(free[:1])),
    "replace": lambda workspace, records, free: workspace.model.replace(free[0].item(), NEW),
    "add": lambda workspace, records, free: workspace.model.add(NEWCOMERS),
    "fit": lambda workspace, records, free: workspace.model.fit(records),
    "refit": lambda workspace, records, free: given(workspace, records).model.refit(),
    "bundle": lambda workspace, records, free: workspace.model.bundle(),
    "record_export": lambda workspace, records, free: workspace._keeper.note_export("onnx", "a.onnx", workspace.model),
    "export": lambda workspace, records, free: export(workspace, workspace.folder.parent / "served"),
}


@pytest.mark.parametrize("place", ["in its place", "elsewhere"])
def test_every_verb_refuses_before_any_work(copies, records, key, place):
    folder, _, _ = copies
    if place == "elsewhere":
        folder = folder.rename(folder.with_name("moved"))
    before, beside = contents(folder), set(folder.parent.iterdir())
    with Workspace.open(folder, signing_key=key) as workspace:
        free = kinds(workspace.model)[2]
        state = facts(workspace, records)
        for name, verb in VERBS.items():
            with pytest.raises(OlderCopy) as refused:
                verb(workspace, records, free)
            assert (name, refused.value.code, refused.value.plans) == (name, "older-copy", ())
        assert facts(workspace, records) == state
        assert (lacking(workspace), workspace.model.plan(free[:1]).refusal) == (2, None)
    with Workspace.open(folder, read_only=True) as reader:
        for name in ("bundle", "record_export", "export"):
            with pytest.raises(OlderCopy):
                VERBS[name](reader, records, free)
    with pytest.raises(OlderCopy):
        Revocations.of(folder)
    assert contents(folder) == before
    assert set(folder.parent.iterdir()) == beside


def test_what_is_only_read_stays_possible(copies, records, key, here):
    folder, _, _ = copies
    with Workspace.open(folder, read_only=True) as workspace:
        (receipt,) = workspace.receipts()
        assert replay(receipt, workspace.model, records).outcome == "identical"
        assert workspace.model.predict(records).shape == (len(records),)
        assert workspace.status().requests == 1
        if key is not None:
            assert check_receipt_log(folder, [key.public]).signed == 1


def test_a_copy_that_was_opened_before_the_other_went_on_is_refused_too(template, tmp_path):
    one = copied(template("hash"), tmp_path / "one")
    other = copied(one, tmp_path / "other")
    with Workspace.open(one) as first, Workspace.open(other) as second:
        free = kinds(first.model)[2]
        first.model.unlearn(free[:1])
        with pytest.raises(OlderCopy):
            second.model.unlearn(free[1:2])
        assert first.model.unlearn(free[1:2]).number == 2


def test_a_reader_that_is_behind_is_no_older_copy(folder):
    with Workspace.open(folder, read_only=True) as reader:
        with Workspace.open(folder) as workspace:
            workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert reader._keeper.note_export("onnx", "a.onnx", reader.model)


def test_nobody_can_know_where_no_later_state_was_seen(copies, key, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with Workspace.open(copies[0], signing_key=key) as workspace:
        assert workspace.model.unlearn(copies[2][:1]).number == 2


def test_after_catching_up_requests_go_on(copies, records, key):
    folder, newer, gone = copies
    with Workspace.open(folder, signing_key=key) as workspace:
        assert workspace.catch_up(newer).number == 4
        assert not holds(workspace, gone).any()
        receipt = workspace.model.unlearn(kinds(workspace.model)[2][:1])
        assert (receipt.number, receipt.losses) == (5, None)
        given(workspace, records).model.refit()
        assert workspace._keeper.note_export("onnx", "a.onnx", workspace.model)


def accepted(folder, key):
    with Workspace.open(folder, signing_key=key) as workspace:
        return workspace.declare_gone(REASON)


def test_an_accepted_loss_begins_another_log_that_names_the_lost_one(copies, records, key, here):
    folder, newer, _ = copies
    kept = contents(folder / "log")
    receipt = accepted(folder, key)
    (loss,) = receipt.losses
    with Workspace.open(folder, signing_key=key) as workspace:
        token = workspace._store.token
        assert (receipt.number, receipt.requested, receipt.guarantee) == (2, 0, "exact-untouched")
        assert (loss.reason, loss.log, loss.entries, loss.kept) == (REASON, origin_of(token), 3, 1)
        assert list(contradictions(receipt)) == []
        assert replay(receipt, workspace.model, records).outcome == "identical"
        one = kinds(workspace.model)[2][0].item()
        later = [workspace.model.unlearn([one]), workspace.model.add(NEWCOMERS)]
        given(workspace, workspace.model.kind_.join([records, NEWCOMERS])).model.refit()
        later.append(workspace.model.unlearn(kinds(workspace.model)[1][:1]))
        after = facts(workspace, records)
    assert reopened(folder, records) == after
    for each in later:
        assert each.losses == [loss]
        assert each == Receipt.from_json(each.to_json())
        assert any(REASON in sentence and loss.log in sentence for sentence in each.sentences)
    if key is None:
        assert loss.root == ""
        return
    lost = check_log(newer / "log", origin_of(token), [key.public])
    assert loss.root == lost.root.hex()
    checkpoint = check_receipt_log(folder, [key.public]).checkpoint
    assert (checkpoint.origin, checkpoint.size) == (origin_of(token, loss.time), 5)
    with pytest.raises(OtherLog):
        compare_logs(lost, checkpoint)
    aside = folder / f"log-before-{loss.time}"
    assert contents(aside) == kept
    assert compare_logs(Log.open(aside, origin_of(token), [key.public]), lost) is LogRelation.unknown
    with Workspace.open(folder, read_only=True) as workspace:
        dossier = workspace.dossier(3, ids=[one])
    assert dossier["log"]["origin"] == checkpoint.origin


def test_only_an_older_copy_has_lost_something(folder, copies, key):
    with (
        Workspace.open(copies[1], signing_key=key) as workspace,
        pytest.raises(WorkspaceError, match="not known to be"),
    ):
        workspace.declare_gone(REASON)
    with (
        Workspace.open(copies[0], signing_key=key) as workspace,
        pytest.raises(WorkspaceError, match="reason is empty"),
    ):
        workspace.declare_gone(" ")


def test_the_lost_copy_is_refused_if_it_turns_up_again(copies, key, tmp_path, monkeypatch):
    folder, newer, _ = copies
    accepted(folder, key)
    before = contents(newer), contents(folder)
    with Workspace.open(newer, signing_key=key) as workspace:
        assert lacking(workspace) == 1
        with pytest.raises(OlderCopy):
            workspace.model.unlearn(kinds(workspace.model)[2][:1])
    for state in (older_copies.place().parent, tmp_path / "another machine"):
        monkeypatch.setenv("XDG_STATE_HOME", str(state))
        for one, other in ((newer, folder), (folder, newer)):
            with (
                Workspace.open(one, signing_key=key) as workspace,
                pytest.raises(WorkspaceError, match=r"by itself|not newer"),
            ):
                workspace.catch_up(other)
    assert (contents(newer), contents(folder)) == before


@pytest.mark.parametrize("which", ["from before the loss", "from after it"])
def test_a_second_restore_is_noticed_again_and_catches_up(copies, records, key, tmp_path, which):
    folder, _, gone = copies
    first = shutil.copytree(folder, tmp_path / "first")
    accepted(folder, key)
    second = shutil.copytree(folder, tmp_path / "second")
    with Workspace.open(folder, signing_key=key) as workspace:
        workspace.model.unlearn(gone[:1])
    restored = first if which == "from before the loss" else second
    with Workspace.open(restored, signing_key=key) as workspace:
        with pytest.raises(OlderCopy):
            workspace.model.unlearn(gone[:1])
        receipt = workspace.catch_up(folder)
        assert (receipt.number, [loss.reason for loss in receipt.losses]) == (4, [REASON])
        assert workspace.model.unlearn(gone[1:2]).losses == receipt.losses
    assert reopened(restored, records)
    if key is not None:
        logs = [check_receipt_log(each, [key.public]).checkpoint for each in (folder, restored)]
        assert [each.size for each in logs] == [3, 5]
        assert compare_logs(logs[0], Log(restored / "log", logs[1])) is LogRelation.extends


def test_the_same_backup_can_be_put_back_twice(copies, key, tmp_path):
    """The second loss is that of the first copy that went on, whose log it names."""
    folder, _, gone = copies
    again = shutil.copytree(folder, tmp_path / "again")
    first = accepted(folder, key).losses[0]
    with Workspace.open(folder, signing_key=key) as workspace:
        workspace.model.unlearn(gone[:1])
    (loss,) = accepted(again, key).losses
    with Workspace.open(again, signing_key=key) as workspace:
        assert workspace.model.unlearn(gone[:1]).losses == [loss]
        assert (loss.log, loss.entries) == (origin_of(workspace._store.token, first.time), 3)
    with Workspace.open(folder, signing_key=key) as workspace, pytest.raises(OlderCopy):
        workspace.model.unlearn(gone[1:2])


def test_a_receipt_that_keeps_silent_about_a_loss_is_found(copies, key, tmp_path):
    if key is None:
        return
    folder, _, gone = copies
    accepted(folder, key)
    with Workspace.open(folder, signing_key=key) as workspace:
        object.__setattr__(workspace.model._fitted, "losses", ())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
            patch.setattr("maxrr.workspace.store.facts_of", facts_with_losses(workspace._store.facts.losses))
            workspace.model.unlearn(gone[:1])
    with pytest.raises(EvidenceError, match="receipt 3 does not name the losses"):
        check_receipt_log(folder, [key.public])


def facts_with_losses(losses):
    """What an operator would do who keeps the log, and leaves the loss out of a receipt."""
    from maxrr.unlearning import codec

    made = codec.facts_of
    return lambda *given: replace(made(*given), losses=losses)


@pytest.mark.parametrize("at", ["rename", "replace"])
def test_a_log_that_could_not_begin_begins_when_the_workspace_is_next_opened(copies, key, monkeypatch, at):
    if key is None:
        return
    folder, _, _ = copies
    real = getattr(os, at)

    def failing(source, target, *rest):
        if (
            "log" in os.path.basename(os.fspath(target))
            or os.path.basename(os.path.dirname(os.fspath(target))) == "log"
        ):
            raise OSError(5, "it fails")
        return real(source, target, *rest)

    monkeypatch.setattr(os, at, failing)
    with (
        Workspace.open(folder, signing_key=key) as workspace,
        pytest.warns(UserWarning, match="the request was carried"),
    ):
        receipt = workspace.declare_gone(REASON)
    with Workspace.open(folder, read_only=True) as reader:
        assert reader.status().requests == 2
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OlderCopyWarning)
        with Workspace.open(folder, signing_key=key) as workspace:
            assert workspace.status().requests == 2
    assert check_receipt_log(folder, [key.public]).checkpoint.origin.endswith(receipt.losses[0].time)


@pytest.mark.parametrize("time", ["", "..", "20261117T194632Z", "20261117T194632.123456Z/..", 5])
def test_a_loss_without_a_proper_time_is_none(copies, key, time):
    text = accepted(copies[0], key).to_json()
    (loss,) = Receipt.from_json(text).losses
    with pytest.raises(ValueError, match="not a receipt that can be read"):
        Receipt.from_json(text.replace(f'"{loss.time}"', f'"{time}"' if isinstance(time, str) else str(time)))


# Forks, and what is killed or done at the same time


@pytest.fixture
def twins(template, tmp_path, key):
    """Two equal copies after one request, and the records that both can forget for free."""
    one = copied(template("hash"), tmp_path / "one")
    with Workspace.open(one, signing_key=key) as workspace:
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[:1])
    return one, copied(one, tmp_path / "other"), free[1:]


class Signed:
    """All checkpoints that were signed: two of one log and one size are one."""

    def __init__(self, monkeypatch):
        self.roots = {}
        sign = SigningKey.sign

        def watched(key, message):
            parts = message.split(b"\n")
            if parts[0].startswith(b"maxrr.dev/workspace/"):
                self.roots.setdefault(tuple(parts[:2]), set()).add(parts[2])
            return sign(key, message)

        monkeypatch.setattr(SigningKey, "sign", watched)

    @property
    def forked(self):
        return [place for place, roots in self.roots.items() if len(roots) > 1]


class Killed(BaseException):
    """What nobody catches, at a place where a process may end."""


def killed(*_, **__):
    raise Killed


def request(folder, key, ids):
    """The number of the receipt, or the code of the refusal."""
    with Workspace.open(folder, signing_key=key) as workspace:
        try:
            return workspace.model.unlearn(ids).number
        except OlderCopy as refused:
            return refused.code


PLACES = {
    "before the note": "maxrr.workspace.older_copies.keep",
    "before the rows are erased": "maxrr.workspace.rows.Rows.erase",
    "before the log": "maxrr.workspace.receipt_log.bring_up_to",
}


def killed_in(folder, key, ids, place):
    workspace = Workspace.open(folder, signing_key=key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PLACES[place], killed)
        patch.setattr("maxrr.workspace.keeper.FolderKeeper.take_committed", lambda self: None)
        with pytest.raises(Killed):
            workspace.model.unlearn(ids)
    workspace._store.close()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("both", [False, True])
def test_whatever_is_killed_no_two_checkpoints_of_one_size_are_signed(twins, key, place, both, monkeypatch):
    if key is None and place == "before the log":
        return
    one, other, free = twins
    signed = Signed(monkeypatch)
    killed_in(one, key, free[:1], place)
    if both and place == "before the note":
        killed_in(other, key, free[1:2], place)
    goes_on = [request(folder, key, free[each : each + 1]) for each, folder in enumerate([other, one] * 2, start=2)]
    going, refused = (goes_on[0::2], goes_on[1::2]) if place == "before the note" else (goes_on[1::2], goes_on[0::2])
    assert (set(refused), "older-copy" in going) == ({"older-copy"}, False)
    assert signed.forked == []
    assert bool(signed.roots) == (key is not None)


def test_a_fork_is_refused_and_its_loss_can_be_accepted(twins, key, tmp_path, monkeypatch):
    """It came about on two machines, of which one then has both copies."""
    one, other, free = twins
    here = os.environ.get("XDG_STATE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    assert request(other, key, free[:1]) == 2
    monkeypatch.setenv("XDG_STATE_HOME", here)
    assert request(one, key, free[1:2]) == 2
    before = contents(other), contents(older_copies.place())
    with Workspace.open(other, signing_key=key) as workspace:
        with pytest.raises(OlderCopy):
            workspace.model.unlearn(free[2:3])
        with pytest.raises(WorkspaceError, match="by itself"):
            workspace.catch_up(one)
        assert lacking(workspace) == 1
        assert (contents(other), contents(older_copies.place())) == before
        (loss,) = workspace.declare_gone(REASON).losses
    assert (loss.log, loss.entries, loss.kept) == (origin_of(workspace._store.token), 2, 2)
    assert request(one, key, free[2:3]) == "older-copy"
    assert request(other, key, free[2:3]) == 4


def test_a_newer_copy_that_lacks_the_last_receipts_is_not_caught_up_with(copies, key, monkeypatch):
    """One more receipt after those would be a second one of that number."""
    folder, newer, gone = copies
    newest = copied(newer, folder.with_name("newest"))
    assert request(newest, key, kinds_of(newest)[:1]) == 4
    before, signed = contents(folder), Signed(monkeypatch)
    with Workspace.open(folder, signing_key=key) as workspace:
        with pytest.raises(OlderCopy):
            workspace.catch_up(newer)
        assert holds(workspace, gone).all()
        assert contents(folder) == before
        assert workspace.catch_up(newest).number == 5
    assert signed.forked == []


def kinds_of(folder):
    with Workspace.open(folder, read_only=True) as workspace:
        return kinds(workspace.model)[2]


def work(folder, place, pipe):
    """In a process of its own: open a copy, and go on in it when told to."""
    with Workspace.open(folder, signing_key=KEY) as workspace:
        one = workspace.model.ids_of("free")[place]
        pipe.send("ready")
        pipe.recv()
        try:
            pipe.send(workspace.model.unlearn([one]).number)
        except OlderCopy as refused:
            pipe.send(refused.code)


def test_of_two_processes_in_equal_copies_one_goes_on(template, tmp_path):
    one, forked = copied(template("hash"), tmp_path / "one"), multiprocessing.get_context("fork")
    for turn in range(4):
        pair = [one, copied(one, tmp_path / f"other {turn}")]
        pipes = [forked.Pipe() for _ in pair]
        workers = [forked.Process(target=work, args=(pair[each], each, pipes[each][1])) for each in (0, 1)]
        for worker in workers:
            worker.start()
        mine = [pipe for pipe, _ in pipes]
        assert [pipe.recv() for pipe in mine] == ["ready", "ready"]
        for pipe in mine:
            pipe.send("go")
        said = [pipe.recv() for pipe in mine]
        for worker in workers:
            worker.join()
        assert sorted(said, key=str) == [turn + 1, "older-copy"]
        one = pair[said.index(turn + 1)]


def test_who_checked_before_another_copy_committed_is_refused_all_the_same(twins, key):
    """The last moment at which it can be: after the check of the first moment, and before the commit."""
    one, other, free = twins

    def meanwhile(*rest, **options):
        patch.undo()
        assert request(one, key, free[:1]) == 2
        return execute(*rest, **options)

    before = contents(other)
    with Workspace.open(other, signing_key=key) as workspace, pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxrr.unlearning.model.execute", meanwhile)
        with pytest.raises(OlderCopy):
            workspace.model.unlearn(free[1:2])
        assert holds(workspace, free[1:2]).all()
    assert contents(other) == before


@pytest.mark.parametrize("clock", ["right", "behind", "still"])
def test_of_two_losses_the_later_names_the_former_and_is_later(copies, key, tmp_path, clock, monkeypatch):
    folder, _, gone = copies
    again = shutil.copytree(folder, tmp_path / "again")
    hour = iter({"right": [1, 2], "behind": [2, 1], "still": [1, 1]}[clock])

    class Clock(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime(2030, 1, 1, next(hour), tzinfo=UTC)

    monkeypatch.setattr("maxrr.workspace.copies.datetime", Clock)
    signed = Signed(monkeypatch)
    with Workspace.open(folder, signing_key=key) as one, Workspace.open(again, signing_key=key) as other:
        (first,), (second,) = one.declare_gone(REASON).losses, other.declare_gone(REASON).losses
        assert second.time > first.time
        assert (second.log, second.entries) == (origin_of(one._store.token, first.time), 2)
        with pytest.raises(OlderCopy):
            one.model.unlearn(gone[:1])
        assert other.model.unlearn(gone[:1]).number == 3
    assert signed.forked == []


@pytest.mark.parametrize("name", ["bundle", "record_export", "export"])
def test_a_reader_of_a_copy_whose_original_goes_on_is_refused(twins, records, key, name):
    one, other, free = twins
    with Workspace.open(other, read_only=True) as reader:
        assert request(one, key, free[:1]) == 2
        with pytest.raises(OlderCopy):
            VERBS[name](reader, records, free)
    assert not (other / "exports").exists()


def test_a_copy_that_was_given_up_is_told_so(copies, key):
    folder, newer, _ = copies
    (loss,) = accepted(folder, key).losses
    with (
        Workspace.open(newer, signing_key=key) as workspace,
        pytest.raises(OlderCopy, match=rf"a loss was accepted on {loss.time}.* given up, it cannot catch up"),
    ):
        workspace.check_newest()
