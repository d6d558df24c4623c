"""A story that really happened, to a small model."""

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.data import Dataset, load
from maxrr.nets import LeNet5
from maxrr.report.demo import RequestStory, Story, kinds_of
from maxrr.unlearning import MaxRR, Replay


@pytest.fixture(scope="session")
def story() -> Story:
    training, test = load("digits")
    training = training.select(training.ids[:400]).in_order()
    model = fitted(training)
    core = np.isin(training.ids, model.core_.ids)
    signs = np.where(training.labels[:, None] == model.heads_.classes_, 1.0, -1.0)
    margins = (signs * model.decision_function(training)).min(axis=1)
    influential = np.isin(training.ids, model.ids_of("influential")) | (core & (margins < 1.0 + 1e-9))
    accuracy, recall = model.score(test), model.recall(test)
    requests = []
    for kind, members in kinds_of(core, influential).items():
        rows = np.flatnonzero(members)[:3]
        ids = training.ids[rows]
        plans = tuple(
            model.plan(ids, core_policy=policy) for policy in ("retrain", "keep-extractor")[: 1 + (kind == "core")]
        )
        before = model.model_hash_
        receipt = model.unlearn(ids, core_policy="retrain")
        hashes = before, model.model_hash_, model.model_hash_  # as if trained again, which other rooms compare
        requests.append(RequestStory(kind, rows, plans, receipt, receipt.seconds, 0.75, *hashes, model.score(test)))
    replayed = Replay("identical", "extractor and heads", "identical", "", 0.0, [], "", ["when it was"], 6.25)
    return Story(
        "digits", training.inputs[:, 0], training.labels, training.class_names, core, influential, margins,
        len(test), accuracy, recall, 1.5, tuple(requests), replayed,
    )  # fmt: skip


def fitted(training: Dataset, epochs: int = 20) -> MaxRR:
    return MaxRR(LeNet5(training.shape), HashCore(0.4, key="test"), epochs=epochs, lr=3e-3).fit(training)
