"""`workspace.json`: which files make up the workspace, and their hashes. Replacing it is the commit.

Everything else is written before, under names that no earlier state uses, or erased afterwards.
"""

import hashlib
import json
import operator
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maxrr.files import write_atomically
from maxrr.svm import FORM
from maxrr.workspace.damage import WorkspaceError, damaged, unfamiliar
from maxrr.workspace.rows import BLOCK, Layout, Rows

NAME = "workspace.json"
PARTS = EXTRACTOR, HEAD, FORGOTTEN, SECRETS = (
    "extractor.safetensors", "head.safetensors", "forgotten.bin", "secrets.json",
)  # fmt: skip
ROWS = "rows.bin"
FORMAT = "maxrr workspace"
VERSION = 2  # 2 names the canonical form of the heads


@dataclass(frozen=True)
class Root:
    """One state of the workspace.

    `files` are hashes by name, `receipts` those of the receipts from the first. `facts` is all else that a model is,
    as JSON has it.
    """

    state: int
    files: dict[str, str]
    rows: Rows
    receipts: list[str]
    facts: dict[str, Any]

    def file_of(self, part: str) -> str:
        """The name of the file that holds a part."""
        stem, suffix = part.split(".")
        (found,) = (name for name in self.files if name.startswith(f"{stem}-") and name.endswith(f".{suffix}"))
        return found

    def write(self, folder: Path) -> None:
        """Commit this state."""
        body = {"format": FORMAT, "version": VERSION, "form": FORM, **asdict(self)}
        content = json.dumps({**body, "sha256": digest(body)}, indent=1).encode()
        write_atomically(folder / NAME, content, private=True)

    @classmethod
    def read(cls, folder: Path) -> "Root":
        """The state that was committed last."""
        path = folder / NAME
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise WorkspaceError(f"{folder} is not a workspace: there is no {NAME} in it. Make one with fit") from None
        except (ValueError, RecursionError) as error:
            raise damaged(path, f"it is not JSON ({error})") from None
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise damaged(path, "it does not describe a workspace")
        version = body.pop("version", None)
        if version != VERSION:
            raise unfamiliar(path, f"is of version {version}", f"knows version {VERSION}")
        named_hash = body.pop("sha256", None)
        if named_hash != digest({"format": FORMAT, "version": version, **body}):
            raise damaged(path, "its content does not have the hash that it names")
        form = body.pop("form", None)
        if form != FORM:
            raise unfamiliar(path, f"names heads in canonical form {form!r}", f"makes form {FORM}")
        try:
            rows = body["rows"]
            rows["layout"] = Layout(**rows["layout"])
            rows["blocks"], rows["erased"] = tuple(rows["blocks"]), tuple(map(operator.index, rows["erased"]))
            found = cls(**{**body, "rows": Rows(**rows)})
            check(found)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        return found


def check(found: Root) -> None:
    """Refuse what no program of ours has written: names of files elsewhere, above all."""
    named = {**{found.file_of(part): part for part in PARTS}, found.rows.file: ROWS}
    strange = [name for name, part in named.items() if not is_named_after(part, name)]
    if strange or len(found.files) != len(PARTS):
        raise ValueError(f"it names files that are not of a workspace {strange}")
    rows = found.rows
    if len(rows.blocks) != -(-rows.count // BLOCK) or any(not 0 <= row < rows.count for row in rows.erased):
        raise ValueError("its rows and their hashes do not agree")
    if rows.layout.row.hasobject or rows.layout.width < 1:
        raise ValueError("its rows are not plain numbers")
    missing = {"network", "layers", "layouts", "records", "source", "model_hash", "manifest"} - found.facts.keys()
    if missing:
        raise ValueError(f"it does not say {sorted(missing)}")


def is_named_after(part: str, name: str) -> bool:
    """Whether a file may hold a part, going by its name.

    >>> is_named_after("rows.bin", "rows-12.bin"), is_named_after("rows.bin", "rows-backup.bin")
    (True, False)
    """
    stem, suffix = part.split(".")
    return re.fullmatch(rf"{stem}-{r'[0-9]+' if part == ROWS else r'[0-9a-f]{16}'}\.{suffix}", name) is not None


def digest(body: dict[str, Any]) -> str:
    """Of what a root says, however it is spaced."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
