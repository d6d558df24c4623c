"""`maxrr audit` and `maxrr page`: attack the model, to see whether it can be told that it once had the records."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.evidence import forgotten_records, scratch, test_records
from maxrr.cli.options import WAIT, EngineName, Folder, Json, Network, Source, Train, Wait
from maxrr.cli.replay import receipt_of
from maxrr.cli.run import DONE, FAILED, REFUTED, UNDECIDED, USAGE, Stop
from maxrr.cli.workspaces import check_code, importing_from_here, opened, sides

if TYPE_CHECKING:
    from maxrr.audit import AuditPlan, AuditReport, Finding
    from maxrr.unlearning import Receipt

TITLE = "MaxRR audit of receipt"  # as its pages begin
INTERRUPTED = "nothing was changed, and the same command goes on with the models that it has made"


def audit(
    workspace: Folder,
    receipt: Annotated[str, Argument(metavar="RECEIPT", help="A receipt of this workspace: its file, or its number.")],
    forgotten: Annotated[
        str | None,
        Option(
            help="Where the forgotten records are, with their ids: a name, file or folder as `fit` takes it, "
            "which may have others, too. Give it if the workspace's own source no longer has them."
        ),
    ] = None,
    shadows: Annotated[
        int,
        Option(
            min=8,
            help="How many models to train and compare with: two fifths with the records, the others without. "
            "More find smaller traces and take longer; choose the number beforehand, with --plan.",
        ),
    ] = 64,
    plan: Annotated[
        bool,
        Option(
            "--plan",
            help="Do not audit: train a pilot of 24 models, say how many --shadows it takes to find anything, and end.",
        ),
    ] = False,
    test: Annotated[
        str | None,
        Option(
            help="Records that no model saw: a name, file or folder as `fit` takes it, of which all are used. If "
            "not given, the test records of the workspace's source, which were set aside when it was fitted: others "
            "are a caveat on the finding."
        ),
    ] = None,
    source: Source = None,
    device: Annotated[
        str | None,
        Option(help="Where to train: cpu, cuda, or cuda:1 for the second GPU. If not given, the best there is."),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            help="The page to write, a .html file; the same for programs goes beside it as .json. If not given, "
            "audit-NUMBER.html in the current folder."
        ),
    ] = None,
    engine: EngineName = None,
    network: Network = None,
    train: Train = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Audit a receipt: train models with and without the forgotten records, and try to tell the model from the latter.

    Exits with 0 if the model is indistinguishable from retraining at this power, with 4 if residual influence is found
    and with 5 if there is not enough evidence. Nothing is changed but the count of audits of the receipt. Models that
    saw the records are kept in memory only. If an audit is interrupted, the same command goes on with it.

    Examples:

        maxrr audit ws/ 2 --plan
        maxrr audit ws/ 2
        maxrr audit ws/ 2 --forgotten leaving.npz --shadows 128 --device cuda
        maxrr audit ws/ 2 --engine ray
        maxrr audit ws/ receipt.json --out audit.html --json
    """
    from maxrr.audit import audit as audit_
    from maxrr.audit import plan_audit
    from maxrr.parallel.ray_cluster import engine_from

    workers = engine_from(engine)
    if out is not None and out.suffix != ".html":
        raise Stop(USAGE, f"--out names a page, such as {out.with_suffix('.html')}")
    with importing_from_here(network, train), show.progress() as progress, opened(
        workspace, wait, records=lambda: training, network=network, train=train, read_only=True
    ) as found:  # fmt: skip
        check_code(found, training=True)
        handed = receipt_of(found, receipt).receipt
        page = out or Path(f"audit-{handed.number}.html")
        if not plan:
            check_free(page, handed, found.model.model_hash_)
        training, held_out = sides(found, source, progress)
        gone = forgotten_records(found, handed, training, forgotten, progress)
        unseen = test_records(found, held_out, test, progress)
        model = found.model
        if plan:
            tell_plan(plan_audit(model, handed, gone, unseen, device=device, progress=progress, engine=workers), json)
            return
        try:
            result = audit_(
                model, handed, gone, unseen, shadows=shadows, device=device, folder=scratch(), progress=progress,
                engine=workers,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt(INTERRUPTED) from None
    write(result, page)
    if json:
        show.json(json_.loads(result.to_json()) | {"page": str(page), "report": str(page.with_suffix(".json"))})
    else:
        tell(result, page)
    if code := exit_code(result.finding):
        raise Stop(code)


def tell_plan(found: AuditPlan, json: bool) -> None:
    """How many shadow models it takes."""
    from dataclasses import asdict

    from maxrr.report.words import duration

    if json:
        show.json(asdict(found) | {"shadows": found.shadows})
        return
    rows = [(str(number), duration(found.seconds[number]), f"{power:.0%}") for number, power in found.power.items()]
    columns = ("shadow models", "takes about", "power to be expected")
    show.table(columns, rows, numbers=columns, caption="How often an audit finds a model that kept the records.")
    if found.shadows is None:
        show.say(
            "This pilot promises enough power of none of these numbers: the records leave little behind, or it takes "
            "more models than the pilot has to see it. Where the guarantee is exact, replay the receipt instead."
        )
    else:
        show.say(f"Audit with --shadows {found.shadows}. The audited model was not looked at.")


def exit_code(finding: Finding) -> int:
    """The exit code that tells a script about the finding."""
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
    """The report for programs, and the page for people beside it."""
    from maxrr.files import write_atomically
    from maxrr.report.audit import audit_page

    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page.with_suffix(".json"), result.to_json().encode())  # first: the page can be made of it again
    write_atomically(page, audit_page(result).encode())


def tell(result: AuditReport, page: Path) -> None:
    """The finding for people, and what each attack makes of the model."""
    from maxrr.audit.findings import FOUND
    from maxrr.report.words import count, duration

    finding = result.finding
    said = show.Bad(str(finding)) if finding.words == FOUND else str(finding)
    show.facts(
        [
            ("receipt", f"{result.receipt}, {result.guarantee}, {count(result.records, 'record')}"),
            ("finding", said),
            *(("but", text) for text in result.caveats),
            ("p", f"{finding.p_value:.2g} by LiRA: {finding.rank}"),
            ("mean", finding.sides),
            ("power", finding.told),
            ("took", duration(result.seconds)),
        ]
    )  # fmt: skip
    numbers = ("before", "after", "retrained", "p of after")
    caption = "Scores of the record." if result.records == 1 else "AUC: 0.5 is chance."
    show.table(("attack", *numbers), rows(result), numbers=numbers, caption=caption)
    show.say(f"The report: {show.near(page)}, and for programs {show.near(page.with_suffix('.json'))}.")


def rows(result: AuditReport) -> list[tuple[str, ...]]:
    """For each attack its AUC against each model, or its score of a single record."""
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


def page(
    file: Annotated[Path, Argument(metavar="FILE", help="The JSON file that `maxrr audit` wrote beside its page.")],
    out: Annotated[
        Path | None, Option(help="The page to write, a .html file. If not given, beside the JSON under the same name.")
    ] = None,
) -> None:
    """Draw the page of an audit again, from the JSON that was written beside it. Nothing is measured.

    Examples:

        maxrr page audit-1.json
        maxrr page audit-1.json --out again.html
    """
    from maxrr.audit import AuditReport
    from maxrr.files import read_regular, write_atomically
    from maxrr.report.audit import audit_page

    page = file.with_suffix(".html") if out is None else out
    if page.suffix != ".html":
        raise Stop(USAGE, f"--out names a page, such as {page.with_suffix('.html')}")
    outputs.check(page, "the page of an audit", lambda path: outputs.is_page(path, TITLE))
    try:
        drawn = audit_page(AuditReport.from_json(read_regular(file).decode()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Stop(FAILED, f"{file} is not a report that `maxrr audit` wrote, or was changed: {error}") from None
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, drawn.encode())
    show.say(f"Wrote {show.near(page)}.")
