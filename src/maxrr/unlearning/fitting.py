"""From parameters and records to a fitted state."""

import copy
import secrets
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.core import Adopted, Core, FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.shards import sharding_of
from maxrr.core.trained_elsewhere import rule_of
from maxrr.data import Dataset
from maxrr.data.fields import shapes
from maxrr.errors import DataError
from maxrr.nets import Environment, NoNetwork, Recipe, split
from maxrr.nets.initial_weights import DRAWN_ANEW, DrawnAnewWarning, given_weights, would_lose_weights
from maxrr.nets.inputs import chosen_device
from maxrr.nets.naming import check_importable, suited
from maxrr.nets.probe import check_comes_back
from maxrr.nets.seeding import Network, begin, checked, made
from maxrr.nets.training import warm_up
from maxrr.nets.training_function import OwnTraining, Training, TrainingFunction
from maxrr.parallel.ray_cluster import EngineLike, working_on
from maxrr.progress import Progress
from maxrr.svm.validation import class_weights, penalty
from maxrr.unlearning import flat_heads
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.class_weights import by_name
from maxrr.unlearning.durations import Durations
from maxrr.unlearning.extractors import kept
from maxrr.unlearning.id_sets import IdSet
from maxrr.unlearning.records import HeldRecords, shuffled
from maxrr.unlearning.returning import copies_in, let_in
from maxrr.unlearning.set_aside import check_set_aside, set_aside_of
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Tombstones
from maxrr.unlearning.trained_elsewhere import knowing_others, left_in, still_as_seen, to_train_by

SHARDED = HashCore, FullCore, FrequencyCore, MiddleCore


@dataclass(frozen=True, eq=False)
class Parameters:
    """The parameters of a model, as `MaxRR` explains them."""

    network: Network
    core: Core
    C: float
    seed: int
    epochs: int
    batch_size: int
    lr: float
    device: str | None
    threads: int
    train: TrainingFunction | Recipe | None
    class_weight: Mapping[Any, float] | None
    engine: EngineLike

    def check(self) -> Training:
        """Return the recipe, and refuse parameters that would be found wrong only after long work."""
        penalty(self.C), class_weights(self.class_weight), checked(self.seed), chosen_device(self.device)
        if not callable(getattr(self.core, "choose", None)):
            raise DataError(
                f"core says which records are core, as HashCore(0.3, key=…) does; it is {self.core!r:.80}. No file "
                "keeps one that names records, or is your own code: say it again, as in model.set_params(core=…)"
            )
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

    def fit(
        self, dataset: Dataset, called: NDArray[Any] | None, before: Fitted | None, *, allow_copies: str | None = None,
        folder: str | Path | None = None, progress: Progress | None = None, again: bool = False,
        test: Dataset | None = None,
    ) -> Fitted:  # fmt: skip
        """Fit records, whose classes the caller calls so, to a state that goes on from the one before.

        `again` says that the records are those that the state before has. Warnings are in the name of the caller's
        caller.
        """
        if test is not None:
            check_set_aside(test, dataset)
        by_place = called is None
        labels = np.arange(len(dataset.class_names)) if called is None else called
        recipe = self.check()
        key = secrets.token_bytes(32) if before is None else before.key
        secret = secrets.token_bytes(32) if before is None else before.secret
        copies = 0 if before is None else copies_in(before, dataset, allow_copies)
        overrides = let_in(copies, allow_copies)
        aside = set_aside_of(key, test) if test else None
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
                progress=progress, engine=engine,
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
            features = blueprint.embed(extractor, records, progress)
            clock.append(time.perf_counter())
            heads = blueprint.fit_heads(features, records, progress)
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
        return fitted


def check_embeddings(dataset: Dataset) -> None:
    """Refuse records that are no vectors of floats."""
    if len(dataset.shape) != 1 or dataset.inputs.dtype.kind != "f":
        raise DataError(
            f"embeddings are floats of shape (records, numbers), and these records are {dataset.inputs.dtype} of shape "
            f"{dataset.shape}: give a network, or convert them"
        )
