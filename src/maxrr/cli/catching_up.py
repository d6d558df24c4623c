"""`maxrr backup`, and `maxrr workspace catch-up`: a copy that was restored forgets what was forgotten since."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.log import trusted
from maxrr.cli.options import (
    WAIT,
    CorePolicy,
    Folder,
    Json,
    Network,
    Policy,
    SigningKeyFile,
    Source,
    Train,
    Wait,
)
from maxrr.cli.outcome import answer, request_done, told
from maxrr.cli.requests import in_shell
from maxrr.cli.run import REFUSED, USAGE, Stop
from maxrr.cli.unlearn import UNDONE
from maxrr.cli.workspaces import opened, raw_records
from maxrr.errors import Refused
from maxrr.plain_text import count


def backup(
    workspace: Folder,
    to: Annotated[Path, Argument(metavar="FOLDER", help="Where the copy is made: a folder that is new or empty.")],
    json: Json = False,
) -> None:
    """Copy a workspace as it is at one moment, while requests are carried out.

    Nobody is kept out or waited for. The copy says what it is when it is opened, and takes no requests before it has
    caught up with the workspace: `maxrr workspace catch-up COPY --from WORKSPACE`.

    Examples:

        maxrr backup ws/ /backup/ws-monday/
    """
    from maxrr.workspace import Commit
    from maxrr.workspace import backup as copied

    outputs.check_apart(to)
    copied(workspace, to)
    made = Commit.last(to)
    assert made is not None
    if json:
        show.json({"path": str(to), "requests": made.requests})
    else:
        show.say(f"Copied {workspace} to {to}, with {count(made.requests, 'request')} carried out.")


def catch_up(
    workspace: Folder,
    newer: Annotated[
        Path | None,
        Option(
            "--from",
            help="The newer copy, as far as it is left: a folder with its history (history-….bin) and its log.",
        ),
    ] = None,
    accept_loss: Annotated[str | None, Option(metavar="REASON", help="Instead of --from: how it was lost.")] = None,
    operator: Annotated[
        Path | None,
        Option(help="Public keys that came later than this copy, in a file as `maxrr key show --out` writes it."),
    ] = None,
    policy: CorePolicy = Policy.REFUSE,
    source: Source = None,
    network: Network = None,
    train: Train = None,
    key: SigningKeyFile = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Forget again what a newer copy of this workspace has forgotten, after an older one was restored from a backup.

    The newer receipts are checked, and become this workspace's own; every record here that they name is forgotten.
    Records that were added or replaced meanwhile are not here: add them again. Until then an older copy takes no
    requests and makes no exports, as far as it is known to be one. If nothing is left of the newer copy, --accept-loss
    goes on without it, with another log: the reason, and what was last seen of the lost log, stand on every later
    receipt.

    Examples:

        maxrr workspace catch-up restored/ --from broken/
        maxrr workspace catch-up restored/ --from published/ --policy retrain
        maxrr workspace catch-up restored/ --accept-loss "the disk of 3 May is broken, and was not published"
    """
    from maxrr.evidence.public_keys import find_public_keys

    if (newer is None) == (accept_loss is None):
        raise Stop(USAGE, "name the newer copy with --from; if nothing is left of it, say why with --accept-loss")
    mine = find_public_keys(key)
    keys = [*(trusted(operator) if operator is not None else ()), *(mine.keys if mine is not None else ())]
    with told() as outcome:
        with opened(
            workspace, wait, records=lambda: raw_records(found, source, progress), network=network, train=train,
            key=key, may_be_older=True,
        ) as found:  # fmt: skip
            before = found.model.model_hash_
            with outcome.work(workspace, UNDONE, request_done), show.progress() as progress:
                try:
                    receipt = found.accept_loss(accept_loss or "") if newer is None else found.catch_up(
                        newer, keys=keys, core_policy=str(policy), progress=progress
                    )  # fmt: skip
                except Refused as refused:
                    raise Stop(REFUSED, f"refused: {in_shell(str(refused))}") from None
            number, outcome.unfinished = found.status().requests, found.unfinished
            models = before, found.model.model_hash_
        if receipt is not None:
            answer(receipt, workspace, models, json=json)
        elif json:
            show.json({"requests": number})
        else:
            show.say(f"no record here had to be forgotten; the receipts up to number {number} are here now")
        if not json:
            other = newer or "the lost copy, if it turns up"
            show.say(f"Go on with {workspace}, and no longer with {other}: two copies that go on are a split view.")
