"""The state of a workspace: what the frames of its history add up to, and the words that lie beside the heads.

What can be read in words (names of classes, columns, sources, reasons) stands in the file of heads, as metadata, and is
overwritten with it. A frame names that file and its hash.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from maxrr.errors import WorkspaceError
from maxrr.files import from_plain, parse_json
from maxrr.files.strict_json import Count, Digest
from maxrr.svm import FORM
from maxrr.unlearning.facts import Facts, Secrets, Words
from maxrr.workspace.errors import content_of, damaged, unfamiliar
from maxrr.workspace.exports import Note
from maxrr.workspace.history import Frame, frames_in
from maxrr.workspace.names import HEADS, PARTS, ROWS, SECRETS, find_history, history_of, name_of, origin_of, part_of
from maxrr.workspace.rows import BLOCK, Layout, Rows

FACTS, WORDS = "facts", "words"  # what stands beside the heads


@dataclass(frozen=True)
class Base:
    """The files that a state consists of: what a frame says where more changed than rows.

    `files` are hashes by name; `keys` the public keys that receipts were signed with, from the first; `since` is when
    the loss of a newer copy was last accepted; `rows` names the file of rows, and `layout` says what they are made of.
    `form` is that of the heads.
    """

    files: dict[str, Digest]
    keys: list[Digest]
    since: str
    rows: str
    layout: Layout
    form: int = FORM


@dataclass(frozen=True)
class Root:
    """One state of the workspace.

    `files`, `keys` and `since` are as in `Base`; `state`, `requests`, `logged` and `backup` as in `Frame`. `exports`
    are the notes of all exports, `audits` the hashes of the receipts that were audited.
    """

    token: str
    state: int
    files: dict[str, str]
    rows: Rows
    requests: int
    logged: int
    keys: list[str]
    since: str
    backup: str
    exports: list[Note]
    audits: list[str]
    commitment: str

    @property
    def origin(self) -> str:
        """The name of the log."""
        return origin_of(self.token, self.since)

    def file_of(self, part: str) -> str:
        """The name of the file that holds a part."""
        return file_of(self.files, part, self.token)


def after(before: Root | None, token: str, key: bytes, frames: Sequence[Frame]) -> Root:
    """The state after some frames. The lists of blocks, erased rows, exports and audits are the same ones, longer."""
    last = frames[-1]
    if before is None:
        base = from_plain(Base, frames[0].base)
        rows = Rows(base.rows, base.layout, 0, [], key)
        exports, audits = list[Note](), list[str]()
    else:
        base = Base(before.files, before.keys, before.since, before.rows.file, before.rows.layout)
        rows, exports, audits = before.rows, before.exports, before.audits
    for frame in frames:
        if frame.base is not None:
            base = from_plain(Base, frame.base)
            if (base.rows, base.layout) != (rows.file, rows.layout):
                rows = Rows(base.rows, base.layout, 0, [], key)
        rows.change(frame.blocks or {}, frame.erased)
    exports += exports_in(frames)
    audits += audits_in(frames)
    return Root(
        token, last.state, base.files, replace(rows, count=last.count), last.requests, last.logged, base.keys,
        base.since, last.backup, exports, audits, last.commitment,
    )  # fmt: skip


def exports_in(frames: Iterable[Frame]) -> list[Note]:
    """The exports that frames note."""
    return [from_plain(Note, frame.export) for frame in frames if frame.export is not None]


def audits_in(frames: Iterable[Frame]) -> list[str]:
    """The hashes of the receipts of which frames note an audit."""
    return [frame.audit["receipt"] for frame in frames if frame.audit is not None]


def read_state(path: Path, token: str, key: bytes, frames: Sequence[Frame]) -> Root:
    """The state after all frames of a history, if a program of ours has written them."""
    bases = [frame.base for frame in frames if isinstance(frame.base, dict)]
    form = bases[-1].get("form") if bases else FORM
    if form != FORM:
        raise unfamiliar(path, f"names heads in canonical form {form!r}", f"makes form {FORM}")
    try:
        found = after(None, token, key, frames)
        check(found)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path, f"it does not describe a workspace ({error})") from None
    return found


# Files, and the words in one of them


def key_in(folder: Path, token: str) -> bytes:
    """The key of a workspace. It is the same in every file of secrets that one has."""
    paths = [path for path in sorted(folder.iterdir()) if part_of(path.name, token) == SECRETS]
    if not paths:
        raise damaged(folder / name_of(SECRETS, token, "…"), "it is missing")
    content = content_of(paths[-1])
    digest = hashlib.sha256(content).hexdigest()
    if paths[-1].name != name_of(SECRETS, token, digest[:16]):
        raise damaged(paths[-1], "its content does not have the hash in its name")
    try:
        return from_plain(Secrets, parse_json(content.decode())).key
    except ValueError as error:
        raise damaged(paths[-1], f"there is no key in it ({error})") from None


def checked(folder: Path, name: str, known: Root) -> bytes:
    """The content of a file that the history names, if it is what was written."""
    content = content_of(folder / name)
    if hashlib.sha256(content).hexdigest() != known.files[name]:
        raise damaged(folder / name, "its content does not have the hash that the history names")
    return content


def said_in(path: Path, content: bytes) -> tuple[Facts, Words]:
    """What a file of heads says of the model. In front is what it holds: https://github.com/huggingface/safetensors."""
    try:
        head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        facts, words = (parse_json(head["__metadata__"][name]) for name in (FACTS, WORDS))
        return from_plain(Facts, facts), from_plain(Words, words)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise damaged(path, f"it does not describe a model ({error})") from None


def file_of(files: Iterable[str], part: str, token: str) -> str:
    """The name of the file that holds a part, of those that a base names."""
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
        bases = [frame.base for frame in frames if frame.base is not None]
        if not bases:
            return None
        try:
            heads = path.parent / file_of(bases[-1]["files"], HEADS, token)
            facts, words = said_in(heads, content_of(heads))
        except (WorkspaceError, LookupError, TypeError, ValueError) as error:
            if len(frames_in(path)) > len(frames):  # somebody has committed meanwhile, and replaced the file
                return cls.last(folder)
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        now, signs = frames[-1], bool(bases[-1].get("keys"))
        return cls(now.state, now.requests, facts.record_shape, words.class_names, words.sources[0], signs)


def is_later(folder: Path, token: str, state: int) -> bool:
    """Whether the workspace that was opened in a folder has committed something since this state."""
    path, found = history_of(folder)
    if found != token:
        raise WorkspaceError(
            f"{folder} holds another workspace now than when it was opened: open it again to use that one"
        )
    return any(last.state > state for last in frames_in(path, only_last=True))


def how_far(path: Path) -> tuple[int, str]:
    """How many requests there were by a history, and when the loss of a newer copy was last accepted."""
    frames = frames_in(path)
    bases = [frame.base for frame in frames if frame.base is not None]
    return (frames[-1].requests, bases[-1]["since"]) if bases else (0, "")


# What a program of ours has written


def check(found: Root) -> None:
    """Refuse what no program of ours has written: names of files elsewhere, above all."""
    rows = found.rows
    from_plain(list[Count], [found.state, found.requests, found.logged, rows.count, *rows.erased])
    from_plain(list[Digest], rows.blocks)
    from_plain(list[str], [found.backup, found.commitment])
    named = {name_of(part, found.token, found.files[found.file_of(part)][:16]) for part in PARTS}
    if named != found.files.keys() or part_of(rows.file, found.token) != ROWS:
        raise ValueError("its files are not named after their content")
    if not (found.state > 0 and found.logged <= found.requests):
        raise ValueError("its counts of states and requests cannot be right")
    if not (rows.count > max(rows.erased, default=0) and len(rows.blocks) == -(-rows.count // BLOCK)):
        raise ValueError("its rows cannot be right")
