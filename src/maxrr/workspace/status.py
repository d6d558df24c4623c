"""What is in a workspace, and what it still holds of what is not: from its files alone, without a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from maxrr import plain_text
from maxrr.files import from_plain
from maxrr.plain_text import Shown, count
from maxrr.unlearning.actions import Guarantee
from maxrr.unlearning.receipts import NOTHING, HeadCertificate, Receipt, claim_of, depending, left_in_extractor
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import states
from maxrr.workspace.errors import unfamiliar
from maxrr.workspace.exports import Export, describe_exports, state_under, unseal_notes
from maxrr.workspace.folder import Folder
from maxrr.workspace.names import HEADS, history_of
from maxrr.workspace.rows import ALIVE, CORE
from maxrr.workspace.states import Counts


@dataclass(frozen=True)
class Status(Shown):
    """What is in a workspace. `print` shows it in words.

    Attributes
    ----------
    folder : str
        The folder.
    token : str
        What names the workspace among others, in the names of its files and of its log.
    records : int
        How many records there are: the sum of the next three.
    core, influential, free : int
        How many of them are core, influential (and not core), and free.
    people : dict or None
        How many people the records are about, by the kind of record that is the most work to forget: "core",
        "influential", "free". None where the records do not say whom they are about.
    waiting_for_fit : int
        How many records that were added after the last fit become core at the next one.
    classes : list of str
        The names of the classes that the heads tell apart.
    requests : int
        How many requests were carried out, additions included.
    forgotten : int
        How many tombstones there are: one for each record that was forgotten or replaced.
    core_left_in_extractor : int
        How many forgotten core records the extractor was trained on and still keeps. If there are any, an audit is due.
    bytes_claim : str
        What can be claimed of the heads' bytes, as `Receipt.bytes_claim`.
    conditions : list of str
        What exactness is conditional on, one sentence each; none where it is unconditional.
    model_hash : str
        The hash of extractor and heads, as `MaxRR.model_hash_`.
    commitment : str
        The commitment to the retained records, as on receipts.
    sources : list of dict
        Where the records come from: those of the last fit, as `Workspace.create` was told, then those of each addition.
    exports : list of Export
        The copies of the model that were made for others, from the first; those that are out of date say so.
    facts : dict of str to str
        All of that in words, and what else is known: what is kept of the forgotten, why copies of forgotten values
        were let in, and what is due where the extractor keeps something of forgotten records.
    """

    folder: str
    token: str
    records: int
    core: int
    influential: int
    free: int
    people: dict[str, int] | None
    waiting_for_fit: int
    classes: list[str]
    requests: int
    forgotten: int
    core_left_in_extractor: int
    bytes_claim: str
    conditions: list[str]
    model_hash: str
    commitment: str
    sources: list[dict[str, str]]
    exports: list[Export]
    facts: dict[str, str]

    def __str__(self) -> str:
        kinds = {"core": self.core, "influential": self.influential, "free": self.free}
        said = [*self.facts.items(), ("records", by_kind(kinds))]
        return plain_text.facts(said if self.people is None else [*said, ("people", by_kind(self.people))])

    def __repr__(self) -> str:
        return f"<Status of {self.folder}: {count(self.records, 'record')}>"


def by_kind(numbers: Mapping[str, int]) -> str:
    """Write the total and the number of each kind."""
    return f"{sum(numbers.values()):,}: {', '.join(f'{number:,} {kind}' for kind, number in numbers.items())}"


class Overview(NamedTuple):
    """What is in a workspace, and the receipts of all requests, from the first, as they were handed out."""

    status: Status
    handed: tuple[HandedReceipt, ...]

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What these receipts say."""
        return tuple(each.receipt for each in self.handed)


def overview(folder: str | Path, *, newest: bool = False) -> Overview:
    """What is in a workspace. Every file is checked against its hash, and no model is made of them.

    `Workspace.status` says the same of a workspace that is open.

    Parameters
    ----------
    folder : str or Path
        The folder of the workspace.
    newest : bool
        Whether to refuse an older copy with `maxrr.errors.OlderCopy`, instead of a warning. False by default.

    Returns
    -------
    Overview
        The `status`, and the receipts, as they were `handed` out.

    Raises
    ------
    WorkspaceError
        The folder is not a workspace, is in use, or a file is not as it was written.

    Warns
    -----
    OlderCopyWarning
        Somebody has put back an older copy of the workspace.
    """
    history_of(Path(folder))
    files = Folder(folder, read_only=True)
    files.open()
    if newest:
        files.check_newest()
    files.warn_if_older()
    return Overview(status_of(files, people_in(files)), handed_in(files))


def handed_in(files: Folder) -> tuple[HandedReceipt, ...]:
    """Read the receipts of all requests, as they were handed out."""
    return tuple(HandedReceipt.from_bytes(files.receipt(number)) for number in range(1, files.requests + 1))


def exports_of(files: Folder) -> list[Export]:
    """Describe the exports that the history notes."""
    key, stored = files.stored.rows.key, files.stored
    now = state_under(key, files.facts.model_hash, stored.last.commitment)
    receipts = [each.receipt for each in handed_in(files)] if stored.exports else ()
    return describe_exports(unseal_notes(key, stored.exports), now, receipts)


def people_in(files: Folder) -> dict[str, int] | None:
    """Count the people in the rows that were read, by the kind of record that is the most work to forget."""
    rows = files.stored.rows
    if rows.layout.subjects is None:
        return None
    shaping = states.influential_rows(files.folder / files.stored.file_of(HEADS), files.parts[HEADS])
    core, influential, free = set[bytes](), set[bytes](), set[bytes]()
    for row, (kind, person) in enumerate(rows.kinds_and_people(files.content)):
        if kind & CORE:
            core.add(person)
        elif kind & ALIVE:
            (influential if row in shaping else free).add(person)
    return {"core": len(core), "influential": len(influential - core), "free": len(free - influential - core)}


def status_of(files: Folder, people: dict[str, int] | None) -> Status:
    """Make the status of a workspace from its files, and from the number of people by kind."""
    facts, words, last = files.facts, files.words, files.stored.last
    counts = from_plain(Counts, last.counts)
    conditions, left = facts.conditions(counts.waiting), len(facts.in_extractor)
    heads = [HeadCertificate.of("", head.certificate) for head in facts.heads]
    claim = claim_of(Guarantee.approximate if left or facts.technique else Guarantee.refit, heads, facts.recipe)
    try:
        classes = [words.class_names[number] for number in counts.classes]
    except IndexError:
        raise unfamiliar(files.folder / files.stored.file_of(HEADS), "it does not have all classes") from None
    exactness = depending(conditions) if conditions else f"{depending([])}: {facts.depended_on}"
    told = {
        "workspace": str(files.folder),
        "records from": "; ".join(each.get("source", "not known") for each in words.sources),
        "classes": ", ".join(classes),
        "model": f"{facts.model_hash[:12]}…",
        "exact": f"no: {'; '.join(conditions)}" if claim == NOTHING else exactness,
        "wait for the next fit": "" if not counts.waiting else (
            f"{count(counts.waiting, 'added record becomes', 'added records become')} core by "
            f"`maxrr refit {files.folder}`; the heads have them already"
        ),
        "bytes of heads": f"{claim}; {sum(head.decided for head in heads)} of {count(len(heads), 'head')} decided",
        "forgotten": f"{count(counts.forgotten, 'record')}, or old values of them; "
        f"{count(last.requests, 'request')} in all, additions included",
        "kept of these": held_about_forgotten(counts),
        "let in": "; ".join(
            f"{each.time[:10]}: {count(each.records, 'record')} with values of forgotten ones: {each.reason}"
            for each in words.overrides
        ),
        "due": "" if not left else (
            f"{left_in_extractor(left)} `maxrr audit {files.folder} NUMBER` attacks the model; asking for the records "
            "again with --policy retrain rids it of them."
        ),
    }  # fmt: skip
    return Status(
        folder=str(files.folder), token=files.token, records=counts.records, core=counts.core,
        influential=counts.influential, free=counts.records - counts.core - counts.influential, people=people,
        waiting_for_fit=counts.waiting, classes=classes, requests=last.requests, forgotten=counts.forgotten,
        core_left_in_extractor=left, bytes_claim=claim, conditions=conditions, model_hash=facts.model_hash,
        commitment=last.commitment, sources=[dict(each) for each in words.sources], exports=exports_of(files),
        facts={name: text for name, text in told.items() if text},
    )  # fmt: skip


def held_about_forgotten(counts: Counts) -> str:
    """Say what is still kept about forgotten records, and why."""
    if not counts.forgotten:
        return "nothing was forgotten yet"
    people = plain_text.count(counts.people, "person", "people")
    return (
        f"a tombstone for each of {counts.forgotten:,} forgotten or replaced records: three HMACs (of its id, of the "
        "record, of its values) under the key of this workspace. They recognise a request for what is gone, and data "
        "that brings it back. Whoever holds this folder can try ids and records against them, and others nothing"
    ) + (f"; and an HMAC of the subject id of {people} of whom no record is left" if counts.people else "")
