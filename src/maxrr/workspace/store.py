"""The files of a workspace: written before a commit, read after one, and purged of what no longer belongs.

A commit replaces `workspace.json`. Files are named after their content, so a part that did not change is not written
again, and what the root does not name is of an earlier state, or of a commit that never came: it is deleted.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.core import Core
from maxrr.files import Lock, write_atomically
from maxrr.nets.seeding import Network
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.state import Fitted
from maxrr.workspace import contents, root
from maxrr.workspace.contents import EXTRACTOR, FORGOTTEN, HEAD, SECRETS, Loaded
from maxrr.workspace.damage import WorkspaceError, damaged
from maxrr.workspace.root import Root
from maxrr.workspace.rows import HELD, Rows, Table

LOCK, RANKING, RECEIPTS = ".lock", "ranking", "receipts"
PARTS = (EXTRACTOR, HEAD, FORGOTTEN, SECRETS)
TEMPORARY = ".maxrr-*.tmp"
NOTHING = hashlib.sha256(b"").hexdigest()


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
        self.folder = Path(folder)
        self.read_only = read_only
        try:
            self.lock = Lock(self.folder / LOCK, shared=read_only, wait=wait)
        except BlockingIOError:
            raise WorkspaceError(
                f"another process is working in {folder}: wait for it, or stop it. Nothing was changed"
            ) from None
        self.root: Root | None = None
        self.table: Table = np.zeros(0, np.dtype("u1"))

    def close(self) -> None:
        """Let others in."""
        self.lock.release()

    # Reading

    def open(self) -> Root:
        """Read what was committed last, and finish what the process that did so may have left."""
        self.root = Root.read(self.folder)
        if not self.read_only:
            self.purge()
        self.check_receipts()
        self.table = self.root.rows.read(self.folder)
        return self.root

    def load(self, network: Network) -> Loaded:
        """The model, if every file is the one that was written."""
        assert self.root is not None
        parts = {part: self.part(part) for part in PARTS}
        try:
            found = contents.loaded(self.root.facts, self.table, parts, self.root.requests, network)
        except (RuntimeError, KeyError) as error:  # weights that do not fit into the network
            raise WorkspaceError(
                f"the network does not fit the weights in {self.folder}: name the one that was fitted ({error})"
            ) from error
        if found.fitted.model_hash != self.root.facts["model_hash"]:
            raise damaged(self.folder / root.NAME, "the model does not have the hash that it names")
        if found.fitted.holdings.manifest != self.root.facts["manifest"]:
            raise damaged(self.folder / root.NAME, "the records do not have the hash that it names")
        return found

    def part(self, part: str) -> bytes:
        """The content of a file, which the root names after the hash of it."""
        assert self.root is not None
        name = self.named(part)
        path = self.folder / name
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise damaged(path, "it is missing") from None
        if hashlib.sha256(content).hexdigest() != self.root.files[name]:
            raise damaged(path, "its content does not have the hash that workspace.json names")
        return content

    def named(self, part: str) -> str:
        """The file that holds a part now."""
        assert self.root is not None
        stem, suffix = part.split(".")
        for name in self.root.files:
            if name.startswith(f"{stem}-") and name.endswith(f".{suffix}"):
                return name
        raise damaged(self.folder / root.NAME, f"it names no file for the {stem}")

    def receipt_path(self, number: int) -> Path:
        return self.folder / RECEIPTS / f"{number:06d}.json"

    def check_receipts(self) -> None:
        """Every receipt is there as it was handed out."""
        assert self.root is not None
        chain = NOTHING
        for number in range(1, self.root.requests + 1):
            path = self.receipt_path(number)
            try:
                chain = chained(chain, path.read_bytes())
            except FileNotFoundError:
                raise damaged(path, "it is missing") from None
        if chain != self.root.receipts:
            raise damaged(self.folder / RECEIPTS, "its receipts are not those that were handed out")

    # Writing

    def commit(self, fitted: Fitted, core: Core, receipt: Receipt | None, notes: dict[str, Any]) -> None:
        """Make this the state of the workspace. If it raises, the state is the old one, or the disk failed."""
        before = self.root
        if self.read_only:
            raise WorkspaceError(f"{self.folder} was opened for reading only: nothing was changed")
        state = 1 if before is None else before.state + 1
        files = self.write_parts(fitted, core)
        rows, table = self.write_rows(fitted, state)
        requests, chain = (0, NOTHING) if before is None else (before.requests, before.receipts)
        if receipt is not None:
            requests += 1
            content = receipt.to_json().encode()
            chain = chained(chain, content)
            self.receipt_path(requests).parent.mkdir(exist_ok=True)
            write_atomically(self.receipt_path(requests), content)
        after = Root(state, files, rows, requests, chain, contents.facts_of(fitted, core) | {"source": notes})
        after.write(self.folder)
        table[list(rows.erased)] = np.zeros(1, table.dtype)[0]
        self.root, self.table = after, table

    def write_parts(self, fitted: Fitted, core: Core) -> dict[str, str]:
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
                write_atomically(self.folder / name, content)
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
                table = self.table
                if len(fitted.holdings.ids) > rows.count:
                    table = np.concatenate([table, contents.table_of(fitted, rows.layout, first=rows.count)])
                    rows.append(self.folder, table)
                return rows.after(table, np.flatnonzero((self.table["is"] > 0) & ~alive)), table
        layout = contents.layout_of(fitted)
        table = contents.table_of(fitted, layout)
        rows = Rows.of(f"rows-{state}.bin", layout, table)
        rows.write(self.folder, table)
        return rows, table

    # Erasing

    def sweep(self, before: Root | None) -> None:
        """Erase what the present state no longer has: rows, and files of the state before."""
        assert self.root is not None
        self.root.rows.erase(self.folder)
        if before is not None:
            for name in {*before.files, before.rows.file} - {*self.root.files, self.root.rows.file}:
                (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / RANKING, ignore_errors=True)

    def recover(self) -> None:
        """After a commit that failed: clean up around whichever state the disk has."""
        self.root = Root.read(self.folder) if (self.folder / root.NAME).exists() else None
        self.purge()

    def purge(self) -> None:
        """Erase whatever does not belong to the present state, whoever left it there."""
        for folder in (self.folder, self.folder / RECEIPTS):
            for path in folder.glob(TEMPORARY):
                path.unlink()
        if self.root is None:
            return
        for part in (*PARTS, "rows.bin"):
            stem, suffix = part.split(".")
            for path in self.folder.glob(f"{stem}-*.{suffix}"):
                if path.name not in self.root.files and path.name != self.root.rows.file:
                    path.unlink()
        for path in (self.folder / RECEIPTS).glob("*.json"):
            if path.stem.isdigit() and int(path.stem) > self.root.requests:
                path.unlink()
        self.sweep(None)


def chained(before: str, receipt: bytes) -> str:
    """The hash that stands for a receipt and all before it."""
    return hashlib.sha256(bytes.fromhex(before) + hashlib.sha256(receipt).digest()).hexdigest()


def is_private(path: Path) -> bool:
    """Whether nobody but its owner, who is the user of this process, can have written a file."""
    found = path.stat()
    return os.name == "nt" or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)
