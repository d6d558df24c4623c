"""One core record forgotten exactly, in earnest: accuracy and seconds of the same models, ten seeds of each.

    python benchmarks/shards_request.py --out benchmarks/shards_request.json --cores 12 --minutes 9

LeNet-5 on Fashion-MNIST, a core of a third by hash in one, 4 and 8 shards, and all records as the core. A piece is one
model and one request: fit, accuracy on the test records, and the seconds until one core record is forgotten, with
training, features and heads. Each piece has a process and two processor cores of its own; as many run at a time as
`--cores` allows. No piece is begun that may end after `--minutes`; the same command goes on from there. The core is
drawn anew for each seed, the same for all settings: differences are paired by seed.

The most important pieces come first: one shard, 4 and 8 with a rate that falls, seed by seed; then one shard with the
default recipe; then all records, three seeds. On two cores of a Xeon a piece takes 95 to 290 s (`Setting.expected`):
106 minutes of two cores for all 43, 56 for the first 30; with 12 cores 18 and 10 minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from circumstances import circumstances
from lab.comparison import compare, difference, half_interval
from maxrr import MaxRR
from maxrr.core import FullCore, HashCore
from maxrr.data import load
from maxrr.files import write_atomically
from maxrr.nets import LeNet5, Recipe

EACH = 2  # processor cores for a piece
LATE = 1.2  # times the longest piece of a setting: so long may the next one take
POLL = 0.5  # seconds

Json = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A model: how many shards (None: all records are core), features of each, its training, and how often."""

    shards: int | None
    features: int
    recipe: Recipe
    seeds: int
    expected: float  # seconds of a piece on two cores, before one was measured


def falling(epochs: int) -> Recipe:
    """A larger learning rate that falls to zero needs fewer epochs."""
    return Recipe(epochs=epochs, lr=4e-3, schedule="cosine")


ONE = "one shard, falling rate"
SETTINGS = {
    ONE: Setting(1, 84, falling(18), 10, 125.0),
    "4 shards, falling rate": Setting(4, 42, falling(36), 10, 105.0),
    "8 shards, falling rate": Setting(8, 42, falling(36), 10, 105.0),
    "one shard": Setting(1, 84, Recipe(epochs=36), 10, 210.0),
    "everything": Setting(None, 84, Recipe(epochs=18), 3, 300.0),
}
FIRST = 3  # settings that are measured seed by seed before the others
Piece = tuple[str, int]


def pieces() -> list[Piece]:
    """All of them, the most important first."""
    names = list(SETTINGS)
    return [
        (name, seed)
        for group in (names[:FIRST], *([name] for name in names[FIRST:]))
        for seed in range(max(SETTINGS[name].seeds for name in group))
        for name in group
        if seed < SETTINGS[name].seeds
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--out", type=Path, required=True, help="to which pieces are added")
    parser.add_argument("--cores", type=int, default=EACH, help=f"processor cores to use, {EACH} for each piece")
    parser.add_argument("--minutes", type=float, default=60.0, help="no piece is begun that may end later")
    parser.add_argument("--one", nargs=2, metavar=("SETTING", "SEED"), help="measure this piece here, and print it")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(SETTINGS[asked.one[0]], int(asked.one[1]), asked.data)))
        return
    end = time.monotonic() + 60.0 * asked.minutes
    for (name, seed), found in run_all(asked, end):
        kept = read(asked.out)
        kept[f"{name}, seed {seed}"] = found
        content = {"summary": summarise(kept), "pieces": kept}
        write_atomically(asked.out, (json.dumps(content, indent=1) + "\n").encode())
        print(f"{name}, seed {seed}: {found['accuracy']:.4f}, {found['request']:.1f} s", flush=True)
    left = sum(f"{name}, seed {seed}" not in read(asked.out) for name, seed in pieces())
    print(f"{left} pieces are left{': the same command goes on from there' * bool(left)}", flush=True)


def run_all(asked: argparse.Namespace, end: float) -> Iterator[tuple[Piece, Json]]:
    """Run what is missing and fits into the time, each piece in a process on its own cores, as they become free."""
    mine = sorted(os.sched_getaffinity(0))[: asked.cores]
    free = [mine[first : first + EACH] for first in range(0, len(mine) - EACH + 1, EACH)]
    kept = read(asked.out)
    waiting = [piece for piece in pieces() if "{}, seed {}".format(*piece) not in kept]
    running: dict[Piece, tuple[subprocess.Popen[str], list[int]]] = {}
    while waiting or running:
        fitting = [piece for piece in waiting if time.monotonic() + expected(piece[0], read(asked.out)) < end]
        if not fitting and not running:
            return
        while free and fitting:
            piece, here = fitting.pop(0), free.pop(0)
            waiting.remove(piece)
            running[piece] = start(piece, here, asked.data), here
        time.sleep(POLL)
        for piece, (process, here) in list(running.items()):
            if process.poll() is None:
                continue
            del running[piece]
            free.append(here)
            if process.returncode:
                raise SystemExit(f"{piece} failed")
            yield piece, json.loads(process.communicate()[0].splitlines()[-1])


def start(piece: Piece, here: list[int], data: str) -> subprocess.Popen[str]:
    """Start a process for a piece that never sees other cores than these: PyTorch counts them when it begins."""
    name, seed = piece
    command = [sys.executable, __file__, "--one", name, str(seed), "--data", data, "--out", os.devnull]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, here)  # which the process inherits
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    finally:
        os.sched_setaffinity(0, before)


def expected(name: str, kept: Json) -> float:
    """How long a piece of a setting may take."""
    known = [found["seconds"] for piece, found in kept.items() if piece.startswith(f"{name}, seed ")]
    return LATE * max(known, default=SETTINGS[name].expected)


def read(path: Path) -> Json:
    """The pieces that are there."""
    kept: Json = json.loads(path.read_text(encoding="utf-8"))["pieces"] if path.exists() else {}
    return kept


def measure(setting: Setting, seed: int, data: str) -> Json:
    """Fit a model, test it, and forget one core record exactly."""
    begun = time.perf_counter()
    training, test = load(data)
    key = f"one request, {seed}"
    core = FullCore() if setting.shards is None else HashCore(1 / 3, key=key, shards=setting.shards)
    network = LeNet5(training.shape, len(training.class_names), features=setting.features)
    model = MaxRR(network, core, train=setting.recipe, device="cpu", seed=seed)
    started = time.perf_counter()
    model.fit(training)
    fit = time.perf_counter() - started
    accuracy, ids = model.score(test), model.core_.ids
    plan = model.plan([ids[len(ids) // 2]], core_policy="retrain")
    started = time.perf_counter()
    receipt = model.execute(plan)
    request = time.perf_counter() - started
    assert receipt.guarantee == "exact-retrain"
    return {
        "accuracy": accuracy, "fit": fit, "request": request, "planned": plan.seconds, "core": len(ids),
        "epochs": setting.recipe.epochs, "seconds": time.perf_counter() - begun, **circumstances(),
    }  # fmt: skip


def summarise(kept: Json) -> Json:
    """Accuracy and seconds of each setting, and what both differ by from one shard with the same kind of rate."""
    found = {
        name: {seed: kept[key] for seed in range(setting.seeds) if (key := f"{name}, seed {seed}") in kept}
        for name, setting in SETTINGS.items()
    }
    return {name: describe(mine, found[ONE]) for name, mine in found.items() if mine}


def describe(mine: dict[int, Json], one: dict[int, Json]) -> Json:
    """Means with half of their 90 % intervals, paired by seed where they are differences; medians of seconds."""
    accuracy = compare([piece["accuracy"] for piece in mine.values()], "accuracy")
    requests = [piece["request"] for piece in mine.values()]
    told = {
        "seeds": len(mine), "epochs": next(iter(mine.values()))["epochs"], "accuracy": accuracy.mean,
        "reach": None if accuracy.stderr is None else half_interval(accuracy.stderr, len(mine)),
        "request": median(requests), "least": min(requests), "most": max(requests),
        "fit": median(piece["fit"] for piece in mine.values()),
    }  # fmt: skip
    both = sorted(mine.keys() & one.keys())
    if len(both) < 2 or mine is one:
        return told
    gain = difference([mine[seed]["accuracy"] for seed in both], [one[seed]["accuracy"] for seed in both])
    faster = fmean(one[seed]["request"] for seed in both) / fmean(mine[seed]["request"] for seed in both)
    return {**told, "against": {
        "seeds": len(both), "gain": gain.mean, "reach": half_interval(gain.stderr, len(both)), "faster": faster,
    }}  # fmt: skip


if __name__ == "__main__":
    main()
