"""Open a workspace for one command, and find the raw records that it was fitted on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maxrr.cli.options import IdsFrom
from maxrr.cli.run import FAILED, Stop

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.nets import TrainingFunction
    from maxrr.nets.naming import NamedNetwork
    from maxrr.progress import Progress
    from maxrr.workspace import Workspace


@contextmanager
def opened(
    folder: Path, wait: float, *, network: str | None = None, train: str | None = None, read_only: bool = False
) -> Iterator[Workspace]:  # fmt: skip
    """The workspace, for as long as the block lasts."""
    from maxrr.workspace import Workspace

    with importing_from_here(network, train):
        made = None if network is None else network_of(folder, network)
        way = None if train is None else training_function(train)
        with Workspace.open(folder, network=made, train=way, read_only=read_only, wait=wait) as workspace:
            yield workspace


def network_of(folder: Path, maker: str) -> NamedNetwork | None:
    """The network that the user says was fitted, for the records that the workspace says it has."""
    from maxrr.workspace import Commit

    last = Commit.last(folder)
    return None if last is None else named_network(maker, last.shape, len(last.classes))


def named_network(maker: str, shape: tuple[int, ...], classes: int) -> NamedNetwork:
    """A network of the user's own for such records, made once to see whether it can be."""
    from maxrr.nets.naming import NamedNetwork

    try:
        network = NamedNetwork.for_records(maker, shape, classes)
        network()
    except ValueError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise ValueError(f"{maker} fails to make a network: {type(error).__name__}: {error}") from error
    return network


def training_function(name: str) -> TrainingFunction:
    """A training function of the user's own."""
    from maxrr.nets.naming import find_maker

    found: TrainingFunction = find_maker(name)
    return found


@contextmanager
def importing_from_here(*names: str | None) -> Iterator[None]:
    """Code of the user's own may lie in the current folder, which is looked in last: it hides no package."""
    if all(name is None for name in names):
        yield
        return
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def check_network(workspace: Workspace) -> None:
    """Refuse what needs the layers of a network that only the user's own code makes, and that was not named."""
    from maxrr.workspace import NetworkMissing

    try:
        workspace.check_network()
    except NetworkMissing as missing:
        which = "" if missing.maker is None else f", which {missing.maker} makes"
        raise Stop(FAILED, f"this needs the network of the workspace{which}: name it with --network") from None


def check_training(workspace: Workspace) -> None:
    """Refuse to train again by a function of the user's own that was not named."""
    from maxrr.workspace import TrainingMissing

    try:
        workspace.check_training()
    except TrainingMissing as missing:
        raise Stop(FAILED, f"this trains again, by {missing.name}: name it with --train") from None


def check_outside(file: Path, workspace: Workspace) -> None:
    """Refuse to write a file into the folder of the workspace."""
    if file.resolve().is_relative_to(workspace.folder.resolve()):
        raise Stop(FAILED, f"{file} is in the workspace, which holds its own files alone: write it elsewhere")


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


def raw_records(workspace: Workspace, source: str | None, progress: Progress) -> Dataset:
    """The records that a workspace was fitted on, from its own source or from another place."""
    return sides(workspace, source, progress)[0]


def sides(workspace: Workspace, source: str | None, progress: Progress) -> tuple[Dataset, Dataset]:
    """The same, and the records beside them that are for testing."""
    from maxrr.data import load

    name = source or workspace.source.get("name")
    if name is None:
        raise Stop(
            FAILED, f"{workspace.folder} does not say where its records come from, and they are needed: use --source"
        )
    if source is None and "/" in name and not Path(name).exists():
        raise Stop(FAILED, f"the records of {workspace.folder} came from {name}, and nothing is there: use --source")
    training, test = load(name, **columns(workspace), ids_from=ids_from(workspace), progress=progress)
    kind = workspace.kind
    return kind.conform(training), kind.conform(test)


def columns(workspace: Workspace) -> dict[str, Any]:
    """What labels, ids and subjects are called in a CSV file of this workspace."""
    return {kind: workspace.source.get(kind, kind) for kind in ("label", "id", "subject")}


def ids_from(workspace: Workspace) -> Any:
    """How records without ids are named in this workspace: as `maxrr.data.load` takes it."""
    return workspace.source.get("ids_from")
