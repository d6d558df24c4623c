"""`LinearSVM`: an exact linear one-vs-rest SVM that can forget samples, in scikit-learn's conventions."""

import copy
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import validate_data

from maxrr.svm import validation
from maxrr.svm.arrays import Array, Floats, Ints, is_numpy, is_torch, like, to_numpy
from maxrr.svm.certificate import Certificate
from maxrr.svm.heads import Solution, Work, classes_present, exchange, remove, solve
from maxrr.svm.problem import Head, Samples


class ConvergenceError(ArithmeticError):
    """A head could not be solved: the numbers are beyond what float64 can tell apart.

    Attributes
    ----------
    label
        The class whose head it is.
    """

    def __init__(self, message: str, label: Any = None) -> None:
        super().__init__(message)
        self.label = label


class FlatHeadWarning(UserWarning):
    """A head has no weights: it says the same of every record, and nearly every record is influential in it."""


@dataclass(frozen=True)
class Fitted:
    """Everything a fitted model knows, in one object that is exchanged whole."""

    C: float
    classes: NDArray[Any]  # by code; those of forgotten classes stay
    solution: Solution
    present: NDArray[Any] = field(init=False)  # those with samples, also for who predicts after these were erased

    def __post_init__(self) -> None:
        samples = self.solution.samples
        codes = classes_present(samples.codes, samples.alive)
        object.__setattr__(self, "present", np.asarray(self.classes[codes]))


class LinearSVM(ClassifierMixin, BaseEstimator):
    """Linear SVM with hinge loss and unpenalised bias, solved exactly, one head per class against the rest.

    For each class it minimises ½|w|² + C Σ max(0, 1 − yᵢ(w·xᵢ + b)); two classes share one head. It keeps a copy of
    the samples in float64, so that `forget` and `insert` can move the solution when samples leave or arrive. Their
    result equals that of `fit` on the remaining samples, to the byte wherever the certificate is `decided`, and in
    whatever order these are given.

    Arrays may be NumPy's or torch's, on any device. Weights are NumPy arrays always: what is published is the exact
    solution, rounded, and depends on nothing else. Numbers smaller than 1e-100 in size count as zero.

    Parameters
    ----------
    C : float
        Weight of the losses against ½|w|².
    unsolved : {"raise", "warn"}
        What to do about a head that could not be solved: raise a `ConvergenceError` and leave the estimator as it was,
        or go on with a `ConvergenceWarning`; its certificate then says how far off it can be.

    Attributes
    ----------
    coef_, intercept_
        Weights (heads × features) and biases (heads).
    classes_
        Class labels, sorted.
    certificate_
        One `Certificate` per head.
    influential_
        For each head, the rows of the samples on its margin and inside it: only these shape it.
    multipliers_
        The dual variables of those samples, in the same order.
    support_
        Rows that are influential in any head.
    rows_, held_
        Rows that have not been forgotten; the same with their features.
    work_
        What the last `fit`, `forget` or `insert` cost: passes over the data, rows read, cold solves.

    Examples
    --------
    >>> model = LinearSVM().fit([[1.0], [-1.0], [-5.0]], ["yes", "no", "no"])
    >>> model.coef_, model.intercept_, model.support_
    (array([[1.]]), array([0.]), array([0, 1]))
    >>> model.forget([2])[0].relative_gap
    0.0
    """

    def __init__(self, C: float = 1.0, *, unsolved: str = "raise") -> None:
        self.C = C
        self.unsolved = unsolved

    # What callers do

    def fit(self, X: Array, y: ArrayLike) -> Self:
        """Solve every head from scratch.

        Parameters
        ----------
        X
            Samples × features.
        y
            Class labels.

        Raises
        ------
        ConvergenceError
            If a head could not be solved, unless `unsolved` is "warn".
        """
        C = validation.penalty(self.C)
        if self.unsolved not in ("raise", "warn"):
            raise ValueError(f"unsolved must be 'raise' or 'warn', not {self.unsolved!r}")
        features = validation.features(X, self)
        labels = validation.labels(y, len(features), self)
        classes, codes = validation.classes(labels)
        kept = validation.owned(features)
        samples = Samples(
            kept, *validation.sizes(kept), codes, alive=np.ones(len(labels), dtype=bool)
        )  # fmt: skip
        found = Fitted(C, classes, solve(samples, C))
        self._check(found)
        validate_data(self, X, skip_check_array=True)  # remembers the number and names of the features
        self._state = found
        return self

    def forget(self, rows: ArrayLike) -> tuple[Certificate, ...]:
        """Remove samples from the solved problem, and their contents from memory.

        Samples clearly without influence cost no pass over the data. Otherwise only the heads that they shape are
        solved again, from where they are. If anything goes wrong, the estimator is as it was; an interruption leaves it
        so, or with the samples forgotten and their contents left to the next request to erase.

        Parameters
        ----------
        rows
            Row numbers as given to `fit`, and counted on by `insert`. They keep their meaning after `forget`.

        Returns
        -------
        tuple of Certificate
            One per head. A class that loses its last sample loses its head.

        Raises
        ------
        ConvergenceError
            As `fit` does. Nothing is forgotten then.
        """
        after = self.without(rows)
        after._make_writable()
        self._state = after._state
        self.erase()
        return self.certificate_

    def without(self, rows: ArrayLike) -> Self:
        """A model as `forget` leaves it, with the samples' contents still in memory; this one stays as it is.

        Both share their memory: `erase` of the new one ends the life of the old.
        """
        fitted = self._fitted
        samples = fitted.solution.samples
        positions = validation.rows(rows, samples.alive)
        remaining = samples.alive.copy()
        remaining[positions] = False
        check_two(fitted.classes[classes_present(samples.codes, remaining)])
        model = copy.copy(self)
        # One assignment takes over the new state: an interruption leaves the old one or the new one.
        model._state = replace(fitted, solution=remove(fitted.solution, fitted.C, positions))
        self._check(model._state)
        return model

    def erase(self, rows: ArrayLike | None = None) -> None:
        """Overwrite what is left of forgotten samples, or these rows of a model that is not needed any more.

        Their codes go last: an interrupted erasure starts again.
        """
        samples = self._fitted.solution.samples
        gone = np.flatnonzero(~samples.alive & (samples.codes >= 0)) if rows is None else np.asarray(rows, np.int64)
        samples.X[like(gone, samples.X)] = 0.0
        samples.lengths[gone] = 0.0
        samples.exponents[gone] = 0
        samples.codes[gone] = -1

    def insert(self, X: Array, y: ArrayLike) -> tuple[Certificate, ...]:
        """Add samples to the solved problem: the reverse of `forget`. They get the row numbers that come next.

        A class seen for the first time gets a head of its own, solved from scratch.
        """
        self._make_writable()
        self.erase()  # what an interrupted request may have left
        self._state = self.with_more(X, y)._state
        return self.certificate_

    def with_more(self, X: Array, y: ArrayLike, *, instead_of: ArrayLike = ()) -> Self:
        """A model as `insert` leaves it, perhaps after forgetting some rows; this one stays as it is."""
        fitted = self._fitted
        old = fitted.solution.samples
        leaving = validation.rows(instead_of, old.alive) if np.size(instead_of) else np.empty(0, dtype=np.int64)
        staying = old.alive.copy()
        staying[leaving] = False
        features = self._checked(X)
        labels = validation.labels(y, len(features), self)
        classes, codes = np.unique(validation.joined(fitted.classes, labels), return_inverse=True)
        check_two(np.union1d(fitted.classes[classes_present(old.codes, staying)], labels))
        solution = renumbered(fitted.solution, codes[: len(fitted.classes)])
        fresh = validation.owned(like(to_numpy(features), old.X))
        added = exchange(
            solution, fitted.C, leaving, fresh, validation.sizes(fresh), codes[len(fitted.classes) :].astype(np.int64)
        )
        model = copy.copy(self)
        model._state = Fitted(fitted.C, classes, added)
        self._check(model._state)
        return model

    def decision_function(self, X: Array) -> Array:
        """Scores w·x + b, in arrays of the kind of X: (samples × heads), or with two classes one per sample."""
        coef, intercept = self.coef_, self.intercept_
        features = self._checked(X)
        scores = features @ like(coef.T.copy(), features) + like(intercept, features)
        return scores[:, 0] if len(intercept) == 1 else scores

    def predict(self, X: Array) -> NDArray[Any]:
        """The class with the largest score."""
        scores = to_numpy(self.decision_function(X))
        return np.asarray(self.classes_[np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)])

    # What a fitted model shows

    @property
    def classes_(self) -> NDArray[Any]:
        return self._fitted.present.copy()

    @property
    def coef_(self) -> Floats:
        return np.stack([head.w for head in self._fitted.solution.heads])

    @property
    def intercept_(self) -> Floats:
        return np.array([head.b for head in self._fitted.solution.heads])

    @property
    def certificate_(self) -> tuple[Certificate, ...]:
        return tuple(head.certificate for head in self._fitted.solution.heads)

    @property
    def influential_(self) -> tuple[Ints, ...]:
        return tuple(np.flatnonzero(head.influential()) for head in self._fitted.solution.heads)

    @property
    def multipliers_(self) -> tuple[Floats, ...]:
        C = self._fitted.C
        return tuple(head.alpha(C)[head.influential()] for head in self._fitted.solution.heads)

    @property
    def support_(self) -> Ints:
        return np.flatnonzero(np.any([head.influential() for head in self._fitted.solution.heads], axis=0))

    @property
    def rows_(self) -> Ints:
        return np.flatnonzero(self._fitted.solution.samples.alive)

    @property
    def held_(self) -> tuple[Ints, Floats]:
        return self.rows_, self._fitted.solution.samples.rows(self.rows_)

    @property
    def work_(self) -> Work:
        return self._fitted.solution.work

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    # How it is kept

    @property
    def _fitted(self) -> Fitted:
        state = vars(self).get("_state")
        if state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' with samples first")
        assert isinstance(state, Fitted)
        return state

    def _checked(self, X: Array) -> Array:
        """X as features of the kind the model was fitted on."""
        features = validation.features(X, self)
        validate_data(self, X if not is_torch(X) else to_numpy(features), reset=False, skip_check_array=True)
        return features

    def _make_writable(self) -> None:
        """Copies of arrays that cannot be erased in place: those of a model that was loaded as a memory map."""
        samples = self._fitted.solution.samples
        arrays = {name: getattr(samples, name) for name in ("X", "lengths", "exponents", "codes")}
        fixed = [name for name, array in arrays.items() if is_numpy(array) and not array.flags.writeable]
        if fixed:
            own = replace(samples, **{name: arrays[name].copy() for name in fixed})
            self._state = replace(self._fitted, solution=replace(self._fitted.solution, samples=own))

    def _check(self, found: Fitted) -> None:
        """Raise or warn about heads that are not solved, and warn about those without weights."""
        for head in found.solution.heads:
            label = validation.plain(found.classes[head.positive])
            if not head.certificate.solved:
                message = unsolved_message(label, head, found)
                if self.unsolved == "raise":
                    raise ConvergenceError(message, label)
                warnings.warn(message, ConvergenceWarning, stacklevel=3)
            elif not head.w.any():
                warnings.warn(
                    f"the head of class {label!r} has weights of zero: under the hinge loss no linear function of "
                    "these features is better than a constant, whatever C, and nearly every record is influential in "
                    "it. Features that tell the class apart better would help",
                    FlatHeadWarning,
                    stacklevel=3,
                )


def unsolved_message(label: Any, head: Head, found: Fitted) -> str:
    """What went wrong, with the numbers that are too far apart, and what to do."""
    X = np.abs(found.solution.samples.rows(np.flatnonzero(found.solution.samples.alive)))
    largest = np.max(X, axis=0)
    known = head.certificate
    wide, narrow = int(np.argmax(largest)), int(np.argmin(np.where(largest > 0.0, largest, np.inf)))
    return (
        f"the head of class {label!r} is not solved: its decision values are known only to {known.error:.1e}, and its "
        f"objective to {known.relative_gap:.1e} of itself. Column {wide} of the features reaches {largest[wide]:.1e}, "
        f"column {narrow} only {largest[narrow]:.1e}, and C is {found.C:g}. Scale the features to about 1; if they "
        "are, leave out columns that are combinations of others up to rounding"
    )


def check_two(left: NDArray[Any]) -> None:
    """Refuse to leave fewer classes than an SVM tells apart."""
    if len(left) < 2:
        only = f"only class {validation.plain(left[0])!r}" if len(left) else "no samples at all"
        raise ValueError(f"this would leave {only}, and an SVM needs two classes. Nothing was forgotten")


def renumbered(solution: Solution, code_of: Ints) -> Solution:
    """The same solution when classes get other numbers, because new ones have come between them."""
    samples = solution.samples
    codes = np.where(samples.codes >= 0, code_of[samples.codes], -1)
    heads = tuple(replace(head, positive=int(code_of[head.positive])) for head in solution.heads)
    return replace(solution, samples=replace(samples, codes=codes), heads=heads)
