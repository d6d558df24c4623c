"""How accurate a model is whose extractor saw only the 20,000 most frequent records: LeNet-5 on Fashion-MNIST.

    python benchmarks/core_accuracy.py --device cuda --out benchmarks/core_accuracy.json

The paper gives 0.888 as a mean over runs, so each line is a mean over seeds, for rankings of several lengths and for
several trainings of the extractor. On one H200 it takes about six minutes.
"""

import argparse
import json
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maxrr import LinearSVM
from maxrr.core import Ranking, rank
from maxrr.core.ranking import ranking_seeds
from maxrr.data import Dataset, load
from maxrr.nets import LeNet5, Recipe, embed, split, train_many
from maxrr.progress import Line

CORE = 20_000
PAPER = {"accuracy": 0.888, "not_free": 20_500}
SETTINGS = (  # runs of the ranking, epochs and batch size on the core
    (100, 18, 64), (20, 18, 64), (10, 18, 64), (4, 18, 64), (100, 27, 64), (100, 36, 64), (100, 54, 64), (10, 36, 64),
    (100, 18, 32),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=100, help="of the longest ranking")
    parser.add_argument("--seeds", type=int, default=10, help="extractors a line")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--votes", type=Path, help="keep the ranking's votes here, as .npz")
    asked = parser.parse_args()
    training, test = load("fashion-mnist")
    started = time.perf_counter()
    ranking = rank(LeNet5(), training, ranking_seeds(0, asked.runs), device=asked.device, progress=Line())
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": platform.machine(),
        "device": torch.cuda.get_device_name() if asked.device == "cuda" else "cpu", "torch": torch.__version__,
        "command": f"python benchmarks/core_accuracy.py --device {asked.device} --runs {asked.runs} "
        f"--seeds {asked.seeds}", "paper": PAPER, "ranking_seconds": time.perf_counter() - started, "lines": [],
    }  # fmt: skip
    if asked.votes:
        np.savez_compressed(asked.votes, votes=ranking.votes)
    for runs, epochs, batch in SETTINGS:
        if runs <= asked.runs:
            line = measure(training, test, ranking, runs, Recipe(epochs, batch), asked.seeds, asked.device)
            result["lines"].append(line)
            print(json.dumps(line), flush=True)
            if asked.out:
                asked.out.write_text(json.dumps(result, indent=2) + "\n")


def measure(
    training: Dataset, test: Dataset, ranking: Ranking, runs: int, recipe: Recipe, seeds: int, device: str
) -> dict[str, Any]:  # fmt: skip
    """Mean and standard error over seeds, of accuracy and of how many records are core or influential."""
    started = time.perf_counter()
    shorter = Ranking(ranking.ids, ranking.seeds[:runs], ranking.votes[:runs], ranking.worst_gap)
    core = training.select(shorter.top(CORE))
    in_core = np.isin(training.ids, core.ids)
    accuracies, not_free = [], []
    for run in train_many(
        LeNet5(), core, range(seeds), epochs=recipe.epochs, batch_size=recipe.batch_size, lr=recipe.lr, device=device
    ):  # fmt: skip
        extractor, _ = split(run.network)
        features, tests = (
            torch.from_numpy(embed(extractor, side, device=device)).to(device) for side in (training, test)
        )
        head = LinearSVM().fit(features, training.labels)
        accuracies.append(float(np.mean(head.predict(tests) == test.labels)))
        influential = np.zeros(len(training), dtype=bool)
        influential[head.support_] = True
        not_free.append(int(np.sum(influential | in_core)))
    return {
        "ranking_runs": runs, "epochs": recipe.epochs, "batch_size": recipe.batch_size, "seeds": seeds,
        "accuracy": float(np.mean(accuracies)), "standard_error": float(np.std(accuracies, ddof=1) / seeds**0.5),
        "accuracies": accuracies, "not_free": float(np.mean(not_free)), "seconds": time.perf_counter() - started,
    }  # fmt: skip


if __name__ == "__main__":
    main()
