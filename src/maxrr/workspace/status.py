"""What is in a workspace, and what it still holds of what is not: from its files alone, without a model."""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from maxrr import plain_text
from maxrr.errors import WorkspaceError
from maxrr.files import to_plain
from maxrr.plain_text import Shown
from maxrr.unlearning.receipts import NOTHING, HeadCertificate, Receipt, claim_of, depending, left_in_extractor
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace.errors import damaged
from maxrr.workspace.exports import Export, judged, state_under
from maxrr.workspace.folder import Folder
from maxrr.workspace.names import HEADS, history_of
from maxrr.workspace.rows import ALIVE, CORE, LATE, WAITING
from maxrr.workspace.states import Root


@dataclass(frozen=True)
class Status(Shown):
    """What is in a workspace. `print` shows it in words.

    Attributes
    ----------
    folder : str
        The folder.
    token : str
        What names the workspace among others, as `Workspace.token`.
    records : int
        How many records there are: the sum of the next three.
    core, influential, free : int
        How many of them are core, influential (and not core), and free.
    classes : list of str
        The names of the classes that the heads tell apart.
    requests : int
        How many requests were carried out, additions included.
    added_since_fit : int
        How many of the records were added after the last fit: the extractor was trained on none of them.
    waiting_for_fit : int
        How many of these the rule makes core at the next fit.
    forgotten : int
        How many tombstones there are: one for each record that was forgotten or replaced.
    held_about_forgotten : str
        What is still known of a forgotten record, and why.
    core_left_in_extractor : int
        How many forgotten core records the extractor was trained on and still keeps. If there are any, an audit is due.
    core_depended_on : str
        What the choice of the core depended on, in a sentence.
    heads : int
        How many heads there are.
    decided : int
        How many of them are decided, as `HeadCertificate.decided`.
    bytes_claim : str
        What that lets one claim of the heads' bytes, as `Receipt.bytes_claim`.
    conditions : list of str
        What exactness is conditional on, one sentence each.
    unconditional : bool
        Whether there are no conditions.
    overrides : list of dict
        Each time that values of forgotten records were let in under other ids: `time`, how many `records`, and the
        `reason`.
    model_hash : str
        The hash of extractor and heads, as `MaxRR.model_hash_`.
    commitment : str
        The commitment to the retained records, as on receipts.
    source : dict of str to str
        Where the records of the last fit come from, as `Workspace.create` was told.
    added_sources : list of dict
        Where those come from that were added, as `Workspace.add` was told.
    exports : list of Export
        The copies of the model that were made for others, from the first; those that are out of date say so.
    bytes : int
        The size of all files together.
    class_weight : dict of str to float
        How much the records of a class count in the heads, where it is not 1: by its name, or by "hmac:" and the HMAC
        of its name where it has no records any more.
    weighted_records : bool
        Whether each record has a weight of its own.
    embeddings : bool
        Whether the records are features already, so that there is no extractor.
    shards : int
        How many extractors there are, each trained on a shard of the core.
    untrained_shards : int
        How many of them are not trained, and keep their first weights: their shards have no core records of two
        classes.
    """

    folder: str
    token: str
    records: int
    core: int
    influential: int
    free: int
    classes: list[str]
    requests: int
    added_since_fit: int
    waiting_for_fit: int
    forgotten: int
    held_about_forgotten: str
    core_left_in_extractor: int
    core_depended_on: str
    heads: int
    decided: int
    bytes_claim: str
    conditions: list[str]
    unconditional: bool
    overrides: list[dict[str, Any]]
    model_hash: str
    commitment: str
    source: dict[str, str]
    added_sources: list[dict[str, str]]
    exports: list[Export]
    bytes: int
    class_weight: dict[str, float] = field(default_factory=dict)
    weighted_records: bool = False
    embeddings: bool = False
    shards: int = 1
    untrained_shards: int = 0

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is there in words, each fact with its name."""
        count = plain_text.count
        sources = (self.source, *self.added_sources)
        gone, requests = count(self.forgotten, "record"), count(self.requests, "request")
        return [
            ("workspace", f"{self.folder}, {plain_text.size(self.bytes)}"),
            ("records from", "; ".join(each.get("name", "not known") for each in sources)),
            ("classes", ", ".join(self.classes)),
            *([("weights", weights)] if (weights := self._weights()) else []),
            ("model", f"{self.model_hash[:12]}…"),
            *([("extractors", self._extractors())] if self.shards > 1 else []),
            ("exact", self._exactness()),
            *([("added since the fit", self._aged())] if self.added_since_fit else []),
            ("bytes of heads", f"{self.bytes_claim}; {self.decided} of {count(self.heads, 'head')} decided"),
            ("forgotten", f"{gone}, or old values of them; {requests} in all, additions included"),
            ("kept of these", self.held_about_forgotten),
            *(("let in", f"{entry['time'][:10]}: {count(entry['records'], 'record')} with values of forgotten ones: "
                         f"{entry['reason']}") for entry in self.overrides),
        ]  # fmt: skip

    @property
    def due(self) -> str:
        """What is left to do about what the extractor keeps of forgotten records; empty where it keeps nothing."""
        if not self.core_left_in_extractor:
            return ""
        return (
            f"{left_in_extractor(self.core_left_in_extractor)} `maxrr audit {self.folder} NUMBER` attacks the model; "
            "asking for the records again with --policy retrain rids it of them."
        )

    def _exactness(self) -> str:
        """Whether the model is that of a fit on the retained records, and on what that depends."""
        if self.bytes_claim == NOTHING:
            return f"no: {'; '.join(self.conditions)}"
        return depending(self.conditions) if self.conditions else f"{depending([])}: {self.core_depended_on}"

    def _extractors(self) -> str:
        """How many extractors there are, and how many of them could not be trained."""
        said, bare = f"{self.shards}, each trained on a shard of the core", self.untrained_shards
        if not bare:
            return said
        keeps = "1 keeps its first weights: its shard has" if bare == 1 else (
            f"{bare:,} keep their first weights: their shards have"
        )  # fmt: skip
        return f"{said}; {keeps} no records of two classes"

    def _weights(self) -> str:
        """How much records count in the heads; nothing where all count the same."""
        said = [f"{name} {weight:g}" for name, weight in self.class_weight.items() if name in self.classes]
        gone = len(self.class_weight) - len(said)
        said += [plain_text.count(gone, "class without records", "classes without records")] if gone else []
        said += ["every record its own"] if self.weighted_records else []
        return ", ".join(said)

    def _aged(self) -> str:
        """How far the core has aged: what the extractor has not seen."""
        late, waiting, command = self.added_since_fit, self.waiting_for_fit, f"maxrr refit {self.folder}"
        share = plain_text.percent(late / self.records, 1)
        said = f"{plain_text.count(late, 'record')}, {share} of all"
        if self.embeddings:
            return f"{said}: the heads have them, and there is no extractor that would have to see them"
        said += ": the extractor has seen none of them"
        if not waiting:
            return f"{said}; `{command}` chooses the core anew"
        return f"{said}; {waiting:,} {'becomes' if waiting == 1 else 'become'} core by `{command}`"

    def __str__(self) -> str:
        kinds = ", ".join(f"{getattr(self, kind):,} {kind}" for kind in ("core", "influential", "free"))
        said = plain_text.facts([*self.facts, ("records", f"{self.records:,}: {kinds}")])
        return f"{said}\n{self.due}" if self.due else said

    def __repr__(self) -> str:
        return f"<Status of {self.folder}: {plain_text.count(self.records, 'record')}>"


class Counts(NamedTuple):
    """How many records there are of each kind, and the names of the classes that the heads tell apart.

    `late` were added after the last fit, and of these `waiting` are core by the rule from the next fit on. `people` are
    those of whom no record is left.
    """

    records: int
    core: int
    influential: int
    forgotten: int
    classes: list[str]
    late: int
    waiting: int
    people: int


@dataclass(frozen=True)
class Overview:
    """What is in a workspace, and what was done there.

    Attributes
    ----------
    status : Status
        What is in the workspace.
    handed : tuple of HandedReceipt
        The receipts of all requests, from the first, as they were handed out.
    """

    status: Status
    handed: tuple[HandedReceipt, ...]

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What these receipts say."""
        return tuple(each.receipt for each in self.handed)


def overview(folder: str | Path, *, wait: float = 0.0, newest: bool = False) -> Overview:
    """What is in a workspace. Every file is checked against its hash, and no model is made of them.

    `Workspace.status` says the same of a workspace that is open.

    Parameters
    ----------
    folder : str or Path
        The folder of the workspace.
    wait : float
        Seconds to wait for another process that works in it; 0 by default.
    newest : bool
        Whether to refuse an older copy with `maxrr.errors.OlderCopy`, instead of a warning. False by default.

    Returns
    -------
    Overview
        The status and the receipts.

    Raises
    ------
    WorkspaceError
        The folder is not a workspace, is in use, or a file is not as it was written.

    Warns
    -----
    OlderCopyWarning
        Somebody has put back an older copy of the workspace.
    """
    place = Path(folder)
    history_of(place)
    files = Folder(place, read_only=True, wait=wait)
    try:
        found = files.open()
        if newest:
            files.check_newest()
        files.look_back()
        try:
            counts = counted(found, files)
            now = state_under(found.rows.key, files.facts.model_hash, found.commitment)
            numbers = range(1, found.requests + 1)
            handed = tuple(HandedReceipt.from_bytes(files.receipt(number)) for number in numbers)
            exports = judged(found.exports, now, [each.receipt for each in handed])
            status = status_of(found, files, counts, exports)
        except WorkspaceError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, struct.error) as error:
            path = files.folder / found.file_of(HEADS)
            raise damaged(path, f"it does not describe a model ({error})") from None
        return Overview(status, handed)
    finally:
        files.close()


def counted(found: Root, files: Folder) -> Counts:
    """The records by kind, as the files say."""
    size = found.rows.layout.size
    kinds, *label = (files.content[place::size] for place in range(5))  # what each row is, and its label
    alive = sum(kind & ALIVE > 0 for kind in kinds)
    core = sum(kind & CORE > 0 for kind in kinds if kind & ALIVE)
    shaping = sum(kinds[row] & (ALIVE | CORE) == ALIVE for row in influential_rows(files.parts[HEADS]))
    used = {bytes(one) for kind, *one in zip(kinds, *label, strict=True) if kind & ALIVE}
    names = files.words.class_names
    classes = [names[number] for number in sorted(int.from_bytes(one, "little") for one in used)]
    late, waiting = (sum(kind & wanted > 0 for kind in kinds) for wanted in (LATE, WAITING))
    return Counts(
        alive, core, shaping, len(set(files.entries.stones)), classes, late, waiting, len(files.entries.people)
    )


def influential_rows(content: bytes) -> set[int]:
    """The rows on the margin of or inside any head, of a file of heads.

    The file says in front where they lie (https://github.com/huggingface/safetensors); reading it with the package
    needs NumPy, which takes longer to import than all else here.
    """
    start = 8 + int.from_bytes(content[:8], "little")
    rows: set[int] = set()
    for name, part in json.loads(content[8:start]).items():
        if name.endswith((".on_margin", ".inside")):
            if part["dtype"] != "I64":
                raise ValueError(f"{name} are no rows")
            first, last = part["data_offsets"]
            rows.update(row for (row,) in struct.iter_unpack("<Q", content[start + first : start + last]))
    return rows


def status_of(found: Root, files: Folder, counts: Counts, exports: list[Export]) -> Status:
    """The status of a workspace whose files were read."""
    facts, words = files.facts, files.words
    depends, left = facts.conditions(counts.waiting), len(facts.left)
    heads = [HeadCertificate.of("", head.certificate) for head in facts.heads]
    retained_alone = not (left or facts.technique)
    about = (
        "nothing was forgotten yet"
        if not counts.forgotten
        else f"a tombstone for each of {counts.forgotten:,} forgotten or replaced records: three HMACs (of its id, of "
        "the record, of its values) under the key of this workspace. They recognise a request for what is gone, and "
        "data that brings it back, and tell nothing to those who do not hold the record"
    )
    if counts.people:
        people = "1 person" if counts.people == 1 else f"{counts.people:,} people"
        about += f"; and an HMAC of the subject id of {people} of whom no record is left"
    return Status(
        folder=str(files.folder), token=found.token, records=counts.records, core=counts.core,
        influential=counts.influential, free=counts.records - counts.core - counts.influential, classes=counts.classes,
        requests=found.requests, added_since_fit=counts.late, waiting_for_fit=counts.waiting,
        forgotten=counts.forgotten, held_about_forgotten=about,
        core_left_in_extractor=left, core_depended_on=facts.depended_on,
        heads=len(heads), decided=sum(head.decided for head in heads),
        bytes_claim=claim_of("exact" if retained_alone else "approximate", heads, facts.recipe),
        conditions=depends, unconditional=not depends, overrides=to_plain(words.overrides),
        model_hash=facts.model_hash, commitment=found.commitment, source=dict(words.sources[0]),
        added_sources=to_plain(words.sources[1:]), exports=exports, bytes=bytes_in(files.folder),
        class_weight=dict(words.class_weight), weighted_records=found.rows.layout.weights is not None,
        embeddings=facts.network is not None and facts.network.maker == "maxrr.nets:NoNetwork",
        shards=facts.shards, untrained_shards=len(facts.untrained),
    )  # fmt: skip


def bytes_in(folder: Path) -> int:
    """The size of all files in a folder. Others may be changing them meanwhile, if it is open for reading only."""
    while True:
        try:
            return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        except FileNotFoundError:
            if not folder.exists():
                raise
