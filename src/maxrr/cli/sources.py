"""Where raw records come from: named once when fitting, kept in the workspace, loaded again where they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maxrr.cli.exits import FAILED, Stop
from maxrr.cli.options import IdsFrom

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.progress import Report
    from maxrr.workspace import Workspace


def word(ids_from: IdsFrom | None) -> Literal["content", "rows"] | None:
    """The option as `maxrr.data.load` takes it."""
    return None if ids_from is None else "content" if ids_from is IdsFrom.CONTENT else "rows"


def to_keep(source: str, label: str, id: str, subject: str, ids_from: str | None = None) -> dict[str, str]:
    """What a workspace keeps of its source: a path is made absolute, for later commands may run elsewhere."""
    from maxrr.data import available

    known = source in [name for name, _ in available()]
    name = source if known else str(Path(source).absolute())
    made = {} if ids_from is None else {"ids_from": ids_from}
    return {"name": name, "label": label, "id": id, "subject": subject, **made}


def raw_records(workspace: Workspace, source: str | None, report: Report) -> Dataset:
    """The records that a workspace was fitted on, from its own source or from another place."""
    return sides(workspace, source, report)[0]


def sides(workspace: Workspace, source: str | None, report: Report) -> tuple[Dataset, Dataset]:
    """The same, and the records beside them that are for testing."""
    from maxrr.data import load

    name = source or workspace.source.get("name")
    if name is None:
        raise Stop(
            FAILED, f"{workspace.folder} does not say where its records come from, and they are needed: use --source"
        )
    return load(name, **columns(workspace), ids_from=ids_from(workspace), report=report)


def columns(workspace: Workspace) -> dict[str, str]:
    """What labels, ids and subjects are called in a CSV file of this workspace."""
    return {kind: workspace.source.get(kind, kind) for kind in ("label", "id", "subject")}


def ids_from(workspace: Workspace) -> Any:
    """How records without ids are named in this workspace: as `maxrr.data.load` takes it."""
    return workspace.source.get("ids_from")
