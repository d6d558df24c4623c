"""Time and memory of `fit` against the number of samples: made-up embeddings in float32, kept as they are."""

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

import memory

WIDTH, CLASSES, WRONG = 64, 10, 0.05


@dataclass(frozen=True)
class Scaled:
    n: int
    seconds: float
    features_bytes: int  # as they were given
    peak_bytes: int  # above the process before it held any samples: the caller's X is in it
    gap: float
    decided: bool
    influential: int


def run(C: float, sizes: list[int], console: Console) -> Iterator[Scaled]:
    """Each size in a fresh process."""
    for n in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool, console.status(f"fitting {n:,} samples"):
            yield pool.apply(fit, (C, n))


def fit(C: float, n: int) -> Scaled:
    """Make n samples and fit them, watching the memory of this process."""
    from maxrr import LinearSVM
    from synthetic import embeddings

    LinearSVM().fit(np.eye(50), np.arange(50) % 10)  # libraries and threads are there before we measure
    embeddings(100, WIDTH, CLASSES, WRONG)
    before = memory.held()
    samples, y = embeddings(n, WIDTH, CLASSES, WRONG)
    X = samples.numpy()
    start = perf_counter()
    model = LinearSVM(C=C, copy_X=False).fit(X, y)
    seconds = perf_counter() - start
    peak = memory.peak() - before
    heads = model.certificate_
    gap, decided = max(head.relative_gap for head in heads), all(head.decided for head in heads)
    return Scaled(n, seconds, X.nbytes, peak, gap, decided, len(model.support_))


def table(rows: list[Scaled]) -> Table:
    """One row per size."""
    table = Table(
        title=f"scaling: × {WIDTH} features in float32, {CLASSES} heads",
        caption="peak memory: above the process before it held any samples, as a multiple of the features as given, "
        "which are part of it (1 ×); asked for: at most 1.5, and what the working sets need.",
    )
    for heading in ("n", "seconds", "µs per sample", "worst gap", "influential", "features MB", "peak"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row.n:,}",
            f"{row.seconds:.2f}",
            f"{1e6 * row.seconds / row.n:.1f}",
            f"{row.gap:.0e}",
            f"{row.influential:,}",
            f"{row.features_bytes / 1e6:,.0f}",
            f"{row.peak_bytes / row.features_bytes:.2f} ×",
        )
    return table
