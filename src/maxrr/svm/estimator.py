"""`LinearSVM`: an exact linear one-vs-rest SVM that can forget samples, in scikit-learn's conventions."""

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import validate_data

from maxrr.svm import classifier, hinge, validation
from maxrr.svm.arrays import Array, Floats, Ints, is_torch, like, to_numpy
from maxrr.svm.classifier import Solution, Work
from maxrr.svm.hinge import Certificate
from maxrr.svm.problem import Samples


@dataclass(frozen=True)
class Fitted:
    """Everything a fitted model knows, in one object that is exchanged whole."""

    C: float
    classes: NDArray[Any]  # by code; those of forgotten classes stay
    keys: NDArray[Any]
    solution: Solution


class LinearSVM(ClassifierMixin, BaseEstimator):
    """Linear SVM with hinge loss and unpenalised bias, solved to rounding, one head a class against the rest.

    For each class it minimises ½|w|² + C Σ max(0, 1 − yᵢ(w·xᵢ + b)); two classes share one head. It keeps a copy of
    the samples in float64, so that `forget` and `insert` can move the solution when samples leave or arrive. Their
    result equals that of `fit` on the remaining samples, to the byte wherever the certificate is `decided`.

    Arrays may be NumPy's or torch's, on any device. Weights are NumPy arrays always: they are computed last, by one
    fixed routine on the processor.

    Parameters
    ----------
    C : float
        Weight of the losses against ½|w|².

    Attributes
    ----------
    coef_, intercept_
        Weights (heads × features) and biases (heads).
    classes_
        Class labels, sorted.
    certificate_
        One `Certificate` a head.
    influential_
        For each head, the rows of its free and bounded samples: only these shape it.
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

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    # What callers do

    def fit(self, X: Array, y: ArrayLike, keys: ArrayLike | None = None) -> Self:
        """Solve every head from scratch.

        Parameters
        ----------
        X
            Samples × features.
        y
            Class labels.
        keys
            Unique integers or strings, one a sample; row numbers if not given. They are the canonical order of the
            samples: results do not depend on the order in which samples are given, as long as each keeps its key.
        """
        C = validation.penalty(self.C)
        features = validation.features(X, self)
        labels = validation.labels(y, len(features), self)
        names = validation.keys(keys, len(features), first=0)
        classes, codes = validation.classes(labels)
        samples = Samples(
            features.clone() if is_torch(features) else np.array(features, order="C"),
            validation.lengths(features),
            codes,
            rank=np.argsort(np.argsort(names)),
            alive=np.ones(len(labels), dtype=bool),
        )
        solution = classifier.solve(samples, C)
        validate_data(self, X, skip_check_array=True)  # remembers the number and names of the features
        self._state = Fitted(C, classes, names, solution)
        self._warn()
        return self

    def forget(self, rows: ArrayLike) -> tuple[Certificate, ...]:
        """Remove samples from the solved problem, and their contents from memory.

        Samples without influence cost no pass over the data. Otherwise only the heads that they shape are solved
        again, from where they are. If anything goes wrong, or is interrupted, the estimator is as it was.

        Parameters
        ----------
        rows
            Row numbers as given to `fit`, and counted on by `insert`. They keep their meaning after `forget`.

        Returns
        -------
        tuple of Certificate
            One a head. A class that loses its last sample loses its head.
        """
        self._state = self.without(rows)._state
        self.erase()
        self._warn()
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
        check_two(fitted.classes[classifier.classes_present(samples.codes, remaining)])
        model = copy.copy(self)
        # One assignment takes over the new state: an interruption leaves the old one or the new one.
        model._state = replace(fitted, solution=classifier.remove(fitted.solution, fitted.C, positions))
        return model

    def erase(self, rows: ArrayLike | None = None) -> None:
        """Overwrite what is left of forgotten samples, or these rows of a model that is not needed any more.

        Their codes go last: an interrupted erasure starts again.
        """
        samples, keys = self._fitted.solution.samples, self._fitted.keys
        gone = np.flatnonzero(~samples.alive & (samples.codes >= 0)) if rows is None else np.asarray(rows, np.int64)
        samples.X[like(gone, samples.X)] = 0.0
        samples.lengths[gone] = 0.0
        keys[gone] = np.zeros(1, keys.dtype)[0]
        samples.codes[gone] = -1

    def insert(self, X: Array, y: ArrayLike, keys: ArrayLike | None = None) -> tuple[Certificate, ...]:
        """Add samples to the solved problem: the reverse of `forget`. They get the row numbers that come next.

        Keys must not be in use; that of a forgotten sample may be used again. A class seen for the first time gets a
        head of its own, solved from scratch.
        """
        self.erase()
        self._state = self.with_more(X, y, keys)._state
        self._warn()
        return self.certificate_

    def with_more(
        self, X: Array, y: ArrayLike, keys: ArrayLike | None = None, *, instead_of: ArrayLike = ()
    ) -> Self:  # fmt: skip
        """A model as `insert` leaves it, perhaps after forgetting some rows; this one stays as it is."""
        fitted = self._fitted
        old = fitted.solution.samples
        leaving = validation.rows(instead_of, old.alive) if np.size(instead_of) else np.empty(0, dtype=np.int64)
        staying = old.alive.copy()
        staying[leaving] = False
        features = self._checked(X)
        labels = validation.labels(y, len(features), self)
        validation.same_kind(fitted.classes, labels)
        fresh = validation.keys(keys, len(features), first=len(fitted.keys))
        names = validation.join(fitted.keys, fresh, staying)
        classes, codes = np.unique(np.concatenate([fitted.classes, labels]), return_inverse=True)
        check_two(np.union1d(fitted.classes[classifier.classes_present(old.codes, staying)], labels))
        solution = renumbered(fitted.solution, codes[: len(fitted.classes)])
        added = classifier.exchange(
            solution, fitted.C, leaving, like(to_numpy(features), old.X), validation.lengths(features),
            codes[len(fitted.classes) :].astype(np.int64), np.argsort(np.argsort(names, kind="stable")),
        )  # fmt: skip
        model = copy.copy(self)
        model._state = Fitted(fitted.C, classes, names, added)
        return model

    def certify(self, X: Array, y: ArrayLike) -> tuple[Certificate, ...]:
        """Recompute all certificates from weights and multipliers alone, trusting nothing the solver kept.

        `X` and `y` are the samples the model holds, in order of their row numbers.
        """
        solution, C = self._fitted.solution, self._fitted.C
        features = to_numpy(self._checked(X))
        labels = validation.labels(y, len(features), self)
        rows = np.flatnonzero(solution.samples.alive)
        if len(features) != len(rows):
            raise ValueError(f"the model holds {len(rows)} samples, but X has {len(features)}")
        signs = [np.where(labels == self._fitted.classes[head.positive], 1.0, -1.0) for head in solution.heads]
        return tuple(
            hinge.certify(features, y, head.w, head.b, head.alpha(C)[rows], C)
            for y, head in zip(signs, solution.heads, strict=True)
        )

    def decision_function(self, X: Array) -> Array:
        """Scores w·x + b, in arrays of the kind of X: (samples × heads), or with two classes one a sample."""
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
        samples = self._fitted.solution.samples
        return np.asarray(self._fitted.classes[classifier.classes_present(samples.codes, samples.alive)])

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

    def _warn(self) -> None:
        for head in self._fitted.solution.heads:
            if not head.certificate.solved:
                warnings.warn(
                    f"the head of class {self._fitted.classes[head.positive]!r} is solved only to a relative gap of "
                    f"{head.certificate.relative_gap:.1e}. Features of very different sizes, or a very large C, leave "
                    "float64 too few digits: scale the features to about 1, or lower C",
                    ConvergenceWarning,
                    stacklevel=3,
                )


def check_two(left: NDArray[Any]) -> None:
    """Refuse to leave fewer classes than an SVM tells apart."""
    if len(left) < 2:
        only = f"only class {left[0]!r}" if len(left) else "no samples at all"
        raise ValueError(f"this would leave {only}, and an SVM needs two classes. Nothing was forgotten")


def renumbered(solution: Solution, code_of: Ints) -> Solution:
    """The same solution when classes get other numbers, because new ones have come between them."""
    samples = solution.samples
    codes = np.where(samples.codes >= 0, code_of[samples.codes], -1)
    heads = tuple(replace(head, positive=int(code_of[head.positive])) for head in solution.heads)
    return replace(solution, samples=replace(samples, codes=codes), heads=heads)
