"""`python -m lab`: the paper's table and figures measured here, and the questions it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from lab.parts import PARTS, STUDIES
from maxrr.cli import common, group, outputs, show
from maxrr.cli.options import EngineName, Json
from maxrr.cli.run import FAILED, Commands, Stop

ALL, PAGE = "all", "report.html"

if TYPE_CHECKING:
    from lab.parts import Part
    from lab.profiles import Profile
    from lab.results import Results

    PartName = str
    StudyName = str
else:  # one of the names in the table
    PartName, StudyName = (StrEnum("Name", {name: name for name in (ALL, *known)}) for known in (PARTS, STUDIES))

Result = dict[str, Any]

INTERRUPTED = "what is measured is kept, and the same command goes on from there"


def listing(known: Mapping[str, Part]) -> str:
    """Each name with its question, for the help."""
    return " ".join(f"{name}: {part.asks}." for name, part in known.items())


class Size(StrEnum):
    """How large."""

    SMOKE = "smoke"
    QUICK = "quick"
    PAPER = "paper"
    SVC = "svc"
    READING_REST = "reading-rest"
    READING_ONE = "reading-one"
    PUBLIC_WEIGHTS = "public-weights"


ProfileName = Annotated[
    Size,
    Option(
        help="How much to measure. smoke: digits, about a minute. quick: Fashion-MNIST with few runs, a "
        "quarter of an hour on two cores. paper: as many runs as the paper for histogram and table "
        "(100), 20 for the rest; needs a GPU. svc: scikit-learn's one-vs-one SVMs and a shorter "
        "training. reading-rest, reading-one: the likeliest reading of the paper with each kind of SVM. "
        "public-weights: CIFAR-10, for the study of that name; needs a GPU."
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
Minutes = Annotated[
    float | None,
    Option(
        help="Begin nothing that may end later than in so many minutes: for machines that are lent. The same command "
        "goes on from there."
    ),
]


class Data(StrEnum):
    """Other data than the profile's."""

    FASHION_MNIST = "fashion-mnist"
    MNIST = "mnist"
    DIGITS = "digits"


def reproduce(
    part: Annotated[
        PartName, Argument(metavar="PART", help=f"What to measure. {listing(PARTS)} All of them if not given.")
    ] = ALL,
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
    engine: EngineName = None,
    minutes: Minutes = None,
    json: Json = False,
) -> None:
    """Measure the paper's table and figures, and show each number beside the paper's.

    Results are JSON files in a folder of the profile, with figures and a page to look at. What is there is not measured
    again, so an interrupted run goes on: delete a file to measure it anew. With the profile paper, `all` ends with the
    table on MNIST.

    Examples:

        python -m lab reproduce --profile smoke
        python -m lab reproduce table --profile quick
        python -m lab reproduce all --profile paper --device cuda
        python -m lab reproduce table --profile paper --data mnist
    """
    wanted = [(str(name), data and data.value) for name in (PARTS if part == ALL else [part])]
    if part == ALL and profile == Size.PAPER and data is None:
        wanted.append(("table", Data.MNIST.value))
    measure(wanted, profile, out, seed, device, engine, minutes, json)


def study(
    study: Annotated[
        StudyName,
        Argument(metavar="STUDY", help=f"Which question to answer. {listing(STUDIES)} All of them if not given."),
    ] = ALL,
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
    engine: EngineName = None,
    minutes: Minutes = None,
    json: Json = False,
) -> None:
    """Answer questions that the paper leaves: which core, how long a ranking, what it did not say.

    Examples:

        python -m lab study frontier --profile quick
        python -m lab study --profile paper --device cuda
        python -m lab study core-choice --profile paper --data mnist
    """
    fitting = [name for name, part in STUDIES.items() if not part.profiles or profile.value in part.profiles]
    wanted = [(str(name), data) for name in (fitting if study == ALL else [study])]
    measure(wanted, profile, out, seed, device, engine, minutes, json)


class Sizes(StrEnum):
    """How large the comparison is."""

    SMOKE = "smoke"
    QUICK = "quick"
    PAPER = "paper"


class Use(StrEnum):
    """How techniques are used."""

    ALONE = "alone"
    BELOW = "below exact heads"


def compare(
    profile: Annotated[
        Sizes,
        Option(
            help="How much to measure. smoke: digits, a minute. quick: few records of Fashion-MNIST, half an hour on "
            "two cores. paper: Fashion-MNIST and CIFAR-10, an hour of a GPU."
        ),
    ] = Sizes.SMOKE,
    part: Annotated[
        str,
        Option(
            help="Which parts, by their letters. a: techniques on a small network. b: the best three on a larger one. "
            "c: methods that promise something, from public weights. d: a stream of requests for these."
        ),
    ] = "abcd",
    use: Annotated[
        Use | None,
        Option(help="Of parts a and b only techniques used so; two processes can measure these beside each other."),
    ] = None,
    out: Out = Path("results/compare"),
    seed: Seed = 0,
    device: Device = None,
    minutes: Minutes = None,
) -> None:
    """Put what others do to forget beside us, on the same work, and measure its distance to retraining.

    Each piece is a JSON file in a folder of the profile. What is there is not measured again, so that an interrupted
    run goes on; delete a file to measure it anew.

    Examples:

        python -m lab compare
        python -m lab compare --profile paper --part a --device cuda --minutes 9
    """
    from lab.compare.questions import USES
    from lab.compare.running import measure
    from lab.results import Clock, OutOfTimeError

    if left := set(part) - set("abcd"):
        raise Stop(FAILED, f"there are parts a, b, c and d, not {', '.join(sorted(left))}")
    clock = Clock() if minutes is None else Clock(perf_counter() + 60.0 * minutes)
    try:
        for letter in sorted(set(part)):
            measure(letter, profile.value, out, seed, device, clock, USES if use is None else (use.value,))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None
    except OutOfTimeError:
        raise Stop(FAILED, "there was no time for all of it: the same command goes on from there") from None
    show.say(f"The results: {show.near(out / profile.value)}. `python tools/fill_compare.py` puts them into the page.")


def measure(
    wanted: Sequence[tuple[str, str | None]], profile: Size, out: Path, seed: int, device: str | None,
    engine: str | None, minutes: float | None, json: bool,
) -> None:  # fmt: skip
    """Measure parts, each on data of its own or the profile's, and show what came of them."""
    folder = out / profile.value
    outputs.check(folder / PAGE, "the page of a reproduction", lambda path: outputs.is_page(path, "MaxRR reproduction"))
    from lab.lab import Lab
    from lab.profiles import PROFILES
    from lab.results import Clock, OutOfTimeError
    from maxrr.parallel.ray_cluster import working_on

    chosen = PROFILES[profile.value]
    clock = Clock() if minutes is None else Clock(perf_counter() + 60.0 * minutes)
    found: dict[str, Result] = {}
    labs: dict[str, Lab] = {}
    left = []
    try:
        with show.progress() as progress, working_on(engine) as workers:
            for name, data in wanted:  # what cannot be gone on with is refused before the first is measured
                setting = chosen.on(data or chosen.data)
                if setting.data not in labs:
                    labs[setting.data] = Lab.of(
                        setting, folder, source=data, seed=seed, device=device, progress=progress, engine=workers,
                        clock=clock,
                    )  # fmt: skip
                check_free(labs[setting.data].results(name), folder / PAGE)
            for name, data in wanted:
                setting = chosen.on(data or chosen.data)
                try:
                    part = {**PARTS, **STUDIES}[name].measure(labs[setting.data])
                except OutOfTimeError:  # another part may have pieces that are short enough
                    left.append(name)
                    continue
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
        from lab.page import headline

        show.say(f"{headline(found)}.")
        show.say(f"The results, as JSON and figures: {show.near(folder)}. To look at: {show.near(page)}.")
    if left:
        raise Stop(FAILED, f"there was no time for all of {', '.join(left)}: the same command goes on from there")


def check_free(results: Results, page: Path) -> None:
    """Refuse results of another setting, and files that are not of earlier results."""
    ours = bool(results.read()["pieces"]) or page.exists()
    for suffix in (".json", ".svg", ".png"):
        outputs.check(results.path.with_suffix(suffix), "of earlier results", lambda _: ours)


def tell(part: Result, profile: Profile) -> None:
    """A part's cells, ours beside the paper's."""
    from lab.cells import cell_text
    from lab.names import readable
    from lab.parts import kind_of
    from maxrr.report.words import count

    show.say(f"{part['title']} ({profile.data}, {count(part['runs'], 'run')})")
    rows = []
    for row, columns in part["cells"].items():
        for column, cell in columns.items():
            ours, paper, difference, verdict = cell_text(cell, kind_of(cell, column, part))
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

    from lab.figures import draw
    from lab.page import reproduction_page
    from maxrr.files import write_atomically

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
    page = folder / PAGE
    write_atomically(page, reproduction_page(results, figures).encode())
    return page


app = group("The paper's table and figures measured here, and the questions it leaves.",
            {"reproduce": reproduce, "study": study, "compare": compare}, Commands)  # fmt: skip
app.callback()(common)

if __name__ == "__main__":
    app(prog_name="python -m lab")
