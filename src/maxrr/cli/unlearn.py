"""`maxrr plan`, `unlearn`, `replace` and `add`: what a request would do, and doing it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outcome, requests, show, tickets
from maxrr.cli.options import Copies, CorePolicy, Earlier, Folder, Ids, IdsFile, Json, Source, Subjects, Yes
from maxrr.cli.predict import records_in
from maxrr.cli.requests import UNDONE
from maxrr.cli.run import FAILED, REFUSED, USAGE, Stop
from maxrr.cli.workspaces import noted, opened, reading_in

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.workspace import Workspace

UNADDED = "nothing was changed, and no record added"  # what is said to somebody who interrupts


def plan(
    workspace: Folder,
    ids: Ids = None,
    ids_file: IdsFile = None,
    subject: Subjects = None,
    receipt: Earlier = None,
    policy: CorePolicy = "refuse",
    json: Json = False,
) -> None:
    """Say what forgetting records would do: the guarantee, why, and how long it takes. Changes nothing.

    Exits with 0 if `maxrr unlearn` would do it, and with 3 if it would refuse.

    Examples:

        maxrr plan ws/ --ids 3,4,5
        maxrr plan ws/ --ids-file leaving.txt --policy retrain
        maxrr plan ws/ --subject anna --json
    """
    request = requests.request_of(ids, ids_file, subject, receipt)
    with opened(workspace, read_only=True) as found:
        plan = found.model.plan(**request, core_policy=policy)
    if json:
        before = [hmac.hex() for hmac in plan.request.forgotten_before]
        show.json(requests.as_json(plan) | {"earlier_receipts": outcome.earlier_receipts(workspace, before)})
    else:
        requests.tell(plan)
    if plan.refusal:
        raise Stop(REFUSED)


def unlearn(
    workspace: Folder,
    ids: Ids = None,
    ids_file: IdsFile = None,
    subject: Subjects = None,
    receipt: Earlier = None,
    requests_file: Annotated[
        Path | None,
        Option(
            "--requests",
            help="A .csv file of tickets: ticket, subject or id, received, due. Run again, it does what is left.",
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="With --requests: the .csv file of results.")] = None,
    policy: CorePolicy = "refuse",
    source: Source = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Forget records: all of them, or none. Of a file of tickets each is answered by itself.

    Without --yes the plan is shown first, to be confirmed at the terminal. When the command is done, the records are
    gone from the workspace's files, too, and a receipt is among them. The raw records stay where they are: delete them
    there yourself.

    Examples:

        maxrr unlearn ws/ --ids 3,4,5
        maxrr unlearn ws/ --subject anna --policy retrain --yes
        maxrr unlearn ws/ --requests requests.csv --policy retrain --yes
    """
    if requests_file is not None and not (ids or ids_file or subject or receipt):
        tickets.answer(workspace, requests_file, out, policy, source, yes=yes, json=json)
        return
    if requests_file is not None or out is not None:
        raise Stop(USAGE, "--requests names the records itself, and --out goes with it: leave out the others")
    request = requests.request_of(ids, ids_file, subject, receipt)
    requests.check_can_ask(yes=yes, json=json)
    with outcome.told() as ending:
        with opened(workspace, moved=source) as found:
            plan = found.model.plan(**request, core_policy=policy)
            if plan.action.fits_anew and not plan.refusal:
                found.check_code(training=bool(plan.trains))
            requests.confirm(plan, "Forget these records for good?", yes=yes)
            done = outcome.carry_out(ending, found, UNDONE, plan)
        outcome.tell(done, workspace, json=json)


def replace(
    workspace: Folder,
    id: Annotated[str, Argument(metavar="ID", help="The id of the record, which it keeps.")],
    file: Annotated[
        Path, Argument(metavar="FILE", help="The new record alone: a PNG or JPEG image, an .npy, .npz or .csv file.")
    ],
    label: Annotated[str | None, Option(help="The name of the new record's class, if the class changes.")] = None,
    policy: CorePolicy = "refuse",
    allow_copies: Copies = None,
    source: Source = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Forget a record, and learn another in its place.

    The new record shapes the heads. It shapes the extractor where that is trained again and the core is one by hash or
    full; otherwise not before the next `maxrr fit`. Correct the record in your source as well: whatever is trained
    again from there expects it as it is now.

    Examples:

        maxrr replace ws/ 17 scan-17.png
        maxrr replace ws/ visit-9 corrected.npy --label healthy --policy retrain --yes
    """
    requests.check_can_ask(yes=yes, json=json)
    with outcome.told() as ending:
        with opened(workspace, moved=source) as found:
            found.check_code()
            kind = found.model.kind_
            _, records = records_in(file, kind, reading_in(found.sources[0]))
            if len(records) > 1:
                raise Stop(FAILED, f"{file}: holds {len(records):,} records, where one is wanted")
            plan = found.model.plan(id, inputs=records[0], label=label, core_policy=policy, allow_copies=allow_copies)
            if plan.trains and not plan.refusal:
                found.check_code(training=True)
            requests.confirm(plan, "Replace this record for good?", yes=yes)
            done = outcome.carry_out(ending, found, UNDONE, plan)
        outcome.tell(done, workspace, json=json)


def add(
    workspace: Folder,
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="The new records, all of them, as `maxrr fit` takes them. They are read as those of the fit were, or "
            "as `maxrr data prepare` has said.",
        ),
    ],
    plan: Annotated[bool, Option("--plan", help="Say what it would do and how long it takes; change nothing.")] = False,
    allow_copies: Copies = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Learn more records: into the heads at once and exactly, into the core not before the next `maxrr refit`.

    All records of the source are added; none is set aside for testing. An id that is there, or was forgotten, is
    refused. Without --yes the plan is shown first, to be confirmed at the terminal. The workspace keeps where the
    records came from, and reads them there again when it has to train. So do not write tomorrow's over today's.

    Examples:

        maxrr add ws/ monday.csv
        maxrr add ws/ monday.csv --plan
        maxrr add ws/ new-photos/ --yes --json
    """
    from maxrr.data import load
    from maxrr.data.reading import reading_of

    requests.check_can_ask(yes=yes or plan, json=json)
    with outcome.told() as ending:
        with opened(workspace, read_only=plan) as found:
            found.check_code()
            notes = noted(source, reading_of(source) or dataclasses.replace(reading_in(found.sources[0]), meta=None))
            with show.progress():
                new, _ = load(**notes, whole=True, progress=show.report)
            new = found.model.kind_.conform(new)
            planned = found.model.plan(add=new, allow_copies=allow_copies)
            returning = forgotten_people(found, new)
            if returning:
                who = "1 person" if returning == 1 else f"{returning:,} people"
                show.warning(f"among these are new records about {who} forgotten here before: they come in")
            if plan and json:
                show.json(requests.as_json(planned) | {"forgotten_people": returning})
            elif plan:
                requests.tell(planned)
            if plan:
                return
            requests.confirm(planned, "Add these records?", yes=yes)
            done = outcome.carry_out(ending, found, UNADDED, planned, notes)
        outcome.tell(done, workspace, json=json)


def forgotten_people(workspace: Workspace, new: Dataset) -> int:
    """Count people who were forgotten and have no record here, and about whom these are new records."""
    people = [] if new.subjects is None else set(new.subjects.tolist())
    gone = [person for person in people if workspace.model.has_forgotten(subjects=person)]
    return sum(not workspace.find(subject=person).here for person in gone)
