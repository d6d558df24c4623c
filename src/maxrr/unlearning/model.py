"""MaxRR: a classifier that is trained so that forgetting is cheap, and forgets."""

import copy
import secrets
import time
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import nn

from maxrr.core import Choice, Core, Frozen
from maxrr.data import Dataset
from maxrr.data.checks import check_keys
from maxrr.data.labels import as_classes
from maxrr.errors import DataError
from maxrr.nets import Environment, Recipe
from maxrr.nets.given import given_weights
from maxrr.nets.records import chosen_device
from maxrr.nets.seeding import Network, checked
from maxrr.progress import Progress
from maxrr.svm import LinearSVM
from maxrr.svm.validation import penalty
from maxrr.unlearning import flat_heads
from maxrr.unlearning.aliases import Ids, Inputs, Labels
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.bundles import Bundle
from maxrr.unlearning.durations import Durations
from maxrr.unlearning.forgetting import execute
from maxrr.unlearning.locks import lock_of
from maxrr.unlearning.lookup import look_up, look_up_for_replacing
from maxrr.unlearning.plans import Plan, make_plan
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.records import HeldRecords, shuffled
from maxrr.unlearning.requests import REFUSE, RETAINED, Technique
from maxrr.unlearning.returning import copies_in, let_in
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Tombstones


class MaxRR(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained on a core of the records, and an exact linear SVM on all of them.

    Parameters
    ----------
    network : torch.nn.Module or function
        Its last linear layer is replaced by the SVM. With `Frozen()` it is the extractor itself.
    core : MiddleCore, FrequencyCore, HashCore, FullCore or Frozen
        Which records the extractor may see.
    C : float
        Weight of the SVM's losses.
    seed : int
        Decides everything that is drawn.
    epochs, batch_size, lr
        Of the training, as in `maxrr.nets.train`.
    device : optional
        As in `maxrr.nets.train`.
    threads : int
        Of the training on a CPU. The bytes of the extractor depend on it, so it does not follow the machine.

    Examples
    --------
    >>> from maxrr.core import HashCore
    >>> from maxrr.data import load
    >>> from maxrr.nets import LeNet5
    >>> training, test = load("digits")
    >>> model = MaxRR(LeNet5((1, 8, 8)), HashCore(0.5, key="house"), epochs=2).fit(training)
    >>> model.unlearn(training.ids[:3], core_policy="retrain").records_after
    1417
    """

    def __init__(
        self, network: Network, core: Core, *, C: float = 1.0, seed: int = 0,
        epochs: int = Recipe.epochs, batch_size: int = Recipe.batch_size, lr: float = Recipe.lr,
        device: str | None = None, threads: int = 1,
    ) -> None:  # fmt: skip
        self.network = network
        self.core = core
        self.C = C
        self.seed = seed
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.device = device
        self.threads = threads

    # Learning and predicting

    def fit(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None,
        subjects: Ids | None = None, *, allow_copies: str | None = None, folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Choose the core, train the extractor on it, and fit the heads on every record.

        `X` is a Dataset, or an array with labels `y`, record ids (row numbers if not given) and perhaps subject ids.
        In the folder a long ranking keeps the runs it has done, to go on from there after an interruption.

        An id that this model has forgotten is refused, whatever else of the record has changed. So are the values of a
        forgotten record under another id, in whatever type. Where these are other people's, as may be in a table with
        few columns, `allow_copies` lets them in and keeps the reason that it states.

        A head that cannot be solved is a `maxrr.svm.ConvergenceError`, and the model stays as it was. A head with
        weights of zero is warned about (`maxrr.svm.FlatHeadWarning`): every record is influential in it.
        """
        with self._lock:
            return self._fit(*as_dataset(X, y, ids, subjects), allow_copies, folder, progress)

    def _fit(
        self, dataset: Dataset, labels: NDArray[Any], allow_copies: str | None, folder: str | Path | None,
        progress: Progress | None,
    ) -> Self:  # fmt: skip
        penalty(self.C), checked(self.seed)  # which would be found wrong only after long work
        before: Fitted | None = vars(self).get("_state")
        key = secrets.token_bytes(32) if before is None else before.key
        copies = 0 if before is None else copies_in(before, dataset, allow_copies)
        overrides = let_in(copies, allow_copies)
        recipe = Recipe(self.epochs, self.batch_size, self.lr)
        blueprint = Blueprint(
            copy.deepcopy(self.network), isinstance(self.core, Frozen), self.seed, recipe, self.C, self.device,
            self.threads, Environment.here(chosen_device(self.device), self.threads),
            {} if isinstance(self.core, Frozen) else given_weights(self.network), copy.deepcopy(self.core),
        )  # fmt: skip
        choice = self.core.choose(
            self.network, dataset, C=self.C, recipe=recipe, seed=self.seed, device=self.device, folder=folder,
            progress=progress,
        )  # fmt: skip
        records = shuffled(dataset, key)
        held = HeldRecords.of(records)
        clock = [time.perf_counter()]
        extractor = blueprint.train_extractor(records, choice, progress)
        clock.append(time.perf_counter())
        features = blueprint.embed(extractor, records, progress)
        clock.append(time.perf_counter())
        heads = blueprint.fit_heads(features, records)
        clock.append(time.perf_counter())
        durations = Durations.measured(np.diff(clock).tolist(), len(choice.ids), len(records), len(heads.certificate_))
        fitted = Fitted(blueprint, extractor, heads, held, choice, labels, key, Tombstones(), durations)
        if before is not None:
            fitted = replace(
                fitted, tombstones=before.tombstones, receipts=before.receipts, overrides=before.overrides + overrides,
                layouts=before.layouts + 1,
            )  # fmt: skip
        flat_heads.warn(fitted.flat, stacklevel=3)
        self._state = fitted
        return self

    def decision_function(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """The heads' scores of records."""
        return decisions(self._fitted, X)

    def predict(self, X: Dataset | Inputs) -> NDArray[Any]:
        """The classes of records.

        Parameters
        ----------
        X : Dataset or array
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            Of a Dataset the class names, as strings. Of an array the labels that `fit` was given, as in `classes_`;
            where `fit` was given a Dataset, these are places in its class names.
        """
        fitted = self._fitted  # one state from here to the end, whatever another thread does
        scores = decisions(fitted, X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        classes = np.array(fitted.head_classes) if isinstance(X, Dataset) else fitted.labels[fitted.codes]
        return np.asarray(classes[best])

    def predict_proba(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """Probabilities of the classes in `classes_`, by Platt scaling on the retained records."""
        fitted = self._fitted
        if "platt" not in fitted.derived:
            with self._lock:  # the records must stay for as long as they are looked at
                fitted = self._fitted
                fitted.platt()
        return fitted.platt().probabilities(decisions(fitted, X))

    def score(
        self, X: Dataset | Inputs, y: Labels | None = None, sample_weight: ArrayLike | None = None
    ) -> float:  # fmt: skip
        """The share of records that are classified rightly. Those of a Dataset are compared by their class names."""
        truth = np.array(X.class_names)[X.labels] if isinstance(X, Dataset) else np.asarray(y)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(self.predict(X) == truth, weights=weights))

    # What a fitted model shows

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that still have records."""
        fitted = self._fitted
        return np.asarray(fitted.labels[fitted.codes])

    @property
    def heads_(self) -> LinearSVM:
        """The SVM."""
        return self._fitted.heads

    @property
    def extractor_(self) -> nn.Module:
        """The network before it: a copy, because the model answers with its own."""
        return copy.deepcopy(self._fitted.extractor)

    @property
    def core_(self) -> Choice:
        """The choice of the core, less the forgotten records."""
        return self._fitted.choice

    def influential_ids(self) -> NDArray[Any]:
        """The ids of the records that shape a head, in order. Rows of `heads_` stand in an order of their own."""
        fitted = self._fitted
        return np.sort(fitted.records.ids[fitted.heads.support_])

    @property
    def model_hash_(self) -> str:
        """Over extractor and heads."""
        return self._fitted.model_hash

    @property
    def content_hash_(self) -> str:
        """Over the retained records: the content hash of a Dataset of these."""
        return self._fitted.records.content_hash

    def bundle(self) -> Bundle:
        """What is needed to replay the current state, by training again: for whoever runs the model, not the public."""
        with self._lock:
            return Bundle.of(self._fitted)

    # Forgetting

    def plan(
        self, ids: Ids | None = None, *, subjects: Ids | None = None,
        core_policy: str | Technique = REFUSE, refit: str = RETAINED,
    ) -> Plan:  # fmt: skip
        """What `unlearn` would do with this request. Changes nothing; `execute` does it."""
        with self._lock:
            return make_plan(self._fitted, look_up(self._fitted, ids, subjects, core_policy, refit))

    def plan_replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """What `replace` would do. Changes nothing; `execute` does it."""
        with self._lock:
            request = look_up_for_replacing(self._fitted, id, inputs, label, core_policy, allow_copies)
            return make_plan(self._fitted, request)

    def execute(self, plan: Plan, *, progress: Progress | None = None) -> Receipt:
        """Do what a plan of this model says, whole or not at all.

        If something was forgotten, replaced or fitted since the plan was made, it is a `maxrr.errors.Stale`; if it is a
        plan that refuses, a `maxrr.errors.Refused`.
        """
        with self._lock:
            return execute(self._fitted, plan, self._take_over, progress)

    def unlearn(
        self, ids: Ids | None = None, *, subjects: Ids | None = None,
        core_policy: str | Technique = REFUSE, refit: str = RETAINED, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Forget records, by id or all of some subjects.

        Requests are cumulative, and done whole or not at all. Records forgotten before are counted on the receipt.
        Where a head cannot be solved without the records, a `maxrr.svm.ConvergenceError` says so.

        Parameters
        ----------
        core_policy
            What to do if records are core: "refuse" raises `maxrr.errors.Refused`, which carries a plan for each of the
            others; "retrain" trains the extractor again without them (exact); "keep-extractor" moves the heads and
            leaves it alone (approximate). A function gets the extractor, the core records that stay and those to
            forget, and returns another extractor (approximate).
        refit
            "retained" fits the heads on all retained records, "influential" on those that were influential in the
            last full fit: cheaper, and not the same.
        """
        with self._lock:
            plan = self.plan(ids, subjects=subjects, core_policy=core_policy, refit=refit)
            return execute(self._fitted, plan, self._take_over, progress)

    def replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Rectify a record: forget the one with this id, and learn another in its place.

        Without a label it keeps the old one. The new record enters the heads. Where the extractor is trained again and
        the core is decided for each record by itself (`HashCore`, `FullCore`), it enters the core as well if its id
        says so, and the model is the one that fitting the corrected data gives. With a core that was ranked it does not
        enter before the next `fit`: the model is the one that an extractor on the same core, without the record, and
        heads on all records give. The values of a forgotten record are refused, as by `fit`.
        """
        with self._lock:
            plan = self.plan_replace(id, inputs, label, core_policy=core_policy, allow_copies=allow_copies)
            return execute(self._fitted, plan, self._take_over, progress)

    def _take_over(self, after: Fitted, receipt: Receipt) -> None:
        self._state = after

    @property
    def _lock(self) -> RLock:
        """Held by whoever changes the model or reads its records. Those who predict never wait for it."""
        return lock_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which are of one state, whatever another thread erases meanwhile."""
        with self._lock:
            found = {name: value for name, value in super().__getstate__().items() if name != "_own_lock"}
            return copy.deepcopy(found)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__getstate__())
        return made

    @property
    def _fitted(self) -> Fitted:
        found = vars(self).get("_state")
        if found is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' with records first")
        assert isinstance(found, Fitted)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)


def as_dataset(
    X: Dataset | Inputs, y: Labels | None, ids: Ids | None, subjects: Ids | None
) -> tuple[Dataset, NDArray[Any]]:
    """Records, and what the caller calls their classes."""
    if isinstance(X, Dataset):
        if y is not None or ids is not None or subjects is not None:
            raise ValueError("a Dataset has its own labels, ids and subjects: leave y, ids and subjects out")
        return X, np.arange(len(X.class_names))
    if y is None:
        raise ValueError("an array of records needs their labels y, or pass a Dataset")
    inputs = np.asarray(X)
    labels, codes = np.unique(as_classes(y), return_inverse=True)
    names = np.arange(len(inputs)) if ids is None else check_keys(ids, "record ids")
    whose = None if subjects is None else check_keys(subjects, "subject ids")
    known = tuple(map(str, labels.tolist()))
    return Dataset(inputs, codes.astype(np.int64), known, names, whose, columns=column_names(X)), labels


def column_names(X: Any) -> tuple[str, ...] | None:
    """What a data frame calls its columns, if it calls them by words."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def decisions(fitted: Fitted, X: Dataset | Inputs) -> NDArray[np.float64]:
    """The scores of records that are of the kind that a model was fitted on."""
    known = fitted.records
    array = X.inputs if isinstance(X, Dataset) else np.asarray(X)
    names = column_names(X) if not isinstance(X, Dataset) else X.columns
    if names is not None and known.columns is not None and names != known.columns:
        raise DataError(
            f"the columns are {listed(names)}, but the model was fitted on {listed(known.columns)}: bring the same "
            "ones in the same order"
        )
    if array.shape[1:] != known.shape:
        raise DataError(f"the records have shape {array.shape[1:]}, but the model was fitted on {known.shape}")
    if (array.dtype == np.uint8) != (known.dtype == np.uint8):
        kinds = "pixels of 0 to 255 in uint8, which it divides by 255", "floats, which it takes as they are"
        fitted_on = kinds[0] if known.dtype == np.uint8 else kinds[1]
        raise DataError(f"the records are {array.dtype}, but the model was fitted on {fitted_on}: bring the same kind")
    records = X if isinstance(X, Dataset) else unlabelled(array)
    return np.asarray(fitted.heads.decision_function(fitted.blueprint.embed(fitted.extractor, records)))


def unlabelled(array: NDArray[Any]) -> Dataset:
    """Records of which nothing else is known."""
    return Dataset(array, np.zeros(len(array), dtype=np.int64), ("unknown",), np.arange(len(array)))


def listed(names: tuple[str, ...]) -> str:
    """The first few."""
    return ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")
