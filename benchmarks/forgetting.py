"""What forgetting costs, beside the floor: one product of all samples with all weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from comparing import tied_heads
from features import Floats, Labels
from maxrr import LinearSVM
from maxrr.svm.arrays import Ints


@dataclass(frozen=True)
class Forgotten:
    """One kind of request, in medians over its repeats; passes and cold solves are the most seen."""

    problem: str
    n: int
    request: str
    most_floors: int | None  # asked for: so many floors at most,
    least_speedup: int | None  # so many times faster than a fit at least,
    most_passes: int | None  # and so many passes at most
    repeats: int
    milliseconds: float
    floor_ms: float
    fit_ms: float
    passes: int
    cold_solves: int
    same_bytes: bool  # as a fit from scratch
    difference: float  # the largest between weights of the two
    decided: bool  # whether the certificates of all heads claim the same bytes


def run(X: Floats, y: Labels, C: float, console: Console) -> Iterator[Forgotten]:
    """Requests to a model of all classes; if a head is tied, also to one without its class.

    A head with w = 0 has all samples of its larger side exactly on the margin. Every sample is influential then, and
    each request solves that head again.
    """
    classes = np.unique(y)
    with console.status(f"fitting {len(X):,} samples"):
        model = LinearSVM(C=C).fit(X, y)
    yield from requests(model, X, y, f"all {len(classes)} classes", console)
    tied = classes[tied_heads(model)] if len(classes) > 2 else classes[:0]
    if len(tied):
        rest = ~np.isin(y, tied)
        X, y = X[rest], y[rest]
        model = LinearSVM(C=C).fit(X, y)
        names = ", ".join(map(str, tied))
        yield from requests(model, X, y, f"without class {names}, whose head has w = 0", console)


def requests(model: LinearSVM, X: Floats, y: Labels, problem: str, console: Console) -> Iterator[Forgotten]:
    """Every kind of request that the model has samples for."""
    weights, rng = model.coef_, np.random.default_rng(2)
    with console.status(f"{problem}: floor and fit"):
        floor_ms = median(milliseconds(lambda: X @ weights.T) for _ in range(50))
        fit_ms = median(milliseconds(lambda: LinearSVM(C=model.C).fit(X, y)) for _ in range(3))

    everyone = np.arange(len(X))
    untied = [rows for rows, tied in zip(model.influential_, tied_heads(model), strict=True) if not tied]
    influential = everyone[np.isin(everyone, np.concatenate(untied))] if untied else everyone[:0]
    kinds = (
        ("influential", influential, 1, 20, (3, 60, None)),
        ("influential", influential, 30, 3, (None, 10, None)),
        ("influential", influential, 1000, 3, (None, 4, None)),
        ("only in a head with w = 0", np.setdiff1d(model.support_, influential), 1, 5, (None, None, None)),
        ("not influential", np.setdiff1d(everyone, model.support_), 1000, 3, (None, None, 0)),
    )
    for kind, candidates, wanted, repeats, goals in kinds:
        count = min(wanted, len(candidates) // 2)
        if count == 0:
            continue
        request = f"{count:,} {kind}"
        row = partial(Forgotten, problem, len(X), request, *goals, floor_ms=floor_ms, fit_ms=fit_ms)
        with console.status(f"{problem}: forgetting {request}"):
            draws = [rng.choice(candidates, count, replace=False) for _ in range(repeats)]
            yield repeat(model, X, y, draws, row)


def repeat(model: LinearSVM, X: Floats, y: Labels, draws: list[Ints], row: Callable[..., Forgotten]) -> Forgotten:
    """Send each request to the model, which stays as it is; compare the last one with a fit from scratch."""
    times, works = [], []
    for rows in draws:
        start = perf_counter()
        changed = model._without(rows)
        times.append(1e3 * (perf_counter() - start))
        works.append(changed._fitted.solution.work)
    kept = np.delete(np.arange(len(X)), rows)
    scratch = LinearSVM(C=model.C).fit(X[kept], y[kept])
    same = all(getattr(changed, name).tobytes() == getattr(scratch, name).tobytes() for name in ("coef_", "intercept_"))
    difference = max(
        float(np.max(np.abs(changed.coef_ - scratch.coef_))),
        float(np.max(np.abs(changed.intercept_ - scratch.intercept_))),
    )
    return row(
        repeats=len(draws),
        milliseconds=median(times),
        passes=max(work.passes for work in works),
        cold_solves=max(work.cold_solves for work in works),
        same_bytes=same,
        difference=difference,
        decided=all(head.decided for head in scratch.certificate_),
    )


def milliseconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = perf_counter()
    work()
    return 1e3 * (perf_counter() - start)


def tables(rows: list[Forgotten]) -> list[Table]:
    """One table a problem, with a row for each kind of request."""
    tables = []
    for problem in dict.fromkeys(row.problem for row in rows):
        of_problem = [row for row in rows if row.problem == problem]
        first = of_problem[0]
        table = Table(
            "forgotten",
            title=f"forget: {problem}, {first.n:,} samples",
            caption=f"medians. floor: one product of all samples with all weights, {first.floor_ms:.2f} ms. fit: "
            f"{first.fit_ms:,.0f} ms. passes, cold solves: the most in any repeat. same bytes: as a fit from scratch "
            "without them, in one repeat. In brackets: what is asked for.",
        )
        for heading in ("repeats", "ms", "× floor", "fit / forget", "passes", "cold solves", "same bytes"):
            table.add_column(heading, justify="right")
        for row in of_problem:
            different = f"no, by {row.difference:.0e}" + " (not decided)" * (not row.decided)
            table.add_row(
                row.request,
                str(row.repeats),
                f"{row.milliseconds:,.1f}",
                f"{row.milliseconds / row.floor_ms:,.1f}" + asked("≤", row.most_floors),
                f"{row.fit_ms / row.milliseconds:,.1f}" + asked("≥", row.least_speedup),
                f"{row.passes}" + asked("≤", row.most_passes),
                str(row.cold_solves),
                "yes" if row.same_bytes else different,
            )
        tables.append(table)
    return tables


def asked(sign: str, bound: int | None) -> str:
    return "" if bound is None else f" ({sign} {bound})"
