"""MaxRR: a classifier that is trained so that forgetting is cheap, and forgets.

Everything a fitted model is lies in one frozen `Fitted`. A request computes the next one beside it and takes its place
by a single assignment, so an error or an interruption leaves the model as it was; then what the old one held of the
forgotten records is overwritten.
"""

import copy
import secrets
import time
import warnings
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import nn

from maxrr.core import Choice, Core, Frozen
from maxrr.data import Dataset
from maxrr.nets import Environment, Recipe, embed, split, train
from maxrr.nets.records import chosen_device
from maxrr.nets.seeding import Network
from maxrr.progress import Report
from maxrr.svm import LinearSVM, PlattScaling, fit_platt
from maxrr.unlearning import plans
from maxrr.unlearning.hashes import model_hash
from maxrr.unlearning.holdings import Bools, Holdings, Ids
from maxrr.unlearning.oblivion import Oblivion, id_mark
from maxrr.unlearning.plans import Plan, Request, Technique
from maxrr.unlearning.proof import Bundle
from maxrr.unlearning.receipts import HeadProof, Receipt


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that a model is after `fit`."""

    extractor: nn.Module
    head: LinearSVM  # its samples stand where the holdings' records do
    holdings: Holdings
    choice: Choice
    labels: NDArray[Any]  # what callers call the classes
    key: bytes
    oblivion: Oblivion
    on_influential: bool  # the head was fitted on influential records alone, and holds no others
    left_in_extractor: int  # forgotten core records that the extractor was trained on
    technique: bool  # the extractor is the work of a caller's function
    requests: int
    derived: dict[str, PlattScaling] = field(default_factory=dict)  # from head and records, made when asked for

    @cached_property
    def core(self) -> Bools:
        """Which rows are core records."""
        rows = self.holdings.rows(self.choice.ids)
        mask = np.zeros(len(self.holdings.ids), dtype=bool)
        mask[rows[rows >= 0]] = True
        return mask

    @cached_property
    def model_hash(self) -> str:
        """Over extractor and head."""
        return model_hash(self.extractor, self.head, self.holdings.class_names)


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
    key : bytes, optional
        Under which forgotten records are remembered. Drawn by `fit` if not given; never shown.

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
        device: str | None = None, threads: int = 1, key: bytes | None = None,
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
        self.key = key

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
        key = before.key if before is not None else self.key or secrets.token_bytes(32)
        oblivion = before.oblivion if before is not None else Oblivion()
        check_not_forgotten(oblivion, key, dataset)
        choice = self.core.choose(
            self.network, dataset, C=self.C, recipe=self._recipe, seed=self.seed, device=self.device, report=report
        )
        holdings = Holdings.of(dataset)
        extractor = self._train(holdings, choice, report)
        head = self._fit_head(extractor, holdings, report)
        self._state = Fitted(
            extractor, head, holdings, choice, labels, key, oblivion,
            on_influential=False, left_in_extractor=0, technique=False,
            requests=0 if before is None else before.requests,
        )  # fmt: skip
        return self

    def decision_function(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        """The head's scores of records."""
        return np.asarray(self._fitted.head.decision_function(self._embed(X)))

    def predict(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        """The classes of records: indices for a Dataset's, or the labels that `fit` was given."""
        return np.asarray(self._fitted.labels[self._fitted.head.predict(self._embed(X))])

    def predict_proba(self, X: Dataset | ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes in `classes_`, by Platt scaling on the retained records."""
        return self._platt().probabilities(self.decision_function(X))

    def score(
        self, X: Dataset | ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """The share of records that are classified rightly."""
        truth = X.labels if isinstance(X, Dataset) else np.asarray(y)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(self.predict(X) == truth, weights=weights))

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
            self.network, isinstance(self.core, Frozen), fitted.choice.ids.copy(), self.seed, self._recipe, self.C,
            self.device, Environment.here(chosen_device(self.device), self.threads), self.manifest_, self.model_hash_,
            copy.deepcopy(fitted.extractor), fitted.head.coef_, fitted.head.intercept_,
            fitted.left_in_extractor, fitted.technique, fitted.on_influential,
        )  # fmt: skip

    # Forgetting

    def plan(
        self, ids: ArrayLike | None = None, *, subjects: ArrayLike | None = None,
        core_policy: str | Technique = plans.HEAD, refit: str = plans.RETAINED,
    ) -> Plan:  # fmt: skip
        """What `unlearn` would do with this request. Changes nothing."""
        return self._plan(self._look_up(ids, subjects, core_policy, refit))

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
        started = time.perf_counter()
        request = self._look_up(ids, subjects, core_policy, refit)
        plan = self._plan(request)
        if plan.refusal:
            raise ValueError(plan.refusal)
        before = self._fitted
        after = self._without(request, plan, report)
        receipt = self._receipt(request, plan, before, after, started)
        self._state = after
        after.head.erase()
        before.holdings.without(request.rows).erase()
        return receipt

    def replace(
        self, id: int | str, features: ArrayLike, label: Any = None, *,
        core_policy: str | Technique = plans.HEAD, report: Report | None = None,
    ) -> Receipt:  # fmt: skip
        """Rectify a record: forget the one with this id, and learn another in its place.

        The new record enters the head, and never the core before the next `fit`. Without a label it keeps the old one.
        """
        started = time.perf_counter()
        request = self._look_up([id], None, core_policy, plans.RETAINED)
        plan = self._plan(request)
        if plan.refusal or not len(request.rows):
            raise ValueError(plan.refusal or f"the record {id!r} was forgotten: there is nothing to replace")
        before = self._fitted
        record = self._rectified(request, features, label)
        after = self._without(request, plan, report)
        kept = Holdings.of(Holdings.of(after.holdings.retained()).with_added(record).retained())
        after = replace(after, holdings=kept, head=self._fit_head(after.extractor, kept, report), on_influential=False)
        receipt = self._receipt(request, plan, before, after, started)
        self._state = after
        before.holdings.without(request.rows).erase()
        return receipt

    def _rectified(self, request: Request, features: ArrayLike, label: Any) -> Dataset:
        """The record that takes the place of the requested one."""
        fitted, old = self._fitted, self._fitted.holdings.select(request.rows)
        content = np.asarray(features, dtype=old.features.dtype)
        if content.shape != old.shape:
            raise ValueError(f"the new record has shape {content.shape}, but the model's records have {old.shape}")
        labels = old.labels
        if label is not None:
            found = np.flatnonzero(fitted.labels == label)
            if not len(found):
                known = ", ".join(map(repr, fitted.labels.tolist()))
                raise ValueError(f"there is no class {label!r}; the classes are {known}")
            labels = found[:1]
        return Dataset(content[None], labels, old.class_names, old.ids, old.subjects)

    # How it is done

    @property
    def _recipe(self) -> Recipe:
        return Recipe(self.epochs, self.batch_size, self.lr)

    @property
    def _fitted(self) -> Fitted:
        state = vars(self).get("_state")
        if state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' with records first")
        assert isinstance(state, Fitted)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def _train(self, holdings: Holdings, choice: Choice, report: Report | None) -> nn.Module:
        """The extractor: from the core records alone."""
        if isinstance(self.core, Frozen):
            network = self.network if isinstance(self.network, nn.Module) else self.network()
            return copy.deepcopy(network).cpu().eval()
        rows = holdings.rows(choice.ids)
        run = train(
            self.network, holdings.select(rows[rows >= 0]), self.seed, epochs=self.epochs, batch_size=self.batch_size,
            lr=self.lr, device=self.device, threads=self.threads, report=report,
        )  # fmt: skip
        return split(run.network)[0]

    def _fit_head(self, extractor: nn.Module, holdings: Holdings, report: Report | None) -> LinearSVM:
        """The head: on every record that is there, all of which must be."""
        features = embed(extractor, holdings.select(np.arange(len(holdings.ids))), device=self.device, report=report)
        return LinearSVM(C=self.C).fit(features, holdings.labels, keys=holdings.ids)

    def _embed(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        if isinstance(X, Dataset):
            records = X
        else:
            array = np.asarray(X)
            records = Dataset(array, np.zeros(len(array), dtype=np.int64), ("unknown",), np.arange(len(array)))
        return embed(self._fitted.extractor, records, device=self.device)

    def _platt(self) -> PlattScaling:
        fitted = self._fitted
        if "platt" not in fitted.derived:
            rows, features = fitted.head.held_
            scores = fitted.head.decision_function(features)
            fitted.derived["platt"] = fit_platt(scores, fitted.holdings.labels[rows], fitted.head.classes_)
        return fitted.derived["platt"]

    def _look_up(
        self, ids: ArrayLike | None, subjects: ArrayLike | None, core_policy: str | Technique, refit: str
    ) -> Request:
        """Rows and kinds of the records that a request names."""
        plans.check_policy(core_policy, refit)
        if (ids is None) == (subjects is None):
            raise ValueError("a request names records by ids, or people by subjects: one of the two")
        fitted = self._fitted
        unknown: list[Any] = []
        already = 0
        if subjects is not None:
            rows = fitted.holdings.of_subjects(np.unique(np.atleast_1d(np.asarray(subjects))))
        else:
            wanted: Ids = np.unique(np.atleast_1d(np.asarray(ids)))
            rows = fitted.holdings.rows(wanted)
            missing = wanted[rows < 0]
            gone = fitted.oblivion.knows(fitted.key, missing)
            unknown, already = missing[~gone].tolist(), int(gone.sum())
            rows = rows[rows >= 0]
        core = rows[fitted.core[rows]]
        return Request(np.sort(rows), np.sort(core), unknown, already, core_policy, refit)

    def _plan(self, request: Request) -> Plan:
        fitted = self._fitted
        shaped = [np.isin(request.rows, head) for head in fitted.head.influential_]
        influential = request.rows[np.any(shaped, axis=0)]
        heads = sum(bool(head.any()) for head in shaped)
        others = np.setdiff1d(influential, request.core_rows)
        guarantee = plans.promise(request, heads)
        anew = request.touches_core and (request.core_policy == plans.RETRAIN or callable(request.core_policy))
        core_left = int(fitted.core.sum()) - len(request.core_rows)
        left = fitted.holdings.alive.copy()
        left[request.rows] = False
        names = [fitted.holdings.class_names[label] for label in np.unique(fitted.holdings.labels[left])]
        return Plan(
            guarantee, plans.why(guarantee, len(request.core_rows), len(others), request.refit),
            requested=len(request.rows) + len(request.unknown) + request.already_forgotten,
            core=len(request.core_rows), influential=len(others),
            neither=len(request.rows) - len(request.core_rows) - len(others),
            unknown=len(request.unknown), already_forgotten=request.already_forgotten,
            duplicates_left=fitted.holdings.twins(request.rows) if len(request.rows) else 0,
            heads=len(names) if anew else heads, trains=core_left if anew else 0,
            embeds=int(left.sum()) if anew else 0,
            refusal=plans.refusal(request, names, core_left),
        )  # fmt: skip

    def _without(self, request: Request, plan: Plan, report: Report | None) -> Fitted:
        """The model without the records; what it holds of them is still to be erased."""
        fitted = self._fitted
        holdings = fitted.holdings.without(request.rows)
        gone = fitted.holdings.ids[request.rows]
        kept_core = fitted.core.copy()
        kept_core[request.rows] = False
        choice = replace(fitted.choice, ids=np.sort(fitted.holdings.ids[kept_core]))
        oblivion = fitted.oblivion.with_records(fitted.key, gone, fitted.holdings.contents[request.rows])
        after = replace(
            fitted, holdings=holdings, choice=choice, oblivion=oblivion, requests=fitted.requests + 1, derived={}
        )
        if not len(request.rows):
            return after
        if request.touches_core and (request.core_policy == plans.RETRAIN or callable(request.core_policy)):
            kept = Holdings.of(holdings.retained())
            if callable(request.core_policy):
                rows = kept.rows(choice.ids)
                forgotten = fitted.holdings.select(request.core_rows)
                extractor = request.core_policy(copy.deepcopy(fitted.extractor), kept.select(rows), forgotten).eval()
                left = fitted.left_in_extractor + len(request.core_rows)
            else:
                extractor, left = self._train(kept, choice, report), 0
            head = self._fit_head(extractor, kept, report)
            return replace(
                after, holdings=kept, extractor=extractor, head=head, left_in_extractor=left, on_influential=False,
                technique=callable(request.core_policy),
            )  # fmt: skip
        after = replace(after, left_in_extractor=fitted.left_in_extractor + len(request.core_rows))
        if request.refit == plans.INFLUENTIAL and (plan.heads or fitted.on_influential):
            support = fitted.head.held_[0] if fitted.on_influential else fitted.head.support_
            leaving = np.setdiff1d(fitted.head.held_[0], np.setdiff1d(support, request.rows))
            head = fitted.head.without(leaving) if len(leaving) else fitted.head
            return replace(after, head=head, on_influential=True)
        if fitted.on_influential:  # the head knows too little to go on from: fit it on all retained records
            kept = Holdings.of(holdings.retained())
            head = self._fit_head(fitted.extractor, kept, report)
            return replace(after, holdings=kept, head=head, on_influential=False)
        return replace(after, head=fitted.head.without(request.rows))

    def _receipt(self, request: Request, plan: Plan, before: Fitted, after: Fitted, started: float) -> Receipt:
        names = before.holdings.class_names
        heads = [
            HeadProof.of(names[label], certificate)
            for label, certificate in zip(heads_of(after.head), after.head.certificate_, strict=True)
        ]
        policy = request.core_policy if isinstance(request.core_policy, str) else "technique"
        marks = sorted(id_mark(before.key, id_).hex() for id_ in before.holdings.ids[request.rows].tolist())
        environment = Environment.here(chosen_device(self.device), self.threads)
        return Receipt(
            number=after.requests, guarantee=plan.guarantee.value, reason=plan.reason,
            bytes_claim="identical" if all(head.decided for head in heads) else "equal to 1e-10",
            unconditional=before.choice.unconditional and after.left_in_extractor == 0,
            core_depended_on=before.choice.depended_on, core_details=dict(before.choice.details),
            core_policy=policy, refit=request.refit, requested=plan.requested, core=plan.core,
            influential=plan.influential, neither=plan.neither, already_forgotten=plan.already_forgotten,
            duplicates_left=plan.duplicates_left, core_left_in_extractor=after.left_in_extractor, record_marks=marks,
            records_before=int(before.holdings.alive.sum()), records_after=int(after.holdings.alive.sum()),
            manifest_before=before.holdings.manifest, manifest_after=after.holdings.manifest,
            model_before=before.model_hash,
            model_after=after.model_hash, heads=heads,
            seed=self.seed, recipe=asdict(self._recipe), C=self.C, environment=asdict(environment),
            time=datetime.now(UTC).isoformat(timespec="seconds"), seconds=time.perf_counter() - started,
        )  # fmt: skip


def heads_of(head: LinearSVM) -> list[int]:
    """The class that each head speaks for: with two classes one head, for the second."""
    classes = [int(label) for label in head.classes_]
    return classes if len(classes) > 2 else classes[1:]


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
    same, other = oblivion.brought_back(key, dataset.ids, dataset.features)
    if same:
        raise ValueError(
            f"{same} of the records were forgotten by this model and must not come back: leave them out of the data"
        )
    if other:
        warnings.warn(f"{other} of the records have the features of forgotten ones, under other ids", stacklevel=3)
