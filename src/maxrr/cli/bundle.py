"""`maxrr bundle`: what somebody else needs to prove the receipts of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from maxrr.cli import show
from maxrr.cli.exits import FAILED, Stop
from maxrr.cli.opening import check_network, check_outside, opened
from maxrr.cli.options import WAIT, Folder, Json, Network, Wait
from maxrr.cli.status import size


def run(
    workspace: Folder,
    file: Annotated[Path, Argument(metavar="FILE", help="The file to write.")],
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Write a file with which whoever holds the records can prove a receipt on another machine: `maxrr prove FILE …`.

    It holds the setting, the model, the features and the key by which forgotten ids are recognised, but no records: it
    is for auditors, not for the public. Nothing in it is code.

    Examples:

        maxrr bundle ws/ model.bundle
        maxrr prove model.bundle receipt.json --source retained.npz
    """
    with opened(workspace, wait, network=network, read_only=True) as found:
        check_network(found)
        check_outside(file, found)
        check_free(file)
        found.bundle().save(file)
        model = found.model_hash_
    if json:
        show.json({"path": str(file), "bytes": file.stat().st_size, "model_hash": model})
    else:
        show.say(f"Wrote {file}, {size(file.stat().st_size)}: model {model[:12]}…. Keep it from the public.")


def check_free(file: Path) -> None:
    """Refuse to write over anything but an earlier bundle."""
    from maxrr.unlearning.bundles import content_of

    if file.exists():
        try:
            content_of(file)
        except ValueError:
            raise Stop(FAILED, f"{file} is there already, and is not a bundle: name another file") from None
