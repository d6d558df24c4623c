"""The files of a workspace: written before a commit, read after one.

There is one way to commit: new files are written under new names and flushed, rows are appended, and then a frame is
appended to the history. Only after that is the state taken over, and what it owes is done: rows are erased, replaced
files overwritten and deleted, receipts put into the log. Files are named after the workspace and their content, so that
a part that did not change is not written again.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from maxrr.errors import OlderCopy, WorkspaceError
from maxrr.evidence import SigningKey
from maxrr.files import flush_folder, write_atomically
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.unlearning.codec import facts_of, words_of
from maxrr.unlearning.facts import Facts, NetworkFacts, Sources, Words
from maxrr.unlearning.state import Fitted
from maxrr.workspace import codec, seen, states
from maxrr.workspace.carried_out import CarriedOut, appended
from maxrr.workspace.codec import Ints, Table
from maxrr.workspace.entries import Entries, entries_of
from maxrr.workspace.errors import damaged
from maxrr.workspace.folder import Folder
from maxrr.workspace.history import Frame, History
from maxrr.workspace.names import EXTRACTOR, HEADS, PARTS, ROWS, SECRETS, history_name, name_of
from maxrr.workspace.rows import Rows
from maxrr.workspace.states import Base, Root

NO_ROWS = np.zeros(0, np.int64)


class Store(Folder):
    """A folder, the model that its files hold, and the next state of it."""

    def __init__(
        self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0, signing: SigningKey | None = None
    ) -> None:  # fmt: skip
        super().__init__(folder, read_only=read_only, wait=wait)
        self.signing = signing
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
        path = self.folder / self.root.file_of(HEADS)
        try:
            found = codec.load(
                self.facts, self.words, self.table, self.parts, self.entries, self.root.commitment, network, train
            )  # fmt: skip
            model_hash = found.model_hash
        except WorkspaceError:
            raise
        except Exception as error:  # whatever comes of content that is not ours
            raise damaged(path, f"no model can be made of what it says ({error})") from error
        self.parts, self.entries = {}, Entries([], {}, self.entries.answered)  # they would outlive what is forgotten
        if model_hash != self.facts.model_hash:
            raise damaged(path, "the model does not have the hash that it names")
        if self.read_only:
            self.table = self.table[:0]
        self.kept = found
        return found

    def commit(
        self, fitted: Fitted, done: Sequence[CarriedOut], network: NetworkFacts | None, sources: Sources
    ) -> None:  # fmt: skip
        """Make this the state of the workspace. If it raises, the state is the old one, or `recover` says."""
        if not self.finished:  # whatever is owed is done before more is
            self.finish()
        with seen.alone(self.token):
            self.check_goes_on(fitted)
            self.append(fitted, done, network, sources)
            seen.keep(self.token, replace(self.now, root=""))  # it is not in the log yet
        self.kept = fitted

    def append(
        self, fitted: Fitted, done: Sequence[CarriedOut], network: NetworkFacts | None, sources: Sources
    ) -> None:  # fmt: skip
        """Write what the history will name, append the frame that says so, and take it over."""
        before, said, base, known = self.root, None, None, b""
        state = max(1, len(done)) + (0 if before is None else before.state)
        if self.history is None:
            self.history = History(self.folder / history_name(self.token), fitted.key)
            known = entries_of(fitted.tombstones.stones, fitted.people)
        if before is not None and self.only_erases(fitted, done, sources):
            rows, table, erased = before.rows, self.table, np.concatenate([each.rows for each in done])
        else:
            self.tidy = False
            said = facts_of(fitted, network), words_of(fitted, sources)
            rows, table, erased = self.write_rows(fitted, state)
            since = fitted.losses[-1].time if fitted.losses else ""
            base = Base(self.write_parts(fitted, *said), self.keys(), since, rows.file, rows.layout)
            flush_folder(self.folder)  # every name, before they count
        if self.history.in_doubt:
            self.history.settle()
        blobs, answered = appended(done, self.history.length, known)
        frame = Frame(
            state, fitted.commitment, len(done) + (0 if before is None else before.requests), len(table), self.logged,
            erased.tolist(), rows.changed(table, erased), None if base is None else asdict(base), **blobs,
        )  # fmt: skip
        if base is not None and before is not None and base.since != before.since:  # another log begins
            frame, self.log = replace(frame, logged=0), None
        self.history.append(frame)
        self.finished = False
        self.owed = [*self.owed, *frame.erased] if before is not None and rows.file == before.rows.file else []
        table[erased] = np.zeros(1, table.dtype)[0]
        after = states.after(before, self.token, fitted.key, [frame])
        self.root, self.table = after, table
        if said is not None:
            self.facts, self.words = said
        self.entries.answered.extend(answered)

    def check_goes_on(self, fitted: Fitted) -> None:
        """Refuse a state that does not go on from the latest that was seen: another copy may have been faster."""
        then, since = seen.latest(self.token), fitted.losses[-1].time if fitted.losses else ""
        goes_on = then.since < since and then <= self.then  # or the loss that was accepted is another one
        if then.since == since and then.receipts <= len(fitted.receipts):
            goes_on = not then.last or fitted.receipts[then.receipts - 1] == then.last
        if not goes_on:
            raise OlderCopy(f"another copy of {self.folder} has other receipts than these. Nothing was changed")

    def only_erases(self, fitted: Fitted, done: Sequence[CarriedOut], sources: Sources) -> bool:
        """Whether rows are all that has changed."""
        return (
            self.root is not None and self.kept is not None and bool(done)
            and sources == self.words.sources and self.keys() == self.root.keys
            and codec.only_erases(self.kept, fitted)
        )  # fmt: skip

    def keys(self) -> list[str]:
        """The public keys that receipts are signed with, this time and before."""
        known = [] if self.root is None else self.root.keys
        own = [] if self.signing is None else [self.signing.public.raw.hex()]
        return known + [key for key in own if key not in known[-1:]]

    def write_parts(self, fitted: Fitted, facts: Facts, words: Words) -> dict[str, str]:
        """Write the parts that are not in a file yet; the names and hashes of all."""
        made: dict[str, Callable[[], bytes]] = {
            SECRETS: lambda: codec.secret_bytes(fitted), HEADS: lambda: codec.heads_bytes(fitted, facts, words),
        }  # fmt: skip
        if self.kept is None or self.kept.extractor is not fitted.extractor:
            made[EXTRACTOR] = lambda: codec.extractor_bytes(fitted)
        files = {}
        for part in PARTS:
            if part not in made:
                assert self.root is not None
                name = self.root.file_of(part)
                files[name] = self.root.files[name]
                continue
            content = made[part]()
            digest = hashlib.sha256(content).hexdigest()
            name = name_of(part, self.token, digest[:16])
            if self.root is None or self.root.files.get(name) != digest:
                write_atomically(self.folder / name, content, private=True, flush_name=False)
            files[name] = digest
        return files

    def write_rows(self, fitted: Fitted, state: int) -> tuple[Rows, Table, Ints]:
        """The table of records, and which of its rows are to be erased: in the file that is there, or in another."""
        before = self.root
        if before is not None and self.facts.layouts == fitted.layouts:
            rows, alive = before.rows, fitted.records.alive[: before.rows.count]
            erased = np.flatnonzero((self.table["is"] > 0) & ~alive)
            if len(fitted.records.ids) == rows.count:
                return rows, self.table, erased
            table = np.concatenate([self.table, codec.table_of(fitted, rows.layout, first=rows.count)])
            if codec.fits(fitted, rows.layout, first=rows.count):
                rows.append(self.folder, table)
                return rows, table, erased
        layout = codec.layout_of(fitted)
        rows = Rows(name_of(ROWS, self.token, state), layout, 0, [], fitted.key)
        table = codec.table_of(fitted, layout)
        rows.write(self.folder, table)
        return rows, table, NO_ROWS

    @property
    def logged(self) -> int:
        """How many receipts are in the log for sure."""
        known = 0 if self.root is None else self.root.logged
        return known if self.log is None else self.log.checkpoint.size
