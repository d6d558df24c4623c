"""What adding costs beside fitting: 500 records to 20,000, with the 84 features that LeNet-5 gives Fashion-MNIST.

    python benchmarks/adding.py --out benchmarks/adding.json

Extractor and core are the same in both; the ratio is against embedding and fitting the heads again on all records.
"""

import argparse
import copy
import json
import os
import platform
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import LeNet5
from maxrr.unlearning import MaxRR
from maxrr.workspace import Workspace

RECORDS, ADDED, DAYS = 20_000, 500, 5


def timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    training, _ = load("fashion-mnist")
    ids = np.sort(training.ids)
    first, later = training.select(ids[:RECORDS]), training.select(ids[RECORDS : RECORDS + DAYS * ADDED])
    days = [later.select(later.ids[day * ADDED : (day + 1) * ADDED]) for day in range(DAYS)]
    model = MaxRR(LeNet5(), HashCore(1 / 3, key="benchmark"), epochs=asked.epochs, device="cpu")
    with tempfile.TemporaryDirectory() as place:
        fitting, workspace = timed(lambda: Workspace.create(place + "/ws", model, first))
        memory = copy.deepcopy(workspace.model)
        memory._detached = False  # it goes on by itself
        in_memory = [timed(lambda day=day: memory.add(day)) for day in days]
        durable = [timed(lambda day=day: workspace.model.add(day)) for day in days]
        same = memory.model_hash_ == workspace.model.model_hash_
        state = workspace.model._fitted
        everyone = training.select(ids[: RECORDS + DAYS * ADDED])
        heads, _ = timed(lambda: state.blueprint.fit_heads(state.blueprint.embed(state.extractor, everyone), everyone))
        workspace.close()
    adding, kept = (float(np.median([seconds for seconds, _ in each])) for each in (in_memory, durable))
    numbers = {
        "command": f"python benchmarks/adding.py --epochs {asked.epochs}",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, cpu",
        "records": RECORDS, "added": ADDED, "features": state.heads.coef_.shape[1], "heads": len(state.heads.coef_),
        "fit_seconds": fitting, "embed_and_fit_heads_seconds": heads, "add_seconds": adding,
        "add_in_a_workspace_seconds": kept, "times_faster_than_the_heads": heads / adding,
        "times_faster_than_a_fit": fitting / adding, "same_bytes": same,
        "bytes_claim": durable[-1][1].bytes_claim,
    }  # fmt: skip
    print(json.dumps(numbers, indent=2))
    if asked.out:
        asked.out.write_text(json.dumps(numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
