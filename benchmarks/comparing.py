"""How long solvers take, and how far from the solution they stop.

Nobody's own report is used. From each solver's weights we recompute the margins mᵢ = yᵢ (w·xᵢ + b) and the objective
P = ½|w|² + C Σ max(0, 1 − mᵢ), and compare it with D = Σ αᵢ − ½|Σ αᵢyᵢxᵢ|² at our multipliers, a lower bound of the
optimum. The relative gap is (P − D) / D, the worst over heads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from features import Floats, Labels, signs
from maxrr import LinearSVM
from peers import Answer, Peer, Worker

TOLERANCE = 1e-9  # a margin up to 1 + this makes a sample influential
TIED = 1000  # a head with more free samples than this has w = 0: all of the larger side lies on the margin
OURS = "LinearSVM (ours)"
ASKED = {("LinearSVC", "tol 1e-4, ≤ 20,000 iterations", 1.0): 10, ("SVC", "tol 1e-3", 1.0): 100}  # times our seconds
ROUNDING = 1e-15  # P and D are sums of many terms: gaps below this are not seen


@dataclass(frozen=True)
class Measured:
    """One row: a solver's time and what its answer is worth. Without an answer, `seconds` is what it exceeded."""

    solver: str
    setting: str
    C: float
    n: int
    heads: int
    heads_solved: int
    seconds: float
    finished: bool
    stopped: bool = False
    gap: float | None = None
    wrong: int | None = None
    wrong_tied: int | None = None


@dataclass(frozen=True)
class Optimum:
    """The certified solution, from our multipliers: a lower bound of each head's optimum, and who is influential."""

    X: Floats
    signs: Floats
    C: float
    dual: Floats
    influential: NDArray[np.bool_]
    tied: NDArray[np.bool_]

    @classmethod
    def of(cls, model: LinearSVM, X: Floats, y: Labels) -> "Optimum":
        every = signs(y)
        dual, influential = np.empty(len(every)), np.zeros(every.shape, dtype=bool)
        for head, (rows, alpha) in enumerate(zip(model.influential_, model.multipliers_, strict=True)):
            combination = (alpha * every[head, rows]) @ X[rows]
            dual[head] = alpha.sum() - 0.5 * combination @ combination
            influential[head, rows] = True
        return cls(X, every, model.C, dual, influential, tied_heads(model))

    def judge(self, answer: Answer) -> tuple[float, int, int]:
        """Worst relative gap; samples with a wrong status in any head that is not tied, and in any head at all."""
        heads = len(answer.coef)
        margins = self.signs[:heads] * (answer.coef @ self.X.T + answer.intercept[:, None])
        losses = self.C * np.maximum(0.0, 1.0 - margins).sum(axis=1)
        primal = 0.5 * np.sum(answer.coef**2, axis=1) + losses
        gaps = (primal - self.dual[:heads]) / self.dual[:heads]
        wrong = (margins <= 1.0 + TOLERANCE) != self.influential[:heads]
        untied = wrong[~self.tied[:heads]]
        return float(np.max(np.abs(gaps))), int(untied.any(axis=0).sum()), int(wrong.any(axis=0).sum())


def tied_heads(model: LinearSVM) -> NDArray[np.bool_]:
    return np.array([head.on_margin > TIED for head in model.certificate_])


def ours(X: Floats, y: Labels, C: float, repeats: int = 3) -> tuple[Answer, Optimum]:
    """Our answer, with the median time of some fits."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        model = LinearSVM(C=C).fit(X, y)
        seconds.append(perf_counter() - start)
    return Answer(median(seconds), model.coef_, model.intercept_), Optimum.of(model, X, y)


def run(X: Floats, y: Labels, C: float, peers: list[Peer], worker: Worker, console: Console) -> Iterator[Measured]:
    """Ours, and then each peer."""
    with console.status(f"C = {C:g}: {OURS}"):
        answer, optimum = ours(X, y, C)
    every = len(optimum.signs)
    yield judged(OURS, "median of 3", answer, optimum)
    for peer in peers:
        heads = min(peer.heads or every, every)
        what = f"C = {C:g}: {peer.name}, {peer.setting}, {heads} of {every} heads (at most {worker.limit:.0f} s)"
        with console.status(what):
            found = worker.solve(peer.solve, X, y, C)
        if found:
            yield judged(peer.name, peer.setting, found, optimum)
        else:
            seconds = worker.limit * every / heads
            yield Measured(peer.name, peer.setting, C, len(X), every, heads, seconds, finished=False)


def judged(solver: str, setting: str, answer: Answer, optimum: Optimum) -> Measured:
    gap, wrong, wrong_tied = optimum.judge(answer)
    return Measured(
        solver, setting, optimum.C, len(optimum.X), len(optimum.signs), len(answer.coef), answer.seconds,
        finished=True, stopped=answer.stopped, gap=gap, wrong=wrong, wrong_tied=wrong_tied,
    )  # fmt: skip


def table(rows: list[Measured], title: str) -> Table:
    """One row a solver."""
    caption = (
        "relative gap: (P − D) / D, worst over the heads solved; P recomputed from the weights, D our dual objective. "
        f"wrong: samples on the other side of margin 1 + {TOLERANCE:g} than in our solution, in any head"
    )
    if any(row.wrong_tied != row.wrong for row in rows):
        caption += " but those with w = 0, where all of the larger side lies on the margin (in brackets: with these)"
    caption += ". LinearSVC penalises the bias as well: its own optimum is another one."
    if any(row.stopped for row in rows):
        caption += " *: stopped by a limit, before it reached its tolerance."
    table = Table("C", "solver", "setting", title=title, caption=caption)
    for heading in ("seconds", "relative gap", "wrong", "× ours"):
        table.add_column(heading, justify="right")
    fit_of_ours = {row.C: row.seconds for row in rows if row.solver == OURS}
    for row in rows:
        if row.solver == OURS:
            table.add_section()
        asked = ASKED.get((row.solver, row.setting, row.C))
        more = "" if row.finished else "> "
        table.add_row(
            f"{row.C:g}",
            label(row),
            row.setting + "*" * row.stopped,
            f"{more}{row.seconds:,.2f}",
            "" if row.gap is None else f"{row.gap:.0e}" if row.gap > ROUNDING else f"< {ROUNDING:.0e}",
            "" if row.wrong is None else f"{row.wrong:,}" + (f" ({row.wrong_tied:,})" * (row.wrong != row.wrong_tied)),
            f"{more}{row.seconds / fit_of_ours[row.C]:,.1f}" + (f" (asked ≥ {asked})" if asked else ""),
        )
    return table


def label(row: Measured) -> str:
    """The solver, and how its seconds were scaled."""
    scale = row.heads / row.heads_solved
    return (
        row.solver if scale == 1 else f"{row.solver}, {row.heads_solved} head{'s' * (row.heads_solved > 1)} × {scale:g}"
    )
