"""The files of a workspace: written before a commit, read after one.

A request that only erases is committed by a frame of the journal, all else by another `workspace.json`. Files are named
after the workspace and their content, so that a part that did not change is not written again.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.errors import OlderCopy, WorkspaceError
from maxrr.evidence import SigningKey
from maxrr.files import flush_folder, write_atomically
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.unlearning.state import Fitted
from maxrr.workspace import codec, commits, receipt_copies, seen
from maxrr.workspace.appending import Growing
from maxrr.workspace.carried_out import CarriedOut, appended
from maxrr.workspace.codec import Table
from maxrr.workspace.commits import EXTRACTOR, HEADS, PARTS, SECRETS, Root
from maxrr.workspace.entries import Answered, Entries, entries_of
from maxrr.workspace.errors import damaged
from maxrr.workspace.folder import Folder
from maxrr.workspace.journal import MOST, Frame, Journal
from maxrr.workspace.kinds import check_kinds
from maxrr.workspace.names import PROOFS, ROWS, SIGNED, TOMBSTONES, growing_name, name_of
from maxrr.workspace.rows import Rows


class Store(Folder):
    """A folder, the model that its files hold, and the next state of it."""

    def __init__(
        self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0, signing: SigningKey | None = None
    ) -> None:  # fmt: skip
        super().__init__(folder, read_only=read_only, wait=wait)
        self.signing = signing
        self.maps_large_tables = not read_only
        self.table: Table = np.zeros(0, np.dtype([("is", "u1")]))
        self.kept: Fitted | None = None  # the model as it was committed last

    def read(self) -> Root:
        found = super().read()
        self.table, self.content = np.frombuffer(self.content, dtype=found.rows.layout.row), bytearray()
        self.kept = None
        return found

    def load(self, network: Network | None, train: TrainingFunction | None = None) -> Fitted:
        """The model that was read."""
        assert self.root is not None
        facts = self.root.facts
        try:
            found = codec.load(facts, self.table, self.parts, self.entries, network, train)
            check_kinds(found)
            model_hash = found.model_hash
        except WorkspaceError:
            raise
        except Exception as error:  # whatever comes of content that is not ours
            raise damaged(self.folder / commits.NAME, f"no model can be made of what it says ({error})") from error
        self.parts, self.entries = {}, Entries([], {}, self.entries.answered)  # they would outlive what is forgotten
        if model_hash != facts["model_hash"]:
            raise damaged(self.folder / commits.NAME, "the model does not have the hash that it names")
        if self.read_only:
            self.table = self.table[:0]
        self.kept = found
        return found

    def commit(
        self, fitted: Fitted, done: Sequence[CarriedOut], network: dict[str, Any] | None, sources: dict[str, Any]
    ) -> None:  # fmt: skip
        """Make this the state of the workspace. If it raises, the state is the old one, or `recover` says."""
        before = self.root
        if not self.finished:  # or its rows would never be erased: the root remembers those of one commit
            self.finish()
        if done:
            first = 1 if before is None else before.requests + 1
            receipt_copies.check_places(self.folder, first, (each.line for each in done))
        with seen.alone(self.token):
            self.check_goes_on(fitted)
            if self.is_appended(fitted, done, sources):
                answered = self.append(fitted, done)
            else:
                answered = self.replace(fitted, done, network, sources)
            self.entries.answered.extend(answered)
            seen.keep(self.token, replace(self.now, root=""))  # it is not in the log yet
        self.unhanded = [each.line for each in done]
        self.kept = fitted

    def check_goes_on(self, fitted: Fitted) -> None:
        """Refuse a state that does not go on from the latest that was seen: another copy may have been faster."""
        then, since = seen.latest(self.token), fitted.losses[-1].time if fitted.losses else ""
        goes_on = then.since < since and then <= self.then  # or the loss that was accepted is another one
        if then.since == since and then.receipts <= len(fitted.receipts):
            goes_on = not then.last or fitted.receipts[then.receipts - 1] == then.last
        if not goes_on:
            raise OlderCopy(f"another copy of {self.folder} has other receipts than these. Nothing was changed")

    def is_appended(self, fitted: Fitted, done: Sequence[CarriedOut], sources: dict[str, Any]) -> bool:
        """Whether the journal can say all that has changed."""
        return (
            self.root is not None and self.kept is not None and bool(done)
            and sources == commits.sources_in(self.root.facts) and self.keys() == self.root.keys
            and codec.only_erases(self.kept, fitted)
        )  # fmt: skip

    def keys(self) -> list[str]:
        """The public keys that receipts are signed with, this time and before."""
        known = [] if self.root is None else self.root.keys
        own = [] if self.signing is None else [self.signing.public.raw.hex()]
        return known + [key for key in own if key not in known[-1:]]

    def fold(self, key: bytes) -> None:
        """Write the present state as a root, with an empty journal: nothing else changes."""
        assert self.root is not None
        folded = self.root.sealed(key)
        assert folded.seal is not None
        journal, self.tidy = Journal(self.folder / folded.journal, key, folded.seal[0]), False
        journal.create()
        flush_folder(self.folder)
        folded.write(self.folder)
        self.root, self.journal = folded, journal

    def append(self, fitted: Fitted, done: Sequence[CarriedOut]) -> list[Answered]:
        """Commit by the journal."""
        if self.journal is not None and self.journal.frames >= MOST:
            self.fold(fitted.key)
        before, journal = self.root, self.journal
        assert before is not None
        assert journal is not None
        contents, answered = appended(done, self.growing[SIGNED].length, self.growing[PROOFS].length)
        erased = np.concatenate([each.rows for each in done])
        blocks = before.rows.changed(self.table, erased)
        growing = {part: self.growing[part].append(content) for part, content in contents.items()}
        grown = {part: file.extent for part, file in growing.items()}
        frame = Frame(
            before.requests + len(done), self.logged, grown, tuple(erased.tolist()), blocks,
            fitted.commitment,
        )  # fmt: skip
        journal.append(frame)
        self.finished = False
        self.root, self.growing = before.after([frame]), growing
        self.table[erased] = np.zeros(1, self.table.dtype)[0]
        return answered

    def replace(
        self, fitted: Fitted, done: Sequence[CarriedOut], network: dict[str, Any] | None, sources: dict[str, Any]
    ) -> list[Answered]:  # fmt: skip
        """Commit by another root, with a journal of its own."""
        before, self.tidy = self.root, False
        state = max(1, len(done)) + (0 if before is None else before.state)
        files = self.write_parts(fitted)
        rows, table = self.write_rows(fitted, state)
        if before is None:
            contents, answered = appended(done, 0, 0)
            contents[TOMBSTONES] = entries_of(fitted.tombstones.stones, fitted.people) + contents[TOMBSTONES]
            places = {part: self.folder / growing_name(part, self.token) for part in contents}
            growing = {part: Growing.created(places[part], content) for part, content in contents.items()}
        else:
            contents, answered = appended(done, self.growing[SIGNED].length, self.growing[PROOFS].length)
            growing = {part: self.growing[part].append(content) for part, content in contents.items()}
        facts = {"network": network, **codec.facts_of(fitted), **sources}
        requests = len(done) + (0 if before is None else before.requests)
        grown = {part: file.extent for part, file in growing.items()}
        after = Root(self.token, state, files, rows, grown, requests, self.logged, self.keys(), facts)
        if before is not None and before.origin != after.origin:  # another log begins
            after, self.log = replace(after, logged=0), None
        after = after.sealed(fitted.key)
        assert after.seal is not None
        journal = Journal(self.folder / after.journal, fitted.key, after.seal[0])
        journal.create()
        flush_folder(self.folder)  # every name, before the one that counts
        after.write(self.folder)
        self.finished = False
        table[list(rows.erased)] = np.zeros(1, table.dtype)[0]
        self.root, self.table, self.growing, self.journal = after, table, growing, journal
        return answered

    def write_parts(self, fitted: Fitted) -> dict[str, str]:
        """The parts that are not in a file yet; the names and hashes of all. What has not changed is not even made."""
        files, before = {}, self.kept
        made: dict[str, Callable[[Fitted], bytes]] = {SECRETS: codec.secret_bytes}
        if before is None or before.extractor is not fitted.extractor:
            made[EXTRACTOR] = codec.extractor_bytes
        if before is None or not fitted.heads.has_heads_of(before.heads):
            made[HEADS] = codec.heads_bytes
        for part in PARTS:
            if part not in made:
                assert self.root is not None
                name = self.root.file_of(part)
                files[name] = self.root.files[name]
                continue
            content = made[part](fitted)
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

    @property
    def logged(self) -> int:
        """How many receipts are in the log for sure."""
        known = 0 if self.root is None else self.root.logged
        return known if self.log is None else self.log.checkpoint.size
