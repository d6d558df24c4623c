"""The folder of a workspace: locked, read and checked, and purged of what no longer belongs. No model is made of it.

What has the workspace's token in its name and is not named by the root is of an earlier state, or of a commit that
never came: it is overwritten and deleted. Nothing else is.
"""

import errno
import hashlib
import mmap
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from maxrr.errors import WorkspaceError
from maxrr.files import Lock, enter, flush_folder, overwrite
from maxrr.workspace import commits, ownership, seen
from maxrr.workspace.commits import PARTS, SECRETS, Root
from maxrr.workspace.errors import NO_FILE, check_folder, content_of, damaged
from maxrr.workspace.names import (
    LEARNED,
    LOCK,
    MARKER,
    RANKING,
    RECEIPTS,
    TEMPORARY,
    TURNSTILE,
    name_of,
    part_of,
)
from maxrr.workspace.ownership import Marker
from maxrr.workspace.seen import Seen

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
        self.receipts: list[bytes] = []  # for those who read only
        self.then = Seen()  # how far the workspace had come once, as far as is known here
        self.finished = True  # nothing of an earlier state is left

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
        return found

    def read_beside_others(self) -> Root:
        """The same as `read`, where somebody may commit meanwhile: what was read may then be gone or overwritten.

        As long as the root stays, every file that it names stays as it is, except that a receipt is moved once.
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
        before = seen.latest(Root.read(self.folder).token)  # first: somebody may go on at any moment
        self.then = Seen(before.state, max(before.receipts, self.last_receipt()))
        self.root = found = Root.read(self.folder)
        marker = Marker.read(self.folder)
        if marker is not None and marker.token != found.token:
            raise damaged(self.folder / MARKER, "it is of another workspace")
        self.token = found.token
        # The small files first: the less time passes until the last, the less likely is a commit meanwhile.
        self.parts = {part: self.checked(found.file_of(part), found) for part in PARTS}
        self.check_seal(found)
        self.content = found.rows.read(self.folder, may_map=self.maps_large_tables)
        check_folder(self.folder / RECEIPTS)
        self.ranking()
        receipts = [
            check_hash(self.receipt_file(number), digest) for number, digest in enumerate(found.receipts, start=1)
        ]
        self.receipts = receipts if self.read_only else []
        return found

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
                    f"{owner(self.folder)}, who may write there, must open it, as with maxrr status"
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
        return self.folder / RECEIPTS / f"{number:06d}.json"

    def receipt_file(self, number: int) -> Path:
        """Where a receipt lies: the last one may not be handed out yet."""
        path, known = self.receipt_path(number), self.root
        if known is None or known.staged is None or number < len(known.receipts) or os.path.lexists(path):
            return path
        staged = self.folder / known.staged
        return staged if os.path.lexists(staged) else path

    def last_receipt(self) -> int:
        """The largest number among the receipts, though the present state may know nothing of it."""
        numbers = (int(path.stem) for path in (self.folder / RECEIPTS).glob("[0-9]*.json") if is_number(path.stem))
        return max(numbers, default=0)

    def ranking(self) -> Path:
        """Where a fit that starts from the present state keeps the runs of its ranking."""
        path = self.folder / self.ranking_name
        check_folder(path)
        return path

    @property
    def ranking_name(self) -> str:
        return name_of(RANKING, self.token, 0 if self.root is None else self.root.state)

    def look_back(self) -> None:
        """Say if the workspace once was further than this, and remember how far it is."""
        assert self.root is not None
        now = Seen(self.root.state, len(self.root.receipts))
        seen.warn_if_older(self.folder, now, self.then)
        seen.keep(self.token, now)

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
        for step in (self.erase_rows, self.erase_leftovers, self.hand_out, self.mark):
            try:  # what can be done is done, though something else cannot
                step()
            except OSError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        self.finished = True

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

    def owes(self) -> bool:
        """Whether the last commit promised something that is not done yet: a receipt, an erasure."""
        assert self.root is not None
        staged = self.root.staged is not None and os.path.lexists(self.folder / self.root.staged)
        old = (part_of(path.name, self.token) in LEARNED | {RANKING} for path in self.leftovers())
        return staged or any(old) or self.root.rows.owes(self.folder)

    def leftovers(self) -> list[Path]:
        """What has our names and is not of the present state."""
        kept = {self.ranking_name}
        if self.root is not None:
            kept |= {*self.root.files, self.root.rows.file, self.root.staged or ""}
        return [
            path for path in sorted(self.folder.iterdir())
            if path.name not in kept and (part_of(path.name, self.token) or TEMPORARY.fullmatch(path.name))
        ]  # fmt: skip

    def hand_out(self) -> None:
        """Put the receipt of the last request where receipts are."""
        if self.root is None or self.root.staged is None:
            return
        staged, path = self.folder / self.root.staged, self.receipt_path(len(self.root.receipts))
        if not os.path.lexists(staged):
            return
        if os.path.lexists(path):  # as it is, or the workspace would be damaged
            staged.unlink()
            return
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700)
        os.rename(staged, path)
        flush_folder(path.parent)

    def mark(self) -> None:
        """Say in the folder that something was committed in it. Where that fails, whoever comes next tries again."""
        with suppress(OSError, WorkspaceError):
            if self.root is not None and Marker.read(self.folder) != Marker(self.token, committed=True):
                Marker(self.token, committed=True).write(self.folder)


def owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, NotImplementedError):  # a user without a name, Windows
        return "its owner"


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


def is_number(stem: str) -> bool:
    """Whether a receipt may be called so."""
    return len(stem) >= 6 and stem.isascii() and stem.isdigit() and len(stem) <= 18
