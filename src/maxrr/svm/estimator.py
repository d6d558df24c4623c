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
from maxrr.svm.arrays import AnyArray, Array, Floats, Ints, is_numpy, is_torch, like, to_numpy
from maxrr.svm.certificate import Certificate
from maxrr.svm.heads import Solution, Work, classes_present, exchange, remove, solve
from maxrr.svm.problem import Head, Samples


class ConvergenceError(ArithmeticError):
    """A head could not be solved: the numbers are beyond what float64 can tell apart.

    Parameters
    ----------
    message : str
        What went wrong, and what to do.
    label : optional
        The class whose head could not be solved.

    Attributes
    ----------
    label
        As it was given.
    """

    def __init__(self, message: str, label: Any = None) -> None:
        super().__init__(message)
        self.label = label


class FlatHeadWarning(UserWarning):
    """All weights of a head are zero: it scores every record alike, and every record is influential in it."""


@dataclass(frozen=True)
class FittedState:
    """Everything that a fitted model knows, in one object, so that one assignment changes all of it."""

    C: float
    classes: NDArray[Any]  # by code; those of forgotten classes stay
    solution: Solution
    present: NDArray[Any] = field(init=False)  # those with samples; stays known after the samples were erased

    def __post_init__(self) -> None:
        samples = self.solution.samples
        codes = classes_present(samples.codes, samples.alive)
        object.__setattr__(self, "present", np.asarray(self.classes[codes]))


class LinearSVM(ClassifierMixin, BaseEstimator):
    """Linear SVM with hinge loss and unpenalised bias, solved exactly, one head per class against the rest.

    For each class it minimises ½|w|² + C Σ max(0, 1 − yᵢ(w·xᵢ + b)); two classes share one head. It keeps a copy of
    the samples in float64, so that `forget` and `insert` can move the solution when samples leave or arrive. Their
    result equals that of `fit` on the remaining samples in any order, byte for byte wherever the certificate is
    `decided`. A pickle of it holds the samples, too: what is forgotten later stays in that file.

    Samples may be NumPy arrays or torch tensors, on any device. Weights are always NumPy arrays: what is published is
    the exact solution, rounded, and depends on nothing else. Numbers smaller than 1e-100 in size count as zero.

    Parameters
    ----------
    C : float
        Weight of the losses against ½|w|², from 1e-50 to 1e50. Smaller values give a wider margin and more influential
        samples.
    unsolved : {"raise", "warn"}
        What to do about a head that could not be solved: raise a `ConvergenceError` and leave the estimator as it was,
        or go on with a `ConvergenceWarning`; its certificate then says how far off it can be.

    Attributes
    ----------
    coef_ : ndarray of shape (heads, features)
        Weights.
    intercept_ : ndarray of shape (heads,)
        Biases.
    classes_ : ndarray
        Labels of the classes that have samples, sorted.
    certificate_ : tuple of Certificate
        One certificate per head.
    influential_ : tuple of ndarray
        For each head, the rows of the samples on its margin and inside it: only these shape it.
    multipliers_ : tuple of ndarray
        The dual variables of those samples, in the same order.
    support_ : ndarray
        Rows of the samples that are influential in any head.
    rows_ : ndarray
        Rows of the samples that have not been forgotten.
    held_ : tuple of (ndarray, ndarray)
        `rows_`, and the features of these samples.
    work_ : Work
        What the last `fit`, `forget` or `insert` cost.

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

    def fit(self, X: Array | ArrayLike, y: ArrayLike) -> Self:
        """Solve every head from scratch.

        Parameters
        ----------
        X
            Samples × features: finite, dense numbers.
        y
            One class label per sample, of at least two classes.

        Returns
        -------
        LinearSVM
            This estimator.

        Raises
        ------
        ConvergenceError
            A head could not be solved, unless `unsolved` is "warn".
        ValueError
            The samples or labels cannot be used; the message says why.
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
        found = FittedState(C, classes, solve(samples, C))
        self._check(found)
        validate_data(self, X, skip_check_array=True)  # remembers the number and names of the features
        self._state = found
        return self

    def forget(self, rows: ArrayLike) -> tuple[Certificate, ...]:
        """Remove samples from the solved problem, and their contents from memory.

        Samples clearly without influence cost no pass over the data. Otherwise only the heads that they shape are
        solved again, from where they are. If anything goes wrong, the estimator is as it was. An interruption leaves it
        as it was, or with the samples forgotten; the next request then erases their contents.

        Parameters
        ----------
        rows
            Row numbers of the samples: those given to `fit` count from 0, those given to `insert` follow. A sample
            keeps its number when others are forgotten.

        Returns
        -------
        tuple of Certificate
            One per head. A class that loses its last sample loses its head.

        Raises
        ------
        ConvergenceError
            A head could not be solved, unless `unsolved` is "warn". Nothing is forgotten then.
        ValueError
            A row is unknown, repeated or already forgotten, or fewer than two classes would be left.
        """
        after = self.without(rows)
        after._make_writable()
        self._state = after._state
        self.erase()
        return self.certificate_

    def without(self, rows: ArrayLike) -> Self:
        """A model as `forget` leaves it, with the samples' contents still in memory; this one stays as it is.

        Both models share their memory: once the new one is told to `erase`, the old one can no longer be used.

        Parameters
        ----------
        rows
            Row numbers, as `forget` takes them.

        Returns
        -------
        LinearSVM
            The model without these samples.
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
        """Overwrite the contents of samples in memory. An interrupted erasure is finished by the next one.

        Parameters
        ----------
        rows : optional
            Row numbers, of a model that is no longer needed; by default all samples that were forgotten.
        """
        samples = self._fitted.solution.samples
        gone = np.flatnonzero(~samples.alive & (samples.codes >= 0)) if rows is None else np.asarray(rows, np.int64)
        samples.X[like(gone, samples.X)] = 0.0
        samples.lengths[gone] = 0.0
        samples.exponents[gone] = 0
        samples.codes[gone] = -1  # last: it says that the rest is erased

    def insert(self, X: Array | ArrayLike, y: ArrayLike) -> tuple[Certificate, ...]:
        """Add samples to the solved problem: the reverse of `forget`. They get the row numbers that come next.

        A class seen for the first time gets a head of its own, solved from scratch.

        Parameters
        ----------
        X
            Samples × features, with as many features as in `fit`.
        y
            One class label per sample.

        Returns
        -------
        tuple of Certificate
            One per head.

        Raises
        ------
        ConvergenceError
            A head could not be solved, unless `unsolved` is "warn". Nothing is added then.
        """
        self._make_writable()
        self.erase()  # what an interrupted request may have left
        self._state = self.with_more(X, y)._state
        return self.certificate_

    def with_more(self, X: Array | ArrayLike, y: ArrayLike, *, instead_of: ArrayLike = ()) -> Self:
        """A model as `insert` leaves it, and `forget` before that; this one stays as it is.

        Parameters
        ----------
        X, y
            The samples to add, as `insert` takes them.
        instead_of
            Row numbers of samples that leave, as `forget` takes them; by default none.

        Returns
        -------
        LinearSVM
            The model with the new samples.
        """
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
        model._state = FittedState(fitted.C, classes, added)
        self._check(model._state)
        return model

    def decision_function(self, X: Array | ArrayLike) -> Array:
        """Scores w·x + b: how sure each head is that a sample is of its class.

        Parameters
        ----------
        X
            Samples × features.

        Returns
        -------
        Array
            Samples × heads; with two classes one score per sample, positive for the second class. A torch tensor on
            the device of `X` if that is one, otherwise a NumPy array.
        """
        coef, intercept = self.coef_, self.intercept_
        features = self._checked(X)
        scores = features @ like(coef.T.copy(), features) + like(intercept, features)
        wanted: Array = scores[:, 0] if len(intercept) == 1 else scores
        return wanted

    def predict(self, X: Array | ArrayLike) -> NDArray[Any]:
        """The class with the largest score.

        Parameters
        ----------
        X
            Samples × features.

        Returns
        -------
        ndarray
            One class label per sample.
        """
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
    def _fitted(self) -> FittedState:
        state = vars(self).get("_state")
        if state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' with samples first")
        assert isinstance(state, FittedState)
        return state

    def _checked(self, X: Array | ArrayLike) -> AnyArray:
        """The features, if they are as many as the model was fitted on."""
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

    def _check(self, found: FittedState) -> None:
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
                    "these features is better than a constant, whatever C, and every record is influential in "
                    "it. Features that tell the class apart better would help",
                    FlatHeadWarning,
                    stacklevel=3,
                )


def unsolved_message(label: Any, head: Head, found: FittedState) -> str:
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
