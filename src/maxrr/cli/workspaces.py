"""Open a workspace for one command, and find the raw records that it was fitted on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maxrr.cli import show
from maxrr.cli.options import NETWORK, TRAIN, IdsFrom
from maxrr.cli.run import FAILED, Stop

if TYPE_CHECKING:
    from maxrr.data import Dataset, Encoding
    from maxrr.nets import TrainingFunction
    from maxrr.nets.naming import NamedNetwork
    from maxrr.progress import Progress
    from maxrr.workspace import Workspace

MOST_NAMES = 12  # of columns in one line
APART = "apart"  # of people: none has records both for training and for testing


@contextmanager
def opened(
    folder: Path, wait: float, *, records: Callable[[], Dataset] | None = None, network: str | None = None,
    train: str | None = None, key: Path | None = None, read_only: bool = False, may_be_older: bool = False,
) -> Iterator[Workspace]:  # fmt: skip
    """The workspace, for as long as the block lasts; to work in it, with the user's key, if there is one.

    An older copy is only to be read, or to be made up for.
    """
    from maxrr.workspace import Commit, WorkspaceError, overview

    if Commit.last(folder) is None:
        overview(folder)  # says what is missing, without waiting for PyTorch
    from maxrr.evidence.public_keys import find_key
    from maxrr.workspace import Workspace

    with importing_from_here(network, train):
        made = None if network is None else network_of(folder, network)
        way = None if train is None else training_function(train)
        try:
            signing_key = None if read_only else find_key(key)
            workspace = Workspace.open(
                folder, records=records, network=made, train=way, signing_key=signing_key, read_only=read_only,
                wait=wait,
            )  # fmt: skip
        except WorkspaceError as error:
            named = (NETWORK, network, "network"), (TRAIN, train, "without train")
            for variable, given, about in named:
                if given is not None and os.environ.get(variable) == given and about in str(error):
                    raise WorkspaceError(f"{error} ({variable} is set)") from None
            raise
        with workspace:
            if not (read_only or may_be_older):
                workspace.check_newest()
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


def check_code(workspace: Workspace, *, training: bool = False) -> None:
    """Refuse to embed, or to train again, by code of the user's own that was not named."""
    from maxrr.workspace import NetworkMissing, TrainingMissing

    try:
        workspace.check_code(training=training)
    except NetworkMissing as missing:
        which = "" if missing.maker is None else f", which {missing.maker} makes"
        raise Stop(FAILED, f"this needs the network of the workspace{which}: name it with --network") from None
    except TrainingMissing as missing:
        raise Stop(FAILED, f"this trains again, by {missing.name}: name it with --train") from None


def word(ids_from: IdsFrom | None) -> Literal["content", "rows"] | None:
    """The option as `maxrr.data.load` takes it."""
    return None if ids_from is None else "content" if ids_from is IdsFrom.CONTENT else "rows"


def reading(
    label: str, id: str, subject: str, weight: str | None, encoding: Path | None, ids_from: IdsFrom | None,
    split_by: str, meta: Path | None = None, drop: Sequence[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """How records are read: the options of a command as `maxrr.data.load` takes them."""
    from maxrr.data import Encoding

    return {
        "label": label, "id": id, "subject": subject, "weight": weight,
        "encoding": None if encoding is None else Encoding.read(encoding), "ids_from": word(ids_from),
        "split_by": split_by, "meta": None if meta is None else str(meta.absolute()),
        "drop": tuple(drop or ()),
    }  # fmt: skip


def tell_columns(table: Dataset, json: bool) -> None:
    """Which columns of a table became inputs, and what may be wrong with these."""
    from maxrr.data.description import doubts

    names = table.columns
    if names is None:
        return
    if not json:
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        show.say(f"Inputs: {', '.join(map(repr, names[:MOST_NAMES]))}{more}.")
    for said in doubts(table):
        show.warning(said)


def to_keep(source: str, options: dict[str, Any], training: Dataset, test: Dataset) -> dict[str, str]:
    """What a workspace keeps of its source: a path is made absolute, for later commands may run elsewhere."""
    notes = {"name": lasting_name(source)}
    notes |= {name: value for name, value in options.items() if isinstance(value, str)}
    if options["encoding"] is not None:
        notes["encoding"] = options["encoding"].to_json()
    if options["drop"]:
        notes["drop"] = json.dumps(options["drop"], ensure_ascii=False)
    people = [set() if side.subjects is None else set(side.subjects.tolist()) for side in (training, test)]
    if not people[0] & people[1] and training.subjects is not None:
        notes["people"] = APART
    return notes


def lasting_name(source: str) -> str:
    """What a source is called wherever later commands may run."""
    from maxrr.data import available

    return source if source in [name for name, _ in available()] else str(Path(source).absolute())


def raw_records(workspace: Workspace, sources: Sequence[str] | None, progress: Progress) -> Dataset:
    """The records that a workspace has learned, from its own sources or from other places."""
    return sides(workspace, sources, progress)[0]


def sides(workspace: Workspace, sources: Sequence[str] | None, progress: Progress) -> tuple[Dataset, Dataset]:
    """The same, and the records beside them that are for testing.

    Of what was fitted these are set aside by its source; what was added is for training, all of it.
    """
    import numpy as np

    from maxrr.data import load
    from maxrr.errors import DataError

    notes = moved_sources(workspace, sources) if sources else known_sources(workspace)
    places = [(note["name"], options_for(note, note["name"])) for note in notes]
    (first, options), *others = places
    try:
        training, test = load(first, **options, progress=progress)
    except DataError as error:
        raise error if "label" in workspace.source else Stop(FAILED, f"{error}. {not_told(workspace.folder)}") from None
    added = [load(name, **options, whole=True, progress=progress)[0] for name, options in others]
    model = workspace.model
    kind = model.kind_
    test = kind.conform(test)
    seen = test.ids[np.isin(test.ids, model.ids_of()) | model.has_forgotten(test.ids)]  # added from elsewhere
    return kind.join([training, *added, *([test.select(seen)] if len(seen) else [])]), test.without(seen)


def not_told(folder: Path) -> str:
    """What to do about a workspace that was not told how its records are read from a table."""
    return (
        f"{folder} was made in Python, and not told how its records are read (source=…): do this in Python, too, with "
        "the records that you bring, as in Workspace.open(folder, records=load_training)"
    )


def moved_sources(workspace: Workspace, names: Sequence[str]) -> list[dict[str, str]]:
    """The sources of a workspace in other places: each read as the one was whose place it takes.

    Where all were read in the same way, there may be fewer or more of them now.
    """
    notes = distinct(workspace.sources)
    if len(names) != len(notes):
        ways = [{name: value for name, value in note.items() if name != "name"} for note in notes]
        if any(way != ways[0] for way in ways):
            places = ", ".join(note.get("name", "one without a name") for note in notes)
            raise Stop(
                FAILED,
                f"the sources of {workspace.folder} were read in different ways: give one --source for each, in this "
                f"order: {places}",
            )
        notes = [workspace.source] * len(names)
    return [note | {"name": name} | moved_meta(note, name) for note, name in zip(notes, names, strict=True)]


def moved_meta(note: Mapping[str, str], name: str) -> dict[str, str]:
    """The table beside an .npy file, if it has moved along with it."""
    meta = Path(note.get("meta", ""))
    beside = Path(name).absolute().parent / meta.name
    return {"meta": str(beside)} if "meta" in note and not meta.exists() and beside.exists() else {}


def distinct(notes: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Each note once."""
    return [note for number, note in enumerate(notes) if note not in notes[:number]]


def known_sources(workspace: Workspace) -> list[dict[str, str]]:
    """Where the records of a workspace come from, each place once."""
    notes = workspace.sources
    if any("name" not in note for note in notes):
        raise Stop(
            FAILED, f"{workspace.folder} does not say where its records come from, and they are needed: use --source"
        )
    for name in (note["name"] for note in notes):
        if "/" in name and not Path(name).exists():
            raise Stop(
                FAILED, f"the records of {workspace.folder} came from {name}, and nothing is there: use --source"
            )
    return distinct(notes)


def options_for(notes: Mapping[str, str], source: str) -> dict[str, Any]:
    """How records are read from a source, by what a workspace has noted, as `maxrr.data.load` takes it.

    A workspace from before records were split by subject says nothing of that, and its records were split by id. A
    source without columns is read without their names, and one that lacks a column that is to be dropped, as it is.
    """
    from maxrr.data.sources import header_of, is_table

    always = {"ids_from": notes.get("ids_from"), "split_by": notes.get("split_by", "id")}
    if Path(source).suffix == ".npy":
        return columns(notes) | {"meta": notes.get("meta")} | always
    if not is_table(source):
        return always
    there = header_of(source) if "drop" in notes and Path(source).is_file() else []
    dropped = [name for name in dropped_columns(notes) if name in there]
    return columns(notes) | {"encoding": encoding_of(notes), "drop": dropped} | always


def columns(notes: Mapping[str, str]) -> dict[str, Any]:
    """What the columns that are no inputs are called in a table, by what a workspace has noted."""
    return {kind: notes.get(kind, kind) for kind in ("label", "id", "subject")} | {"weight": notes.get("weight")}


def dropped_columns(notes: Mapping[str, str]) -> list[str]:
    """The columns of a table that are passed over, by what a workspace has noted."""
    return [str(name) for name in json.loads(notes.get("drop", "[]"))]


def encoding_of(notes: Mapping[str, str]) -> Encoding:
    """How the columns of a table became inputs when a workspace was fitted."""
    from maxrr.data import Encoding

    declared = notes.get("encoding")
    return Encoding() if declared is None else Encoding.from_json(declared)
