"""`maxrr receipt`: read a receipt, and check it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maxrr.cli import show
from maxrr.cli.command import Argument, Option
from maxrr.cli.exits import FAILED, UNPROVED, USAGE, Stop
from maxrr.cli.opening import insides, opened
from maxrr.cli.options import WAIT, Json, Wait
from maxrr.cli.requests import as_in

if TYPE_CHECKING:
    from maxrr.unlearning import Receipt
    from maxrr.workspace import Workspace

LARGEST = 64 << 20  # bytes of a receipt, which names a record in about a hundred
File = Annotated[Path, Argument("The receipt, a JSON file.")]


def present(file: File, json: Json = False) -> None:
    """Show a receipt in words: what was promised, what was done, and what it depends on.

    Examples:

        maxrr receipt show ws/receipts/000001.json
    """
    from maxrr.report.receipts import in_words

    receipt = read(file)
    if json:
        show.json(asdict(receipt))
        return
    show.say(f"Receipt {receipt.number}, {receipt.time}: {receipt.guarantee}")
    for sentence in in_words(receipt):
        show.say(sentence)
    show.facts(
        [
            ("model before", receipt.model_before),
            ("model after", receipt.model_after),
            ("records before", receipt.manifest_before),
            ("records after", receipt.manifest_after),
        ]
    )


def verify(
    file: File,
    workspace: Annotated[Path | None, Option("Also check that this workspace handed it out, just so.")] = None,
    id: Annotated[str | None, Option("Also check that the record with this id is among the forgotten ones.")] = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Check a receipt: that it contradicts itself nowhere, and that a workspace handed it out.

    Exits with 0 if everything checked is so, and with 4 if something is not. Whether the model is the one that training
    without the records gives, `maxrr prove` tells. Records are named by marks that only the workspace's key can make:
    so --id needs --workspace.

    Examples:

        maxrr receipt verify receipt.json
        maxrr receipt verify receipt.json --workspace ws/ --id 17
    """
    if id is not None and workspace is None:
        raise Stop(USAGE, "--id needs --workspace: only its key can recognise a record on a receipt")
    receipt = read(file)
    checks = {"it does not contradict itself": "; ".join(contradictions(receipt))}
    if workspace is not None:
        with opened(workspace, wait, read_only=True) as found:
            checks[f"{workspace} handed it out"] = difference(found, receipt)
            if id is not None:
                checks[f"record {id} is among the forgotten ones"] = absence(found, receipt, id)
    holds = not any(checks.values())
    if json:
        show.json({"holds": holds, "checks": [{"claim": claim, "wrong": why} for claim, why in checks.items()]})
    else:
        rows = [(claim, show.Bad(f"no: {why}") if why else "yes") for claim, why in checks.items()]
        show.table(("claim", "holds"), rows)
    if not holds:
        raise Stop(UNPROVED)


def read(path: Path) -> Receipt:
    """A receipt from a file."""
    from maxrr.files import read_regular
    from maxrr.unlearning import Receipt

    try:
        return Receipt.from_json(read_regular(path, LARGEST).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Stop(FAILED, f"{path}: is not a receipt: it is not text in UTF-8") from None
    except ValueError as error:
        raise Stop(FAILED, f"{path}: {error}") from None


def contradictions(receipt: Receipt) -> Iterator[str]:
    """Where a receipt says two things that cannot both be so."""
    forgotten = receipt.core + receipt.influential + receipt.neither
    untouched = receipt.guarantee == "exact-untouched"
    hashes = [receipt.manifest_before, receipt.manifest_after, receipt.model_before, receipt.model_after]
    if receipt.guarantee not in ("exact-untouched", "exact-refit", "approximate-refit", "exact-retrain"):
        yield f"no guarantee is called {receipt.guarantee!r}"
    if receipt.requested != forgotten + receipt.already_forgotten:
        yield "core, influential, neither and forgotten before do not add up to the records asked for"
    if len(receipt.record_marks) != forgotten or len(set(receipt.record_marks)) != forgotten:
        yield f"it has {len(receipt.record_marks)} marks for {forgotten} forgotten records"
    fewer = receipt.records_before - receipt.records_after
    if fewer != forgotten and (fewer, forgotten) != (0, 1):  # a record that was replaced
        yield f"{forgotten} records were forgotten, and there are {fewer} fewer"
    if not all(re.fullmatch("[0-9a-f]{64}", text) for text in (*hashes, *receipt.record_marks)):
        yield "a hash or mark is not 64 hexadecimal digits"
    if untouched and (receipt.core or receipt.influential or receipt.model_before != receipt.model_after):
        yield "the model cannot be untouched if core or influential records are gone, or its hash is another"
    if receipt.guarantee.startswith("exact") and (receipt.guarantee == "exact-retrain") != (receipt.core > 0):
        yield f"{receipt.guarantee} with {receipt.core} core records"
    if receipt.guarantee == "exact-retrain" and receipt.core_left_in_extractor:
        yield "an extractor that was trained again has no forgotten records in it"
    if receipt.guarantee == "approximate-refit" and receipt.unconditional:
        yield "what is approximate cannot be exact without conditions"
    yield from contradictions_of_heads(receipt)
    if not is_moment(receipt.time):
        yield f"{receipt.time!r} is no time"


def contradictions_of_heads(receipt: Receipt) -> Iterator[str]:
    """Where a receipt claims more or less than the certificates of its heads carry."""
    from math import isfinite

    from maxrr.svm import EXACT
    from maxrr.unlearning.receipts import claim_of, rounded_up

    if not receipt.heads:
        yield "it names no head"
        return
    if not all(
        isfinite(number) and number >= 0.0 for head in receipt.heads for number in (head.error, head.relative_gap)
    ):
        yield "the error or the gap of a head is no number from zero on"
        return
    if receipt.bytes_claim != (carried := claim_of(receipt.heads)):
        yield f"of its bytes it claims {receipt.bytes_claim!r}, and its heads carry {carried!r}"
    wide = [head for head in receipt.heads if not head.decided and head.error > EXACT]
    if wide and receipt.guarantee.startswith("exact"):
        name, error = wide[0].class_name, rounded_up(wide[0].error)
        yield f"{receipt.guarantee} with a head, of class {name!r}, that is known only to {error}"


def is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def difference(workspace: Workspace, receipt: Receipt) -> str:
    """How a receipt differs from the one that the workspace handed out under its number; nothing if it does not."""
    count = workspace.status().requests
    if not 1 <= receipt.number <= count:
        return f"it has {count or 'no'} receipts, and this is number {receipt.number}"
    handed, given = asdict(read(workspace.receipt_path(receipt.number))), asdict(receipt)
    other = [name for name in handed if handed[name] != given[name]]
    return f"its receipt {receipt.number} has another {', '.join(other)}" if other else ""


def absence(workspace: Workspace, receipt: Receipt, id: str) -> str:
    """Why a record is not among those that a receipt says were forgotten; nothing if it is."""
    from maxrr.unlearning.oblivion import id_mark

    fitted = insides(workspace)
    (key,) = as_in(fitted.holdings.ids, [id], "record ids").tolist()
    return "" if id_mark(fitted.key, key).hex() in receipt.record_marks else "its mark is not on the receipt"
