"""Small data, models on it, and the naive oracle: doing everything again without the records."""

import copy
import functools
from dataclasses import replace

import numpy as np
import torch

from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore
from maxrr.data import Dataset, load
from maxrr.nets import MLP, LeNet5, embed, split, train
from maxrr.svm import LinearSVM
from maxrr.unlearning import MaxRR
from maxrr.unlearning.hashes import keyed_hash, model_hash

FIRST_ID = 700_000_000  # ids that no row number, rank or pixel is mistaken for
SEED, C, EPOCHS, BATCH, LR = 5, 0.7, 12, 32, 5e-3

CORES = {
    "frequency": FrequencyCore(150, runs=2, tie_breaker="ties"),
    "hash": HashCore(0.5, key="house"),
    "full": FullCore(),
    "frozen": Frozen(),
}


@functools.cache
def digits(count=300):
    """Some of the digits, with ids of our own, not in their order; one person has several."""
    train_, _ = load("digits")
    some = train_.select(np.sort(train_.ids)[:count])
    order = np.random.default_rng(0).permutation(count)
    ids = FIRST_ID + 7 * np.arange(count)
    return Dataset(some.inputs[order], some.labels[order], some.class_names, ids[order], ids[order] % 40)


def table(count=80, columns=5, classes=3, seed=0, strings=False):
    """A table whose classes overlap, so that many records are influential and many are not."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % classes)
    features = rng.normal(size=(count, columns)) + 1.6 * rng.normal(size=(classes, columns))[labels]
    ids = FIRST_ID + 11 * rng.permutation(count)
    names = tuple(f"kind {number}" for number in range(classes))
    named = np.array([f"r{id_}" for id_ in ids]) if strings else ids
    return Dataset(features.astype(np.float32), labels, names, named, np.arange(count) // 4 + 50)


@functools.cache
def frozen_extractor():
    """Somebody else's, trained on other records."""
    _, test = load("digits")
    return split(train(LeNet5((1, 8, 8)), test, 99, epochs=12, lr=LR, device="cpu", threads=1).network)[0]


def fresh(core, dataset, network=None, **settings):
    """A model that is not fitted yet."""
    if network is None:
        classes = len(dataset.class_names)
        is_table = len(dataset.shape) == 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)  # a frozen network keeps the weights that it is made with
            network = MLP(dataset.shape[0], classes, hidden=(12,)) if is_table else LeNet5((1, 8, 8))
        if isinstance(core, Frozen):
            network = split(network)[0] if is_table else frozen_extractor()
    chosen = {"C": C, "seed": SEED, "epochs": EPOCHS, "batch_size": BATCH, "lr": LR, "device": "cpu"}
    return MaxRR(network, core, **{**chosen, **settings})


@functools.cache
def fitted(kind):
    """One model on the digits for each core; copy it before changing it."""
    return fresh(CORES[kind], digits()).fit(digits())


@functools.cache
def fitted_table(kind="hash"):
    """The same on the table."""
    return fresh(CORES[kind] if kind != "frequency" else FrequencyCore(40, runs=2), table()).fit(table())


def table_model(kind="hash"):
    """A copy of it."""
    return copy.deepcopy(fitted_table(kind))


def core_of(model):
    """The ids of the core, as a copy."""
    return model.core_.ids.copy()


def kinds(model, dataset):
    """Ids of records that are core, influential and not core, and neither; each in order."""
    held = model._fitted.records
    ids = np.sort(dataset.ids)
    assert np.array_equal(np.sort(held.ids[model.heads_.rows_]), ids)
    core = core_of(model)
    influential = np.setdiff1d(held.ids[model.heads_.support_], core)
    return core, influential, np.setdiff1d(np.setdiff1d(ids, core), influential)


def train_again(model, records, core_ids):
    """An extractor from these core records alone, in another order than the model had them."""
    core = records.select(np.asarray(core_ids)[::-1])
    classes = np.unique(core.labels)  # numbered as they come among the core
    names = tuple(records.class_names[label] for label in classes)
    core = replace(core, labels=np.searchsorted(classes, core.labels), class_names=names)
    run = train(
        model.network, core, model.seed, epochs=model.epochs, batch_size=model.batch_size, lr=model.lr,
        device="cpu", threads=model.threads,
    )  # fmt: skip
    return split(run.network)[0]


def fit_again(extractor, records, C=C):
    """A head from scratch on an extractor's features of these records, in another order."""
    turned = records.select(np.sort(records.ids)[::-1])
    return LinearSVM(C=C).fit(embed(extractor, turned, device="cpu"), turned.labels)


def hash_of(extractor, head, class_names):
    """The hash of a model of these two."""
    return model_hash(
        extractor.state_dict(), [class_names[label] for label in head.classes_], head.coef_, head.intercept_
    )


def parts(extractor, head, class_names):
    """All that is compared: hash, extractor and head in bytes."""
    state = {name: value.numpy().tobytes() for name, value in extractor.state_dict().items()}
    return (
        hash_of(extractor, head, class_names), state, head.classes_.tolist(),
        head.coef_.tobytes(), head.intercept_.tobytes(),
    )  # fmt: skip


def parts_of(model):
    """Those of a model."""
    bundle = model.bundle()
    assert bundle.model_hash == model.model_hash_
    assert np.array_equal(bundle.weights, model.heads_.coef_)
    return parts(model.extractor_, model.heads_, digits().class_names if is_digits(model) else table().class_names)


def is_digits(model):
    return not isinstance(model.network, MLP)


def everything(model):
    """A model's bytes, and all else that a request could change."""
    return parts_of(model), model.content_hash_, model.core_.ids.tolist(), model.classes_.tolist()


def as_on_receipts(model):
    """The model and its records as receipts name them."""
    return model._fitted.model_commitment, model._fitted.records_commitment


def commitments(model, model_hash_, content_hash):
    """The same, from hashes that were found in another way."""
    key = model._fitted.key
    return keyed_hash(key, b"model", model_hash_), keyed_hash(key, b"records", content_hash)


def probe(count=40):
    """Records that no model was fitted on."""
    _, test = load("digits")
    return test.select(np.sort(test.ids)[:count])


def weights_changed(weights):
    """Weights by name, one of them moved by its last bit."""
    first = next(iter(weights))
    other = weights[first].clone()
    other.view(-1)[0] = torch.nextafter(other.view(-1)[0], torch.tensor(torch.inf))
    return {**weights, first: other}


def pictures():
    """Records in bytes, as many as in the table."""
    data = table()
    return replace(data, inputs=np.clip(128.0 + 30.0 * data.inputs, 0.0, 255.0).astype(np.uint8))
