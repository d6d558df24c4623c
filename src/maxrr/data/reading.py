"""How a source is read: which columns say what, and how the others become inputs.

It is said once, in a file beside the source (`people.csv.toml`), which `prepare` writes and `load` follows.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from maxrr.data.encoding import Encoding, as_plain, check_columns, encoding_of
from maxrr.data.labels import check_ids_from
from maxrr.data.train_test import check_split_by
from maxrr.errors import DataError, MissingColumn
from maxrr.files import read_regular
from maxrr.files.strict_json import from_plain

LARGEST = 1 << 24  # bytes of a file that says how a source is read: whatever is larger is another file
BARE = re.compile("[A-Za-z0-9_-]+")  # a name that TOML has without quotes


@dataclass(frozen=True)
class Reading:
    """Which columns of a table say what, which are passed over, and how the others become inputs.

    Ids and subjects that are looked for under their usual names may be missing, the ids only if `ids_from` makes them.
    Columns to `drop` are passed over. All others are inputs.
    """

    label: str | None = "label"
    id: str | None = "id"
    subject: str | None = "subject"
    weight: str | None = None
    drop: tuple[str, ...] = ()
    ids_from: str | None = None
    split_by: str = "subject"
    meta: str | None = None  # the table with the labels and ids of an .npy file: a path from the folder of that file
    encoding: Encoding = field(default_factory=Encoding)
    drafted: tuple[str, ...] = ()  # columns whose encoding `prepare` has read off the records

    def __post_init__(self) -> None:
        check_split_by(self.split_by)

    @property
    def others(self) -> list[str]:
        """The columns for label, id, subject and weight, which are no inputs."""
        return [name for name in (self.label, self.id, self.subject, self.weight) if name is not None]

    def check(self, header: Sequence[str]) -> None:
        """Refuse a table that lacks what was asked for."""
        named = ", ".join(map(repr, header)) or "nothing"
        asked = ("label", self.label), ("id", self.id), ("subject", self.subject), ("weight", self.weight)
        for kind, name in asked:
            if name is not None and name not in header and (name != kind or kind in ("label", "weight")):
                raise MissingColumn(
                    f"has no column {name!r}: its columns are {named}. Say which of them is the {kind}: {kind}=…, "
                    f"in the shell maxrr data prepare FILE --{kind} …"
                )
        for name in self.drop:
            if name not in header:
                raise MissingColumn(f"has no column {name!r} that could be dropped: its columns are {named}")
            if name in self.others:
                raise DataError(f"the column {name!r} is the label, id, subject or weight, and cannot be dropped")
        check_columns(self.encoding, [name for name in header if name not in (*self.others, *self.drop)])
        there = self.id is not None and self.id in header
        check_ids_from(there, self.ids_from, f"the column {self.id or 'id'!r}, or another of {named} by id=… (--id)")

    def check_no_columns(self) -> None:
        """Refuse names of columns for a source that has none: they would be passed over."""
        usual = Reading()
        for name in ("label", "id", "subject", "weight", "drop", "meta", "encoding"):
            if getattr(self, name) != getattr(usual, name):
                raise DataError(
                    f"has no columns that {name} (--{name}) could mean: it is for .csv and .parquet files, and for an "
                    ".npy file with such a table beside it. Leave it out"
                )

    def to_toml(self, notes: Mapping[str, str] | None = None) -> str:
        """Write what is not as usual as TOML, one line each, with a note behind those lines that have one."""
        usual, lines = Reading(), []
        for name in (each.name for each in fields(self) if each.name != "encoding"):
            value = getattr(self, name)
            if value != getattr(usual, name):
                note = (notes or {}).get(name, "")
                lines.append(f"{name} = {_written(value)}{note and f'  # {note}'}")
        for column, facts in as_plain(self.encoding).items():
            note = (notes or {}).get(f"encoding.{column}", "")
            key = column if BARE.fullmatch(column) else _written(column)
            lines.append(f"\n[encoding.{key}]{note and f'  # {note}'}")
            lines += [f"{name} = {_written(value)}" for name, value in facts.items()]
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def from_toml(cls, text: str) -> "Reading":
        """Read what `to_toml` wrote, perhaps edited since: unknown names and other types are refused."""
        try:
            said = tomllib.loads(text)
            encoding = encoding_of(said.pop("encoding", {}))
            return replace(from_plain(cls, said), encoding=encoding)
        except RecursionError:
            raise DataError("it is nested too deeply") from None
        except ValueError as error:
            raise DataError(f"it does not say how a source is read: {error}") from None


def beside(source: str | Path) -> Path:
    """Return the path of the file that says how a source is read."""
    path = Path(source)
    return path.with_name(f"{path.name}.toml")


def reading_of(source: str | Path) -> Reading | None:
    """Read the file beside a source; None where there is no such file."""
    file = beside(source) if Path(source).exists() else None
    if file is None or not file.exists():
        return None
    try:
        return Reading.from_toml(read_regular(file, LARGEST).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is not text in UTF-8: {error.reason} at byte {error.start}") from None
    except DataError as error:
        raise DataError(f"{file}: {error}") from None


def _written(value: Any) -> str:
    """Write a value as TOML, which has texts, numbers and lists as JSON does, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
