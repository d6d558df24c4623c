"""The folder of a workspace: locked, read and checked, and cleared of what no longer belongs to it. No model is made
here.

What has the workspace's token in its name and is not named by the history is of an earlier state, or of a commit that
never came: it is overwritten and deleted. Nothing else is.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxrr.errors import InUse, NotAWorkspace, OlderCopy, OtherWorkspace, UnknownReceipt, WorkspaceError
from maxrr.files import Lock, flush_folder, overwrite
from maxrr.files.locking import is_named
from maxrr.plain_text import count
from maxrr.unlearning.facts import Facts, Words
from maxrr.workspace import names, older_copies, states
from maxrr.workspace.errors import NO_FILE, check_folder, content_of, damaged
from maxrr.workspace.history import Answer, Frame, History, frames_in, is_begun
from maxrr.workspace.names import HEADS, LEARNED, LOCK, PARTS, RANKING, TEMPORARY, name_of, part_of
from maxrr.workspace.older_copies import OlderCopyWarning, Position
from maxrr.workspace.states import StoredState

if TYPE_CHECKING:
    from maxrr.evidence import SigningKey
    from maxrr.evidence.log import LogWriter

PATIENCE, PAUSE = 10.0, 0.02  # seconds that a reader tries beside one who works, and between two tries
TRIES = 3  # to read one state: if it fails more often, the files are not as they were written
MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)


class Folder:
    """A folder that is a workspace, or becomes one with its first commit.

    Parameters
    ----------
    folder
    read_only : bool
        Read all of it, beside whoever works in it: what is read stays as it was.
    wait : float
        Seconds to wait for another process that works in it.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0) -> None:
        self.folder = Path(folder).absolute()  # whatever becomes the current folder later
        self.read_only, self.wait = read_only, wait
        names.check_private(self.folder)
        self.lock: Lock | None = None
        if not read_only:
            self.enter(wait)
        self.token = ""
        self.has_state = False  # nothing is committed, or nothing was read yet
        self.stored: StoredState
        self.facts: Facts  # what the files say of the model, once they are read
        self.words: Words
        self.history: History
        self.content: bytearray | mmap.mmap = bytearray()  # of the table of records, until it is made one
        self.parts: dict[str, bytes] = {}  # of the files, until a model is made of them
        self.answers: list[Answer] = []  # what the history keeps of each request
        self.tombstones: list[tuple[Any, ...]] = []  # of all that was forgotten, until a model is made of them
        self.people: dict[str, Any] = {}  # of whom no record is left, until a model is made of them
        self.signing: SigningKey | None = None
        self.log: LogWriter | None = None
        self.log_checkpoint: bytes | None = None  # the log's checkpoint before the receipts were read
        self.latest_position = Position()  # how far the workspace had come once, as far as is known here
        self.rows_to_erase: list[int] = []
        self.is_finished = True  # nothing of an earlier state is left

    def enter(self, wait: float) -> None:
        """Lock the folder against other processes."""
        try:
            self.lock = Lock(self.folder / LOCK, wait=wait)
        except BlockingIOError:
            raise InUse(f"another process works in {self.folder}, or this one has it open: wait, or close it") from None
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            raise damaged(self.folder / LOCK, f"it cannot be locked ({error.strerror})") from None

    def close(self) -> None:
        """Unlock the folder."""
        if self.lock is not None:
            self.lock.release()

    # Reading

    def open(self) -> None:
        """Read and check what was committed last, and finish what a killed process may have left undone.

        A reader finishes it only if the lock is free. Until somebody does, forgotten bytes may still be on the disk.
        """
        if self.read_only:
            self.read_beside_others()
            if self.has_leftovers():
                self.finish_for_others()
        else:
            self.read()
            self.finish()

    def read_beside_others(self) -> None:
        """Read the folder where somebody may commit meanwhile: try again while the history grows."""
        path, _ = names.history_of(self.folder)
        until = time.monotonic() + max(self.wait, PATIENCE)
        tries_of: dict[int, int] = {}
        while True:
            size = path.stat().st_size if path.is_file() else 0
            tries_of[size] = tries_of.get(size, 0) + 1
            try:
                self.read()
                return
            except (WorkspaceError, FileNotFoundError):
                if tries_of[size] == TRIES or time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def read(self) -> None:
        """Read what was committed last, and refuse files that are not as they were written. Changes nothing.

        The history is read once more after the rows: it says which of them somebody has erased meanwhile. What stands
        at its end and is no frame was never committed if all other files go with what stands before it; where they do
        not, it is damage.
        """
        path, self.token = names.history_of(self.folder)
        self.latest_position = older_copies.latest(self.token)  # first: somebody may go on at any moment
        self.log_checkpoint = self.checkpoint()  # before the receipts are read: it has no more than these
        if not is_begun(path):
            raise NotAWorkspace(f"{self.folder} is not a workspace: there is no commit in {path}. Make one with fit")
        key = states.key_in(self.folder, self.token)
        self.history = history = History(path, key, keep=self.read_only)
        if history.first_line.token != self.token:
            raise damaged(path, "it is the history of another workspace")
        frames = history.read()
        if history.torn and not frames:
            raise damaged(path, "its first frame was not written under the key of this workspace")
        found = states.read_state(path, self.token, key, frames)
        try:  # who keeps what others may erase in the file needs a copy of it, and not a map
            self.content = found.rows.content(self.folder, may_map=not self.read_only)
            self.parts = {part: found.content_of(self.folder, part) for part in PARTS}
            if not self.is_locked:
                found = self.read_rest(found, frames)
            self.rows_to_erase = found.rows.not_erased(self.content)
            if not self.read_only:  # a flush that failed leaves zeros here that the device may not have
                last = next((frame.erased for frame in reversed(frames) if frame.erased), ())
                self.rows_to_erase = sorted({*self.rows_to_erase, *found.rows.erased.intersection(last)})
            found.rows.check(self.folder, self.content)
            self.answers = [answer for frame in frames for answer in frame.answered()]
            self.tombstones = [tombstone for frame in frames for tombstone in frame.all_tombstones()]
            self.people = {person: said for frame in frames for person, said in (frame.people or {}).items()}
            if len(self.answers) != found.last.requests:
                raise damaged(path, f"it knows {count(len(self.answers), 'request')}, of {found.last.requests}")
            self.facts, self.words = states.facts_and_words(self.folder / found.file_of(HEADS), self.parts[HEADS])
            self.stored, self.has_state = found, True
            self.check_log(self.log_checkpoint)
        except WorkspaceError as error:
            if history.torn:
                why = f"its end is missing or was changed, and what that says was carried out ({error})"
                raise damaged(path, why) from None
            raise
        self.ranking()
        self.log = None

    def read_rest(self, found: StoredState, frames: list[Frame]) -> StoredState:
        """Return the state with the frames that were committed while the rows were read."""
        more = self.history.read()
        if any(frame.files is not None for frame in more):
            raise WorkspaceError(f"{self.folder} changes while it is read: try again")
        frames += more
        return states.state_after(found, self.token, self.history.key, more) if more else found

    def checkpoint(self) -> bytes | None:
        """Read the log's newest checkpoint, whoever signed it; None if there is no log."""
        from maxrr.evidence.log import CHECKPOINT, LOG

        path = self.folder / LOG / CHECKPOINT
        check_folder(path.parent)
        return content_of(path) if os.path.lexists(path) else None

    def check_log(self, before: bytes | None) -> None:
        """Refuse a log that contradicts the receipts. It may lack the last of them."""
        if self.stored.files.keys:
            from maxrr.workspace import receipt_log

            entries = [each.log_entry for each in self.answers]
            receipt_log.check(self.folder, self.stored, before, self.checkpoint(), entries)

    def receipt(self, number: int) -> bytes:
        """Read a receipt as it was handed out; the first has number 1."""
        if not 1 <= number <= self.requests:
            raise UnknownReceipt(f"there is no receipt {number}: the workspace has {count(self.requests, 'receipt')}")
        return self.history.part(*self.answers[number - 1].receipt)

    def proofs(self, number: int) -> bytes:
        """Read the sealed proofs of a request."""
        return self.history.part(*self.answers[number - 1].proofs)

    def ranking(self) -> Path:
        """Return the folder in which a fit from the present state keeps the runs of its ranking."""
        path = self.folder / self.ranking_name
        check_folder(path)
        return path

    @property
    def ranking_name(self) -> str:
        return name_of(RANKING, self.token, self.state)

    @property
    def has_history(self) -> bool:
        """Whether the history was opened: before the first commit it is not."""
        return hasattr(self, "history")

    @property
    def state(self) -> int:
        """How many fits and requests there were."""
        return self.stored.last.state if self.has_state else 0

    @property
    def requests(self) -> int:
        """How many requests were carried out."""
        return self.stored.last.requests if self.has_state else 0

    # Older copies

    @property
    def position(self) -> Position:
        """How far this copy of the workspace has come."""
        last, digest = self.stored.last, self.answers[-1].digest if self.answers else ""
        return Position(last.last_loss, last.requests, last.state, last=digest)

    def keep_position(self, then: Position) -> None:
        """Remember how far the workspace has come, with the root of the log where the log is open."""
        now = self.position
        if self.log is not None:
            root = self.log.root_with(each.log_entry for each in self.answers[self.log.checkpoint.size :])
            now = replace(now, root=root.hex())
        older_copies.keep(self.token, now, then)
        self.latest_position = max(self.latest_position, now)

    @property
    def backup(self) -> str:
        """When this backup was made; empty where the folder is no backup, or has caught up."""
        first = self.history.first_line
        return first.made if self.stored.last.state <= first.state else ""

    def is_later(self) -> bool:
        """Whether the history has grown since it was read. Refuses a folder that holds another workspace by now."""
        path, found = names.history_of(self.folder)
        if found != self.token:
            raise OtherWorkspace(f"{self.folder} holds another workspace now: open it again to use that one")
        return path.stat().st_size > self.history.length

    def warn_if_older(self) -> None:
        """Warn if the workspace was further once, and remember how far it is, unless it is a backup.

        How far a backup had come is no sign of how far the workspace has.
        """
        now, then = self.position, self.latest_position
        said = older_copies.why_older(self.folder, now, then, self.backup)
        if not said and now.last_loss == then.last_loss and now.state < then.state:
            said = f"{self.folder} is an older copy: the workspace was fitted again after it was made. Fit it again"
        if said:
            warnings.warn(said, OlderCopyWarning, stacklevel=3)
        if self.backup:
            return
        with suppress(WorkspaceError), older_copies.only_copy_at_work(self.token, wait=0.0) as then:
            self.keep_position(then)  # or somebody knows more

    def check_newest(self) -> None:
        """Refuse an older copy."""
        if said := self.why_older():
            raise OlderCopy(f"{said}. Nothing was changed")

    def why_older(self, then: Position | None = None) -> str:
        """Say what this copy lacks, if it is known to be an older one; empty otherwise.

        `then` is the latest that was seen, where it was looked up already.
        """
        then, now = max(self.latest_position, older_copies.latest(self.token) if then is None else then), self.position
        if not self.read_only:
            self.latest_position = then
        elif self.is_later():  # who has gone on here has left us behind, no more
            last = frames_in(self.history.path)[-1]
            now = Position(last.last_loss, last.requests)
        return older_copies.why_older(self.folder, now, then, self.backup)

    def check_in_place(self) -> None:
        """Refuse to go on where the history is not as this object left it, as where a backup was put in its place."""
        is_ours = self.lock is None or is_named(self.lock.path, os.fstat(self.lock.descriptor))
        if self.has_state and not (is_ours and self.history.is_as_left):
            raise OlderCopy(
                f"{self.folder} was replaced while somebody worked in it: stop that first, and open it again"
            )

    def is_latest_position(self) -> bool:
        """Whether this machine has seen the workspace come exactly as far as this copy.

        Where receipts are signed, only what was signed here counts: another machine may have gone on.
        """
        then = older_copies.latest(self.token)
        return self.position == replace(then, root="") and bool(then.root or not self.stored.files.keys)

    # Clearing up

    def claim(self) -> None:
        """Make the folder a workspace without a state."""
        self.token = names.claim(self.folder)
        self.ranking()
        self.finish()

    def recover(self) -> None:
        """Cut the rest of a failed commit off the history, and read the state that is durable."""
        self.is_finished = False
        if self.has_history and self.history.in_doubt:
            self.history.write_again()
        if self.has_state:
            self.open()
        else:
            self.finish()

    def finish(self) -> None:
        """Erase and log what the last commit promised, and remove what unfinished commits left."""
        self.is_finished, failed = False, None
        if self.has_history and self.history.in_doubt:
            self.history.write_again()  # before anything is erased because of it
        for step in (self.erase_rows, self.erase_leftovers, self.append_to_log):
            try:  # what can be done is done, though something else cannot
                step()
            except OSError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        self.is_finished = True

    def erase_rows(self) -> None:
        """Overwrite the rows of forgotten records."""
        if self.has_state and (self.rows_to_erase or self.stored.rows.is_longer(self.folder)):
            self.stored.rows.erase(self.folder, self.rows_to_erase)
            self.rows_to_erase = []

    def erase_leftovers(self) -> None:
        """Overwrite and delete the files of earlier states."""
        leftovers = self.leftovers()
        learned = [path for path in leftovers if part_of(path.name, self.token) in LEARNED | {None}]
        for path in learned:
            for each in sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [path]:
                overwrite(each)
        for path in leftovers:
            remove(path)
        if learned:
            flush_folder(self.folder)

    def leftovers(self) -> list[Path]:
        """Return the files and folders of this workspace that do not belong to the present state."""
        kept = {self.ranking_name, names.history_name(self.token)}
        if self.has_state:
            kept |= {*self.stored.files.hashes, self.stored.rows.file}
        return [
            path for path in sorted(self.folder.iterdir())
            if path.name not in kept and (part_of(path.name, self.token) or TEMPORARY.fullmatch(path.name))
        ]  # fmt: skip

    def has_leftovers(self) -> bool:
        """Whether files or rows of an earlier state are still there, after a kill or beside a process at work."""
        try:
            return bool(self.rows_to_erase or self.leftovers() or self.stored.rows.is_longer(self.folder))
        except FileNotFoundError:  # somebody is at it
            return True

    def finish_for_others(self) -> None:
        """Finish what a killed process left undone, although the folder was opened for reading only.

        Whoever holds the lock is alive, and finishes it. Who may not write here reads with zeros in place of the rows
        that are to be erased: what was read is as good as what will be left, and a warning says what is pending.
        """
        try:
            self.enter(0.0)
            self.read()
            self.finish()
        except InUse:
            pass
        except OSError as error:
            if error.errno not in MAY_NOT:
                raise
            if self.rows_to_erase or any(part_of(path.name, self.token) in LEARNED for path in self.leftovers()):
                warnings.warn(
                    f"what the last request in {self.folder} forgot is still on the disk: its owner, who may write "
                    "there, must open it, as with maxrr status",
                    stacklevel=4,
                )
        finally:
            self.close()

    def append_to_log(self) -> None:
        """Append to the log the receipts that it lacks, if there is a key to sign with.

        Not in an older copy, nor in a fork: another checkpoint of that size may be signed. So that the next one to come
        can tell, it is noted outside before this one is.
        """
        if not self.has_state or not self.stored.files.keys or self.signing is None:
            return
        from maxrr.workspace import receipt_log

        log, self.log = self.log, None  # an append that fails leaves it in doubt
        with older_copies.only_copy_at_work(self.token) as then:
            if self.why_older(then):
                return
            self.keep_position(then)
            self.log = receipt_log.bring_up_to(self.folder, self.stored, self.signing, log, self.answers)
            self.keep_position(then)

    # What is noted beside the state

    def note(self, **said: Any) -> None:
        """Note an export or an audit in the history. A reader takes the lock for that moment."""
        if self.is_locked:
            self.check_in_place()
            self.history.note(**said)
        else:
            note_apart(self.history.path, self.history.key, self.wait, **said)

    @property
    def is_locked(self) -> bool:
        """Whether this object holds the lock."""
        return self.lock is not None and self.lock.release.alive


def note_apart(path: Path, key: bytes, wait: float = 0.0, **said: Any) -> None:
    """Note something in a history, for a process that does not hold the folder's lock."""
    try:
        lock = Lock(path.parent / LOCK, wait=max(wait, PATIENCE))
    except BlockingIOError:
        raise InUse(
            f"another process works in {path.parent}, and only one at a time writes to its history: wait until it "
            "closes the workspace, or export and audit there. Nothing was changed"
        ) from None
    try:
        history = History(path, key)
        history.read()
        if history.torn:  # a request that was never finished, or damage: who works there can tell
            raise WorkspaceError(f"the end of {path} is not whole: open it to work in it first. Nothing was changed")
        history.note(**said)
    finally:
        lock.release()


def note_audit(path: Path, key: bytes, receipt: str, folder: Folder | None = None) -> int:
    """Note an audit of a receipt (by its hash) in a history, and return how many others there are.

    Where it cannot be noted the finding is not lost: it may be hours of work.
    """
    said, noted = {"receipt": receipt, "time": datetime.now(UTC).isoformat()}, 0
    try:
        (partial(note_apart, path, key) if folder is None else folder.note)(audit=said)
        noted = 1
    except (OSError, WorkspaceError) as error:
        warnings.warn(f"later audits will not know of this one, which could not be noted: {error}", stacklevel=2)
    with suppress(OSError, WorkspaceError):
        audits = [frame.audit["receipt"] for frame in History(path, key).read() if frame.audit is not None]
        return audits.count(receipt) - noted
    return 0


def remove(path: Path) -> None:
    """Delete a file, a link or a folder of the workspace."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
