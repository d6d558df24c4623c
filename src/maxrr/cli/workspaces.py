"""Open a workspace for one command, and find the raw records that it was fitted on."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxrr.cli import show
from maxrr.cli.options import NETWORK, TRAIN
from maxrr.errors import RecordsMissing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxrr.data import Dataset
    from maxrr.data.reading import Reading
    from maxrr.nets.naming import NamedNetwork
    from maxrr.nets.training_function import TrainingFunction
    from maxrr.unlearning.record_kind import RecordKind
    from maxrr.workspace import Workspace

WAIT = 5.0  # seconds, while another process works in the workspace


@contextmanager
def opened(
    folder: Path, *, moved: Sequence[str] | None = None, records: Callable[[], Dataset] | None = None,
    read_only: bool = False, newest: bool | None = None,
) -> Iterator[Workspace]:  # fmt: skip
    """Open a workspace for the length of a block; to change it, with the user's key if there is one.

    Raw records are read if the work needs them, from where they have moved, or by `records`. The user's own network and
    training function are those that the environment names. What is known to be an older copy is refused, if nothing
    else is said, where work is to be done in it.
    """
    with own_code(), open_as_named(folder, moved, records, read_only, newest) as workspace:
        yield workspace


def own_code() -> AbstractContextManager[None]:
    """Let the code be found that the environment names."""
    return importing_from_here(os.environ.get(NETWORK), os.environ.get(TRAIN))


def open_as_named(
    folder: Path, moved: Sequence[str] | None, records: Callable[[], Dataset] | None, read_only: bool,
    newest: bool | None = None,
) -> Workspace:  # fmt: skip
    """Open the workspace as `opened` does, for whoever closes it and keeps the user's own code in reach."""
    from maxrr.workspace import Commit, overview

    last = Commit.last(folder)
    if last is None:
        overview(folder)  # says what is missing, without waiting for PyTorch
    from maxrr.evidence.public_keys import find_key

    network, train = os.environ.get(NETWORK), os.environ.get(TRAIN)
    made = None if network is None or last is None else named_network(network, last.shape, len(last.classes))
    way = None if train is None else training_function(train)
    workspace = open_folder(
        folder, newest=not read_only if newest is None else newest, network=made, train=way, read_only=read_only,
        records=records or (lambda: sides(workspace, moved)[0]), signing_key=None if read_only else find_key(),
    )  # fmt: skip
    return workspace


def open_folder(folder: Path, *, newest: bool, **options: Any) -> Workspace:
    """Open a workspace; with `newest`, refuse a copy that is known to be older."""
    from maxrr.workspace import OlderCopyWarning, Workspace

    with warnings.catch_warnings():
        if newest:  # the error below says the same
            warnings.simplefilter("ignore", OlderCopyWarning)
        workspace = Workspace.open(folder, wait=WAIT, **options)
    try:
        if newest:
            workspace.check_newest()
    except BaseException:
        workspace.close()
        raise
    return workspace


def named_network(maker: str, shape: tuple[int, ...] | dict[str, tuple[int, ...]], classes: int) -> NamedNetwork:
    """Name a network of the user's own for such records, and make it once to see that it works."""
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
    """Import a training function of the user's own."""
    from maxrr.nets.naming import find_maker

    found: TrainingFunction = find_maker(name)
    return found


@contextmanager
def importing_from_here(*names: str | None) -> Iterator[None]:
    """Let the user's own modules be imported from the current folder, which is searched last."""
    if all(name is None for name in names):
        yield
        return
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


# Where records come from


def reading_in(notes: Mapping[str, str]) -> Reading:
    """Read how a source is read from a workspace's notes of it."""
    from maxrr.data.reading import Reading

    return Reading.from_toml(notes.get("reading", ""))


def noted(source: str, reading: Reading) -> dict[str, Any]:
    """Note for a workspace where a source is, as an absolute path, and how it is read, for `maxrr.data.load`."""
    from maxrr.data import available

    name = source if source in [name for name, _ in available()] else str(Path(source).absolute())
    return {"source": name, "reading": reading.to_toml()}


def sides(workspace: Workspace, moved: Sequence[str] | None) -> tuple[Dataset, Dataset]:
    """Read the records that a workspace has learned, and those for testing beside them, from where they are now."""
    import numpy as np

    from maxrr.data import load

    first, *others = moved_sources(workspace, moved) if moved else known_sources(workspace)
    training, test = load(**first, progress=show.report)
    added = [load(**other, whole=True, progress=show.report)[0] for other in others]
    model = workspace.model
    return learned_and_test(
        model.kind_, [training, *added], test, lambda ids: np.isin(ids, model.ids_of()) | model.has_forgotten(ids)
    )


def learned_and_test(
    kind: RecordKind, learned: list[Dataset], test: Dataset, is_known: Callable[[NDArray[Any]], NDArray[Any]]
) -> tuple[Dataset, Dataset]:
    """Join the records that the model learned, also those that a source now sets aside for testing."""
    test = kind.conform(test)
    seen = test.ids[is_known(test.ids)]
    return kind.join([*learned, *([test.select(seen)] if len(seen) else [])]), test.without(seen)


def known_sources(workspace: Workspace) -> list[dict[str, Any]]:
    """Return where the records of a workspace come from, each place once."""
    notes = distinct(workspace.sources)
    for note in notes:
        if "source" not in note:
            raise RecordsMissing(
                f"{workspace.folder} does not say where its records come from, and they are needed: use --source, or "
                "Workspace.open(folder, records=load_training) in Python"
            )
        if "/" in note["source"] and not Path(note["source"]).exists():
            raise RecordsMissing(f"the records of {workspace.folder} are no more in {note['source']}: use --source")
    return [{name: value for name, value in note.items() if name != "demo"} for note in notes]


def moved_sources(workspace: Workspace, places: Sequence[str]) -> list[dict[str, Any]]:
    """Return the new places of a workspace's sources; each is read as the source in whose place it stands."""
    readings = [note.get("reading") for note in distinct(workspace.sources)]
    readings += [readings[-1]] * len(places)
    return [{"source": place, "reading": reading} for place, reading in zip(places, readings, strict=False)]


def distinct(notes: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Drop repeated notes."""
    return [note for number, note in enumerate(notes) if note not in notes[:number]]
