"""The folder that a served model lies in: `model.json`, and one file with its numbers. No record is in it.

The file with the numbers is named after its hash, and `model.json` is replaced last, in one step: who reads the folder
while it is written again finds the model before or the one after. Nothing is unpickled, and no code of others is run.
"""

import hashlib
import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from maxrr.files import Lock, flush_folder, from_plain, overwrite, parse_json, read_regular, to_plain, write_atomically
from maxrr.files.strict_json import Constraint, Count, Digest, body_of, json_digest

if TYPE_CHECKING:
    from maxrr.data import Encoding

FORMAT, VERSION = "maxrr serving", 1
NAME, LOCK = "model.json", ".lock"
ONNX, NUMPY = "onnx", "numpy"
ENDINGS = {ONNX: "onnx", NUMPY: "safetensors"}
OURS = re.compile(r"model-[0-9a-f]{16}\.(onnx|safetensors)|\.maxrr-[0-9a-f]{16}\.tmp")
LARGEST = 10_000_000  # bytes of model.json
TRIES, PAUSE, PATIENCE = 5, 0.05, 10.0  # of a reader beside a writer; seconds between; seconds that a writer waits


@dataclass(frozen=True)
class Facts:
    """The description of a served model in its folder.

    `form` says what computes it, `export` names this copy among all, `workspace` is the token of where it comes from,
    and `requests` counts those that had been carried out there. `dtype` and `shape` are of one record. `file` has the
    numbers, and this `sha256`. `encoding` says how the columns of a table become inputs, as
    `maxrr.data.Encoding.to_json` writes it, where that was declared.
    """

    form: Annotated[str, Constraint("a form of exports", ENDINGS.__contains__)]
    export: Annotated[str, Constraint("32 hexadecimal digits in small letters", re.compile("[0-9a-f]{32}").fullmatch)]
    workspace: str | None
    requests: Count
    model_hash: str
    classes: Annotated[list[str], Constraint("two classes or more", lambda names: len(names) >= 2)]
    shape: list[Annotated[int, Constraint("a size", lambda size: 0 < size < 1 << 40)]]
    dtype: str | list[Any]
    columns: list[str] | None
    file: str
    sha256: Digest
    encoding: str | None

    @property
    def kind(self) -> np.dtype[Any]:
        """The type of one value of a record, or of a record with several parts."""
        found: np.dtype[Any] = np.dtype(as_description(self.dtype))
        return found

    def to_json(self) -> str:
        """The text of `model.json`."""
        body = {"format": FORMAT, "version": VERSION, **to_plain(self)}
        return json.dumps({**body, "hash": json_digest(body)}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Facts":
        """Read and check the text of `model.json`."""
        said = parse_json(text)
        body = body_of(said, FORMAT, VERSION)
        if body.pop("hash", None) != json_digest({name: one for name, one in said.items() if name != "hash"}):
            raise ValueError("its content does not have the hash that it names")
        found = from_plain(cls, body)
        found.check()
        return found

    def check(self) -> None:
        """Refuse values that this program never writes."""
        if self.file != f"model-{self.sha256[:16]}.{ENDINGS[self.form]}":
            raise ValueError("its file is not named after its content")
        try:
            unusable = self.kind.hasobject
        except (TypeError, ValueError) as error:
            raise ValueError(f"its records are of no type ({error})") from None
        if unusable:
            raise ValueError("its records would be Python objects")
        if self.encoding is not None:
            from maxrr.data.encoding import Encoding

            check_encoding(Encoding.from_json(self.encoding), self.columns)


def check_encoding(declared: "Encoding", columns: Sequence[str] | None) -> None:
    """Refuse an encoding that does not give the columns that the model takes."""
    from maxrr.data.encoding import columns_of

    given = [] if columns is None else columns_of(declared, columns)
    found = [
        each for name in given for each in (declared.rules[name].names(name) if name in declared.rules else [name])
    ]
    if columns is None or list(columns) != found or not declared.rules.keys() <= set(given):
        raise ValueError(f"the encoding is of other columns than the model takes, {columns!r:.200}")


def description_of(kind: np.dtype[Any]) -> str | list[Any]:
    """Describe a type as JSON."""
    return kind.str if kind.names is None else json.loads(json.dumps(kind.descr))


def as_description(said: Any) -> Any:
    """Convert what JSON says of a type to what NumPy takes: tuples in the place of lists."""
    if isinstance(said, str):
        return said
    return [(name, as_description(kind), *map(tuple, shape)) for name, kind, *shape in said]


# Reading


def read(folder: str | Path) -> tuple[Facts, bytes]:
    """Read a served model, and refuse damaged files. A model that is replaced meanwhile is read again."""
    path, problem = Path(folder) / NAME, ""
    for _ in range(TRIES):
        facts = facts_in(path)
        file = path.parent / facts.file
        try:
            content = read_regular(file)
            if hashlib.sha256(content).hexdigest() == facts.sha256:
                return facts, content
            problem = f"{file} does not have the hash that {NAME} names"
        except FileNotFoundError:
            problem = f"{file} is missing"
        time.sleep(PAUSE)
    raise ValueError(f"{problem}: the folder is damaged. Export the model again")


def facts_in(path: Path) -> Facts:
    """Read a `model.json`."""
    try:
        return Facts.from_json(read_regular(path, LARGEST).decode())
    except FileNotFoundError:
        raise ValueError(f"{path.parent} holds no served model, no {NAME}: make one with maxrr export") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {error}. Export the model again") from None


# Writing


def check_free(folder: str | Path) -> None:
    """Refuse a folder that holds anything but an export."""
    place = Path(folder)
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise ValueError(f"{place} is no folder: name one that is new, empty, or holds an export")
    if not place.exists():
        return
    for path in sorted(place.iterdir()):
        ours = path.name in (NAME, LOCK) or OURS.fullmatch(path.name)
        if not ours or path.is_symlink() or not path.is_file():
            raise ValueError(f"{place} holds other things, such as {path.name}: name a new folder, or an export")
    if (place / NAME).exists():
        facts_in(place / NAME)


def write(folder: str | Path, content: bytes, facts: Facts) -> int:
    """Put a model into a folder, in the place of one that is there, and say how large it all is.

    `facts` say everything but the file, which is named after its content.
    """
    place = Path(folder)
    check_free(place)
    place.mkdir(parents=True, exist_ok=True)
    lock = Lock(place / LOCK, wait=PATIENCE)  # keeps out others who write, not those who read
    try:
        sha256 = hashlib.sha256(content).hexdigest()
        file = f"model-{sha256[:16]}.{ENDINGS[facts.form]}"
        text = replace(facts, file=file, sha256=sha256).to_json().encode()
        write_atomically(place / file, content)
        write_atomically(place / NAME, text)
        leftovers = [path for path in place.iterdir() if OURS.fullmatch(path.name) and path.name != file]
        for path in leftovers:
            overwrite(path)
            with suppress(FileNotFoundError):
                path.unlink()
        if leftovers:
            flush_folder(place)
    finally:
        lock.release()
    return len(content) + len(text)
