"""`maxrr plan`: what a request would do, before anything is touched."""

from __future__ import annotations

from maxrr.cli import show
from maxrr.cli.exits import REFUSED, Stop
from maxrr.cli.opening import opened
from maxrr.cli.options import (
    WAIT,
    CorePolicy,
    Folder,
    HeadRefit,
    Ids,
    IdsFile,
    Json,
    Policy,
    Refit,
    Subjects,
    Wait,
)
from maxrr.cli.requests import check_one_kind, planned, refusal, request_of, tell


def run(
    workspace: Folder,
    ids: Ids = None,
    ids_file: IdsFile = None,
    subject: Subjects = None,
    policy: CorePolicy = Policy.REFUSE,
    refit: HeadRefit = Refit.RETAINED,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Say what forgetting records would do: the guarantee, why, and how long it takes. Changes nothing.

    Exits with 0 if `maxrr unlearn` would do it, and with 3 if it would refuse.

    Examples:

        maxrr plan ws/ --ids 3,4,5
        maxrr plan ws/ --ids-file leaving.txt --policy retrain
        maxrr plan ws/ --subject anna --json
    """
    check_one_kind(ids, ids_file, subject)
    with opened(workspace, wait, read_only=True) as found:
        plan = planned(found, request_of(found, ids, ids_file, subject), policy, refit)
    if json:
        show.json(plan.to_dict() | {"refusal": refusal(plan) or None})
    else:
        tell(plan)
    if plan.refusal:
        raise Stop(REFUSED)
