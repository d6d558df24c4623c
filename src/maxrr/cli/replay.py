"""`maxrr replay` and `maxrr bundle`: train again without the forgotten records, and compare the bytes."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from maxrr.cli import outputs, show
from maxrr.cli.options import NETWORK, TRAIN, Folder, Json, Source
from maxrr.cli.receipt import read, receipt_of
from maxrr.cli.run import FAILED, REFUTED, UNDECIDED, USAGE, Stop
from maxrr.cli.workspaces import importing_from_here, learned_and_test, named_network, opened, sides, training_function
from maxrr.plain_text import size

if TYPE_CHECKING:
    from maxrr.data import Dataset
    from maxrr.unlearning import Bundle, MaxRR, Receipt, Replay
    from maxrr.unlearning.statements import HandedReceipt


def replay(
    place: Annotated[Path, Argument(metavar="WORKSPACE", help="The workspace; or what `maxrr bundle` wrote.")],
    receipt: Annotated[
        str,
        Argument(metavar="RECEIPT", help="A receipt of the workspace: its number, or its file. A bundle: the file."),
    ],
    source: Source = None,
    json: Json = False,
) -> None:
    """Replay a receipt: train again from the raw records that are left, in a fresh process, and compare the bytes.

    Whoever has the workspace names it, and the receipt by its number. Whoever holds the data but no workspace brings
    the bundle, the receipt's file, and the data, by --source.

    Exits with 0 if the outcome is 'identical', with 4 if it is 'different' or 'the receipt is false', and with 5 if
    only a part could be compared: 'superseded', 'not comparable here', 'identical in part', 'within' a number.

    Examples:

        maxrr replay ws/ 1
        maxrr replay ws/ receipt.json --source /backup/records.npz
        maxrr replay model.bundle receipt.json --source records.npz
    """
    from maxrr.unlearning import Outcome

    if place.is_dir() or not place.exists():  # of which opening says what is missing
        handed, replayed = in_workspace(place, receipt, source)
    elif not source:
        raise Stop(USAGE, f"a bundle has no records: name the data with --source, or a workspace, which {place} is not")
    else:
        handed, replayed = from_bundle(place, receipt, source)
    if json:
        show.json(asdict(replayed) | {"holds": bool(replayed), "receipt": handed.receipt.number})
    else:
        bad = {"not so"} if replayed else {"not so", "outcome"}
        pairs = [(name, show.Bad(said) if name in bad else said) for name, said in replayed.facts]
        show.facts([("receipt", f"{handed.receipt.number}, {handed.receipt.guarantee}"), *pairs])
    if not replayed:
        raise Stop(REFUTED if replayed.outcome in (Outcome.different, Outcome.false) else UNDECIDED)


def in_workspace(folder: Path, named: str, source: list[str] | None) -> tuple[HandedReceipt, Replay]:
    """Replay a receipt with the workspace."""
    with opened(folder, read_only=True) as workspace, show.progress():
        workspace.check_code(training=True)
        handed = receipt_of(workspace, named)
        records, _ = sides(workspace, source)
        return handed, shown_replay(handed.receipt, workspace.model, records)


def from_bundle(bundle: Path, receipt: str, source: list[str]) -> tuple[HandedReceipt, Replay]:
    """Replay a receipt with a bundle and the data, without a workspace.

    The data are read as the file beside them says, or else the one beside the bundle.
    """
    import numpy as np

    from maxrr.data import load
    from maxrr.data.fields import shapes
    from maxrr.data.reading import Reading, reading_of
    from maxrr.errors import NetworkMissing, TrainingMissing, UnknownRecords
    from maxrr.unlearning import Bundle
    from maxrr.unlearning.bundles import facts_in
    from maxrr.unlearning.codec import network_named
    from maxrr.unlearning.record_kind import RecordKind

    handed, network, train = read(Path(receipt)), os.environ.get(NETWORK), os.environ.get(TRAIN)
    facts = facts_in(bundle)
    named, trainer = network_named(facts), facts.function
    if network is None and (named is None or not named.our_own):
        raise NetworkMissing(None if named is None else named.maker)
    if train is None and trainer is not None:
        raise TrainingMissing(trainer)
    if train is not None and trainer is None:
        raise Stop(FAILED, f"the model of the bundle was fitted without a training function: unset {TRAIN}")
    with importing_from_here(network, train), show.progress():
        carried = reading_of(bundle) or Reading()
        (first, test), *added = (
            load(place, reading=(reading_of(place) or carried).to_toml(), whole=number > 0, progress=show.report)
            for number, place in enumerate(source)
        )
        if network is not None and (named is None or named.maker != network):
            named = named_network(network, shapes(first.inputs.dtype, first.shape), len(first.class_names))
        own = None if train is None else training_function(train)
        found = Bundle.load(bundle, network=None if network is None else named, train=own)
        kind = RecordKind(
            first.shape, first.inputs.dtype, first.columns, found.classes, text_ids=isinstance(found.ids[0], str)
        )
        learned = [first, *(more for more, _ in added)]
        records, _ = learned_and_test(kind, learned, test, lambda ids: np.isin(ids, found.ids) | found.forgotten(ids))
        try:
            return handed, shown_replay(handed.receipt, found, records)
        except UnknownRecords as error:
            raise Stop(REFUTED, f"{' and '.join(source)}: {error}") from None


def shown_replay(receipt: Receipt, model: MaxRR | Bundle, records: Dataset) -> Replay:
    """Replay a receipt, and show progress."""
    from maxrr.unlearning import replay

    show.report("training again in a fresh process", 0, 1)
    replayed = replay(receipt, model, records)
    show.report("training again in a fresh process", 1, 1)
    return replayed


def bundle(
    workspace: Folder,
    place: Annotated[
        Path,
        Argument(metavar="BUNDLE", help="The file to write. An earlier bundle there is replaced, nothing else is."),
    ],
) -> None:
    """Write what somebody else needs, beside the receipt and the data, to replay it on another machine.

    The bundle holds the recipe, the model, the features and the key by which forgotten ids are recognised, but no raw
    records: it is for auditors, not for the public. Nothing in it is code. A file beside it (.toml) says how the source
    of the records is read.

    Examples:

        maxrr bundle ws/ model.bundle
        maxrr replay model.bundle receipt.json --source records.npz
    """
    from maxrr.data.reading import Reading, beside
    from maxrr.files import read_regular, write_atomically
    from maxrr.unlearning.bundles import facts_in

    outputs.check(place, "a bundle", facts_in)
    outputs.check(beside(place), "how a source is read", lambda path: Reading.from_toml(read_regular(path).decode()))
    with opened(workspace, read_only=True, newest=True) as found:
        found.check_code()
        found.model.bundle().save(place)
        write_atomically(beside(place), found.sources[0].get("reading", "").encode(), private=True)
        model = found.model.model_hash_
    show.say(f"Wrote {place}, {size(place.stat().st_size)}: model {model[:12]}…. Keep it from the public.")
