"""Small problems against the exact oracle, many of them: `python -m tests.svm.oracle_run --help`.

Every model is held against the solution in rational arithmetic: its errors must be within the stated bounds, and where
a head is decided its bytes must be those of the exact solution, rounded by the specified rule, which is written
down here a second time. A problem is fitted, fitted in another order, a record is forgotten and inserted again. With
`--weighted` samples weigh from 1e-3 to 1e3, or whole numbers and nothing, or one class weighs 50 times the other.
"""

import argparse
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from maxrr import LinearSVM
from maxrr.svm import FlatHeadWarning
from tests.svm.exact_oracle import Exact, solve
from tests.svm.nasty import FAMILIES, problem

THETA = Fraction(6369051672525773, 2**53)  # about 1/√2
OFFSET = Fraction(3730904090310553, 2**53)  # about √2 − 1


def published(x: Fraction, floor: int) -> float:
    """The canonical form of an exact number, by its definition."""
    exponent = max(log2_floor(THETA * abs(x)), floor) if x else floor
    steps = math.floor(abs(x) * Fraction(2) ** (64 - exponent) + OFFSET)
    rounded = float(steps * Fraction(2) ** (exponent - 64))
    return (-rounded if x < 0 else rounded) + 0.0


def log2_floor(x: Fraction) -> int:
    """⌊log₂ x⌋ for x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if x >= Fraction(2) ** guess else guess - 1


def faults(model: LinearSVM, X: NDArray, exact: Exact, rows: NDArray) -> Iterator[str]:
    """What a model claims about its one head and is not so. `rows` are the model's rows of the samples X."""
    (certificate,), (w,), (b,) = model.certificate_, model.coef_, model.intercept_
    away = sum((Fraction(float(value)) - true) ** 2 for value, true in zip(w, exact.w, strict=True))
    if away > Fraction(certificate.weight_error) ** 2:
        yield f"w is {math.sqrt(away):.1e} off, and {certificate.weight_error:.1e} is stated"
    off = abs(Fraction(float(b)) - exact.b)
    if off > Fraction(certificate.bias_error):
        yield f"b is {float(off):.1e} off, and {certificate.bias_error:.1e} is stated"
    for x in X:
        score = sum(
            (Fraction(float(value)) * Fraction(float(part)) for value, part in zip(w, x, strict=True)),
            Fraction(float(b)),
        )
        true = sum((value * Fraction(float(part)) for value, part in zip(exact.w, x, strict=True)), exact.b)
        if abs(score - true) > Fraction(certificate.error):
            yield "a decision value is further off than stated"
    if certificate.decided:
        shaping = {number for number, margin in enumerate(exact.margins) if margin <= 1 + Fraction(1, 2**60)}
        if set(np.flatnonzero(np.isin(rows, model.support_)).tolist()) != shaping:
            yield "other records are influential"
        sizes = [abs(Fraction(float(part))) for number in shaping for part in X[number]]
        largest = max(sizes)
        exponent = log2_floor(largest) + 1 if largest else 0
        wanted = [published(value, -100 - exponent) for value in exact.w]
        if w.tobytes() != np.array(wanted).tobytes():
            yield f"w is decided as {w}, and should be {wanted}"
        if np.float64(b).tobytes() != np.float64(published(exact.b, -100)).tobytes():
            yield f"b is decided as {b}, and should be {published(exact.b, -100)}"


def weights(y: NDArray, seed: int) -> NDArray[np.float64]:
    """Sample weights of one kind or another, above zero for some sample of each label."""
    rng = np.random.default_rng([seed, 1])
    kinds = (
        10.0 ** rng.uniform(-3.0, 3.0, len(y)),
        rng.integers(0, 4, len(y)).astype(float),
        np.where(y > 0, 50.0, 1.0),
    )
    chosen = kinds[seed % 3]
    for label in (-1, 1):
        if not chosen[y == label].any():
            chosen[np.flatnonzero(y == label)[0]] = 1.0
    return chosen


def check(family: str, seed: int, weighted: bool = False) -> tuple[Counter[str], list[str]]:
    """Counts of what was looked at, and what was wrong."""
    X, y, C = problem(family, seed)
    w = weights(y, seed) if weighted else np.ones(len(y))
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    wrong: list[str] = []

    def look(what: str, model: LinearSVM, places: NDArray, rows: NDArray) -> None:
        """`rows` are the model's rows of the samples in `places`."""
        counts["heads"] += 1
        counts["undecided"] += not model.certificate_[0].decided
        counting = places[w[places] > 0.0]
        exact = solve(X[counting], y[counting], [Fraction(C) * Fraction(float(weight)) for weight in w[counting]])
        found = faults(model, X[counting], exact, rows[w[places] > 0.0])
        wrong.extend(f"{family} {seed} {what}: {fault}" for fault in found)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlatHeadWarning)
            everything = np.arange(len(y))
            model = LinearSVM(C).fit(X, y, sample_weight=w)
            look("fit", model, everything, everything)
            order = rng.permutation(len(y))
            look("permuted", LinearSVM(C).fit(X[order], y[order], sample_weight=w[order]), order, everything)
            gone = int(rng.integers(len(y)))
            kept = np.delete(everything, gone)
            if len(set(y[kept][w[kept] > 0.0])) == 2:
                model.forget([gone])
                look("forget", model, kept, kept)
                model.insert(X[[gone]], y[[gone]], sample_weight=w[[gone]])
                look("insert", model, np.append(kept, gone), np.append(kept, len(y)))
    except Exception as error:
        wrong.append(f"{family} {seed}: {type(error).__name__}: {error}")
        counts["failed"] += 1
    return counts, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000, help="how many, over all families")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--family", action="append", help="only these")
    parser.add_argument("--weighted", action="store_true", help="samples weigh differently")
    given = parser.parse_args()
    families = given.family or list(FAMILIES)
    each = -(-given.problems // len(families))
    started, faults_found = time.perf_counter(), 0
    with ProcessPoolExecutor(given.processes, get_context("fork")) as pool:
        for family in families:
            seeds = range(given.first, given.first + each)
            total: Counter[str] = Counter()
            for counts, wrong in pool.map(check, [family] * each, seeds, [given.weighted] * each, chunksize=20):
                total += counts
                faults_found += len(wrong)
                for line in wrong:
                    print(line, flush=True)
            print(
                f"{family:18} {each:6} problems {total['heads']:7} heads {total['undecided']:4} undecided "
                f"{total['failed']:4} failed", flush=True,
            )  # fmt: skip
    print(f"{each * len(families)} problems, {faults_found} faults, {time.perf_counter() - started:.0f} s")
    raise SystemExit(faults_found > 0)


if __name__ == "__main__":
    main()
