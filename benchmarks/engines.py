"""The same work on each engine, and what follows for clusters that nobody here has.

    python benchmarks/engines.py --out benchmarks/engines.json          # half an hour on two idle cores

Measured: a ranking of 20 runs of 5,000 records of Fashion-MNIST in local processes (the peer) and on a Ray cluster of
this machine, each from nothing to its end; and the pieces that such work is made of: one run of 60,000 records on one
core, what it takes to start, to send and to be asked. From these pieces the time on 8, 64 and 512 cores is worked out;
it is not measured.
"""

import argparse
import json
import math
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import circumstances
from maxrr.core import rank
from maxrr.core.ranking import votes_by_worker
from maxrr.data import Dataset, load
from maxrr.nets import LeNet5, Recipe
from maxrr.nets.inputs import chosen_device
from maxrr.nets.runs import Task
from maxrr.parallel import Processes, Ray
from maxrr.parallel.engine import Engine

RUNS, RECORDS, EPOCHS = 20, 5_000, 6  # of the ranking that is measured; a third of the usual epochs, so that less hides
NETWORK = 1.25e9  # bytes a second, 10 Gbit: assumed, there is one machine here
NODE = 16  # cores, assumed
CORES = (2, 8, 64, 512)


def seconds_of(work: Any, *arguments: Any, **named: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work(*arguments, **named)
    return time.perf_counter() - start, found


def start_cluster() -> None:
    """Start a Ray cluster of this machine, for as long as this process lives."""
    import ray

    if not ray.is_initialized():
        ray.init("local", include_dashboard=False, log_to_driver=False, logging_level="warning")


def rankings(dataset: Dataset) -> dict[str, Any]:
    """Seconds of a whole ranking on each engine; the votes have to be the same."""
    engines: dict[str, Engine | None] = {"processes": Processes(), "ray": Ray(), "local": None}
    times, votes = {}, []
    for name, engine in engines.items():
        if name == "ray":
            start_cluster()
        times[name], ranking = seconds_of(
            rank, LeNet5(dataset.shape), dataset, range(RUNS), recipe=Recipe(EPOCHS), device="cpu", engine=engine
        )  # fmt: skip
        votes.append(ranking.votes)
        print(f"{name}: {times[name]:.1f} s", flush=True)
    assert all(np.array_equal(votes[0], other) for other in votes)
    return {
        "runs": RUNS, "records": RECORDS, "epochs": EPOCHS,
        "seconds": {name: round(seconds, 1) for name, seconds in times.items()},
        "ray_to_processes": round(times["ray"] / times["processes"], 3),
        "local_to_processes": round(times["local"] / times["processes"], 3),
    }  # fmt: skip


def nothing(item: int, *shared: Any) -> int:
    return item


def ray_pieces(dataset: Dataset) -> dict[str, float]:
    """What a cluster takes beside the work itself."""
    starting = time.perf_counter()
    start_cluster()
    with Ray()._kept() as ray:
        start = time.perf_counter() - starting
        first, _ = seconds_of(list, ray.map(nothing, range(2)))
        task = Task(LeNet5(dataset.shape), dataset.select(dataset.ids[:64]), Recipe(epochs=1), chosen_device("cpu"), 1)
        imports, _ = seconds_of(list, ray.map(loaded, range(2), task))
        asked, _ = seconds_of(list, ray.map(nothing, range(500)))
        sent, _ = seconds_of(list, ray.map(nothing, range(2), np.asarray(dataset.inputs)))
    return {
        "start": start + first, "imports": imports, "ask": asked / 500, "send_bytes": dataset.inputs.nbytes,
        "send": max(0.0, sent - 2 * asked / 500),
    }  # fmt: skip


def loaded(item: int, task: Task) -> int:
    """Have a worker import all that a run needs."""
    votes_by_worker([item], task, 1.0)
    return item


def one_run(records: int) -> tuple[float, int]:
    """Seconds of one run of the ranking on one core, and the memory of its process."""
    dataset, _ = load("fashion-mnist")
    some = dataset.select(dataset.ids[:records])
    loaded(0, Task(LeNet5(some.shape), some.select(some.ids[:64]), Recipe(epochs=1), chosen_device("cpu"), 1))
    task = Task(LeNet5(some.shape), some, Recipe(), chosen_device("cpu"), 1)
    seconds, _ = seconds_of(votes_by_worker, [0], task, 1.0)
    return seconds, memory()


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def alone(work: Any, size: int) -> tuple[float, int]:
    """In a process of its own that keeps to one core."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=one_core) as pool:
        found: tuple[float, int] = pool.submit(work, size).result()
        return found


def one_core() -> None:
    from maxrr.parallel.engine import BLAS, keep_to

    keep_to(1)
    BLAS.limit(limits=1)


def worked_out(pieces: dict[str, float], bytes_sent: float, cores: int, tasks: int, each: float) -> dict[str, float]:
    """Seconds on so many cores: to start, import, send to each node in turn, ask for tasks, and the rounds of these."""
    nodes = math.ceil(cores / NODE)
    fixed = pieces["start"] + pieces["imports"] + nodes * bytes_sent / NETWORK + tasks * pieces["ask"]
    seconds = fixed + math.ceil(tasks / cores) * each
    return {"tasks": tasks, "each": round(each, 1), "fixed": round(fixed, 1), "seconds": round(seconds)}


def pieces_of(training: Dataset) -> dict[str, Any]:
    """The pieces, and what follows from them."""
    cluster = {name: round(value, 4) for name, value in ray_pieces(training).items()}
    run, run_memory = alone(one_run, len(training))
    print(f"a run: {run:.1f} s", flush=True)
    sent = training.inputs.nbytes
    return {
        "pieces": {**cluster, "run_60000": round(run, 1), "run_memory": run_memory},
        "worked_out": {
            "100 runs of Fashion-MNIST": {cores: worked_out(cluster, sent, cores, 100, run) for cores in CORES},
        },
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=["ranking", "pieces"], help="this one alone; what OUT has of the other stays")
    chosen = parser.parse_args()
    training, _ = load("fashion-mnist")
    found = json.loads(chosen.out.read_text()) if chosen.part and chosen.out.exists() else {}
    for part in ["ranking", "pieces"] if chosen.part is None else [chosen.part]:
        where = circumstances.circumstances()
        if part == "ranking":
            found[part] = {"circumstances": where, **rankings(training.select(training.ids[:RECORDS]))}
        else:
            found[part] = {"circumstances": where, **pieces_of(training)}
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found[part], indent=1), flush=True)


if __name__ == "__main__":
    main()
