"""`maxrr replace`: rectify one record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maxrr.cli import answers, show
from maxrr.cli.command import Argument, Option
from maxrr.cli.consent import confirm
from maxrr.cli.exits import FAILED, REFUSED, USAGE, Stop
from maxrr.cli.inputs import Kind, from_image, from_npy
from maxrr.cli.opening import check_network, insides, opened
from maxrr.cli.options import WAIT, Copies, CorePolicy, Folder, Json, Network, Policy, Source, Wait, Yes
from maxrr.cli.outcome import request_done, told
from maxrr.cli.requests import as_in, refusal
from maxrr.cli.sources import raw_records
from maxrr.cli.unlearn import UNDONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxrr.workspace import Workspace


def run(
    workspace: Folder,
    id: Annotated[str, Argument("The id of the record, which it keeps.")],
    image: Annotated[Path | None, Option("A PNG or JPEG file with the new record.")] = None,
    npy: Annotated[Path | None, Option("An .npy file with the new record.")] = None,
    label: Annotated[str | None, Option("The name of its class, if that changes, too.")] = None,
    policy: CorePolicy = Policy.REFUSE,
    allow_copies: Copies = None,
    source: Source = None,
    yes: Yes = False,
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Forget a record, and learn another in its place.

    The new record shapes the head. It shapes the extractor where that is trained again and the core is one by hash or
    full; otherwise not before the next `maxrr fit`. Correct the record in your
    source as well: whatever is trained again from there expects it as it is now.

    Examples:

        maxrr replace ws/ 17 --image scan-17.png
        maxrr replace ws/ visit-9 --npy corrected.npy --label healthy --policy retrain --yes
    """
    if (image is None) == (npy is None):
        raise Stop(USAGE, "give the new record with one of --image and --npy")
    with told() as outcome:
        with opened(workspace, wait, network=network) as found:
            check_network(found)
            (key,) = as_in(insides(found).holdings.ids, [id], "record ids").tolist()
            features = new_record(found, image, npy)
            code = None if label is None else code_of(found, label)
            plan = found.plan_replace(key, features, code, core_policy=str(policy), allow_copies=allow_copies)
            if plan.refusal:
                raise Stop(REFUSED, f"refused: {refusal(plan)}")
            confirm(plan, "Replace this record for good?", yes=yes, json=json)
            before = found.model_hash_
            with outcome.work(workspace, UNDONE, request_done), show.progress() as report:
                again = plan.trains > 0 or plan.embeds > 1  # the new record is embedded in any case
                records = raw_records(found, source, report) if again else None
                receipt = found.execute(plan, records=records, report=report)
            path, outcome.unfinished = found.receipt_path(receipt.number), found.unfinished
            models = before, found.model_hash_
        answers.tell(receipt, path, models, json=json)


def new_record(workspace: Workspace, picture: Path | None, npy: Path | None) -> NDArray[Any]:
    """The record that takes the place of the other."""
    import numpy as np

    holdings = insides(workspace).holdings
    kind = Kind(holdings.shape, holdings.dtype)
    if picture is not None:
        return from_image(picture, kind)
    assert npy is not None
    records = from_npy(npy, kind)
    if len(records) > 1:
        raise Stop(FAILED, f"{npy}: holds {len(records):,} records, where one is wanted")
    (only,) = records
    return np.asarray(only)


def code_of(workspace: Workspace, label: str) -> Any:
    """What the model calls the class of this name."""
    names = workspace.class_names
    if label not in names:
        raise Stop(FAILED, f"there is no class {label!r}; the classes are {', '.join(names)}")
    return insides(workspace).labels[names.index(label)]
