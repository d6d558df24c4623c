"""`maxrr prove` and `maxrr bundle`: train again without the forgotten records, and compare the bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from maxrr.cli import show
from maxrr.cli.options import WAIT, Folder, FromWhat, Id, Json, Label, Network, Source, Subject, Wait
from maxrr.cli.receipt import difference, read
from maxrr.cli.run import FAILED, UNDECIDED, UNPROVED, USAGE, Stop
from maxrr.cli.status import size
from maxrr.cli.workspaces import (
    check_network,
    check_outside,
    importing_from_here,
    named_network,
    opened,
    raw_records,
    word,
)

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.nets.naming import NamedNetwork
    from maxrr.unlearning import Bundle, Receipt, Verdict
    from maxrr.workspace import Workspace

DIFFERENT, FALSE = "different", "the receipt is false"
MEANING = {
    "identical": "made again from the retained records, it has the same bytes, and what the receipt says is so",
    "identical in part": "what was made again from the retained records has the same bytes; not all of the model can "
    "be made from them",
    "the receipt is false": "something that it says is not so",
    "within": "made again from the retained records, weights and bias of every head are as near as its certificates "
    "say, and that is no further than this; they do not settle the last bytes",
    "different": "made again from the retained records, it is another one",
    "superseded": "later requests or fits changed the model since: what was proved is its present state",
    "not comparable here": "this machine, its versions or threads are not those that the model was made with, so that "
    "training again cannot give its bytes: the head was proved, from the stored features",
}


def prove(
    workspace: Annotated[
        Path, Argument(metavar="WORKSPACE", help="The workspace, or a file that `maxrr bundle` wrote.")
    ],
    receipt: Annotated[str, Argument(metavar="RECEIPT", help="A receipt of this workspace: its file, or its number.")],
    source: Source = None,
    network: Network = None,
    label: Label = "label",
    id: Id = "id",
    subject: Subject = "subject",
    ids_from: FromWhat = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Prove a receipt: train again from the raw records that are left, in a fresh process, and compare the bytes.

    Exits with 0 if the verdict is 'identical', with 4 if it is 'different' or 'the receipt is false', and with 5 if
    only a part could be compared: 'superseded' is of the present state, because later requests changed the model; 'not
    comparable here' is of the head alone, because this is another kind of machine; 'identical in part' where not all of
    the model can be made from the retained records.

    Whoever holds the data and no workspace gives the file that `maxrr bundle` wrote in its place, and --source; for a
    file without ids --ids-from, for a CSV file --label, --id and --subject, as they were when fitting. A workspace
    knows these itself.

    Examples:

        maxrr prove ws/ 1
        maxrr prove ws/ ws/receipts/000001.json --source /backup/records.npz
        maxrr prove model.bundle receipt.json --source retained.npz
    """
    from maxrr.data import load as load_

    if workspace.is_file():
        load = partial(load_, label=label, id=id, subject=subject, ids_from=word(ids_from))
        from_file(workspace, receipt, source, load, network, json=json)
        return
    with opened(workspace, wait, network=network, read_only=True) as found:
        check_network(found)
        handed = receipt_of(found, receipt)
        with show.progress() as progress:
            records = raw_records(found, source, progress)
            progress("training again in a fresh process", 0, 1)
            verdict = found.prove(handed, records)
            progress("training again in a fresh process", 1, 1)
    answer(handed, verdict, json=json)


def answer(handed: Receipt, verdict: Verdict, *, json: bool) -> None:
    """The verdict for people or programs, and as an exit code."""
    if json:
        show.json(asdict(verdict) | {"holds": bool(verdict), "receipt": handed.number})
    else:
        tell(handed, verdict)
    if not verdict:
        raise Stop(UNPROVED if verdict.verdict in (DIFFERENT, FALSE) else UNDECIDED)


def from_file(
    bundle: Path, receipt: str, source: str | None, load: Callable[..., tuple[Dataset, Dataset]],
    network: str | None, *, json: bool,
) -> None:  # fmt: skip
    """The proof by somebody who has the data and a bundle, but no workspace."""
    from maxrr.unlearning import Bundle
    from maxrr.unlearning import prove as prove_
    from maxrr.workspace import RecordKind

    if source is None:
        raise Stop(USAGE, "a bundle holds no records: say with --source where the retained ones are")
    handed = read(Path(receipt))
    with importing_from_here(network), show.progress() as progress:
        records, _ = load(source, progress=progress)
        found = Bundle.load(bundle, network=None if network is None else network_of_bundle(bundle, network, records))
        kind = RecordKind(records.shape, records.inputs.dtype, text_ids=found.ids.dtype.kind == "U")
        records = retained(kind.conform(records), found, source)
        progress("training again in a fresh process", 0, 1)
        verdict = prove_(handed, found, records)
        progress("training again in a fresh process", 1, 1)
    answer(handed, verdict, json=json)


def retained(records: Dataset, bundle: Bundle, source: str) -> Dataset:
    """The records that the model retains. All others of the source must be ones that it says it has forgotten."""
    import numpy as np

    others = records.ids[~np.isin(records.ids, bundle.ids)]
    left_out = int((~bundle.forgotten(others)).sum())
    if left_out:
        raise Stop(
            UNPROVED,
            f"{left_out:,} of the training records in {source} are neither retained nor forgotten by the model: it was "
            "not fitted on this data, or somebody left them out. Without them the proof would be of other data",
        )
    return records.select(bundle.ids)


def network_of_bundle(bundle: Path, maker: str, records: Dataset) -> NamedNetwork:
    """The network that the user says was fitted, with the arguments that the bundle names."""
    from maxrr.unlearning import network_in

    named = network_in(bundle)
    if named is not None and named.maker == maker:
        return named
    return named_network(maker, records.shape, len(records.class_names))


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
    pairs += [("not so", show.Bad(what)) for what in verdict.contradicted]
    if verdict.remains:
        pairs.append(("not covered", verdict.remains))
    pairs.append(("not compared", "; ".join(verdict.not_compared)))
    show.facts([*pairs, ("took", duration(verdict.seconds))])


def bundle(
    workspace: Folder,
    file: Annotated[
        Path, Argument(metavar="FILE", help="The file to write. An earlier bundle there is replaced, nothing else is.")
    ],
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Write a file with which whoever holds the records can prove a receipt on another machine: `maxrr prove FILE …`.

    It holds the recipe, the model, the features and the key by which forgotten ids are recognised, but no records: it
    is for auditors, not for the public. Nothing in it is code.

    Examples:

        maxrr bundle ws/ model.bundle
        maxrr prove model.bundle receipt.json --source retained.npz
    """
    with opened(workspace, wait, network=network, read_only=True) as found:
        check_network(found)
        check_outside(file, found)
        check_free(file)
        found.bundle().save(file)
        model = found.model_hash_
    if json:
        show.json({"path": str(file), "bytes": file.stat().st_size, "model_hash": model})
    else:
        show.say(f"Wrote {file}, {size(file.stat().st_size)}: model {model[:12]}…. Keep it from the public.")


def check_free(file: Path) -> None:
    """Refuse to write over anything but an earlier bundle."""
    from maxrr.unlearning import network_in

    if file.exists():
        try:
            network_in(file)
        except ValueError:
            raise Stop(FAILED, f"{file} is there already, and is not a bundle: name another file") from None
