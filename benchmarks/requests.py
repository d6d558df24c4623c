"""How many requests a second: free records forgotten in memory and durably, by how many records and earlier requests.

    python benchmarks/requests.py --out benchmarks/requests.json

Records are embeddings of ten classes, 64 numbers each, so that nearly all are free; the extractor plays no part in
such a request. The floor of a durable one is a flush of the disk, which is measured here. The peer is from its paper:
HedgeCut, trees that forget one record in about 100 µs, in memory and without a receipt.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from torch import nn

from circumstances import circumstances
from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.evidence import SigningKey
from maxrr.unlearning import MaxRR
from maxrr.workspace import Workspace

HEDGECUT = 100e-6  # seconds, by the paper of Schelter, Grafberger and Dunning (SIGMOD 2021)
SIZES = 1_000, 10_000, 60_000, 200_000, 1_000_000
DURABLE = 1_000, 60_000, 1_000_000
FEATURES, CLASSES, TOGETHER = 64, 10, 1_000
WIDTHS = 64, 9_300  # of the layers of an extractor; the second makes it 350 MB
SOME = 100  # requests that are measured one by one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--durable", type=int, nargs="+", default=DURABLE, help="of these also in a workspace")
    parser.add_argument("--earlier", type=int, default=10_000, help="requests before those that are measured last")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        flush = flush_seconds(Path(folder))
        print(f"one flush of this disk: {1e6 * flush:.0f} µs; HedgeCut by its paper: {1e6 * HEDGECUT:.0f} µs")
        extractors = [with_extractor(width, Path(folder) / f"extractor-{width}") for width in WIDTHS]
        for size in asked.sizes:
            rows.append(measured(size, min(asked.earlier, size // 5), Path(folder), size in asked.durable))
            show(rows[-1])
    result = {
        "command": "python benchmarks/requests.py", "circumstances": circumstances(), "features": FEATURES,
        "classes": CLASSES, "flush_seconds": flush, "hedgecut_seconds": HEDGECUT, "rows": rows,
        "extractors": extractors,
    }  # fmt: skip
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


def measured(size: int, earlier: int, folder: Path, durable: bool) -> dict[str, Any]:
    """Requests of one size, before and after many others."""
    model, free = fitted(size)
    row: dict[str, Any] = {"records": size, "free": len(free), "earlier": earlier}
    next_ids = iter(free)
    model.unlearn([next(next_ids)])  # the first one makes the indexes
    row["memory"] = {"plan": planning(model, next_ids), "first": asking(model, next_ids)}
    for _ in range(earlier):
        model.unlearn([next(next_ids)])
    row["memory"]["later"] = asking(model, next_ids)
    if durable:
        row["durable"] = in_workspace(size, earlier, folder / f"ws-{size}")
    return row


def in_workspace(size: int, earlier: int, folder: Path) -> dict[str, Any]:
    """The same in a folder, signed and logged."""
    records, free = records_of(size), fitted(size)[1]
    next_ids, key = iter(free), SigningKey.generate()
    Workspace.create(folder, MaxRR.on_features(), records, signing_key=key).close()
    found: dict[str, Any] = {"open_first": seconds(lambda: Workspace.open(folder, signing_key=key).close())}
    with Workspace.open(folder, signing_key=key) as workspace:
        workspace.model.unlearn([next(next_ids)])
        found["first"] = asking(workspace.model, next_ids)
        together = [[next(next_ids)] for _ in range(min(TOGETHER, size // 5))]
        found["together"] = seconds(lambda: ask_together(workspace, together)) / len(together)
        for _ in range(earlier // TOGETHER):
            ask_together(workspace, [[next(next_ids)] for _ in range(TOGETHER)])
        found["later"] = asking(workspace.model, next_ids)
        found["requests"] = workspace.status().requests
    found["open_later"] = seconds(lambda: Workspace.open(folder, signing_key=key).close())
    return found


def ask_together(workspace: Workspace, requests: list[list[int]]) -> None:
    """Answer requests by one commit."""
    with workspace.batch() as batch:
        for ids in requests:
            batch.unlearn(ids)


def with_extractor(width: int, folder: Path) -> dict[str, Any]:
    """Durable requests of a model whose extractor is small, or as large as a ViT-B/16."""
    network = nn.Sequential(
        nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 16), nn.ReLU(),
        nn.Linear(16, CLASSES),
    )  # fmt: skip
    model = MaxRR(network, core=HashCore(0.2, "a key of the benchmark"), epochs=1)
    size = 4 * sum(weights.numel() for weights in network.parameters())
    with Workspace.create(folder, model, records_of(2_000), signing_key=SigningKey.generate()) as workspace:
        state = workspace.model._fitted
        free = np.ones(2_000, dtype=bool)
        free[state.records.ids[state.heads.support_]] = free[state.choice.ids] = False
        ids = iter(np.flatnonzero(free).tolist())
        workspace.model.unlearn([next(ids)])
        found = {"extractor_bytes": size, "durable": asking(workspace.model, ids)}
    print(f"{size / 1e6:9,.0f} MB of extractor: durable {1 / found['durable']:.0f} a second", flush=True)
    return found


def planning(model: MaxRR, ids: Iterator[Any]) -> float:
    """The median plan."""
    return median(seconds(lambda: model.plan([next(ids)])) for _ in range(SOME))


def asking(model: Any, ids: Iterator[Any]) -> float:
    """The median request, from the call to the receipt."""
    return median(seconds(lambda: model.unlearn([next(ids)])) for _ in range(SOME))


def fitted(size: int) -> tuple[MaxRR, list[int]]:
    """A model, and the ids of its free records in some order."""
    model = MaxRR.on_features().fit(records_of(size))
    free = np.ones(size, dtype=bool)
    state = model._fitted
    free[state.records.ids[state.heads.support_]] = False
    ids: list[int] = np.random.default_rng(1).permutation(np.flatnonzero(free)).tolist()
    return model, ids


def records_of(size: int) -> Dataset:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, size)
    centres = 3.0 * rng.normal(size=(CLASSES, FEATURES))
    inputs = (centres[labels] + rng.normal(size=(size, FEATURES))).astype(np.float32)
    names = tuple(f"class {number}" for number in range(CLASSES))
    return Dataset(inputs, labels.astype(np.int64), names, np.arange(size), np.arange(size) // 3)


def flush_seconds(folder: Path) -> float:
    """The median of appending 4 KiB to a file and flushing it."""
    with open(folder / "flushed", "ab") as file:

        def once() -> None:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

        return median(seconds(once) for _ in range(200))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(row: dict[str, Any]) -> None:
    memory = row["memory"]
    said = f"{row['records']:>9,} records: plan {1e3 * memory['plan']:.3f} ms, request {1e3 * memory['first']:.3f} ms"
    said += f", after {row['earlier']:,} others {1e3 * memory['later']:.3f} ms"
    if "durable" in row:
        there = row["durable"]
        said += f"; durable {1 / there['first']:.0f} a second, {1 / there['together']:.0f} together"
        said += f", after {there['requests']:,} {1 / there['later']:.0f}; open {there['open_later']:.2f} s"
    print(said, flush=True)


if __name__ == "__main__":
    main()
