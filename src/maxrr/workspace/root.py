"""`workspace.json`: which files make up the workspace, and their hashes. Replacing it is the commit.

Everything else is written before, under names that no earlier state uses, or erased afterwards.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maxrr.files import write_atomically
from maxrr.workspace.damage import WorkspaceError, damaged
from maxrr.workspace.rows import Layout, Rows

NAME = "workspace.json"
FORMAT = "maxrr workspace"
VERSION = 1


@dataclass(frozen=True)
class Root:
    """One state of the workspace.

    `files` are hashes by name. `receipts` is a hash over the hash before the last receipt and that receipt, and so on
    to the first, of which there are `requests`. `facts` is all else that a model is, as JSON has it.
    """

    state: int
    files: dict[str, str]
    rows: Rows
    requests: int
    receipts: str
    facts: dict[str, Any]

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
        found = body.pop("sha256", None)
        if found != digest({"format": FORMAT, "version": version, **body}):
            raise damaged(path, "its content does not have the hash that it names")
        rows = body["rows"]
        rows["layout"] = Layout(**rows["layout"])
        rows["blocks"], rows["erased"] = tuple(rows["blocks"]), tuple(rows["erased"])
        return cls(**{**body, "rows": Rows(**rows)})


def digest(body: dict[str, Any]) -> str:
    """Of what a root says, however it is spaced."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
