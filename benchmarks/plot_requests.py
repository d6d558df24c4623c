"""Draws docs/img/requests.svg from benchmarks/requests.json: a free request by records and earlier requests."""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

plt.rcParams["svg.hashsalt"] = "maxrr"  # the same file from the same numbers
BLUE, ORANGE, GREY = "#2171b5", "#d94801", "#737373"


def main(source: Path, target: Path) -> None:
    found = json.loads(source.read_text())
    rows = found["rows"]
    durable = [row for row in rows if "durable" in row]
    figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
    lines: list[tuple[str, list[Any], Any, str, str]] = [
        ("durable, one at a time", durable, lambda row: row["durable"]["first"], ORANGE, "-"),
        ("the same, after 10,000 others", durable, lambda row: row["durable"]["later"], ORANGE, ":"),
        ("durable, a thousand together", durable, lambda row: row["durable"]["together"], ORANGE, "--"),
        ("in memory", rows, lambda row: row["memory"]["first"], BLUE, "-"),
        ("the same, after 10,000 others", rows, lambda row: row["memory"]["later"], BLUE, ":"),
    ]
    for label, some, value, colour, style in lines:
        sizes = [row["records"] for row in some]
        axes.plot(sizes, [1e3 * value(row) for row in some], style, color=colour, marker="o", ms=3.5, label=label)
    for name, seconds, place, side in (
        ("HedgeCut, by its paper", found["hedgecut_seconds"], 0, "left"),
        ("one flush", found["flush_seconds"], -1, "right"),
    ):
        axes.axhline(1e3 * seconds, color=GREY, lw=0.8)
        axes.text(rows[place]["records"], 1.04e3 * seconds, name, color=GREY, fontsize=8, va="bottom", ha=side)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("records of the model")
    axes.set_ylabel("ms for one request and its receipt")
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parents[1] / "docs" / "img" / "requests.svg")
