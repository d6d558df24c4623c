"""The folder of a workspace: locked, read and checked, and purged of what no longer belongs. No model is made of it.

What has the workspace's token in its name and is not named by the root is of an earlier state, or of a commit that
never came: it is overwritten and deleted. Nothing else is.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.errors import OlderCopy, WorkspaceError
from maxrr.files import Lock, enter, flush_folder, overwrite
from maxrr.plain_text import count
from maxrr.workspace import commits, ownership, receipt_copies, seen
from maxrr.workspace.appending import Growing
from maxrr.workspace.commits import PARTS, SECRETS, Root
from maxrr.workspace.entries import Entries, read_entries
from maxrr.workspace.errors import NO_FILE, check_folder, content_of, damaged
from maxrr.workspace.journal import Journal
from maxrr.workspace.names import (
    GROWING,
    LEARNED,
    LOCK,
    MARKER,
    RANKING,
    SIGNED,
    TEMPORARY,
    TOMBSTONES,
    TURNSTILE,
    growing_name,
    name_of,
    part_of,
)
from maxrr.workspace.ownership import Marker
from maxrr.workspace.seen import Seen

if TYPE_CHECKING:
    from maxrr.evidence import LogWriter, SigningKey

PATIENCE, PAUSE = 10.0, 0.02  # seconds that a reader tries beside one who works, and between two tries
TRIES = 3  # to read one state: if it fails more often, the files are not as they were written
MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)


class InUse(WorkspaceError):  # noqa: N818
    """Somebody else works in the folder."""


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

    maps_large_tables = True  # instead of reading them into memory

    def __init__(self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0) -> None:
        self.folder = Path(folder).absolute()  # whatever becomes the current folder later
        self.read_only, self.wait = read_only, wait
        ownership.check_private(self.folder)
        self.lock: Lock | None = None
        if not read_only:
            self.enter(shared=False, wait=wait)
        self.token = ""
        self.root: Root | None = None
        self.content: bytearray | mmap.mmap = bytearray()  # of the table of records, until it is made one
        self.parts: dict[str, bytes] = {}  # of the files, until a model is made of them
        self.journal: Journal | None = None
        self.growing: dict[str, Growing] = {}  # the files that only grow
        self.entries = Entries([], {}, [])  # of the forgotten until a model is made of them; of receipts also then
        self.lines = b""  # of the receipts, for those who read only
        self.copies: dict[int, int] = {}  # the sizes of copies of receipts, as they were read
        self.unhanded: list[bytes] = []  # the lines of the last receipts, of which there are no copies yet
        self.signing: SigningKey | None = None
        self.log: LogWriter | None = None
        self.then = Seen()  # how far the workspace had come once, as far as is known here
        self.finished = True  # nothing of an earlier state is left
        self.tidy = False  # no file is left of an earlier state, and none is there that the next commit has to remove

    def enter(self, *, shared: bool, wait: float) -> None:
        """Keep others out."""
        try:
            self.lock = enter(self.folder / LOCK, self.folder / TURNSTILE, shared=shared, wait=wait)
        except BlockingIOError:
            raise InUse(
                f"another process works in {self.folder}, or this one has it open already: wait, or close it. Nothing "
                "was changed"
            ) from None
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            raise damaged(self.folder / LOCK, f"it cannot be locked ({error.strerror})") from None

    def close(self) -> None:
        """Let others in."""
        if self.lock is not None:
            self.lock.release()

    # Reading

    def open(self) -> Root:
        """Read what was committed last, check every file, and finish what the process that did so may have left.

        Who only reads does so, too: until it is done, what was forgotten may still be there.
        """
        if self.read_only:
            found = self.read_beside_others()
            return self.finish_for_others() if self.is_unfinished() else found
        found = self.read()
        self.finish()
        self.lines, self.copies = b"", {}
        return found

    def read_beside_others(self) -> Root:
        """The same as `read`, where somebody may commit meanwhile: what was read may then be gone.

        As long as the root stays, every file that it names stays as it is, or grows; and of the rows that are erased
        the journal has spoken before.
        """
        until = time.monotonic() + max(self.wait, PATIENCE)
        tries_of: dict[int, int] = {}
        while True:
            state = Root.read(self.folder).state
            tries_of[state] = tries_of.get(state, 0) + 1
            try:
                return self.read()
            except (WorkspaceError, FileNotFoundError):
                if tries_of[state] == TRIES or time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def is_unfinished(self) -> bool:
        """Whether something is left of an earlier state, by one who was killed or by one who is at it now."""
        try:
            return self.owes() or bool(self.leftovers())
        except FileNotFoundError:  # somebody is at it
            return True

    def read(self) -> Root:
        """What was committed last, if all of it is as it was written. Changes nothing."""
        first = Root.read(self.folder)
        before = seen.latest(first.token)  # first: somebody may go on at any moment
        self.copies = receipt_copies.sizes_in(self.folder)
        self.then = max(before, Seen(first.since, max(self.copies, default=0)))
        logged = self.checkpoint()  # before the receipts are: it has no more than these
        found = Root.read(self.folder)
        marker = Marker.read(self.folder)
        if marker is not None and marker.token != found.token:
            raise damaged(self.folder / MARKER, "it is of another workspace")
        self.token = found.token
        # Before the journal: which rows may have been erased while they were read, it says.
        self.content = found.rows.content(self.folder, may_map=self.maps_large_tables)
        self.parts = {part: self.checked(found.file_of(part), found) for part in PARTS}
        key = self.key_for(found)
        self.root = self.read_journal(found, key)
        contents = self.read_growing(self.root)
        self.entries, self.lines = self.read_entries(contents[TOMBSTONES]), contents[SIGNED]
        self.ranking()
        self.check_log(logged)
        self.log, self.unhanded, self.tidy = None, [], False
        return self.root

    def key_for(self, found: Root) -> bytes:
        """The workspace's key, if the root was written under it."""
        self.check_seal(found)
        return bytes.fromhex(json.loads(self.parts[SECRETS])["key"])

    def read_journal(self, found: Root, key: bytes) -> Root:
        """The state after what was committed since the root was written."""
        assert found.seal is not None
        self.journal = journal = Journal(self.folder / found.journal, key, found.seal[0])
        frames = journal.read()
        try:
            now = found.after(frames)
            erased = [row for frame in frames for row in frame.erased]
            now.rows.check(self.folder, self.content, [*found.rows.erased, *erased])
        except WorkspaceError:
            if journal.torn:
                raise damaged(journal.path, "its end is missing, and what that says was carried out") from None
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise damaged(journal.path, f"it does not go with this workspace ({error})") from None
        return now

    def read_growing(self, now: Root) -> dict[str, bytes]:
        """The contents of the files that only grow, as far as was committed."""
        contents = {}
        for part in GROWING:
            path = self.folder / growing_name(part, self.token)
            self.growing[part], contents[part] = Growing.read(path, now.grown[part])
        return contents

    def read_entries(self, content: bytes) -> Entries:
        """What is known of the forgotten, and of each request."""
        assert self.root is not None
        path = self.folder / growing_name(TOMBSTONES, self.token)
        try:
            found = read_entries(content)
        except ValueError as error:
            raise damaged(path, str(error)) from None
        if len(found.answered) != self.root.requests:
            raise damaged(
                path, f"it knows {count(len(found.answered), 'request')}, of {self.root.requests} that were committed"
            )
        return found

    def checkpoint(self) -> bytes | None:
        """The log's newest checkpoint, of whomever it is; None if there is none."""
        from maxrr.evidence.log import CHECKPOINT, LOG

        path = self.folder / LOG / CHECKPOINT
        check_folder(path.parent)
        return content_of(path) if os.path.lexists(path) else None

    def check_log(self, before: bytes | None) -> None:
        """Refuse a log that does not say what the receipts do. It may lack the last ones."""
        assert self.root is not None
        if not self.root.keys:
            return
        from maxrr.workspace import receipt_log

        entries = [each.logged for each in self.entries.answered]
        receipt_log.check(self.folder, self.root, before, self.checkpoint(), entries)

    def finish_for_others(self) -> Root:
        """Finish what a process that was killed has left, although we only came to read.

        Whoever holds the lock is alive, and finishes it: what was read is then as good as what it will leave.
        """
        assert self.root is not None
        try:
            if not self.is_alone(shared=False):
                return self.root
            found = self.read()
            self.finish()
        except OSError as error:
            if error.errno not in MAY_NOT:
                raise
            if not self.is_alone(shared=True):
                return self.root
            found = self.read()
            if self.owes():
                raise WorkspaceError(
                    f"the last request in {self.folder} was carried out, and erasing what it forgot is pending: "
                    "its owner, who may write there, must open it, as with maxrr status"
                ) from None
        finally:
            self.close()
        return found

    def is_alone(self, *, shared: bool) -> bool:
        """Whether nobody works in the folder; then the lock is held."""
        self.close()
        try:
            self.enter(shared=shared, wait=0.0)
        except InUse:
            return False
        return True

    def checked(self, name: str, known: Root) -> bytes:
        """The content of a file that the root names."""
        return check_hash(self.folder / name, known.files[name])

    def check_seal(self, known: Root) -> None:
        """Refuse a root that was changed by one who has not read the key."""
        try:
            sealed = known.is_sealed(self.parts[SECRETS])
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise damaged(self.folder / known.file_of(SECRETS), f"there is no key in it ({error})") from None
        if not sealed:
            raise damaged(self.folder / commits.NAME, "it was not written under the key of this workspace")

    def receipt_path(self, number: int) -> Path:
        """Where the copy of a receipt lies, as it was handed out, or will lie."""
        if self.read_only or self.root is None or not 0 < number <= self.root.requests:
            return receipt_copies.path_of(self.folder, number)
        return receipt_copies.compared(self.folder, number, self.line(number))

    def line(self, number: int) -> bytes:
        """The line of a receipt, from the first, without its end."""
        answered = self.entries.answered
        start, stop = answered[number - 2].line if number > 1 else 0, answered[number - 1].line
        kept = self.lines[start:stop] if self.read_only else self.growing[SIGNED].part(start, stop)
        return kept[:-1]

    def ranking(self) -> Path:
        """Where a fit that starts from the present state keeps the runs of its ranking."""
        path = self.folder / self.ranking_name
        check_folder(path)
        self.tidy = False  # whatever is kept there has to go with the next commit
        return path

    @property
    def ranking_name(self) -> str:
        return name_of(RANKING, self.token, 0 if self.root is None else self.root.state)

    @property
    def now(self) -> Seen:
        """How far the workspace has come, with the root of its log where all receipts are in it."""
        assert self.root is not None
        root = "" if self.log is None else self.log.checkpoint.root.hex()
        last = self.entries.answered[-1].digest if self.root.requests else ""
        return Seen(self.root.since, self.root.requests, self.root.state, root, last)

    def look_back(self) -> None:
        """Say if the workspace once was further than this, and remember how far it is."""
        seen.warn_if_older(self.folder, self.now, self.then)
        with suppress(WorkspaceError), seen.alone(self.token, wait=0.0):  # or somebody is about to know more
            seen.keep(self.token, self.now)

    def check_newest(self) -> None:
        """Refuse an older copy."""
        if said := self.said_older():
            raise OlderCopy(f"{said}. Nothing was changed")

    def said_older(self) -> str:
        """What an older copy lacks, of which another may have gone on by now; empty where it is not known to be one."""
        then, now = max(self.then, seen.latest(self.token)), self.now
        if not self.read_only:
            self.then = then
        elif commits.is_later(self.folder, self.token, now.state):  # who has gone on here has left us behind, no more
            found = Root.read(self.folder)
            now = Seen(found.since, commits.how_far(self.folder, found)[1])
        return seen.said_older(self.folder, now, then)

    # Clearing up

    def claim(self) -> None:
        """Make a folder a workspace that has no state yet."""
        self.token = ownership.claim(self.folder).token
        self.ranking()
        self.finish()

    def recover(self) -> None:
        """After a commit that failed: go on from whichever state the disk has."""
        self.finished = False
        if os.path.lexists(self.folder / commits.NAME):
            self.open()
        else:
            self.root = None
            self.finish()

    def finish(self) -> None:
        """Do all that the last commit promised, and remove what commits that never came have left."""
        self.finished, failed = False, None
        steps = [self.erase_rows, self.hand_out, self.append_to_log]
        if not self.tidy:
            steps = [self.erase_rows, self.cut, self.erase_leftovers, self.hand_out, self.append_to_log, self.mark]
        for step in steps:
            try:  # what can be done is done, though something else cannot
                step()
            except OSError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        self.finished, self.tidy = True, self.tidy or not os.path.lexists(self.folder / self.ranking_name)

    def erase_rows(self) -> None:
        """Overwrite the rows of the records that the last request forgot."""
        if self.root is not None:
            self.root.rows.erase(self.folder)

    def erase_leftovers(self) -> None:
        """Overwrite and delete what is not of the present state."""
        leftovers = self.leftovers()
        learned = [path for path in leftovers if part_of(path.name, self.token) in LEARNED | {RANKING, None}]
        for path in learned:
            for each in sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [path]:
                overwrite(each)
        for path in leftovers:
            remove(path)
        if learned:
            flush_folder(self.folder)

    def cut(self) -> None:
        """Drop what was appended and never committed."""
        if self.root is not None:
            assert self.journal is not None
            self.journal.cut()
            for file in self.growing.values():
                file.cut()

    def owes(self) -> bool:
        """Whether the last commit promised something that is not done yet: a receipt, an erasure."""
        assert self.root is not None
        old = (part_of(path.name, self.token) in LEARNED | {RANKING} for path in self.leftovers())
        return any(old) or self.root.rows.owes(self.folder)

    def leftovers(self) -> list[Path]:
        """What has our names and is not of the present state."""
        kept = {self.ranking_name}
        if self.root is not None:
            kept |= {*self.root.files, self.root.rows.file}
            if self.journal is not None:
                kept |= {self.journal.path.name, *(file.path.name for file in self.growing.values())}
        return [
            path for path in sorted(self.folder.iterdir())
            if path.name not in kept and (part_of(path.name, self.token) or TEMPORARY.fullmatch(path.name))
        ]  # fmt: skip

    def hand_out(self) -> None:
        """Write the copies of receipts: of the last ones, or of those that are not as they should be."""
        if self.root is None:
            return
        if self.lines:
            ends = (each.line for each in self.entries.answered)
            receipt_copies.restore(self.folder, self.copies, self.lines, ends)
        elif self.unhanded:
            receipt_copies.write(self.folder, self.root.requests - len(self.unhanded) + 1, self.unhanded)
            self.unhanded = []

    def append_to_log(self) -> None:
        """Append the receipts to the log that are not in it, where there is a key.

        Not in an older copy, nor in a fork: another checkpoint of that size may be signed. So that the next one to come
        can tell, it is noted outside before this one is.
        """
        if self.root is None or not self.root.keys or self.signing is None:
            return
        from maxrr.workspace import receipt_log

        log, self.log = self.log, None  # an append that fails leaves it in doubt
        with seen.alone(self.token):
            if self.said_older():
                return
            seen.keep(self.token, self.now)
            if log is None:
                log = receipt_log.writer_for(self.folder, self.root, self.signing)
            receipt_log.bring_up_to(log, [each.logged for each in self.entries.answered[log.checkpoint.size :]])
            self.log = log
            seen.keep(self.token, self.now)

    def mark(self) -> None:
        """Say in the folder that something was committed in it. Where that fails, whoever comes next tries again."""
        with suppress(OSError, WorkspaceError):
            if self.root is not None and Marker.read(self.folder) != Marker(self.token, committed=True):
                Marker(self.token, committed=True).write(self.folder)


def remove(path: Path) -> None:
    """Delete a file, a link or a folder of ours."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def check_hash(path: Path, digest: str) -> bytes:
    """The content of a file, if it is what was written."""
    content = content_of(path)
    if hashlib.sha256(content).hexdigest() != digest:
        raise damaged(path, "its content does not have the hash that workspace.json names")
    return content
