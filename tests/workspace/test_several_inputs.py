"""Records with several inputs in a workspace: it knows their kind, and forgets and replays them like others."""

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.errors import NetworkMissing
from maxrr.files import from_plain
from maxrr.nets.naming import NamedNetwork
from maxrr.unlearning import replay
from maxrr.unlearning.facts import Facts
from maxrr.workspace import Commit, Workspace
from tests.several_inputs import LENGTH, Text, text_network, texts
from tests.unlearning.problems import fresh
from tests.workspace.problems import facts_of, given

CORE = HashCore(0.5, key="house")
SHAPES = {"mask": (LENGTH,), "tokens": (LENGTH,)}


@pytest.fixture
def folder(tmp_path):
    network = NamedNetwork.for_records("tests.several_inputs:text_network", SHAPES, 3)
    with Workspace.create(tmp_path / "ws", fresh(CORE, None, network), texts()):
        pass
    return tmp_path / "ws"


def test_opened_again_it_is_the_same(folder, here):
    records, model = texts(), fresh(CORE, None, Text()).fit(texts())
    with Workspace.open(folder, network=text_network(SHAPES, 3)) as workspace:
        assert workspace.model.model_hash_ == model.model_hash_
        assert workspace.model.kind_.dtype == records.inputs.dtype
        assert str(workspace.model.kind_) == "mask bool of shape (6,) and tokens int64 of shape (6,)"
        assert np.array_equal(workspace.model.predict(records), model.predict(records))
        gone = model.core_.ids[:2]
        receipt = given(workspace, records).model.unlearn(gone, core_policy="retrain")
        assert replay(receipt, workspace.model, records).outcome == "identical"
        changed = {"tokens": np.ones(LENGTH, dtype=int), "mask": np.ones(LENGTH, dtype=bool)}
        given(workspace, records).model.replace(int(records.ids[0]), changed, core_policy="keep-extractor")
    model.unlearn(gone, core_policy="retrain")
    model.replace(int(records.ids[0]), changed, core_policy="keep-extractor")
    with Workspace.open(folder, network=text_network(SHAPES, 3)) as workspace:
        assert (workspace.model.model_hash_, workspace.model.content_hash_) == (model.model_hash_, model.content_hash_)
        other = Dataset({"tokens": records.inputs["tokens"]}, records.labels, records.class_names, records.ids)
        with pytest.raises(ValueError, match="mask"):
            workspace.model.predict(other)


def test_the_commit_knows_the_shape_of_each_input(folder):
    assert Commit.last(folder).shape == SHAPES
    facts = {name: fact for name, fact in facts_of(folder).items() if name in Facts.__annotations__}
    assert from_plain(Facts, facts).record_shape == SHAPES
    assert facts["dtype"] == [["mask", "|b1", [LENGTH]], ["tokens", "<i8", [LENGTH]]]
    for wrong in ([], [["mask", "|b1"]], [["mask", "|b1", [-1]]], [[1, "|b1", [2]]], ["mask"]):
        with pytest.raises(ValueError, match=r"dtype|several inputs"):
            from_plain(Facts, facts | {"dtype": wrong})


def test_the_network_is_made_only_for_whoever_names_it(folder):
    with Workspace.open(folder, read_only=True) as workspace, pytest.raises(NetworkMissing, match="text_network"):
        workspace.model.predict(texts())
