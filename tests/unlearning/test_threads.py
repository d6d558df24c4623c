"""One model, many threads: every answer is that of one state."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from maxrr.core import HashCore
from tests.unlearning.problems import fresh, table

REQUESTS = 30


def many_classes():
    """A table of ten classes, which go one after the other."""
    data = table(count=200, classes=10, columns=8)
    return data, [data.ids[data.labels == label] for label in range(8)]


def test_answers_while_classes_vanish():
    """Predictions, probabilities and plans in threads; each is exactly that of a state which the model had."""
    data, leaving = many_classes()
    model = fresh(HashCore(0.5, key="k"), data, epochs=4).fit(data)
    rows = data.inputs[:40]
    states, stop, wrong, asked = [model._fitted], threading.Event(), [], 0

    def ask():
        count = 0
        while not stop.is_set():
            found = model.predict(rows), model.predict_proba(rows), model.decision_function(rows)
            model.plan(data.ids[-3:], core_policy="keep-extractor")
            answers.append(found)
            count += 1
        return count

    answers = []
    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(ask) for _ in range(4)]
        expected = []
        for ids in leaving:
            twin = replace(model._fitted)  # shares the records, which are there until the request
            expected.append(alone(model, twin, rows))
            model.unlearn(ids, core_policy="keep-extractor")
            states.append(model._fitted)
        expected.append(alone(model, model._fitted, rows))
        stop.set()
        asked = sum(thread.result(60) for thread in threads)
    assert asked >= 8
    for kind in range(3):
        known = {one[kind].tobytes() for one in expected}
        wrong += [kind for found in answers if found[kind].tobytes() not in known]
    assert wrong == []
    assert len(model.classes_) == 2


def alone(model, state, rows):
    """What a model answers in this state."""
    other = type(model)(model.network, model.core)
    other._state = state
    return other.predict(rows), other.predict_proba(rows), other.decision_function(rows)


def test_requests_at_once_are_all_carried_out():
    """As if they had come one after the other: the same bytes, one receipt each, in a chain."""
    data = table()
    at_once, in_turn = (fresh(HashCore(0.5, key="k"), data).fit(data) for _ in range(2))
    ids = np.sort(data.ids)[:REQUESTS].tolist()
    with ThreadPoolExecutor(6) as pool:
        receipts = list(pool.map(lambda id_: at_once.unlearn([id_], core_policy="keep-extractor"), ids))
    in_turn.unlearn(ids, core_policy="keep-extractor")
    assert at_once.model_hash_ == in_turn.model_hash_
    assert at_once.content_hash_ == in_turn.content_hash_
    numbered = sorted(receipts, key=lambda receipt: receipt.number)
    assert [receipt.number for receipt in numbered] == list(range(1, REQUESTS + 1))
    assert [receipt.previous for receipt in numbered[1:]] == [receipt.digest for receipt in numbered[:-1]]
