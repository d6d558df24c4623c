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
    from maxrr.data import Dataset, Encoding
    from maxrr.nets import TrainingFunction
    from maxrr.nets.naming import NamedNetwork
    from maxrr.progress import Progress
    from maxrr.workspace import Workspace

APART = "apart"  # of people: none has records both for training and for testing


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


def named_network(
    maker: str, shape: tuple[int, ...] | dict[str, tuple[int, ...]], classes: int
) -> NamedNetwork:  # fmt: skip
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


def reading(
    label: str, id: str, subject: str, weight: str | None, encoding: Path | None, ids_from: IdsFrom | None,
    split_by: str, meta: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """How records are read: the options of a command as `maxrr.data.load` takes them."""
    from maxrr.data import Encoding

    return {
        "label": label, "id": id, "subject": subject, "weight": weight,
        "encoding": None if encoding is None else Encoding.read(encoding), "ids_from": word(ids_from),
        "split_by": split_by, "meta": None if meta is None else str(meta.absolute()),
    }  # fmt: skip


def to_keep(source: str, options: dict[str, Any], training: Dataset, test: Dataset) -> dict[str, str]:
    """What a workspace keeps of its source: a path is made absolute, for later commands may run elsewhere."""
    from maxrr.data import available

    known = source in [name for name, _ in available()]
    notes = {"name": source if known else str(Path(source).absolute())}
    notes |= {name: value for name, value in options.items() if isinstance(value, str)}
    if options["encoding"] is not None:
        notes["encoding"] = options["encoding"].to_json()
    people = [set() if side.subjects is None else set(side.subjects.tolist()) for side in (training, test)]
    if not people[0] & people[1] and training.subjects is not None:
        notes["people"] = APART
    return notes


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
    training, test = load(name, **options_for(workspace, name), progress=progress)
    kind = workspace.kind
    return kind.conform(training), kind.conform(test)


def options_for(workspace: Workspace, source: str) -> dict[str, Any]:
    """How records of this workspace are read from a source, as `maxrr.data.load` takes it.

    A workspace from before records were split by subject says nothing of that, and its records were split by id. A
    source without columns is read without their names.
    """
    from maxrr.data.sources import is_table

    notes = workspace.source
    always = {"ids_from": notes.get("ids_from"), "split_by": notes.get("split_by", "id")}
    if Path(source).suffix == ".npy":
        return columns(workspace) | {"meta": notes.get("meta")} | always
    if not is_table(source):
        return always
    return columns(workspace) | {"encoding": encoding_of(workspace)} | always


def columns(workspace: Workspace) -> dict[str, Any]:
    """What the columns that are no inputs are called in a table of this workspace."""
    notes = workspace.source
    return {kind: notes.get(kind, kind) for kind in ("label", "id", "subject")} | {"weight": notes.get("weight")}


def encoding_of(workspace: Workspace) -> Encoding:
    """How the columns of a table became inputs when this workspace was fitted."""
    from maxrr.data import Encoding

    declared = workspace.source.get("encoding")
    return Encoding() if declared is None else Encoding.from_json(declared)
