"""Print the tables of benchmarks/svm.md, section 'Speed', in Markdown: `python benchmarks/tables.py RESULTS …`.

Several files of results, of different machines, are taken together; of a row that is in more than one, the last counts.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MEASURED = dict[str, Any]  # a row as benchmarks/svm.py saves it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    found = [json.loads(path.read_text("utf-8")) for path in parser.parse_args().results]
    rows: dict[str, MEASURED] = {}
    for results in found:
        rows |= results.get("wide", {})
    for device, title in (("cpu", "On the processor"), ("cuda", "On a graphics processor")):
        of_device = [row for row in rows.values() if row["case"]["device"] == device]
        if of_device:
            show(title, machine(of_device), fits(of_device), requests(of_device), shares(of_device))
    for results in found:
        if "forget" in results:
            show("Forgetting, Fashion-MNIST", [where(results["forget"])], forgotten(results["forget"]["rows"]))
        if "scaling" in results:
            show("Scaling", [where(results["scaling"])], scaled(results["scaling"]["rows"]))


def show(title: str, notes: list[str], *tables: list[str]) -> None:
    print(f"**{title}.**", *notes, sep="\n", end="\n\n")
    for lines in tables:
        print(*lines, sep="\n", end="\n\n")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of Markdown."""
    heads = list(heads)
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def machine(rows: list[MEASURED]) -> list[str]:
    """Where rows were measured, and how fast that is: once if all agree."""
    said: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        speeds = row["speeds"]
        said.setdefault(where(row["circumstances"]), []).append((speeds["operations"] / 1e9, speeds["bytes"] / 1e9))
    return [
        f"{place}: {spread(g for g, _ in speeds)} GFLOP/s in float64, {spread(b for _, b in speeds)} GB/s."
        for place, speeds in said.items()
    ]


def where(here: MEASURED) -> str:
    name = here.get("device") or here["processor"]
    return f"{name}, {here['cores']} cores, {here['date'][:10]}"


PEERS = ("LinearSVC", "liblinear-multicore", "skglm", "logistic")


def spread(values: Iterable[float]) -> str:
    low, high = f"{min(found := list(values)):,.0f}", f"{max(found):,.0f}"
    return low if low == high else f"{low} to {high}"


def fits(rows: list[MEASURED]) -> list[str]:
    """One line per problem: ours, the floor and the peers."""
    names = [name for name in PEERS if any(peer(row, name) for row in rows)]
    heads = ["samples × d × classes", "C", "wrong labels", "fit", "floor", "× floor", "influential", "memory"]
    heads += [text for name in names for text in (name, "off by")]
    lines = []
    for row in rows:
        case, fit = row["case"], row["fit"]
        cells = [size(case), f"{case['C']:g}", f"{100 * case['wrong']:g} %", seconds(fit["seconds"]) + undecided(fit)]
        cells += [seconds(fit["floor_seconds"]), ratio(fit["seconds"] / fit["floor_seconds"])]
        cells += [f"{fit['influential']:,}", f"{fit['peak']:.1f} ×"]
        for name in names:
            cells += peer_cells(peer(row, name), fit["seconds"])
        lines.append(cells)
    return table(heads, lines)


def peer(row: MEASURED, name: str) -> MEASURED | None:
    return next((peer for peer in row["peers"] if peer["solver"] == name), None)


def peer_cells(peer: MEASURED | None, ours: float) -> list[str]:
    """Its seconds, as a multiple of ours, too, and how far from the optimum it ended."""
    if peer is None:
        return ["", ""]
    times = f"{ratio(peer['seconds'] / ours)} ×"
    if not peer["finished"]:
        return [f"stopped after {peer['seconds']:,.0f} s (> {times})", ""]
    bias = f" (bias ≤ {peer['bias']:.0e})" if peer["bias"] is not None else ""
    unconverged = "" if peer["content"] else ", not converged"
    return [f"{seconds(peer['seconds'])} ({times}){unconverged}", f"{peer['distance']:.0e}{bias}"]


def requests(rows: list[MEASURED]) -> list[str]:
    """One line per problem: requests in milliseconds, in passes, and how much faster than a fit."""
    wanted = [("forget", 1), ("forget", 30), ("forget", 1000), ("insert", 500)]
    heads = [
        "samples × d × classes",
        "C",
        "wrong labels",
        "one pass",
        "floor",
        *(f"{kind} {n:,}" for kind, n in wanted),
    ]
    lines = []
    for row in rows:
        case, one_pass = row["case"], row["pass_seconds"]
        cells = [size(case), f"{case['C']:g}", f"{100 * case['wrong']:g} %", seconds(one_pass)]
        cells.append(seconds(row["pass_floor_seconds"]))
        for request in wanted:
            done = next((r for r in row["requests"] if (r["kind"], r["asked"]) == request), None)
            cells.append(request_cell(done, one_pass, row["fit"]["seconds"]) if done else "")
        lines.append(cells)
    return table(heads, lines)


def request_cell(done: MEASURED, one_pass: float, fit: float) -> str:
    took = done["seconds"]
    fewer = "" if done["count"] == done["asked"] else f" (of {done['count']:,})"
    return f"{seconds(took)}{fewer}, {ratio(took / one_pass)} passes, {ratio(fit / took)} × faster{undecided(done)}"


def shares(rows: list[MEASURED]) -> list[str]:
    """Where the time of a fit goes."""
    lines = []
    for row in rows:
        case, fit = row["case"], row["fit"]
        parts = ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(fit["shares"].items())[:5])
        lines.append([size(case), f"{case['C']:g}", f"{100 * case['wrong']:g} %", f"{fit['passes']:,}", parts])
    return table(["samples × d × classes", "C", "wrong labels", "passes", "share of the time of a fit"], lines)


def forgotten(rows: list[MEASURED]) -> list[str]:
    """One line per kind of request to the model of all classes, and to that without a head of no weights."""
    lines = []
    for row in rows:
        took = row["milliseconds"]
        passes, faster = ratio(took / row["floor_ms"]), f"{ratio(row['fit_ms'] / took)} ×"
        same = "yes" if row["same_bytes"] else "no"
        lines.append([row["problem"], row["request"], f"{took:,.1f} ms", passes, faster, str(row["passes"]), same])
    return table(["heads", "forgotten", "time", "× pass", "faster than fit", "passes", "bytes of a fit"], lines)


def scaled(rows: list[MEASURED]) -> list[str]:
    """One line per number of samples."""
    lines = [
        [
            f"{row['n']:,}", seconds(row["seconds"]), f"{1e6 * row['seconds'] / row['n']:.1f} µs",
            f"{row['peak_bytes'] / row['features_bytes']:.2f} ×",
        ]
        for row in rows
    ]  # fmt: skip
    return table(["samples", "fit", "per sample", "peak memory / features as given"], lines)


def size(case: MEASURED) -> str:
    return f"{case['samples']:,} × {case['width']} × {case['classes']:,}"


def seconds(value: float) -> str:
    if value >= 10.0:
        return f"{value:,.0f} s"
    return f"{value:.2g} s" if value >= 1.0 else f"{1e3 * value:.2g} ms" if value < 0.1 else f"{1e3 * value:.0f} ms"


def ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.1f}"


def undecided(found: MEASURED) -> str:
    return "" if found["decided"] else " (not all heads decided)"


if __name__ == "__main__":
    main()
