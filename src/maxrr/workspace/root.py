"""`workspace.json`: which files make up the workspace, and their hashes. Replacing it is the commit.

Everything else is written before, under names that no earlier state uses, or erased afterwards.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maxrr.files import write_atomically
from maxrr.workspace.damage import WorkspaceError, damaged
from maxrr.workspace.rows import Layout, Rows

NAME = "workspace.json"
PARTS = EXTRACTOR, HEAD, FORGOTTEN, SECRETS = (
    "extractor.safetensors", "head.safetensors", "forgotten.bin", "secrets.json",
)  # fmt: skip
FORMAT = "maxrr workspace"
VERSION = 1


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
        body = {"format": FORMAT, "version": VERSION, **asdict(self)}
        write_atomically(folder / NAME, json.dumps({**body, "sha256": digest(body)}, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> "Root":
        """The state that was committed last."""
        path = folder / NAME
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise WorkspaceError(f"{folder} is not a workspace: there is no {NAME} in it. Make one with fit") from None
        except ValueError as error:
            raise damaged(path, f"it is not JSON ({error})") from None
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise damaged(path, "it does not describe a workspace")
        version = body.pop("version", None)
        if version != VERSION:
            raise WorkspaceError(
                f"{path} is of version {version}, and this program knows version {VERSION}: use the maxrr that wrote it"
            )
        named_hash = body.pop("sha256", None)
        if named_hash != digest({"format": FORMAT, "version": version, **body}):
            raise damaged(path, "its content does not have the hash that it names")
        try:
            rows = body["rows"]
            rows["layout"] = Layout(**rows["layout"])
            rows["blocks"], rows["erased"] = tuple(rows["blocks"]), tuple(rows["erased"])
            found = cls(**{**body, "rows": Rows(**rows)})
            named = [(found.rows.file, r"rows-\d+\.bin")]
            named += [(found.file_of(part), part.replace(".", r"-[0-9a-f]{16}\.")) for part in PARTS]
            strange = [name for name, form in named if not re.fullmatch(form, name)]
            if strange or len(found.files) != len(PARTS):
                raise ValueError(f"it names files that are not of a workspace {strange}")
            if any(not 0 <= row < found.rows.count for row in found.rows.erased):
                raise ValueError("it erases rows that are not there")
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, f"it does not describe a workspace ({error})") from None
        return found


def digest(body: dict[str, Any]) -> str:
    """Of what a root says, however it is spaced."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
