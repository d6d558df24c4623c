"""The least that there is to do, at the speeds that the machine shows in the same run.

**Fit.** Suppose that somebody told us, for every head, which samples are inside and which m are on the margin (of which
at most d + 1 are independent). What is left is to form the system of those m samples (m² d operations), to factorise it
(m³ / 3), to add up the samples inside (2 d each), and to check the answer with one pass. This finds no partition and is
no more precise than float64: a method that solves by factorising does all of it, and more.

**Forget, insert.** One pass for all heads, which is what a check costs that looks at every sample. A method that can
prove without looking that most samples stay where they are may be below it.

**A pass** multiplies all samples with all weights: 2 n d operations per head, or reading the samples once in the type
in which they were given, whichever takes longer.

Operations take what they take in the product of two large square matrices of float64; bytes take what they take in a
sum over memory much larger than any cache.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from maxrr.svm import Certificate

REPEATS = 5
SIDE = {"cpu": 2048, "cuda": 8192}  # of the square matrices
READ = {"cpu": 1 << 29, "cuda": 1 << 32}  # bytes


@dataclass(frozen=True)
class Speeds:
    """Operations and bytes a second."""

    operations: float
    bytes: float


def measure(device: str, *, quick: bool = False) -> Speeds:
    """What this device does at its best, in a second or two."""
    side, size = (256, 1 << 22) if quick else (SIDE[device], READ[device])
    a = torch.rand(side, side, dtype=torch.float64, device=device)
    if device == "cpu":
        matrix = a.numpy()  # NumPy's own library, the one that works for us there
        product = best(lambda: matrix @ matrix, device)
    else:
        product = best(lambda: a @ a, device)
    memory = torch.from_numpy(np.ones(size // 4, dtype=np.float32)).to(device)
    return Speeds(2 * side**3 / product, size / best(lambda: memory.sum(), device))


def best(work: Callable[[], object], device: str) -> float:
    """The shortest time of some repeats."""
    return min(seconds(work, device) for _ in range(REPEATS))


def seconds(work: Callable[[], object], device: str) -> float:
    """How long one call takes, with all that it has started on a device."""
    start = perf_counter()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return perf_counter() - start


@dataclass(frozen=True)
class Problem:
    """The size of what is solved; `bytes` are those of the samples as they were given."""

    samples: int
    width: int
    heads: int
    bytes: int


def one_pass(problem: Problem, speeds: Speeds) -> float:
    """Seconds."""
    operations = 2.0 * problem.samples * problem.width * problem.heads
    return max(operations / speeds.operations, problem.bytes / speeds.bytes)


def fit(problem: Problem, certificates: Sequence[Certificate], speeds: Speeds) -> float:
    """Seconds."""
    d = problem.width
    margin = np.array([min(head.on_margin, d + 1) for head in certificates], dtype=float)
    inside = sum(head.inside for head in certificates)
    operations = float(np.sum(margin**2 * d + margin**3 / 3)) + 2.0 * inside * d
    return operations / speeds.operations + one_pass(problem, speeds)
