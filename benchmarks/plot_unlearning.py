"""Draws docs/img/unlearning.svg from benchmarks/unlearning.json: who is core or influential, and what that costs."""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

plt.rcParams["svg.hashsalt"] = "maxrr"  # the same file from the same numbers
KINDS = {"free": "neither: erased", "exact": "influential: head moves", "core": "core: a policy decides"}
COLOURS = {"free": "#9ecae1", "exact": "#fdae6b", "core": "#bcbddc"}


def named(core: dict[str, Any]) -> str:
    return f"core by {core['kind']}" + (f", {core['runs']} runs" if "runs" in core else "")


def main(source: Path, target: Path) -> None:
    results = json.loads(source.read_text())
    figure, (shares, costs) = plt.subplots(2, 1, figsize=(8, 5), height_ratios=(1, 1.6), layout="constrained")
    for place, result in enumerate(results.values()):
        left = 0
        for kind, label in KINDS.items():
            count = result["shares"][kind]
            shares.barh(place, count, left=left, color=COLOURS[kind], label=label if place == 0 else None)
            shares.text(left + count / 2, place, f"{count:,}", ha="center", va="center", fontsize=9)
            left += count
    shares.set_yticks(range(len(results)), [named(result["core"]) for result in results.values()])
    shares.set_xlabel("records of Fashion-MNIST")
    shares.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9, columnspacing=1.0)
    result = next(iter(results.values()))
    rows = {"train again": result["train_again_seconds"]} | {
        name: request["seconds"] for name, request in result["requests"].items()
    }
    costs.barh(range(len(rows)), list(rows.values()), color="#74c476")
    for place, seconds in enumerate(rows.values()):
        text = f"{seconds:.0f} s" if seconds >= 1 else f"{1e3 * seconds:.0f} ms"
        times = "" if place == 0 else f", {rows['train again'] / seconds:,.0f} × faster"
        costs.text(seconds * 1.1, place, text + times, va="center", fontsize=9)
    costs.set_yticks(
        range(len(rows)),
        [f"{name} record{'s' * (name[-1] == '0')}" if place else name for place, name in enumerate(rows)],
    )
    costs.invert_yaxis()
    costs.set_xscale("log")
    costs.set_xlim(right=max(rows.values()) * 12)
    costs.set_xlabel("seconds")
    for axes in (shares, costs):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parents[1] / "docs" / "img" / "unlearning.svg")
