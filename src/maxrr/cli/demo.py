"""`maxrr demo`: fit the exact SVM on scikit-learn's digits, forget, compare with never having seen the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from maxrr.cli import show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from maxrr.svm import LinearSVM

CLASS_TO_FORGET = 9


@dataclass(frozen=True)
class Digits:
    """Handwritten digits as rows of 64 pixels in [0, 1], with the training rows' stable keys."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    keys: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One request: what it removed, what that took, and the model beside one fitted from scratch without the rows."""

    forgotten: str
    forget_ms: float
    fit_ms: float
    same_bytes: bool
    worst_gap: float
    accuracy: float


def run() -> None:
    """Fit the SVM on 8 × 8 digits, forget some of them, compare with a fit from scratch."""
    from maxrr.svm import LinearSVM

    digits = load()
    model = LinearSVM(C=1.0)
    fit_ms = milliseconds(partial(model.fit, digits.X, digits.y, keys=digits.keys))

    show.say(
        f"Fitted {len(digits.y):,} digits in {fit_ms:.0f} ms: {len(model.support_)} of them influential, "
        f"test accuracy {model.score(digits.X_test, digits.y_test):.3f}."
    )
    steps = list(forget_in_steps(model, digits))
    show_table(steps)
    show.say(closing_sentence(steps))
    if not all(step.same_bytes for step in steps):
        raise SystemExit(1)


def load() -> Digits:
    """The 1,797 digits that scikit-learn carries, a quarter of them kept for testing: the same split every time."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.25, random_state=0, stratify=y)
    return Digits(X, y, np.arange(len(y)), X_test, y_test)


def forget_in_steps(model: LinearSVM, digits: Digits) -> Iterator[Step]:
    """Send four requests to a fitted model, each on top of those before it."""
    import numpy as np

    from maxrr.svm import LinearSVM

    retained = np.ones(len(digits.y), dtype=bool)
    draw = np.random.default_rng(0).choice
    requests = (
        ("100 not influential", lambda: draw(np.setdiff1d(np.flatnonzero(retained), model.support_), 100, False)),
        ("1 influential", lambda: draw(model.support_, 1, False)),
        ("30 influential", lambda: draw(model.support_, 30, False)),
        (f"every {CLASS_TO_FORGET}", lambda: np.flatnonzero(retained & (digits.y == CLASS_TO_FORGET))),
    )
    for forgotten, choose in requests:
        rows = choose()
        forget_ms = milliseconds(partial(model.forget, rows))
        retained[rows] = False

        scratch = LinearSVM(C=model.C)
        X, y, keys = digits.X[retained], digits.y[retained], digits.keys[retained]
        fit_ms = milliseconds(partial(scratch.fit, X, y, keys=keys))

        known = np.isin(digits.y_test, model.classes_)
        yield Step(
            forgotten=forgotten,
            forget_ms=forget_ms,
            fit_ms=fit_ms,
            same_bytes=weights(model) == weights(scratch),
            worst_gap=max(head.relative_gap for head in model.certificate_),
            accuracy=model.score(digits.X_test[known], digits.y_test[known]),
        )


def weights(model: LinearSVM) -> tuple[bytes, bytes]:
    """All that a prediction depends on."""
    return model.coef_.tobytes(), model.intercept_.tobytes()


def milliseconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = perf_counter()
    work()
    return 1e3 * (perf_counter() - start)


def show_table(steps: Sequence[Step]) -> None:
    """One row a request."""
    numbers = ("forget ms", "fit ms", "same bytes", "worst gap", "accuracy")
    rows = [
        (
            step.forgotten,
            f"{step.forget_ms:.1f}",
            f"{step.fit_ms:.1f}",
            "yes" if step.same_bytes else show.Bad("no"),
            f"{step.worst_gap:.0e}",
            f"{step.accuracy:.3f}",
        )
        for step in steps
    ]
    caption = "fit: from scratch, without them. accuracy: on the classes that are left."
    show.table(("forgotten", *numbers), rows, numbers=numbers, caption=caption)


def closing_sentence(steps: Sequence[Step]) -> str:
    """What was seen, whether it is what we hoped for or not."""
    forget_ms, fit_ms = sum(step.forget_ms for step in steps), sum(step.fit_ms for step in steps)
    differing = sum(not step.same_bytes for step in steps)
    if differing:
        return f"After {differing} of {len(steps)} requests the weights differ from those of a fit from scratch."
    return (
        f"After each of the {len(steps)} requests the weights are, byte for byte, those of a model that never saw the "
        f"forgotten records: {forget_ms:.0f} ms of forgetting in place of {fit_ms:.0f} ms of fitting from scratch."
    )
