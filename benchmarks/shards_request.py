"""One core record forgotten exactly, in earnest: LeNet-5 on Fashion-MNIST, a core of 20,000 by hash in 1 to 8 shards.

    python benchmarks/shards_request.py --out benchmarks/shards_request.json

Beside the requests training again on all records, and heads on all of them. Seconds are those of the request as the
model answers it: training, features and heads. A core of a third is gone through twice as often as all records. Of the
settings some take the default recipe, and some one with a larger learning rate that falls to zero, which needs fewer
epochs, in one shard as well as in several.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from circumstances import circumstances
from maxrr import MaxRR
from maxrr.core import FullCore, HashCore
from maxrr.data import load
from maxrr.nets import LeNet5, Recipe

KEY = "one request"


@dataclass(frozen=True)
class Setting:
    shards: int | None  # None: all records are core, and training again is timed
    features: int  # of each shard
    recipe: Recipe


def falling(epochs: int) -> Recipe:
    return Recipe(epochs=epochs, lr=4e-3, schedule="cosine")


SETTINGS = {
    "everything": Setting(None, 84, Recipe(epochs=18)),
    "1 shard": Setting(1, 84, Recipe(epochs=36)),
    "8 shards": Setting(8, 84, Recipe(epochs=72)),
    "1 shard, falling rate": Setting(1, 84, falling(18)),
    "4 shards, falling rate, 42 features": Setting(4, 42, falling(36)),
    "8 shards, falling rate, 42 features": Setting(8, 42, falling(36)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--records", type=int, default=3, help="requests of one core record each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="to which results are added")
    asked = parser.parse_args()
    kept = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for name in asked.settings:
        found = measure(SETTINGS[name], asked)
        kept[f"{name}, seed {asked.seed}"] = {**found, **circumstances()}
        asked.out.write_text(json.dumps(kept, indent=1) + "\n")
        print(name, found, flush=True)


def measure(setting: Setting, asked: argparse.Namespace) -> dict[str, Any]:
    """Fit, and forget core records one by one."""
    training, test = load(asked.data)
    assert test is not None
    core = FullCore() if setting.shards is None else HashCore(1 / 3, key=KEY, shards=setting.shards)
    network = LeNet5(training.shape, len(training.class_names), features=setting.features)
    model = MaxRR(network, core, train=setting.recipe, device="cpu", seed=asked.seed)
    started = time.perf_counter()
    model.fit(training)
    found = {"fit": time.perf_counter() - started, "core": len(model.core_.ids), "accuracy": model.score(test)}
    if setting.shards is None:
        return found
    planned, taken = [], []
    for record in model.core_.ids[:: len(model.core_.ids) // asked.records][: asked.records]:
        plan = model.plan([record], core_policy="retrain")
        started = time.perf_counter()
        receipt = model.execute(plan)
        taken.append(time.perf_counter() - started)
        planned.append(plan.seconds)
        assert receipt.guarantee == "exact-retrain"
    return {**found, "requests": taken, "planned": planned}


if __name__ == "__main__":
    main()
