"""Small data, models on it, and the naive oracle: doing everything again without the records."""

import copy
import functools
import hashlib
import hmac
from dataclasses import replace

import numpy as np
import torch

from maxrr import LinearSVM
from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.data import Dataset, load
from maxrr.nets import MLP, LeNet5, embed, split, train
from maxrr.nets.architecture import architecture
from maxrr.nets.networks import SideBySide
from maxrr.nets.seeding import begin
from maxrr.unlearning import MaxRR
from maxrr.unlearning.commitment import ExtractorHash, keyed_hash
from tests.cases import THOROUGH
from tests.evidence.oracle import commitment_to

FIRST_ID = 700_000_000  # ids that no row number, rank or pixel is mistaken for
SEED, C, EPOCHS, BATCH, LR = 5, 0.7, 12, 32, 5e-3


CORES = {
    "frequency": FrequencyCore(150, runs=2, tie_breaker="ties"),
    "hash": HashCore(0.5, key="house"),
    "full": FullCore(),
    "frozen": Frozen(),
}
IN_SHARDS = {
    "hash in shards": HashCore(0.5, key="house", shards=3),
    "full in shards": FullCore(shards=2, key="house"),
    "middle in shards": MiddleCore(150, runs=2, tie_breaker="ties", shards=4),
}
EVERY_CORE = CORES | IN_SHARDS


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


def of_pictures():
    """A network for the digits; its layers are all that convolutions would change."""
    return LeNet5((1, 8, 8)) if THOROUGH else MLP(64, 10, hidden=(16,))


@functools.cache
def frozen_extractor():
    """Somebody else's, trained on other records."""
    _, test = load("digits")
    return split(train(of_pictures(), test, 99, epochs=12, lr=LR, device="cpu", threads=1).network)[0]


def fresh(core, dataset, network=None, **settings):
    """A model that is not fitted yet."""
    if network is None:
        classes = len(dataset.class_names)
        is_table = len(dataset.shape) == 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)  # a frozen network keeps the weights that it is made with
            network = MLP(dataset.shape[0], classes, hidden=(12,)) if is_table else of_pictures()
        if isinstance(core, Frozen):
            network = split(network)[0] if is_table else frozen_extractor()
    chosen = {"C": C, "seed": SEED, "epochs": EPOCHS, "batch_size": BATCH, "lr": LR, "device": "cpu"}
    return MaxRR(network, core, **{**chosen, **settings})


@functools.cache
def fitted(kind):
    """One model on the digits for each core; copy it before changing it."""
    return fresh(EVERY_CORE[kind], digits()).fit(digits())


@functools.cache
def fitted_table(kind="hash"):
    """The same on the table."""
    core = EVERY_CORE[kind]
    smaller = replace(core, k=40, tie_breaker=b"maxrr") if isinstance(core, FrequencyCore) else core
    return fresh(smaller, table()).fit(table())


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
    assert np.array_equal(np.sort(held.ids[model.heads_._rows]), ids)
    core = core_of(model)
    influential = np.setdiff1d(held.ids[model.heads_.support_], core)
    return core, influential, np.setdiff1d(np.setdiff1d(ids, core), influential)


def train_again(model, records, core_ids):
    """An extractor from these core records alone, in another order than the model had them; or one for each shard."""
    shards = getattr(model.core, "shards", 1)
    if shards == 1:
        return trained_alone(model, records.select(np.asarray(core_ids)[::-1]), model.seed)
    key, core = key_of(model.core), np.asarray(core_ids)[::-1]
    whose = np.array([shard_of(name, key, shards) for name in decided_by(model.core, records, core)])
    return Beside(
        trained_alone(model, records.select(core[whose == shard]), seed_of(model.seed, shard))
        for shard in range(shards)
    )  # fmt: skip


def decided_by(rule, records, ids):
    """What a rule hashes for these records: their people, where it goes by people and the records name them."""
    by_person = getattr(rule, "by", "subject") == "subject" and records.subjects is not None
    return (records.subjects[records.rows(ids)] if by_person else np.asarray(ids)).tolist()


def trained_alone(model, core, seed):
    """An extractor from these records; with its first weights where they are of fewer than two classes."""
    classes = np.unique(core.labels)  # numbered as they come among the core
    if len(classes) < 2:
        return split(begin(model.network, seed))[0].eval()
    names = tuple(core.class_names[label] for label in classes)
    network = model.network
    if getattr(model.core, "shards", 1) > 1:  # whose networks have an output for each of their own classes
        first, _, *others = network.arguments
        network = type(network)(first, len(classes), *others)
    core = replace(core, labels=np.searchsorted(classes, core.labels), class_names=names)
    run = train(
        network, core, seed, epochs=model.epochs, batch_size=model.batch_size, lr=model.lr,
        device="cpu", threads=model.threads,
    )  # fmt: skip
    return split(run.network)[0]


def key_of(core):
    """What a core hashes ids with."""
    return core.tie_breaker if isinstance(core, FrequencyCore) else core.key


def shard_of(id_, key, shards):
    """By hand: the first 64 bits of HMAC-SHA256 of "shard" and the id, as a fraction, times the number of shards."""
    said = b"int:%d" % id_ if isinstance(id_, int) else b"str:" + id_.encode()
    text = b"".join(len(part).to_bytes(8, "little") + part for part in (b"shard", said))
    key = key.encode() if isinstance(key, str) else key
    return int(hmac.new(key, text, hashlib.sha256).hexdigest()[:16], 16) * shards // 2**64


def seed_of(seed, shard):
    """That of a shard's extractor, by hand."""
    return (int(np.random.SeedSequence(seed, spawn_key=(13,)).generate_state(1)[0]) + shard) % 2**32


class Beside(torch.nn.Module):
    """Extractors of shards, for those who embed with one after the other."""

    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)


def features_of(extractor, records):
    """An extractor's features of records; those of several, one after the other, in one row."""
    parts = extractor.parts if isinstance(extractor, Beside) else [extractor]
    return np.concatenate([embed(part, records, device="cpu") for part in parts], axis=1)


def fit_again(extractor, records, C=C):
    """A head from scratch on an extractor's features of these records, in another order."""
    turned = records.select(np.sort(records.ids)[::-1])
    return LinearSVM(C=C).fit(features_of(extractor, turned), turned.labels)


def hash_of(extractor, head, class_names):
    """The hash of a model of these two."""
    ours = SideBySide(list(extractor.parts)) if isinstance(extractor, Beside) else extractor  # as its layers are named
    names = [class_names[label] for label in head.classes_]
    return ExtractorHash(architecture(ours), extractor.state_dict()).with_heads(names, head.coef_, head.intercept_)


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
    assert bundle.facts.model_hash == model.model_hash_
    assert np.array_equal(bundle.weights, model.heads_.coef_)
    names = digits().class_names if is_digits(model) else table().class_names
    return parts(model.extractor_, model.heads_, names)


def is_digits(model):
    return len(model._fitted.records.shape) == 3


def everything(model):
    """A model's bytes, and all else that a request could change."""
    return parts_of(model), model.content_hash_, model.core_.ids.tolist(), model.classes_.tolist()


def as_on_receipts(model):
    """The model and its records as receipts name them."""
    return model._fitted.model_commitment, model._fitted.commitment


def commitments(model, model_hash_, records):
    """The same, from a hash and records that were found in another way."""
    return keyed_hash(model._fitted.key, b"model", model_hash_), commitment_of(model, records)


def commitment_of(model, records):
    """The commitment to records of a dataset under a model's secret, found without the tree."""
    hashes = [digest.tobytes() for digest in records.record_hashes()]
    return commitment_to(model._fitted.secret, zip(records.ids.tolist(), hashes, strict=True))


def joined(one, other, class_names=None):
    """The records of both, in classes that are called the same, or of which the second has more."""
    names = class_names or max(one.class_names, other.class_names, key=len)
    labels = [np.array([names.index(name) for name in each.class_names])[each.labels] for each in (one, other)]
    subjects = None if one.subjects is None else np.concatenate([one.subjects, other.subjects])
    return Dataset(
        np.concatenate([one.inputs, other.inputs]), np.concatenate(labels), names, np.concatenate([one.ids, other.ids]),
        subjects, columns=one.columns,
    )  # fmt: skip


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
