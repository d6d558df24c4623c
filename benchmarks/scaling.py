"""Time and memory of `fit` against the number of samples."""

import multiprocessing
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from features import Floats, Labels, load, repeated


@dataclass(frozen=True)
class Scaled:
    n: int
    seconds: float
    features_bytes: int
    peak_bytes: int  # above the process before it held any samples: the caller's X is in it
    gap: float


def run(X: Floats, y: Labels, C: float, sizes: list[int], console: Console) -> Iterator[Scaled]:
    """Each size in a fresh process."""
    for n in sizes:
        with TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
            file = Path(folder) / "samples.npz"
            np.savez(file, X=X[:n], y=y[:n])
            with console.status(f"fitting {n:,} samples"):
                yield pool.apply(fit, (file, C, n))


def fit(file: Path, C: float, n: int) -> Scaled:
    """Build n samples and fit them, watching the memory of this process."""
    from maxrr.svm import LinearSVM

    LinearSVM().fit(np.eye(50), np.arange(50) % 10)  # libraries and threads are there before we measure
    before = memory("VmRSS")
    X, y = repeated(*load(file, None), n)
    start = perf_counter()
    model = LinearSVM(C=C).fit(X, y)
    seconds = perf_counter() - start
    gap = max(head.relative_gap for head in model.certificate_)
    return Scaled(n, seconds, X.nbytes, memory("VmHWM") - before, gap)


def memory(field: str) -> int:
    """Bytes of this process, now (VmRSS) or at most so far (VmHWM).

    Not `ru_maxrss`: in a child process that starts at what its parent held.
    """
    (kilobytes,) = re.findall(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def table(rows: list[Scaled]) -> Table:
    """One row a size."""
    table = Table(
        title="scaling",
        caption="peak memory: above the process before it held any samples, as a multiple of the float64 features. It "
        "contains the caller's own X (1 ×), which the last column leaves out; asked for: at most 3.",
    )
    for heading in ("n", "seconds", "µs a sample", "worst gap", "features MB", "peak", "peak without X"):
        table.add_column(heading, justify="right")
    for row in rows:
        peak = row.peak_bytes / row.features_bytes
        table.add_row(
            f"{row.n:,}",
            f"{row.seconds:.2f}",
            f"{1e6 * row.seconds / row.n:.1f}",
            f"{row.gap:.0e}",
            f"{row.features_bytes / 1e6:,.0f}",
            f"{peak:.2f} ×",
            f"{peak - 1:.2f} ×",
        )
    return table
