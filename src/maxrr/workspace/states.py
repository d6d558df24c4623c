"""The state of a workspace: what the frames of its history add up to, and the words that lie beside the heads.

What can be read in words (names of classes, columns, sources, reasons) stands in the file of heads, as metadata, and is
overwritten with it. A frame names that file and its hash.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maxrr.errors import WorkspaceError
from maxrr.files import from_plain, to_plain
from maxrr.svm import FORM
from maxrr.unlearning.receipts import Loss
from maxrr.workspace.errors import content_of, damaged, unfamiliar
from maxrr.workspace.exports import Note
from maxrr.workspace.history import Frame, frames_in, last_frame
from maxrr.workspace.names import HEADS, PARTS, ROWS, SECRETS, find_history, history_of, name_of, origin_of, part_of
from maxrr.workspace.rows import BLOCK, Layout, Rows

WIDEST = 1 << 24  # features of a record are fewer
FACTS = "facts"  # the name of the words in the file of heads


@dataclass(frozen=True)
class Base:
    """The files that a state consists of: what a frame says where more changed than rows.

    `files` are hashes by name; `keys` the public keys that receipts were signed with, from the first; `since` is when
    the loss of a newer copy was last accepted; `rows` names the file of rows, and `layout` says what they are made of.
    `form` is that of the heads.
    """

    files: dict[str, str]
    keys: list[str]
    since: str
    rows: str
    layout: Layout
    form: int = FORM

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "Base":
        """From JSON."""
        return cls(**{**said, "layout": Layout(**said["layout"])})


@dataclass(frozen=True)
class Root:
    """One state of the workspace.

    `files`, `keys` and `since` are as in `Base`; `state`, `requests`, `logged` and `backup` as in `Frame`. `exports`
    are the notes of all exports, `audits` the hashes of the receipts that were audited. `facts` is all that a model is
    beside arrays and secrets, as JSON has it.
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
    facts: dict[str, Any] = field(repr=False)

    @property
    def origin(self) -> str:
        """The name of the log."""
        return origin_of(self.token, self.since)

    def file_of(self, part: str) -> str:
        """The name of the file that holds a part."""
        return file_of(self.files, part, self.token)

    def with_facts(self, facts: Mapping[str, Any]) -> "Root":
        """The same with the words that lie beside the heads."""
        return replace(self, facts={**facts, "commitment": self.facts["commitment"]})


def after(before: Root | None, token: str, key: bytes, frames: Sequence[Frame]) -> Root:
    """The state after some frames. The lists of blocks, erased rows, exports and audits are the same ones, longer."""
    last = frames[-1]
    if before is None:
        base = Base.read(frames[0].base or {})
        rows = Rows(base.rows, base.layout, 0, [], key)
        exports, audits, facts = list[Note](), list[str](), dict[str, Any]()
    else:
        base = Base(before.files, before.keys, before.since, before.rows.file, before.rows.layout)
        rows, exports, audits, facts = before.rows, before.exports, before.audits, before.facts
    for frame in frames:
        if frame.base is not None:
            base = Base.read(frame.base)
            if (base.rows, base.layout) != (rows.file, rows.layout):
                rows = Rows(base.rows, base.layout, 0, [], key)
        rows.change(frame.blocks or {}, frame.erased)
    exports += exports_in(frames)
    audits += audits_in(frames)
    return Root(
        token, last.state, base.files, replace(rows, count=last.count), last.requests, last.logged, base.keys,
        base.since, last.backup, exports, audits, {**facts, "commitment": last.commitment},
    )  # fmt: skip


def exports_in(frames: Iterable[Frame]) -> list[Note]:
    """The exports that frames note."""
    return [Note(**frame.export) for frame in frames if frame.export is not None]


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
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
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
        return bytes.fromhex(json.loads(content)["key"])
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(paths[-1], f"there is no key in it ({error})") from None


def checked(folder: Path, name: str, known: Root) -> bytes:
    """The content of a file that the history names, if it is what was written."""
    content = content_of(folder / name)
    if hashlib.sha256(content).hexdigest() != known.files[name]:
        raise damaged(folder / name, "its content does not have the hash that the history names")
    return content


def facts_in(path: Path, content: bytes) -> dict[str, Any]:
    """The words in a file of heads. It says in front what it holds: https://github.com/huggingface/safetensors."""
    try:
        head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        facts: dict[str, Any] = json.loads(head["__metadata__"][FACTS])
        check_facts(facts)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(path, f"it does not describe a model ({error})") from None
    return facts


def sources_in(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Where the records come from."""
    return {name: facts[name] for name in ("source", "added_sources") if name in facts}


def shape_in(records: Mapping[str, Any]) -> tuple[int, ...] | dict[str, tuple[int, ...]]:
    """The shape of one record: `maxrr.data.fields.shapes`, without NumPy."""
    kind = records.get("dtype")
    return {name: tuple(shape) for name, _, shape in kind} if isinstance(kind, list) else tuple(records["shape"])


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
            facts = facts_in(heads, content_of(heads))
        except (WorkspaceError, LookupError, TypeError, ValueError) as error:
            if len(frames_in(path)) > len(frames):  # somebody has committed meanwhile, and replaced the file
                return cls.last(folder)
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        records = facts["records"]
        return cls(
            frames[-1].state, frames[-1].requests, shape_in(records), tuple(records["classes"]), dict(facts["source"]),
            bool(bases[-1].get("keys")),
        )  # fmt: skip


def is_later(folder: Path, token: str, state: int) -> bool:
    """Whether the workspace that was opened in a folder has committed something since this state."""
    path, found = history_of(folder)
    if found != token:
        raise WorkspaceError(
            f"{folder} holds another workspace now than when it was opened: open it again to use that one"
        )
    last = last_frame(path)
    return last is not None and last.state > state


def how_far(path: Path) -> tuple[int, str]:
    """How many requests there were by a history, and when the loss of a newer copy was last accepted."""
    frames = frames_in(path)
    bases = [frame.base for frame in frames if frame.base is not None]
    return (frames[-1].requests, bases[-1]["since"]) if bases else (0, "")


# What a program of ours has written


def check(found: Root) -> None:
    """Refuse what no program of ours has written: names of files elsewhere, above all."""
    wanted("files", len(found.files) == len(PARTS))
    for part in PARTS:
        name = found.file_of(part)
        wanted(name, is_hex(found.files[name]) and name == name_of(part, found.token, found.files[name][:16]))
    wanted("state", is_count(found.state) and found.state > 0)
    wanted("requests", is_count(found.requests) and is_count(found.logged) and found.logged <= found.requests)
    wanted("keys", isinstance(found.keys, list) and all(map(is_hex, found.keys)))
    wanted("since", isinstance(found.since, str) and isinstance(found.backup, str))
    rows, layout = found.rows, found.rows.layout
    wanted("file of rows", part_of(rows.file, found.token) == ROWS)
    types = [layout.ids] if layout.subjects is None else [layout.ids, layout.subjects]
    wanted("types", all(re.fullmatch(r"<i8|<U[1-9][0-9]{0,6}", each) for each in types))
    wanted("types", layout.features in ("<f2", "<f4", "<f8") and layout.weights in (None, "<f8"))
    wanted("width", is_count(layout.width) and 0 < layout.width < WIDEST)
    wanted("rows", is_count(rows.count) and rows.count > 0 and len(rows.blocks) == -(-rows.count // BLOCK))
    wanted("hashes", all(map(is_hex, rows.blocks)))
    wanted("erased rows", all(is_count(row) and row < rows.count for row in rows.erased))
    from_plain(list[Note], to_plain(found.exports))


def check_facts(facts: Any) -> None:
    """What is used before a model is made of them. The rest is seen then."""
    wanted("facts", isinstance(facts, dict))
    absent = {"network", "layers", "layouts", "records", "source", "model_hash"} - facts.keys()
    if absent:
        raise ValueError(f"it does not say {sorted(absent)}")
    named, records, source = facts["network"], facts["records"], facts["source"]
    wanted("network", named is None or (isinstance(named, dict) and named.keys() == {"maker", "arguments"}))
    if named is not None:
        wanted("network", isinstance(named["maker"], str) and isinstance(named["arguments"], list))
    from_plain(list[Loss], facts.get("losses", []))
    wanted("layouts", is_count(facts["layouts"]))
    wanted("records", isinstance(records, dict) and is_shape(records.get("shape")))
    kind = records.get("dtype")
    wanted("type", not isinstance(kind, list) or (bool(kind) and all(map(is_field, kind)) and not records["shape"]))
    from_plain(list[str], records.get("classes"))
    added = facts.get("added_sources", [{}])
    wanted("sources", isinstance(added, list) and len(added) > 0)
    from_plain(list[dict[str, str]], [source, *added])


def wanted(what: str, holds: object) -> None:
    if not holds:
        raise ValueError(f"its {what} cannot be right")


def is_count(value: object) -> bool:
    """A whole number from zero on. Truth values are none, though Python counts them as such."""
    return type(value) is int and value >= 0


def is_shape(value: object) -> bool:
    return isinstance(value, list) and all(map(is_count, value))


def is_field(value: object) -> bool:
    """One of several inputs: its name, its type and its shape."""
    named = isinstance(value, list) and len(value) == 3 and all(isinstance(one, str) for one in value[:2])
    return named and is_shape(value[2])  # type: ignore[index]


def is_hex(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
