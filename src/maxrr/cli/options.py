"""Options that several commands have, written the same in each."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from maxrr.cli.command import Argument, Option

Folder = Annotated[Path, Argument("The workspace: a folder that `maxrr fit` made.")]
Json = Annotated[bool, Option("Print JSON, for programs.", names=("--json",))]
Wait = Annotated[float, Option("Seconds to wait for another process that works in the workspace.")]
WAIT = 5.0

# Where records come from
Label = Annotated[str, Option("The column of a CSV file with the class.")]
Id = Annotated[str, Option("The column of a CSV file with the record id.")]
Subject = Annotated[str, Option("The column of a CSV file with the subject id, if it has one.")]


class IdsFrom(StrEnum):
    """What records are called whose source does not say."""

    CONTENT = "content"
    ROWS = "rows"


FromWhat = Annotated[
    IdsFrom | None,
    Option("What to call records of a CSV or .npz file without ids: by their content, which stays when lines are "
           "deleted, or by their rows, which do not."),
]  # fmt: skip
Source = Annotated[
    str | None, Option("Where the raw records are now, if not where `fit` found them. Read only where they are needed.")
]
Network = Annotated[
    str | None,
    Option("The network that was fitted, as package.module:function, if it is your own: a workspace runs no code but "
           "MaxRR's by itself."),
]  # fmt: skip

# Requests
Copies = Annotated[
    str | None,
    Option("Let records in that have the values of forgotten ones under other ids, because they are other people's: "
           "the reason, which the workspace keeps."),
]  # fmt: skip
Ids = Annotated[list[str] | None, Option("Record ids, with commas between them; may be repeated.")]
IdsFile = Annotated[str | None, Option("A file with a record id on each line; - is standard input.")]
Subjects = Annotated[list[str] | None, Option("All records about this subject; may be repeated.")]


class Policy(StrEnum):
    """What to do if records are core."""

    REFUSE = "refuse"
    RETRAIN = "retrain"
    KEEP_EXTRACTOR = "keep-extractor"


class Refit(StrEnum):
    """What the head is fitted on afterwards."""

    RETAINED = "retained"
    INFLUENTIAL = "influential"


class Platt(StrEnum):
    """What probabilities are fitted on."""

    RETAINED = "retained"
    HELD_OUT = "held-out"
    CROSS_VALIDATED = "cross-validated"


CorePolicy = Annotated[
    Policy,
    Option("If records are core: refuse, and say what each of the others promises and costs; train the extractor again "
           "without them (retrain, exact); or leave it alone and move the heads (keep-extractor, approximate)."),
]  # fmt: skip
HeadRefit = Annotated[
    Refit, Option("Fit the head on all retained records, or on what is left of the influential ones (approximate).")
]
Yes = Annotated[bool, Option("Do not ask for confirmation.", names=("--yes", "-y"))]
