"""MaxRR: a classifier that is trained so that forgetting is cheap, and forgets."""

import copy
import secrets
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import nn

from maxrr.core import Adopted, Choice, Core, FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.shards import sharding_of
from maxrr.core.trained_elsewhere import rule_of
from maxrr.data import Dataset
from maxrr.data.checks import check_dense, check_identifiers
from maxrr.data.fields import are_several, packed, shapes
from maxrr.data.labels import as_classes
from maxrr.errors import DataError
from maxrr.nets import Environment, NoNetwork, Recipe, split
from maxrr.nets.initial_weights import DRAWN_ANEW, DrawnAnewWarning, given_weights, would_lose_weights
from maxrr.nets.inputs import chosen_device
from maxrr.nets.naming import check_importable, suited
from maxrr.nets.probe import check_comes_back
from maxrr.nets.seeding import Network, begin, checked, made
from maxrr.nets.training import warm_up
from maxrr.nets.training_function import OwnTraining, Training, TrainingFunction
from maxrr.parallel import EngineLike, working_on
from maxrr.plain_text import first_few
from maxrr.progress import Progress
from maxrr.svm import LinearSVM
from maxrr.svm.validation import class_weights, penalty
from maxrr.unlearning import flat_heads
from maxrr.unlearning.aliases import Ids, Inputs, Labels
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.bundles import Bundle
from maxrr.unlearning.class_weights import by_name
from maxrr.unlearning.durations import Durations
from maxrr.unlearning.facts import kept
from maxrr.unlearning.forgetting import execute
from maxrr.unlearning.id_sets import IdSet
from maxrr.unlearning.locks import lock_of
from maxrr.unlearning.lookup import look_up, look_up_for_adding, look_up_for_replacing
from maxrr.unlearning.matching import to_predict
from maxrr.unlearning.plans import Plan, check_current, make_plan, named
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.records import HeldRecords, shuffled
from maxrr.unlearning.requests import REFUSE, Technique
from maxrr.unlearning.returning import copies_in, let_in
from maxrr.unlearning.set_aside import SetAside, check_set_aside
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Tombstones
from maxrr.unlearning.trained_elsewhere import grown, knowing_others, left_in, still_as_seen, to_train_by

SHARDED = HashCore, FullCore, FrequencyCore, MiddleCore
NUMBERS = "biufV"  # kinds of arrays that hold numbers; V where there are several inputs


class MaxRR(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that can forget: an extractor trained on core records, and one exact SVM head per class on all.

    Threads may share a model. `predict` never waits; changes are made one after the other.

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

    _note_audit: Callable[[str], int] | None = None  # where a workspace counts them

    def __init__(
        self, network: Network, core: Core, *, C: float = 1.0, seed: int = 0,
        epochs: int = Recipe.epochs, batch_size: int = Recipe.batch_size, lr: float = Recipe.lr,
        device: str | None = None, threads: int = 1, train: TrainingFunction | Recipe | None = None,
        class_weight: Mapping[Any, float] | None = None, engine: EngineLike = None,
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
        self.train = train
        self.class_weight = class_weight
        self.engine = engine

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
        progress: Progress | None = None,
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
            an interruption.
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
        maxrr.nets.DrawnAnewWarning
            The network was trained before, or started in a way of its own, and its weights are drawn anew.
        maxrr.nets.NotRepeatableWarning
            The training function was run twice on a part of the core, and gave two different networks.
        maxrr.core.UntrainedShardsWarning
            Some shards have no core records of two classes: their extractors keep their first weights.
        maxrr.unlearning.NotAmongRecordsWarning
            Some ids that `Frozen(pretrained_on=…)` names are of no record to fit.
        """
        with self._lock:
            return self._fit(*as_dataset(X, y, ids, subjects, sample_weight), allow_copies, folder, progress, test=test)

    def _check(self) -> Training:
        """Refuse parameters that would be found wrong only after long work; the recipe that they say."""
        penalty(self.C), class_weights(self.class_weight), checked(self.seed), chosen_device(self.device)
        if not callable(getattr(self.core, "choose", None)):
            raise DataError(f"core says which records are core, as HashCore(0.3, key=…) does; it is {self.core!r:.80}")
        if sharding_of(self.core).count > 1 and type(self.core) not in SHARDED:
            raise DataError(
                f"shards are for the cores of this library, which files know by name, not for {self.core!r:.80}"
            )
        if isinstance(self.network, NoNetwork) and not isinstance(self.core, Frozen):
            raise DataError("there is no network that could be trained on a core: use Frozen(), as on_features does")
        if self.threads < 1:
            raise DataError(f"threads is a whole number from 1 on; it is {self.threads!r:.80}")
        check_importable(self.network)
        if isinstance(self.core, Adopted) and not (isinstance(self.network, nn.Module) and self.train is not None):
            raise DataError(
                "a network that was trained elsewhere is a torch.nn.Module with its weights, and needs a way to train "
                "it again, train=…"
            )
        if self.train is None:
            return Recipe(self.epochs, self.batch_size, self.lr)
        if (self.epochs, self.batch_size, self.lr) != (Recipe.epochs, Recipe.batch_size, Recipe.lr):
            raise DataError("train says how the extractor is trained: leave out epochs, batch_size and lr beside it")
        if isinstance(self.train, Recipe):
            return self.train
        if isinstance(self.train, OwnTraining):  # of a file, whose word is not enough to run code
            raise DataError(f"the model is trained by {self.train.name}: give that function as train=…")
        if not callable(self.train):
            raise DataError(f"train is a function or a Recipe; it is {self.train!r:.80}")
        if isinstance(self.core, Frozen):
            raise DataError("with Frozen nothing is trained: leave train out, or choose another core")
        return OwnTraining.by(self.train)

    def _fit(
        self, dataset: Dataset, called: NDArray[Any] | None, allow_copies: str | None, folder: str | Path | None,
        progress: Progress | None, *, again: bool = False, test: Dataset | None = None,
    ) -> Self:  # fmt: skip
        if test is not None:
            check_set_aside(test, dataset)
        by_place = called is None
        labels = np.arange(len(dataset.class_names)) if called is None else called
        recipe = self._check()
        before: Fitted | None = vars(self).get("_state")
        key = secrets.token_bytes(32) if before is None else before.key
        secret = secrets.token_bytes(32) if before is None else before.secret
        copies = 0 if before is None else copies_in(before, dataset, allow_copies)
        overrides = let_in(copies, allow_copies)
        aside = SetAside.of(key, test) if test else None
        if isinstance(self.network, NoNetwork):
            check_embeddings(dataset)
        network = suited(self.network, shapes(dataset.inputs.dtype, dataset.shape), len(dataset.class_names))
        frozen, trained_before = isinstance(self.core, Frozen), isinstance(self.core, Adopted)
        core = to_train_by(self.core, before)
        adopted = trained_before and core is None
        recorded = {} if before is None else before.blueprint.class_weight
        weights = by_name(self.class_weight, labels, dataset, key, recorded, again=again)
        blueprint = Blueprint(
            begin(network, self.seed) if trained_before else copy.deepcopy(network), frozen, self.seed,
            recipe, self.C, self.device, self.threads, Environment.here(chosen_device(self.device), self.threads),
            {} if frozen else given_weights(network), weights,
            copy.deepcopy(rule_of(self.core)),
        )  # fmt: skip
        blueprint.check_weights(dataset)
        check_comes_back(network, dataset.shape, dataset.inputs.dtype)
        if not frozen and not trained_before and would_lose_weights(network):
            warnings.warn(DRAWN_ANEW, DrawnAnewWarning, stacklevel=3)
        with torch.inference_mode(False), working_on(self.engine) as engine:  # gradients are recorded
            choosing = core or self.core
            choice = choosing.choose(
                network, dataset, C=self.C, recipe=recipe, seed=self.seed, device=self.device, folder=folder,
                progress=progress, **({"engine": engine} if isinstance(choosing, FrequencyCore) else {}),
            )  # fmt: skip
            choice = knowing_others(copy.deepcopy(choice), self.core, dataset, before)  # own rules may keep theirs
            untrained = blueprint.untrained(dataset, choice, range(blueprint.sharding.count))
            blueprint.warn_of_untrained(untrained, stacklevel=3)
            records = shuffled(dataset, key)
            held = HeldRecords.of(records, copy=False)  # in another order, they are a copy already
            if not adopted:
                blueprint = blueprint.watched(records, choice)
            if not adopted and not frozen:
                warm_up(self.device)
            clock = [time.perf_counter()]
            if adopted:
                extractor = split(made(network))[0]
            else:
                extractor = blueprint.train_extractor(records, choice, progress, tell=True, engine=engine)
            extractor, fingerprint = kept(blueprint, extractor, dataset.shape, dataset.inputs.dtype)
            clock.append(time.perf_counter())
            left = left_in(extractor, self.core, before)
            choice = replace(choice, ids=still_as_seen(choice.ids, left, key))
            features = blueprint.embed(extractor, records, progress, engine)
            clock.append(time.perf_counter())
            heads = blueprint.fit_heads(features, records, progress, engine=engine)
            clock.append(time.perf_counter())
        durations = Durations.measured(
            np.diff(clock).tolist(), len(choice.ids), len(records), len(heads.certificate_),
            blueprint.at_once(blueprint.sharding.count),
        )  # fmt: skip
        none = IdSet(held.ids[:0])
        fitted = Fitted(
            blueprint, extractor, fingerprint, heads, held, choice, labels, by_place, key, secret, Tombstones(),
            durations, left=left, untrained=untrained, adopted=adopted, late=none, waiting=none,
            set_aside=aside,
        )  # fmt: skip
        if before is not None:
            fitted = replace(
                fitted, tombstones=before.tombstones.hashed_in(before.records.columns, held.columns),
                receipts=before.receipts, overrides=before.overrides + overrides, layouts=before.layouts + 1,
                people=before.people, losses=before.losses, set_aside=before.set_aside if again else aside,
            )  # fmt: skip
        flat_heads.warn(fitted.flat, stacklevel=3)
        self._state = fitted
        return self

    def refit(self, *, folder: str | Path | None = None, progress: Progress | None = None) -> Self:
        """Fit again on the records that the model has, those that were added among them.

        The core is chosen anew, and the extractor trained on it: records that waited for this become core. What was
        forgotten stays so, and the receipts stay. A network that is trained here gets an output for each class, if
        it is of this library, or made by a function that is given the shape and the number of classes of the records.

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
            No core can be chosen, or the network has too few outputs for the classes that there are now.
        """
        with self._lock:
            fitted, network = self._fitted, self.network
            self.network = grown(network, self.core, fitted.records)
            try:
                called = None if fitted.by_place else fitted.labels
                return self._fit(fitted.records.retained(), called, None, folder, progress, again=True)
            except BaseException:
                self.network = network
                raise

    def decision_function(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """The scores that the heads give records.

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
        """The classes of records.

        Parameters
        ----------
        X : Dataset, array, or several
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            For a Dataset the class names, as strings. For an array the labels that `fit` was given, as in `classes_`.
            Those of a Dataset are places in its class names: compare such predictions with `test.labels`, or turn them
            into names with ``np.array(train.class_names)[found]``. `score` takes either.

        Raises
        ------
        maxrr.errors.DataError
            The records have another shape, other columns or another type than those that the model was fitted on.
        """
        fitted = self._fitted  # one state from here to the end, whatever another thread does
        best = best_heads(decisions(fitted, X))
        classes = np.array(fitted.head_classes) if isinstance(X, Dataset) else fitted.labels[fitted.codes]
        return np.asarray(classes[best])

    def predict_proba(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """Probabilities of the classes, by Platt scaling on the retained records.

        The scaling is fitted when it is first asked for after `fit` or a request.

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
        if "platt" not in fitted.derived:
            with self._lock:  # the records must stay for as long as they are looked at
                fitted = self._fitted
                fitted.platt()
        return fitted.platt().probabilities(decisions(fitted, X))

    def score(
        self, X: Dataset | Inputs, y: Labels | None = None, sample_weight: ArrayLike | None = None
    ) -> float:  # fmt: skip
        """The share of records that are classified rightly.

        Parameters
        ----------
        X : Dataset, array, or several
            Records of the kind that the model was fitted on.
        y : array, optional
            The true class of each record, as in `classes_` or by its name. Needed with an array; a Dataset is compared
            by its own class names.
        sample_weight : array, optional
            How much each record counts; all count the same by default.

        Returns
        -------
        float
            From 0 to 1.

        Raises
        ------
        maxrr.errors.DataError
            There is not one label per record, or they are of another kind than the model's classes: names where these
            are numbers, and none of them is the name of a class; or numbers where these are names.
        """
        if isinstance(X, Dataset) and y is not None:
            raise ValueError("a Dataset has its own labels: leave y out")
        fitted = self._fitted
        best = best_heads(decisions(fitted, X))
        truth = np.array(X.class_names)[X.labels] if isinstance(X, Dataset) else labels_to_score(y, len(best))
        found = called(fitted, truth, isinstance(X, Dataset))[best]
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(found == truth, weights=weights))

    # What a fitted model shows

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that still have records, as `fit` was given them."""
        fitted = self._fitted
        return np.asarray(fitted.labels[fitted.codes])

    @property
    def heads_(self) -> LinearSVM:
        """The heads, one per class, as they are now. What is done to these leaves the model as it is."""
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

    def influential_ids(self) -> NDArray[Any]:
        """The ids of the influential records.

        Returns
        -------
        array
            The ids, sorted. (`heads_` counts rows in an order of its own, which cannot be used to index your records.)
        """
        with self._lock:  # a request overwrites the ids of what it forgets
            fitted = self._fitted
            return np.sort(fitted.records.ids[fitted.heads.support_])

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

    def bundle(self) -> Bundle:
        """What `maxrr.unlearning.replay` needs to train this model again and compare.

        Returns
        -------
        Bundle
            A copy of the present state, without the raw records. Keep it from the public: it holds the model's key.
        """
        with self._lock:
            return Bundle._of(self._fitted)

    # Forgetting

    def plan(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, core_policy: str | Technique = REFUSE
    ) -> Plan:  # fmt: skip
        """What `unlearn` would do with this request, to which guarantee, at what cost. Changes nothing.

        Parameters
        ----------
        ids, subjects : int, str or array, optional
            As in `unlearn`.
        core_policy : str or function
            As in `unlearn`.

        Returns
        -------
        Plan
            What will be done, for `execute`. A request that `unlearn` would refuse gives a plan whose `refusal` says
            why.

        Raises
        ------
        ValueError
            Neither or both of `ids` and `subjects` are given, or a policy that does not exist.
        maxrr.errors.NotHere
            No record is about one of the subjects; of one who was forgotten it says when.
        """
        with self._lock:
            request = look_up(self._fitted, ids, subjects, core_policy)
            return named(self._fitted, make_plan(self._fitted, request))

    def plan_replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """What `replace` would do, to which guarantee, at what cost. Changes nothing.

        Parameters
        ----------
        id, inputs, label : int or str, array, int or str
            As in `replace`.
        core_policy, allow_copies : str or function, str
            As in `replace`.

        Returns
        -------
        Plan
            What will be done, for `execute`.

        Raises
        ------
        maxrr.errors.NotHere
            The record was forgotten before.
        maxrr.errors.DataError
            The new record does not fit the others, is the one that is there already, or has the values of a forgotten
            one without `allow_copies`.
        """
        with self._lock:
            request = look_up_for_replacing(self._fitted, id, inputs, label, core_policy, allow_copies)
            return named(self._fitted, make_plan(self._fitted, request))

    def plan_add(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None, subjects: Ids | None = None, *,
        sample_weight: ArrayLike | None = None, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """What `add` would do, and at what cost. Changes nothing.

        Parameters
        ----------
        X, y, ids, subjects : Dataset or array, array, array, array
            As in `add`.
        sample_weight, allow_copies : array, str, optional
            As in `add`.

        Returns
        -------
        Plan
            What will be done, for `execute`.

        Raises
        ------
        maxrr.errors.DataError
            The records are not of the kind that the model has, it has or has forgotten one of the ids, or one has the
            values of a forgotten record without `allow_copies`.
        """
        with self._lock:
            given = to_add(self._fitted, X, y, ids, subjects, sample_weight)
            request = look_up_for_adding(self._fitted, given, allow_copies)
            return named(self._fitted, make_plan(self._fitted, request))

    def execute(self, plan: Plan, *, progress: Progress | None = None) -> Receipt:
        """Do what a plan of this model says, whole or not at all.

        Parameters
        ----------
        plan : Plan
            From `plan`, `plan_replace` or `plan_add`.
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
        with self._lock:
            check_current(self._fitted, plan)
            return execute(self._fitted, plan, self._take_over, progress, engine=self.engine)

    def unlearn(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, core_policy: str | Technique = REFUSE,
        progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Forget records, by their ids or all records of some subjects.

        Requests are cumulative, and done whole or not at all. Records forgotten before are counted on the receipt.
        Forgotten ids are refused by every later `fit`.

        Parameters
        ----------
        ids : int, str or array, optional
            The ids of the records to forget. Give either these or `subjects`.
        subjects : int, str or array, optional
            The people whose records to forget, by subject id.
        core_policy : {"refuse", "retrain", "keep-extractor"} or function
            What to do if some of the records are core. "refuse", the default, raises `maxrr.errors.Refused`, which
            carries a plan for each of the next two. "retrain" trains the extractor again without them (exact).
            "keep-extractor" moves the heads and leaves the extractor alone (approximate). A function gets the
            extractor, the core records that stay and those to forget, and returns another extractor (approximate).
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done, to which guarantee. It names nobody, and can be handed out.

        Raises
        ------
        ValueError
            Neither or both of `ids` and `subjects` are given, or a policy that does not exist.
        maxrr.errors.NotHere
            The model neither has nor had a record with one of the ids, or has none about one of the subjects.
        maxrr.errors.Refused
            The request is not carried out as it is; its `plans` say what could be asked for instead.
        maxrr.svm.ConvergenceError
            A head cannot be solved without the records.
        """
        with self._lock:
            plan = make_plan(self._fitted, look_up(self._fitted, ids, subjects, core_policy))
            return execute(self._fitted, plan, self._take_over, progress, engine=self.engine)

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
        with self._lock:
            request = look_up_for_replacing(self._fitted, id, inputs, label, core_policy, allow_copies)
            plan = make_plan(self._fitted, request)
            return execute(self._fitted, plan, self._take_over, progress, engine=self.engine)

    def add(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None, subjects: Ids | None = None, *,
        sample_weight: ArrayLike | None = None, allow_copies: str | None = None, progress: Progress | None = None,
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
            The class of each record, as in `classes_`, or by its name. Needed with an array. A new class gets a head;
            the extractor was not trained on it.
        ids : array, optional
            One id per record, which no other record has or had. Needed with an array.
        subjects : array, optional
            One subject id per record. Needed with an array if the model's records have them.
        sample_weight : array, optional
            How much each record counts for the heads. Needed with an array if the model's records have weights.
        allow_copies : str, optional
            A reason to let in the values of a forgotten record, as in `fit`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done: how many records were `added`, and what the model was before and is now. It names nobody.

        Raises
        ------
        maxrr.errors.DataError
            The records are not of the kind that the model has, it has or has forgotten one of the ids, or one has the
            values of a forgotten record without `allow_copies`.
        maxrr.svm.ConvergenceError
            A head cannot be solved.
        """
        with self._lock:
            given = to_add(self._fitted, X, y, ids, subjects, sample_weight)
            plan = make_plan(self._fitted, look_up_for_adding(self._fitted, given, allow_copies))
            return execute(self._fitted, plan, self._take_over, progress, engine=self.engine)

    def _take_over(self, after: Fitted, receipt: Receipt) -> None:
        self._state = after

    @property
    def _lock(self) -> RLock:
        """Held by whoever changes the model or reads its records. Those who predict never wait for it."""
        return lock_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the parameters of a model that is not fitted. A fitted one is refused."""
        if self.__sklearn_is_fitted__():
            raise TypeError(
                "a fitted MaxRR is not pickled: it holds the training records, and a file of them would keep what is "
                "forgotten later. Keep it in a maxrr.workspace.Workspace, hand out predictions with "
                "maxrr.serving.export(model, folder) and what a replay needs with model.bundle(); copy.deepcopy copies "
                "it in memory"
            )
        return self._copied()

    def _copied(self) -> dict[str, Any]:
        """One state, even if another thread erases records meanwhile."""
        with self._lock:
            found = {name: value for name, value in super().__getstate__().items() if name != "_own_lock"}
            return copy.deepcopy(found)

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self._copied())
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
    X: Dataset | Inputs, y: Labels | None, ids: Ids | None, subjects: Ids | None, weights: ArrayLike | None = None
) -> tuple[Dataset, NDArray[Any] | None]:
    """Records, and what the caller calls their classes; None for those of a Dataset, known by their places."""
    if isinstance(X, Dataset):
        if not all(given is None for given in (y, ids, subjects, weights)):
            raise ValueError(
                "a Dataset has its own labels, ids, subjects and weights: leave y, ids, subjects and sample_weight out"
            )
        return X, None
    if y is None:
        raise ValueError("an array of records needs their labels y, or pass a Dataset")
    check_dense(X)
    inputs = packed(X) if are_several(X) else np.asanyarray(X)  # a memory map stays one
    if inputs.dtype.kind not in NUMBERS and hasattr(X, "columns"):
        raise DataError(not_of_numbers(X))
    labels, codes = np.unique(as_classes(y), return_inverse=True)
    names = np.arange(len(inputs)) if ids is None else check_identifiers(ids, "record ids")
    whose = None if subjects is None else check_identifiers(subjects, "subject ids")
    known = tuple(map(str, labels.tolist()))
    columns, own = column_names(X), None if weights is None else np.asarray(weights)
    return Dataset(inputs, codes.astype(np.int64), known, names, whose, columns=columns, weights=own), labels


def not_of_numbers(frame: Any) -> str:
    """Which column of a frame holds no numbers, and what to do about it."""
    wrong = (str(name) for name in frame.columns if np.asarray(frame[name]).dtype.kind not in NUMBERS)
    name = next(wrong, None)
    which = "the columns are of several kinds" if name is None else f"the column {name!r} is not of numbers"
    encoding = "" if name is None else f", encoding=Encoding({{{name!r}: Categories([…])}})"
    return (
        f"{which}: make a Dataset of the frame, with maxrr.data.from_frame(frame, label=…, id=…{encoding}), and fit "
        "that. Or leave out what is no input"
    )


def check_embeddings(dataset: Dataset) -> None:
    """Refuse records that are no vectors of floats."""
    if len(dataset.shape) != 1 or dataset.inputs.dtype.kind != "f":
        raise DataError(
            f"embeddings are floats of shape (records, numbers), and these records are {dataset.inputs.dtype} of shape "
            f"{dataset.shape}: give a network, or convert them"
        )


def to_add(
    fitted: Fitted, X: Dataset | Inputs, y: Labels | None, ids: Ids | None, subjects: Ids | None,
    weights: ArrayLike | None,
) -> Dataset:  # fmt: skip
    """Records for a model that has others, with the names of its classes for those that it knows."""
    if not isinstance(X, Dataset) and ids is None:
        raise ValueError("new records need ids of their own, which no other record has: give ids=…, or a Dataset")
    dataset, labels = as_dataset(X, y, ids, subjects, weights)
    if labels is None or labels.dtype.kind == "U":
        return dataset
    if (labels.dtype.kind == "b") != (fitted.labels.dtype.kind == "b"):  # Python takes True for 1
        raise DataError(
            f"y has labels such as {labels[0].item()!r}, and the model's classes are called "
            f"{first_few(fitted.labels.tolist())}: give labels of the kind that fit was given"
        )
    present = fitted.records.present.tolist()
    names = {fitted.labels[number].item(): fitted.records.class_names[number] for number in present}
    unknown = [label for label in labels.tolist() if label not in names]
    if unknown and fitted.by_place:
        raise DataError(
            f"there is no class {unknown[0]!r}: labels are places in the model's class names. Name a new class by a "
            "string, or bring a Dataset"
        )
    return replace(dataset, class_names=tuple(names.get(label, str(label)) for label in labels.tolist()))


def column_names(X: Any) -> tuple[str, ...] | None:
    """What a data frame calls its columns, if it calls them by words."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def decisions(fitted: Fitted, X: Dataset | Inputs) -> NDArray[np.float64]:
    """The scores of records that are of the kind that a model was fitted on."""
    known = fitted.records
    names = column_names(X) if not isinstance(X, Dataset) else X.columns
    if names is not None and known.columns is not None and names != known.columns:
        raise DataError(
            f"the columns are {first_few(names)}, but the model was fitted on {first_few(known.columns)}: bring the "
            "same ones in the same order"
        )
    array = to_predict(X.inputs if isinstance(X, Dataset) else X, known.dtype, known.shape)
    if not isinstance(X, Dataset):
        records = unlabelled(array)
    else:
        records = X if array.dtype == X.inputs.dtype else replace(X, inputs=array)
    return np.asarray(fitted.heads.decision_function(fitted.blueprint.embed(fitted.extractor, records)))


def best_heads(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class with the highest score of each record, by its place among those that have records."""
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(np.int64)


def labels_to_score(y: Labels | None, records: int) -> NDArray[Any]:
    """The classes that a caller says records have, one for each."""
    shape = np.asarray(y).shape
    if y is None or shape != (records,):
        raise DataError(f"y has shape {shape}, and there are {records} records: give one label per record")
    return as_classes(y)


def called(fitted: Fitted, truth: NDArray[Any], by_names: bool) -> NDArray[Any]:
    """The model's classes as the true ones are called: by labels, or by names."""
    labels, names = np.asarray(fitted.labels[fitted.codes]), np.array(fitted.head_classes)
    if by_names or (truth.dtype.kind == "U" != labels.dtype.kind and np.isin(truth, names).any()):
        return names
    if (truth.dtype.kind == "U") != (labels.dtype.kind == "U"):
        raise DataError(
            f"y has labels such as {truth[0].item()!r}, and the model's classes are called {first_few(labels.tolist())}"
            ": give labels as fit was given them. Those of a Dataset are numbers, places in its class names"
        )
    return labels


def unlabelled(array: NDArray[Any]) -> Dataset:
    """Records of which nothing else is known."""
    return Dataset(array, np.zeros(len(array), dtype=np.int64), ("unknown",), np.arange(len(array)))
