"""`maxrr unlearn --requests`: a file of tickets, answered together, and a file that says what became of each."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli import outcome, outputs, requests, show
from maxrr.cli.run import REFUSED, Stop
from maxrr.cli.workspaces import opened
from maxrr.errors import MaxRRError, MissingColumn, UnreadableFile

if TYPE_CHECKING:
    from maxrr.unlearning import Receipt
    from maxrr.workspace import Batch, Ticket


@dataclass
class Result:
    """What became of a ticket, as the file of results has it.

    `pages` are the receipts of which `maxrr receipt for` makes a page for the person; `answer` is the page for one of
    whom nothing is here; `days_left` is until the ticket is due.
    """

    line: int
    ticket: str
    outcome: str = "refused"
    code: str = ""
    receipt: int | None = None
    pages: str = ""
    guarantee: str = ""
    days_left: int | None = None
    answer: str = ""
    why: str = ""


def answer(
    folder: Path, file: Path, out: Path | None, policy: str, source: Sequence[str] | None, *, yes: bool, json: bool
) -> None:
    """Answer a file of tickets."""
    requests.check_can_ask(yes=yes, json=json)
    lines = lines_in(file)
    results = out or file.with_name(f"{file.stem}.results.csv")
    outputs.check(results, "a file of results", is_results)
    results.parent.mkdir(parents=True, exist_ok=True)  # before the work: it cannot be undone
    with outcome.told() as ending:
        with opened(folder, moved=source) as found, ExitStack() as until_told:
            with (
                ending.work(found.folder, requests.UNDONE, lambda *_: "the tickets were answered"),
                found.batch(core_policy=policy, progress=show.report) as batch,
            ):
                asked = [ask(batch, number, line) for number, line in lines]
                plan, expected = batch.plan()
                counts = Counter(expected)
                counts["refused"] += sum(ticket is None for _, ticket in asked)
                if plan is not None:
                    if plan.action.fits_anew:
                        found.check_code(training=bool(plan.trains))
                    if not yes:
                        show.facts([(f"tickets {name}", f"{count:,}") for name, count in counts.items() if count])
                    requests.confirm(plan, "Answer these tickets for good?", yes=yes)
                    until_told.enter_context(show.progress())
            ending.unfinished, receipts = found.unfinished, found.receipts()
        told = [note_outcome(result, ticket, receipts) for result, ticket in asked]
        answers = results.with_name(f"{results.stem}.answers")
        for (result, ticket), (_, line) in zip(asked, lines, strict=True):
            if ticket is not None and ticket.answer is not None:
                result.answer = write_answer(answers, line, ticket.answer)
        write(results, told)
        tell(told, results, json=json)
    if any(result.outcome == "refused" for result in told):
        raise Stop(REFUSED)


# Reading


def lines_in(file: Path) -> list[tuple[int, dict[str, str]]]:
    """Read the tickets of a file, each with the number of its line; a line with too many cells has no values."""
    from maxrr.files import read_regular

    try:
        text = read_regular(file).decode("utf-8-sig")
        delimiter = max(",;\t", key=text.lstrip("\r\n").partition("\n")[0].count)
        read = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = [[cell.strip() for cell in row] for row in read]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{file}: cannot be read as a table of tickets in UTF-8: {error}") from None
    filled = [(number, row) for number, row in enumerate(rows, start=1) if any(row)]
    columns = [name.lower() for name in filled[0][1]] if filled else []
    if "ticket" not in columns or not {"subject", "id"} & set(columns) or len(set(columns)) < len(columns):
        raise MissingColumn(f"{file}: needs columns ticket, and subject or id, none twice; it has {', '.join(columns)}")
    return [(at, {} if len(row) > len(columns) else dict(zip(columns, row, strict=False))) for at, row in filled[1:]]


def ask(batch: Batch, number: int, line: Mapping[str, str]) -> tuple[Result, Ticket | None]:
    """Ask for what a line of the file names; a line that cannot be read has no ticket."""
    from maxrr.data.checks import check_identifiers
    from maxrr.workspace.batches import as_day

    result = Result(number, line.get("ticket", ""))
    subject, id_ = line.get("subject", ""), line.get("id", "")
    try:
        if not result.ticket or bool(subject) == bool(id_):
            raise ValueError("correct it: a line has a ticket, a subject or an id (one of the two), and no other cells")
        check_identifiers([subject or id_], "what is asked for")
        days = {name: as_day(name, line[name]) for name in ("received", "due") if line.get(name)}
        if "due" in days:
            result.days_left = (days["due"] - datetime.now(UTC).date()).days
        return result, batch.unlearn(id_ or None, subjects=subject or None, ticket=result.ticket, **days)
    except ValueError as error:
        result.code = error.code if isinstance(error, MaxRRError) else "bad-line"
        result.why = str(error)
        return result, None


# Telling


def note_outcome(result: Result, ticket: Ticket | None, receipts: Sequence[Receipt]) -> Result:
    """Note what became of a ticket."""
    if ticket is None:
        return result
    result.outcome = ticket.outcome
    try:
        receipt = ticket.receipt
    except MaxRRError as error:
        result.code, result.why = error.code, str(error)
        return result
    pages = outcome.forgetting(receipts, {*receipt.earlier_tombstones, *receipt.tombstones})
    result.receipt, result.guarantee, result.pages = receipt.number, receipt.guarantee, " ".join(map(str, pages))
    return result


def write_answer(folder: Path, line: Mapping[str, str], answer: bytes) -> str:
    """Write the page for a person of whom nothing is here, under a name that only the same request has again.

    A page that is there already is kept: the person may have it.
    """
    from maxrr.files import write_atomically
    from maxrr.report.answer import answer_page

    asked = dumps([line.get(name, "") for name in ("ticket", "subject", "id", "received", "due")])
    place = folder / f"{sha256(asked.encode()).hexdigest()[:32]}.html"
    folder.mkdir(mode=0o700, exist_ok=True)  # a name that is guessed could be recognised
    if not place.exists():
        write_atomically(place, answer_page(answer).encode(), private=True)
    return str(place)


def write(results: Path, told: Sequence[Result]) -> None:
    """Write the file of results."""
    from maxrr.files import write_atomically

    content = io.StringIO(newline="")
    rows = csv.DictWriter(content, HEADINGS, lineterminator="\n")
    rows.writeheader()
    rows.writerows(map(asdict, told))
    write_atomically(results, content.getvalue().encode(), private=True)


def is_results(file: Path) -> bool:
    """Whether a file is one of results."""
    with open(file, encoding="utf-8") as opened:
        return opened.readline().strip() == ",".join(HEADINGS)


def tell(told: Sequence[Result], results: Path, *, json: bool) -> None:
    """Print how many tickets came to what, and where the results are."""
    if json:
        show.json({"results": str(results), "tickets": [asdict(each) for each in told]})
        return
    counts = Counter(each.outcome for each in told)
    show.facts([*((name, f"{count:,}") for name, count in counts.items()), ("results", show.near(results))])


HEADINGS = [each.name for each in fields(Result)]
