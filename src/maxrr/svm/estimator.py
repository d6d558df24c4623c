"""`LinearSVM`: an exact linear SVM that can forget samples, in scikit-learn's conventions."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from maxrr.errors import MaxRRError
from maxrr.progress import Progress
from maxrr.svm import validation
from maxrr.svm.arrays import AnyArray, Array, Bools, Floats, Ints, is_torch, like, times, to_numpy
from maxrr.svm.calibration import best_classes
from maxrr.svm.certificate import Certificate
from maxrr.svm.heads import LARGEST_SHARE, Solution, move, solve
from maxrr.svm.problem import ClassWeight, Head, Samples, weigh
from maxrr.svm.search.working_set import MOST_CHANGED

SCORED_BYTES = 1 << 28  # of features in float64 that are scored at a time
MOST_NAMED = 5  # classes in a warning
ERASED = ("X", "lengths", "exponents", "codes")  # what is known of samples and overwritten, beside their penalties


class ConvergenceError(MaxRRError, ArithmeticError):
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
    """All weights of a head are zero: it scores every record alike, and every record is influential in it.

    It is so for every C where the certificate's `weight_error` is 0. Elsewhere the exact ones may just be tiny.
    """


@dataclass(frozen=True)
class FittedState:
    """The solved problem with its classes, in one object, so that one assignment changes all of it."""

    C: float
    class_weight: dict[Any, float] | None
    classes: NDArray[Any]  # by code; those of forgotten classes stay
    solution: Solution
    present: NDArray[Any] = field(init=False)  # those with samples; stays known after the samples were erased

    def __post_init__(self) -> None:
        samples = self.solution.samples
        object.__setattr__(self, "present", np.asarray(self.classes[samples.present]))


class LinearSVM(ClassifierMixin, BaseEstimator):
    """Linear SVM with hinge loss and unpenalised bias, solved exactly, one head per class.

    For each head it minimises ½|w|² + Σ Cᵢ max(0, 1 − yᵢ(w·xᵢ + b)), where Cᵢ is C times the weights of the sample and
    of its class; two classes share one head. It keeps a copy of the samples, so that `forget` and `insert`
    can move the solution when samples leave or arrive. Their result equals that of `fit` on the remaining samples and
    their weights in any order, byte for byte wherever the certificate is `decided`. A pickle of it holds the samples,
    too: what is forgotten later stays in that file.

    Samples may be NumPy arrays or torch tensors. Those on a graphics processor stay there, and it does the work where
    heads are solved from scratch. Weights are always NumPy arrays: what is published is the exact solution, rounded,
    and depends on nothing else. Numbers smaller than 1e-100 in size count as zero. Samples are kept in float64; a NumPy
    array that would take more than half a GiB in it stays in float16 or float32, and is read in blocks, as a memory map
    is. What is computed is the same.

    Parameters
    ----------
    C : float
        Weight of the losses against ½|w|², from 1e-50 to 1e50. Smaller values give a wider margin and more influential
        samples.
    class_weight : dict, optional
        How much the losses of each class weigh, by its label: positive numbers, and 1 for a class that is not named.
        The weight of a sample's own class counts in every head. Fixed numbers only: weights computed from the samples,
        as "balanced" stands for in scikit-learn, would change every head with each sample forgotten.
    copy_X : bool
        Whether to keep a copy of the samples, as by default. Without, the estimator works on the array that it was
        given, where it can: `forget` then overwrites rows of yours, and nobody else may change them. For samples that
        are in memory once, or in a writable memory map.

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
        The dual variables of those samples, in the same order, each from 0 to its Cᵢ.
    support_ : ndarray
        Rows of the samples that are influential in any head.

    Examples
    --------
    >>> model = LinearSVM().fit([[1.0], [-1.0], [-5.0]], ["yes", "no", "no"])
    >>> model.coef_, model.intercept_, model.support_
    (array([[1.]]), array([0.]), array([0, 1]))
    >>> model.forget([2])[0].relative_gap
    0.0
    """

    def __init__(self, C: float = 1.0, *, class_weight: ClassWeight | None = None, copy_X: bool = True) -> None:
        self.C = C
        self.class_weight = class_weight
        self.copy_X = copy_X

    # What callers do

    def fit(
        self, X: Array | ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Solve every head from scratch.

        Parameters
        ----------
        X
            Samples × features: finite, dense numbers.
        y
            One class label per sample, of at least two classes.
        sample_weight
            One weight per sample, finite and not negative; by default 1. A sample of weight k counts as k samples, and
            one of weight zero not at all: it has a row number, and can be forgotten, but shapes nothing.
        progress
            Called with "heads", how many are solved and how many there are, after every group.

        Returns
        -------
        LinearSVM
            This estimator.

        Raises
        ------
        ConvergenceError
            A head could not be solved.
        ValueError
            The samples, labels or weights cannot be used; the message says why.
        """
        C, class_weight = validation.penalty(self.C), validation.class_weights(self.class_weight)
        features = validation.features(X, self)
        labels = validation.labels(y, len(features), self)
        weights = validation.sample_weights(sample_weight, len(features))
        classes, codes = validation.classes(labels, weights)
        penalties = weigh(C, class_weight, labels.tolist(), weights)
        kept = features if not self.copy_X and validation.can_keep(features) else validation.owned(features, X)
        samples = Samples(kept, *validation.sizes(kept), codes, np.ones(len(labels), dtype=bool), penalties)
        found = FittedState(C, class_weight, classes, solve(samples, progress))
        check_heads(found)
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
            One per head. A class that loses its last sample loses its head, or heads.

        Raises
        ------
        ConvergenceError
            A head could not be solved. Nothing is forgotten then.
        ValueError
            A row is unknown, repeated or already forgotten, or fewer than two classes would be left.
        """
        after = self._without(rows)
        after._make_writable()
        self._state = after._state
        self._erase()
        return self.certificate_

    def _without(self, rows: ArrayLike) -> Self:
        """Return a model as `forget` leaves it, with the samples' contents still in memory.

        Both models share their memory: once `_erase` is called on the new one, the old one can no longer be used.

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
        positions = validation.rows(rows, samples.held)
        remaining = samples.without(positions)
        check_two(fitted.classes[remaining.present])
        # One assignment takes over the new state: an interruption leaves the old one or the new one.
        left = move(remaining, fitted.solution, positions)
        found = FittedState(fitted.C, fitted.class_weight, fitted.classes, left)
        after = self._with(found)
        if not after._has_heads_of(self):  # or they were checked
            check_heads(found)
        return after

    def _erase(self, rows: ArrayLike | None = None) -> None:
        """Overwrite the contents of samples in memory. An interrupted erasure is finished by the next one.

        Parameters
        ----------
        rows : optional
            Row numbers, of a model that is no longer needed; by default all samples that were forgotten.
        """
        samples = self._fitted.solution.samples
        gone = np.flatnonzero(~samples.held & (samples.codes >= 0)) if rows is None else validation.row_numbers(rows)
        one = len(gone) == 1  # then no row number is copied to a graphics processor, which would wait for it
        samples.X[gone.item() if one else like(gone, samples.X)] = 0.0
        samples.lengths[gone] = 0.0
        samples.exponents[gone] = 0
        samples.penalties.erase(gone)
        samples.codes[gone] = -1  # last: it says that the rest is erased

    def insert(
        self, X: Array | ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> tuple[Certificate, ...]:
        """Add samples to the solved problem: the reverse of `forget`. They get the row numbers that come next.

        A class seen for the first time gets a head of its own, or one against every other class, solved from scratch.

        Parameters
        ----------
        X
            Samples × features, with as many features as in `fit`.
        y
            One class label per sample.
        sample_weight
            One weight per sample, as `fit` takes them. Those of classes are the ones that the model was fitted with.

        Returns
        -------
        tuple of Certificate
            One per head.

        Raises
        ------
        ConvergenceError
            A head could not be solved. Nothing is added then.
        """
        self._make_writable()
        self._erase()  # what an interrupted request may have left
        self._state = self._with_more(X, y, sample_weight=sample_weight)._state
        return self.certificate_

    def _with_more(
        self, X: Array | ArrayLike, y: ArrayLike, *, instead_of: ArrayLike = (), sample_weight: ArrayLike | None = None
    ) -> Self:
        """Return a model as `insert` leaves it, without the samples in `instead_of`.

        Parameters
        ----------
        X, y
            The samples to add, as `insert` takes them.
        instead_of
            Row numbers of samples that leave, as `forget` takes them; by default none.
        sample_weight
            How much each of the samples to add counts, as `insert` takes it.

        Returns
        -------
        LinearSVM
            The model with the new samples.
        """
        fitted = self._fitted
        old = fitted.solution.samples
        leaving = validation.rows(instead_of, old.held) if np.size(instead_of) else np.empty(0, dtype=np.int64)
        features = self._checked(X)
        labels = validation.labels(y, len(features), self)
        weights = validation.sample_weights(sample_weight, len(features))
        classes, codes = np.unique(validation.joined(fitted.classes, labels), return_inverse=True)
        check_two(np.union1d(fitted.classes[old.without(leaving).present], labels[weights > 0.0]))
        solution = renumbered(fitted.solution, codes[: len(fitted.classes)])
        fresh = validation.as_narrow(validation.owned(like(to_numpy(features), old.X)), old.X)
        penalties = weigh(fitted.C, fitted.class_weight, labels.tolist(), weights)
        codes = codes[len(fitted.classes) :].astype(np.int64)
        samples = solution.samples.without(leaving).followed_by(fresh, validation.sizes(fresh), codes, penalties)
        changed = np.concatenate([leaving, np.arange(len(old.codes), len(samples.codes))])
        added = move(samples, solution, changed)
        found = replace(fitted, classes=classes, solution=added)
        check_heads(found)
        return self._with(found)

    def decision_function(self, X: Array | ArrayLike) -> Floats:
        """Scores w·x + b: how sure each head is that a sample is of its class.

        Parameters
        ----------
        X
            Samples × features.

        Returns
        -------
        ndarray
            Samples × heads; with two classes one score per sample, positive for the second class.
        """
        scores = scores_by(self._fitted, self._checked(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Array | ArrayLike) -> NDArray[Any]:
        """The class with the largest score, and of several the first.

        Parameters
        ----------
        X
            Samples × features.

        Returns
        -------
        ndarray
            One class label per sample.
        """
        features, fitted = self._checked(X), self._fitted
        step = max(1, SCORED_BYTES // (8 * len(fitted.solution.heads)))
        parts = (features[first : first + step] for first in range(0, len(features), step))
        codes = [best_classes(scores_by(fitted, part)) for part in parts]
        return np.asarray(fitted.present[np.concatenate(codes)])

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
        return tuple(head.influential.copy() for head in self._fitted.solution.heads)

    @property
    def multipliers_(self) -> tuple[Floats, ...]:
        caps = self._fitted.solution.samples.caps
        return tuple(head.influential_multipliers(caps) for head in self._fitted.solution.heads)

    @property
    def support_(self) -> Ints:
        return np.unique(np.concatenate([head.influential for head in self._fitted.solution.heads]))

    def _influential_among(self, rows: Ints) -> tuple[Bools, int]:
        """Which of some samples shape a head. Costs no more for many samples than for few.

        Parameters
        ----------
        rows
            Row numbers of samples that are held.

        Returns
        -------
        tuple of (ndarray of bool, int)
            For each row whether it is in `support_`; and how many heads these samples shape.
        """
        return self._fitted.solution.influential(rows)

    def _are_many(self, count: int) -> bool:
        """Whether heads are likely to be solved anew without so many influential samples: moving takes no less time.

        Parameters
        ----------
        count
            How many samples in `support_` leave.
        """
        solution = self._fitted.solution
        inside = sum(len(head.inside) - len(head.on_margin) for head in solution.heads)
        return inside > 0 and count > max(MOST_CHANGED, LARGEST_SHARE * len(solution.shaping))

    def _has_heads_of(self, other: "LinearSVM") -> bool:
        """Whether the heads are those of another model, certificates included: then nothing has moved them.

        Parameters
        ----------
        other : LinearSVM
            A model that this one came from, as by `_without`.

        Returns
        -------
        bool
            False also where they are the same and were computed again.
        """
        mine, others = self._fitted.solution.heads, other._fitted.solution.heads
        return len(mine) == len(others) and all(
            one.w is two.w and one.certificate is two.certificate for one, two in zip(mine, others, strict=True)
        )

    @property
    def _rows(self) -> Ints:
        return np.flatnonzero(self._fitted.solution.samples.held)

    def _features_of(self, rows: Ints) -> NDArray[Any]:
        """The features of some samples, in the type in which they are kept.

        Parameters
        ----------
        rows
            Row numbers of samples that are held.

        Returns
        -------
        ndarray
            Samples × features, in main memory.
        """
        return to_numpy(self._fitted.solution.samples.as_kept(rows))

    def _scores_of(self, rows: Ints) -> Floats:
        """The scores of some samples, as of `decision_function`.

        Parameters
        ----------
        rows
            Row numbers of samples that are held.

        Returns
        -------
        ndarray
            Samples × heads; with two classes one score per sample.
        """
        rows, heads = validation.row_numbers(rows), len(self._fitted.solution.heads)
        step = max(1, SCORED_BYTES // (8 * self.n_features_in_))
        parts = (rows[first : first + step] for first in range(0, len(rows), step))
        scores = [self.decision_function(self._features_of(part)) for part in parts]
        return np.concatenate(scores) if scores else np.empty((0, heads) if heads > 1 else 0)

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickles and copies hold: everything but screens, which know what was near the margin before.

        No screens, which know what was near the margin before the last requests.
        """
        state = dict(super().__getstate__())
        fitted = state.get("_state")
        if fitted is not None:
            heads = tuple(replace(head, screen=None) for head in fitted.solution.heads)
            state["_state"] = replace(fitted, solution=replace(fitted.solution, heads=heads))
        return state

    def __copy__(self) -> Self:
        """A copy with samples of its own: what one of two models erases is never missing in the other."""
        return copy.deepcopy(self)

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

    def _with(self, state: FittedState) -> Self:
        """Return a model with the same parameters in another state."""
        model = type(self).__new__(type(self))
        model.__dict__.update(vars(self), _state=state)
        return model

    def _checked(self, X: Array | ArrayLike) -> AnyArray:
        """Check that samples have as many features as the model was fitted on."""
        features = validation.features(X, self)
        validate_data(self, X if not is_torch(X) else to_numpy(features[:1]), reset=False, skip_check_array=True)
        return features

    def _on(self, samples: Samples) -> Self:
        """Return the model with its samples in other arrays."""
        return self._with(replace(self._fitted, solution=replace(self._fitted.solution, samples=samples)))

    def _read_only(self) -> Self:
        """Return the model for others to use: it copies its samples before it erases any."""
        samples = self._fitted.solution.samples
        views = {name: getattr(samples, name).view() for name in ERASED}
        for view in views.values():
            view.flags.writeable = False
        return self._on(replace(samples, **views))

    def _make_writable(self) -> None:
        """Copy arrays that cannot be erased in place, because the model was handed out or loaded as a memory map."""
        samples = self._fitted.solution.samples
        if np.any(samples.held & (samples.codes < 0)):
            raise ValueError("samples of this model were erased by another that shares them: it can no longer change")
        arrays = {name: getattr(samples, name) for name in ERASED}
        fixed = [name for name, array in arrays.items() if not is_torch(array) and not array.flags.writeable]
        if fixed:
            copies = {name: arrays[name].copy() for name in fixed}
            self._state = self._on(replace(samples, penalties=samples.penalties.copied(), **copies))._state


def check_heads(found: FittedState) -> None:
    """Raise an error for a head that is not solved, and warn about those without weights."""
    for head in found.solution.heads:
        if not head.certificate.solved:
            raise ConvergenceError(unsolved_message(head, found), validation.plain(found.classes[head.positive]))
    flat = [head for head in found.solution.heads if not head.w.any()]
    if flat:
        names = [validation.plain(found.classes[head.positive]) for head in flat]
        warnings.warn(flat_message(names), FlatHeadWarning, stacklevel=4)


def scores_by(fitted: FittedState, features: AnyArray) -> Floats:
    """Compute the scores of samples: samples × heads."""
    heads = fitted.solution.heads
    weights, biases = np.stack([head.w for head in heads], axis=1), np.array([head.b for head in heads])
    return np.asarray(to_numpy(times(features, like(weights, features))) + biases)


def flat_message(classes: Sequence[Any]) -> str:
    """Say of which classes the heads have weights of zero, and what helps."""
    more = f" and {len(classes) - MOST_NAMED} more" if len(classes) > MOST_NAMED else ""
    named = ", ".join(map(repr, classes[:MOST_NAMED])) + more
    which = f"the head of class {named} has" if len(classes) == 1 else f"the heads of classes {named} have"
    return (
        f"{which} weights of zero: under the hinge loss no linear function of the features is better than a "
        "constant (for every C where the certificate's `weight_error` is 0, elsewhere for this one, nearly), and every "
        "record is influential there. For a rare class a `class_weight` above 1 helps; "
        "otherwise features that tell it apart better, by longer training, another core or another network"
    )


def unsolved_message(head: Head, found: FittedState) -> str:
    """What went wrong, with the numbers that are too far apart, and what to do."""
    largest = validation.largest_by_column(found.solution.samples.X)
    known, label = head.certificate, validation.plain(found.classes[head.positive])
    wide, narrow = int(np.argmax(largest)), int(np.argmin(np.where(largest > 0.0, largest, np.inf)))
    return (
        f"the head of class {label!r} is not solved: its decision values are known only to {known.error:.1e}, and its "
        f"objective to {known.relative_gap:.1e} of itself. Column {wide} of the features reaches {largest[wide]:.1e}, "
        f"column {narrow} only {largest[narrow]:.1e}, and C is {found.C:g}. Scale the "
        "features to about 1; if they are, some columns are combinations of others up to rounding: fit on the "
        "features as float32, which tells samples apart that differ by less than float64 can decide"
    )


def check_two(left: NDArray[Any]) -> None:
    """Refuse to leave fewer classes than an SVM tells apart."""
    if len(left) < 2:
        only = f"only class {validation.plain(left[0])!r}" if len(left) else "no samples at all"
        raise ValueError(f"this would leave {only}, and an SVM needs two classes. Nothing was forgotten")


def renumbered(solution: Solution, code_of: Ints) -> Solution:
    """Return the solution with other numbers for its classes, because new classes have come between them."""
    samples = solution.samples
    codes = np.where(samples.codes >= 0, code_of[samples.codes], -1)
    renamed = tuple(replace(head, positive=int(code_of[head.positive])) for head in solution.heads)
    return replace(solution, samples=replace(samples, codes=codes), heads=renamed)
