"""`maxrr status`: what is in a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from maxrr.cli import show
from maxrr.cli.options import Folder, Json
from maxrr.cli.workspaces import opened, sides

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.unlearning import MaxRR, Receipt
    from maxrr.workspace import Status

MOST_NAMES = 12  # of classes in one line
COST = {"core": "what the policy says", "influential": "a move of heads", "free": "nothing"}


def status(
    workspace: Folder,
    list_: Annotated[
        Literal["core", "influential", "free"] | None,
        Option(
            "--list",
            help="Print the ids of the records of one kind instead, one on each line, as --ids-file takes them.",
        ),
    ] = None,
    scores: Annotated[
        bool, Option("--scores", help="Also accuracy and recall by class, on the test records of the source.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what is in a workspace: its records by kind, the model, and the requests that were carried out.

    Every file is checked against its hash on the way: a damaged workspace is an error.

    Examples:

        maxrr status ws/
        maxrr status ws/ --json
        maxrr status ws/ --list influential
    """
    from maxrr.workspace import overview

    if list_ is not None:
        tell_ids(workspace, list_, json)
        return
    found = overview(workspace)
    status, receipts = found.status, list(found.receipts)
    measured = scores_now(workspace) if scores else {}
    if json:
        show.json(asdict(status) | {"receipts": [entry(receipt) for receipt in receipts]} | measured)
    else:
        tell(status)
        tell_scores(measured)
        tell_requests(status, receipts)
        tell_exports(status)


def scores_now(workspace: Path) -> dict[str, Any]:
    """Score the model as it is on the test records of its source."""
    with opened(workspace, read_only=True) as found, show.progress():
        return scores_of(found.model, sides(found, None)[1])


def scores_of(model: MaxRR, test: Dataset) -> dict[str, Any]:
    """How well a model classifies test records: all of them, and those of each class."""
    if not len(test):
        return {"test_records": 0}
    return {"test_records": len(test), "accuracy": model.score(test), "recall": model.recall(test)}


def tell_scores(scores: Mapping[str, Any]) -> None:
    """Print the accuracy, and the classes that are found least often."""
    from maxrr.report.words import count, percent

    if "recall" not in scores:
        return
    lowest = sorted(scores["recall"].items(), key=lambda each: each[1])
    named = ", ".join(f"{name} {percent(share)}" for name, share in lowest[:MOST_NAMES])
    show.say(f"Accuracy on {count(scores['test_records'], 'other record')} {percent(scores['accuracy'], 1)}.")
    show.say(f"Recall by class: {named}{', …' if len(lowest) > MOST_NAMES else ''}.")
    if lowest[0][1] == 0.0:
        name = lowest[0][0]
        show.warning(
            f"no record of {name} is recognised. If it has far fewer records than others, fit again and let each count "
            f"for several: --class-weight {name}=10"
        )


def tell_ids(workspace: Path, kind: str, json: bool) -> None:
    """Print the ids of the records of one kind."""
    with opened(workspace, read_only=True) as found:
        ids = found.model.ids_of(kind).tolist()
    if json:
        show.json({"kind": kind, "records": len(ids), "ids": ids})
        return
    for each in ids:
        show.say(str(each))


def entry(receipt: Receipt) -> dict[str, Any]:
    """Describe a request by the fields of its receipt that `status --json` lists."""
    return {
        "number": receipt.number, "time": receipt.time, "guarantee": receipt.guarantee,
        "records": receipt.requested, "added": receipt.added or 0, "model_after": receipt.model_after,
    }  # fmt: skip


def tell(status: Status) -> None:
    """Print what is in the workspace."""
    near = show.near(status.folder)
    show.facts([(name, text.replace(status.folder, near)) for name, text in status.facts.items()])
    tell_counts({"core": status.core, "influential": status.influential, "free": status.free}, status.people)


def tell_counts(kinds: Mapping[str, int], people: Mapping[str, int] | None = None) -> None:
    """Print how many records, and people, there are of each kind, and what forgetting them costs."""
    from maxrr.report.words import percent

    records = max(sum(kinds.values()), 1)
    rows = [[kind, f"{number:,}", percent(number / records), COST[kind]] for kind, number in kinds.items()]
    numbers = ["records", "share"]
    if people is not None:
        numbers.append("people")
        for row in rows:
            row.insert(-1, f"{people[row[0]]:,}")
    show.table(("kind", *numbers, "forgetting costs"), rows, numbers=numbers)


def tell_requests(status: Status, receipts: list[Receipt]) -> None:
    """Print the requests and their answers."""
    if not status.requests:
        return
    rows = [(str(each.number), minute(each.time), concerned(each), each.guarantee) for each in receipts]
    caption = f"One in words: maxrr receipt show {show.near(status.folder)} {status.requests}"
    show.table(("request", "time (UTC)", "records", "guarantee"), rows, numbers=("request", "records"), caption=caption)


def minute(time: str) -> str:
    """Write a moment without its seconds."""
    return time[:16].replace("T", " ")


def concerned(receipt: Receipt) -> str:
    """Return how many records a request was about; a plus marks added records."""
    return f"{receipt.requested:,}" if receipt.added is None else f"+{receipt.added:,}"


def tell_exports(status: Status) -> None:
    """Print which exports are out of date, and what to do about them."""
    old = [export for export in status.exports if export.out_of_date and not export.replaced]
    if not old:
        return
    rows = [(show.near(each.path), each.kind, minute(each.time), "yes" if each.revoked else "no") for each in old]
    caption = (
        f"These copies are of another state: records were forgotten, added or replaced since, or the model was fitted "
        f"again, though its numbers may be the same. Export again (`maxrr export {show.near(status.folder)} …`), "
        "bring the new ones to where the old ones are used, and then publish the list that `maxrr revocations` makes."
    )
    show.table(("out of date", "kind", "made (UTC)", "knows what was forgotten"), rows, caption=caption)
