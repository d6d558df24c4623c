"""Put the numbers of results/ into docs/reproduction.md: `python tools/fill_reproduction.py`.

A table stands between two comments, of which the first says what it is made from:

    <!-- grid svc/table -->
    …
    <!-- end -->

The words after `grid` or `lines` are a result file and, of `lines`, the rows wanted if not all, with ; between them.
"""

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

from maxrr.experiments import confidence
from maxrr.report.figures.names import readable
from maxrr.report.markdown import markdown_grid, markdown_lines

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
TABLE = re.compile(r"(<!-- (grid|lines) (\S+)(?: ([^\n]*?))? -->\n).*?(<!-- end -->)", flags=re.DOTALL)
SECONDS = re.compile(r"(<!-- seconds -->\n).*?(<!-- end -->)", flags=re.DOTALL)
VARIANTS = re.compile(r"(<!-- variants -->\n).*?(<!-- end -->)", flags=re.DOTALL)
COUPLED = {  # of one-vs-one
    "retained": "a sigmoid a pair, fitted to the retained records, coupled",
    "everything": "the same, fitted to all training records, forgotten ones among them",
}


def filled(text: str) -> str:
    """The page with the numbers that the result files have now."""
    text = SECONDS.sub(lambda found: f"{found[1]}{seconds()}{found[2]}", text)
    text = VARIANTS.sub(lambda found: f"{found[1]}{variants()}{found[2]}", text)
    return TABLE.sub(lambda found: f"{found[1]}{made(found[2], found[3], found[4])}{found[5]}", text)


def made(kind: str, name: str, wanted: str | None) -> str:
    """One table."""
    content = read(name)
    if kind == "grid":
        return markdown_grid(content) + "\n"
    return markdown_lines(content, *(word.strip() for word in (wanted or "").split(";") if word)) + "\n"


def seconds() -> str:
    """How long each way to refit takes."""
    content = read("paper/refit")
    ways = list(next(iter(content["seconds"].values())))
    lines = [f"| | {' | '.join(ways)} |", f"|---|{'---:|' * len(ways)}"]
    for name, found in content["seconds"].items():
        lines.append(f"| {readable(name, content)} | {' | '.join(f'{median(found[way]):.2f}' for way in ways)} |")
    return "\n".join(lines) + "\n"


def variants() -> str:
    """The ways to probabilities of both profiles, by what becomes of the paper's first verification figure."""
    lines = ["| SVMs | probabilities | MaxRR | perfect |", "|---|---|---:|---:|"]
    for name in ("paper", "svc"):
        content = read(f"{name}/verification")
        for variant, cells in content["variants"].items():
            shares = (
                f"{100 * cells[f'claimed in all runs, {method}']['mean']:.1f} %" for method in ("MaxRR", "perfect")
            )
            heads = content["setting"]["profile"]["heads"]
            words = COUPLED[variant] if heads == "one-vs-one" else confidence.VARIANTS[variant]
            lines.append(f"| {heads} | {words} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def read(name: str) -> dict[str, Any]:
    """A result file."""
    found: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
