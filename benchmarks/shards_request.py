"""One core record forgotten exactly, in earnest: LeNet-5 on Fashion-MNIST, a core of 20,000 by hash in 1 to 8 shards.

    python benchmarks/shards_request.py --shards 1 8 --out benchmarks/shards_request.json

Beside each request training again from scratch as it is done without a core: on all records, and heads on all of them.
A core of a third is gone through twice as often as all records, and its shards for twice as many epochs again, as in
`maxrr study shards`.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from circumstances import circumstances
from maxrr import MaxRR
from maxrr.core import FullCore, HashCore
from maxrr.data import load
from maxrr.nets import LeNet5
from maxrr.paper.shards import STRETCH

KEY = "one request"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--core", type=float, default=1 / 3)
    parser.add_argument("--epochs", type=int, default=18, help="of training on all records")
    parser.add_argument("--shards", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--everything", action="store_true", help="time training again on all records, too")
    parser.add_argument("--records", type=int, default=3, help="requests of one record each")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    training, test = load(asked.data)
    assert test is not None
    kept = json.loads(asked.out.read_text()) if asked.out.exists() else {"runs": {}}
    network = LeNet5(training.shape, len(training.class_names))

    def keep(name: str, found: dict[str, Any]) -> None:
        kept["runs"][name] = {**found, **circumstances()}
        asked.out.write_text(json.dumps(kept, indent=1) + "\n")
        print(name, found, flush=True)

    for shards in asked.shards:
        epochs = round(asked.epochs * 2.0 * STRETCH[shards])
        model = MaxRR(network, HashCore(asked.core, key=KEY, shards=shards), epochs=epochs, device=asked.device)
        started = time.perf_counter()
        model.fit(training)
        found = {"fit": time.perf_counter() - started, "core": len(model.core_.ids), "accuracy": model.score(test)}
        planned, taken = [], []
        for record in model.core_.ids[:: len(model.core_.ids) // asked.records][: asked.records]:
            plan = model.plan([record], core_policy="retrain")
            started = time.perf_counter()
            assert model.execute(plan).guarantee == "exact-retrain"
            taken.append(time.perf_counter() - started)
            planned.append(plan.seconds)
            keep(f"{shards} shards, {epochs} epochs", {**found, "requests": taken, "planned": planned})
    if asked.everything:
        started = time.perf_counter()
        model = MaxRR(network, FullCore(), epochs=asked.epochs, device=asked.device).fit(training)
        keep(
            f"everything, {asked.epochs} epochs", {"fit": time.perf_counter() - started, "accuracy": model.score(test)}
        )


if __name__ == "__main__":
    main()
