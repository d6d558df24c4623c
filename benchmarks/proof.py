"""What deciding the bytes of a head costs: `python benchmarks/proof.py [--out FILE]`.

Its share of a fit on 54,000 × 84 features, and polishing, enclosing and rounding one head by the number of features,
with nearly as many samples on the margin. One core; the floor is one product of the samples on the margin with
themselves.
"""

import json
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import features
from circumstances import circumstances
from maxrr import LinearSVM
from maxrr.svm import FlatHeadWarning
from maxrr.svm.exact import deciding
from maxrr.svm.exact.basis import Near
from maxrr.svm.exact.deciding import BITS
from maxrr.svm.exact.enclosure import enclose, publish
from maxrr.svm.exact.fixed_point import Fixed
from maxrr.svm.exact.multipliers import Search
from maxrr.svm.search import working_set

SIZES = ((80, 84), (330, 384), (650, 768))
REPEATS = 5


def share_of_a_fit() -> dict[str, float]:
    """Seconds of a fit on one core, and of deciding the bytes in it."""
    X, y = features.load(None, None)
    X, y = X[y != 6], y[y != 6]  # without the class whose head has no weights
    spent = 0.0
    original = deciding.propose

    def timed(*given: Any) -> Any:
        nonlocal spent
        started = time.perf_counter()
        try:
            return original(*given)
        finally:
            spent += time.perf_counter() - started

    deciding.propose = working_set.propose = timed  # type: ignore[assignment]
    try:
        with threadpool_limits(1):
            started = time.perf_counter()
            LinearSVM().fit(X, y)
            total = time.perf_counter() - started
    finally:
        deciding.propose = working_set.propose = original  # type: ignore[assignment]
    return {"fit": total, "proofs": spent, "share": spent / total}


def one_head(count: int, dimension: int) -> dict[str, float]:
    """Seconds for one head with this many samples on its margin, known to about 1e-13."""
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(count, dimension)), 0.0).astype(np.float32).astype(np.float64)
    y, a = rng.choice([-1.0, 1.0], count), rng.uniform(0.1, 0.9, count)
    tilt = -round(float(a @ y))
    a -= y * (a @ y + tilt) / count
    w = np.linalg.lstsq(X, y - 0.3)[0]  # margins of 1 at b = 0.3; what the samples inside add makes up for the rest
    near = Near(X, y, 1.0, np.ones(count), Fixed.of(w - (a * y) @ X), Fixed.of(np.array([float(tilt)])))
    lengths, exponent = np.linalg.norm(X, axis=1), int(np.frexp(X.max())[1])
    seconds, floor = [], []
    with threadpool_limits(1):
        for _ in range(REPEATS):
            started = time.perf_counter()
            polished = Search(near, a, 0.3, BITS + 2 * dimension.bit_length()).run()
            published = publish(polished, enclose(near, polished, lengths), exponent, np.empty(0, dtype=np.int64))
            seconds.append(time.perf_counter() - started)
            started = time.perf_counter()
            X @ X.T
            floor.append(time.perf_counter() - started)
    assert published.decided
    return {"on margin": count, "features": dimension, "seconds": min(seconds), "floor": min(floor)}


def main(out: Annotated[Path | None, typer.Option(help="Save the numbers here.")] = None) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore", FlatHeadWarning)
    share, rows = share_of_a_fit(), [one_head(*size) for size in SIZES]
    table = Table("on margin", "features", "ms", "× product", title="one head, from 1e-13 to its canonical bytes")
    for row in rows:
        table.add_row(
            str(row["on margin"]), str(row["features"]), f"{1e3 * row['seconds']:.0f}",
            f"{row['seconds'] / row['floor']:.0f}",
        )  # fmt: skip
    Console().print(f"fit {share['fit']:.2f} s on one core, deciding {100 * share['share']:.1f} % of it", table)
    if out:
        out.write_text(json.dumps({**circumstances(), "fit": share, "heads": rows}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
