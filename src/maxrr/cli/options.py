"""Options that several commands have, written the same in each."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

Folder = Annotated[Path, Argument(metavar="WORKSPACE", help="The workspace: a folder that `maxrr fit` made.")]
Json = Annotated[bool, Option("--json", help="Print the answer as JSON, for programs.")]
Wait = Annotated[
    float,
    Option(
        help="Seconds to wait while another process works in the workspace, before giving up. Raise it where "
        "several take turns."
    ),
]
WAIT = 5.0


def known_engine(said: str | None) -> str | None:
    """Refuse what names no engine before anything is read."""
    if said is not None:
        from maxrr.parallel.ray_cluster import engine_from

        try:
            engine_from(said)
        except ValueError as error:
            raise BadParameter(str(error)) from None
    return said


ENGINE = "MAXRR_ENGINE"
EngineName = Annotated[
    str | None,
    Option(
        "--engine",
        envvar=ENGINE,
        callback=known_engine,
        help="Where long work is done. local: on this machine; so if not given. ray: on the Ray cluster that "
        "RAY_ADDRESS names, or on one that is started here. ray://HOST:10001: on that one. A .toml file: as it says "
        "(docs/scale.md). The result is the same.",
    ),
]

PLACES = "MAXRR_SIGNING_KEY, or key.pem in ~/.config/maxrr ($XDG_CONFIG_HOME/maxrr)"  # where a key is looked for
SigningKeyFile = Annotated[
    Path | None,
    Option(
        "--key",
        help=f"The file of your private key, which signs the receipt and the log. If not given, {PLACES}; without "
        "any, receipts are not signed.",
    ),
]

# Where records come from
Label = Annotated[str, Option(help="Tables only: the column with the class. Name it if yours is called otherwise.")]
Id = Annotated[str, Option(help="Tables only: the column with the record id. Name it if yours is called otherwise.")]
Subject = Annotated[
    str,
    Option(
        help="Tables only: the column that says whom a record is about. Name it if yours is called "
        "otherwise; a file may have none."
    ),
]


Weight = Annotated[
    str | None, Option(help="Tables only: the column that says how much a record counts. If not given, all the same.")
]
Drop = Annotated[
    list[str] | None,
    Option(
        help="Tables only: a column that is passed over; may be repeated. Columns that no option names are inputs, so "
        "name here what the model must not learn from."
    ),
]
EncodingFile = Annotated[
    Path | None,
    Option(
        help="Tables only: a JSON file that declares the categories of columns with texts, and what stands for missing "
        "values. Nothing is fitted: later commands use the same."
    ),
]


Meta = Annotated[
    Path | None,
    Option(
        help="Beside an .npy file of embeddings: the .csv or .parquet file with the label, id, subject and weight of "
        "each row, in the same order. Other columns are not looked at."
    ),
]


class SplitBy(StrEnum):
    """What decides which records are for testing."""

    SUBJECT = "subject"
    ID = "id"


Split = Annotated[
    SplitBy,
    Option(
        help="What decides which records are for testing, where the source does not say it. subject: the person, so "
        "that all records about one are on one side. id: each record by itself, also where people are named."
    ),
]


class IdsFrom(StrEnum):
    """What records are called whose source does not say."""

    CONTENT = "content"
    ROWS = "rows"


FromWhat = Annotated[
    IdsFrom | None,
    Option(
        help="How to name the records of a table or an .npz file that has no ids. content: an id made of each "
        "record's own numbers, which stays when lines are deleted. rows: its row number, which does not."
    ),
]
Source = Annotated[
    list[str] | None,
    Option(
        help="Where the raw records are now: a name, file or folder as `fit` takes it; may be repeated, for what was "
        "added, in the order of `maxrr status`. Give it if they have moved since; they are read only where the "
        "work needs them."
    ),
]
NETWORK, TRAIN = "MAXRR_NETWORK", "MAXRR_TRAIN"  # variables of the environment that name code of the user's own
Network = Annotated[
    str | None,
    Option(
        envvar=NETWORK,
        help="The network of your own that was fitted, as package.module:function. Give it if you fitted with "
        "--network: a workspace runs no code but MaxRR's by itself.",
    ),
]
Train = Annotated[
    str | None,
    Option(
        envvar=TRAIN,
        help="The training function of your own that was used, as package.module:function. Give it if you fitted with "
        "--train: a workspace runs no code but MaxRR's by itself.",
    ),
]

# Requests
Copies = Annotated[
    str | None,
    Option(
        help="Let in records that have the values of forgotten ones under other ids, because they are other "
        "people's. Give the reason: the workspace keeps it, and `maxrr status` shows it."
    ),
]
Ids = Annotated[
    list[str] | None,
    Option(help="Ids of records, separated by commas; may be repeated. Ids with commas in them go into --ids-file."),
]
IdsFile = Annotated[
    str | None,
    Option(
        help="A text file in UTF-8 with one record id on each line; - reads standard input. For many ids, or "
        "ids with commas."
    ),
]
Subjects = Annotated[
    list[str] | None, Option(help="All records about this person, by the subject id; may be repeated.")
]


class Policy(StrEnum):
    """What to do if records are core."""

    REFUSE = "refuse"
    RETRAIN = "retrain"
    KEEP_EXTRACTOR = "keep-extractor"


CorePolicy = Annotated[
    Policy,
    Option(
        help="What to do if records are core, so that the extractor was trained on them. refuse: change nothing, and "
        "say what the others promise and cost. retrain: train the extractor again without them (slow, exact; reads "
        "the raw records). keep-extractor: leave it alone and move the heads (fast, approximate: an audit is due)."
    ),
]
Yes = Annotated[
    bool, Option("--yes", "-y", help="Do it without asking for confirmation. Scripts, and --json, need this.")
]
