"""Networks with several inputs, and token ids: they reach the network as they are, and are forgotten like others."""

import copy
import functools
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.unlearning import replay
from tests.several_inputs import KINDS, LENGTH, PictureAndTable, Text, pictures_and_rows, sentences, texts
from tests.unlearning.problems import fit_again, fresh, kinds, parts, train_again

CORE = HashCore(0.5, key="house")
RECORDS = {"text": texts, "picture and table": pictures_and_rows}
NETWORKS = {"text": Text, "picture and table": PictureAndTable}


@functools.cache
def fitted_on(name):
    return fresh(CORE, None, NETWORKS[name]()).fit(RECORDS[name]())


@pytest.fixture(params=list(RECORDS))
def case(request):
    """A model and its records."""
    return copy.deepcopy(fitted_on(request.param)), RECORDS[request.param]()


@pytest.fixture
def model():
    return copy.deepcopy(fitted_on("text"))


def test_forgetting_gives_the_bytes_of_training_without_the_records(case, here):
    model, records = case
    core, influential, free = kinds(model, records)
    for gone in (free[:2], influential[:3], np.concatenate([core[:2], influential[3:5]])):
        receipt = model.unlearn(gone, core_policy="retrain")
        records = records.without(gone)
        extractor = train_again(model, records, np.intersect1d(core, records.ids))
        expected = parts(extractor, fit_again(extractor, records), KINDS)
        assert parts(model.extractor_, model.heads_, KINDS) == expected
        assert model.content_hash_ == records.content_hash()
    assert receipt.guarantee == "exact-retrain"
    assert replay(receipt, model.bundle(), records).outcome == "identical"


def test_what_was_forgotten_is_erased(case):
    model, records = case
    held = model._fitted.records
    row = int(held.rows(records.ids[:1])[0])
    assert held.inputs[row].tobytes() == records.inputs[0].tobytes()
    model.unlearn(records.ids[:1], core_policy="keep-extractor")
    assert not any(held.inputs[row].tobytes())


def test_dictionaries_and_tuples_are_what_a_dataset_makes_of_them():
    inputs, labels, ids = sentences()
    turned = dict(reversed(inputs.items()))
    model = fresh(CORE, None, Text()).fit(turned, labels, ids=ids)
    assert model.model_hash_ == fresh(CORE, None, Text()).fit(Dataset(inputs, labels, ("0", "1", "2"), ids)).model_hash_
    expected = model.predict(inputs)
    assert np.array_equal(model.predict(turned), expected)
    assert np.array_equal(model.predict(texts().inputs), expected)
    assert model.score(inputs, labels) == np.mean(expected == labels) > 0.6
    both = pictures_and_rows()
    placed = tuple(both.inputs[name] for name in both.inputs.dtype.names)
    by_place = fresh(CORE, None, PictureAndTable()).fit(placed, both.labels, ids=both.ids)
    assert by_place.score(placed, both.labels) > 0.5


class Seen(nn.Module):
    """Notes the types that reach it, or a copy of it."""

    types: ClassVar = set()

    def __init__(self):
        super().__init__()
        self.embedding, self.hidden, self.head = nn.Embedding(60, 6), nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, tokens):
        self.types.add(tokens.dtype)
        return self.head(torch.relu(self.hidden(self.embedding(tokens).mean(1))))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_token_ids_reach_the_network_as_they_are(dtype):
    inputs, labels, ids = sentences()
    tokens = inputs["tokens"].astype(dtype)
    Seen.types.clear()
    model = fresh(CORE, None, Seen()).fit(tokens, labels, ids=ids)
    model.predict(tokens)
    assert Seen.types == {torch.int32 if dtype == np.int32 else torch.int64}
    other = np.int64 if dtype == np.int32 else np.int32
    assert np.array_equal(model.decision_function(tokens.astype(other)), model.decision_function(tokens))
    with pytest.raises(DataError, match="has integers"):
        model.predict(tokens.astype(np.float32))


def test_a_network_that_does_not_take_integers_says_what_to_do():
    inputs, labels, ids = sentences()
    table = nn.Sequential(nn.Linear(LENGTH, 4), nn.ReLU(), nn.Linear(4, 3))
    with pytest.raises(ValueError, match="table to float32"):
        fresh(CORE, None, table).fit(inputs["tokens"], labels, ids=ids)
    with pytest.raises(ValueError, match="int32 or int64"):
        fresh(CORE, None, Seen()).fit(inputs["tokens"].astype(np.float32), labels, ids=ids)
    small = {"tokens": inputs["tokens"].astype(np.uint8), "mask": inputs["mask"]}
    for network, given in ((Seen(), small["tokens"]), (Text(), small)):
        with pytest.raises(ValueError, match="divided by 255"):
            fresh(CORE, None, network).fit(given, labels, ids=ids)
    with pytest.raises(ValueError, match="keyword argument 'words'"):
        fresh(CORE, None, Text()).fit({"words": inputs["tokens"], "mask": inputs["mask"]}, labels, ids=ids)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": None}, "takes mask bool of shape .* and tokens int64 .* not 'tokens'"),
        ({"words": np.zeros((2, LENGTH))}, "not 'mask', 'tokens', 'words'"),
        ({"mask": np.ones((2, LENGTH), dtype=np.int64)}, "'mask' are int64, and the model has booleans"),
        ({"tokens": np.ones((2, LENGTH))}, "'tokens' are float64, and the model has integers"),
        ({"tokens": np.ones((2, 3), dtype=np.int64)}, r"'tokens' have shape \(3,\), but the model was"),
        ({"tokens": np.ones((3, LENGTH), dtype=np.int64)}, "one row per record, but mask has 2, tokens has 3"),
    ],
)  # fmt: skip
def test_other_inputs_than_the_models(model, changes, message):
    inputs, _, _ = sentences(2)
    given = {name: part for name, part in (inputs | changes).items() if part is not None}
    with pytest.raises(DataError, match=message):
        model.predict(given)


def test_one_input_and_several_are_not_taken_for_each_other(model):
    with pytest.raises(DataError, match="dictionary of arrays"):
        model.predict(np.zeros((2, LENGTH)))
    with pytest.raises(DataError, match="not '0'"):
        model.predict((np.zeros((2, LENGTH)),))
    plain = fresh(CORE, None, Seen()).fit(sentences()[0]["tokens"], texts().labels)
    with pytest.raises(DataError, match="input, int64"):
        plain.predict(sentences()[0])


def test_a_record_is_replaced(model):
    record = {"tokens": [1, 2, 3, 0, 0, 0], "mask": [True] * 3 + [False] * 3}
    data, id_ = texts(), int(texts().ids[0])
    model.replace(id_, record, core_policy="retrain")
    inputs = data.inputs.copy()
    inputs[0] = tuple(np.asarray(record[name]) for name in inputs.dtype.names)
    corrected = Dataset(inputs, data.labels, KINDS, data.ids, data.subjects)
    assert model.content_hash_ == corrected.content_hash()
    assert model.model_hash_ == fresh(CORE, None, Text()).fit(corrected).model_hash_
    with pytest.raises(DataError, match="'mask' are int64"):
        model.replace(id_, record | {"mask": [2] * LENGTH}, core_policy="retrain")
    with pytest.raises(DataError, match="not 'tokens'"):
        model.replace(id_, {"tokens": record["tokens"]}, core_policy="retrain")
    with pytest.raises(DataError, match="nothing to replace"):
        model.replace(id_, model._fitted.records.select(model._fitted.records.rows(np.array([id_]))).inputs[0])


def test_a_forgotten_record_does_not_come_back_in_another_type(model):
    inputs, labels, ids = sentences()
    model.unlearn(ids[:1], core_policy="retrain")
    others = {"tokens": inputs["tokens"].astype(np.int32), "mask": inputs["mask"].astype(np.float32)}
    with pytest.raises(DataError, match="exactly the values"):
        model.fit(Dataset(others, labels, KINDS, 10_000 + ids))


@pytest.mark.long
def test_a_fresh_process_makes_the_same_of_them(case):
    model, records = case
    gone = model.core_.ids[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    assert replay(receipt, model.bundle(), records.without(gone)).outcome == "identical"
