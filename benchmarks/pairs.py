"""One-vs-one heads of many runs: seconds a fit where a graphics processor begins them, and where it does not.

python benchmarks/pairs.py --features features.npy --labels labels.npy
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import features
from lab.heads import solve_pairs
from maxrr.parallel import Processes
from maxrr.parallel.engine import cores
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.svm.arrays import Array

ALONE = 3  # runs that one core solves


def main() -> None:
    """Solve the same runs both ways, by one core and by all, and compare the bytes of their weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path, help="An .npy file (samples × features), not Fashion-MNIST.")
    parser.add_argument("--labels", type=Path, help="An .npy file with a class number for each of them.")
    parser.add_argument("--runs", type=int, default=2 * cores(), help="[default: two a core]")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.features is None:
        X, y = features.load(None, None)
    else:
        X, y = np.load(options.features), np.load(options.labels)
    scales = np.random.default_rng(0).uniform(0.8, 1.25, (options.runs, X.shape[1]))
    here: list[Array] = [(X * scale).astype(np.float32) for scale in scales]
    there: list[Array] = [torch.from_numpy(run).to(options.device) for run in here]
    print(f"{options.runs} runs of {X.shape[0]} × {X.shape[1]}, {len(np.unique(y))} classes, {cores()} cores")
    weights = []
    for name, runs in {"begun on the device": there, "from scratch": here}.items():
        with Processes(1)._kept() as alone:
            measure(runs[:1], y, alone)  # starts the process, and loads what the device needs
            seconds, _ = measure(runs[:ALONE], y, alone)
        everything, found = measure(runs, y, None)
        weights.append(found)
        one = seconds / min(ALONE, options.runs)
        print(f"{name:20}{one:6.2f} s a fit on one core, {everything / options.runs:6.3f} s on all")
    print("the same weights:", weights[0] == weights[1])


def measure(runs: list[Array], y: features.Labels, engine: EngineLike) -> tuple[float, list[bytes]]:
    """Seconds for all runs, and the bytes of their weights."""
    begin = time.perf_counter()
    found = [one.weights.tobytes() for one in solve_pairs(runs, y, [None] * len(runs), None, 1.0, engine)]
    return time.perf_counter() - begin, found


if __name__ == "__main__":
    main()
