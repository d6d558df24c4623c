"""What is refused, in words, and leaves the model as it was to the byte; and interruptions, which do the same."""

import contextlib
import copy
import functools
import sys

import numpy as np
import pytest
import torch
from torch import nn

from maxrr import LinearSVM
from maxrr.core import Frozen, FullCore, HashCore
from maxrr.data import DataError, Dataset
from maxrr.errors import Refused
from maxrr.nets import MLP
from maxrr.unlearning import MaxRR, forgetting, transitions
from maxrr.unlearning import blueprint as blueprint_module
from maxrr.unlearning.commitment import class_hmac
from maxrr.unlearning.transitions import as_layer
from tests.unlearning.problems import (
    as_on_receipts,
    core_of,
    everything,
    fit_again,
    fresh,
    kinds,
    parts,
    parts_of,
    table,
    table_model,
    train_again,
)  # fmt: skip

IDS = np.sort(table().ids)


@pytest.fixture
def model():
    return table_model()


def unchanged_after(model, act, error=ValueError, match=None):
    """The act is refused, and changes nothing."""
    before, requests = everything(model), model._fitted.requests
    with pytest.raises(error, match=match) as caught:
        act()
    assert everything(model) == before
    assert model._fitted.requests == requests
    return str(caught.value)


REQUESTS = {
    "unknown": ({"ids": [3, 700_000_001]}, "no record has id 3, 700000001"),
    "some unknown": ({"ids": [int(IDS[0]), 4]}, "no record has id 4"),
    "empty": ({"ids": []}, "names no records"),
    "empty array": ({"ids": np.zeros(0, dtype=np.int64)}, "names no records"),
    "no subjects": ({"subjects": []}, "names no records"),
    "nobody": ({"subjects": [999]}, r"no record is about 999 \(records for testing are in no model\)"),
    "subject of another type": ({"subjects": ["ann"]}, "no record is about"),
    "everything": ({"ids": IDS}, "no records"),
    "neither ids nor subjects": ({}, "one of these"),
    "both": ({"ids": [1], "subjects": [50]}, "one of these"),
    "policy": ({"ids": IDS[:1], "core_policy": "forget"}, "core_policy is 'refuse', 'retrain', 'keep-extractor' or"),
    "no policy": ({"ids": IDS[:1], "core_policy": None}, "core_policy"),
    "strings for numbers": ({"ids": ["a"]}, "'a'"),
    "strings that are no numbers": ({"ids": [f"0{IDS[0]}"]}, "the ids of this model are integers"),
    "fractions": ({"ids": [1.5]}, None),
    "bytes": ({"ids": [b"x"]}, None),
    "nothing": ({"ids": [None]}, None),
    "a mixture": ({"ids": np.array([1, "a"], dtype=object)}, None),
    "truth": ({"ids": [True]}, None),
    "dates": ({"ids": np.array(["2020-01-01"], dtype="datetime64[D]")}, None),
    "too large": ({"ids": [2**70]}, None),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_bad_request_is_refused_and_nothing_changes(model, name):
    request, words = REQUESTS[name]
    unchanged_after(model, lambda: model.unlearn(**request), match=words)
    with contextlib.suppress(ValueError):  # what cannot be looked up cannot be planned either
        assert model.plan(**request).refusal


def test_ids_may_come_in_any_array_that_means_the_same(model):
    expected = table_model()
    expected.unlearn(IDS[:3], core_policy="keep-extractor")
    for ids in (IDS[:3].astype(np.uint64), IDS[:3].astype(object), IDS[:3].astype(np.int32), list(IDS[[2, 0, 1, 0]])):
        other = table_model()
        assert other.unlearn(ids, core_policy="keep-extractor").requested == 3
        assert everything(other) == everything(expected)
    one = table_model()
    one.unlearn(int(IDS[0]), core_policy="keep-extractor")
    assert one.content_hash_ == table().without([IDS[0]]).content_hash()


def test_the_refusal_of_core_records_says_what_else_there_is(model):
    ids = core_of(model)[:2]
    words = unchanged_after(model, lambda: model.unlearn(ids), Refused)
    assert unchanged_after(model, lambda: model.unlearn(ids, core_policy="refuse"), Refused) == words
    assert words.startswith("2 of the records are core")
    plan = model.plan(ids)
    assert plan.refusal == words
    for other, policy, guarantee in zip(
        plan.alternatives, ("retrain", "keep-extractor"), ("exact-retrain", "approximate-refit"), strict=True
    ):
        assert other == model.plan(ids, core_policy=policy)
        assert (other.guarantee, other.refusal) == (guarantee, None)
        assert f"{guarantee}" in words
    said = plan.refusal_in(lambda policy: f"<{policy}>")
    about = [f"about {other.seconds:.2g} s" for other in plan.alternatives]
    assert said == (
        f"{plan.reason}: <retrain> is exact-retrain, {about[0]}; <keep-extractor> is approximate-refit, {about[1]}"
    )


def test_what_a_refusal_carries_can_be_carried_out(model):
    with pytest.raises(Refused) as caught:
        model.unlearn(core_of(model)[:2])
    other = table_model()
    other.unlearn(core_of(other)[:2], core_policy="retrain")
    assert model.execute(caught.value.plans[0]).guarantee == "exact-retrain"
    assert everything(model) == everything(other)


def test_a_policy_that_would_refuse_as_well_is_named_with_its_reason(model):
    words = unchanged_after(model, lambda: model.unlearn(core_of(model)), Refused)
    assert "two classes" in words
    assert "approximate" in words


def test_one_class_left_is_refused(model):
    ids = table().ids[table().labels != 1]
    for policy in ("keep-extractor", "retrain"):
        words = unchanged_after(model, lambda policy=policy: model.unlearn(ids, core_policy=policy))
        assert "'kind 1'" in words


def test_an_empty_core_cannot_be_trained_on(model):
    ids = core_of(model)
    words = unchanged_after(model, lambda: model.unlearn(ids, core_policy="retrain"))
    assert "two classes" in words
    assert model.plan(ids, core_policy="retrain").refusal == words
    assert model.unlearn(ids, core_policy="keep-extractor").core_left_in_extractor == len(ids)


def test_already_forgotten_records_are_counted_not_refused(model):
    model.unlearn(IDS[:4], core_policy="keep-extractor")
    before = parts_of(model)
    plan = model.plan(IDS[:6], core_policy="keep-extractor")
    assert (plan.already_forgotten, plan.requested, plan.unknown, plan.refusal) == (4, 6, 0, None)
    receipt = model.unlearn(IDS[:4], core_policy="keep-extractor")
    assert (receipt.already_forgotten, receipt.records_before, receipt.records_after) == (4, 76, 76)
    assert receipt.model_before == receipt.model_after == as_on_receipts(model)[0]
    assert parts_of(model) == before
    assert model.unlearn(IDS[:6], core_policy="keep-extractor").already_forgotten == 4
    unchanged_after(
        model, lambda: model.replace(IDS[0], table().inputs[0], core_policy="keep-extractor"), match="was forgotten"
    )
    unchanged_after(model, lambda: model.unlearn(subjects=[50, 51, 999], core_policy="keep-extractor"))


REPLACEMENTS = {
    "shape": ((np.zeros(4),), "shape"),
    "two records": ((np.zeros((2, 5)),), "shape"),
    "ragged": (([[1.0], [1.0, 2.0]],), None),
    "not a number": ((np.full(5, np.nan),), None),
    "words": ((list("abcde"),), None),
    "unknown label": ((np.zeros(5), 7), "no class '7'"),
    "label of another type": ((np.zeros(5), "kind 9"), "no class 'kind 9'"),
    "many labels": ((np.zeros(5), [0, 1, 2]), "class"),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_record_that_does_not_fit_is_refused(model, name):
    record, words = REPLACEMENTS[name]
    unchanged_after(model, lambda: model.replace(IDS[0], *record, core_policy="keep-extractor"), match=words)


def test_replacing_needs_a_record_and_a_policy(model):
    unchanged_after(model, lambda: model.replace(5, np.zeros(5), core_policy="keep-extractor"), match="id 5")
    unchanged_after(model, lambda: model.replace(IDS[:2], np.zeros(5), core_policy="keep-extractor"))
    unchanged_after(model, lambda: model.replace(core_of(model)[0], np.zeros(5), core_policy="refuse"), match="core")


def test_pixels_stay_pixels():
    """Fractions and negative numbers do not become bytes silently."""
    rng = np.random.default_rng(0)
    data = Dataset(rng.integers(0, 256, (20, 1, 3, 3)).astype(np.uint8), np.arange(20) % 2, ("a", "b"), np.arange(20))
    model = MaxRR(nn.Flatten(), Frozen(), device="cpu").fit(data)
    before = model.model_hash_
    for wrong in (np.full((1, 3, 3), 0.7), np.full((1, 3, 3), -1), np.full((1, 3, 3), 255)):
        with pytest.raises(ValueError, match="uint8"):
            model.replace(3, wrong, core_policy="keep-extractor")
    assert (model.model_hash_, model.content_hash_) == (before, data.content_hash())
    model.replace(3, np.full((1, 3, 3), 255, np.uint8), core_policy="keep-extractor")
    assert model.content_hash_ != data.content_hash()


def test_predicting_other_shapes_is_refused(model):
    with pytest.raises(ValueError, match="shape"):
        model.predict(np.zeros((2, 3), dtype=np.float32))


# Interruptions

PLACES = {
    "training": (blueprint_module, "train"),
    "embedding": (blueprint_module, "embed"),
    "the head": (blueprint_module, "LinearSVM"),
    "the receipt": (forgetting, "Receipt"),
    "the state": (transitions, "with_extractor"),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_interruption_leaves_the_model_intact_and_able_to_forget(model, place, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    ids = core_of(model)[:3]
    new = np.ones(5, dtype=np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(*PLACES[place], interrupt)
        unchanged_after(model, lambda: model.unlearn(ids, core_policy="retrain"), KeyboardInterrupt)
        unchanged_after(model, lambda: model.replace(ids[0], new, core_policy="retrain"), KeyboardInterrupt)
    core = core_of(model)
    receipt = model.unlearn(ids, core_policy="retrain")
    assert receipt.number == 1
    retained = table().without(ids)
    extractor = train_again(model, retained, np.setdiff1d(core, ids))
    assert parts_of(model) == parts(extractor, fit_again(extractor, retained), retained.class_names)


def test_an_interruption_while_the_head_moves(model, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    influential = kinds(model, table())[1]
    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "make_receipt", interrupt)
        unchanged_after(model, lambda: model.unlearn(influential[:2]), KeyboardInterrupt)
        patch.setattr("maxrr.svm.heads.move", interrupt)
        unchanged_after(model, lambda: model.unlearn(influential[:2]), KeyboardInterrupt)
    expected = fit_again(model.extractor_, table().without(influential[:2]))
    model.unlearn(influential[:2])
    assert model.heads_.coef_.tobytes() == expected.coef_.tobytes()
    model.predict_proba(table())


def test_a_failed_fit_leaves_the_model(model):
    unchanged_after(model, lambda: model.fit(table(classes=3).select(table().ids[table().labels == 0])))


# Bringing back


def test_a_later_fit_refuses_what_was_forgotten_and_says_how_many(model):
    model.unlearn(IDS[:3], core_policy="keep-extractor")
    words = unchanged_after(model, lambda: model.fit(table()))
    assert words.startswith("3 of the record ids were forgotten")
    for id_ in IDS[:3].tolist():
        assert str(id_) not in words
    model.fit(table().without(IDS[:3]))
    assert model.unlearn(IDS[2:4], core_policy="keep-extractor").already_forgotten == 1
    unchanged_after(model, lambda: model.fit(table().without(IDS[:3])), match="1 of the")


def test_the_same_features_under_another_id_are_warned_about(model):
    model.unlearn(IDS[:2], core_policy="keep-extractor")
    data = table()
    ids = data.ids.copy()
    ids[np.isin(ids, IDS[:2])] += 1
    renamed = Dataset(data.inputs, data.labels, data.class_names, ids, data.subjects)
    unchanged_after(model, lambda: model.fit(renamed), match="2 of the")
    unchanged_after(model, lambda: model.fit(renamed, allow_copies=" "), match="2 of the")
    with pytest.warns(UserWarning, match="ones are let"):
        model.fit(renamed, allow_copies="twins")
    (override,) = model._fitted.overrides
    assert (override.records, override.reason) == (2, "twins")


def test_rectified_records_may_be_fitted_on(model):
    """Only the label was wrong; and another was put back to what it had been."""
    data = table()
    labels, features = data.labels.copy(), data.inputs.copy()
    labels[0] = (labels[0] + 1) % 3
    model.replace(data.ids[0], features[0], data.class_names[labels[0]], core_policy="keep-extractor")
    model.replace(data.ids[1], features[1] + 1.0, core_policy="keep-extractor")
    model.replace(data.ids[1], features[1], core_policy="keep-extractor")
    rectified = Dataset(features, labels, data.class_names, data.ids, data.subjects)
    assert model.content_hash_ == rectified.content_hash()
    model.fit(rectified)
    with pytest.raises(ValueError, match="or replaced ones"):
        model.fit(data)


def test_a_new_model_knows_of_nothing_forgotten(model):
    model.unlearn(IDS[:3], core_policy="keep-extractor")
    other = fresh(HashCore(0.5, key="house"), table()).fit(table())
    assert other.content_hash_ == table().content_hash()  # of all records
    assert model.content_hash_ == table().without(IDS[:3]).content_hash()


# Other ways


def test_forgetting_a_class_drops_its_head(model):
    ids = table().ids[table().labels == 1]
    core = core_of(model)
    receipt = model.unlearn(ids, core_policy="retrain")
    assert model.classes_.tolist() == ["kind 0", "kind 2"]
    assert [head.class_hmac for head in receipt.heads] == [class_hmac(model._fitted.key, "kind 2")]
    retained = table().without(ids)
    extractor = train_again(model, retained, np.setdiff1d(core, ids))
    assert parts_of(model) == parts(extractor, fit_again(extractor, retained), retained.class_names)
    assert set(model.predict(table()).tolist()) <= {"kind 0", "kind 2"}
    assert model.predict_proba(table()).shape == (80, 2)
    with pytest.raises(DataError, match="'kind 0', 'kind 2'"):
        model.replace(retained.ids[0], retained.inputs[0], "kind 1", core_policy="keep-extractor")


def test_a_core_whose_extractor_cannot_be_trained_again_stays_refused_after_it_was_forgotten(model):
    """Nothing of the request is left but what the extractor keeps, and no core to train another on."""
    ids = core_of(model)
    model.unlearn(ids, core_policy="keep-extractor")
    words = unchanged_after(model, lambda: model.unlearn(ids, core_policy="retrain"), Refused)
    assert "two classes" in words


def test_a_technique_gets_extractor_core_forgotten_core_records_and_heads(model):
    core, extractor, heads = core_of(model), copy.deepcopy(model.extractor_), model.heads_
    others = kinds(model, table())[1][:2]
    seen = {}

    def technique(given, kept, forgotten, layer):
        seen.update(given=given, kept=kept, forgotten=forgotten, layer=layer)
        for weights in given.parameters():
            weights.data *= 0.5
        return given

    receipt = model.unlearn(np.concatenate([core[:3], others]), core_policy=technique)
    assert sorted(seen["kept"].ids.tolist()) == core[3:].tolist()
    assert sorted(seen["forgotten"].ids.tolist()) == core[:3].tolist()
    assert seen["forgotten"].content_hash() == table().select(core[:3]).content_hash()
    assert np.array_equal(seen["layer"].weight.numpy(force=True), heads.coef_.astype(np.float32))
    assert np.array_equal(seen["layer"].bias.numpy(force=True), heads.intercept_.astype(np.float32))
    for name, value in extractor.state_dict().items():
        assert np.array_equal(model.extractor_.state_dict()[name].numpy(), 0.5 * value.numpy())
    assert (receipt.guarantee, receipt.core_policy) == ("approximate-refit", "technique")
    retained = table().without(np.concatenate([core[:3], others]))
    assert parts_of(model) == parts(seen["given"], fit_again(seen["given"], retained), table().class_names)


def test_heads_as_a_layer_choose_as_the_heads_do_whatever_classes_there_are():
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    for codes, classes in ((np.array([0, 2, 3]), 5), (np.array([1, 3]), 4)):
        heads = LinearSVM().fit(X, codes[X[:, : len(codes)].argmax(1)])
        scores = as_layer(heads, classes)(torch.tensor(X)).detach().numpy()
        own = heads.decision_function(X).reshape(len(X), -1)
        assert np.allclose(scores[:, codes[-own.shape[1] :]], own, atol=1e-5)
        assert np.array_equal(codes[scores[:, codes].argmax(1)], heads.predict(X))
        assert set(scores[:, np.setdiff1d(np.arange(classes), codes)].ravel()) == {-1.0}


def test_a_technique_is_not_asked_without_core_records_and_may_fail(model):
    def technique(*_):
        raise RuntimeError("no")

    assert model.unlearn(kinds(model, table())[1][:1], core_policy=technique).guarantee == "exact-refit"
    ids = core_of(model)[:1]
    unchanged_after(model, lambda: model.unlearn(ids, core_policy=technique), RuntimeError)
    unchanged_after(model, lambda: model.unlearn(ids, core_policy=lambda *_: None), match="extractor")


def test_a_technique_that_spoils_what_it_is_given_and_fails_spoils_nothing(model):
    def technique(given, kept, forgotten, heads):
        for weights in [*given.parameters(), *heads.parameters()]:
            weights.data *= 0.0
        kept.inputs[:] = 0.0
        forgotten.inputs[:] = 0.0
        raise RuntimeError("no")

    unchanged_after(model, lambda: model.unlearn(core_of(model)[:2], core_policy=technique), RuntimeError)
    model.unlearn(core_of(model)[:2], core_policy="keep-extractor")
    assert model.content_hash_ == table().without(core_of(table_model())[:2]).content_hash()


def test_plans_count(model):
    core, influential, neither = kinds(model, table())
    plan = model.plan(np.concatenate([core[:2], influential[:3], neither[:4]]), core_policy="retrain")
    assert (plan.requested, plan.core, plan.influential, plan.free) == (9, 2, 3, 4)
    assert (plan.guarantee, plan.trains, plan.embeds) == ("exact-retrain", len(core) - 2, 71)
    assert model.plan(neither[:2]).guarantee == "exact-untouched"
    unknown = model.plan([1, 2, int(core[0])], core_policy="keep-extractor")
    assert (unknown.unknown, unknown.core) == (2, 1)


def test_duplicates_that_stay_are_counted():
    data = table()
    features = data.inputs.copy()
    features[[5, 6, 7]] = features[4]
    twins = Dataset(features, data.labels, data.class_names, data.ids, data.subjects)
    model = fresh(HashCore(0.5, key="house"), twins).fit(twins)
    assert model.plan(data.ids[[4]], core_policy="keep-extractor").duplicates_left == 3
    assert model.plan(data.ids[[4, 5, 9]], core_policy="keep-extractor").duplicates_left == 2
    assert model.unlearn(data.ids[[4, 5]], core_policy="keep-extractor").duplicates_left == 2
    assert model.plan(data.ids[[6]], core_policy="keep-extractor").duplicates_left == 1
    assert model.plan(data.ids[[9]], core_policy="keep-extractor").duplicates_left == 0


def test_a_network_may_be_a_function(records):
    model = fresh(FullCore(), records, network=functools.partial(MLP, 5, 3, hidden=(12,))).fit(records)
    plain = fresh(FullCore(), records).fit(records)
    assert model.model_hash_ == plain.model_hash_


def test_a_function_that_no_fresh_process_finds_is_refused_before_anything_is_trained(records, monkeypatch):
    def within():
        return MLP(5, 3, hidden=(12,))

    for network, name in ((lambda: MLP(5, 3), "<lambda>"), (within, "within")):
        with pytest.raises(DataError, match=f"{name}.* my_network"):
            fresh(FullCore(), records, network=network).fit(records)
    monkeypatch.setattr(sys.modules["__main__"], "make", made_in_main, raising=False)
    monkeypatch.setattr(made_in_main, "__module__", "__main__")
    monkeypatch.setattr(made_in_main, "__qualname__", "make")
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # as in a notebook
    with pytest.raises(DataError, match="cannot import"):
        fresh(FullCore(), records, network=made_in_main).fit(records)


def made_in_main():
    return MLP(5, 3)
