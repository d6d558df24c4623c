"""What durability costs: requests to a workspace beside the same ones in memory, LeNet-5 on Fashion-MNIST.

    python benchmarks/workspace.py --out benchmarks/workspace.json

The peer is what one writes first: save all features again after a request, and flush. The floor is the flushes alone:
as many small files written and flushed one after the other as a request flushes.
"""

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import LeNet5
from maxrr.progress import Line
from maxrr.unlearning import MaxRR
from maxrr.workspace import Workspace

KINDS = {"exact-untouched, 1": ("free", 1), "exact-untouched, 100": ("free", 100), "exact-refit, 1": ("exact", 1)}
TIMES = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    training, _ = load("fashion-mnist")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ws"
        model = MaxRR(LeNet5(), HashCore(1 / 3, key="benchmark"), epochs=asked.epochs, device="cpu")
        Workspace.create(place, model, training, progress=Line()).close()
        opening = seconds(lambda: Workspace.open(place).close())
        with Workspace.open(place) as workspace:
            in_memory = MaxRR(LeNet5(), HashCore(1 / 3, key="benchmark"))
            in_memory._state = Workspace.open(copied(place, Path(folder))).model._fitted
            rows = {name: measure(workspace, in_memory, *kind) for name, kind in KINDS.items()}
            heads = workspace.model.heads_
            features = heads._features_of(heads._rows)
            size = workspace.status().bytes
        saving = median(seconds(lambda: save(Path(folder) / "all.npy", features.astype(np.float32))) for _ in range(5))
        flushes = rows["exact-untouched, 1"]["fsyncs"]
        floor = median(seconds(lambda: flush(Path(folder), flushes)) for _ in range(TIMES))
    result: dict[str, Any] = {
        "command": f"python benchmarks/workspace.py --epochs {asked.epochs}",
        "date": datetime.now(UTC).date().isoformat(), "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "torch": torch.__version__, "records": len(training), "bytes": size, "open_seconds": opening,
        "save_all_features_seconds": saving, "flushes_alone_seconds": floor, "requests": rows,
    }  # fmt: skip
    for name, row in rows.items():
        print(
            f"{name:22} {1e3 * row['durable']:7.1f} ms durable, {1e3 * row['in_memory']:7.1f} ms in memory, "
            f"{1 / row['durable']:5.0f} requests a second, {row['fsyncs']} flushes"
        )
    print(f"saving all features: {1e3 * saving:.1f} ms; {flushes} flushes alone: {1e3 * floor:.1f} ms")
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=2) + "\n")


def measure(workspace: Workspace, in_memory: MaxRR, kind: str, count: int) -> dict[str, Any]:
    """The median request of a kind, on disk and in memory."""
    durable, plain, flushes = [], [], 0
    rng = np.random.default_rng(0)
    for _ in range(TIMES):
        ids = rng.choice(ids_of(workspace, kind), count, replace=False)
        with counted() as calls:
            durable.append(seconds(lambda ids=ids: workspace.model.unlearn(ids)))  # type: ignore[misc]
        flushes = calls[0]
        plain.append(seconds(lambda ids=ids: in_memory.unlearn(ids)))  # type: ignore[misc]
        assert workspace.model.model_hash_ == in_memory.model_hash_
    return {"durable": median(durable), "in_memory": median(plain), "fsyncs": flushes}


def ids_of(workspace: Workspace, kind: str) -> Any:
    """The ids of the records that are there and of this kind."""
    state = workspace.model._fitted
    influential = np.zeros(len(state.core), dtype=bool)
    influential[state.heads.support_] = True
    wanted = ~state.core & state.records.alive & (influential if kind == "exact" else ~influential)
    return state.records.ids[wanted]


class counted:  # noqa: N801 used like a function
    """Counts the flushes in a block."""

    def __enter__(self) -> list[int]:
        self.real, calls = os.fsync, [0]

        def fsync(descriptor: int) -> None:
            calls[0] += 1
            self.real(descriptor)

        os.fsync = fsync  # type: ignore[assignment]
        return calls

    def __exit__(self, *_: object) -> None:
        os.fsync = self.real


def copied(place: Path, folder: Path) -> Path:
    """The same workspace once more."""
    return Path(shutil.copytree(place, folder / "copy"))


def save(path: Path, features: np.ndarray[Any, Any]) -> None:
    with open(path, "wb") as file:
        np.save(file, features)
        file.flush()
        os.fsync(file.fileno())


def flush(folder: Path, count: int) -> None:
    for number in range(count):
        with open(folder / f"small-{number}", "wb") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
