"""Results in a folder: one JSON file per part, written after every piece of it, so that an interrupted one goes on.

A file belongs to one profile, one seed and the same records. Pieces that are there are not measured again; to measure
them again, delete the file.
"""

import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from maxrr.files import Lock, write_atomically
from maxrr.parallel.engine import Engine, cores
from maxrr.version import __version__

Json = dict[str, Any]
LOCK = ".lock"
SLACK = 1.3  # pieces may take so much longer than the longest before
WAIT = 60.0  # seconds for the others, who only write a file


class OutOfTimeError(Exception):
    """A piece would end too late; the same command measures it another time."""


@dataclass
class Clock:
    """When a call has to end (of `perf_counter`), and whether it has begun a piece."""

    ends: float = inf
    begun: bool = False

    def allow(self, seconds: float) -> None:
        """Begin a piece, unless it would end too late. The first may: no other call would end it."""
        if self.begun and perf_counter() + SLACK * seconds > self.ends:
            raise OutOfTimeError
        self.begun = True


@dataclass(frozen=True)
class Results:
    """The result file of one part.

    Attributes
    ----------
    path
    setting
        What the numbers follow from: profile, seed, and the records if they have no name. A file with another one is
        refused.
    device
        Where the work is done; noted beside each piece.
    engine
        What helps with the work, if anything does; its kind is noted beside each piece, whose seconds depend on it.
    clock
        When the call has to end. A piece is expected to take as long as the longest one in the file.
    """

    path: Path
    setting: Json
    device: torch.device
    engine: Engine | None = None
    clock: Clock = field(default_factory=Clock)

    def piece(self, name: str, measure: Callable[[], Json], expected: float | None = None) -> Json:
        """What a piece gave, measured now unless the file has it.

        It is begun if there is time for the seconds that it is expected to take: by default as many as the longest.
        """
        there = self.read()
        if name in there["pieces"]:
            return dict(there["pieces"][name])
        longest = max((made["seconds"] for made in there["made"].values()), default=0.0)
        self.clock.allow(longest if expected is None else expected)
        started = perf_counter()
        value = json.loads(json.dumps(measure()))  # as it will be read: names are strings, tuples are lists
        made = {"seconds": round(perf_counter() - started, 1), **made_here(self.device)}
        if self.engine is not None:
            made["engine"] = type(self.engine).__name__
        with self.alone():
            found = self.read()  # again: another process may have added a piece meanwhile
            self.write({  # without what was finished from fewer pieces
                "setting": self.setting, "made": {**found["made"], name: made},
                "pieces": {**found["pieces"], name: value},
            })  # fmt: skip
        return dict(value)

    def finish(self, content: Json, made: Json | None = None) -> Json:
        """The whole result, in place of its pieces: what readers look for stands at the top.

        A part that is taken from another's pieces says when and where these were made.
        """
        with self.alone():
            found = self.read()
            whole = {**content, "setting": self.setting, "made": made or found["made"], "pieces": found["pieces"]}
            self.write(whole)
        return whole

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from changing results in this folder between a look at the file and a change of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = Lock(self.path.parent / LOCK, wait=WAIT)
        try:
            yield
        finally:
            lock.release()

    def read(self) -> Json:
        """The file, or what an empty one would hold."""
        if not self.path.exists():
            return {"setting": self.setting, "made": {}, "pieces": {}}
        try:
            found: Json = json.loads(self.path.read_text(encoding="utf-8"))
            setting = found["setting"]
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(
                f"{self.path} is no result of ours ({error}): delete it, or choose another --out"
            ) from error
        if setting != self.setting:
            raise ValueError(
                f"{self.path} was made with another profile, seed or data: choose another --out, or delete it to start "
                "anew"
            )
        return found

    def write(self, content: Json) -> None:
        write_atomically(self.path, (json.dumps(content, indent=1) + "\n").encode())


def made_here(device: torch.device) -> Json:
    """When and on what: numbers from a graphics processor differ in their last bits from those of another."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "machine": f"{platform.machine()}, {cores()} cores",
        "python": platform.python_version(), "maxrr": __version__,
        **{package: version(package) for package in ("torch", "numpy", "scipy", "scikit-learn")},
    }  # fmt: skip
