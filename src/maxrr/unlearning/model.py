"""MaxRR: a classifier that is trained so that forgetting is cheap, and forgets."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import nn

from maxrr.core import Core, Frozen, FullCore, HashCore
from maxrr.core.choice import Choice
from maxrr.core.trained_elsewhere import Adopted
from maxrr.data import Dataset
from maxrr.data.fields import fields_of
from maxrr.data.labels import as_classes
from maxrr.errors import DataError, DetachedCopy, Refused
from maxrr.nets import Recipe
from maxrr.nets.networks import NoNetwork
from maxrr.nets.public_weights import SEED
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress, shown
from maxrr.svm.calibration import best_classes
from maxrr.svm.estimator import LinearSVM
from maxrr.unlearning.actions import REFUSE
from maxrr.unlearning.bundles import Bundle
from maxrr.unlearning.fitting import fit
from maxrr.unlearning.forgetting import Keeper, NamedRecords, NextState, execute, execute_together, make_group
from maxrr.unlearning.given_records import Ids, Inputs, Labels, as_dataset, classified_rightly, decisions
from maxrr.unlearning.plans import Plan, check_current, make_plan
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.record_kind import RecordKind
from maxrr.unlearning.requests import Technique, request_to_add, request_to_forget, request_to_replace, returning
from maxrr.unlearning.state import ModelState, forgotten_people, rows_of_kind
from maxrr.unlearning.tombstones import OnReceipt, on_receipt

_making_a_lock = Lock()


class MaxRR(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that can forget: an extractor trained on core records, and exact SVM heads, one per class, on all.

    Two classes share one head. Threads may share a model: `predict` never waits; changes are made one after the other.

    Parameters
    ----------
    network : torch.nn.Module or function
        The network, or a function that makes it: without arguments, or, if it needs some, with the shape of a record
        and the number of classes, as in the shell. The heads take the place of its last linear layer.
        With `Frozen()` it is the extractor itself, and is not trained. The model works on a copy.
    core : MiddleCore, FrequencyCore, HashCore, FullCore or Frozen
        Which records the extractor is trained on. Only these are expensive to forget.
    C : float
        Weight of the losses of a head against ½|w|², 1 by default. Smaller values give a wider margin and more
        influential records.
    seed : int
        Decides everything that is drawn at random: the first weights of the network, and the order of its batches.
    start : str
        Where training starts: "seed" by default, so that every weight is drawn. "given" stands for the network's own
        weights, such as public ones, in all layers but the last linear one, which is drawn from the seed with one
        output for each class of the core. Their SHA-256 is on every receipt, and it is a condition that nobody here
        knows what they learned from. Words behind it name them there: "given:EfficientNet-Lite0, ImageNet".
    epochs, batch_size, lr : int, int, float
        How the extractor is trained: how often training goes through all core records (18), how many each step sees
        (64), and the learning rate (1e-3).
    device : str, optional
        "cpu" or "cuda", for training and embedding; by default CUDA where PyTorch finds it.
    threads : int
        How many threads train on a CPU, 1 by default. The bytes of the extractor depend on it, so that it does not
        follow the machine.
    train : function or Recipe, optional
        Another way to train the extractor, at `fit` and wherever it is trained again. A function gets a network with
        the first weights of the seed, the core records as a Dataset (in the order of ids, classes numbered as they come
        in the core), the seed and a `torch.device`, and returns the network trained. It must be importable from a
        module. Or a `maxrr.nets.Recipe`. Leave out `epochs`, `batch_size` and `lr` beside it.
    class_weight : dict, optional
        How much the records of each class count in the heads: positive numbers by class, as `fit` is given the classes
        (names, for a Dataset); 1 for others. A rare class with a larger weight is found more often. The extractor is
        trained without them. The numbers are fixed: weights computed from the records, as "balanced" is, would change
        with every record that is forgotten.
    engine : str, path or maxrr.parallel.Engine, optional
        Where `fit` does its long work, and requests that train several shards again theirs, as in
        `maxrr.parallel.engine_from`: "ray" or "ray://host:10001" for a cluster. By default on this machine. The model
        does not depend on it.
    verbose : bool, optional
        Whether long work shows how far it is, in a line on standard error. By default where somebody looks on: at a
        terminal and in a notebook. A `progress` that a method is given is called instead.

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

    _keeper: Keeper | None = None  # a workspace that holds the model
    _detached = False  # a copy of one that a workspace holds
    _note_audit: Callable[[str], int] | None = None  # where a workspace counts them

    def __init__(
        self, network: Network, core: Core, *, C: float = 1.0, seed: int = 0, start: str = SEED,
        epochs: int = Recipe.epochs, batch_size: int = Recipe.batch_size, lr: float = Recipe.lr,
        device: str | None = None, threads: int = 1, train: TrainingFunction | Recipe | None = None,
        class_weight: Mapping[Any, float] | None = None, engine: EngineLike = None, verbose: bool | None = None,
    ) -> None:  # fmt: skip
        self.network = network
        self.core = core
        self.C = C
        self.seed = seed
        self.start = start
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.device = device
        self.threads = threads
        self.train = train
        self.class_weight = class_weight
        self.engine = engine
        self.verbose = verbose

    @classmethod
    def on_features(cls, *, C: float = 1.0, class_weight: Mapping[Any, float] | None = None) -> Self:
        """A model of embeddings that are there already: heads on them as they are, and no network.

        No record is core, so that every request is exact, and a model has the same bytes on every machine. Embeddings
        may be in float16, float32 or float64, and memory-mapped: a million of them are never loaded whole. What made
        them is not part of the model, and forgets nothing.

        Parameters
        ----------
        C : float
            Weight of the losses of a head against ½|w|², 1 by default.
        class_weight : dict, optional
            As in `MaxRR`.

        Returns
        -------
        MaxRR
            A model that is not fitted yet.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> labels = np.arange(200) % 2
        >>> embeddings = rng.normal(size=(200, 16)).astype(np.float16) + labels[:, None]
        >>> model = MaxRR.on_features().fit(embeddings, labels, ids=np.arange(1000, 1200))
        >>> model.unlearn([1000, 1001]).records_after
        198
        """
        return cls(NoNetwork(), Frozen(), C=C, class_weight=class_weight)

    @classmethod
    def adopt(
        cls, network: Network, core: HashCore | FullCore | None = None, *, trained_on: Ids,
        train: TrainingFunction | Recipe, C: float = 1.0, seed: int = 0, device: str | None = None, threads: int = 1,
        class_weight: Mapping[Any, float] | None = None,
    ) -> Self:  # fmt: skip
        """A model whose extractor was trained elsewhere, on the core alone.

        `fit` uses the network's extractor as it is, and fits the heads on every record. That it saw no other records is
        the caller's word: plans and receipts list it as a condition, and a replay checks it by training again. A
        request for core records under the policy "retrain" trains by `train`; from then on the extractor is one that
        was trained here. So does every later `fit` and `refit` once records that the network saw were forgotten or
        replaced: it is not adopted again.

        Parameters
        ----------
        network : torch.nn.Module
            The trained network. It is split before its last linear layer.
        core : HashCore or FullCore, optional
            The rule by which the core was chosen, if it was by one: `fit` checks that it gives just these records. By
            default the records that were named are the core.
        trained_on : array
            The ids of the records that the network was trained on. All of them must be among those that are fitted.
        train : function or Recipe
            How to train the network again, as in `MaxRR`: from the first weights of the seed.
        C, seed, device, threads, class_weight : float, int, str, int, dict
            As in `MaxRR`.

        Returns
        -------
        MaxRR
            A model that is not fitted yet.
        """
        return cls(
            network, Adopted(trained_on, core), C=C, seed=seed, device=device, threads=threads, train=train,
            class_weight=class_weight,
        )  # fmt: skip

    # Learning and predicting

    def fit(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None,
        subjects: Ids | None = None, *, sample_weight: ArrayLike | None = None,
        allow_copies: str | None = None, test: Dataset | None = None, folder: str | Path | None = None,
        source: Mapping[str, str] | None = None, progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Choose the core, train the extractor on it, and fit the heads on every record.

        A model that was fitted before keeps what it has forgotten, and its receipts; and, of an extractor that is not
        trained here, which of the forgotten records it saw. If something is raised, it stays as it was.

        Parameters
        ----------
        X : Dataset, array, or several
            The training records: a Dataset, or an array or data frame with one record per row. For a network with
            several inputs a dictionary of arrays, by the names of its arguments, or a tuple of arrays, in their order.
        y : array, optional
            The class of each record. Needed with an array; a Dataset has its own, and no `ids` or `subjects` beside it.
        ids : array, optional
            One id per record, integers or strings; row numbers by default. Give ids that mean something to you:
            requests name records by them.
        subjects : array, optional
            One subject id per record, the person whom it is about. Needed for requests by `subjects`.
        sample_weight : array, optional
            How much each record counts in the heads: positive numbers, all 1 by default. A Dataset has its own. The
            extractor is trained without them.
        allow_copies : str, optional
            A reason to let in records that have the values of a forgotten record under another id. Without one they are
            refused. Use it where they belong to other people, as may be in a table with few columns. The model keeps
            the reason.
        test : Dataset, optional
            The records that are set aside to test with. Nothing is learned from them: the model keeps how many they
            are and a hash of them under its key, by which a later `maxrr.audit.audit` knows that nobody chose its test
            records after looking at the model. `refit` and requests leave that as it is.
        folder : str or Path, optional
            Where a ranking (`MiddleCore`, `FrequencyCore`) keeps the runs that it has done, to go on from there after
            an interruption. The model of a workspace keeps them in its folder.
        source : mapping of str to str, optional
            Where the records come from, in your words: kept in `Workspace.sources`, and refused by a model in memory.
            By default the workspace keeps what it knows.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        MaxRR
            The model itself.

        Raises
        ------
        maxrr.errors.DataError
            The network computes with something that its `state_dict()` does not hold, and would not come back from a
            file. Or something is wrong with the records; or this model has forgotten one of the ids, which stays
            refused whatever its record holds now; or values of a forgotten record are among them, without
            `allow_copies`.
        maxrr.svm.ConvergenceError
            A head cannot be solved.

        Warns
        -----
        maxrr.svm.FlatHeadWarning
            A head has weights of zero, so that every record is influential in it.
        maxrr.nets.initial_weights.DrawnAnewWarning
            The network was trained before, or started in a way of its own, and its weights are drawn anew.
        maxrr.nets.training_function.NotRepeatableWarning
            The training function was run twice on a part of the core, and gave two different networks.
        maxrr.core.shards.UntrainedShardsWarning
            Some shards have no core records of two classes: their extractors keep their first weights.
        """
        with self._changing(receipts=False, source=source):
            dataset, label_kind = as_dataset(X, y, ids, subjects, sample_weight)
            before: ModelState | None = vars(self).get("_state")
            after = fit(
                self, dataset, label_kind, before, allow_copies=allow_copies, folder=self._ranking(folder),
                progress=progress or shown(self.verbose), test=test,
            )  # fmt: skip
            self._commit(NextState(before, after, source=source))
            return self

    def refit(self, *, folder: str | Path | None = None, progress: Progress | None = None) -> Self:
        """Fit again on the records that the model has, those that were added among them.

        The core is chosen anew, and the extractor trained on it: records that waited for this become core. What was
        forgotten stays so, and the receipts stay.

        Parameters
        ----------
        folder : str or Path, optional
            Where a ranking keeps its runs, as in `fit`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        MaxRR
            The model itself.

        Raises
        ------
        maxrr.errors.DataError
            No core can be chosen.
        """
        with self._changing(receipts=False):
            before = self._with_raw_records(self._fitted)
            after = fit(
                self, before.records.retained(), before.label_kind, before, folder=self._ranking(folder),
                progress=progress or shown(self.verbose), again=True,
            )  # fmt: skip
            self._commit(NextState(before, after))
            return self

    def decision_function(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """The scores that the heads give records.

        A record's scores do not depend on the records beside it, but by rounding on whether these are up to 16 or more:
        on a CPU few take less time, and their features differ by about 1e-6 from those that heads are fitted on.

        Parameters
        ----------
        X : Dataset, array, or several
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            Records × heads: the higher a score, the surer the head of its class. With two classes one score per record,
            positive for the second class.
        """
        return decisions(self._fitted, X)

    def predict(self, X: Dataset | Inputs) -> NDArray[Any]:
        """The classes of records, by the scores of `decision_function`.

        Parameters
        ----------
        X : Dataset, array, or several
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            The class of each record, as in `classes_`: the one whose head gives the highest score. For 6 to 12 of 100
            records `predict_proba` finds another class more probable, because it scales the scores of each head.

        Raises
        ------
        maxrr.errors.DataError
            The records have another shape, other columns or another type than those that the model was fitted on.
        """
        fitted = self._fitted  # one state from here to the end, whatever another thread does
        return np.asarray(fitted.classes[best_classes(decisions(fitted, X))])

    def predict_proba(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """Probabilities of the classes, by Platt scaling on the retained records.

        The scaling is fitted when it is first asked for after `fit` or a request. It is one for each head, so that for
        6 to 12 of 100 records the most probable class is not the one that `predict` returns: use one of the two.

        Parameters
        ----------
        X : Dataset, array, or several
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            Records × classes, in the order of `classes_`; every row sums to 1.
        """
        fitted = self._fitted
        if "_platt" not in vars(fitted):
            with self._lock:  # the records must stay for as long as they are looked at
                fitted = self._fitted
                fitted.platt()
        return fitted.platt().probabilities(decisions(fitted, X))

    def score(self, X: Dataset | Inputs, y: Labels | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The share of records that are classified rightly.

        Parameters
        ----------
        X : Dataset, array, or several
            Records of the kind that the model was fitted on.
        y : array, optional
            The true class of each record, as in `classes_`. Needed with an array; a Dataset has its own.
        sample_weight : array, optional
            How much each record counts; all count the same by default.

        Returns
        -------
        float
            From 0 to 1.

        Raises
        ------
        maxrr.errors.DataError
            There is not one label per record, or none of them is a class of the model.
        """
        _, right = classified_rightly(self._fitted, X, y)
        weights = np.ones(len(right)) if sample_weight is None else np.asarray(sample_weight)
        are_numbers = weights.shape == right.shape and weights.dtype.kind in "iuf"
        if not (are_numbers and (weights >= 0).all() and 0 < weights.sum() < np.inf):
            raise DataError("sample_weight is one number for each record: 0 or more, finite, and not all of them 0")
        return float(np.average(right, weights=weights))

    def recall(self, X: Dataset | Inputs, y: Labels | None = None) -> dict[Any, float]:
        """The share of the records of each class that are classified rightly.

        Parameters
        ----------
        X, y : Dataset, array, or several; array, optional
            As in `score`.

        Returns
        -------
        dict
            From 0 to 1, by each class that has records here, as `predict` returns it.
        """
        truth, right = classified_rightly(self._fitted, X, y)
        # Others have vanished, or are not known.
        others = X.class_names if isinstance(X, Dataset) else as_classes(cast(Labels, y)).tolist()
        known = dict(zip(self._fitted.head_classes, self._fitted.classes.tolist(), strict=True))
        known = known | {str(label): label for label in others if str(label) not in known}
        return {label: float(right[truth == name].mean()) for name, label in known.items() if name in truth}

    # What a fitted model shows

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that still have records, as `predict` returns them: for a Dataset names, else as in `y`."""
        return self._fitted.classes.copy()

    @property
    def n_features_in_(self) -> int:
        """How many numbers a record has."""
        records = self._fitted.records
        shapes = [shape for _, shape in fields_of(records.dtype).values()] or [records.shape]
        return sum(map(math.prod, shapes))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns, in their order. Absent where the records have none."""
        columns = self._fitted.records.columns
        if columns is None:
            raise AttributeError("the records have no column names")
        return np.array(columns, dtype=object)

    @property
    def heads_(self) -> LinearSVM:
        """The heads as they are now, one per class, or one for two. What is done to them leaves the model as it is."""
        with self._lock:  # a request overwrites the samples of what it forgets
            return self._fitted.heads._read_only()

    @property
    def extractor_(self) -> nn.Module:
        """A copy of the extractor."""
        return copy.deepcopy(self._fitted.extractor)

    @property
    def core_(self) -> Choice:
        """A copy of which retained records are core, and what choosing them depended on."""
        return copy.deepcopy(self._fitted.choice)

    @property
    def model_hash_(self) -> str:
        """The SHA-256 over the extractor, its layers and weights, and the heads.

        Two models with the same hash have the same bytes. Layers are the tree of modules with their settings, and the
        source of classes that are your own.
        """
        return self._fitted.model_hash

    @property
    def content_hash_(self) -> str:
        """The SHA-256 over the retained records: that of a `Dataset` with just these."""
        with self._lock:  # a request overwrites the hashes of what it forgets
            return self._fitted.records.content_hash

    @property
    def kind_(self) -> RecordKind:
        """The shape, type, columns, classes and ids of the records, for programs that read other records from users."""
        with self._lock:
            return RecordKind._of(self._fitted)

    def ids_of(self, kind: str | None = None) -> NDArray[Any]:
        """The ids of the records of one kind.

        Parameters
        ----------
        kind : {"core", "influential", "free"}, optional
            The kind; by default all records. A core record that is influential counts as core.

        Returns
        -------
        array
            The ids, sorted.
        """
        with self._lock:  # a request overwrites the ids of what it forgets
            return np.sort(self._fitted.records.ids[rows_of_kind(self._fitted, kind)])

    def has_forgotten(self, ids: Ids | None = None, *, subjects: Ids | None = None) -> NDArray[np.bool_]:
        """Which of some records, or people, were forgotten.

        Parameters
        ----------
        ids : int, str or array, optional
            Record ids. An integer and its text are the same id.
        subjects : int, str or array, optional
            Subject ids: of people about whom a request has left no record. Others may have come since.

        Returns
        -------
        array of bool
            One answer per id.

        Raises
        ------
        ValueError
            Neither ids nor subjects are given, or both.
        """
        if (ids is None) == (subjects is None):
            raise ValueError("name records by ids, or people by subjects: one of the two")
        with self._lock:
            if subjects is not None:
                return forgotten_people(self._fitted, np.ravel(np.asarray(subjects)).tolist())
            return self._fitted.tombstones.knows(self._fitted.key, np.ravel(np.asarray(ids)))

    def returning(self, records: Dataset, *, copies: bool = True) -> NDArray[Any]:
        """Which of these records were forgotten, so that `fit` would refuse them.

        Parameters
        ----------
        records : Dataset
            Records from any source.
        copies : bool
            Whether to include records that have the values of forgotten ones under other ids. True by default.

        Returns
        -------
        array
            The ids of those records, in the order of the dataset.
        """
        with self._lock:
            found = returning(self._fitted, records)
        return np.asarray(records.ids[found.by_id | (found.by_values & copies)])

    def on_receipt(self, receipt: Receipt, ids: Sequence[int | str]) -> OnReceipt:
        """Which of some ids a receipt names, and as what.

        Receipts name records by HMACs of their ids, which only the key of this model can make.

        Parameters
        ----------
        receipt : Receipt
            A receipt of this model.
        ids : sequence of int or str
            Record ids.

        Returns
        -------
        OnReceipt
            One answer per id: forgotten, replaced, or forgotten before.
        """
        return on_receipt(self._fitted.key, receipt, ids)

    def bundle(self) -> Bundle:
        """What `maxrr.unlearning.replay` needs to train this model again and compare.

        Returns
        -------
        Bundle
            A copy of the present state, without the raw records. Keep it from the public: it holds the model's key.
        """
        with self._lock:
            if self._keeper is not None:
                self._keeper.check_newest()
            return Bundle._of(self._fitted)

    # Forgetting

    def plan(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, receipt: Receipt | int | None = None,
        inputs: Inputs | None = None, label: int | str | None = None, add: Dataset | None = None,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """What a request would do, to which guarantee, at what cost. Changes nothing.

        Parameters
        ----------
        ids, subjects, receipt : int, str or array, optional; Receipt or int, optional
            What to forget, as in `unlearn`.
        inputs, label : array, int or str, optional
            What the one record that `ids` names should be, as in `replace`.
        add : Dataset, optional
            Records to learn, as in `add`. Leave out all else but `allow_copies`.
        core_policy : str or function
            As in `unlearn`.
        allow_copies : str, optional
            As in `replace` and `add`.

        Returns
        -------
        Plan
            What will be done, for `execute`. A request that `unlearn` would refuse gives a plan whose `refusal` says
            why.

        Raises
        ------
        ValueError
            None or several of these requests are meant, or there is no such policy.
        maxrr.errors.NotHere
            No record is about one of the subjects, or the record to replace was forgotten.
        maxrr.errors.DataError
            Records that arrive do not fit those of the model, or have the values of forgotten ones, without
            `allow_copies`.
        """
        with self._lock:
            if add is not None:
                if any(given is not None for given in (ids, subjects, receipt, inputs, label)):
                    raise ValueError("add names records to learn: leave out what to forget or replace")
                request = request_to_add(self._fitted, add, allow_copies)
            elif inputs is not None:
                if not isinstance(ids, int | str | np.integer):
                    raise ValueError("inputs are what one record should be: name it by its id")
                request = request_to_replace(self._fitted, ids, inputs, label, core_policy, allow_copies)
            else:
                request = request_to_forget(self._fitted, ids, subjects, core_policy, self._receipt(receipt))
            return make_plan(self._fitted, request)

    def execute(
        self, plan: Plan, *, source: Mapping[str, str] | None = None, progress: Progress | None = None
    ) -> Receipt:
        """Do what a plan of this model says, whole or not at all.

        Parameters
        ----------
        plan : Plan
            From `plan`; of the model of a workspace also by another process.
        source : mapping of str to str, optional
            As in `add`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done.

        Raises
        ------
        maxrr.errors.Stale
            Something was forgotten, replaced, added or fitted since the plan was made. Plan again.
        maxrr.errors.Refused
            It is the plan of a request that is refused.
        maxrr.svm.ConvergenceError
            A head cannot be solved without the records.
        """
        with self._changing(source=source):
            check_current(self._fitted, plan)
            before = self._ready_for(plan)
            shows = progress or shown(self.verbose)
            return execute(before, plan, self._commit, shows, engine=self.engine, source=source)

    def unlearn(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, receipt: Receipt | int | None = None,
        core_policy: str | Technique = REFUSE, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Forget records, by their ids or all records of some subjects.

        Requests are cumulative, and done whole or not at all. Records forgotten before are counted on the receipt.
        Forgotten ids are refused by every later `fit`.

        Parameters
        ----------
        ids : int, str or array, optional
            The ids of the records to forget. An integer and its text are the same id.
        subjects : int, str or array, optional
            The people whose records to forget, by subject id.
        receipt : Receipt or int, optional
            An earlier receipt, whose records should leave the extractor as well: with `core_policy="retrain"` an
            approximate answer becomes exact. The model of a workspace takes the number of the receipt, too. Give one of
            these three.
        core_policy : {"refuse", "retrain", "keep-extractor"} or function
            What to do if some of the records are core. "refuse", the default, raises `maxrr.errors.Refused`, which
            carries a plan for each of the next two. "retrain" trains the extractor again without them (exact).
            "keep-extractor" moves the heads and leaves the extractor alone (approximate). A function gets the
            extractor, the core records that stay, those to forget, and a copy of the heads as a `torch.nn.Linear` with
            a row for each class; it returns another extractor (approximate).
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done, to which guarantee. It names nobody, and can be handed out.

        Raises
        ------
        ValueError
            Not one of `ids`, `subjects` and `receipt` is given, or a policy that does not exist.
        maxrr.errors.NotHere
            The model neither has nor had a record with one of the ids, or has none about one of the subjects.
        maxrr.errors.Refused
            The request is not carried out as it is; its `plans` say what could be asked for instead.
        maxrr.svm.ConvergenceError
            A head cannot be solved without the records.
        """
        with self._changing():
            request = request_to_forget(self._fitted, ids, subjects, core_policy, self._receipt(receipt))
            plan, shows = make_plan(self._fitted, request), progress or shown(self.verbose)
            return execute(self._ready_for(plan), plan, self._commit, shows, engine=self.engine)

    def _unlearn_together(
        self, requests: Iterable[NamedRecords], core_policy: str | Technique, progress: Progress | None
    ) -> list[Receipt | Refused]:
        """Answer several requests by one change; return for each its receipt, or why it is refused."""
        with self._changing():
            group = make_group(self._fitted, requests, core_policy)
            receipts: Iterator[Receipt] = iter(())
            if group.plan is not None:
                before = self._ready_for(group.plan)
                shows = progress or shown(self.verbose)
                done = execute_together(before, group.plan, group.members, self._commit, shows, self.engine)
                receipts = iter(done)
            return [next(receipts) if refused is None else refused for refused in group.refusals]

    def replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Rectify a record: forget the one with this id, and learn another in its place, under the same id.

        The new record enters the heads at once. Whether it enters the core depends on how the core was chosen. With
        `HashCore` or `FullCore`, which decide for each record by itself, it does where the extractor is trained again
        and the id is core: the model is then the one that fitting the corrected data gives. With a ranked core it does
        not enter before the next `fit`: the extractor is that of the same core without the record.

        Parameters
        ----------
        id : int or str
            The id of the record.
        inputs : array, or several
            What the record should be, of the same shape as the others, in numbers that the model's type holds as they
            are; of several inputs a dictionary or a tuple, as `fit` was given them.
        label : int or str, optional
            Its class, as in `classes_`; by default the one that it has.
        core_policy : {"refuse", "retrain", "keep-extractor"} or function
            What to do if the record is core, as in `unlearn`.
        allow_copies : str, optional
            A reason to let in the values of a forgotten record, as in `fit`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done, to which guarantee.

        Raises
        ------
        maxrr.errors.NotHere
            There is no such record, or it was forgotten before.
        maxrr.errors.DataError
            The new record does not fit the others, is the one that is there already, or has the values of a forgotten
            one without `allow_copies`.
        maxrr.errors.Refused
            The record is core, and the policy refuses; its `plans` say what could be asked for instead.
        maxrr.svm.ConvergenceError
            A head cannot be solved.
        """
        with self._changing():
            request = request_to_replace(self._fitted, id, inputs, label, core_policy, allow_copies)
            plan, shows = make_plan(self._fitted, request), progress or shown(self.verbose)
            return execute(self._ready_for(plan), plan, self._commit, shows, engine=self.engine)

    def add(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None, subjects: Ids | None = None, *,
        sample_weight: ArrayLike | None = None, allow_copies: str | None = None,
        source: Mapping[str, str] | None = None, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Learn more records. They enter the heads at once and exactly, and the core not before the next `fit`.

        The model is then the one that a fit on all its records gives whose core is that of the last fit, less what was
        forgotten. With `HashCore` and `FullCore` a record that the rule makes core waits for the next `fit`, also if
        the extractor is trained again before that; as long as there is one, plans and receipts name it as a condition.

        Parameters
        ----------
        X : Dataset or array
            The new records, of the shape and columns of those that the model has.
        y : array, optional
            The class of each record, as in `classes_`. Needed with an array.
        ids : array, optional
            One id per record, which no other record has or had. Needed with an array.
        subjects : array, optional
            One subject id per record. Needed with an array if the model's records have them.
        sample_weight : array, optional
            How much each record counts for the heads. Needed with an array if the model's records have weights.
        allow_copies : str, optional
            A reason to let in the values of a forgotten record, as in `fit`.
        source : mapping of str to str, optional
            Where the records come from, in your words: kept in `Workspace.sources`, and refused by a model in memory.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done: how many records were `added`, and what the model was before and is now. It names nobody.

        Raises
        ------
        maxrr.errors.DataError
            The records are not of the kind that the model has, or of a class that is new to it; it has or has
            forgotten one of the ids; or one has the values of a forgotten record without `allow_copies`.
        maxrr.svm.ConvergenceError
            A head cannot be solved.
        """
        with self._changing(source=source):
            if not isinstance(X, Dataset) and ids is None:
                raise ValueError("new records need ids of their own, which no other record has: give ids=…")
            given, _ = as_dataset(X, y, ids, subjects, sample_weight)
            plan = make_plan(self._fitted, request_to_add(self._fitted, given, allow_copies))
            shows = progress or shown(self.verbose)
            return execute(self._fitted, plan, self._commit, shows, engine=self.engine, source=source)

    # Who holds the model

    @contextmanager
    def _changing(
        self, *, receipts: bool = True, newest: bool = True, source: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """Hold the lock for a change, if the keeper allows one."""
        with self._lock:
            if self._keeper is not None:
                with self._keeper.changing(receipts=receipts, newest=newest):
                    yield
                return
            if source is not None:
                raise ValueError("only the model of a workspace keeps where records come from: leave source out")
            if receipts and self._detached:
                raise DetachedCopy(
                    "this is a copy of the model that a workspace holds, and makes no receipts, which would have the "
                    "numbers of others: use the model of the workspace. Nothing was changed"
                )
            yield

    def _receipt(self, given: Receipt | int | None) -> Receipt | None:
        """Return the receipt that was given, or the one of this number from the keeper."""
        if given is None or isinstance(given, Receipt):
            return given
        if self._keeper is None:
            raise ValueError("only the model of a workspace keeps its receipts: give the receipt itself")
        return self._keeper.receipt(given)

    def _ready_for(self, plan: Plan) -> ModelState:
        """Return the present state, with its raw records if the plan trains or makes an extractor."""
        return self._with_raw_records(self._fitted) if plan.action.fits_anew else self._fitted

    def _with_raw_records(self, fitted: ModelState) -> ModelState:
        """Return the state with its raw records, which a keeper may have to read."""
        given = None if self._keeper is None else self._keeper.raw_records()
        return fitted if given is None else replace(fitted, records=fitted.records.with_records(given))

    def _ranking(self, folder: str | Path | None) -> str | Path | None:
        """Return the folder where a ranking keeps its runs."""
        return folder if self._keeper is None else self._keeper.ranking()

    def _commit(self, change: NextState) -> None:
        """Take over the next state, after the keeper, if there is one, has made it durable."""
        if self._keeper is None:
            self._state = change.after
        else:
            self._keeper.commit(change)

    def _apart(self) -> Self:
        """Return a copy with the raw records, for long work beside a workspace; a model in memory returns itself."""
        if self._keeper is None:
            return self
        with self._lock:
            found = copy.deepcopy(self)
            found._state = self._with_raw_records(found._fitted)
            found._note_audit = self._keeper.note_audit
            return found

    @property
    def _lock(self) -> RLock:
        """The lock that is held to change the model or to read its records, also by the first `predict_proba` after a
        change.

        `predict` never waits for it.
        """
        own = vars(self).get("_own_lock")  # made when first needed, however the object came to be
        if own is None:
            with _making_a_lock:
                own = self.__dict__.setdefault("_own_lock", RLock())
        return cast("RLock", own)

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters of an unfitted model, for pickle and copy; refuse a fitted model."""
        if self.__sklearn_is_fitted__():
            raise TypeError(
                "a fitted MaxRR is not pickled: it holds the training records, and a file of them would keep what is "
                "forgotten later. Keep it in a maxrr.workspace.Workspace, hand out predictions with "
                "maxrr.serving.export(model, folder) and what a replay needs with model.bundle(); copy.deepcopy copies "
                "it in memory"
            )
        return self._copied()

    def _copied(self) -> dict[str, Any]:
        """Copy the attributes under the lock, so that all belong to one state."""
        with self._lock:
            own = ("_own_lock", "_keeper")
            return copy.deepcopy({name: value for name, value in super().__getstate__().items() if name not in own})

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        found = type(self).__new__(type(self))
        found.__dict__.update(self._copied())
        found._detached = self._detached or self._keeper is not None
        return found

    @property
    def _fitted(self) -> ModelState:
        if self._keeper is not None:
            self._keeper.check_open()
        found = vars(self).get("_state")
        if found is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' with records first")
        assert isinstance(found, ModelState)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)
