"""The exact SVM on features as wide as embeddings: fit, forget and insert, beside its peers and the floor.

The embeddings are made up: one centre per class, noise, and some labels that are wrong. Peers are scikit-learn's
LinearSVC with the hinge loss, and logistic regression by L-BFGS in PyTorch, another problem, which is there for
its time. A pass is one product of all samples with all weights, the floor for anything that looks at every sample.
"""

import argparse
import json
import os
import platform
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from maxrr.svm import LinearSVM

REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--wrong", type=float, default=0.05, help="Share of labels that are wrong.")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--device", default="cpu", help="Where our samples are; peers run on the processor.")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, help="A JSON file; results of other sizes in it are kept.")
    options = parser.parse_args()
    X, y = embeddings(options)
    found = {**circumstances(), **ours(X, y, options), **(peers(X, y, options) if options.peers else {})}
    print(json.dumps(found, indent=1))
    if options.out:
        size = f"{options.samples} × {options.width} × {options.classes}"
        name = f"{size}, C = {options.C:g}, {options.wrong:g} wrong, {options.device}"
        before = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
        options.out.write_text(json.dumps({**before, name: found}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def circumstances() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def embeddings(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(options.classes, options.width))
    y = rng.integers(options.classes, size=options.samples)
    X = (0.2 * centres[y] + rng.normal(size=(options.samples, options.width))) / np.sqrt(options.width) * 4
    wrong = rng.random(options.samples) < options.wrong
    y[wrong] = rng.integers(options.classes, size=int(wrong.sum()))
    return X.astype(np.float32).astype(np.float64), y


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came out."""
    started = perf_counter()
    found = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return round(perf_counter() - started, 4), found


def ours(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict[str, Any]:
    samples = X if options.device == "cpu" else torch.as_tensor(X, device=options.device)
    fit, model = timed(lambda: LinearSVM(options.C, copy_X=False).fit(samples, y))
    weights = (
        model.coef_.T.copy()
        if options.device == "cpu"
        else torch.as_tensor(model.coef_.T.copy(), device=options.device)
    )
    one_pass = min(timed(lambda: samples @ weights)[0] for _ in range(REPEATS))
    rng = np.random.default_rng(1)
    found: dict[str, Any] = {"fit": fit, "pass": one_pass, "influential": len(model.support_)}
    for count in (1, 30, 1000):
        if count < len(model.support_) // 2:
            gone = [rng.choice(model.support_, count, replace=False) for _ in range(REPEATS if count == 1 else 1)]
            seconds = [timed(lambda rows=rows: model.without(rows))[0] for rows in gone]
            found[f"forget {count}"] = float(np.median(seconds))
    new = samples[:500] * 1.001
    found["insert 500"] = timed(lambda: model.with_more(new, y[:500]))[0]
    found["every head decided"] = all(certificate.decided for certificate in model.certificate_)
    return found


def peers(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc = LinearSVC(C=options.C, loss="hinge", tol=1e-4, max_iter=20_000)
        seconds = timed(lambda: svc.fit(X, y))[0]
    return {"LinearSVC": seconds, "logistic, L-BFGS": timed(lambda: logistic(X, y, options.C))[0]}


def logistic(X: np.ndarray, y: np.ndarray, C: float) -> None:
    samples, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    layer = torch.nn.Linear(X.shape[1], int(y.max()) + 1)
    optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=1000, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = C * torch.nn.functional.cross_entropy(layer(samples), labels, reduction="sum")
        total = (total + 0.5 * layer.weight.square().sum()) / len(labels)
        total.backward()
        return total

    optimiser.step(loss)


if __name__ == "__main__":
    main()
