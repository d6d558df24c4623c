"""The exact linear SVM beside its peers: `python benchmarks/svm.py --help`.

Draw the plots of docs/img from saved results with `python benchmarks/plot.py RESULTS`.
"""

import json
import os
import platform
import re
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import comparing
import features
import forgetting
import peers
import scaling

C_REFERENCE = 1.0  # of all parts but the first
WIDTH = 130  # of tables written to a file


class Part(StrEnum):
    fit = "fit"
    forget = "forget"
    scaling = "scaling"
    accuracy = "accuracy"


def main(
    only: Annotated[list[Part] | None, typer.Option(help="Parts to run. [default: all]")] = None,
    quick: Annotated[bool, typer.Option(help="A smoke run of a minute or two: 6,000 samples.")] = False,
    n: Annotated[int | None, typer.Option(help="Use the first n samples only.")] = None,
    C: Annotated[list[float], typer.Option("--C", help="For the part fit.")] = [0.01, 1.0, 100.0],  # noqa: B006
    file: Annotated[
        Path | None, typer.Option("--features", help="An .npz file with X and y, not Fashion-MNIST.")
    ] = None,
    svc_heads: Annotated[int, typer.Option(help="Heads that SVC solves; its seconds are scaled to all.", min=1)] = 1,
    limit: Annotated[float, typer.Option(help="Seconds after which a peer is stopped.")] = 1200.0,
    out: Annotated[Path | None, typer.Option(help="Save raw numbers here, beside those of parts not run now.")] = None,
) -> None:
    """Measure our SVM and its peers in one run, and print tables."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    X, y = features.load(file, n or (6000 if quick else None))
    sizes = [len(X) // 4, len(X) // 2, len(X), 4 * len(X)] if quick else [15_000, 60_000, 250_000, 1_000_000]
    origin = str(file or "random ReLU features of Fashion-MNIST")
    console.print(f"{len(X):,} × {X.shape[1]} {origin}, {len(features.signs(y))} heads, {os.cpu_count()} cores")

    for part in only or list(Part):
        match part:
            case Part.fit:
                with peers.Worker(limit) as worker:
                    against = peers.usual(svc_heads)
                    rows = [row for c in C for row in comparing.run(X, y, c, against, worker, console)]
                tables = [comparing.table(rows, "fit")]
            case Part.forget:
                rows = list(forgetting.run(X, y, C_REFERENCE, console))
                tables = forgetting.tables(rows)
            case Part.scaling:
                rows = list(scaling.run(X, y, C_REFERENCE, sizes, console))
                tables = [scaling.table(rows)]
            case Part.accuracy:
                with peers.Worker(limit) as worker:
                    rows = list(comparing.run(X, y, C_REFERENCE, peers.sweep(svc_heads), worker, console))
                tables = [comparing.table(rows, "accuracy against time")]
        console.print(*tables)
        if out:
            save(out, part, {**circumstances(), "samples": origin, "rows": [asdict(row) for row in rows]})


def circumstances() -> dict[str, Any]:
    """When, where and with what a part was measured."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    packages = ("maxrr", "numpy", "scipy", "scikit-learn", "clarabel", "torch")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def save(out: Path, part: Part, measured: dict[str, Any]) -> None:
    """Put one part into the file of results."""
    results = json.loads(out.read_text()) if out.exists() else {}
    out.write_text(json.dumps({**results, part.value: measured}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
