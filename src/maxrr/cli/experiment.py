"""What `maxrr reproduce` and `maxrr study` have in common: measure parts, tell of them, draw them, write the page."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from maxrr.cli import show

if TYPE_CHECKING:
    from maxrr.experiments import Profile

Json = dict[str, Any]

INTERRUPTED = "what is measured is kept, and the same command goes on from there"


class Size(StrEnum):
    """How large."""

    SMOKE = "smoke"
    QUICK = "quick"
    PAPER = "paper"
    SVC = "svc"


ProfileName = Annotated[
    Size,
    Option(help="smoke: digits, a minute. quick: Fashion-MNIST with few runs, a quarter of an hour on two "
                "cores. paper: "
           "100 runs for histogram and table, else 20, on a GPU. svc: with scikit-learn's one-vs-one SVMs and a "
           "shorter training."),
]  # fmt: skip
Out = Annotated[Path, Option(help="The folder for results; each profile has a folder of its own in it.")]
Seed = Annotated[int, Option(help="Of everything: the same one gives the same numbers.")]
Device = Annotated[str | None, Option(help="Where to train, such as cpu or cuda; the best there is if not given.")]


def measure(
    wanted: Sequence[tuple[str, str | None]], profile: Size, out: Path, seed: int, device: str | None, json: bool
) -> None:
    """Measure parts, each on data of its own or the profile's, and show what came of them."""
    from maxrr.experiments import PARTS, PROFILES, STUDIES, Lab

    chosen, folder = PROFILES[profile.value], out / profile.value
    found: dict[str, Json] = {}
    labs: dict[str, Lab] = {}
    try:
        with show.progress() as report:
            for name, data in wanted:  # what cannot be gone on with is refused before the first is measured
                setting = chosen.on(data or chosen.data)
                if setting.data not in labs:
                    labs[setting.data] = Lab.of(
                        setting, folder, source=data, seed=seed, device=device, report=report
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
        from maxrr.report.reproduction import headline

        show.say(f"{headline(found)}.")
        show.say(f"The results, as JSON and figures: {show.near(folder)}. To look at: {show.near(page)}.")


def tell(part: Json, profile: Profile) -> None:
    """A part's cells, ours beside the paper's."""
    from maxrr.report.figures.names import readable
    from maxrr.report.reproduction import cell_text, is_share
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

    from maxrr.experiments import PARTS, STUDIES
    from maxrr.files import write_atomically
    from maxrr.report import draw, reproduction_page

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
