"""A copy from a backup catches up with the newer one: what was forgotten meanwhile is forgotten there, too."""

import shutil
import warnings

import pytest
from sklearn.base import clone

from maxrr.errors import OtherWorkspace
from maxrr.evidence import Log, SigningKey, check_log, compare_logs
from maxrr.evidence.log import LogRelation
from maxrr.unlearning.consistency import contradictions
from maxrr.unlearning.statements import HandedReceipt
from maxrr.unlearning.tombstones import id_hmac
from maxrr.workspace import OlderCopyWarning, Workspace, WorkspaceError, backup, check_receipt_log
from maxrr.workspace.history import frames_in
from maxrr.workspace.names import origin_of
from tests.unlearning.problems import fresh
from tests.workspace.problems import (
    HASHED,
    NEW,
    NEWCOMERS,
    belongs,
    contents,
    copied,
    facts,
    forgotten_but_here,
    found,
    history_in,
    kinds,
    lacking,
    needles,
    receipts_in,
    reopened,
    table,
    together,
    write_receipts,
)  # fmt: skip

KEY, LATER = SigningKey.generate(), SigningKey.generate()


@pytest.fixture(params=["signed", "unsigned"])
def key(request):
    return KEY if request.param == "signed" else None


@pytest.fixture
def copies(template, tmp_path, records, key):
    """A copy from after the first request, the newer workspace, and what is known of those forgotten since."""
    newer = copied(template("hash"), tmp_path / "newer")
    with Workspace.open(newer, signing_key=key) as workspace:
        _core, influential, free = kinds(workspace.model)
        workspace.model.unlearn(free[:1])
        older = copied(newer, tmp_path / "older")
        gone = [free[1].item(), influential[0].item(), free[2].item()]
        known = {
            f"{id_}: {what}": needle
            for id_ in [*gone, free[3].item()]
            for what, needle in needles(workspace.model, records, id_).items()
        }
        workspace.model.unlearn(free[1:2])
        together(workspace, [influential[:1], free[2:3]])
        workspace.model.replace(free[3].item(), NEW)
        workspace.model.add(NEWCOMERS)
        workspace.model.unlearn(NEWCOMERS.ids[:1], core_policy="keep-extractor")
    return older, newer, known


def quietly(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OlderCopyWarning)
        return Workspace.open(folder, **options)


@pytest.mark.parametrize("given", ["folder", "file"])
def test_it_forgets_whom_the_newer_receipts_name(copies, records, key, given):
    older, newer, known = copies
    receipts = receipts_in(newer)
    source = newer if given == "folder" else history_in(newer)
    if given == "file" and key is not None:
        with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="its log is missing"):
            workspace.catch_up(source)
        (older.parent / "published").mkdir()
        shutil.copytree(newer / "log", older.parent / "published" / "log")
        shutil.copy(source, older.parent / "published")
        source = older.parent / "published"
    with quietly(older, signing_key=key) as workspace:
        before, token = workspace.status().records, workspace._store.token
        receipt = workspace.catch_up(source)
        assert (receipt.number, receipt.requested, receipt.guarantee) == (8, 4, "exact-refit")
        assert receipt.reason.startswith("an older copy was restored, and catches up with receipts 2 to 7")
        assert list(contradictions(receipt)) == []
        assert workspace.status().records == before - 4
        assert found(known, older) == set()
        assert [each.number for each in workspace.receipts()] == list(range(1, 9))
        assert workspace.model.has_forgotten([NEWCOMERS.ids[0], NEWCOMERS.ids[1]]).tolist() == [True, False]
        assert (lacking(workspace), forgotten_but_here(workspace)) == (0, 0)
        after = facts(workspace, records)
    assert receipts_in(older)[:7] == receipts
    assert reopened(older, records) == after
    assert set(contents(older)) == belongs(older)
    if key is not None:
        checkpoint, former = (check_log(folder / "log", origin_of(token), [key.public]) for folder in (older, newer))
        logs = [list(Log(folder / "log", each).entries()) for folder, each in ((older, checkpoint), (newer, former))]
        assert logs[0][:7] == logs[1]
        assert compare_logs(former, Log(older / "log", checkpoint)) is LogRelation.extends


def test_what_is_not_newer_or_not_of_this_workspace_is_refused(copies, template, tmp_path, key):
    older, newer, _ = copies
    other = copied(template("hash, words"), tmp_path / "other")
    aside = copied(older, tmp_path / "aside")
    with quietly(aside, signing_key=key) as workspace:
        for _ in range(3):
            workspace.model.unlearn(kinds(workspace.model)[2][-1:])
    with quietly(newer, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="it is not newer"):
        workspace.catch_up(older)
    with (
        quietly(newer, signing_key=key) as workspace,
        pytest.raises(OtherWorkspace),
    ):
        workspace.catch_up(aside)
    with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="is not there"):
        workspace.catch_up(other)
    with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="it is not newer"):
        workspace.catch_up(older)


def test_receipts_that_were_changed_are_refused(copies, key, tmp_path):
    older, newer, _ = copies
    lines = receipts_in(newer)
    before = contents(older)
    unsigned = HandedReceipt.from_bytes(lines[2]).receipt.to_json().encode()
    wrong = {
        "left out": [*lines[:2], *lines[3:]], "moved": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "twice": [*lines[:3], *lines[2:]], "no receipt": [*lines[:2], b"{}", *lines[3:]],
        "a bit": [*lines[:2], lines[2].replace(b"A", b"B", 1), *lines[3:]],
    }  # fmt: skip
    if key is not None:
        wrong["not signed"] = [*lines[:2], unsigned, *lines[3:]]
    for what, others in wrong.items():
        if key is None and what == "a bit":
            continue
        write_receipts(copied(newer, tmp_path / "forged"), others)
        with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="Nothing was changed"):
            workspace.catch_up(tmp_path / "forged")
    assert contents(older) == before
    if key is not None:
        (newer / "log" / "entries").unlink()
        with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="cannot be caught up"):
            workspace.catch_up(newer)


def test_on_another_machine_a_torn_end_is_not_taken_for_the_end(copies, key, tmp_path, monkeypatch):
    """Nobody there has seen how many receipts there were."""
    older, newer, _ = copies
    path = history_in(newer)
    path.write_bytes(path.read_bytes()[: frames_in(path)[-1].start + 5])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    before = receipts_in(older)
    with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="--gone"):
        workspace.catch_up(newer, core_policy="keep-extractor")
    assert receipts_in(older) == before


def test_on_another_machine_a_loss_is_accepted_at_the_first_opening(copies, key, tmp_path, monkeypatch):
    older, newer, _ = copies
    path = history_in(newer)
    path.write_bytes(path.read_bytes()[: frames_in(path)[-1].start + 5])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with quietly(older, signing_key=key) as workspace:
        receipt = workspace.catch_up(newer, core_policy="keep-extractor", gone="the disk is broken")
        assert receipt.losses[-1].reason == "the disk is broken"


def test_of_a_newer_copy_that_is_whole_nothing_is_declared_gone(copies, key):
    older, newer, _ = copies
    before = contents(older)
    with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError):
        workspace.catch_up(newer, core_policy="keep-extractor", gone=" ")
    assert contents(older) == before
    with quietly(older, signing_key=key) as workspace:
        receipt = workspace.catch_up(newer, core_policy="keep-extractor", gone="the disk may be broken")
        assert receipt.losses is None


def test_a_backup_of_the_last_state_is_not_caught_up_with_a_torn_end(copies, key, tmp_path):
    """What stood there may have been a request."""
    _, newer, _ = copies
    backup(newer, tmp_path / "backup")
    with history_in(newer).open("ab") as file:
        file.write(b"begun, and torn")
    with quietly(tmp_path / "backup", signing_key=key) as workspace:
        with pytest.raises(WorkspaceError):
            workspace.catch_up(newer)
        assert len(workspace.catch_up(newer, gone="the disk is broken").losses) == 1


@pytest.mark.parametrize("cut", ["torn", "damaged"])
def test_of_a_newer_copy_whose_end_is_lost_the_rest_is_forgotten(copies, key, cut):
    """And the loss of the others is accepted by the same request."""
    older, newer, _ = copies
    path = history_in(newer)
    whole, (*_, last) = path.read_bytes(), frames_in(path)
    path.write_bytes(whole[: last.start + 5] if cut == "torn" else whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    readable = receipts_in(newer)[: last.requests - len(last.answers)]
    named = {stone for each in readable for stone in HandedReceipt.from_bytes(each).receipt.tombstones}
    with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError):
        workspace.catch_up(newer, core_policy="keep-extractor")
    with quietly(older, signing_key=key) as workspace:
        here = len(receipts_in(older))
        receipt = workspace.catch_up(newer, core_policy="keep-extractor", gone="the disk is broken")
        assert receipt.number == len(readable) + 1 > here + 1
        assert (receipt.losses[-1].kept, receipt.losses[-1].reason) == (len(readable), "the disk is broken")
        fitted = workspace.model._fitted
        assert not any(id_hmac(fitted.key, id_).hex() in named for id_ in workspace.model.ids_of().tolist())
        assert workspace.model.unlearn(kinds(workspace.model)[2][:1]).number == receipt.number + 1
    if key is not None:
        check_receipt_log(older, [key.public])


def test_where_nobody_here_was_forgotten_only_the_receipts_are_taken(template, tmp_path, key):
    newer = copied(template("hash"), tmp_path / "newer")
    older = copied(newer, tmp_path / "older")
    with Workspace.open(newer, signing_key=key) as workspace:
        workspace.model.add(NEWCOMERS)
        workspace.model.unlearn(NEWCOMERS.ids[:1], core_policy="keep-extractor")
    with quietly(older, signing_key=key) as workspace:
        before = workspace.status().records
        assert workspace.catch_up(newer) is None
        assert (workspace.status().records, workspace.status().requests) == (before, 2)
        assert workspace.model.unlearn(kinds(workspace.model)[2][:1]).number == 3
        assert workspace.model.has_forgotten(NEWCOMERS.ids[:2]).tolist() == [True, False]


def test_a_key_that_came_later_has_to_be_named(copies, key):
    if key is None:
        return
    older, newer, _ = copies
    with quietly(newer, signing_key=LATER) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][-1:])
    another = copied(older, older.with_name("another"))
    with (
        quietly(older, signing_key=key) as workspace,
        pytest.raises(WorkspaceError, match=r"not signed by a key that is trusted.* \(name the operator's public keys"),
    ):
        workspace.catch_up(newer)
    with quietly(older, signing_key=key) as workspace:
        assert workspace.catch_up(newer, keys=[LATER.public]).number == 9
    elsewhere = copied(another, older.with_name("elsewhere"))  # where nobody has seen a ninth receipt
    with quietly(elsewhere, signing_key=LATER) as workspace:  # whose owner it is
        assert workspace.catch_up(newer).number == 9


def test_receipts_of_another_workspace_are_not_a_newer_copy(template, tmp_path, key):
    """Also under the right name, and where no receipt here ties them to this one."""
    newer = copied(template("hash"), tmp_path / "newer")
    older = copied(newer, tmp_path / "older")
    with Workspace.open(older) as workspace:
        model = workspace.model
    with Workspace.create(tmp_path / "other", clone(model), table(), signing_key=key) as other:
        other.model.unlearn(kinds(other.model)[2][:1])
    with Workspace.open(newer, signing_key=key) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:2])
    file, before = history_in(tmp_path / "other"), contents(older)
    forged, resealed = tmp_path / "forged", copied(newer, tmp_path / "resealed")
    forged.mkdir()
    shutil.copy(file, forged / history_in(newer).name)
    write_receipts(resealed, receipts_in(tmp_path / "other"))  # by somebody who has the key
    if key is not None:
        shutil.copytree(newer / "log", forged / "log")
    for given in (forged, file, resealed):
        with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match="Nothing was changed"):
            workspace.catch_up(given)
    assert contents(older) == before
    with quietly(older, signing_key=key) as workspace:
        assert workspace.catch_up(newer).number == 2


def test_the_newer_log_has_all_receipts(copies, key, tmp_path):
    if key is None:
        return
    older, newer, _ = copies
    short = copied(newer, tmp_path / "short")
    shutil.rmtree(short / "log")
    shutil.copytree(older / "log", short / "log")
    with quietly(older, signing_key=key) as workspace, pytest.raises(WorkspaceError, match=r"has 1 entry.* 7 receipts"):
        workspace.catch_up(short)


def test_a_copy_from_before_signing_is_caught_up_with_a_key(template, tmp_path):
    newer = copied(template("hash"), tmp_path / "newer")
    with Workspace.open(newer) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    older = copied(newer, tmp_path / "older")
    with Workspace.open(newer, signing_key=KEY) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    with quietly(older) as workspace, pytest.raises(WorkspaceError, match="open this copy with the key"):
        workspace.catch_up(newer, keys=[KEY.public])
    with quietly(older, signing_key=KEY) as workspace:
        assert workspace.catch_up(newer).number == 3
    assert check_receipt_log(older, [KEY.public]).signed == 2


@pytest.mark.parametrize("damaged", ["rows", "heads", "secrets"])
def test_history_and_log_beside_damaged_files_are_enough(copies, key, damaged):
    older, newer, _ = copies
    (path,) = newer.glob(f"{damaged}*")
    path.write_bytes(b"garbage")
    with quietly(older, signing_key=key) as workspace:
        assert workspace.catch_up(newer).number == 8


def test_what_is_not_there_is_no_newer_copy(copies, key, tmp_path):
    with quietly(copies[0], signing_key=key) as workspace, pytest.raises(WorkspaceError, match="is not there"):
        workspace.catch_up(tmp_path / "nowhere")


def test_two_workspaces_made_of_one_fitted_model_do_not_catch_up_with_each_other(records, tmp_path):
    """They have one key; the first line of a history tells whose it is."""
    model = fresh(HASHED, records).fit(records)
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        Workspace.create(folder, model, records).close()
    with Workspace.open(other) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[2][:1])
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    shutil.copy(history_in(other), renamed / history_in(one).name)
    before = contents(one)
    with Workspace.open(one) as workspace:
        for newer in (history_in(other), renamed):
            with pytest.raises(WorkspaceError, match="another workspace"):
                workspace.catch_up(newer)
    assert contents(one) == before
