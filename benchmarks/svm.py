"""The exact linear SVM beside its peers, part by part.

fit, forget and accuracy run on 60,000 × 84 random ReLU features of Fashion-MNIST; scaling on up to 5 million made-up
embeddings; wide on problems of the sizes that embeddings have, one row each, chosen by name. `benchmarks/tables.py`
prints the tables of benchmarks/svm.md from saved results, `benchmarks/plot.py` draws its plots.
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import features
import peers
import wide
from circumstances import circumstances
from maxrr.svm import FlatHeadWarning

C_REFERENCE = 1.0  # of forget, scaling and accuracy
WIDTH = 130  # of tables written to a file
PARTS = ("fit", "forget", "scaling", "accuracy", "wide")
SCALING = [60_000, 250_000, 1_000_000, 5_000_000]


def main() -> None:
    """Measure our SVM and its peers in one run, and print tables."""
    options = parsed()
    for part in options.only:
        if part == "wide":
            measure_rows(options)
        else:
            measure_part(part, options)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="Parts to run. [default: all]")
    parser.add_argument("--quick", action="store_true", help="A smoke run of a minute or two, at small sizes.")
    parser.add_argument("--n", type=int, help="Use the first n samples of the features only.")
    parser.add_argument("--C", type=float, nargs="+", default=[0.01, 1.0, 100.0], help="For the part fit.")
    parser.add_argument("--features", type=Path, help="An .npz file with X and y, not Fashion-MNIST.")
    parser.add_argument("--svc-heads", type=int, default=1, help="Heads that SVC solves; its seconds are for all.")
    parser.add_argument("--limit", type=float, default=1200.0, help="Seconds after which a peer is stopped.")
    parser.add_argument("--out", type=Path, help="Save raw numbers here, beside those of parts and rows not run now.")
    rows = parser.add_argument_group("wide")
    rows.add_argument("--rows", nargs="+", default=["cpu-*"], help="Names or patterns; --list prints them.")
    rows.add_argument("--list", action="store_true", help="Print the names of the rows, and do nothing.")
    rows.add_argument("--peers", nargs="*", choices=list(wide.PEERS), help="Not those of the row, but these.")
    rows.add_argument("--missing", action="store_true", help="Leave out rows that are complete in --out.")
    options = parser.parse_args()
    if options.list:
        print(*(case.name for case in wide.CASES), sep="\n")
        sys.exit()
    return options


def measure_part(part: str, options: argparse.Namespace) -> None:
    """One of the parts that print a table."""
    from rich.console import Console  # what `wide` does without

    import comparing
    import forgetting
    import scaling

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    if part == "scaling":
        sizes, origin = [1000, 2000, 4000] if options.quick else SCALING, "made-up embeddings"
        rows: list[Any] = []
        for row in scaling.run(C_REFERENCE, sizes, console):
            rows.append(row)
            save(options.out, part, {**circumstances(), "samples": origin, "rows": [asdict(row) for row in rows]})
        console.print(scaling.table(rows))
        return
    X, y = features.load(options.features, options.n or (6000 if options.quick else None))
    origin = str(options.features or "random ReLU features of Fashion-MNIST")
    console.print(f"{len(X):,} × {X.shape[1]} {origin}, {len(features.signs(y))} heads, {os.cpu_count()} cores")
    if part == "forget":
        rows = list(forgetting.run(X, y, C_REFERENCE, console))
        console.print(*forgetting.tables(rows))
    else:
        solvers = peers.usual(options.svc_heads) if part == "fit" else peers.sweep(options.svc_heads)
        with peers.Worker(options.limit, [peer.solve for peer in peers.usual(1)]) as worker:
            penalties = options.C if part == "fit" else [C_REFERENCE]
            rows = [row for C in penalties for row in comparing.run(X, y, C, solvers, worker, console)]
        console.print(comparing.table(rows, "fit" if part == "fit" else "accuracy against time"))
    save(options.out, part, {**circumstances(), "samples": origin, "rows": [asdict(row) for row in rows]})


def measure_rows(options: argparse.Namespace) -> None:
    """The rows of `wide`, saved whenever something was added to one."""
    warnings.simplefilter("ignore", FlatHeadWarning)  # rows say how many
    cases = list(chosen(options))
    others = {name for case in cases for name in case.peers} & set(wide.SVMS)
    with peers.Worker(options.limit, [wide.SVMS[name] for name in others]) as worker:
        settings = wide.Settings(worker, options.quick)
        for case in cases:
            try:
                for row in wide.measure(case, settings):
                    rows = saved(options.out).get("wide", {})
                    save(options.out, "wide", {**rows, case.name: asdict(row)})
            except KeyboardInterrupt:
                sys.exit(f"{case.name} was cut: the same command goes on with it")
            print(wide.sentence(row), flush=True)


def chosen(options: argparse.Namespace) -> Iterator[wide.Case]:
    """The cases whose names were given, or match a pattern."""
    unknown = [name for name in options.rows if not any(fnmatch(case.name, name) for case in wide.CASES)]
    if unknown:
        sys.exit(f"there is no row {unknown[0]}: --list names them")
    done = {name for name, row in saved(options.out).get("wide", {}).items() if row["complete"]}
    for case in wide.CASES:
        size = wide.quickly(case) if options.quick else case
        if options.peers is not None:
            size = replace(size, peers=tuple(options.peers))
        wanted = any(fnmatch(case.name, name) for name in options.rows)
        if wanted and not (options.missing and size.name in done):
            yield size


def saved(out: Path | None) -> dict[str, Any]:
    """All results in the file."""
    return json.loads(out.read_text("utf-8")) if out and out.exists() else {}


def save(out: Path | None, part: str, measured: dict[str, Any]) -> None:
    """Put one part into the file of results, if there is to be one."""
    if out:
        beside = out.with_name(out.name + ".part")  # a run that is killed leaves the old file or the new one
        beside.write_text(json.dumps({**saved(out), part: measured}, indent=1, ensure_ascii=False) + "\n", "utf-8")
        beside.replace(out)


if __name__ == "__main__":
    main()
