"""Draw the plots of benchmarks/svm.md from saved results: `python benchmarks/plot.py RESULTS [FOLDER]`."""

import json
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import typer
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from comparing import OURS, ROUNDING

IMAGES = Path(__file__).parents[1] / "docs" / "img"
LOOK: dict[Any, Any] = {
    "figure.figsize": (7, 4.2),
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 6,
    "svg.hashsalt": "maxrr",  # the same drawing gives the same file
}
# Series differ in marker and line as well as in grey; each label sits beside one of its points.
STYLES: dict[str, dict[str, Any]] = {
    OURS: {"marker": "*", "markersize": 16, "color": "black", "linestyle": "none"},
    "LinearSVC": {"marker": "o", "color": "black", "linestyle": "-"},
    "SVC": {"marker": "s", "color": "0.45", "linestyle": "--"},
    "Clarabel": {"marker": "^", "color": "0.45", "linestyle": ":", "markerfacecolor": "white"},
}


def main(results: Path, folder: Annotated[Path, typer.Argument()] = IMAGES, suffix: str = "svg") -> None:
    """Draw whatever the results contain."""
    measured = json.loads(results.read_text())
    for part, draw in {"scaling": scaling, "accuracy": accuracy}.items():
        if part in measured:
            with mpl.rc_context(LOOK):
                figure, axes = plt.subplots()
                axes.set(xscale="log", yscale="log")
                draw(axes, measured[part]["rows"])
                name = {"scaling": "svm-scaling", "accuracy": "svm-accuracy-time"}[part]
                folder.mkdir(parents=True, exist_ok=True)
                file = folder / f"{name}.{suffix}"
                figure.savefig(file, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
                plt.close(figure)
                print(file)


def scaling(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Seconds of a fit against samples, beside a line of slope 1 through the largest."""
    n, seconds = [row["n"] for row in rows], [row["seconds"] for row in rows]
    linear = [seconds[-1] * size / n[-1] for size in n]
    axes.plot(n, linear, color="0.6", linestyle="--")
    axes.plot(n, seconds, marker="o", color="black")
    # Texts go to the far side of both lines: the measured one may start above the other or below it.
    above, below = ((-4, 6), "right", "bottom"), ((4, -6), "left", "top")
    near_line, near_points = (below, above) if linear[0] < seconds[0] else (above, below)
    (_, up), _, va = near_line
    beside(axes, "linear in n", n[0], linear[0], (0, 2 * up), ha="center", va=va, color="0.4")
    for size, time in zip(n, seconds, strict=True):
        offset, ha, va = near_points
        beside(axes, f"{time:.3g} s", size, time, offset, ha=ha, va=va)
    axes.set_xticks(n, [f"{size:,}" for size in n])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.minorticks_off()
    axes.margins(x=0.15, y=0.15)
    axes.set(xlabel="samples", ylabel="seconds", title="Fitting ten heads to 64 features, C = 1")


def accuracy(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Relative gap against seconds: a line a peer, a point for ours."""
    for solver, style in STYLES.items():
        points = [row for row in rows if row["solver"] == solver and row["finished"]]
        if not points:
            continue
        x, y = [row["seconds"] for row in points], [max(row["gap"], ROUNDING) for row in points]
        axes.plot(x, y, **style)
        first = points[0]
        name = solver
        if first["heads_solved"] < first["heads"]:
            heads = "1 head" if first["heads_solved"] == 1 else f"{first['heads_solved']} heads"
            name += f"\n({heads} × {first['heads'] / first['heads_solved']:g})"
        if solver == "Clarabel":  # the only peer that goes down to where nothing else is
            beside(axes, name, x[-1], y[-1], (8, 4), ha="left", va="bottom")
        else:
            beside(axes, name, x[0], y[0], (0, 10), ha="center", va="bottom")
    axes.axhline(ROUNDING, color="0.8", linewidth=0.8, zorder=0)
    axes.text(0.01, ROUNDING, "rounding", color="0.4", va="bottom", transform=axes.get_yaxis_transform())
    axes.margins(x=0.2)
    axes.set_ylim(ROUNDING / 30, 1e2)
    axes.set(xlabel="seconds for all heads", ylabel="relative gap to the optimum, worst head")
    axes.set_title(f"{rows[0]['n']:,} samples, {rows[0]['heads']} heads, C = {rows[0]['C']:g}")


def beside(axes: Axes, text: str, x: float, y: float, offset: tuple[float, float], **how: Any) -> None:
    """Text next to a point, so many typographic points away."""
    axes.annotate(text, (x, y), offset, textcoords="offset points", **how)


if __name__ == "__main__":
    typer.run(main)
