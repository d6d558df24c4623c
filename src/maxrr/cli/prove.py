"""`maxrr prove`: train again without the forgotten records, and compare the bytes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maxrr.cli import show
from maxrr.cli.command import Argument
from maxrr.cli.exits import FAILED, UNPROVED, Stop
from maxrr.cli.opening import check_network, opened
from maxrr.cli.options import WAIT, Folder, Json, Network, Source, Wait
from maxrr.cli.receipt import difference, read
from maxrr.cli.sources import raw_records

if TYPE_CHECKING:
    from maxrr.unlearning import Receipt, Verdict
    from maxrr.workspace import Workspace

MEANING = {
    "identical": "made again from the retained records, it has the same bytes",
    "within": "made again from the retained records, weights and bias of every head are as near as its certificates "
    "say, and that is no further than this; they do not settle the last bytes",
    "different": "made again from the retained records, it is another one",
    "superseded": "later requests or fits changed the model since: what was proved is its present state",
    "not comparable here": "this machine, its versions or threads are not those that the model was made with, so that "
    "training again cannot give its bytes: the head was proved, from the stored features",
}


def run(
    workspace: Folder,
    receipt: Annotated[str, Argument("A receipt of this workspace: its file, or its number.")],
    source: Source = None,
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Prove a receipt: train again from the raw records that are left, in a fresh process, and compare the bytes.

    Exits with 0 if the proof holds and with 4 if it does not. The verdict says what was proved: 'superseded' is of the
    present state, because later requests changed the model; 'not comparable here' is of the head alone, because this is
    another kind of machine.

    Examples:

        maxrr prove ws/ 1
        maxrr prove ws/ ws/receipts/000001.json --source /backup/records.npz
    """
    with opened(workspace, wait, network=network, read_only=True) as found:
        check_network(found)
        handed = receipt_of(found, receipt)
        with show.progress() as report:
            records = raw_records(found, source, report)
            report("training again in a fresh process", 0, 1)
            verdict = found.prove(handed, records)
            report("training again in a fresh process", 1, 1)
    if json:
        show.json(asdict(verdict) | {"holds": bool(verdict), "receipt": handed.number})
    else:
        tell(handed, verdict)
    if not verdict:
        raise Stop(UNPROVED)


def receipt_of(workspace: Workspace, named: str) -> Receipt:
    """The receipt, which must be one that this workspace handed out: of any other, nothing could be proved here."""
    if named.isdecimal():
        count = workspace.status().requests
        if not 1 <= int(named) <= count:
            raise Stop(FAILED, f"{workspace.folder} has no receipt {named}: it has {count or 'none'}")
        return read(workspace.receipt_path(int(named)))
    given = read(Path(named))
    if why := difference(workspace, given):
        raise Stop(UNPROVED, f"{named} is not a receipt that {workspace.folder} handed out: {why}")
    return given


def meaning(verdict: str) -> str:
    """What a verdict says, in a sentence. One of them goes on with a number."""
    return MEANING["within" if verdict.startswith("within ") else verdict]


def tell(receipt: Receipt, verdict: Verdict) -> None:
    """The verdict for people."""
    from maxrr.report.words import duration

    said = verdict.verdict if verdict else show.Bad(verdict.verdict)
    pairs = [("receipt", f"{receipt.number}, {receipt.guarantee}"), ("verdict", said)]
    pairs.append(("that is", meaning(verdict.verdict)))
    pairs.append(("looked at", f"{verdict.proved}: {verdict.result}"))
    if verdict.where:
        pairs.append(("differs most", f"{verdict.where}, by {verdict.largest_difference:.1e}"))
    if verdict.remains:
        pairs.append(("not covered", verdict.remains))
    show.facts([*pairs, ("took", duration(verdict.seconds))])
