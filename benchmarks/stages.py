"""Where the seconds of a call on a graphics processor go: what each stage took, here and in the worker processes.

Functions of the solver are replaced by ones that look at the clock, when the device has done what they asked of it.
Stages lie within one another, so that seconds of one may be part of another's; each says how often it was called.
"""

import functools
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maxrr.parallel import processes
from maxrr.svm import heads
from maxrr.svm.cuda import newton as cuda_newton
from maxrr.svm.cuda import start as cuda_start
from maxrr.svm.problem import Head, Samples
from maxrr.svm.search import bands, start, working_set
from maxrr.svm.search.path import Path as Way

NOTES = "MAXRR_STAGES"  # the file that worker processes write to
HERE = (
    (cuda_start, "prepare"), (cuda_start, "find_direction"), (cuda_start, "minimise"), (cuda_start, "describe"),
    (cuda_start.RunSamples, "shortfall"), (cuda_newton.Rows, "curvature"), (cuda_newton, "newton_direction"),
    (cuda_newton, "line_search"), (start.Guess, "bands"), (start, "sums_of_heads"), (bands, "band_around"),
    (bands, "screened"), (bands, "looked_at"), (bands, "for_each_head"), (bands, "lift"), (Samples, "scores"),
    (Samples, "rows"),
    (heads, "from_scratch"), (heads, "from_guess"), (heads, "settle"), (heads, "changes_of"), (heads, "bands_around"),
    (heads, "refine"), (cuda_start, "guess_run"), (cuda_start, "resume_run"),
)  # fmt: skip
IN_WORKERS = (
    (working_set, "begin"), (working_set, "narrow"), (Way, "follow"), (Way, "go"), (working_set, "propose"),
    (working_set, "confirm"),
)  # fmt: skip
_solve_band = bands.solve_band
_seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])  # of a stage, and how often it was called
_in_place: set[str] = set()


def _clocked(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(work)
    def found(*arguments: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        try:
            return work(*arguments, **named)
        finally:
            _finish_on_device()
            known = _seconds[name]
            known[0] += time.perf_counter() - begin
            known[1] += 1

    return found


def _finish_on_device() -> None:
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _put_clocks(places: tuple[tuple[Any, str], ...], clocked: Callable[..., Any]) -> None:
    for place, name in places:
        if hasattr(place, name):  # another version of the code may have other stages
            setattr(place, name, clocked(f"{place.__name__.split('.')[-1]}.{name}", getattr(place, name)))


def solve_band(parcel: Any) -> Head | None:
    """What a worker does, with notes on what it took."""
    begin, cpu = time.time(), time.process_time()
    if "workers" not in _in_place:
        _in_place.add("workers")
        _put_clocks(IN_WORKERS, _clocked_here)
    _seconds.clear()
    X, _, trial = parcel
    found = _solve_band(parcel)
    note = {
        "pid": os.getpid(), "begin": begin, "end": time.time(), "cpu": time.process_time() - cpu,
        "samples": len(X), "head": trial.positive, "near": trial.near, "stages": dict(_seconds),
    }  # fmt: skip
    with open(os.environ[NOTES], "a", encoding="utf-8") as notes:
        notes.write(json.dumps(note) + "\n")
    return found


def _clocked_here(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """As `_clocked`, without a device."""

    @functools.wraps(work)
    def found(*arguments: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        try:
            return work(*arguments, **named)
        finally:
            known = _seconds[name]
            known[0] += time.perf_counter() - begin
            known[1] += 1

    return found


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Put clocks into the solver; what they said is in the dictionary at the end of the block."""
    found: dict[str, Any] = {}
    for workers, _ in [*processes._idle]:  # which do not know where notes go
        processes.end_idle(workers)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.touch()
        os.environ[NOTES] = str(notes)
        before = [(place, name, getattr(place, name)) for place, name in HERE if hasattr(place, name)]
        _put_clocks(HERE, _clocked)
        bands.solve_band = solve_band
        _seconds.clear()
        begin = time.time()
        try:
            yield found
        finally:
            for place, name, work in before:
                setattr(place, name, work)
            bands.solve_band = _solve_band
            found |= {"seconds": time.time() - begin, "here": _rounded(_seconds)}
            found["workers"] = _of_workers([json.loads(line) for line in notes.read_text("utf-8").splitlines()], begin)


def _rounded(stages: dict[str, list[float]]) -> dict[str, list[float]]:
    largest_first = sorted(stages.items(), key=lambda item: -item[1][0])
    return {name: [round(taken, 4), int(count)] for name, (taken, count) in largest_first if taken >= 0.001}


def _of_workers(notes: list[dict[str, Any]], begin: float) -> dict[str, Any]:
    """Sums over all that the workers did, and when they did it."""
    if not notes:
        return {}
    total: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for note in notes:
        for name, (taken, count) in note["stages"].items():
            total[name][0] += taken
            total[name][1] += count
    spent = [note["end"] - note["begin"] for note in notes]
    return {
        "bands": len(notes), "processes": len({note["pid"] for note in notes}),
        "first_began": round(min(note["begin"] for note in notes) - begin, 3),
        "last_ended": round(max(note["end"] for note in notes) - begin, 3),
        "seconds": round(sum(spent), 3), "longest": round(max(spent), 3),
        "cpu_seconds": round(sum(note["cpu"] for note in notes), 3),
        "samples": int(sum(note["samples"] for note in notes)),
        "stages": _rounded(total),
    }  # fmt: skip
