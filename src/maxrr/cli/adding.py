"""`maxrr add` and `maxrr refit`: more records at once, and a core that has seen them."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.fit import UNDONE as UNFITTED
from maxrr.cli.fit import answer as answer_fitted
from maxrr.cli.fit import fitted
from maxrr.cli.options import (
    WAIT,
    Copies,
    Folder,
    FromWhat,
    Json,
    Meta,
    Network,
    SigningKeyFile,
    Source,
    Train,
    Wait,
    Yes,
)
from maxrr.cli.outcome import answer, request_done, told
from maxrr.cli.requests import as_json, tell
from maxrr.cli.run import USAGE, Stop
from maxrr.cli.unlearn import confirm
from maxrr.cli.workspaces import (
    APART,
    check_code,
    lasting_name,
    opened,
    options_for,
    sides,
    word,
)

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.workspace import Workspace

UNDONE = "nothing was changed, and no record added"  # what is said to somebody who interrupts
LabelColumn = Annotated[
    str | None,
    Option(help="Tables only: the column with the class. Give it if it has another name than at the fit."),
]
IdColumn = Annotated[
    str | None,
    Option(help="Tables only: the column with the record id. Give it if it has another name than at the fit."),
]
SubjectColumn = Annotated[
    str | None,
    Option(help="Tables only: the column with the subject id. Give it if it has another name than at the fit."),
]


def add(
    workspace: Folder,
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="The new records, all of them: an .npz, .csv or .parquet file, a folder of images, an .npy file with "
            "--meta, or a data set known by name.",
        ),
    ],
    label: LabelColumn = None,
    id: IdColumn = None,
    subject: SubjectColumn = None,
    ids_from: FromWhat = None,
    meta: Meta = None,
    plan: Annotated[
        bool, Option("--plan", help="Say what it would do and how long it takes, and change nothing.")
    ] = False,
    allow_copies: Copies = None,
    yes: Yes = False,
    network: Network = None,
    key: SigningKeyFile = None,
    wait: Wait = WAIT,
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

    if meta is None and Path(source).suffix == ".npy":
        raise Stop(
            USAGE, f"{source} is a file of numbers alone: name the table that says what its rows are, --meta FILE"
        )
    with told() as outcome:
        with opened(workspace, wait, network=network, key=key, read_only=plan) as found:
            check_code(found)
            given = {
                "label": label, "id": id, "subject": subject, "ids_from": word(ids_from),
                "meta": None if meta is None else str(meta.absolute()),
            }  # fmt: skip
            notes = found.source | {name: value for name, value in given.items() if value is not None}
            with show.progress() as progress:
                new, _ = load(source, **options_for(notes, source), whole=True, progress=progress)
            new = found.model.kind_.conform(new)
            planned = found.model.plan(add=new, allow_copies=allow_copies)
            returning = forgotten_people(found, new)
            if returning:
                who = "1 person" if returning == 1 else f"{returning:,} people"
                show.warning(f"among these are new records about {who} forgotten here before: they come in")
            if plan:
                show.json(as_json(planned) | {"forgotten_people": returning}) if json else tell(planned)
                return
            confirm(planned, "Add these records?", yes=yes, json=json)
            before, notes["name"] = found.model.model_hash_, lasting_name(source)
            with outcome.work(workspace, UNDONE, request_done), show.progress() as progress:
                receipt = found.model.execute(planned, source=notes, progress=progress)
            outcome.unfinished, models = found.unfinished, (before, found.model.model_hash_)
        answer(receipt, workspace, models, json=json)


def forgotten_people(workspace: Workspace, new: Dataset) -> int:
    """How many people are forgotten, and have records among these that the workspace does not know of."""
    people = [] if new.subjects is None else set(new.subjects.tolist())
    gone = [person for person in people if workspace.model.has_forgotten(subjects=person)]
    return sum(not workspace.find(subject=person).here for person in gone)


def tell_tested_people(workspace: Workspace, training: Dataset, test: Dataset) -> None:
    """That records about people on the side of testing were added, where the source has people on one side each."""
    import numpy as np

    if workspace.source.get("people") != APART or training.subjects is None or test.subjects is None:
        return
    both = np.intersect1d(training.subjects[np.isin(training.ids, workspace.model.ids_of())], test.subjects)
    if len(both):
        who = "1 person" if len(both) == 1 else f"{len(both):,} people"
        show.warning(
            f"records about {who} were added whose other records are for testing: the model learns from them, so that "
            "the accuracy is not of strangers alone"
        )


def refit(
    workspace: Folder,
    source: Source = None,
    network: Network = None,
    train: Train = None,
    key: SigningKeyFile = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Fit again on all records that the workspace has, those that were added among them.

    The core is chosen anew by the same rule, and the extractor trained on it, as `maxrr fit` was told to. Records that
    were forgotten are left out, though the source may still have them. Tombstones and receipts stay.

    Examples:

        maxrr refit ws/
        maxrr refit ws/ --source /backup/first.csv --source /backup/added.csv
    """
    with told() as outcome:
        with (
            opened(workspace, wait, records=lambda: training, network=network, train=train, key=key) as found,
            show.progress() as progress,
        ):
            check_code(found, training=True)
            started = perf_counter()
            with outcome.work(workspace, UNFITTED, fitted):
                training, test = sides(found, source, progress)
                tell_tested_people(found, training, test)
                found.model.refit(progress=progress)
            outcome.unfinished = found.unfinished
            accuracy = found.model.score(test) if len(test) else None
            present = found.status()
        seconds = perf_counter() - started
        answer_fitted(present, len(test), accuracy, seconds, json)
