"""Where raw records come from: named once when fitting, kept in the workspace, loaded again where they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maxrr.cli.exits import FAILED, Stop
from maxrr.cli.opening import insides
from maxrr.cli.options import IdsFrom

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    training, test = load(name, **columns(workspace), ids_from=ids_from(workspace), report=report)
    return as_fitted(workspace, training), as_fitted(workspace, test)


def columns(workspace: Workspace) -> dict[str, Any]:
    """What labels, ids and subjects are called in a CSV file of this workspace."""
    return {kind: workspace.source.get(kind, kind) for kind in ("label", "id", "subject")}


def ids_from(workspace: Workspace) -> Any:
    """How records without ids are named in this workspace: as `maxrr.data.load` takes it."""
    return workspace.source.get("ids_from")


def names_of_columns(workspace: Workspace) -> tuple[str, ...] | None:
    """What the columns of a table are called that the workspace was fitted on."""
    return insides(workspace).holdings.columns


def as_fitted(workspace: Workspace, records: Dataset) -> Dataset:
    """The same records, with ids and subjects of the kind, and columns in the order, that the workspace has.

    A file in which every id happens to be an integer is read as one with integers. When the only other one is deleted,
    '7' must not become 7: it would be another record, and one that was forgotten would not be recognised.
    """
    from dataclasses import replace

    holdings, names, own = insides(workspace).holdings, names_of_columns(workspace), records.columns
    changes: dict[str, Any] = {}
    if (ids := like(records.ids, holdings.ids)) is not records.ids:
        changes["ids"] = ids
    if records.subjects is not None and holdings.subjects is not None:
        changes["subjects"] = like(records.subjects, holdings.subjects)
    if names is not None and own is not None and own != names and set(own) == set(names):
        changes |= {"features": records.features[:, [own.index(name) for name in names]], "columns": names}
    return replace(records, **changes) if changes else records


def like(keys: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """Texts where texts are known: those that happen to be all integers were read as such."""
    import numpy as np

    return keys.astype(np.str_) if known.dtype.kind == "U" and keys.dtype.kind == "i" else keys
