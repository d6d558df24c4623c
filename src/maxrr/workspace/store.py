"""The files of a workspace: written before a commit, read after one.

There is one way to commit: new files are written under new names and flushed, rows are appended, and then a frame is
appended to the history. Only after that is the state taken over, and what it owes is done: rows are erased, replaced
files overwritten and deleted, receipts put into the log. Files are named after the workspace and their content, so that
a part that did not change is not written again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.errors import OlderCopy, WorkspaceError
from maxrr.evidence import SigningKey
from maxrr.files import flush_folder, to_plain, write_atomically
from maxrr.files.strict_json import json_text
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.unlearning.codec import facts_of, secrets_of, words_of
from maxrr.unlearning.commitment import Departure
from maxrr.unlearning.facts import Facts, NetworkFacts, Sources, Words
from maxrr.unlearning.forgetting import Member, NextState
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import codec, older_copies, states
from maxrr.workspace.codec import Ints, Table
from maxrr.workspace.errors import unfamiliar
from maxrr.workspace.folder import Folder
from maxrr.workspace.history import Frame, History
from maxrr.workspace.names import EXTRACTOR, HEADS, ROWS, SECRETS, history_name, name_of
from maxrr.workspace.older_copies import Position
from maxrr.workspace.rows import Rows
from maxrr.workspace.sealing import seal_proofs
from maxrr.workspace.states import Counts, Files

NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class NewAnswer:
    """An answered request that is to be committed.

    `rows` are where the records stood that left; `people` those of whom no record is left. All else is as in
    `maxrr.workspace.history.Answer`.
    """

    rows: Ints
    digest: str
    log_entry: str
    tombstones: Sequence[Sequence[bytes]]
    people: Mapping[str, Any]
    receipt: bytes
    proofs: bytes

    @classmethod
    def of(
        cls, change: NextState, member: Member, receipt: Receipt, text: str,
        departures: Mapping[int | str, Departure], key: SigningKey | None,
    ) -> "NewAnswer":  # fmt: skip
        """Collect what the history keeps of a request, while its records are still in memory."""
        assert change.before is not None
        rows, digest = member.plan.request.rows, change.after.receipts[receipt.number - 1]
        log_entry, content = digest, text.encode()
        if key is not None:
            handed = HandedReceipt.sign(receipt, key, text)
            log_entry, content = handed.sha256, handed.to_bytes()
        people = dict.fromkeys(receipt.subject_tombstones or (), (receipt.number, receipt.time))
        own = [departures[id_] for id_ in change.before.records.ids[rows].tolist()]
        proofs = seal_proofs(change.before.secret, receipt.number, own)
        return cls(rows, digest, log_entry, sorted(member.tombstones), people, content, proofs)


def parts_of_frame(
    answers: Sequence[NewAnswer], tombstones: Sequence[Sequence[bytes]], people: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a frame that answered requests fill; older tombstones and people come first."""
    return {
        "people": {**people, **{person: said for each in answers for person, said in each.people.items()}},
        "answers": [
            [each.digest, each.log_entry, len(each.tombstones), len(each.receipt), len(each.proofs)] for each in answers
        ],
        "tombstones": b"".join(
            part for each in [tombstones, *(each.tombstones for each in answers)] for stone in each for part in stone
        ),
        "receipts": b"".join(each.receipt for each in answers),
        "proofs": b"".join(each.proofs for each in answers),
    }


def counts_of(fitted: ModelState) -> Counts:
    """Count the records of a model by kind."""
    alive, support = fitted.records.alive, fitted.heads.support_
    return Counts(
        fitted.records.count, int(np.count_nonzero(fitted.core & alive)),
        int(np.count_nonzero(alive[support] & ~fitted.core[support])), len(fitted.waiting), len(fitted.tombstones),
        len(fitted.people), tuple(fitted.codes.tolist()),
    )  # fmt: skip


class Store(Folder):
    """A folder together with the model's state that it holds; commits the next state."""

    def __init__(
        self, folder: str | Path, *, read_only: bool = False, wait: float = 0.0, signing: SigningKey | None = None
    ) -> None:
        super().__init__(folder, read_only=read_only, wait=wait)
        self.signing = signing
        self.table: Table = np.zeros(0, np.dtype([("is", "u1")]))
        self.committed: ModelState | None = None  # the model as it was committed last

    def read(self) -> None:
        super().read()
        self.table, self.content = np.frombuffer(self.content, dtype=self.stored.rows.layout.row), bytearray()
        self.committed = None

    def load(self, network: Network | None, train: TrainingFunction | None = None) -> ModelState:
        """Make the model's state from what was read."""
        path = self.folder / self.stored.file_of(HEADS)
        try:
            found = codec.load(self, self.table, network, train)
            model_hash = found.model_hash
        except (WorkspaceError, MemoryError, OSError):
            raise
        except Exception as error:  # whatever comes of content that is not ours
            raise unfamiliar(path, f"no model can be made of what it says ({error})") from error
        self.parts, self.tombstones, self.people = {}, [], {}  # they would outlive what is forgotten
        if model_hash != self.facts.model_hash:
            raise unfamiliar(path, "the model does not have the hash that it names")
        if self.read_only:
            self.table = self.table[:0]
        self.committed = found
        return found

    def commit(
        self, fitted: ModelState, answers: Sequence[NewAnswer], network: NetworkFacts | None, sources: Sources
    ) -> None:
        """Make a state that of the workspace. If this raises, `recover` finds out whether it was committed."""
        if not self.is_finished:  # whatever was promised is done before more is
            self.finish()
        with older_copies.only_copy_at_work(self.token) as then:
            self.check_goes_on(fitted, then)
            self.append(fitted, answers, network, sources)
            self.keep_position(then)
        self.committed = fitted

    def append(
        self, fitted: ModelState, answers: Sequence[NewAnswer], network: NetworkFacts | None, sources: Sources
    ) -> None:
        """Write the new files, append the frame that names them, and take the new state over."""
        before, said, files = self.stored if self.has_state else None, None, None
        older: tuple[Sequence[Sequence[bytes]], Mapping[str, Any]] = ((), {})
        state = max(1, len(answers)) + self.state
        if not self.has_history:
            self.history = History(self.folder / history_name(self.token), fitted.key)
            older = sorted(fitted.tombstones), fitted.people  # in an order that says nothing
        if self.has_state and self.only_erases(fitted, answers, sources):
            rows, table, erased = self.stored.rows, self.table, np.concatenate([each.rows for each in answers])
        else:
            said = facts_of(fitted, network), words_of(fitted, sources)
            rows, table, erased = self.write_rows(fitted, state)
            files = Files(self.write_parts(fitted, *said), self.keys(), rows.file, rows.layout)
            flush_folder(self.folder)  # every name, before they count
        last_loss, logged = loss_of(fitted), 0 if before is None else before.last.logged
        if before is not None and last_loss != before.last.last_loss:  # another log begins
            self.log, logged = None, 0
        elif self.log is not None:
            logged = self.log.checkpoint.size
        frame = self.history.append(Frame(
            state, fitted.commitment, len(answers) + self.requests, len(table), to_plain(counts_of(fitted)), logged,
            last_loss, erased.tolist(), rows.changed(table, erased), None if files is None else asdict(files),
            **parts_of_frame(answers, *older),
        ))  # fmt: skip
        self.is_finished = False
        same_file = before is not None and rows.file == before.rows.file
        self.rows_to_erase = [*self.rows_to_erase, *frame.erased] if same_file else []
        table[erased] = np.zeros(1, table.dtype)[0]
        self.stored, self.has_state = states.state_after(before, self.token, fitted.key, [frame]), True
        self.table = table
        if said is not None:
            self.facts, self.words = said
        self.answers.extend(frame.answered())

    def check_goes_on(self, fitted: ModelState, then: Position) -> None:
        """Refuse a state that does not follow the latest position seen: another copy may have gone on."""
        last_loss = loss_of(fitted)
        goes_on = then.last_loss < last_loss and then <= self.latest_position  # or the accepted loss is another one
        if then.last_loss == last_loss and then.receipts <= len(fitted.receipts):
            goes_on = not then.last or fitted.receipts[then.receipts - 1] == then.last
        if not goes_on:
            raise OlderCopy(f"another copy of {self.folder} has other receipts than these. Nothing was changed")

    def only_erases(self, fitted: ModelState, answers: Sequence[NewAnswer], sources: Sources) -> bool:
        """Whether the commit erases rows and changes nothing else."""
        return (
            self.committed is not None and bool(answers)
            and sources == self.words.sources and self.keys() == self.stored.files.keys
            and codec.only_erases(self.committed, fitted)
        )  # fmt: skip

    def keys(self) -> list[str]:
        """Return all public keys that receipts were signed with, the present one included."""
        known = self.stored.files.keys if self.has_state else []
        own = [] if self.signing is None else [self.signing.public.raw.hex()]
        return known + [key for key in own if key not in known[-1:]]

    def write_parts(self, fitted: ModelState, facts: Facts, words: Words) -> dict[str, str]:
        """Write the parts whose content is new; return the names and hashes of all parts."""
        made = {SECRETS: json_text(secrets_of(fitted)).encode(), HEADS: codec.heads_bytes(fitted, facts, words)}
        files = {}
        if self.committed is None or self.committed.extractor is not fitted.extractor:
            made[EXTRACTOR] = codec.extractor_bytes(fitted)
        else:
            name = self.stored.file_of(EXTRACTOR)
            files[name] = self.stored.files.hashes[name]
        for part, content in made.items():
            digest = hashlib.sha256(content).hexdigest()
            name = name_of(part, self.token, digest[:16])
            if not self.has_state or self.stored.files.hashes.get(name) != digest:
                write_atomically(self.folder / name, content, private=True, flush_name=False)
            files[name] = digest
        return files

    def write_rows(self, fitted: ModelState, state: int) -> tuple[Rows, Table, Ints]:
        """Write new rows, to the present file if they fit it; return the file, the table, and the rows to erase."""
        if self.has_state and self.facts.layouts == fitted.layouts:
            rows, alive = self.stored.rows, fitted.records.alive[: self.stored.rows.count]
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


def loss_of(fitted: ModelState) -> str:
    """Return when a loss of receipts was last declared; empty if none was."""
    return fitted.losses[-1].time if fitted.losses else ""
