"""MaxRR: a classifier that is trained so that forgetting is cheap, and forgets."""

import copy
import secrets
import time
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import nn

from maxrr.core import Choice, Core, Frozen
from maxrr.data import DataError, Dataset
from maxrr.data.checks import check_keys
from maxrr.nets import Environment, Recipe
from maxrr.nets.records import chosen_device
from maxrr.nets.seeding import Network
from maxrr.progress import Report
from maxrr.svm import LinearSVM
from maxrr.unlearning import plans, state
from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.holdings import Holdings
from maxrr.unlearning.oblivion import Oblivion, id_mark
from maxrr.unlearning.plans import Plan, Request, Technique
from maxrr.unlearning.proof import Bundle
from maxrr.unlearning.receipts import HeadProof, Receipt
from maxrr.unlearning.setting import Setting
from maxrr.unlearning.state import Fitted


class MaxRR(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained on a core of the records, and an exact linear SVM on all of them.

    Parameters
    ----------
    network : torch.nn.Module or function
        Its last linear layer is replaced by the SVM. With `Frozen()` it is the extractor itself.
    core : FrequencyCore, HashCore, FullCore or Frozen
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
    >>> model.unlearn(training.ids[:3]).records_after
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
        self, X: Dataset | ArrayLike, y: ArrayLike | None = None, ids: ArrayLike | None = None,
        subjects: ArrayLike | None = None, report: Report | None = None,
    ) -> Self:  # fmt: skip
        """Choose the core, train the extractor on it, and fit the head on every record.

        `X` is a Dataset, or an array with labels `y`, record ids (row numbers if not given) and perhaps subject ids.
        Records that this model has forgotten are refused; their features under another id are warned about.
        """
        dataset, labels = as_dataset(X, y, ids, subjects)
        before = vars(self).get("_state")
        key = secrets.token_bytes(32) if before is None else before.key
        oblivion = Oblivion() if before is None else before.oblivion
        check_not_forgotten(oblivion, key, dataset)
        recipe = Recipe(self.epochs, self.batch_size, self.lr)
        setting = Setting(
            copy.deepcopy(self.network), isinstance(self.core, Frozen), self.seed, recipe, self.C, self.device,
            self.threads, Environment.here(chosen_device(self.device), self.threads),
        )  # fmt: skip
        choice = self.core.choose(
            self.network, dataset, C=self.C, recipe=recipe, seed=self.seed, device=self.device, report=report
        )
        ordered = dataset.in_order()
        holdings = Holdings.of(ordered)
        extractor = setting.extractor(ordered, choice, report)
        head = setting.head(extractor, ordered, report)
        requests = 0 if before is None else before.requests
        self._state = Fitted(setting, extractor, head, holdings, choice, labels, key, oblivion, requests=requests)
        return self

    def decision_function(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        """The head's scores of records."""
        fitted = self._fitted
        if isinstance(X, Dataset):
            records = X
        else:
            array = np.asarray(X)
            records = Dataset(array, np.zeros(len(array), dtype=np.int64), ("unknown",), np.arange(len(array)))
        expected = fitted.holdings.features.shape[1:]
        if records.shape != expected:
            raise ValueError(f"the records have shape {records.shape}, but the model was fitted on {expected}")
        return np.asarray(fitted.head.decision_function(fitted.setting.features(fitted.extractor, records)))

    def predict(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        """The classes of records: indices for a Dataset's, or the labels that `fit` was given."""
        scores = self.decision_function(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Dataset | ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes in `classes_`, by Platt scaling on the retained records."""
        return self._fitted.platt().probabilities(self.decision_function(X))

    def score(
        self, X: Dataset | ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:  # fmt: skip
        """The share of records that are classified rightly."""
        truth = X.labels if isinstance(X, Dataset) else np.asarray(y)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(self.predict(X) == truth, weights=weights))

    # What a fitted model shows

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that still have records."""
        return np.asarray(self._fitted.labels[self._fitted.head.classes_])

    @property
    def head_(self) -> LinearSVM:
        """The SVM."""
        return self._fitted.head

    @property
    def extractor_(self) -> nn.Module:
        """The network before it."""
        return self._fitted.extractor

    @property
    def core_(self) -> Choice:
        """The choice of the core, less the forgotten records."""
        return self._fitted.choice

    @property
    def model_hash_(self) -> str:
        """Over extractor and head."""
        return self._fitted.model_hash

    @property
    def manifest_(self) -> str:
        """Over the retained records: the content hash of a Dataset of these."""
        return self._fitted.holdings.manifest

    def bundle(self) -> Bundle:
        """What is needed to prove the current state by training again: for whoever runs the model, not the public."""
        fitted = self._fitted
        return Bundle(
            fitted.setting, fitted.choice, fitted.holdings.manifest, fitted.model_hash,
            copy.deepcopy(fitted.extractor), fitted.head_classes, fitted.head.coef_, fitted.head.intercept_,
            fitted.left_in_extractor, fitted.technique, fitted.on_influential,
        )  # fmt: skip

    # Forgetting

    def plan(
        self, ids: ArrayLike | None = None, *, subjects: ArrayLike | None = None,
        core_policy: str | Technique = plans.HEAD, refit: str = plans.RETAINED,
    ) -> Plan:  # fmt: skip
        """What `unlearn` would do with this request. Changes nothing."""
        return make_plan(self._fitted, look_up(self._fitted, ids, subjects, core_policy, refit), None)

    def unlearn(
        self, ids: ArrayLike | None = None, *, subjects: ArrayLike | None = None,
        core_policy: str | Technique = plans.HEAD, refit: str = plans.RETAINED, report: Report | None = None,
    ) -> Receipt:  # fmt: skip
        """Forget records, by id or all of some subjects.

        Requests are cumulative, and done whole or not at all. Records forgotten before are counted on the receipt.

        Parameters
        ----------
        core_policy
            What to do if records are core: "head" moves the head and leaves the extractor (approximate), "retrain"
            trains it again without them (exact), "refuse" refuses. A function gets the extractor, the core records
            that stay and those to forget, and returns another extractor.
        refit
            "retained" fits the head on all retained records, "influential" on those that were influential in the
            last full fit: cheaper, and not the same.
        """
        return self._carry_out(look_up(self._fitted, ids, subjects, core_policy, refit), None, report)

    def replace(
        self, id: int | str, features: ArrayLike, label: Any = None, *,
        core_policy: str | Technique = plans.HEAD, report: Report | None = None,
    ) -> Receipt:  # fmt: skip
        """Rectify a record: forget the one with this id, and learn another in its place.

        The new record enters the head, and never the core before the next `fit`. Without a label it keeps the old one.
        """
        request = look_up(self._fitted, [id], None, core_policy, plans.RETAINED)
        if request.already_forgotten:
            raise ValueError(f"the record {id!r} was forgotten: there is nothing to replace")
        added = rectified(self._fitted, request, features, label) if len(request.rows) else None
        return self._carry_out(request, added, report)

    def _carry_out(self, request: Request, added: Dataset | None, report: Report | None) -> Receipt:
        started = time.perf_counter()
        before = self._fitted
        plan = make_plan(before, request, added)
        if plan.refusal:
            raise ValueError(plan.refusal)
        after = state.without(before, request, added, report)
        receipt = make_receipt(request, plan, before, after, started)
        self._state = after
        # From here on the records are gone; what is left is to overwrite what they were.
        after.head.erase()
        before.holdings.without(request.rows).erase()
        return receipt

    @property
    def _fitted(self) -> Fitted:
        found = vars(self).get("_state")
        if found is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' with records first")
        assert isinstance(found, Fitted)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)


def look_up(
    fitted: Fitted, ids: ArrayLike | None, subjects: ArrayLike | None, core_policy: str | Technique, refit: str
) -> Request:
    """Rows and kinds of the records that a request names."""
    plans.check_policy(core_policy, refit)
    if (ids is None) == (subjects is None):
        raise ValueError("a request names records by ids, or people by subjects: one of the two")
    if subjects is not None:
        people = np.unique(keys_of(subjects, "subject ids"))
        rows = np.sort(fitted.holdings.of_subjects(people))
        return Request(rows, rows[fitted.core[rows]], [], 0, core_policy, refit)
    wanted = np.unique(keys_of(ids, "record ids"))
    found = fitted.holdings.rows(wanted)
    missing, rows = wanted[found < 0], np.sort(found[found >= 0])
    gone = fitted.oblivion.knows(fitted.key, missing)
    return Request(rows, rows[fitted.core[rows]], missing[~gone].tolist(), int(gone.sum()), core_policy, refit)


def keys_of(given: ArrayLike | None, what: str) -> NDArray[Any]:
    """Ids as a request may give them: one or many, also in a column of objects."""
    array = np.atleast_1d(np.asarray(given))
    return check_keys(np.asarray(array.tolist()) if array.dtype.kind == "O" else array, what)


def make_plan(fitted: Fitted, request: Request, added: Dataset | None) -> Plan:
    """What a request will do. With records added, the head is fitted again whatever else."""
    holdings, count = fitted.holdings, len(request.core_rows)
    influential, heads = fitted.influenced(request.rows)
    others = int((~np.isin(influential, request.core_rows)).sum())
    guarantee = plans.promise(request, heads, fitted.on_influential)
    if added is not None and guarantee is Guarantee.untouched:
        guarantee = Guarantee.refit
    left = holdings.alive.copy()
    left[request.rows] = False
    labels_left = np.unique(np.concatenate([holdings.labels[left], [] if added is None else added.labels])).astype(int)
    fitted_on = labels_left
    if request.refit == plans.INFLUENTIAL and not request.makes_extractor and (heads or fitted.on_influential):
        basis = fitted.head.held_[0] if fitted.on_influential else fitted.head.support_
        fitted_on = np.unique(holdings.labels[np.setdiff1d(basis, request.rows)])
    core_left = int(fitted.core.sum()) - count
    anew = request.makes_extractor or added is not None or (fitted.on_influential and request.refit == plans.RETAINED)
    return Plan(
        guarantee, plans.why(guarantee, request, others, fitted.on_influential, fitted.left_in_extractor),
        requested=len(request.rows) + len(request.unknown) + request.already_forgotten,
        core=count, influential=others, neither=len(request.rows) - count - others,
        unknown=len(request.unknown), already_forgotten=request.already_forgotten,
        duplicates_left=holdings.twins(request.rows),
        heads=len(labels_left) if anew else heads,
        trains=core_left if request.core_policy == plans.RETRAIN and count else 0,
        embeds=int(left.sum()) if anew else 0,
        refusal=plans.refusal(
            request, [holdings.class_names[label] for label in labels_left],
            [holdings.class_names[label] for label in fitted_on], len(np.unique(holdings.labels[fitted.core & left])),
        ),
    )  # fmt: skip


def make_receipt(request: Request, plan: Plan, before: Fitted, after: Fitted, started: float) -> Receipt:
    """What was done."""
    classes = after.head_classes if len(after.head_classes) > 2 else after.head_classes[1:]
    heads = [HeadProof.of(*pair) for pair in zip(classes, after.head.certificate_, strict=True)]
    setting, ids = before.setting, before.holdings.ids[request.rows].tolist()
    return Receipt(
        number=after.requests, guarantee=plan.guarantee.value, reason=plan.reason,
        bytes_claim="identical" if all(head.decided for head in heads) else "equal to 1e-10",
        unconditional=before.choice.unconditional and plan.guarantee.exact and not after.left_in_extractor,
        core_depended_on=before.choice.depended_on, core_details=dict(before.choice.details),
        core_policy=request.policy, refit=request.refit, requested=plan.requested, core=plan.core,
        influential=plan.influential, neither=plan.neither, already_forgotten=plan.already_forgotten,
        duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor,
        record_marks=sorted(id_mark(before.key, id_).hex() for id_ in ids),
        records_before=int(before.holdings.alive.sum()), records_after=int(after.holdings.alive.sum()),
        manifest_before=before.holdings.manifest, manifest_after=after.holdings.manifest,
        model_before=before.model_hash, model_after=after.model_hash, heads=heads,
        seed=setting.seed, recipe=asdict(setting.recipe), C=setting.C, environment=asdict(setting.environment),
        time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started,
    )  # fmt: skip


def rectified(fitted: Fitted, request: Request, features: ArrayLike, label: Any) -> Dataset:
    """The record that takes the place of the requested one."""
    old = fitted.holdings.select(request.rows)
    given = np.asarray(features)
    if given.shape != old.shape:
        raise DataError(f"the new record has shape {given.shape}, but the model's records have {old.shape}")
    content = given.astype(old.features.dtype)
    if old.features.dtype.kind in "iu" and not np.array_equal(content, given):
        raise DataError(f"the new record does not fit into {old.features.dtype}, which the model's records are of")
    labels = old.labels
    if label is not None:
        found = np.flatnonzero(fitted.labels == label) if np.ndim(label) == 0 else np.zeros(0, dtype=int)
        if not len(found):
            known = ", ".join(map(repr, fitted.labels.tolist()))
            raise DataError(f"there is no class {label!r}; the classes are {known}")
        labels = found[:1]
    return Dataset(content[None], labels, old.class_names, old.ids, old.subjects)


def as_dataset(
    X: Dataset | ArrayLike, y: ArrayLike | None, ids: ArrayLike | None, subjects: ArrayLike | None
) -> tuple[Dataset, NDArray[Any]]:
    """Records, and what the caller calls their classes."""
    if isinstance(X, Dataset):
        if y is not None or ids is not None or subjects is not None:
            raise ValueError("a Dataset has its own labels, ids and subjects: leave y, ids and subjects out")
        return X, np.arange(len(X.class_names))
    if y is None:
        raise ValueError("an array of records needs their labels y, or pass a Dataset")
    features = np.asarray(X)
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    names = np.arange(len(features)) if ids is None else np.asarray(ids)
    whose = None if subjects is None else np.asarray(subjects)
    return Dataset(features, codes.astype(np.int64), tuple(map(str, labels.tolist())), names, whose), labels


def check_not_forgotten(oblivion: Oblivion, key: bytes, dataset: Dataset) -> None:
    """Refuse records that were forgotten, and warn of their features under other ids."""
    same, other = oblivion.brought_back(key, dataset)
    if same:
        raise ValueError(
            f"{same} of the records were forgotten by this model and must not come back: leave them out of the data"
        )
    if other:
        warnings.warn(f"{other} of the records have the features of forgotten ones, under other ids", stacklevel=3)
