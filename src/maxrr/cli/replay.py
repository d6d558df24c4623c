"""`maxrr replay` and `maxrr bundle`: train again without the forgotten records, and compare the bytes."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import (
    WAIT,
    Drop,
    EncodingFile,
    Folder,
    FromWhat,
    Id,
    Json,
    Label,
    Meta,
    Network,
    Split,
    SplitBy,
    Subject,
    Train,
    Wait,
    Weight,
)
from maxrr.cli.outcome import present
from maxrr.cli.receipt import difference, read
from maxrr.cli.run import FAILED, REFUTED, UNDECIDED, USAGE, Stop
from maxrr.cli.statements import StatementFile, StatementKey, signer, write
from maxrr.cli.workspaces import (
    check_code,
    importing_from_here,
    named_network,
    not_told,
    opened,
    raw_records,
    reading,
    training_function,
)
from maxrr.plain_text import size

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.nets.naming import NamedNetwork
    from maxrr.unlearning import Receipt, Replay
    from maxrr.unlearning.statements import HandedReceipt
    from maxrr.workspace import Workspace

BUNDLE = "model.bundle"  # in a folder
WITHOUT_WORKSPACE = (
    "give all of --receipt, --bundle and --data: maxrr replay --receipt receipt.json --bundle model.bundle --data "
    "records.npz"
)
TWO_FORMS = f"give a workspace and one of its receipts: maxrr replay ws/ 1. Without a workspace, {WITHOUT_WORKSPACE}"


def replay(
    workspace: Annotated[
        Path | None,
        Argument(metavar="WORKSPACE", help="The workspace: a folder that `maxrr fit` made. Not with --bundle."),
    ] = None,
    number: Annotated[
        str | None,
        Argument(metavar="RECEIPT", help="A receipt that this workspace handed out: its number, or its file."),
    ] = None,
    receipt: Annotated[
        Path | None, Option(help="Without a workspace: the file of the receipt to replay. Goes with --bundle.")
    ] = None,
    bundle: Annotated[
        Path | None,
        Option(
            help="Without a workspace: what `maxrr bundle` wrote, a file or a folder. Goes with --receipt and --data."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        Option(
            "--data", "--source",
            help="Where the raw records are: a name, file or folder as `fit` takes it; may be repeated, for what was "
            "added after the fit. Needed with --bundle; with a workspace give it if they have moved since. Forgotten "
            "records among them are left out.",
        ),
    ] = None,
    network: Network = None,
    train: Train = None,
    label: Label = "label",
    id: Id = "id",
    subject: Subject = "subject",
    weight: Weight = None,
    drop: Drop = None,
    encoding: EncodingFile = None,
    ids_from: FromWhat = None,
    meta: Meta = None,
    split_by: Split = SplitBy.SUBJECT,
    statement: StatementFile = None,
    key: StatementKey = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:  # fmt: skip
    """Replay a receipt: train again from the raw records that are left, in a fresh process, and compare the bytes.

    Whoever has the workspace names it, and the receipt by its number. Whoever holds the data but no workspace brings
    the receipt, the bundle that `maxrr bundle` wrote, and the data; for a file without ids --ids-from, for a table
    --label, --id, --subject, --weight, --drop, --encoding and --split-by, as they were when fitting. A workspace knows
    these itself.

    Exits with 0 if the outcome is 'identical', with 4 if it is 'different' or 'the receipt is false', and with 5 if
    only a part could be compared: 'superseded' is of the present state, because later requests changed the model; 'not
    comparable here' is of the heads alone, because this is another kind of machine; 'identical in part' where not all
    of the model can be made from the retained records; 'within' a number where a head's last bytes are not decided.

    Examples:

        maxrr replay ws/ 1
        maxrr replay ws/ receipt.json --data /backup/records.npz
        maxrr replay --receipt receipt.json --bundle model.bundle --data records.npz
        maxrr replay ws/ 1 --statement replay.json
    """
    from maxrr.unlearning import Outcome
    from maxrr.unlearning.statements import replay_statement

    signing = signer(statement, key, "replay")
    columns = reading(label, id, subject, weight, encoding, ids_from, str(split_by), meta, drop)
    if workspace is None or number is None:
        if workspace is not None or receipt is None or bundle is None or not data:
            raise Stop(USAGE, TWO_FORMS)
        handed, replayed = from_bundle(receipt, bundle, data, columns, network, train)
    else:
        check_workspace_form(workspace, receipt, bundle, columns)
        handed, replayed = in_workspace(workspace, number, data, network, train, wait)
    if json:
        show.json(asdict(replayed) | {"holds": bool(replayed), "receipt": handed.receipt.number})
    else:
        tell(handed.receipt, replayed)
    if statement is not None and signing is not None:
        write(replay_statement(replayed, handed), statement, signing, quiet=json)
    if not replayed:
        raise Stop(REFUTED if replayed.outcome in (Outcome.different, Outcome.false) else UNDECIDED)


def check_workspace_form(workspace: Path, receipt: Path | None, bundle: Path | None, columns: dict[str, Any]) -> None:
    """Refuse options that a workspace has no use for, and a bundle in its place."""
    if receipt is not None or bundle is not None:
        raise Stop(USAGE, TWO_FORMS)
    if workspace.is_file():
        raise Stop(USAGE, f"{workspace} is a file, not a workspace. If it is a bundle, {WITHOUT_WORKSPACE}")
    usual = reading("label", "id", "subject", None, None, None, "subject")
    given = [f"--{name.replace('_', '-')}" for name, value in columns.items() if value != usual[name]]
    last = present(workspace)
    if given and last is not None and "label" not in last.source:
        raise Stop(USAGE, f"{', '.join(given)} cannot be given for a workspace. {not_told(workspace)}")
    if given:
        raise Stop(USAGE, f"a workspace knows itself how its records are read: leave out {', '.join(given)}")


def in_workspace(
    folder: Path, named: str, data: list[str] | None, network: str | None, train: str | None, wait: float
) -> tuple[HandedReceipt, Replay]:  # fmt: skip
    """The replay by whoever has the workspace."""
    from maxrr.unlearning import replay as replay_

    with opened(folder, wait, network=network, train=train, read_only=True) as workspace:
        check_code(workspace, training=True)
        handed = receipt_of(workspace, named)
        with show.progress() as progress:
            records = raw_records(workspace, data, progress)
            progress("training again in a fresh process", 0, 1)
            replayed = replay_(handed.receipt, workspace.model, records)
            progress("training again in a fresh process", 1, 1)
    return handed, replayed


def from_bundle(
    receipt: Path, bundle: Path, data: list[str], columns: dict[str, Any], network: str | None, train: str | None
) -> tuple[HandedReceipt, Replay]:  # fmt: skip
    """The replay by somebody who has the data and a bundle, but no workspace."""
    from maxrr.data import load
    from maxrr.errors import UnknownRecords
    from maxrr.unlearning import Bundle
    from maxrr.unlearning import replay as replay_
    from maxrr.unlearning.record_kind import RecordKind

    if columns["meta"] is not None and len(data) > 1:
        raise Stop(USAGE, "one --meta is for one .npy file: bring its rows and those that were added in one, in --data")
    handed, file = read(receipt), bundle_in(bundle)
    check_bundled_code(file, network, train)
    with importing_from_here(network, train), show.progress() as progress:
        parts = [load(place, **columns, whole=number > 0, progress=progress)[0] for number, place in enumerate(data)]
        first = parts[0]
        made = None if network is None else network_of_bundle(file, network, first)
        found = Bundle.load(file, network=made, train=None if train is None else training_function(train))
        kind = RecordKind(
            first.shape, first.inputs.dtype, first.columns, found.classes, text_ids=isinstance(found.ids[0], str)
        )
        progress("training again in a fresh process", 0, 1)
        try:
            replayed = replay_(handed.receipt, found, kind.join(parts))
        except UnknownRecords as error:
            raise Stop(REFUTED, f"{' and '.join(data)}: {error}") from None
        progress("training again in a fresh process", 1, 1)
    return handed, replayed


def bundle_in(path: Path) -> Path:
    """The file of a bundle that was named by itself or by its folder."""
    if not path.is_dir():
        return path
    if not (path / BUNDLE).is_file():
        raise Stop(
            FAILED, f"{path} has no {BUNDLE} in it: give what `maxrr bundle` wrote. A workspace goes first, without "
            f"--bundle: maxrr replay {path} 1",
        )  # fmt: skip
    return path / BUNDLE


def check_bundled_code(bundle: Path, network: str | None, train: str | None) -> None:
    """Refuse a bundle whose network only the user's own code makes or trains, if that was not named."""
    from maxrr.unlearning.bundles import network_in, training_in

    named = network_in(bundle)
    if network is None and (named is None or not named.our_own):
        which = "" if named is None else f", which {named.maker} makes"
        raise Stop(FAILED, f"this needs the network of the bundle{which}: name it with --network")
    trainer = training_in(bundle)
    if train is None and trainer is not None:
        raise Stop(FAILED, f"this trains again, by {trainer}: name it with --train")
    if train is not None and trainer is None:
        raise Stop(FAILED, "the model of the bundle was fitted without a training function: leave out --train")


def network_of_bundle(bundle: Path, maker: str, records: Dataset) -> NamedNetwork:
    """The network that the user says was fitted, with the arguments that the bundle names."""
    from maxrr.data.fields import shapes
    from maxrr.unlearning.bundles import network_in

    named = network_in(bundle)
    if named is not None and named.maker == maker:
        return named
    return named_network(maker, shapes(records.inputs.dtype, records.shape), len(records.class_names))


def receipt_of(workspace: Workspace, named: str) -> HandedReceipt:
    """The receipt, which must be one that this workspace handed out: of any other, nothing could be replayed here."""
    if named.isdecimal():
        count = workspace.status().requests
        if not 1 <= int(named) <= count:
            raise Stop(FAILED, f"{workspace.folder} has no receipt {named}: it has {count or 'none'}")
        return workspace.receipt(int(named))
    given = read(Path(named))
    if why := difference(workspace, given.receipt):
        raise Stop(REFUTED, f"{named} is not a receipt that {workspace.folder} handed out: {why}")
    return given


def tell(receipt: Receipt, replayed: Replay) -> None:
    """The outcome for people."""
    bad = {"not so"} if replayed else {"not so", "outcome"}
    pairs = [(name, show.Bad(said) if name in bad else said) for name, said in replayed.facts]
    show.facts([("receipt", f"{receipt.number}, {receipt.guarantee}"), *pairs])


def bundle(
    workspace: Folder,
    place: Annotated[
        str,
        Argument(
            metavar="BUNDLE",
            help="The file to write, or a folder, with a slash at its end if it is new: then the bundle is the file "
            f"{BUNDLE} in it. An earlier bundle there is replaced, nothing else is.",
        ),
    ],
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Write what somebody else needs, beside the receipt and the data, to replay it on another machine.

    The bundle holds the recipe, the model, the features and the key by which forgotten ids are recognised, but no raw
    records: it is for auditors, not for the public. Nothing in it is code.

    Examples:

        maxrr bundle ws/ model.bundle
        maxrr bundle ws/ for-the-auditor/
        maxrr replay --receipt receipt.json --bundle model.bundle --data records.npz
    """
    from maxrr.unlearning.bundles import network_in

    in_folder = Path(place).is_dir() or place.endswith(("/", os.sep))
    file = Path(place) / BUNDLE if in_folder else Path(place)
    outputs.check(file, "a bundle", network_in)
    with opened(workspace, wait, network=network, read_only=True) as found:
        found.check_newest()
        check_code(found)
        if in_folder:
            file.parent.mkdir(mode=0o700, exist_ok=True)
        found.model.bundle().save(file)
        model = found.model.model_hash_
    if json:
        show.json({"path": str(file), "bytes": file.stat().st_size, "model_hash": model})
    else:
        show.say(f"Wrote {file}, {size(file.stat().st_size)}: model {model[:12]}…. Keep it from the public.")
