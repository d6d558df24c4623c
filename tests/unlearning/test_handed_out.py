"""Nothing that is handed out is both writable and shared, nor does a model keep what it was given."""

import copy
import types
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn

from maxrr import MaxRR
from maxrr.core import Frozen, HashCore
from maxrr.core.choice import Choice
from maxrr.data import Dataset
from maxrr.errors import Refused
from maxrr.nets import MLP, Recipe
from maxrr.serving import export, load
from maxrr.unlearning.tombstones import Tombstones
from maxrr.workspace import Workspace
from tests.unlearning.problems import fresh, table
from tests.workspace.problems import given

RECORDS = table()
MORE = table(count=4, seed=9).inputs
UNCHANGING = type | types.ModuleType | types.FunctionType | str | bytes | Tombstones


def reachable(root, *, publicly):
    """Every array, tensor, list, dictionary and object that one can get at, with the way there."""
    seen, todo = {}, [("", root)]
    while todo:
        way, found = todo.pop()
        if id(found) in seen or isinstance(found, UNCHANGING):
            continue
        seen[id(found)] = found
        yield way, found
        if isinstance(found, dict):
            todo += [(f"{way}[{key!r}]", value) for key, value in found.items()]
        elif isinstance(found, list | tuple | set):
            todo += [(f"{way}[{number}]", value) for number, value in enumerate(found)]
        elif not isinstance(found, np.ndarray | torch.Tensor):
            todo += [(f"{way}.{name}", value) for name, value in attributes(found, publicly)]


def attributes(found, publicly):
    names = set(getattr(found, "__dict__", ()))
    if publicly:
        names |= {name for kind in type(found).__mro__ for name, value in vars(kind).items() if is_computed(value)}
        names = {name for name in names if not name.startswith("_")}
    if isinstance(found, nn.Module):
        names |= {"_parameters", "_buffers", "_modules"}
    for name in sorted(names):
        with suppress(Exception):  # a property may say that there is nothing
            value = getattr(found, name)
            if not isinstance(value, types.MethodType):
                yield name, value


def is_computed(value):
    return isinstance(value, property) or type(value).__name__ == "once"


def ends(found):
    """From where to where an array or a tensor lies in memory."""
    if isinstance(found, torch.Tensor):
        storage = found.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    return np.lib.array_utils.byte_bounds(found) if found.nbytes else (0, 0)


def is_frozen(found):
    return getattr(getattr(type(found), "__dataclass_params__", None), "frozen", False)


def shared(handed, own):
    """The ways to what can be written through `handed` and is part of `own`."""
    mine = dict(reachable(own, publicly=False))
    places = [ends(found) for found in mine.values() if isinstance(found, np.ndarray | torch.Tensor)]
    objects = {id(found) for found in mine.values()}
    for way, found in reachable(handed, publicly=True):
        if isinstance(found, np.ndarray | torch.Tensor):
            first, last = ends(found)
            writable = isinstance(found, torch.Tensor) or found.flags.writeable
            if writable and any(low < last and first < high for low, high in places):
                yield way
        elif id(found) in objects and (
            isinstance(found, list | dict | set) or (hasattr(found, "__dict__") and not is_frozen(found))
        ):
            yield way


def embeddings():
    return MaxRR.on_features(class_weight={0: 2.0}).fit(
        RECORDS.inputs, RECORDS.labels, ids=RECORDS.ids, subjects=RECORDS.subjects, sample_weight=np.full(80, 1.5)
    )


def hashed():
    return fresh(HashCore(0.5, key="house"), RECORDS).fit(RECORDS)


def in_shards():
    return fresh(HashCore(0.9, key="house", shards=2, by="record"), RECORDS).fit(RECORDS)


def adopted():
    return MaxRR.adopt(MLP(5, 3, hidden=(6,)), trained_on=RECORDS.ids[:40], train=Recipe(epochs=1)).fit(RECORDS)


def frozen():
    return fresh(Frozen(), RECORDS, nn.Sequential(nn.Linear(5, 6), nn.Tanh())).fit(RECORDS)


@pytest.mark.parametrize("made", [embeddings, hashed, in_shards, adopted, frozen])
def test_what_a_model_hands_out_is_its_callers(made):
    model = made()
    some = model.ids_of("influential")[:2]
    weights = {"weights": np.ones(2)} if made is embeddings else {}
    model.predict_proba(MORE)
    handed = {
        **{name: getattr(model, name) for name in ("classes_", "heads_", "extractor_", "core_")},
        "params": model.get_params(), "ids_of": model.ids_of(), "bundle": model.bundle(),
        "plan": model.plan(some, core_policy="keep-extractor"),
        "plan_replace": model.plan(some[0], inputs=MORE[0], core_policy="keep-extractor"),
        "predict": model.predict(MORE), "scores": model.decision_function(MORE),
    }  # fmt: skip
    if made is not frozen:
        new = Dataset(
            MORE[:2], [0, 1], model._fitted.head_classes, RECORDS.ids[:2] + 10**6, np.array([1, 2]), **weights
        )
        handed["plan_add"] = model.plan(add=new)
    assert list(shared(handed, model._state)) == []
    receipts = [model.unlearn(some[:1], core_policy="keep-extractor")]
    assert list(shared(receipts, model._state)) == []
    assert list(shared([handed, receipts], model._state)) == []


def test_what_a_workspace_hands_out_is_its_callers(tmp_path):
    model = hashed()
    with Workspace.create(tmp_path / "ws", model, RECORDS) as workspace:
        own = [workspace.model._state, vars(workspace._store)]
        assert list(shared([found for _, found in reachable(model._state, publicly=False)], own)) == []
        handed = [workspace.sources, workspace.model.kind_, copy.deepcopy(workspace.model)]
        handed += [
            workspace.status(),
            workspace.model.bundle(),
            workspace.model.ids_of("influential"),
            workspace.exports(),
            workspace.find(id=RECORDS.ids[0]),
        ]
        handed += [workspace.model.plan(RECORDS.ids[:3], core_policy="keep-extractor")]
        handed += [
            given(workspace, RECORDS).model.unlearn(RECORDS.ids[:1], core_policy="retrain"),
            *workspace.receipts(),
        ]
        values = given(workspace, RECORDS.without(RECORDS.ids[:1])).model._apart()
        given(workspace, RECORDS).model.replace(RECORDS.ids[1], MORE[0], core_policy="retrain")
        handed += [values, workspace.status()]
        assert list(shared(handed, [own, workspace.model._state, vars(workspace._store)])) == []
    export(MaxRR.on_features().fit(RECORDS), tmp_path / "out")
    served = load(tmp_path / "out")
    assert list(shared(served, vars(served._loaded))) == []


class Kept:
    """A rule of the caller's own, who keeps what it chose."""

    def choose(self, network, dataset, **given):
        self.choice = Choice(np.sort(dataset.ids)[:40], False, "the first", {"kind": "own"})
        return self.choice


def test_what_a_model_was_given_stays_its_callers():
    given = {
        "X": RECORDS.inputs.copy(), "y": RECORDS.labels.copy(), "ids": RECORDS.ids.copy(),
        "subjects": RECORDS.subjects.copy(), "sample_weight": np.full(80, 1.5),
    }  # fmt: skip
    weights = {0: 2.0}
    model = MaxRR.on_features(class_weight=weights).fit(**given)
    more = {"X": MORE.copy(), "y": np.arange(4) % 3, "ids": np.arange(4) - 50, "subjects": np.arange(4)}
    more["sample_weight"], one = np.ones(4), MORE[0] + np.float32(1.0)
    new = Dataset(
        more["X"], more["y"], ("0", "1", "2"), more["ids"], more["subjects"], weights=more["sample_weight"]
    )  # fmt: skip
    plan, correction = model.plan(add=new), model.plan(RECORDS.ids[0], inputs=one)
    assert list(shared([more, new, one], [plan, correction])) == []
    model.add(**more)
    model.replace(RECORDS.ids[0], one)
    assert list(shared([given, weights, more, one], model._state)) == []
    core, network, ids = Kept(), MLP(5, 3, hidden=(6,)), RECORDS.ids[:40].copy()
    model = fresh(core, RECORDS, network).fit(RECORDS)
    assert list(shared([core, core.choice, network, RECORDS], model._state)) == []
    model = MaxRR.adopt(network, trained_on=ids, train=Recipe(epochs=1))
    assert list(shared([ids], [model.core])) == []
    model.fit(RECORDS)
    assert list(shared([network, model.core, RECORDS], model._state)) == []


def test_changes_to_what_was_handed_out_change_nothing():
    """A core record was then forgotten as if it had been none, and heads could be moved behind the model's back."""
    model, beside = hashed(), hashed()
    before = model.model_hash_, model.decision_function(MORE).tolist()
    id_ = model.core_.ids[0]
    model.core_.ids[:] = -1
    model.core_.details.clear()
    model.heads_.forget(model.heads_.support_[:3])
    bundle = model.bundle()
    bundle.choice.ids[:] = -1
    for weights in (*model.extractor_.parameters(), *bundle.blueprint.network.parameters()):
        weights.data.zero_()
    assert (model.model_hash_, model.decision_function(MORE).tolist()) == before
    with pytest.raises(Refused):
        model.unlearn([id_])
    model.unlearn(model.ids_of("influential")[:1], core_policy="keep-extractor").heads.clear()
    receipt = model.unlearn([id_], core_policy="retrain")
    assert len(receipt.heads) == 3
    beside.unlearn(beside.ids_of("influential")[:1], core_policy="keep-extractor")
    beside.unlearn([id_], core_policy="retrain")
    assert model.model_hash_ == beside.model_hash_


def test_heads_that_were_handed_out_do_not_go_on_without_their_samples():
    """The model has erased them since: what these heads say of other records stays, and they cannot be moved."""
    model = embeddings()
    heads, some = model.heads_, model.ids_of("influential")[:3]
    scores = heads.decision_function(MORE)
    model.unlearn(some)
    assert np.array_equal(heads.decision_function(MORE), scores)
    with pytest.raises(ValueError, match="erased by another"):
        heads.forget(model.heads_.support_[:1])
