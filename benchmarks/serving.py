"""How long one record takes, LeNet-5 on Fashion-MNIST: in a workspace, served, and the same network by PyTorch alone.

    python benchmarks/serving.py --out benchmarks/serving.json

A workspace computes up to 16 records two at a time, and more in blocks of 256, so that the bytes of a score depend on
no other record. Beside it stands what it did before: blocks of 256 for any number, as heads are fitted on. A served
model computes what it is asked. The floor is PyTorch: the network's own forward pass, scores and no heads. A
convolutional network for 3 × 32 × 32 pixels is measured as well.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from maxrr.core import HashCore
from maxrr.data import Dataset, load
from maxrr.nets import LeNet5
from maxrr.progress import Line
from maxrr.serving import export
from maxrr.serving import load as served
from maxrr.unlearning import MaxRR
from maxrr.unlearning.given_records import unlabelled
from maxrr.workspace import Workspace

COUNTS = 1, 16, 32, 256
SECONDS = 1.5  # that each is measured for
START = "import time; start = time.perf_counter(); import sys, numpy as np; from maxrr.serving import load; "
START += "load(sys.argv[1]).predict(np.load(sys.argv[2])); print(time.perf_counter() - start)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5000, help="how many to fit on; answering does not depend on it")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    training, test = load("fashion-mnist")
    some = training.select(np.sort(training.ids)[: asked.records])
    with tempfile.TemporaryDirectory() as place:
        model = MaxRR(LeNet5(), HashCore(1 / 3, key="benchmark"), epochs=asked.epochs, device="cpu")
        with Workspace.create(Path(place) / "ws", model, some, progress=Line()) as workspace:
            export(workspace, Path(place) / "onnx")
            network = LeNet5().eval()
            ways: dict[str, Callable[[Any], object]] = {
                "workspace": workspace.model.predict,
                "in blocks of 256": in_whole_blocks(workspace.model),
                "served, onnx": served(Path(place) / "onnx").predict,
                "PyTorch alone": lambda records: forward(network, records),
            }
            rows = {
                name: {str(count): seconds(way, test.inputs[:count]) for count in COUNTS} for name, way in ways.items()
            }
        np.save(Path(place) / "one.npy", test.inputs[:1])
        command = [sys.executable, "-c", START, Path(place) / "onnx", Path(place) / "one.npy"]
        start = median(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3))
    own, pictures = convolutional()
    rows_of_own = {
        name: {str(count): seconds(way, pictures[:count]) for count in COUNTS}
        for name, way in (("predict", own.predict), ("in blocks of 256", in_whole_blocks(own)))
    }
    result = {
        "command": f"python benchmarks/serving.py --records {asked.records} --epochs {asked.epochs}",
        "date": datetime.now(UTC).date().isoformat(), "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "torch": torch.__version__, "threads": torch.get_num_threads(), "median_seconds": rows,
        "median_seconds_3x32x32": rows_of_own,
        "onnx_from_import_to_first_answer_seconds": start,
        "ratios_for_one_record": {
            name: {
                "times as fast as the workspace": rows["workspace"]["1"] / row["1"],
                "of PyTorch alone": row["1"] / rows["PyTorch alone"]["1"],
            }
            for name, row in rows.items()
        },
    }  # fmt: skip
    for name, row in (rows | {f"3 × 32 × 32, {name}": row for name, row in rows_of_own.items()}).items():
        print(f"{name:26}" + "".join(f"{1e3 * row[str(count)]:9.2f} ms for {count}" for count in COUNTS))
    print(f"a fresh process answers from ONNX after {start:.2f} s")
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=2) + "\n")


def convolutional() -> tuple[MaxRR, Any]:
    """A model of made-up pictures by a network of four convolutions, and pictures to predict."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (800, 3, 32, 32)).astype(np.uint8)
    labels = rng.integers(0, 4, len(pictures))
    network = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(128, 256, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 4),
    )  # fmt: skip
    records = Dataset(pictures[:500], labels[:500], tuple("abcd"), np.arange(500))
    return MaxRR(network, HashCore(0.2, key="benchmark"), epochs=1, device="cpu").fit(records), pictures[500:]


def in_whole_blocks(model: MaxRR) -> Callable[[Any], object]:
    """Scores as heads see the records that they are fitted on."""
    state = model._fitted
    return lambda records: state.heads.decision_function(state.blueprint.embed(state.extractor, unlabelled(records)))


def forward(network: torch.nn.Module, records: Any) -> torch.Tensor:
    with torch.inference_mode():
        answer: torch.Tensor = network(torch.from_numpy(records).float() / 255)
        return answer


def seconds(way: Callable[[Any], object], records: Any) -> float:
    """The median answer of many."""
    taken, records = [], np.array(records)
    way(records)
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until or len(taken) < 5:
        start = time.perf_counter()
        way(records)
        taken.append(time.perf_counter() - start)
    return median(taken)


if __name__ == "__main__":
    main()
