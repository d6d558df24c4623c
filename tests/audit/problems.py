"""Small models that forgot something, honestly or not, and views made up for the arithmetic."""

import copy
import functools
import json
from dataclasses import dataclass, replace

import numpy as np

from maxrr.audit.attacks import Evidence, Signals, View
from maxrr.audit.auditing import labels_of
from maxrr.audit.case import make_case
from maxrr.audit.findings import decide
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Shadows, shadow_seeds
from maxrr.core import Frozen, FullCore, HashCore
from maxrr.data import Dataset
from maxrr.nets import MLP, split, train
from maxrr.unlearning import MaxRR, Receipt
from tests.unlearning.problems import fresh, table

ENOUGH = 48  # shadow models, half of them retrained: the fewest that can show anything
FEW = 8  # for what does not depend on how many there are
CLASSES = 3
SHARDED = HashCore(0.5, key="house", shards=2)


def relabelled(dataset, labels):
    """The same records with other labels."""
    return Dataset(dataset.inputs, labels, dataset.class_names, dataset.ids, dataset.subjects)


def with_rows_of(dataset, other):
    """A dataset with the rows of another after its own, under new ids."""
    return Dataset(
        np.concatenate([dataset.inputs, other.inputs]), np.concatenate([dataset.labels, other.labels]),
        dataset.class_names, np.arange(len(dataset) + len(other)),
    )  # fmt: skip


@functools.cache
def sides(count=80, test=60, noise=0.0):
    """Records to train on, and records to test with. Of so many the label is wrong."""
    records = table(count + test, classes=CLASSES)
    random = np.random.default_rng(1)
    wrong = np.flatnonzero(random.random(len(records)) < noise)
    labels = records.labels.copy()
    labels[wrong] = (labels[wrong] + random.integers(1, CLASSES, len(wrong))) % CLASSES
    held_out = random.choice(np.sort(records.ids), test, replace=False)
    records = relabelled(records, labels)
    return records.without(held_out), records.select(held_out)


TRAINING, TEST = sides()
NOISY, NOISY_TEST = sides(60, 60, noise=0.2)
WRONG = np.sort(NOISY.ids[NOISY.labels != table(120, classes=CLASSES).select(NOISY.ids).labels])


@functools.cache
def frozen_extractor():
    """Somebody else's, trained on other records."""
    return split(train(MLP(5, CLASSES, hidden=(12,)), TEST, 3, epochs=12, lr=5e-3, device="cpu", threads=1).network)[0]


@functools.cache
def fitted(kind="hash"):
    """One model for each core; copy it before changing it."""
    if kind == "frozen":
        return fresh(Frozen(), TRAINING, network=frozen_extractor()).fit(TRAINING, test=TEST)
    if kind == "overfitted":  # so long on so few records that it learns wrong labels
        settings = {"epochs": 50, "lr": 1e-2, "network": MLP(5, CLASSES, hidden=(64,))}
        return fresh(FullCore(), NOISY, **settings).fit(NOISY, test=NOISY_TEST)
    return fresh(SHARDED if kind == "shards" else HashCore(0.5, key="house"), TRAINING).fit(TRAINING, test=TEST)


@dataclass(frozen=True)
class Asked:
    """A request that was carried out: what `audit` takes, in its order."""

    model: MaxRR
    receipt: Receipt
    forgotten: Dataset
    test: Dataset

    def __iter__(self):
        return iter((self.model, self.receipt, self.forgotten, self.test))


def asked(ids, kind="hash", **request):
    """A model of this kind without these records."""
    training, test = (NOISY, NOISY_TEST) if kind == "overfitted" else (TRAINING, TEST)
    model = copy.deepcopy(fitted(kind))
    return Asked(model, model.unlearn(ids, **{"core_policy": "keep-extractor", **request}), training.select(ids), test)


def core(kind="hash"):
    """The ids of the core, as a copy."""
    return fitted(kind).core_.ids.copy()


def keeping_secretly(now, times):
    """The same request, but the extractor was trained on the forgotten records after all, each so many times."""
    state = now.model._fitted
    retained = state.records.retained()
    seen = with_rows_of(retained.select(now.model.core_.ids), repeated(now.forgotten, times))
    recipe = state.blueprint.recipe
    run = train(
        state.blueprint.network, seen, state.blueprint.seed, epochs=recipe.epochs,
        batch_size=recipe.batch_size, lr=recipe.lr, device="cpu", threads=1,
    )  # fmt: skip
    extractor = split(run.network)[0]
    heads = state.blueprint.fit_heads(state.blueprint.embed(extractor, retained), retained)
    model = copy.deepcopy(now.model)
    model._state = replace(state, extractor=extractor, heads=heads)
    return replace(now, model=model)


def repeated(dataset, times):
    """Each record so many times, under new ids."""
    features, labels = dataset.inputs.repeat(times, axis=0), dataset.labels.repeat(times)
    return Dataset(features, labels, dataset.class_names, np.arange(len(labels)))


def contents(report):
    """All that a report says but when it was made, how long it took, and that it was made before."""
    found = json.loads(report.to_json())
    del found["time"], found["seconds"], found["earlier"]
    found["caveats"] = [text for text in found["caveats"] if "it is audit number" not in text]
    return found


# Views that no model made


def probabilities(random, labels, sure=0.0, classes=CLASSES):
    """Random ones, with so much more on the true class."""
    scores = random.normal(size=(len(labels), classes))
    scores[np.arange(len(labels)), labels] += 1.0 + sure
    odds = np.exp(scores)
    return odds / odds.sum(axis=1, keepdims=True)


def made_up(random, labels, sure=0.0):
    """What a model says that is so much surer of the forgotten records."""
    return View(
        probabilities(random, labels.forgotten, sure), probabilities(random, labels.retained),
        probabilities(random, labels.test), random.normal(sure, size=(2, len(labels.forgotten))).mean(axis=0),
    )  # fmt: skip


def constant(labels):
    """What a model says that says the same of everybody."""
    parts = (np.full((len(part), CLASSES), 1 / CLASSES) for part in (labels.forgotten, labels.retained, labels.test))
    return View(*parts, np.zeros(len(labels.forgotten)))


# Findings on many models, for less than an audit of each takes


def shadows_of(now, had=6, retrained=24):
    """Shadow models of a request, as an audit makes them, and their maker."""
    case = make_case(*now)
    maker, seed = Shadows(case, "cpu"), case.fitted.blueprint.seed
    remembering = KEPT if case.touches_core else BEFORE
    kinds = ((remembering, had, "with"), (RETRAINED, retrained, "without"))
    views = maker.views([((kind,), shadow_seeds(seed, count, purpose)) for kind, count, purpose in kinds])
    return evidence_of(views[remembering], views[RETRAINED], labels_of(case)), maker


def evidence_of(remembering, retrained, labels):
    """Of models by their views."""
    return Evidence(*([Signals.of(view, labels) for view in views] for views in (remembering, retrained)))


def finding_on(view, evidence, labels):
    """By the rule of the audit, but for its power."""
    found = evidence.scores("lira", Signals.of(view, labels))
    return decide(found, [found], [found])
