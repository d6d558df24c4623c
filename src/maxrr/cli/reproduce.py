"""`maxrr reproduce` and `maxrr study`: the paper's table and figures measured here, and the questions it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.options import Json

if TYPE_CHECKING:
    from maxrr.paper import Profile

Result = dict[str, Any]

INTERRUPTED = "what is measured is kept, and the same command goes on from there"


class Size(StrEnum):
    """How large."""

    SMOKE = "smoke"
    QUICK = "quick"
    PAPER = "paper"
    SVC = "svc"


ProfileName = Annotated[
    Size,
    Option(
        help="How much to measure. smoke: digits, about a minute. quick: Fashion-MNIST with few runs, a "
        "quarter of an hour on two cores. paper: as many runs as the paper for histogram and table "
        "(100), 20 for the rest; needs a GPU. svc: scikit-learn's one-vs-one SVMs and a shorter "
        "training."
    ),
]
Out = Annotated[
    Path,
    Option(
        help="The folder for results. Each profile has a folder of its own in it, and what is there already "
        "is not measured again."
    ),
]
Seed = Annotated[
    int,
    Option(
        help="A whole number that decides everything drawn at random: the same one gives the same numbers. "
        "Change it to see how much chance matters."
    ),
]
Device = Annotated[
    str | None, Option(help="Where to train: cpu, cuda, or cuda:1 for the second GPU. If not given, the best there is.")
]


class Part(StrEnum):
    """What to reproduce."""

    ALL = "all"
    HISTOGRAM = "histogram"
    COVERAGE = "coverage"
    TABLE = "table"
    VERIFICATION = "verification"
    AGREEMENT = "agreement"
    SENSITIVITY = "sensitivity"
    REFIT = "refit"


class Data(StrEnum):
    """Other data than the profile's."""

    FASHION_MNIST = "fashion-mnist"
    MNIST = "mnist"
    DIGITS = "digits"


def reproduce(
    part: Annotated[
        Part,
        Argument(
            metavar="PART",
            help="What to measure: histogram, coverage, table, verification, agreement, sensitivity or refit; all "
            "of them if not given.",
        ),
    ] = Part.ALL,
    profile: ProfileName = Size.QUICK,
    data: Annotated[
        Data | None,
        Option(
            help="Records to measure on instead of the profile's, with fewer runs. Give it to see whether a "
            "result holds elsewhere."
        ),
    ] = None,
    out: Out = Path("results"),
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
) -> None:
    """Measure the paper's table and figures, and show each number beside the paper's.

    Results are JSON files in a folder of the profile, with figures and a page to look at. What is there is not measured
    again, so an interrupted run goes on: delete a file to measure it anew. With the profile paper, `all` ends with the
    table on MNIST.

    Examples:

        maxrr reproduce --profile smoke
        maxrr reproduce table --profile quick
        maxrr reproduce all --profile paper --device cuda
        maxrr reproduce table --profile paper --data mnist
    """
    every = [name for name in Part if name != Part.ALL]
    wanted: list[tuple[str, str | None]] = [
        (name.value, data and data.value) for name in (every if part == Part.ALL else [part])
    ]
    if part == Part.ALL and profile == Size.PAPER and data is None:
        wanted.append((Part.TABLE.value, Data.MNIST.value))
    measure(wanted, profile, out, seed, device, json)


class Study(StrEnum):
    """Which question."""

    ALL = "all"
    CHOICES = "choices"
    SVMS = "svms"
    FRONTIER = "frontier"
    CORE_CHOICE = "core-choice"
    RANKING_LENGTH = "ranking-length"
    MEMBERS = "members"
    CONTROL = "control"
    CROSS_VALIDATED = "cross-validated"
    MATCHED = "matched"
    MORE_RUNS = "more-runs"


def study(
    study: Annotated[
        Study,
        Argument(
            metavar="STUDY",
            help="Which question to answer. choices: which of the choices that the paper leaves open fit its numbers. "
            "svms: the same networks under other SVMs. frontier: accuracy against what forgetting costs, for cores of "
            "many sizes. core-choice: the core chosen on validation records, reported on test records. ranking-length: "
            "how many runs a ranking needs. members: which records stand for the members in the verification. control: "
            "what the paper's attack says before records are forgotten. cross-validated: probabilities as SVC has "
            "them. matched: support vectors forgotten, beside as many others. more-runs: the sensitivity with 100 "
            "runs. All of them if not given.",
        ),
    ] = Study.ALL,
    profile: ProfileName = Size.QUICK,
    data: Annotated[
        str | None,
        Option(
            help="Records to measure on instead of the profile's, with fewer runs: fashion-mnist, mnist, digits, "
            "or an .npz or .csv file. Give it to see whether an answer holds elsewhere."
        ),
    ] = None,
    out: Out = Path("results"),
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
) -> None:
    """Answer questions that the paper leaves: which core, how long a ranking, what it did not say.

    Examples:

        maxrr study frontier --profile quick
        maxrr study --profile paper --device cuda
        maxrr study core-choice --profile paper --data mnist
    """
    every = [name for name in Study if name != Study.ALL]
    measure(
        [(name.value, data) for name in (every if study == Study.ALL else [study])], profile, out, seed, device, json
    )


def measure(
    wanted: Sequence[tuple[str, str | None]], profile: Size, out: Path, seed: int, device: str | None, json: bool
) -> None:
    """Measure parts, each on data of its own or the profile's, and show what came of them."""
    from maxrr.paper import PARTS, PROFILES, STUDIES, Lab

    chosen, folder = PROFILES[profile.value], out / profile.value
    found: dict[str, Result] = {}
    labs: dict[str, Lab] = {}
    try:
        with show.progress() as progress:
            for name, data in wanted:  # what cannot be gone on with is refused before the first is measured
                setting = chosen.on(data or chosen.data)
                if setting.data not in labs:
                    labs[setting.data] = Lab.of(
                        setting, folder, source=data, seed=seed, device=device, progress=progress
                    )  # fmt: skip
                labs[setting.data].results(name).read()
            for name, data in wanted:
                setting = chosen.on(data or chosen.data)
                part = {**PARTS, **STUDIES}[name](labs[setting.data])
                found[labs[setting.data].results(name).path.stem] = part
                if not json:
                    tell(part, setting)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None
    page = write(folder)
    if json:
        show.json({name: {"title": part["title"], "runs": part["runs"], "cells": part["cells"]}
                   for name, part in found.items()} | {"page": str(page)})  # fmt: skip
    else:
        from maxrr.paper.page import headline

        show.say(f"{headline(found)}.")
        show.say(f"The results, as JSON and figures: {show.near(folder)}. To look at: {show.near(page)}.")


def tell(part: Result, profile: Profile) -> None:
    """A part's cells, ours beside the paper's."""
    from maxrr.paper.figures.names import readable
    from maxrr.paper.page import cell_text, is_share
    from maxrr.report.words import count

    show.say(f"{part['title']} ({profile.data}, {count(part['runs'], 'run')})")
    rows = []
    for row, columns in part["cells"].items():
        for column, cell in columns.items():
            ours, paper, difference, verdict = cell_text(cell, is_share(row, column))
            names = (readable(row, part), readable(column, part))
            rows.append((*names, ours, paper, difference, show.Bad(verdict) if verdict == "differs" else verdict))
    if all(row[3] == "–" for row in rows):  # nothing of the paper's to compare with
        show.table(("", " ", "ours"), [row[:3] for row in rows], numbers=("ours",))
    else:
        numbers = ("ours", "paper", "difference")
        show.table(("", " ", *numbers, "verdict"), rows, numbers=numbers)
    for sentence in part.get("said", ()):
        show.say(sentence)


def write(folder: Path) -> Path:
    """Figures of all results in the folder, where matplotlib is, and the page around them."""
    import json as json_

    from maxrr.files import write_atomically
    from maxrr.paper import PARTS, STUDIES, draw, reproduction_page

    there = {
        path.stem: path
        for part in (*PARTS, *STUDIES)
        for path in (folder / f"{part}.json", *sorted(folder.glob(f"{part}-*.json")))  # and of other data
        if path.exists()
    }
    contents = {name: json_.loads(path.read_text(encoding="utf-8")) for name, path in there.items()}
    results = {name: content for name, content in contents.items() if "cells" in content}  # the others are not finished
    try:
        draw(results, folder)
    except ImportError as error:
        show.warning(f"no figures were drawn: {error}")
    figures = {
        name: path.read_text(encoding="utf-8")
        for name in results
        if (path := folder / f"{name}.svg").exists()
    }  # fmt: skip
    page = folder / "report.html"
    write_atomically(page, reproduction_page(results, figures).encode())
    return page
