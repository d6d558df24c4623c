"""`maxrr data`: which data sets are known and where they lie, fetching one, and what is in it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from maxrr.cli import show
from maxrr.cli.options import Drop, EncodingFile, FromWhat, Id, Json, Label, Meta, Split, SplitBy, Subject, Weight
from maxrr.cli.workspaces import reading, tell_columns
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.data import Description

ABOUT = {
    "digits": "1,797 handwritten digits, 8 × 8, ten classes",
    "fashion-mnist": "70,000 pieces of clothing, 28 × 28, ten classes",
    "mnist": "70,000 handwritten digits, 28 × 28, ten classes",
}
BAR = 20  # letters for the largest class


def known(json: Json = False) -> None:
    """List the data sets known by name, and where each was found."""
    from maxrr.data import available

    if json:
        show.json([{"name": name, "about": ABOUT[name], "place": place} for name, place in available()])
        return
    rows = [(name, ABOUT[name], place or f"not here yet: maxrr data get {name}") for name, place in available()]
    show.table(("name", "what it is", "where"), rows)


def get(name: Annotated[str, Argument(metavar="NAME", help="Which data set, as `maxrr data list` writes it.")]) -> None:
    """Fetch a data set from its official site into the user's cache, unless it is here already."""
    from maxrr.data import fetch

    with show.progress() as progress:
        place = fetch(name, progress)
    show.say(f"{name} is in {place}.")


def describe(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE", help="A data set known by name, an .npz, .csv or .parquet file, or a folder of images."
        ),
    ],
    label: Label = "label",
    id: Id = "id",
    subject: Subject = "subject",
    weight: Weight = None,
    drop: Drop = None,
    encoding: EncodingFile = None,
    ids_from: FromWhat = None,
    meta: Meta = None,
    split_by: Split = SplitBy.SUBJECT,
    json: Json = False,
) -> None:
    """Count the records of a data set: by class, by subject, and those that occur more than once.

    Records without ids are counted, too: which of them are for testing then depends on --ids-from, rows if not given.
    """
    import maxrr.data as data
    from maxrr.data.checks import MissingIdsError

    options = reading(label, id, subject, weight, encoding, ids_from, str(split_by), meta, drop)
    with show.progress() as progress:
        try:
            train, test = data.load(source, **options, progress=progress)
        except MissingIdsError:
            train, test = data.load(source, **options | {"ids_from": "rows"}, progress=progress)
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
