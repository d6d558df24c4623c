"""The files of a workspace: written before a commit, read after one.

A commit replaces `workspace.json`. Files are named after the workspace and their content, so a part that did not change
is not written again.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.errors import WorkspaceError
from maxrr.files import flush_folder, write_atomically
from maxrr.nets.own_training import TrainingFunction
from maxrr.nets.seeding import Network
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.state import Fitted
from maxrr.workspace import codec, commits
from maxrr.workspace.codec import Table
from maxrr.workspace.commits import EXTRACTOR, HEADS, SECRETS, TOMBSTONES, Root
from maxrr.workspace.errors import check_folder, content_of, damaged
from maxrr.workspace.folder import Folder
from maxrr.workspace.kinds import check_kinds
from maxrr.workspace.names import RECEIPT, RECEIPTS, ROWS, name_of
from maxrr.workspace.rows import HELD, Rows


class Store(Folder):
    """A folder, the model that its files hold, and the next state of it."""

    def __init__(self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0) -> None:
        super().__init__(folder, read_only=read_only, wait=wait)
        self.maps_large_tables = not read_only
        self.table: Table = np.zeros(0, np.dtype([("is", "u1")]))

    def read(self) -> Root:
        found = super().read()
        self.table, self.content = np.frombuffer(self.content, dtype=found.rows.layout.row), bytearray()
        return found

    def load(self, network: Network | None, train: TrainingFunction | None = None) -> Fitted:
        """The model that was read."""
        assert self.root is not None
        facts = self.root.facts
        try:
            found = codec.load(facts, self.table, self.parts, self.root.receipts, network, train)
            check_kinds(found)
            model_hash, content_hash = found.model_hash, found.records.content_hash
        except WorkspaceError:
            raise
        except Exception as error:  # whatever comes of content that is not ours
            raise damaged(self.folder / commits.NAME, f"no model can be made of what it says ({error})") from error
        self.parts = {}  # they would outlive what is forgotten next
        if model_hash != facts["model_hash"]:
            raise damaged(self.folder / commits.NAME, "the model does not have the hash that it names")
        if content_hash != facts["content_hash"]:
            raise damaged(self.folder / commits.NAME, "the records do not have the hash that it names")
        if self.read_only:
            self.table = self.table[:0]
        return found

    def commit(
        self, fitted: Fitted, receipt: Receipt | None, network: dict[str, Any], sources: dict[str, Any]
    ) -> None:  # fmt: skip
        """Make this the state of the workspace. If it raises, the state is the old one, or `recover` says."""
        before = self.root
        if not self.finished:  # or its rows would never be erased: the root remembers those of one request
            self.finish()
        state = 1 if before is None else before.state + 1
        receipts, staged = [] if before is None else list(before.receipts), None
        content = b"" if receipt is None else receipt.to_json().encode()
        if receipt is not None:
            receipts.append(hashlib.sha256(content).hexdigest())
            staged = name_of(RECEIPT, self.token, len(receipts))
            self.check_free(self.receipt_path(len(receipts)), content)
        files = self.write_parts(fitted)
        rows, table = self.write_rows(fitted, state)
        if staged is not None:
            (self.folder / RECEIPTS).mkdir(mode=0o700, exist_ok=True)
            write_atomically(self.folder / staged, content, flush_name=False)
        flush_folder(self.folder)  # every name, before the one that counts
        facts = {**network, **codec.facts_of(fitted), **sources}
        after = Root(self.token, state, files, rows, receipts, staged, facts)
        after.write(self.folder, fitted.key)
        self.finished = False
        table[list(rows.erased)] = np.zeros(1, table.dtype)[0]
        self.root, self.table = after, table

    def check_free(self, path: Path, content: bytes) -> None:
        """Refuse a request whose receipt would take the place of another: it would be lost."""
        check_folder(path.parent)
        if os.path.lexists(path) and content_of(path) != content:
            raise WorkspaceError(
                f"{path} is there already, of a later state than this, and would be lost: keep it somewhere else, and "
                "try again. Nothing was changed"
            )

    def write_parts(self, fitted: Fitted) -> dict[str, str]:
        """The parts that are not in a file yet; the names and hashes of all."""
        files = {}
        made = {
            EXTRACTOR: codec.extractor_bytes(fitted), HEADS: codec.heads_bytes(fitted),
            TOMBSTONES: codec.tombstones_bytes(fitted), SECRETS: codec.secret_bytes(fitted),
        }  # fmt: skip
        for part, content in made.items():
            digest = hashlib.sha256(content).hexdigest()
            name = name_of(part, self.token, digest[:16])
            if self.root is None or self.root.files.get(name) != digest:
                write_atomically(self.folder / name, content, private=True, flush_name=False)
            files[name] = digest
        return files

    def write_rows(self, fitted: Fitted, state: int) -> tuple[Rows, Table]:
        """The table of records: the file that is there with rows to erase and perhaps to add, or another."""
        before = self.root
        if before is not None and before.facts["layouts"] == fitted.layouts:
            rows, alive = before.rows, fitted.records.alive[: before.rows.count]
            held = np.zeros(len(fitted.records.ids), dtype=bool)
            held[fitted.heads.rows_] = True
            if np.array_equal(held[: rows.count], alive & ((self.table["is"] & HELD) > 0)):
                erased = np.flatnonzero((self.table["is"] > 0) & ~alive)
                if len(fitted.records.ids) == rows.count:
                    return rows.after(self.table, erased), self.table
                table = np.concatenate([self.table, codec.table_of(fitted, rows.layout, first=rows.count)])
                if codec.fits(fitted, rows.layout, first=rows.count):
                    rows.append(self.folder, table)
                    return rows.after(table, erased), table
        layout = codec.layout_of(fitted)
        table = codec.table_of(fitted, layout)
        rows = Rows.of(name_of(ROWS, self.token, state), layout, table)
        rows.write(self.folder, table)
        return rows, table
