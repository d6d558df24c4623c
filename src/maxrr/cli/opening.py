"""Open a workspace for one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli.exits import FAILED, Stop

if TYPE_CHECKING:
    from maxrr.nets.naming import NamedNetwork
    from maxrr.unlearning.state import Fitted
    from maxrr.workspace import Workspace


@contextmanager
def opened(folder: Path, wait: float, *, network: str | None = None, read_only: bool = False) -> Iterator[Workspace]:
    """The workspace, for as long as the block lasts."""
    from maxrr.workspace import Workspace

    with importing_from_here(network):
        made = None if network is None else network_of(folder, network)
        with Workspace.open(folder, network=made, read_only=read_only, wait=wait) as workspace:
            yield workspace


def network_of(folder: Path, maker: str) -> NamedNetwork:
    """The network that the user says was fitted, for the records that the workspace says it has."""
    from maxrr.workspace.root import Root

    records = Root.read(folder).facts["records"]
    return named_network(maker, tuple(records["shape"]), len(records["classes"]))


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


@contextmanager
def importing_from_here(network: str | None) -> Iterator[None]:
    """A network of the user's own may lie in the current folder, which is looked in last: it hides no package."""
    if network is None:
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
    from maxrr.workspace.contents import Unmade

    extractor = insides(workspace).extractor
    if isinstance(extractor, Unmade):
        raise Stop(FAILED, f"this needs the network of the workspace{extractor.maker}: name it with --network")


def check_outside(file: Path, workspace: Workspace) -> None:
    """Refuse to write a file into the folder of the workspace."""
    if file.resolve().is_relative_to(workspace.folder.resolve()):
        raise Stop(FAILED, f"{file} is in the workspace, which holds its own files alone: write it elsewhere")


def insides(workspace: Workspace) -> Fitted:
    """What the model is: the types of ids, the key, the marks of what was forgotten."""
    return workspace._fitted
