"""`maxrr study`: questions that the paper leaves, answered the same way as `maxrr reproduce` answers its own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli.experiment import Device, Out, ProfileName, Seed, Size, measure
from maxrr.cli.options import Json


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


def run(
    study: Annotated[
        Study,
        Argument(metavar="STUDY", help="choices: what the paper leaves open, and what fits its numbers. "
                                       "svms: the same networks under other "
                 "SVMs. frontier: accuracy against what forgetting costs, over cores. core-choice: the core chosen on "
                 "validation records, reported on test records. ranking-length: how many runs a ranking needs. "
                 "members: who stands for the members in the verification. control: what the paper's attack says "
                 "before records are forgotten. cross-validated: probabilities as SVC has them. matched: support "
                 "vectors forgotten, and as many others. more-runs: the sensitivity with 100 runs. All if not given."),
    ] = Study.ALL,
    profile: ProfileName = Size.QUICK,
    data: Annotated[
        str | None,
        Option(help="Other records than the profile's, with fewer runs: fashion-mnist, mnist, digits, or an "
                    ".npz or .csv "
               "file."),
    ] = None,
    out: Out = Path("results"),
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
) -> None:  # fmt: skip
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
