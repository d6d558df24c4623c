"""What forgetting costs beside training again: LeNet-5 on Fashion-MNIST, core of 20,000.

    python benchmarks/unlearning.py --out benchmarks/unlearning.json

Every ratio is against training extractor and head again without the records, in the same process.
"""

import argparse
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maxrr.core import FrequencyCore, HashCore
from maxrr.data import load
from maxrr.nets import LeNet5
from maxrr.progress import Line
from maxrr.unlearning import MaxRR

PAPER = {"accuracy": 0.888, "not free": 20_500}
ASKED = {"exact-untouched, 1": 1000, "exact-refit, 1": 100, "exact-refit, 1,000": 20}


def timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def kinds(model: MaxRR) -> dict[str, Any]:
    """The ids of the records that are there, by what it costs to forget them."""
    holdings = model._fitted.records
    core = np.isin(holdings.ids, model.core_.ids)
    influential = np.zeros(len(core), dtype=bool)
    influential[model.heads_.support_] = True
    masks = {"free": ~core & ~influential, "exact": ~core & influential, "core": core}
    return {kind: holdings.ids[mask & holdings.alive] for kind, mask in masks.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", choices=("frequency", "hash"), default="hash")
    parser.add_argument("--runs", type=int, default=10, help="of the ranking, for --core frequency")
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    training, test = load("fashion-mnist")
    core = FrequencyCore(20_000, runs=asked.runs) if asked.core == "frequency" else HashCore(1 / 3, key="benchmark")
    model = MaxRR(LeNet5(), core, epochs=asked.epochs, device=asked.device)
    fitting, _ = timed(lambda: model.fit(training, progress=Line()))
    shares = kinds(model)
    accuracy = model.score(test)
    # Training again, once: what every request would cost without MaxRR, the ranking not counted.
    state = model._fitted
    records = state.records.retained()

    def train_again() -> None:
        extractor = state.blueprint.train_extractor(records, state.choice)
        state.blueprint.fit_heads(state.blueprint.embed(extractor, records), records)

    again, _ = timed(train_again)
    rows: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for name, kind, count in (
        ("exact-untouched, 1", "free", 1), ("exact-untouched, 1,000", "free", 1000),
        ("exact-refit, 1", "exact", 1), ("exact-refit, 30", "exact", 30), ("exact-refit, 1,000", "exact", 1000),
        ("approximate-refit, 1", "core", 1),
    ):  # fmt: skip
        ids = rng.choice(kinds(model)[kind], count, replace=False)
        planning, plan = timed(lambda ids=ids: model.plan(ids, core_policy="keep-extractor"))
        seconds, receipt = timed(lambda ids=ids: model.unlearn(ids, core_policy="keep-extractor"))
        work = model.heads_._fitted.solution.work
        rows[name] = {
            "guarantee": receipt.guarantee, "plan_seconds": planning, "seconds": seconds, "ratio": again / seconds,
            "asked": ASKED.get(name), "passes": work.passes if plan.heads else 0, "bytes": receipt.bytes_claim,
        }  # fmt: skip
        print(
            f"{name:24} {1e3 * seconds:9.1f} ms   {again / seconds:9,.0f} ×   plan {1e3 * planning:.1f} ms", flush=True
        )
    numbers = {
        "command": " ".join(["python", "benchmarks/unlearning.py", *sys.argv[1:]]).split(" --out")[0],
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {asked.device}",
        "torch": torch.__version__,
        "fit_seconds": fitting,
        "train_again_seconds": again,
        "accuracy": accuracy,
        "paper": PAPER,
        "shares": {kind: len(ids) for kind, ids in shares.items()},
        "core": dict(model.core_.details),
        "requests": rows,
    }
    print(f"accuracy {accuracy:.4f}, training again {again:.1f} s, {numbers['shares']}")
    if asked.out:
        known = json.loads(asked.out.read_text()) if asked.out.exists() else {}
        asked.out.write_text(json.dumps(known | {f"{asked.core}, {asked.device}": numbers}, indent=2) + "\n")


if __name__ == "__main__":
    main()
