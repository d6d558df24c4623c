"""`maxrr reproduce`: the paper's table and figures, measured here, beside the paper's own numbers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli.experiment import Device, Out, ProfileName, Seed, Size, measure
from maxrr.cli.options import Json


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


def run(
    part: Annotated[
        Part,
        Argument(
            metavar="PART",
            help="histogram, coverage, table, verification, agreement, sensitivity or refit; all of them if not given.",
        ),
    ] = Part.ALL,
    profile: ProfileName = Size.QUICK,
    data: Annotated[Data | None, Option(help="Other records than the profile's, with fewer runs.")] = None,
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
