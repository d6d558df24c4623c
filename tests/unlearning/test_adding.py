"""Records that are added: into the heads at once and exactly, never into the core before the next fit."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from maxrr import LinearSVM
from maxrr.core import FrequencyCore, Frozen
from maxrr.data import Dataset
from maxrr.errors import DataError, Stale
from maxrr.nets import embed
from maxrr.unlearning import Action, Bundle, MaxRR, Receipt, contradictions, replay
from tests.unlearning.problems import (
    CORES,
    core_of,
    everything,
    fit_again,
    fresh,
    joined,
    parts,
    parts_of,
    table,
    table_model,
    train_again,
)  # fmt: skip

HASH = CORES["hash"]


def new_records(count=12, label=None, first=5, seed=1):
    """Records that the table does not have."""
    rng = np.random.default_rng(seed)
    ids = np.sort(table().ids)[:count] + first
    labels = rng.integers(0, 3, count) if label is None else np.full(count, label)
    values = rng.normal(size=(count, 5)).astype(np.float32)
    return Dataset(values, labels, table().class_names, ids, 9_000 + np.arange(count) % 5)


@pytest.mark.parametrize("kind", ["hash", "full", "frequency", "frozen"])
def test_a_model_with_more_is_the_one_of_the_same_core_on_all(kind):
    model, new = table_model(kind), new_records()
    core, extractor = core_of(model), model.extractor_
    receipt = model.add(new)
    everyone = joined(table(), new)
    assert (receipt.guarantee, receipt.added, receipt.records_after) == ("exact-refit", 12, 92)
    assert core_of(model).tolist() == core.tolist()
    naive = extractor if kind == "frozen" else train_again(model, table(), core)
    assert parts_of(model) == parts(naive, fit_again(naive, everyone), everyone.class_names)
    assert model.content_hash_ == everyone.content_hash()
    waiting = [sentence for sentence in receipt.conditions if "wait" in sentence]
    assert len(waiting) == (kind in ("hash", "full"))


def test_where_none_of_them_is_core_it_is_a_fit_of_everything():
    new = new_records()
    new = new.select(new.ids[~HASH.is_core(new.ids, new.subjects)])
    model = table_model()
    receipt = model.add(new)
    assert (receipt.unconditional, receipt.conditions) == (True, [])
    never = fresh(HASH, table()).fit(joined(table(), new))
    assert everything(model) == everything(never)
    assert model.predict_proba(table()).tobytes() == never.predict_proba(table()).tobytes()


def test_a_record_that_the_rule_makes_core_waits_for_the_next_fit_whatever_is_trained_before():
    new = new_records()
    waiting = new.ids[HASH.is_core(new.ids, new.subjects)]
    model = table_model()
    core = core_of(model)
    words = f"{len(waiting)} added records wait"
    plan = model.plan(add=new)
    assert words in plan.conditions[0]
    assert model.execute(plan).conditions == plan.conditions
    # Trained again by a request, it is still not core: it would be if the request had come before the records.
    receipt = model.unlearn(core[:1], core_policy="retrain")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", False)
    assert core_of(model).tolist() == core[1:].tolist()
    assert words in receipt.conditions[0]
    # Rectified, it still waits; forgotten, it costs a move of heads.
    model.replace(waiting[0], np.full(5, 0.25, dtype=np.float32))
    assert waiting[0] in model._fitted.waiting.tolist()
    assert model.unlearn(waiting).unconditional
    everyone = joined(table(), new).without([core[0], *waiting])
    assert model.model_hash_ == fresh(HASH, table()).fit(everyone).model_hash_
    # At the next fit those that are left are core.
    model = table_model()
    model.add(new)
    model.fit(joined(table(), new))
    assert set(waiting.tolist()) <= set(core_of(model).tolist())
    assert len(model._fitted.waiting) == 0


@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
def test_any_order_and_grouping_of_requests_ends_in_the_same_bytes(policy):
    core, new = core_of(table_model()), new_records()
    others = np.setdiff1d(table().ids, core)
    values = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    groups = [new.select(new.ids[:5]), new.select(new.ids[5:])]

    def steps(model):
        yield lambda: [model.add(group) for group in groups]
        yield lambda: model.unlearn([core[0], others[0]], core_policy=policy)
        yield lambda: model.replace(core[1], values[0], core_policy=policy)
        yield lambda: model.replace(others[1], values[1])

    ends = []
    for order in [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)]:
        model = table_model()
        todo = list(steps(model))
        for step in order:
            todo[step]()
        ends.append(everything(model))
    at_once = table_model()
    todo = list(steps(at_once))
    for step in (1, 2, 3):
        todo[step]()
    at_once.add(new.select(new.ids[::-1]))
    assert ends[0] == ends[1] == ends[2] == everything(at_once)


def test_a_plan_is_for_one_state_and_changes_nothing():
    model, new = table_model(), new_records()
    before = everything(model)
    plan = model.plan(add=new)
    assert everything(model) == before
    assert (plan.action, plan.requested, plan.added, plan.embeds, plan.heads) == (Action.move, 0, 12, 12, 3)
    forged = replace(plan, request=replace(plan.request, added=plan.request.added.select(plan.request.added.ids[:3])))
    with pytest.raises(Stale):
        model.execute(forged)
    model.execute(plan)
    with pytest.raises(Stale, match="added"):
        model.execute(plan)


# What is refused


def changed(**changes):
    return replace(new_records(2), **changes)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda: new_records(2).select([]), "no records to add"),
        (lambda: changed(inputs=np.zeros((2, 4))), r"shape \(4,\)"),
        (lambda: changed(inputs=np.zeros((2, 5), dtype=np.uint8)), "uint8"),
        (lambda: changed(ids=np.array(["a", "b"])), "record ids"),
        (lambda: changed(subjects=np.array(["a", "b"])), "subject ids"),
        (lambda: changed(subjects=None), "subjects"),
        (lambda: changed(class_names=("kind 0", "kind 1", "cat"), labels=[0, 2]), "'cat'"),
        (lambda: changed(ids=table().ids[:2]), "2 of the record ids"),
        (lambda: changed(inputs=np.full((2, 5), 1e300)), "would change their numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(given, why):
    model = table_model()
    before = everything(model)
    with pytest.raises(DataError, match=why):
        model.add(given())
    assert (everything(model), model._fitted.requests) == (before, 0)


def test_arrays_need_ids_and_labels():
    model, new = table_model(), new_records(2)
    with pytest.raises(ValueError, match="of their own"):
        model.add(new.inputs, [0, 1])
    with pytest.raises(ValueError, match="labels y"):
        model.add(new.inputs, ids=new.ids)


def test_columns_may_stand_in_another_order_but_not_be_others():
    named = replace(table(), columns=tuple("abcde"))
    model, other = (fresh(Frozen(), table()).fit(named) for _ in range(2))
    new = new_records(3)
    model.add(replace(new, inputs=new.inputs[:, ::-1], columns=tuple("edcba")))
    other.add(new)
    assert everything(model) == everything(other)
    with pytest.raises(DataError, match="other columns"):
        model.add(replace(new_records(3, first=6), columns=tuple("abcdx")))


def test_what_was_forgotten_does_not_come_back():
    model = table_model()
    gone = np.setdiff1d(table().ids, core_of(model))[:2]
    model.unlearn(gone)
    back = table().select(gone)
    with pytest.raises(DataError, match="2 of the"):
        model.add(back)
    copies = replace(back, ids=gone + 5)
    with pytest.raises(DataError, match="exactly the values"):
        model.add(copies)
    with pytest.warns(UserWarning, match="under other ids"):
        receipt = model.add(copies, allow_copies="another person with the same answers")
    assert receipt.added == 2
    assert [(entry.records, entry.reason) for entry in model._fitted.overrides] == [
        (2, "another person with the same answers")
    ]


# Receipts


@pytest.mark.parametrize("kind", ["hash", "frequency"])
def test_an_addition_is_replayed(kind, here, tmp_path):
    model, new = table_model(kind), new_records()
    receipt = model.add(new)
    everyone = joined(table(), new)
    model.bundle().save(tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle")
    found = replay(Receipt.from_json(receipt.to_json()), bundle, everyone)
    assert (found.outcome, found.made_again) == ("identical", "extractor and heads")
    assert bundle.conditions == receipt.conditions
    assert list(bundle.waiting) == model._fitted.waiting.tolist()
    later = model.unlearn(core_of(model)[:1], core_policy="retrain")
    less = everyone.without(table().ids[~np.isin(table().ids, model._fitted.records.ids)])
    assert replay(later, model.bundle(), less).outcome == "identical"
    hidden = replace(bundle, waiting=bundle.waiting[:0])
    if kind == "hash":
        assert "its rule" in " ".join(replay(receipt, hidden, everyone).contradictions)


def test_a_receipt_of_an_addition_names_nobody_and_contradicts_itself_nowhere():
    model, new = table_model(), new_records(1)
    receipt = model.add(new)
    assert not list(contradictions(receipt))
    assert str(new.ids[0]) not in receipt.to_json()
    wrong = {
        "added": 2, "requested": 1, "guarantee": "exact-untouched", "commitment_after": receipt.commitment_before,
        "records_after": 80,
    }  # fmt: skip
    for name, value in wrong.items():
        assert list(contradictions(replace(receipt, **{name: value}))), name
    assert '"added"' not in table_model().unlearn(table().ids[:1], core_policy="keep-extractor").to_json()


def test_a_copy_of_the_model_is_as_late_as_the_model():
    model = table_model()
    model.add(new_records())
    assert copy.deepcopy(model)._fitted.waiting.tolist() == model._fitted.waiting.tolist()


# Every day


def days(model, count, arriving, leaving):
    """Each day some records come and others go; all that is left, and a fit of it with the same core."""
    rng = np.random.default_rng(2)
    everyone, core = table(), core_of(model)
    others = np.setdiff1d(everyone.ids, core)
    for day in range(count):
        like = rng.integers(0, 80, arriving)
        values = table().inputs[like] + rng.normal(scale=0.7, size=(arriving, 5))
        new = Dataset(
            values.astype(np.float32), table().labels[like], everyone.class_names,
            10_000 * (day + 1) + np.arange(arriving), np.full(arriving, day),
        )  # fmt: skip
        model.add(new)
        everyone = joined(everyone, new)
        gone = rng.choice(np.concatenate([others, new.ids]), leaving, replace=False)
        model.unlearn(gone)
        everyone = everyone.without(gone)
        others = np.setdiff1d(np.concatenate([others, new.ids]), gone)
        assert len(model.predict(everyone.inputs[:3])) == 3
    return everyone, train_again(model, table(), core)


def check_days(count, arriving, leaving):
    model = fresh(FrequencyCore(40, runs=2), table()).fit(table())
    everyone, extractor = days(model, count, arriving, leaving)
    assert len(everyone) == 80 + count * (arriving - leaving)
    assert parts_of(model) == parts(extractor, fit_again(extractor, everyone), everyone.class_names)
    assert model.content_hash_ == everyone.content_hash()


def test_every_day_some_come_and_some_go():
    check_days(12, 30, 3)


@pytest.mark.long
def test_a_hundred_days():
    check_days(100, 500, 20)


# With weights, and without a network


def weighed(data, seed):
    return replace(data, weights=np.random.default_rng(seed).uniform(0.5, 2.0, len(data)))


def test_weights_count_as_in_a_fit_of_everything():
    old, new = weighed(table(), 1), weighed(new_records(), 2)
    model = fresh(Frozen(), table(), class_weight={"kind 1": 3.0}).fit(old)
    names = np.array(new.class_names)[new.labels]
    model.add(new.inputs, names, ids=new.ids, subjects=new.subjects, sample_weight=new.weights)
    everyone = replace(joined(old, new), weights=np.concatenate([old.weights, new.weights]))
    never = fresh(Frozen(), table(), class_weight={"kind 1": 3.0}).fit(everyone)
    assert everything(model) == everything(never)
    with pytest.raises(DataError, match="weights"):
        model.add(new_records(2, first=6))


def test_embeddings_are_added_without_a_network():
    old, new = table(), new_records()
    model = MaxRR.on_features().fit(old)
    receipt = model.add(new)
    assert model.model_hash_ == MaxRR.on_features().fit(joined(old, new)).model_hash_
    assert receipt.bytes_claim == "identical"
    model.unlearn(new.ids[:3])
    model.refit()
    assert model.content_hash_ == joined(old, new).without(new.ids[:3]).content_hash()


def test_records_of_several_inputs_are_added_by_name():
    data, new = table(), new_records(4)

    def several(inputs):
        return {"left": inputs[:, :3], "right": inputs[:, 3:].astype(np.float64)}

    def fit(records):
        model = MaxRR(Sides(), CORES["full"], epochs=2, seed=3, device="cpu")
        return model.fit(several(records.inputs), records.labels, ids=records.ids)

    model = fit(data)
    extractor = model.extractor_
    receipt = model.add(several(new.inputs), new.labels, ids=new.ids)
    assert (receipt.added, receipt.guarantee) == (4, "exact-refit")
    both = joined(data, new)
    features = embed(extractor, Dataset(several(both.inputs), both.labels, both.class_names, both.ids), device="cpu")
    assert model.heads_.coef_.tobytes() == LinearSVM().fit(features, both.labels).coef_.tobytes()
    with pytest.raises(DataError, match="not 'left'"):
        model.add({"left": new.inputs[:, :3]}, new.labels, ids=new.ids + 1)


class Sides(nn.Module):
    """A network with two inputs."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.last = nn.Linear(3, 6), nn.Linear(2, 6), nn.Linear(6, 3)

    def forward(self, left, right):
        return self.last(torch.tanh(self.left(left) + self.right(right.float())))


@pytest.mark.parametrize(("held", "given"), [(np.float16, np.float32), (np.float32, np.float64)])
def test_numbers_that_the_models_type_does_not_hold_are_refused(held, given):
    """They would be other numbers, and a replay with those that were given would be refused."""
    rng, labels = np.random.default_rng(0), np.arange(60) % 2
    model = MaxRR.on_features().fit(
        (rng.normal(size=(60, 4)) + labels[:, None]).astype(held), labels, ids=np.arange(60)
    )
    more = rng.normal(size=(3, 4)).astype(given)
    with pytest.raises(DataError, match=f"yourself, with astype.'{held.__name__}'"):
        model.add(more, [0, 1, 0], ids=[60, 61, 62])
    assert model.add(more.astype(held).astype(given), [0, 1, 0], ids=[60, 61, 62]).records_after == 63
    with pytest.raises(DataError, match=f"yourself, with astype.'{held.__name__}'"):
        model.replace(0, more[0])
    with pytest.raises(DataError, match="change their numbers"):
        model.plan(0, inputs=np.full(4, 2**53 + 1))  # beside a float64, NumPy rounds it before it compares
    for wrong in (["0.5"] * 4, [0.5j] * 4, [None] * 4):
        with pytest.raises(DataError, match="bring the same"):
            model.plan(0, inputs=wrong)
    with pytest.raises(DataError, match="NaN"):
        model.plan(0, inputs=np.full(4, np.nan, dtype=given))
    assert model.replace(0, more[0].astype(held).astype(given)).records_after == 63
