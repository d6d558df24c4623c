"""A flush that fails, a full disk: a request is acknowledged and done, or refused and not done, and nothing that was
acknowledged is lost afterwards."""

import os
import shutil
import warnings

import pytest

from maxrr.unlearning import Receipt
from maxrr.workspace import Workspace, WorkspaceError
from tests.cases import some, stride
from tests.workspace.disk import BROKEN, FULL, NEEDING_SPACE, Disk, fails, put
from tests.workspace.outside import ACTS, KEY, differing, facts, forget, none_of, working

pytestmark = pytest.mark.usefixtures("no_waiting")


class Trial:
    """A request during which the disk fails, and another one after it by the same open workspace."""

    def __init__(self, start, place, key, act, failing):
        shutil.rmtree(place, ignore_errors=True)
        self.folder, self.place, self.key = shutil.copytree(start, place / "workspace"), place, key
        self.promised = []  # the receipts that were handed out
        with Workspace.open(self.folder, signing_key=key) as workspace:
            self.old = facts(workspace)
            disk = Disk(self.folder, failing)
            with disk.watched():
                self.error = self.asked(workspace, act)
                self.cached = disk.cached()
                disk.touched = lambda kind: None  # it works again
                self.held = self.seen(workspace)
                self.next_error = self.asked(workspace, forget)
                self.device, self.cached_next = disk.device(), disk.cached()
                self.held_next = self.seen(workspace)

    def seen(self, workspace):
        """What is in the open workspace; None where it says that it has to be opened again."""
        try:
            return facts(workspace)
        except WorkspaceError:
            return None

    def asked(self, workspace, act):
        """The error that a request ends with; None where it is acknowledged."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # clearing up may be left to the next one
            try:
                answer = act(workspace)
            except (OSError, WorkspaceError) as error:
                return error
        self.promised += [answer] if isinstance(answer, Receipt) else answer
        return None

    def opened(self, contents):
        return working(put(contents, self.folder, self.place / "trial"), self.key)

    def disagreeing(self, new):
        """Where a request that raised is done, or one that was acknowledged is not."""
        expected = new if self.error is None else self.old
        how = "was acknowledged" if self.error is None else f"raised {self.error!r}"
        other = [] if self.held is None else differing(self.held, expected)
        if other:
            yield f"the request {how}, and the open workspace has other {', '.join(other)}"
        seen = self.opened(self.cached)
        if seen.told or seen.facts != expected:
            yield f"the request {how}, and on the disk: {seen.told or differing(seen.facts, expected)}"

    def losing(self):
        """What was acknowledged and is not on the device."""
        seen = self.opened(self.device)
        if seen.told:
            yield f"{len(self.promised)} acknowledged, and then the power was cut: {seen.told}"
            return
        with Workspace.open(self.place / "trial", signing_key=self.key) as workspace:
            there = {receipt.digest for receipt in workspace.receipts()}
        lost = [receipt.number for receipt in self.promised if receipt.digest not in there]
        if lost:
            yield f"receipts {lost} were handed out, and after a power cut are not there"


@pytest.fixture
def trials(small, tmp_path, monkeypatch):
    """Fail at one touch of some kinds after the other; the state that the request leads to, and what came of each."""
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)  # nobody remembers more than the folder does

    def of(act, signed, number, kinds, every=1, **options):
        key = KEY if signed else None
        new = Trial(small(key), tmp_path / "trial", key, ACTS[act], lambda kind: None).held
        at = 1
        while True:
            failing = fails(number, kinds, at, **options)
            trial = Trial(small(key), tmp_path / "trial", key, ACTS[act], failing)
            if failing.count() < at:
                break
            yield at, new, trial
            at += every
        assert at > 2

    return of


CASES = some(2, [
    ("forget", True), ("shape", False), ("add", False),
    *((act, True) for act in ("shape", "add", "rectify", "several")), ("forget", False), ("several", False),
])  # fmt: skip


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(("act", "signed"), CASES)
def test_a_request_whose_flush_fails_is_not_done_or_is_acknowledged(trials, act, signed, lasting):
    wrong = []
    for at, new, trial in trials(act, signed, BROKEN, {"flush"}, lasting=lasting):
        wrong += [f"flush {at}: {why}" for why in trial.disagreeing(new)]
    none_of(wrong)


@pytest.mark.parametrize(("act", "signed"), CASES)
def test_nothing_is_lost_that_was_acknowledged_after_a_failed_flush(trials, act, signed):
    """The system says once that a flush has failed, and forgets what it could not write: the next flush succeeds."""
    wrong = []
    for at, _, trial in trials(act, signed, BROKEN, {"flush"}):
        wrong += [f"flush {at}: {why}" for why in trial.losing()]
    none_of(wrong)


@pytest.mark.parametrize(("act", "signed"), CASES)
def test_a_full_disk_leaves_the_state_before_and_once_there_is_room_it_goes_on(trials, act, signed):
    wrong = []
    for at, new, trial in trials(act, signed, FULL, NEEDING_SPACE, stride(4), lasting=True):
        wrong += [f"write {at}: {why}" for why in (*trial.disagreeing(new), *trial.losing())]
        if trial.next_error is not None or trial.opened(trial.cached_next).facts != trial.held_next:
            wrong.append(f"write {at}: it does not go on: {trial.next_error}")
    none_of(wrong)
