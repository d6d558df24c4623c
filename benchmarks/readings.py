"""Which reading of the paper is the likeliest, and everything measured with it: in calls of a few minutes.

    python benchmarks/readings.py --stage grid --device cuda --minutes 9
    python benchmarks/readings.py --stage parts --heads one-vs-rest --cores 8 --device cuda --minutes 9
    python benchmarks/readings.py --stage parts --heads one-vs-one --cores 8 --device cuda --minutes 9

The first measures the grid of `maxrr study readings` (OUT/PROFILE/readings.json). The others take its best reading with
this kind of SVM and measure the paper's parts with it, into OUT/reading-rest and OUT/reading-one; they may run side by
side, each on cores of its own. Every piece is saved when it is measured. No piece is begun that may end too late, but
for the first of a call; the same command goes on from there. It ends with 0 when nothing is left, else with 3.

Estimates for one H200 with 16 cores: the grid takes 2 to 5 minutes of training, nine times ten networks for 18 epochs,
and 900 fits, about as long again. A winner of 18 epochs and batches of 64 takes 7 to 16 minutes of training, as much as
680 networks on all records, and 2,440 fits; with batches of 32 twice as much training, with 128 half, with fewer epochs
in proportion.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from maxrr.paper import PARTS, PROFILES, STUDIES, Lab, Profile
from maxrr.paper.parts import Part
from maxrr.paper.readings import PART, profile_of
from maxrr.paper.results import Results
from maxrr.progress import Line

ORDER = ("histogram", "coverage", "table", "verification", "agreement", "sensitivity")
MODELS = ("histogram", "coverage", "table", "sensitivity")  # in which time goes by models that are trained and fitted
KINDS = {PART: "grid", "verification": "probabilities", **dict.fromkeys(MODELS, "models")}
LEFT = 3  # how a call ends after which something is left
SLACK = 1.3  # pieces may take so much longer than those before


class OutOfTimeError(Exception):
    """A piece would end too late."""


class Clock:
    """When a call has to end, and whether it has begun a piece."""

    def __init__(self, minutes: float = inf) -> None:
        self.started = time.perf_counter()
        self.ends, self.begun = self.started + 60.0 * minutes, False

    def allow(self, seconds: float) -> None:
        """Begin a piece, unless it would end too late. The first may: no other call would end it."""
        if self.begun and time.perf_counter() + SLACK * seconds > self.ends:
            raise OutOfTimeError
        self.begun = True


@dataclass(frozen=True)
class TimedResults(Results):
    """Results whose pieces are begun only in time; what a piece takes is guessed from those before."""

    clock: Clock = field(default_factory=Clock)
    profile: Profile = PROFILES["smoke"]

    def piece(self, name: str, measure: Any) -> dict[str, Any]:
        if name in self.read()["pieces"]:
            return super().piece(name, measure)
        self.clock.allow(self.guess(name))
        begun = time.perf_counter()
        found = super().piece(name, measure)
        took = time.perf_counter() - begun
        print(f"{self.path.stem}, {name}: {took:.1f} s", flush=True)
        return found

    def guess(self, name: str) -> float:
        """Seconds for a piece, by its models and what those of its kind took here so far; else as the longest piece."""
        took = models = longest = 0.0
        for path in self.path.parent.glob("*.json"):
            if path.stem not in KINDS:
                continue
            for piece, made in json.loads(path.read_text(encoding="utf-8"))["made"].items():
                longest = max(longest, made["seconds"])
                if KINDS[path.stem] == KINDS[self.path.stem]:
                    took += made["seconds"]
                    models += size(self.profile, path.stem, piece)
        return took / models * size(self.profile, self.path.stem, name) if models else longest


@dataclass(frozen=True, eq=False)
class TimedLab(Lab):
    """A lab that stops in time."""

    clock: Clock = field(default_factory=Clock)

    def results(self, part: str) -> TimedResults:
        return TimedResults(**vars(super().results(part)), clock=self.clock, profile=self.profile)


def size(profile: Profile, part: str, piece: str) -> float:
    """How many models a piece trains and fits."""
    few = profile.few
    if part == PART:  # the smaller the batches, the longer the training; half of it is fits
        return 1.0 + 64 / int(piece.rpartition(" ")[2])
    if part == "table":
        return profile.runs * (8.0 if piece == "No and SVM" else 3.0)
    if part == "sensitivity":
        return few * {"full": 2.0 + len(profile.fractions), "support": 0.0}.get(piece, 3.0)
    return {"histogram": 2.0 * profile.ranked, "coverage": 2.0 * few, "verification": 3.0 * few}[part]


def measure(lab: Lab, parts: list[Part]) -> bool:
    """Measure what there is time for, part by part; returns whether all is there."""
    complete = True
    for part in parts:
        try:
            part.measure(lab)
        except OutOfTimeError:
            complete = False  # a later part may have pieces that are short enough
    return complete


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", required=True, choices=("grid", "parts"))
    parser.add_argument("--heads", default="one-vs-rest", choices=("one-vs-rest", "one-vs-one"), help="of the winner")
    parser.add_argument("--profile", default="paper", choices=PROFILES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=9.0, help="no piece is begun that may end later")
    parser.add_argument("--cores", type=int, help="of this machine: the first for one-vs-rest, the last for one-vs-one")
    parser.add_argument("--progress", action="store_true")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if asked.cores and asked.cores < len(cores):
        os.sched_setaffinity(0, cores[: asked.cores] if asked.heads == "one-vs-rest" else cores[-asked.cores :])
        os.execv(sys.executable, [sys.executable, *sys.argv])  # libraries have counted the cores, and started threads
    clock, profile = Clock(asked.minutes), PROFILES[asked.profile]
    parts = [STUDIES[PART]]
    if asked.stage == "parts":
        grid = json.loads((asked.out / profile.name / f"{PART}.json").read_text(encoding="utf-8"))
        if "best" not in grid:
            raise SystemExit("the grid is not complete: --stage grid")
        profile, parts = profile_of(grid, asked.heads, profile), [PARTS[name] for name in ORDER]
    progress = Line() if asked.progress else None
    lab = TimedLab.of(profile, asked.out / profile.name, seed=asked.seed, device=asked.device, progress=progress)
    object.__setattr__(lab, "clock", clock)
    complete = measure(lab, parts)
    took = time.perf_counter() - clock.started
    print(f"{profile.name}: {'complete' if complete else 'something is left'}, after {took:.0f} s", flush=True)
    return 0 if complete else LEFT


if __name__ == "__main__":
    sys.exit(main())
