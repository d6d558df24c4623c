"""`maxrr backup` and `maxrr catch-up`: a copy of a workspace, which forgets what was forgotten since."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli import outcome, outputs, show
from maxrr.cli.options import CorePolicy, Folder, Json, Source
from maxrr.cli.requests import UNDONE
from maxrr.cli.run import REFUSED, USAGE, Stop
from maxrr.cli.workspaces import opened
from maxrr.errors import Refused
from maxrr.plain_text import count


def backup(
    workspace: Folder,
    to: Annotated[Path, Argument(metavar="FOLDER", help="Where the copy is made: a folder that is new or empty.")],
) -> None:
    """Copy a workspace as it is at one moment, while requests are carried out.

    Nobody is kept out or waited for. The copy says what it is when it is opened, and takes no requests before it has
    caught up with the workspace: `maxrr catch-up COPY --from WORKSPACE`.

    Examples:

        maxrr backup ws/ /backup/ws-monday/
    """
    from maxrr.workspace import Commit
    from maxrr.workspace import backup as copied

    outputs.check_apart(to)
    copied(workspace, to)
    made = Commit.last(to)
    assert made is not None
    show.say(f"Copied {workspace} to {to}, with {count(made.requests, 'request')} carried out.")


def catch_up(
    workspace: Folder,
    newer: Annotated[
        Path | None,
        Option("--from", help="The newer copy, as far as it is left: a folder with its history (history-….bin)."),
    ] = None,
    gone: Annotated[
        str | None, Option(metavar="REASON", help="Why the other copy is gone for good; with --from, why its end is.")
    ] = None,
    operator: Annotated[
        Path | None, Option(help="Public keys that are newer than this copy, as `maxrr key show --out` wrote them.")
    ] = None,
    policy: CorePolicy = "refuse",
    source: Source = None,
    json: Json = False,
) -> None:
    """Forget again what a newer copy of this workspace has forgotten, after an older one was restored from a backup.

    The newer receipts are checked, and become this workspace's own; every record here that they name is forgotten.
    Records that were added or replaced meanwhile are not here: add them again. Until then an older copy takes no
    requests and makes no exports. If nothing is left of the other copy, --gone goes on without it. Where this machine
    has carried out no request after those that are here, that is all; otherwise another log begins, and what is known
    of the former one stands on every later receipt. If only its end is gone, name both: what can be read is forgotten.

    Examples:

        maxrr catch-up restored/ --from broken/
        maxrr catch-up restored/ --from published/ --policy retrain
        maxrr catch-up restored/ --gone "the disk of 3 May is broken, and was not published"
    """
    from maxrr.evidence import PublicKeys
    from maxrr.evidence.public_keys import find_public_keys

    if newer is None and gone is None:
        raise Stop(USAGE, "name the newer copy with --from; if nothing is left of it, say why with --gone")
    known = [None if operator is None else PublicKeys.load(operator), find_public_keys()]
    keys = [key for some in known if some is not None for key in some.keys]
    with outcome.told() as ending:
        with opened(workspace, moved=source, newest=False) as found:
            with ending.work(workspace, UNDONE, outcome.request_done), show.progress():
                try:
                    receipt = found.declare_gone(gone or "") if newer is None else found.catch_up(
                        newer, keys=keys, core_policy=policy, gone=gone, progress=show.report
                    )  # fmt: skip
                except Refused as refused:
                    words = re.sub(r"core_policy='([\w-]+)'", r"--policy \1", str(refused))
                    raise Stop(REFUSED, f"refused: {words}") from None
            number, ending.unfinished = found.status().requests, found.unfinished
        if receipt is not None:
            outcome.tell(receipt, workspace, json=json)
        elif json:
            show.json({"requests": number})
        else:
            show.say(f"no record here had to be forgotten; the receipts up to number {number} are here now")
        if not json:
            other = newer or "the lost copy, if it turns up"
            show.say(f"Go on with {workspace}, and no longer with {other}: two copies that go on are a split view.")
