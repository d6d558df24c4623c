"""What a change of the code brought: two checkouts in turns, on the same problems, in one run.

    git worktree add ../before main
    python benchmarks/turns.py --before ../before --out benchmarks/turns.json

Every turn is a process of its own, which fits, forgets, adds, and says how long each took and what bytes came of it.
Numbers are medians over the turns. Seconds are those of the wall; CPU seconds are those of all threads, which others
at work on the machine disturb less.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Problem:
    """Samples, and what is done with them: how many are forgotten how often, and how many are added."""

    make: Callable[[], tuple[Any, Any]]
    C: float = 1.0
    forget: tuple[tuple[int, int], ...] = ()
    add: int = 0
    peer: bool = False  # whether LinearSVC is timed as well


def embeddings(samples: int, width: int, classes: int, wrong: float) -> tuple[Any, Any]:
    """Made-up embeddings, as in `wide.py`."""
    import synthetic

    X, y = synthetic.embeddings(samples, width, classes, wrong)
    return X.numpy(), y


def lenet_features() -> tuple[Any, Any]:
    """What LeNet-5 gives for the training images of Fashion-MNIST, after six epochs on a third of them."""
    path = Path(tempfile.gettempdir()) / "maxrr-lenet-features.npz"
    if not path.exists():
        from maxrr.core import HashCore
        from maxrr.data import load
        from maxrr.nets import LeNet5
        from maxrr.unlearning import MaxRR

        training, _ = load("fashion-mnist")
        model = MaxRR(LeNet5(), HashCore(1 / 3, key="benchmark"), epochs=6, device="cpu").fit(training)
        state = model._fitted
        order = np.argsort(state.records.ids)
        np.savez(path, X=state.heads._features_of(order), y=state.records.labels[order])
    with np.load(path, allow_pickle=False) as found:
        return found["X"].astype(np.float64), found["y"]


def answers(samples: int, questions: int, classes: int) -> tuple[Any, Any]:
    """Yes or no to many questions; each class says yes to a question with a probability of its own."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=samples)
    likely = np.clip(rng.beta(0.4, 1.2, size=questions) + 0.25 * rng.normal(size=(classes, questions)), 0.02, 0.98)
    return (rng.random((samples, questions)) < likely[y]).astype(np.float64), y


PROBLEMS = {
    "LeNet-5": Problem(lenet_features, forget=((1, 20), (30, 5), (1000, 3))),
    "60,000 × 84 × 10": Problem(
        lambda: embeddings(60_000, 84, 10, 0.05), forget=((1, 20), (30, 5), (1000, 3))
    ),
    "answers": Problem(lambda: answers(4_000, 446, 30), C=0.1, forget=((1, 10), (6, 5))),
    "50,000 × 512 × 20": Problem(lambda: embeddings(50_500, 512, 20, 0.05), add=500),
    "noisy": Problem(lambda: embeddings(20_000, 768, 5, 0.05), forget=((6, 2), (30, 2), (1000, 1))),
    "clean": Problem(lambda: embeddings(20_000, 768, 10, 0.0), forget=((1, 5), (30, 2), (1000, 1)), peer=True),
}  # fmt: skip


@dataclass
class Clock:
    """Seconds and CPU seconds since it was made."""

    def __post_init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self.start[0], time.process_time() - self.start[1]


def work(problem: Problem) -> dict[str, Any]:
    """One turn."""
    from maxrr import LinearSVM

    found: dict[str, Any] = {}
    X, y = problem.make()
    X, y, new, new_labels = X[: len(X) - problem.add], y[: len(X) - problem.add], X[-problem.add :], y[-problem.add :]
    LinearSVM().fit(np.eye(50), np.arange(50) % 10)  # libraries and threads are there

    def timed(name: str, works: list[Callable[[], LinearSVM]]) -> LinearSVM:
        taken, digest = [], hashlib.sha256()
        for each in works:
            clock = Clock()
            model = each()
            taken.append(clock.read())
            digest.update(model.coef_.tobytes() + model.intercept_.tobytes())
        found[name] = {
            "seconds": median(wall for wall, _ in taken), "cpu_seconds": median(cpu for _, cpu in taken),
            "bytes": digest.hexdigest()[:16],
        }  # fmt: skip
        return model

    model = timed("fit", [lambda: LinearSVM(problem.C).fit(X, y)] * (2 if len(X) * X.shape[1] < 1e7 else 1))
    found["decided"] = all(head.decided for head in model.certificate_)
    rng = np.random.default_rng(1)
    for count, repeats in problem.forget:
        draws = [rng.choice(model.support_, count, replace=False) for _ in range(repeats)]
        timed(f"forget {count:,}", [lambda rows=rows: model._without(rows) for rows in draws])
    if problem.add:
        timed(f"add {problem.add:,}", [lambda: model._with_more(new, new_labels)])
    return found


def turn(checkout: Path, name: str) -> dict[str, Any]:
    """One turn with the code of a checkout."""
    paths = os.pathsep.join(map(str, (checkout / "src", ROOT / "benchmarks")))
    command = [sys.executable, str(Path(__file__).resolve()), "--work", name]
    said = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def compared(name: str, before: Path, turns: int) -> dict[str, Any]:
    """Both checkouts in turns, and ratios between them and to a fit."""
    pairs = [(turn(before, name), turn(ROOT, name)) for _ in range(turns)]
    found: dict[str, Any] = {"decided": all(now["decided"] for _, now in pairs)}
    for part in (part for part in pairs[0][1] if part != "decided"):
        found[part] = {"same_bytes": all(old[part]["bytes"] == new[part]["bytes"] for old, new in pairs)}
        for unit in ("seconds", "cpu_seconds"):
            old, new, old_fit, fit = (
                median(each[place][what][unit] for each in pairs)
                for what, place in ((part, 0), (part, 1), ("fit", 0), ("fit", 1))
            )
            found[part][unit] = {
                "before": old, "now": new, "times_faster": old / new,
                "of_a_fit_before": old_fit / old, "of_a_fit_now": fit / new,
            }  # fmt: skip
    return found


def linear_svc(problem: Problem) -> float:
    """Seconds of LinearSVC, as `peers.py` runs it."""
    import peers

    X, y = problem.make()
    return float(peers.linear_svc(X.astype(np.float64), y, problem.C).seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="a checkout of the code as it was")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        print(json.dumps(work(PROBLEMS[asked.work])))
        return
    from circumstances import circumstances

    for name in asked.only:
        found = {"command": f"python benchmarks/turns.py --before CHECKOUT --turns {asked.turns} --only '{name}'"}
        found |= {**circumstances(), **compared(name, asked.before, asked.turns)}
        if PROBLEMS[name].peer:
            found["LinearSVC_seconds"] = linear_svc(PROBLEMS[name])
        print(name, json.dumps(found, indent=1, ensure_ascii=False), flush=True)
        if asked.out:
            known = json.loads(asked.out.read_text("utf-8")) if asked.out.exists() else {}
            asked.out.write_text(json.dumps(known | {name: found}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
