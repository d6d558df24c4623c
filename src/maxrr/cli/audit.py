"""`maxrr audit`: attack the model, to see whether it can be told that it once had the records."""

from __future__ import annotations

import json as json_
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import Device, EngineName, Json, Source
from maxrr.cli.receipt import Named, receipt_of
from maxrr.cli.run import DONE, FAILED, REFUTED, UNDECIDED, USAGE, Stop
from maxrr.cli.workspaces import opened, reading_in, sides
from maxrr.errors import RecordsMissing, UnreadableFile

if TYPE_CHECKING:
    from maxrr.audit import AuditReport, Finding
    from maxrr.data import Dataset
    from maxrr.unlearning import Receipt
    from maxrr.workspace import Workspace

TITLE = "MaxRR audit of receipt"  # as its pages begin
INTERRUPTED = "nothing was changed, and the same command goes on with the models that it has made"
A_DAY = 86_400.0  # seconds, after which nobody goes on with an interrupted audit


def audit(
    place: Annotated[
        Path, Argument(metavar="WORKSPACE", help="The workspace; with --page the JSON file of an earlier audit.")
    ],
    receipt: Named = None,
    forgotten: Annotated[
        str | None,
        Option(help="Where the forgotten records are, with their ids, if the workspace's source has them no longer."),
    ] = None,
    shadows: Annotated[
        int, Option(help="How many models to train, 32 or more. More find smaller traces; choose beforehand.")
    ] = 64,
    test: Annotated[
        str | None,
        Option(help="Records that no model saw. If not given, those of the source that were set aside for testing."),
    ] = None,
    source: Source = None,
    device: Device = None,
    out: Annotated[
        Path | None,
        Option(
            help="The page to write; the same for programs goes beside it as .json. audit-NUMBER.html if not given."
        ),
    ] = None,
    page: Annotated[
        bool, Option("--page", help="Draw the page of an earlier audit again, from its JSON. Nothing is measured.")
    ] = False,
    engine: EngineName = None,
    json: Json = False,
) -> None:
    """Audit a receipt: train models with and without the forgotten records, and try to tell the model from the latter.

    Exits with 0 if the model is indistinguishable from retraining at this power, with 4 if residual influence is found
    and with 5 if there is not enough evidence. Nothing is changed but the count of audits of the receipt. If an audit
    is interrupted, the same command goes on with it.

    Examples:

        maxrr audit ws/ 2
        maxrr audit ws/ 2 --forgotten leaving.npz --shadows 128
        maxrr audit audit-2.json --page
    """
    from maxrr.audit import audit as audit_
    from maxrr.audit.shadows import with_and_without
    from maxrr.parallel.ray_cluster import engine_from

    if out is not None and out.suffix != ".html":
        raise Stop(USAGE, f"--out names a page, such as {out.with_suffix('.html')}")
    if page:
        draw(place, out or place.with_suffix(".html"))
        return
    if receipt is None:
        raise Stop(USAGE, "name the receipt by its number: maxrr audit ws/ 1")
    with_and_without(shadows)  # refuses too few, before anything is read
    workers = engine_from(engine)
    with show.progress(), opened(place, records=lambda: training, read_only=True) as found:
        found.check_code(training=True)
        handed, model = receipt_of(found, receipt).receipt, found.model
        target = out or Path(f"audit-{handed.number}.html")
        check_free(target, handed, model.model_hash_)
        training, held_out = sides(found, source)
        gone = forgotten_records(found, handed, training, forgotten)
        unseen = model.kind_.with_classes(held_out if test is None else everything_in(found, test))
        if not len(unseen):
            raise RecordsMissing("the source has no test records, and an audit needs some: bring them by --test")
        try:
            result = audit_(
                model, handed, gone, unseen, shadows=shadows, device=device, folder=scratch(),
                progress=show.report, engine=workers,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt(INTERRUPTED) from None
    write(result, target)
    if json:
        show.json(json_.loads(result.to_json()) | {"page": str(target), "report": str(target.with_suffix(".json"))})
    else:
        tell(result, target)
    if code := exit_code(result.finding):
        raise Stop(code)


# What an audit needs beside the model


def forgotten_records(workspace: Workspace, receipt: Receipt, training: Dataset, given: str | None) -> Dataset:
    """Find the records on a receipt by their tombstones: in the place given, or in a source that still has them."""
    records = workspace.model.kind_.with_classes(training if given is None else everything_in(workspace, given))
    named = workspace.model.on_receipt(receipt, records.ids.tolist())
    if named.replaced.any():
        raise Stop(FAILED, f"receipt {receipt.number} is of a record that was replaced, which no audit is for")
    wanted = len(set(receipt.tombstones))
    missing = wanted - int(named.forgotten.sum())
    if missing:
        raise RecordsMissing(
            f"{given or 'the source'} lacks {missing:,} of the {wanted:,} records on receipt {receipt.number}: "
            "bring all of them, with their ids, by --forgotten"
        )
    return records.select(records.ids[named.forgotten])


def everything_in(workspace: Workspace, source: str) -> Dataset:
    """Read all records of a source, training and test: as the file beside it says, or as the fit's source was read."""
    from maxrr.data import load
    from maxrr.data.reading import Reading, reading_of

    is_table = Path(source).suffix in (".csv", ".parquet")
    reading = reading_of(source) or (reading_in(workspace.sources[0]) if is_table else Reading())
    records, _ = load(source, reading=reading.to_toml(), whole=True, progress=show.report)
    return records


def scratch() -> Path:
    """Return a folder in the user's cache, from which an interrupted audit goes on.

    It holds probabilities, neither records nor networks. What an audit left behind that nobody went on with is deleted.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maxrr" / "audits"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.iterdir():
        if time.time() - left.stat().st_mtime > A_DAY:
            shutil.rmtree(left, ignore_errors=True)
    return folder


# What is told and written


def exit_code(finding: Finding) -> int:
    """Return the exit code for a finding."""
    from maxrr.audit.findings import FOUND, INDISTINGUISHABLE

    return {INDISTINGUISHABLE: DONE, FOUND: REFUTED}.get(finding.words, UNDECIDED)


def check_free(page: Path, receipt: Receipt, model_hash: str) -> None:
    """Refuse, before the work, to write over files that are not from an earlier audit of the same receipt and model."""
    from maxrr.audit import AuditReport
    from maxrr.files import read_regular

    beside = page.with_suffix(".json")

    def is_same(path: Path) -> bool:
        earlier = AuditReport.from_json(read_regular(beside).decode())
        same = (earlier.receipt, earlier.model_hash) == (receipt.number, model_hash)
        return same and (path == beside or outputs.is_page(path, TITLE))

    for path in (page, beside):
        outputs.check(path, "of an earlier audit of this receipt and model", is_same)


def write(result: AuditReport, page: Path) -> None:
    """Write the report as JSON, and the page beside it."""
    from maxrr.files import write_atomically
    from maxrr.report.audit import audit_page

    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page.with_suffix(".json"), result.to_json().encode())  # first: the page can be made of it again
    write_atomically(page, audit_page(result).encode())


def tell(result: AuditReport, page: Path) -> None:
    """Print the finding, and what each attack makes of the model."""
    from maxrr.audit.findings import FOUND, power_in_words, rank_in_words, sides
    from maxrr.report.words import count, duration

    finding = result.finding
    said = show.Bad(str(finding)) if finding.words == FOUND else str(finding)
    show.facts(
        [
            ("receipt", f"{result.receipt}, {result.guarantee}, {count(result.records, 'record')}"),
            ("finding", said),
            *(("but", text) for text in result.caveats),
            ("p", f"{finding.p_value:.2g} by LiRA: {rank_in_words(finding)}"),
            ("mean", sides(finding)),
            ("power", power_in_words(finding)),
            ("took", duration(result.seconds)),
        ]
    )
    numbers = ("before", "after", "retrained", "p of after")
    caption = "Scores of the record." if result.records == 1 else "AUC: 0.5 is chance."
    show.table(("attack", *numbers), rows(result), numbers=numbers, caption=caption)
    show.say(f"The report: {show.near(page)}, and for programs {show.near(page.with_suffix('.json'))}.")


def rows(result: AuditReport) -> list[tuple[str, ...]]:
    """Return for each attack its AUC against each model, or its score of a single record."""
    return [
        (
            attack,
            *(
                f"{found[name].statistic:.3g}" if (curve := found[name].curve) is None else f"{curve.auc:.2f}"
                for name in ("before", "after", "retrained")
            ),
            f"{found['after'].p_value:.2g}",
        )
        for attack, found in result.attacks.items()
    ]


def draw(file: Path, page: Path) -> None:
    """Draw the page of an audit again, from the JSON that was written beside it."""
    from maxrr.audit import AuditReport
    from maxrr.files import read_regular, write_atomically
    from maxrr.report.audit import audit_page

    outputs.check(page, "the page of an audit", lambda path: outputs.is_page(path, TITLE))
    try:
        drawn = audit_page(AuditReport.from_json(read_regular(file).decode()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UnreadableFile(f"{file} is not a report that `maxrr audit` wrote, or was changed: {error}") from None
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, drawn.encode())
    show.say(f"Wrote {show.near(page)}.")
