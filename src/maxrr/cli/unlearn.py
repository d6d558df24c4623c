"""`maxrr plan`, `maxrr unlearn` and `maxrr replace`: what a request would do, and doing it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.inputs import from_image, from_npy, from_npz
from maxrr.cli.options import (
    WAIT,
    Copies,
    CorePolicy,
    Folder,
    Ids,
    IdsFile,
    Json,
    Network,
    Policy,
    SigningKeyFile,
    Source,
    Subjects,
    Train,
    Wait,
    Yes,
)
from maxrr.cli.outcome import answer, request_done, told
from maxrr.cli.people import tell_alone, tell_beside, without_tests
from maxrr.cli.requests import as_json, check_one_kind, refusal, request_of, tell
from maxrr.cli.run import FAILED, REFUSED, USAGE, Stop
from maxrr.cli.workspaces import check_code, opened, raw_records

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxrr.unlearning import Plan
    from maxrr.workspace import Workspace

UNDONE = "nothing was changed, and no record forgotten"  # what is said to somebody who interrupts


def plan(
    workspace: Folder,
    ids: Ids = None,
    ids_file: IdsFile = None,
    subject: Subjects = None,
    policy: CorePolicy = Policy.REFUSE,
    source: Source = None,
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
    with opened(workspace, wait, read_only=True) as found, show.progress() as progress:
        request, tested = without_tests(found, request_of(found, ids, ids_file, subject), source, progress)
        plan = None if request is None else found.model.plan(**request, core_policy=str(policy))
    if plan is None:
        tell_alone(tested, json=json)
        return
    if json:
        show.json(as_json(plan) | ({"test_records": tested} if subject else {}))
    else:
        tell(plan)
        tell_beside(tested)
    if plan.refusal:
        raise Stop(REFUSED)


def unlearn(
    workspace: Folder,
    ids: Ids = None,
    ids_file: IdsFile = None,
    subject: Subjects = None,
    policy: CorePolicy = Policy.REFUSE,
    source: Source = None,
    yes: Yes = False,
    network: Network = None,
    train: Train = None,
    key: SigningKeyFile = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Forget records: all of them or, if one cannot be, none.

    Without --yes the plan is shown first, to be confirmed at the terminal. When the command is done, the records are
    gone from the workspace's files, too, and a receipt is among them. The raw records stay where they are: delete them
    there yourself. If all records about a person are for testing, there is nothing to forget: the command says so, and
    exits with 0 without a receipt.

    Examples:

        maxrr unlearn ws/ --ids 3,4,5
        maxrr unlearn ws/ --subject anna --policy retrain --yes
        cat leaving.txt | maxrr unlearn ws/ --ids-file - --yes --json
    """
    check_one_kind(ids, ids_file, subject)
    with told() as outcome:
        with opened(
            workspace, wait, records=lambda: raw_records(found, source, progress), network=network, train=train, key=key
        ) as found:
            with show.progress() as progress:
                request, tested = without_tests(found, request_of(found, ids, ids_file, subject), source, progress)
            if request is None:
                tell_alone(tested, json=json)
                return
            plan = found.model.plan(**request, core_policy=str(policy))
            if plan.refusal:
                raise Stop(REFUSED, f"refused: {refusal(plan)}")
            if plan.action.fits_anew:
                check_code(found, training=bool(plan.trains))
            confirm(plan, "Forget these records for good?", yes=yes, json=json)
            before = found.model.model_hash_
            with outcome.work(workspace, UNDONE, request_done), show.progress() as progress:
                receipt = found.model.execute(plan, progress=progress)
            outcome.unfinished, models = found.unfinished, (before, found.model.model_hash_)
        answer(receipt, workspace, models, json=json)
        tell_beside(tested)


def replace(
    workspace: Folder,
    id: Annotated[str, Argument(metavar="ID", help="The id of the record, which it keeps.")],
    image: Annotated[
        Path | None,
        Option(
            help="A PNG or JPEG file with the new record, of the size that the workspace was fitted on. Give this "
            "or --npy."
        ),
    ] = None,
    npy: Annotated[
        Path | None,
        Option(
            help="An .npy file with the new record, or an .npz file with an array for each of its inputs. Give this or "
            "--image."
        ),
    ] = None,
    label: Annotated[
        str | None,
        Option(help="The name of the new record's class. Give it if the class changes; without it, it stays."),
    ] = None,
    policy: CorePolicy = Policy.REFUSE,
    allow_copies: Copies = None,
    source: Source = None,
    yes: Yes = False,
    network: Network = None,
    train: Train = None,
    key: SigningKeyFile = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Forget a record, and learn another in its place.

    The new record shapes the heads. It shapes the extractor where that is trained again and the core is one by hash or
    full; otherwise not before the next `maxrr fit`. Correct the record in your
    source as well: whatever is trained again from there expects it as it is now.

    Examples:

        maxrr replace ws/ 17 --image scan-17.png
        maxrr replace ws/ visit-9 --npy corrected.npy --label healthy --policy retrain --yes
    """
    if (image is None) == (npy is None):
        raise Stop(USAGE, "give the new record with one of --image and --npy")
    with told() as outcome:
        with opened(
            workspace, wait, records=lambda: raw_records(found, source, progress), network=network, train=train, key=key
        ) as found:
            check_code(found)
            (known_as,) = found.model.kind_.ids([id]).tolist()
            inputs = new_record(found, image, npy)
            code = None if label is None else found.model.kind_.label(label)
            plan = found.model.plan(
                known_as, inputs=inputs, label=code, core_policy=str(policy), allow_copies=allow_copies
            )
            if plan.refusal:
                raise Stop(REFUSED, f"refused: {refusal(plan)}")
            if plan.trains:
                check_code(found, training=True)
            confirm(plan, "Replace this record for good?", yes=yes, json=json)
            before = found.model.model_hash_
            with outcome.work(workspace, UNDONE, request_done), show.progress() as progress:
                receipt = found.model.execute(plan, progress=progress)
            outcome.unfinished, models = found.unfinished, (before, found.model.model_hash_)
        answer(receipt, workspace, models, json=json)


def new_record(workspace: Workspace, picture: Path | None, npy: Path | None) -> NDArray[Any]:
    """The record that takes the place of the other."""
    import numpy as np

    kind = workspace.model.kind_
    if picture is not None:
        return from_image(picture, kind)
    assert npy is not None
    records = from_npz(npy, kind) if npy.suffix.lower() == ".npz" else from_npy(npy, kind)
    if len(records) > 1:
        raise Stop(FAILED, f"{npy}: holds {len(records):,} records, where one is wanted")
    (only,) = records
    return np.asarray(only)


def confirm(plan: Plan, question: str, *, yes: bool, json: bool) -> None:
    """Show the plan, and go on if somebody at the terminal says so. Programs, which cannot be asked, say --yes."""
    if yes:
        return
    if json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Stop(USAGE, "this cannot be undone, and nobody can be asked to confirm it here: say --yes")
    tell(plan)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(FAILED, "not confirmed: nothing was changed")
