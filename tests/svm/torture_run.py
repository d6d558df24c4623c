"""Fit, forget and insert on the families of `torture`, and count every claim of a certificate that does not hold.

    python -m tests.svm.torture_run --fits 100 --most 2000 --seed 0

A draw is a family, samples, and C. It follows from its seed, `--most`, and the families asked for; a line about a
failure ends with the options that make the same draw again. The checks are plain NumPy and know nothing of the solver.
The exit code is 1 if a claim was false, a head was not solved, or anything raised. With `--weighted` samples weigh from
1e-3 to 1e3.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxrr import LinearSVM
from maxrr.svm import ConvergenceError
from tests.svm.oracles import with_clarabel
from tests.svm.torture import FAMILIES

PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
LEAST = 30
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Draw:
    """Samples in random order, C, and what makes them again."""

    family: str
    seed: int
    most: int
    C: float
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def again(self) -> str:
        weighted = "" if (self.weights == 1.0).all() else " --weighted"
        return f"--only {self.seed} --family {self.family} --most {self.most}{weighted}"


def draw(seed: int, most: int, families: Iterable[str] = FAMILIES, weighted: bool = False) -> Draw:
    """The draw of this seed. Seeds in a row take families in turn."""
    names = list(families)
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(LEAST), np.log(most + 1))))
    C = float(rng.choice(PENALTIES))
    X, y = FAMILIES[names[seed % len(names)]](rng, n)
    order = rng.permutation(len(y))
    weights = 10.0 ** rng.uniform(-3.0, 3.0, len(y)) if weighted else np.ones(len(y))
    return Draw(names[seed % len(names)], seed, most, C, X[order], y[order], weights)


class Head(NamedTuple):
    """One head as it was: a copy, which later requests do not change."""

    w: NDArray[np.float64]
    b: float
    certificate: Any

    def bytes(self) -> bytes:
        return self.w.tobytes() + np.float64(self.b).tobytes()


def heads(model: LinearSVM) -> dict[int, Head]:
    """By the label that a head has on its positive side. Two classes share one head, that of the larger label."""
    positives = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    parts = zip(positives.tolist(), model.coef_, model.intercept_, model.certificate_, strict=True)
    return {label: Head(w.copy(), float(b), certificate) for label, w, b, certificate in parts}


def objective(X: NDArray, signs: NDArray, C: NDArray, w: NDArray, b: float) -> tuple[float, float]:
    """½|w|² + Σ Cᵢ max(0, 1 − marginᵢ), and a bound on what rounding does to this number."""
    slack = np.maximum(0.0, 1.0 - signs * (X @ w + b))
    sizes = np.abs(X) @ np.abs(w) + abs(b) + 1.0
    value = 0.5 * float(w @ w) + float(C @ slack)
    return value, EPS * ((X.shape[1] + 4) * float(C @ sizes) + (len(signs) + X.shape[1]) * value)


@dataclass
class Outcome:
    """What one draw showed. `failures` are lines to print; the numbers count heads, or requests that raised."""

    family: str
    seed: int
    n: int
    d: int
    C: float
    fits: int = 0
    updates: int = 0
    heads: int = 0
    undecided: int = 0
    unbounded: int = 0  # solved, but with no finite bound on an error
    unsolved: int = 0
    exceptions: int = 0
    false_claims: int = 0
    fit_seconds: float = 0.0  # the slowest fit
    largest_error: float = 0.0  # the largest finite bound on a decision value
    oracle: str = ""  # "", "agrees", "gave up" or "disagrees"
    failures: list[str] = field(default_factory=list)


class Checker:
    """All checks of one draw; `outcome` collects what they find, and no check raises."""

    def __init__(self, problem: Draw) -> None:
        self.problem = problem
        n, d = problem.X.shape
        self.outcome = Outcome(problem.family, problem.seed, n, d, problem.C)
        # Not the generator that made the samples: what is forgotten must not follow them.
        self.rng = np.random.default_rng([problem.seed, 1])

    def fail(self, kind: str, what: str) -> None:
        setattr(self.outcome, kind, getattr(self.outcome, kind) + 1)
        problem = self.problem
        self.outcome.failures.append(
            f"{kind.upper().replace('_', ' ')}: {problem.family} seed={problem.seed} n={len(problem.y)} "
            f"d={problem.X.shape[1]} C={problem.C:g}: {what} [{problem.again}]"
        )

    def attempt(self, what: str, action: Callable[..., Any], *given: Any) -> bool:
        """Whether the action ended. An exception is counted."""
        try:
            action(*given)
        except ConvergenceError as error:
            self.fail("unsolved", f"{what}: {error}")
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.fail("exceptions", f"{what}: {type(error).__name__}: {error} ({place.name}, line {place.lineno})")
        else:
            return True
        return False

    def fit(self, what: str, rows: NDArray) -> LinearSVM | None:
        """From scratch on these rows, in this order."""
        problem = self.problem
        model = LinearSVM(problem.C)
        begin = time.perf_counter()
        given = problem.X[rows], problem.y[rows], problem.weights[rows]
        ended = self.attempt(what, lambda X, y, weights: model.fit(X, y, sample_weight=weights), *given)
        self.outcome.fits += 1
        self.outcome.fit_seconds = max(self.outcome.fit_seconds, time.perf_counter() - begin)
        return model if ended else None

    def look(self, what: str, model: LinearSVM, rows: NDArray) -> dict[int, Head]:
        """The heads of a model that holds these rows: solved, finite, and no worse than w = 0 with its best bias."""
        problem, outcome = self.problem, self.outcome
        found = heads(model)
        X, y = problem.X[rows], problem.y[rows]
        if model.classes_.tolist() != np.unique(y).tolist():
            self.fail("false_claims", f"{what}: classes {model.classes_.tolist()}, not {np.unique(y).tolist()}")
        for label, head in found.items():
            stated = head.certificate
            bounds = [stated.weight_error, stated.bias_error, stated.error]
            outcome.heads += 1
            outcome.undecided += not stated.decided
            if not stated.solved:
                self.fail("unsolved", f"{what}: head {label} has a relative gap of {stated.relative_gap:.3g}")
            if not (np.isfinite(head.w).all() and np.isfinite(head.b)):
                self.fail("false_claims", f"{what}: head {label} is not finite")
                continue
            if not all(bound >= 0.0 for bound in bounds):
                self.fail("false_claims", f"{what}: head {label} states the bounds {bounds}")
            elif not np.isfinite(bounds).all():
                outcome.unbounded += 1
            else:
                outcome.largest_error = max(outcome.largest_error, stated.error)
            signs = np.where(y == label, 1.0, -1.0)
            C = problem.C * problem.weights[rows]
            value, rounding = objective(X, signs, C, head.w, head.b)
            idle = 2.0 * float(min(np.sum(C[signs > 0]), np.sum(C[signs < 0])))
            if value > (1.0 + 1e-9) * idle + rounding:
                self.fail("false_claims", f"{what}: head {label} has the objective {value!r}; w = 0 has {idle!r}")
        return found

    def compare(self, what: str, ours: dict[int, Head], theirs: dict[int, Head], rows: NDArray) -> None:
        """Two computations on the same rows: equal bytes where both are decided, else within what both state."""
        X = self.problem.X[rows]
        if ours.keys() != theirs.keys():
            self.fail("false_claims", f"{what}: heads of {sorted(ours)} and of {sorted(theirs)}")
        for label in ours.keys() & theirs.keys():
            one, two = ours[label], theirs[label]
            if one.bytes() == two.bytes() or not all(np.isfinite(head.w).all() for head in (one, two)):
                continue
            change, shift = one.w - two.w, one.b - two.b
            moved = float(np.max(np.abs(X @ change + shift) - 4 * X.shape[1] * EPS * (np.abs(X) @ np.abs(change))))
            apart = {"weight_error": float(np.linalg.norm(change)), "bias_error": abs(shift), "error": moved}
            if one.certificate.decided and two.certificate.decided:
                size = float(np.linalg.norm(two.w))
                self.fail(
                    "false_claims",
                    f"{what}: head {label} is decided twice, with other bytes: |Δw| = {apart['weight_error']:.3g} "
                    f"of {size:.3g}, |Δb| = {abs(shift):.3g}",
                )
            for name, distance in apart.items():
                stated = getattr(one.certificate, name) + getattr(two.certificate, name)
                if distance > stated * (1.0 + 1e-12):
                    self.fail(
                        "false_claims", f"{what}: head {label} is {distance:.3g} apart, {name} states {stated:.3g}"
                    )

    def ask_clarabel(self, found: dict[int, Head]) -> None:
        """The objective of one head is at most Clarabel's, up to 1e-6, and its weights are as near as both allow.

        Both objectives are those of points, so the lower one is nearer to the optimum, however well Clarabel did. By
        strong convexity its weights are within √(2 × what it lacks) of the solution.
        """
        problem = self.problem
        label = int(self.rng.choice(sorted(found)))
        head = found[label]
        signs, C = np.where(problem.y == label, 1.0, -1.0), problem.C * problem.weights
        try:
            w, b, _ = with_clarabel(problem.X, signs, C)
        except AssertionError:
            self.outcome.oracle = "gave up"
            return
        ours, our_rounding = objective(problem.X, signs, C, head.w, head.b)
        theirs, their_rounding = objective(problem.X, signs, C, w, float(b))
        rounding = our_rounding + their_rounding
        failures = len(self.outcome.failures)
        if not ours <= (1.0 + 1e-6) * theirs + rounding:
            self.fail("false_claims", f"Clarabel: head {label} has the objective {ours!r}, Clarabel {theirs!r}")
        lacking = max(0.0, theirs - ours * (1.0 - max(0.0, head.certificate.relative_gap))) + rounding
        distance = float(np.linalg.norm(head.w - w))
        stated = head.certificate.weight_error + np.sqrt(2.0 * lacking)
        if distance > stated * (1.0 + 1e-12):
            self.fail("false_claims", f"Clarabel: head {label} is {distance:.3g} apart, {stated:.3g} is possible")
        self.outcome.oracle = "agrees" if len(self.outcome.failures) == failures else "disagrees"

    def choose(self, model: LinearSVM, numbers: NDArray, size: int) -> NDArray:
        """Rows to forget, about half of them influential as far as there are such."""
        influential = np.isin(numbers, model.support_)
        parts = [self.rng.permutation(np.flatnonzero(influential)), self.rng.permutation(np.flatnonzero(~influential))]
        half = self.rng.binomial(size, 0.5)
        parts = [parts[0][:half], parts[1][: size - half]]
        return self.rng.permutation(np.concatenate(parts))

    def run(self, oracle: bool | None = None) -> Outcome:
        """All of it. Clarabel is asked if `oracle` says so; left open, in one of twenty small draws."""
        problem, rng = self.problem, self.rng
        n = len(problem.y)
        everything = np.arange(n)
        by_chance = rng.random() < 0.05 and n <= 600  # drawn in any case: what is forgotten must not depend on `oracle`
        ask = by_chance if oracle is None else oracle
        model = self.fit("fit", everything)
        if model is None:
            return self.outcome
        original = self.look("fit", model, everything)

        shuffled = self.fit("permuted", order := rng.permutation(n))
        if shuffled is not None:
            self.compare("permuted", self.look("permuted", shuffled, order), original, everything)

        numbers, used = everything.copy(), n  # the model's row numbers for ours, and how many it has given out
        for size in (int(rng.integers(1, 9)), max(1, round(0.1 * n))):
            gone = self.choose(model, numbers, size)
            kept = np.setdiff1d(everything, gone)
            if not len(gone) or len(np.unique(problem.y[kept])) < 2:
                continue
            self.outcome.updates += 1
            what = f"forget {len(gone)}"
            if not self.attempt(what, lambda rows=numbers[gone]: model.forget(rows)):
                continue
            forgotten = self.look(what, model, kept)
            scratch = self.fit(f"fit without {len(gone)}", kept)
            if scratch is not None:
                theirs = self.look(f"fit without {len(gone)}", scratch, kept)
                self.compare(what, forgotten, theirs, kept)
            self.outcome.updates += 1
            what = f"insert {len(gone)}"
            arriving = problem.X[gone], problem.y[gone], problem.weights[gone]
            if not self.attempt(what, lambda X, y, weights: model.insert(X, y, sample_weight=weights), *arriving):
                break
            numbers[gone], used = used + np.arange(len(gone)), used + len(gone)
            self.compare(what, self.look(what, model, everything), original, everything)

        if ask:
            self.ask_clarabel(original)
        return self.outcome


def check(problem: Draw, oracle: bool | None = None) -> Outcome:
    """Every check of one draw. What failed is in `failures`; the solver's exceptions are counted, not raised."""
    return Checker(problem).run(oracle)


def table(outcomes: list[Outcome]) -> str:
    """One line a family, and one for all of them."""
    columns = ("family", "draws", "fits", "updates", "heads", "undecided", "unbounded", "unsolved", "exceptions",
               "false claims", "largest error", "slowest fit")  # fmt: skip
    lines = [columns]
    for name in [*sorted({outcome.family for outcome in outcomes}), "all"]:
        of = [outcome for outcome in outcomes if name in (outcome.family, "all")]
        counts = [sum(getattr(outcome, key.replace(" ", "_")) for outcome in of) for key in columns[2:10]]
        slow = max(of, key=lambda outcome: outcome.fit_seconds)
        slowest = f"{slow.fit_seconds:.2f} s (n={slow.n} d={slow.d} C={slow.C:g} seed={slow.seed})"
        error = f"{max(outcome.largest_error for outcome in of):.1e}"
        lines.append((name, str(len(of)), *map(str, counts), error, slowest))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.svm.torture_run", description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100, help="how many draws; each is fitted several times")
    parser.add_argument("--most", type=int, default=2000, help=f"n is log-uniform in {LEAST} … this")
    parser.add_argument("--seed", type=int, default=0, help="draws have the seeds 1,000,000 × this and those after it")
    parser.add_argument("--family", nargs="+", choices=list(FAMILIES), default=list(FAMILIES), metavar="NAME")
    parser.add_argument("--weighted", action="store_true", help="samples weigh from 1e-3 to 1e3")
    parser.add_argument("--out", help="a JSON line for each draw")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no draw after this time")
    parser.add_argument("--only", type=int, metavar="SEED", help="the draw of this seed alone, with Clarabel")
    options = parser.parse_args(arguments)
    first = 1_000_000 * options.seed
    seeds = range(first, first + options.fits) if options.only is None else [options.only]
    begin, outcomes = time.perf_counter(), []
    for seed in seeds:
        if time.perf_counter() - begin > options.seconds:
            break
        problem = draw(seed, options.most, options.family, options.weighted)
        outcome = check(problem, oracle=None if options.only is None else len(problem.y) <= 600)
        outcomes.append(outcome)
        for line in outcome.failures:
            print(line, flush=True)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
    if not outcomes:
        print("No draw.")
        return 0
    print(table(outcomes))
    asked = [outcome.oracle for outcome in outcomes if outcome.oracle]
    print(f"{time.perf_counter() - begin:.0f} s; Clarabel: " + ", ".join(
        f"{asked.count(answer)} {answer}" for answer in ("agrees", "gave up", "disagrees")
    ))  # fmt: skip
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
