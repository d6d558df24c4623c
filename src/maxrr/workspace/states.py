"""The state of a workspace: what the frames of its history add up to, and the words that lie beside the heads.

What can be read in words (names of classes, columns, sources, reasons) stands in the file of heads, as metadata, and is
overwritten with it. A frame names that file and its hash.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maxrr.errors import WorkspaceError, WorkspaceVersion
from maxrr.files import from_plain, parse_json
from maxrr.files.strict_json import Count, Digest
from maxrr.svm.certificate import FORM
from maxrr.unlearning.facts import Facts, Secrets, Words
from maxrr.workspace.errors import content_of, damaged, unfamiliar
from maxrr.workspace.history import Frame, frames_in, without_changes
from maxrr.workspace.names import HEADS, PARTS, ROWS, SECRETS, find_history, name_of, origin_of, part_of
from maxrr.workspace.rows import BLOCK, Layout, Rows

FACTS, WORDS = "facts", "words"  # what stands beside the heads


@dataclass(frozen=True)
class Counts:
    """How many records there are of each kind, and the numbers of the classes that they are of.

    `waiting` were added after the last fit and become core at the next. `forgotten` are tombstones, and `people` those
    of whom a request has left no record.
    """

    records: Count
    core: Count
    influential: Count
    waiting: Count
    forgotten: Count
    people: Count
    classes: tuple[Count, ...]


@dataclass(frozen=True)
class Files:
    """The files of a state, as a frame names them when more than rows has changed.

    `hashes` are those of heads, extractor and secrets, by the name of the file; `keys` the public keys that receipts
    were signed with, from the first; `rows` names the file of rows, and `layout` says what they are made of. `form` is
    that of the heads.
    """

    hashes: dict[str, Digest]
    keys: list[Digest]
    rows: str
    layout: Layout
    form: int = FORM


@dataclass(frozen=True)
class StoredState:
    """The state that a folder holds: the last frame, the files that go with it, and the exports noted so far."""

    token: str
    last: Frame
    files: Files
    rows: Rows
    exports: list[str]

    @property
    def origin(self) -> str:
        """The name of the log."""
        return origin_of(self.token, self.last.last_loss)

    def file_of(self, part: str) -> str:
        """Return the name of the file of a part."""
        return file_of(self.files.hashes, part, self.token)

    def content_of(self, folder: Path, part: str) -> bytes:
        """Read the file of a part."""
        name = self.file_of(part)
        return verified_content(folder / name, self.files.hashes[name])


def state_after(before: StoredState | None, token: str, key: bytes, frames: Sequence[Frame]) -> StoredState:
    """Return the state after some frames. It shares the lists of blocks, erased rows and exports, and adds to them."""
    if before is None:
        files, exports = from_plain(Files, frames[0].files), list[str]()
        rows = Rows(files.rows, files.layout, 0, [], key)
    else:
        files, rows, exports = before.files, before.rows, before.exports
    for frame in frames:
        if frame.files is not None:
            files = from_plain(Files, frame.files)
            if (files.rows, files.layout) != (rows.file, rows.layout):
                rows = Rows(files.rows, files.layout, 0, [], key)
        rows.change(frame.blocks or {}, frame.erased)
    exports += [frame.export for frame in frames if frame.export]
    last = without_changes(frames[-1])
    return StoredState(token, last, files, replace(rows, count=last.rows), exports)


def read_state(path: Path, token: str, key: bytes, frames: Sequence[Frame]) -> StoredState:
    """Return the state after all frames of a history; refuse frames that this program cannot have written."""
    forms = [frame.files.get("form") for frame in frames if isinstance(frame.files, dict)]
    if forms and forms[-1] != FORM:
        raise unfamiliar(path, f"its heads are in canonical form {forms[-1]!r}, not {FORM}")
    try:
        found = state_after(None, token, key, frames)
        check_state(found)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise unfamiliar(path, f"it does not describe a workspace ({error})") from None
    return found


def check_state(found: StoredState) -> None:
    """Refuse values that this program never writes, such as names of files elsewhere."""
    rows, last, hashes = found.rows, found.last, found.files.hashes
    from_plain(list[Count], [last.state, last.requests, last.logged, rows.count, *rows.erased])
    from_plain(list[Digest], rows.blocks)
    from_plain(list[str], [last.commitment, last.last_loss, *found.exports])
    from_plain(Counts, last.counts)
    named = {name_of(part, found.token, hashes[found.file_of(part)][:16]) for part in PARTS}
    if named != hashes.keys() or part_of(rows.file, found.token) != ROWS:
        raise ValueError("its files are not named after their content")
    if not (last.state > 0 and last.logged <= last.requests):
        raise ValueError("its counts of states and requests cannot be right")
    if not (rows.count > max(rows.erased, default=0) and len(rows.blocks) == -(-rows.count // BLOCK)):
        raise ValueError("its rows cannot be right")


# Files, and the words in one of them


def key_in(folder: Path, token: str) -> bytes:
    """Read the key of a workspace from one of its files of secrets, all of which have the same key."""
    paths = [path for path in sorted(folder.iterdir()) if part_of(path.name, token) == SECRETS]
    if not paths:
        raise damaged(folder / name_of(SECRETS, token, "…"), "it is missing")
    content = content_of(paths[-1])
    if paths[-1].name != name_of(SECRETS, token, hashlib.sha256(content).hexdigest()[:16]):
        raise damaged(paths[-1], "its content does not have the hash in its name")
    try:
        return from_plain(Secrets, parse_json(content.decode())).key
    except ValueError as error:
        raise unfamiliar(paths[-1], f"there is no key in it ({error})") from None


def verified_content(path: Path, sha256: str) -> bytes:
    """Read a file that the history names, and refuse content with another hash than the history has."""
    content = content_of(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise damaged(path, "its content does not have the hash that the history names")
    return content


def head_of(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """Split a safetensors file into its JSON header and its arrays: https://github.com/huggingface/safetensors."""
    first = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:first]), memoryview(content)[first:]


def influential_rows(path: Path, content: bytes) -> set[int]:
    """Read the rows that shape a head from a file of heads."""
    try:
        head, arrays = head_of(content)
        parts = [part["data_offsets"] for name, part in head.items() if name.endswith((".on_margin", ".inside"))]
        return {row for first, last in parts for row in arrays[first:last].cast("q")}
    except (LookupError, TypeError, ValueError) as error:
        raise damaged(path, f"it does not say which records shape the heads ({error})") from None


def facts_and_words(path: Path, content: bytes) -> tuple[Facts, Words]:
    """Read what a file of heads says about the model."""
    try:
        head, _ = head_of(content)
        facts, words = (parse_json(head["__metadata__"][name]) for name in (FACTS, WORDS))
        return from_plain(Facts, facts), from_plain(Words, words)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise unfamiliar(path, f"it does not describe a model ({error})") from None


def file_of(files: Iterable[str], part: str, token: str) -> str:
    """Return the name, among these, of the file of a part."""
    (found,) = (name for name in files if part_of(name, token) == part)
    return found


# For those who have no key


@dataclass(frozen=True)
class Commit:
    """What was committed last to a workspace, from its history and the words beside its heads.

    Nothing is compared with the workspace's key.

    Attributes
    ----------
    state : int
        How many fits and requests there were.
    requests : int
        How many requests were carried out.
    shape : tuple of int, or dict of str to tuple of int
        The shape of one record; where it has several inputs, the shape of each, by name.
    classes : tuple of str
        The names of all classes.
    source : dict of str to str
        Where the records come from, as the caller of `fit` said it.
    signs : bool
        Whether receipts are signed, so that there is a log.
    """

    state: int
    requests: int
    shape: tuple[int, ...] | dict[str, tuple[int, ...]]
    classes: tuple[str, ...]
    source: dict[str, str] = field(default_factory=dict)
    signs: bool = False

    @classmethod
    def last(cls, folder: str | Path) -> "Commit | None":
        """Read the last commit.

        Parameters
        ----------
        folder : str or Path
            The folder of the workspace.

        Returns
        -------
        Commit or None
            None where nothing was committed in the folder yet.

        Raises
        ------
        maxrr.errors.WorkspaceError
            A file is damaged, or another version of this program wrote it.
        """
        found = find_history(Path(folder))
        if found is None:
            return None
        path, token = found
        frames = frames_in(path)
        files = [frame.files for frame in frames if frame.files is not None]
        if not files:
            return None
        try:
            hashes = files[-1]["hashes"]
            heads = path.parent / file_of(hashes, HEADS, token)
            facts, words = facts_and_words(heads, verified_content(heads, hashes[heads.name]))
        except WorkspaceVersion:
            raise
        except (WorkspaceError, LookupError, TypeError, ValueError) as error:
            if len(frames_in(path)) > len(frames):  # somebody has committed meanwhile, and replaced the file
                return cls.last(folder)
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        now, signs = frames[-1], bool(files[-1].get("keys"))
        return cls(now.state, now.requests, facts.record_shape, words.class_names, words.sources[0], signs)
