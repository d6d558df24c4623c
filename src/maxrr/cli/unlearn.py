"""`maxrr unlearn`: forget records, and keep a receipt of it."""

from __future__ import annotations

from maxrr.cli import answers, show
from maxrr.cli.consent import confirm
from maxrr.cli.exits import REFUSED, Stop
from maxrr.cli.opening import check_network, opened
from maxrr.cli.options import (
    WAIT,
    CorePolicy,
    Folder,
    HeadRefit,
    Ids,
    IdsFile,
    Json,
    Network,
    Policy,
    Refit,
    Source,
    Subjects,
    Wait,
    Yes,
)
from maxrr.cli.outcome import request_done, told
from maxrr.cli.requests import check_one_kind, planned, refusal, request_of
from maxrr.cli.sources import raw_records

UNDONE = "nothing was changed, and no record forgotten"  # what is said to somebody who interrupts


def run(
    workspace: Folder,
    ids: Ids = None,
    ids_file: IdsFile = None,
    subject: Subjects = None,
    policy: CorePolicy = Policy.REFUSE,
    refit: HeadRefit = Refit.RETAINED,
    source: Source = None,
    yes: Yes = False,
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Forget records: all of them or, if one cannot be, none.

    Without --yes the plan is shown first, to be confirmed at the terminal. When the command is done, the records are
    gone from the workspace's files, too, and a receipt is among them. The raw records stay where they are: delete them
    there yourself.

    Examples:

        maxrr unlearn ws/ --ids 3,4,5
        maxrr unlearn ws/ --subject anna --policy retrain --yes
        cat leaving.txt | maxrr unlearn ws/ --ids-file - --yes --json
    """
    check_one_kind(ids, ids_file, subject)
    with told() as outcome:
        with opened(workspace, wait, network=network) as found:
            plan = planned(found, request_of(found, ids, ids_file, subject), policy, refit)
            if plan.refusal:
                raise Stop(REFUSED, f"refused: {refusal(plan)}")
            again = plan.trains > 0 or plan.embeds > 0
            if again:
                check_network(found)
            confirm(plan, "Forget these records for good?", yes=yes, json=json)
            before = found.model_hash_
            with outcome.work(workspace, UNDONE, request_done), show.progress() as report:
                records = raw_records(found, source, report) if again else None
                receipt = found.execute(plan, records=records, report=report)
            path, outcome.unfinished = found.receipt_path(receipt.number), found.unfinished
            models = before, found.model_hash_
        answers.tell(receipt, path, models, json=json)
