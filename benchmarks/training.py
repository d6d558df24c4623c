"""Training, embedding and ranking LeNet-5 on Fashion-MNIST, beside the loop everyone writes.

    python benchmarks/training.py --out benchmarks/training.json           # on the CPU
    python benchmarks/training.py --device cuda --out …                    # a hundred runs on a GPU

The peer is a `TensorDataset` in a `DataLoader`, eager PyTorch, Adam, with the same batches, network and recipe. Needs
no more than PyTorch, NumPy, SciPy and scikit-learn. Leave the machine otherwise idle; only the ratios travel.
"""

import argparse
import json
import os
import platform
import resource
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

from maxrr.data import Dataset, load
from maxrr.nets import LeNet5, Recipe, embed, split, train, train_many
from maxrr.nets.inputs import records
from maxrr.nets.seeding import begin
from maxrr.nets.stacked import Stack
from maxrr.progress import Line
from maxrr.svm import influential_in

BATCH, LR = 64, 1e-3
MACS = {"conv1": 117_600, "conv2": 240_000, "linear": 48_000 + 10_080 + 840}  # multiply-adds of LeNet-5 for an image
# Forward, the weights' gradient, and but for the first layer the input's.
FLOP_AN_IMAGE = 2 * (2 * MACS["conv1"] + 3 * MACS["conv2"] + 3 * MACS["linear"])
H200_FLOPS = 67e12  # float32, without tensor cores


def eager() -> nn.Module:
    """LeNet-5 as one writes it down."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def peer(dataset: Dataset, epochs: int, device: str) -> tuple[float, nn.Module]:
    """Seconds of the usual loop, and the network that came of it."""
    torch.manual_seed(0)
    network = eager().to(device)
    pixels = torch.from_numpy(np.array(dataset.inputs)).float() / 255
    table = torch.utils.data.TensorDataset(pixels, torch.from_numpy(np.array(dataset.labels)))
    loader = torch.utils.data.DataLoader(table, batch_size=BATCH, shuffle=True)
    optimiser = torch.optim.Adam(network.parameters(), lr=LR)
    start = time.perf_counter()
    for _ in range(epochs):
        for images, labels in loader:
            optimiser.zero_grad()
            F.cross_entropy(network(images.to(device)), labels.to(device)).backward()
            optimiser.step()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, network.cpu()


def accuracy(network: nn.Module, test: Dataset) -> float:
    """On the test records."""
    with torch.no_grad():
        scores = network(torch.from_numpy(np.array(test.inputs)).float() / 255)
    return float((scores.argmax(1).numpy() == test.labels).mean())


def on_the_cpu(training: Dataset, test: Dataset, epochs: int, runs: int) -> dict[str, Any]:
    """One run, several runs, and embedding."""
    usual, network = peer(training, epochs, "cpu")
    start = time.perf_counter()
    one = train(LeNet5(), training, 0, epochs=epochs, device="cpu")
    alone = time.perf_counter() - start
    before, start = os.times(), time.perf_counter()
    many = list(train_many(LeNet5(), training, range(runs), epochs=epochs, device="cpu", progress=Line()))
    together, after = time.perf_counter() - start, os.times()
    cores = len(os.sched_getaffinity(0))
    both = training.inputs, test.inputs
    everything = Dataset(
        np.concatenate(both), np.concatenate([training.labels, test.labels]), training.class_names,
        np.concatenate([training.ids, test.ids]),
    )  # fmt: skip
    extractor, _ = split(one.network)
    start = time.perf_counter()
    with torch.no_grad():
        for block in torch.from_numpy(everything.inputs).split(256):
            extractor(block.float() / 255)
    forward = time.perf_counter() - start
    memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    target = Path("features.npy")
    embed(extractor, everything, device="cpu", out=target)
    embedding = time.perf_counter() - start
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    target.unlink()
    return {
        "epochs": epochs,
        "runs": runs,
        "peer_seconds_a_run": usual,
        "train_seconds": alone,
        "train_many_seconds_a_run": together / runs,
        "train_ratio": usual / alone,
        "train_many_ratio": usual / (together / runs),
        "cores_busy": (after.user + after.system - before.user - before.system) / together / cores,
        "peer_accuracy": accuracy(network, test),
        "our_accuracy": float(np.mean([accuracy(run.network, test) for run in many])),
        "embedded": len(everything),
        "forward_seconds": forward,
        "embed_seconds": embedding,
        "embed_memory_growth_mib": growth,
    }


def on_cuda(training: Dataset, test: Dataset, epochs: int, runs: int) -> dict[str, Any]:
    """Many runs, their features, and their influential records: the ranking, from end to end."""
    peer(training.select(training.ids[:1000]), 1, "cuda")
    usual, _ = peer(training, 1, "cuda")
    start = time.perf_counter()
    many = list(train_many(LeNet5(), training, range(runs), epochs=epochs, device="cuda", progress=Line()))
    trained = time.perf_counter() - start
    embedded = [0.0]

    def features():  # type: ignore[no-untyped-def]
        for run in many:
            begin = time.perf_counter()
            found = torch.from_numpy(embed(split(run.network)[0], training, device="cuda")).cuda()
            torch.cuda.synchronize()
            embedded[0] += time.perf_counter() - begin
            yield found

    start = time.perf_counter()
    found = list(influential_in(features(), training.labels, C=1.0, progress=Line()))
    ranked = time.perf_counter() - start
    marks = np.sum([influence.mask for influence in found], axis=0)
    accuracies = [accuracy(run.network, test) for run in many]
    images = runs * epochs * len(training)
    return {
        "epochs": epochs,
        "runs": runs,
        "peer_seconds_an_epoch": usual,
        "train_many_seconds": trained,
        "ratio": usual * epochs * runs / trained,
        "arithmetic_floor_seconds": images * FLOP_AN_IMAGE / H200_FLOPS,
        "times_the_floor": trained / (images * FLOP_AN_IMAGE / H200_FLOPS),
        "milliseconds_a_model_step": 1e3 * trained / (runs * epochs * -(-len(training) // BATCH)),
        "accuracy_mean": float(np.mean(accuracies)),
        "accuracy_deviation": float(np.std(accuracies)),
        "step_milliseconds": step_profile(training, runs),
        "embed_and_svm_seconds": ranked,
        "of_these_embedding": embedded[0],
        "worst_gap": max(known.relative_gap for influence in found for known in influence.certificates),
        "influential_a_run": float(np.mean([influence.mask.sum() for influence in found])),
        "influential_ever": int((marks > 0).sum()),
        "influential_always": int((marks == runs).sum()),
    }


def step_profile(training: Dataset, runs: int) -> dict[str, float]:
    """Milliseconds on the device that one step of all runs spends on what."""
    networks = [begin(LeNet5(), seed) for seed in range(runs)]
    stack = Stack(networks, records(training, networks[0], torch.device("cuda")), Recipe(lr=LR))
    rows = torch.randint(0, len(training), (runs, BATCH), device="cuda")
    for _ in range(3):
        stack.step(rows)
    torch.cuda.synchronize()
    with warnings.catch_warnings(), profile(activities=[ProfilerActivity.CUDA]) as seen:
        warnings.simplefilter("ignore")
        for _ in range(10):
            stack.step(rows)
        torch.cuda.synchronize()
    kinds = {
        "convolutions": "_output_kernel",
        "their weights' gradients": "_weight_gradient_kernel",
        "products": "gemm",
    }
    kinds |= {"Adam": "multi_tensor", "everything else": ""}
    spent = dict.fromkeys(kinds, 0.0)
    for kernel in seen.events():
        if str(kernel.device_type).endswith("CUDA") and not kernel.is_user_annotation:
            kind = next(kind for kind, mark in kinds.items() if mark in kernel.name)
            spent[kind] += kernel.device_time_total / 1e4
    return {kind: round(value, 4) for kind, value in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--epochs", type=int, help="of each run [default: 1 on the CPU, 15 on CUDA]")
    parser.add_argument("--runs", type=int, help="[default: 4 on the CPU, 100 on CUDA]")
    parser.add_argument("--out", type=Path, help="save the numbers here, beside those of the other device")
    asked = parser.parse_args()
    training, test = load("fashion-mnist")
    if asked.device == "cuda":
        numbers = on_cuda(training, test, asked.epochs or 15, asked.runs or 100)
        machine = f"{torch.cuda.get_device_name()}, {len(os.sched_getaffinity(0))} cores"
    else:
        numbers = on_the_cpu(training, test, asked.epochs or 1, asked.runs or 4)
        machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    for name, value in numbers.items():
        print(f"{name.replace('_', ' '):>30}  {f'{value:,.4g}' if isinstance(value, float) else value}")
    if asked.out:
        known = json.loads(asked.out.read_text()) if asked.out.exists() else {}
        known[asked.device] = {
            "command": " ".join(["python", *sys.argv]), "date": datetime.now(UTC).date().isoformat(),
            "machine": machine, "torch": torch.__version__, "numpy": np.__version__, **numbers,
        }  # fmt: skip
        asked.out.write_text(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()
