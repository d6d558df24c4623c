"""Results of the comparison: a JSON file for each piece, so that an interrupted part goes on; and arrays between them.

What is there is not measured again. A file belongs to one profile and seed; delete it to measure it anew.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.results import Clock, made_here
from maxrr.files import write_atomically

Json = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
WORK = "work"  # a folder for arrays, which need not be kept


def now(device: torch.device) -> float:
    """Seconds for the time of a request: of the processor, which other work does not lengthen, or on the clock."""
    if device.type != "cuda":
        return process_time()
    torch.cuda.synchronize(device)
    return perf_counter()


@dataclass(frozen=True)
class Pieces:
    """The folder of a profile.

    Attributes
    ----------
    folder
    setting
        What all numbers follow from: profile and seed.
    device
        Where the work is done.
    clock
        When the call has to end.
    """

    folder: Path
    setting: Json
    device: torch.device
    clock: Clock = field(default_factory=Clock)

    def piece(self, part: str, name: str, measure: Callable[[], Json]) -> Json:
        """What a piece gave, measured now unless its file is there."""
        path = self.path(part, name)
        if path.exists():
            return self.read(path)
        there = [self.read(each)["made"]["seconds"] for each in self.folder.glob(f"{part}-*.json")]
        self.clock.allow(max(there, default=0.0))
        started = perf_counter()
        found = json.loads(json.dumps(measure()))
        made = {"command": self.command(part), "seconds": round(perf_counter() - started, 1), **made_here(self.device)}
        content = {"part": part, "name": name, "setting": self.setting, "made": made, **found}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
        return dict(content)

    def path(self, part: str, name: str) -> Path:
        """The file of a piece."""
        letters = (letter if letter.isalnum() or letter in ".+" else "-" for letter in name.lower())
        return self.folder / f"{part}-{''.join(letters)}.json"

    def read(self, path: Path) -> Json:
        """A piece that is there, of the same profile and seed."""
        found: Json = json.loads(path.read_text(encoding="utf-8"))
        if found["setting"] != json.loads(json.dumps(self.setting)):
            raise ValueError(f"{path} is of another profile or seed: choose another --out, or delete it to start anew")
        return found

    def command(self, part: str) -> str:
        """The command that makes the pieces of a part."""
        seed = f" --seed {self.setting['seed']}" if self.setting["seed"] else ""
        return f"python -m lab compare --profile {self.setting['profile']} --part {part}{seed}"

    def keep(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays that several pieces need, made now unless their file is there."""
        path = self.folder / WORK / f"{name.replace(' ', '-')}.npz"
        if not path.exists():
            content = io.BytesIO()
            np.savez(content, **make())  # type: ignore[arg-type]
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content.getvalue())
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
