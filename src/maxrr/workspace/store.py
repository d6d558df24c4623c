"""The files of a workspace: written before a commit, read after one, and purged of what no longer belongs.

A commit replaces `workspace.json`. Files are named after their content, so a part that did not change is not written
again, and what the root does not name is of an earlier state, or of a commit that never came: it is deleted.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from maxrr.core import Core
from maxrr.files import Lock, write_atomically
from maxrr.nets.seeding import Network
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.state import Fitted
from maxrr.workspace import contents, root
from maxrr.workspace.contents import Loaded
from maxrr.workspace.damage import WorkspaceError, damaged
from maxrr.workspace.root import EXTRACTOR, FORGOTTEN, HEAD, PARTS, ROWS, SECRETS, Root, is_named_after
from maxrr.workspace.rows import HELD, Rows, Table

LOCK, RANKING, RECEIPTS = ".lock", "ranking", "receipts"
TEMPORARY = ".maxrr-*.tmp"


class Store:
    """A folder that is a workspace, or becomes one with its first commit.

    Parameters
    ----------
    folder
    read_only : bool
        Change nothing in it. Several processes may read at once.
    wait : float
        Seconds to wait for another process that works in it.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0) -> None:
        self.folder = Path(folder).absolute()  # whatever becomes the current folder later
        self.read_only = read_only
        try:
            self.lock = Lock(self.folder / LOCK, shared=read_only, wait=wait)
        except BlockingIOError:
            raise WorkspaceError(
                f"another process is working in {folder}: wait for it, or stop it. Nothing was changed"
            ) from None
        self.root: Root | None = None
        self.table: Table = np.zeros(0, np.dtype([("is", "u1")]))
        self.parts: dict[str, bytes] = {}  # of the files, between `open` and `load`
        self.swept = True  # nothing of an earlier state is left

    def close(self) -> None:
        """Let others in."""
        self.lock.release()

    # Reading

    def open(self) -> Root:
        """Read what was committed last, check every file, and finish what the process that did so may have left."""
        self.root = Root.read(self.folder)
        self.table = self.root.rows.read(self.folder)
        self.parts = {part: self.checked(self.root.file_of(part), self.root) for part in PARTS}
        for number, digest in enumerate(self.root.receipts, start=1):
            check_hash(self.receipt_path(number), digest)
        if not self.read_only:
            self.purge()
        return self.root

    def load(self, network: Network | None) -> Loaded:
        """The model that was read."""
        assert self.root is not None
        try:
            found = contents.loaded(self.root.facts, self.table, self.parts, self.root.receipts, network)
        except WorkspaceError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, SafetensorError) as error:
            raise damaged(self.folder / root.NAME, f"no model can be made of what it says ({error})") from error
        self.parts = {}  # they would outlive what is forgotten next
        if found.fitted.model_hash != self.root.facts["model_hash"]:
            raise damaged(self.folder / root.NAME, "the model does not have the hash that it names")
        if found.fitted.holdings.manifest != self.root.facts["manifest"]:
            raise damaged(self.folder / root.NAME, "the records do not have the hash that it names")
        return found

    def checked(self, name: str, known: Root) -> bytes:
        """The content of a file that the root names."""
        return check_hash(self.folder / name, known.files[name])

    def receipt_path(self, number: int) -> Path:
        return self.folder / RECEIPTS / f"{number:06d}.json"

    def ranking(self) -> Path:
        """Where a fit that starts from the present state keeps the runs of its ranking."""
        return self.folder / f"{RANKING}-{0 if self.root is None else self.root.state}"

    # Writing

    def commit(
        self, fitted: Fitted, core: Core | None, receipt: Receipt | None, network: dict[str, Any],
        source: dict[str, Any],
    ) -> None:  # fmt: skip
        """Make this the state of the workspace. If it raises, the state is the old one, or `recover` says."""
        before = self.root
        if not self.swept:  # or its rows would never be erased: the root remembers those of one request
            self.purge()
        files = self.write_parts(fitted, core)
        rows, table = self.write_rows(fitted, 1 if before is None else before.state + 1)
        receipts = [] if before is None else list(before.receipts)
        if receipt is not None:
            content = receipt.to_json().encode()
            receipts.append(hashlib.sha256(content).hexdigest())
            (self.folder / RECEIPTS).mkdir(exist_ok=True)
            write_atomically(self.receipt_path(len(receipts)), content)
        facts = {**network, **contents.facts_of(fitted, core), "source": source}
        after = Root(1 if before is None else before.state + 1, files, rows, receipts, facts)
        after.write(self.folder)
        self.swept = False
        table[list(rows.erased)] = np.zeros(1, table.dtype)[0]
        self.root, self.table = after, table

    def write_parts(self, fitted: Fitted, core: Core | None) -> dict[str, str]:
        """The parts that are not in a file yet; the names and hashes of all."""
        files = {}
        made = {
            EXTRACTOR: contents.extractor_bytes(fitted), HEAD: contents.head_bytes(fitted),
            FORGOTTEN: contents.forgotten_bytes(fitted), SECRETS: contents.secret_bytes(fitted, core),
        }  # fmt: skip
        for part, content in made.items():
            digest = hashlib.sha256(content).hexdigest()
            stem, suffix = part.split(".")
            name = f"{stem}-{digest[:16]}.{suffix}"
            if self.root is None or self.root.files.get(name) != digest:
                write_atomically(self.folder / name, content, private=True)
            files[name] = digest
        return files

    def write_rows(self, fitted: Fitted, state: int) -> tuple[Rows, Table]:
        """The table of records: the file that is there with rows to erase and perhaps to add, or another."""
        before = self.root
        if before is not None and before.facts["layouts"] == fitted.layouts:
            rows, alive = before.rows, fitted.holdings.alive[: before.rows.count]
            held = np.zeros(len(fitted.holdings.ids), dtype=bool)
            held[fitted.head.rows_] = True
            if np.array_equal(held[: rows.count], alive & ((self.table["is"] & HELD) > 0)):
                erased = np.flatnonzero((self.table["is"] > 0) & ~alive)
                if len(fitted.holdings.ids) == rows.count:
                    return rows.after(self.table, erased), self.table
                table = np.concatenate([self.table, contents.table_of(fitted, rows.layout, first=rows.count)])
                if contents.fits(fitted, rows.layout):
                    rows.append(self.folder, table)
                    return rows.after(table, erased), table
        layout = contents.layout_of(fitted)
        table = contents.table_of(fitted, layout)
        rows = Rows.of(f"rows-{state}.bin", layout, table)
        rows.write(self.folder, table)
        return rows, table

    # Erasing

    def sweep(self, before: Root) -> None:
        """Erase what the present state no longer has: rows, and files of the state before."""
        assert self.root is not None
        self.root.rows.erase(self.folder)
        for name in {*before.files, before.rows.file} - {*self.root.files, self.root.rows.file}:
            (self.folder / name).unlink(missing_ok=True)
        self.drop_rankings()
        self.swept = True

    def recover(self) -> None:
        """After a commit that failed: clean up around whichever state the disk has."""
        self.root = Root.read(self.folder) if (self.folder / root.NAME).exists() else None
        self.purge()

    def purge(self) -> None:
        """Erase whatever does not belong to the present state, whoever left it there."""
        kept = set() if self.root is None else {*self.root.files, self.root.rows.file}
        for path in list(self.folder.iterdir()):
            if path.name not in kept and any(is_named_after(part, path.name) for part in (*PARTS, ROWS)):
                path.unlink()
        handed_out = 0 if self.root is None else len(self.root.receipts)
        for path in (self.folder / RECEIPTS).glob("*.json"):
            if path.stem.isdigit() and int(path.stem) > handed_out:
                path.unlink()
        for folder in (self.folder, self.folder / RECEIPTS):
            for path in folder.glob(TEMPORARY):
                path.unlink()
        if self.root is not None:
            self.root.rows.erase(self.folder)
        self.drop_rankings()
        self.swept = True

    def drop_rankings(self) -> None:
        """Delete the runs of fits that started from an earlier state."""
        for folder in self.folder.glob(f"{RANKING}-*"):
            if folder != self.ranking() and folder.name.removeprefix(f"{RANKING}-").isdigit():
                shutil.rmtree(folder)


def check_hash(path: Path, digest: str) -> bytes:
    """The content of a file, if it is what was written."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise damaged(path, "it is missing") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise damaged(path, "its content does not have the hash that workspace.json names")
    return content
