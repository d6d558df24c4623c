"""From parameters and records to a fitted state."""

import copy
import secrets
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from maxrr.core import Core, FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.shards import sharding_of
from maxrr.core.trained_elsewhere import Adopted, rule_of
from maxrr.data import Dataset
from maxrr.data.fields import described, shapes
from maxrr.errors import DataError, OtherShape, TrainingMissing
from maxrr.nets import Recipe, split
from maxrr.nets.initial_weights import DRAWN_ANEW, DrawnAnewWarning, given_weights, would_lose_weights
from maxrr.nets.inputs import chosen_device
from maxrr.nets.naming import check_importable, suited
from maxrr.nets.networks import NoNetwork
from maxrr.nets.probe import check_comes_back, probed
from maxrr.nets.public_weights import SEED, GivenStart, GivenWeights, check_start
from maxrr.nets.recipe import Environment
from maxrr.nets.seeding import begin, checked_seed, network_from
from maxrr.nets.training import warm_up
from maxrr.nets.training_function import OwnTraining, Training
from maxrr.parallel.ray_cluster import working_on
from maxrr.plain_text import first_few
from maxrr.progress import Progress
from maxrr.svm.validation import class_weights, penalty
from maxrr.unlearning.blueprint import Blueprint, warn_of_flat_heads
from maxrr.unlearning.commitment import set_aside_of
from maxrr.unlearning.facts import Durations
from maxrr.unlearning.records import HeldRecords, shuffled
from maxrr.unlearning.requests import copies_in, note_copies
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.tombstones import Tombstones

if TYPE_CHECKING:
    from maxrr.unlearning.model import MaxRR

SHARDED = HashCore, FullCore, FrequencyCore, MiddleCore
SOFTMAX = (
    "the network ends with a softmax: take it off. Training minimises the cross-entropy, which has a softmax of its "
    "own, and with two of them the extractor learns little. The heads replace all that follows the last linear layer"
)


def check_parameters(model: "MaxRR") -> Training:
    """Return the recipe of a model, and refuse parameters that would be found wrong only after long work."""
    penalty(model.C), class_weights(model.class_weight), checked_seed(model.seed), chosen_device(model.device)
    if not callable(getattr(model.core, "choose", None)):
        raise DataError(
            f"core says which records are core, as HashCore(0.3, key=…) does; it is {model.core!r:.80}. No file "
            "keeps one that names records, or is your own code: say it again, as in model.set_params(core=…)"
        )
    if sharding_of(model.core).count > 1 and type(model.core) not in SHARDED:
        raise DataError(f"shards are for the cores of this library, which files know by name, not {model.core!r:.80}")
    if model.threads < 1:
        raise DataError(f"threads is a whole number from 1 on; it is {model.threads!r:.80}")
    check_importable(model.network)
    if check_start(model.start) != SEED and isinstance(model.core, Adopted):
        raise DataError("a network that was trained elsewhere is no start for training it again: leave start out")
    if isinstance(model.core, Adopted) and not (isinstance(model.network, nn.Module) and model.train is not None):
        raise DataError("a network trained elsewhere is a torch.nn.Module, and needs a way to train it again, train=…")
    if model.train is None:
        return Recipe(model.epochs, model.batch_size, model.lr)
    if (model.epochs, model.batch_size, model.lr) != (Recipe.epochs, Recipe.batch_size, Recipe.lr):
        raise DataError("train says how the extractor is trained: leave out epochs, batch_size and lr beside it")
    if isinstance(model.train, Recipe):
        return model.train
    if isinstance(model.train, OwnTraining):  # of a file, whose word is not enough to run code
        raise TrainingMissing(model.train.name)
    if not callable(model.train):
        raise DataError(f"train is a function or a Recipe; it is {model.train!r:.80}")
    if isinstance(model.core, Frozen):
        raise DataError("with Frozen nothing is trained: leave train out, or choose another core")
    return OwnTraining.by(model.train)


def fit(
    model: "MaxRR", dataset: Dataset, label_kind: str, before: ModelState | None, *,
    allow_copies: str | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    again: bool = False, test: Dataset | None = None,
) -> ModelState:  # fmt: skip
    """Fit a model on `dataset`, keeping tombstones and receipts of `before`.

    `label_kind` is the kind of labels that the caller has for classes. `again` says that the records are those that
    `before` has. Warnings are in the name of the caller's caller.
    """
    if test is not None:
        check_set_aside(test, dataset)
    recipe = check_parameters(model)
    key = secrets.token_bytes(32) if before is None else before.key
    secret = secrets.token_bytes(32) if before is None else before.secret
    copies = 0 if before is None else copies_in(before, dataset, allow_copies)
    overrides = note_copies(copies, allow_copies)
    aside = set_aside_of(key, test) if test else None
    if isinstance(model.network, NoNetwork):
        check_embeddings(dataset)
    network = suited(model.network, shapes(dataset.inputs.dtype, dataset.shape), len(dataset.class_names))
    frozen, trained_before = isinstance(model.core, Frozen), isinstance(model.core, Adopted)
    core = to_train_by(model.core, before)
    adopted = trained_before and core is None
    weights = weights_by_name(model.class_weight, dataset.class_names, gone_too=again)
    check_comes_back(network, dataset.shape, dataset.inputs.dtype)
    start = GivenWeights.of(network, check_start(model.start), whole=frozen)
    if start is not None and not frozen:
        network = GivenStart(network, start.sha256, len(dataset.class_names))
    blueprint = Blueprint(
        begin(network, model.seed) if trained_before else copy.deepcopy(network), frozen, model.seed,
        recipe, model.C, model.device, model.threads, Environment.here(chosen_device(model.device), model.threads),
        {} if frozen or start is not None else given_weights(network), weights,
        copy.deepcopy(rule_of(model.core)),
        before.blueprint.drafted if again and before is not None else dataset.drafted, start,
    )  # fmt: skip
    blueprint.check_weights(dataset)
    if not frozen and not trained_before and would_lose_weights(network):
        warnings.warn(DRAWN_ANEW, DrawnAnewWarning, stacklevel=3)
    if not frozen and isinstance(recipe, Recipe) and ends_in_softmax(network_from(network), dataset):
        warnings.warn(SOFTMAX, stacklevel=3)
    with torch.inference_mode(False), working_on(model.engine) as engine:  # gradients are recorded
        choosing = core or model.core
        choice = choosing.choose(
            network, dataset, C=model.C, recipe=recipe, seed=model.seed, device=model.device, folder=folder,
            progress=progress, engine=engine,
        )  # fmt: skip
        choice = copy.deepcopy(choice)  # own rules may keep theirs
        untrained = blueprint.untrained(dataset, choice, range(blueprint.sharding.count))
        blueprint.warn_of_untrained(untrained, stacklevel=3)
        records = shuffled(dataset, key)
        held = HeldRecords.of(records, copy=False)  # in another order, they are a copy already
        if not adopted or isinstance(recipe, Recipe):
            blueprint = blueprint.watched(records, choice)
        if not adopted and not frozen:
            warm_up(model.device)
        clock = [time.perf_counter()]
        if adopted:
            extractor = split(network_from(network))[0]
        else:
            extractor = blueprint.train_extractor(records, choice, progress, tell=True, engine=engine)
        extractor, fingerprint = blueprint.rebuilt(extractor, dataset.shape, dataset.inputs.dtype)
        clock.append(time.perf_counter())
        if frozen and before is not None and before.in_extractor and same_weights(extractor, before.extractor):
            raise DataError(
                f"this extractor was trained on {len(before.in_extractor):,} records that the model has forgotten, and "
                "a frozen one keeps them: choose a core to train it on, or give another network"
            )
        features = blueprint.embed(extractor, records, progress)
        clock.append(time.perf_counter())
        heads = blueprint.fit_heads(features, records, progress)
        clock.append(time.perf_counter())
    durations = Durations.measured(np.diff(clock).tolist(), len(choice.ids), len(records), len(heads.certificate_))
    fitted = ModelState(
        blueprint, extractor, fingerprint, heads, held, choice, label_kind, key, secret, Tombstones(), durations,
        untrained=untrained, adopted=adopted, waiting=held.ids[:0].copy(), set_aside=aside,
    )  # fmt: skip
    if before is not None:
        fitted = replace(
            fitted, tombstones=before.tombstones, receipts=before.receipts,
            overrides=before.overrides + overrides, layouts=before.layouts + 1, people=before.people,
            losses=before.losses, set_aside=before.set_aside if again else aside,
        )  # fmt: skip
    warn_of_flat_heads(fitted.flat, stacklevel=3)
    return fitted


def ends_in_softmax(network: nn.Module, dataset: Dataset) -> bool:
    """Whether a network gives probabilities of classes, or their logarithms, in place of scores."""
    try:
        found = probed(copy.deepcopy(network), dataset.shape, dataset.inputs.dtype)
    except DataError:  # training will say what is wrong
        return False
    shares = np.exp(found) if (found <= 0.0).all() else found
    return bool((shares >= 0.0).all() and np.allclose(shares.sum(axis=1), 1.0, atol=1e-4))


def check_embeddings(dataset: Dataset) -> None:
    """Refuse records that are no vectors of floats."""
    if len(dataset.shape) != 1 or dataset.inputs.dtype.kind != "f":
        raise DataError(
            f"embeddings are floats of shape (records, numbers), and these records are {dataset.inputs.dtype} of shape "
            f"{dataset.shape}: give a network, or convert them"
        )


def check_set_aside(test: Dataset, training: Dataset) -> None:
    """Refuse test records of another kind than the training records, or that are all among them."""
    if not isinstance(test, Dataset):
        raise TypeError(f"test should be a Dataset, not {type(test).__name__}")
    kinds = [described(each.inputs.dtype, each.shape) for each in (test, training)]
    if kinds[0] != kinds[1]:
        raise OtherShape("the test records are {}, but the training records are {}".format(*kinds))
    known = len(test) > 0 and bool(np.isin(test.ids, training.ids).all())
    if known and np.array_equal(training.select(test.ids).inputs, test.inputs):
        raise DataError("the test records are all among the training records: set others aside")


def to_train_by(core: Core, before: ModelState | None) -> Core | None:
    """Return the rule for the core if an adopted network has to be trained again; None if it can be used as it is.

    A network that saw records which were forgotten or replaced since is not adopted again: it would bring them back.
    """
    if before is None or not isinstance(core, Adopted):
        return None
    ids = np.array(core.trained_on)
    forgotten, replaced = (before.tombstones.knows(before.key, ids, replaced=each) for each in (False, True))
    if not (forgotten | replaced).any():
        return None
    return Adopted(ids[~forgotten]) if core.core is None else core.core  # what is left of the named, or by the rule


def weights_by_name(weights: Mapping[Any, float] | None, names: Sequence[str], *, gone_too: bool) -> dict[str, float]:
    """Return the weights of classes by name, and refuse unknown classes; with `gone_too` unknown classes are left out.

    >>> weights_by_name({5: 2.0, 7: 3.0}, ("3", "5"), gone_too=True)
    {'5': 2.0}
    """
    found = {str(label): float(weight) for label, weight in (weights or {}).items()}
    strange = [name for name in found if name not in names]
    if strange and not gone_too:
        raise DataError(f"class_weight names class {strange[0]!r}; the classes are {first_few(names)}")
    return {name: weight for name, weight in found.items() if name in names}


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether two extractors have the same weights and buffers."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name].cpu(), second[name].cpu()) for name in first)
