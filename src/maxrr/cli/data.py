"""`maxrr data`: data sets known by name, how a source is read, and what is in it."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.fit import tell_columns
from maxrr.cli.options import Json
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.data import Description

ABOUT = {
    "digits": "1,797 handwritten digits, 8 × 8, ten classes",
    "fashion-mnist": "70,000 pieces of clothing, 28 × 28, ten classes",
    "mnist": "70,000 handwritten digits, 28 × 28, ten classes",
}
BAR = 20  # letters for the largest class


class SplitBy(StrEnum):
    """What decides which records are for testing."""

    SUBJECT = "subject"
    ID = "id"


class IdsFrom(StrEnum):
    """What records are called whose source does not say."""

    CONTENT = "content"
    ROWS = "rows"


def get(
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="Which data set; if not given, all are listed.")
    ] = None,
    json: Json = False,
) -> None:
    """Fetch a data set from its official site into the user's cache, unless it is here already; or list them.

    Examples:

        maxrr data get
        maxrr data get fashion-mnist
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
        IdsFrom | None,
        Option(
            help="How to name records that have no ids. content: by their own numbers. rows: by row numbers, which "
            "change when a line is deleted."
        ),
    ] = None,
    split_by: Annotated[
        SplitBy,
        Option(
            help="What decides which records are for testing: all about one subject on one side, or each by its id."
        ),
    ] = SplitBy.SUBJECT,
) -> None:
    """Say once how a source is read: which columns are what, and how the others become inputs.

    Writes a file beside the source, which every later command follows, and shows it: look at it, and edit it. No record
    is in it. Texts become categories, dates the days since 2000-01-01, missing values 0 and an input that says so.
    What is wrong with the source is listed at once, and nothing is written then.

    Examples:

        maxrr data prepare visits.csv --label diagnosis --id visit --subject person
        maxrr data prepare embeddings.npy --meta people.parquet --label topic --subject author
    """
    from maxrr.data import prepare as write

    outputs.check_apart(source)
    file = write(
        source, label=label, id=id, subject=subject, weight=weight, drop=drop or (), meta=meta,
        ids_from=None if ids_from is None else ids_from.value, split_by=split_by.value,
    )  # fmt: skip
    show.say(f"Wrote {show.near(file)}:")
    for line in file.read_text(encoding="utf-8").splitlines():
        show.say(line)


def describe(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE", help="A data set known by name, an .npz, .npy, .csv or .parquet file, a folder of images."
        ),
    ],
    json: Json = False,
) -> None:
    """Count the records of a data set: by class, by subject, and those that occur more than once.

    Examples:

        maxrr data describe visits.csv
    """
    import maxrr.data as data

    with show.progress():
        train, test = data.load(source, progress=show.report)
    found = data.describe(train, test)
    if json:
        tell_columns(train, json)
        show.json({"source": source, **asdict(found), "columns": train.columns})
        return
    show.say(f"{source}: {counts(found)}")
    tell_columns(train, json)
    show.table(("class", "train", "test", "share"), balance(found), numbers=("train", "test"))
    show.say(duplicates(found))


def counts(found: Description) -> str:
    """How many records of what, about how many people."""
    train, test = found.records
    each = f"{' × '.join(map(str, found.shape))} {found.dtype}".strip()
    people = "no subject ids" if found.subjects is None else f"about {count(found.subjects, 'subject')}"
    return f"{count(train, 'record')} for training and {test:,} for testing, each {each}; {people}."


def balance(found: Description) -> list[tuple[str, str, str, str]]:
    """A row for each class, with a bar as long as its share of the largest."""
    largest = max(map(sum, found.balance.values()))
    rows = []
    for name, (train, test) in found.balance.items():
        length = round(BAR * (train + test) / largest)
        rows.append((name, f"{train:,}", f"{test:,}", "█" * length or "▏"))
    return rows


def duplicates(found: Description) -> str:
    """How many records are there more than once, and where that does harm."""
    if not found.duplicate_groups:
        return "No two records have the same inputs."
    return (
        f"{found.duplicate_records:,} records share their inputs with another, in "
        f"{count(found.duplicate_groups, 'group')}: "
        f"{found.conflicting_groups:,} with more than one label, {found.shared_groups:,} both in train and in test."
    )
