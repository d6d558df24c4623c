"""`workspace.json`: which files make up the workspace, and their hashes. Replacing it is a commit.

Everything else is written before, under names that no earlier state uses, appended to files that only grow, or erased
afterwards. Its hash finds damage; its seal, an HMAC under the workspace's key, finds what was changed by one who
neither read the key nor replaced it. What is committed without replacing it stands in the journal.
"""

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from maxrr.errors import WorkspaceError
from maxrr.files import fits, write_atomically
from maxrr.files.strict_json import json_digest
from maxrr.svm import FORM
from maxrr.unlearning.receipts import Loss
from maxrr.workspace import names
from maxrr.workspace.appending import Extent
from maxrr.workspace.errors import content_of, damaged, unfamiliar
from maxrr.workspace.journal import Frame, last_frame
from maxrr.workspace.names import GROWING, JOURNAL, ROWS, is_named_after, name_of, part_of
from maxrr.workspace.ownership import was_workspace
from maxrr.workspace.rows import BLOCK, Layout, Rows

NAME = names.ROOT
PARTS = EXTRACTOR, HEADS, SECRETS = names.PARTS
FORMAT = "maxrr workspace"
VERSION = 8  # the first whose models are hashed with their layers: nothing older can be compared, or is read
WIDEST = 1 << 24  # features of a record are fewer


@dataclass(frozen=True)
class Root:
    """One state of the workspace.

    `token` is in the names of its files; `files` are hashes by name, `grown` says how far the files go that only grow.
    `requests` were carried out, of which `logged` were in the log before. `keys` are the public keys that receipts were
    signed with, from the first; none where they are not. `facts` is all else that a model is, as JSON has it. `seal` is
    the HMAC that a file has, and the digest that it should be of; None before it is sealed.
    """

    token: str
    state: int
    files: dict[str, str]
    rows: Rows
    grown: dict[str, Extent]
    requests: int
    logged: int
    keys: list[str]
    facts: dict[str, Any]
    seal: tuple[str, str] | None = field(default=None, compare=False, repr=False)

    @property
    def since(self) -> str:
        """When the loss of a newer copy was last accepted; empty where none was."""
        return str(self.facts["losses"][-1]["time"]) if self.facts.get("losses") else ""

    @property
    def origin(self) -> str:
        """The name of the log."""
        return names.origin_of(self.token, self.since)

    def file_of(self, part: str) -> str:
        """The name of the file that holds a part."""
        (found,) = (name for name in self.files if part_of(name, self.token) == part)
        return found

    def sealed(self, key: bytes) -> "Root":
        """The same with its seal under the workspace's key."""
        digest = json_digest(self.body())
        return replace(self, seal=(seal_of(digest, key), digest))

    def body(self) -> dict[str, Any]:
        """What the file says, but for seal and hash."""
        said = {name: value for name, value in asdict(self).items() if name != "seal"}
        return {"format": FORMAT, "version": VERSION, "form": FORM, **said}

    def write(self, folder: Path) -> None:
        """Commit this state, which is sealed."""
        assert self.seal is not None
        body = {**self.body(), "hmac": self.seal[0]}
        content = json.dumps({**body, "sha256": json_digest(body)}, indent=1).encode()
        write_atomically(folder / NAME, content, private=True)

    def after(self, frames: Sequence[Frame]) -> "Root":
        """The state after the frames of its journal. The list of blocks is the same one, changed."""
        if not frames:
            return self
        last = frames[-1]
        for frame in frames:
            for block, digest in frame.blocks.items():
                self.rows.blocks[block] = digest
        return replace(
            self, state=self.state + last.requests - self.requests, rows=replace(self.rows, erased=last.erased),
            grown=last.grown, requests=last.requests, logged=last.logged,
            facts={**self.facts, "commitment": last.commitment},
        )  # fmt: skip

    @property
    def journal(self) -> str:
        """The name of the journal that goes on from this root."""
        return name_of(JOURNAL, self.token, self.state)

    def is_sealed(self, secrets: bytes) -> bool:
        """Whether what the file says was written by one who had the key."""
        assert self.seal is not None
        found, digest = self.seal
        return hmac.compare_digest(found, seal_of(digest, bytes.fromhex(json.loads(secrets)["key"])))

    @classmethod
    def read(cls, folder: Path) -> "Root":
        """The state that was committed last."""
        path = folder / NAME
        if not path.is_symlink() and not path.exists():
            raise missing(folder)
        try:
            body = json.loads(content_of(path).decode())
        except WorkspaceError:
            raise
        except (ValueError, RecursionError) as error:
            raise damaged(path, f"it is not JSON ({error})") from None
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise damaged(path, "it does not describe a workspace")
        version = body.pop("version", None)
        if version != VERSION or type(version) is not int:
            raise unfamiliar(path, f"is of version {version}", f"knows version {VERSION}")
        named_hash = body.pop("sha256", None)
        if named_hash != json_digest({"format": FORMAT, "version": version, **body}):
            raise damaged(path, "its content does not have the hash that it names")
        found_seal = body.pop("hmac", None)
        if not is_hex(found_seal, 64):
            raise damaged(path, "it is not sealed")
        seal = found_seal, json_digest({"format": FORMAT, "version": version, **body})
        form = body.pop("form", None)
        if form != FORM:
            raise unfamiliar(path, f"names heads in canonical form {form!r}", f"makes form {FORM}")
        try:
            rows = body["rows"]
            rows["layout"], rows["erased"] = Layout(**rows["layout"]), tuple(rows["erased"])
            grown = {part: Extent(**extent) for part, extent in body["grown"].items()}
            found = cls(**{**body, "rows": Rows(**rows), "grown": grown, "seal": seal})
            check(found)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        return found


def seal_of(digest: str, key: bytes) -> str:
    """The HMAC of what `workspace.json` says, from its digest."""
    return hmac.digest(key, f"workspace.json {digest}".encode(), "sha256").hex()


@dataclass(frozen=True)
class Commit:
    """What was committed last to a workspace, from `workspace.json` and its journal alone.

    The other files are not looked at, and nothing is compared with the workspace's key.

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
    """

    state: int
    requests: int
    shape: tuple[int, ...] | dict[str, tuple[int, ...]]
    classes: tuple[str, ...]
    source: dict[str, str] = field(default_factory=dict)

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
            None where the folder has no `workspace.json`, because nothing was committed yet.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The file is damaged, or another version of this program wrote it.
        """
        if not (Path(folder) / NAME).exists():
            return None
        found = Root.read(Path(folder))
        records = found.facts["records"]
        return cls(
            *how_far(Path(folder), found),
            shape_in(records),
            tuple(records["classes"]),
            dict(found.facts["source"]),
        )


def is_later(folder: Path, token: str, state: int) -> bool:
    """Whether a workspace has committed something since this state. Another one in its place is refused."""
    if not (folder / NAME).exists():
        return False
    found = Root.read(folder)
    check_same(folder, token, found.token)
    return how_far(folder, found)[0] > state


def how_far(folder: Path, found: Root) -> tuple[int, int]:
    """How often something was committed, and how many requests were carried out: by a root, and its journal."""
    try:
        last = last_frame(folder / found.journal)
        requests = found.requests if last is None else int(last["requests"])
        return found.state + requests - found.requests, requests
    except WorkspaceError:
        again = Root.read(folder)
        if again.state == found.state:
            raise
        return how_far(folder, again)  # somebody has committed meanwhile, and removed the journal
    except (LookupError, TypeError, ValueError) as error:
        raise damaged(folder / found.journal, f"it does not say what was committed ({error})") from None


def check_same(folder: Path, token: str, found: str) -> None:
    """Refuse a workspace that somebody has put in the place of the one that was opened."""
    if found != token:
        raise WorkspaceError(
            f"{folder} holds another workspace now than when it was opened: open it again to use that one"
        )


def sources_in(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Where the records come from, as a root has it."""
    return {name: facts[name] for name in ("source", "added_sources") if name in facts}


def shape_in(records: Mapping[str, Any]) -> tuple[int, ...] | dict[str, tuple[int, ...]]:
    """The shape of one record: `maxrr.data.fields.shapes`, without NumPy."""
    kind = records.get("dtype")
    return {name: tuple(shape) for name, _, shape in kind} if isinstance(kind, list) else tuple(records["shape"])


def missing(folder: Path) -> WorkspaceError:
    """There is no root: the folder was never a workspace, or lost it."""
    if was_workspace(folder):
        return damaged(folder / NAME, "it is missing, and with it which records, key and receipts belong together")
    return WorkspaceError(f"{folder} is not a workspace: there is no {NAME} in it. Make one with fit")


def check(found: Root) -> None:
    """Refuse what no program of ours has written: names of files elsewhere, above all."""
    wanted("token", is_hex(found.token, 16))
    wanted("state", is_count(found.state) and found.state > 0)
    wanted("files", is_a(dict, found.files) and len(found.files) == len(PARTS))
    for part in PARTS:
        name = found.file_of(part)
        digest_ = found.files[name]
        wanted(name, is_hex(digest_, 64) and is_named_after(name, digest_))
    wanted("requests", is_count(found.requests) and is_count(found.logged) and found.logged <= found.requests)
    wanted("keys", is_a(list, found.keys) and all(is_hex(each, 64) for each in found.keys))
    wanted("files that grow", found.grown.keys() == set(GROWING))
    for extent in found.grown.values():
        wanted("files that grow", is_count(extent.length) and is_hex(extent.sha256, 64))
    check_rows(found)
    check_facts(found.facts)


def check_rows(found: Root) -> None:
    rows, layout = found.rows, found.rows.layout
    wanted("file of rows", is_a(str, rows.file) and part_of(rows.file, found.token) == ROWS)
    types = [layout.ids] if layout.subjects is None else [layout.ids, layout.subjects]
    wanted("types", all(is_a(str, each) and re.fullmatch(r"<i8|<U[1-9][0-9]{0,6}", each) for each in types))
    wanted("types", layout.features in ("<f2", "<f4", "<f8") and layout.weights in (None, "<f8"))
    wanted("width", is_count(layout.width) and 0 < layout.width < WIDEST)
    wanted("rows", is_count(rows.count) and rows.count > 0 and len(rows.blocks) == -(-rows.count // BLOCK))
    wanted("hashes", is_a(list, rows.blocks) and all(is_hex(each, 64) for each in rows.blocks))
    wanted("erased rows", all(is_count(row) and row < rows.count for row in rows.erased))


def check_facts(facts: Any) -> None:
    """What is used before a model is made of them. The rest is seen then."""
    wanted("facts", isinstance(facts, dict))
    absent = {"network", "layers", "layouts", "records", "source", "model_hash", "commitment"} - facts.keys()
    if absent:
        raise ValueError(f"it does not say {sorted(absent)}")
    named, records, source = facts["network"], facts["records"], facts["source"]
    wanted("network", named is None or (isinstance(named, dict) and named.keys() == {"maker", "arguments"}))
    if named is not None:
        wanted("network", isinstance(named["maker"], str) and isinstance(named["arguments"], list))
    wanted("losses", all(fits(Loss(**loss), Loss) for loss in facts.get("losses", [])))
    wanted("layouts", is_count(facts["layouts"]))
    wanted("records", isinstance(records, dict) and isinstance(records.get("shape"), list))
    wanted("shape", is_shape(records["shape"]))
    kind = records.get("dtype")
    wanted("type", not isinstance(kind, list) or (bool(kind) and all(map(is_field, kind)) and not records["shape"]))
    classes = records.get("classes")
    wanted("classes", isinstance(classes, list) and all(isinstance(name, str) for name in classes))
    added = facts.get("added_sources", [{}])
    wanted("sources", isinstance(added, list) and len(added) > 0)
    for each in (source, *added):
        wanted("source", isinstance(each, dict) and all(isinstance(value, str) for value in each.values()))


def wanted(what: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"its {what} cannot be right")


def is_a(kind: type, value: object) -> bool:
    """What an annotation promises, a file need not keep."""
    return isinstance(value, kind)


def is_count(value: object) -> bool:
    """A whole number from zero on. Truth values are none, though Python counts them as such."""
    return type(value) is int and value >= 0


def is_shape(value: object) -> bool:
    return isinstance(value, list) and all(map(is_count, value))


def is_field(value: object) -> bool:
    """One of several inputs: its name, its type and its shape."""
    return (
        isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[1], str)
        and is_shape(value[2])
    )  # fmt: skip


def is_hex(value: object, length: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{length}}}", value) is not None
