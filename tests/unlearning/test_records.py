"""What is held of the records: with their features or without, and how the two are brought together again."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest

from maxrr.data import DataError, Dataset
from maxrr.unlearning.records import HeldRecords
from tests.cases import thinned
from tests.unlearning.problems import core_of, everything, fit_again, kinds, parts, parts_of, table, table_model


def bare(records):
    """As a model on a disk has them."""
    return replace(records, inputs=None)


def without_features(model):
    """The model, with its records elsewhere."""
    model._state = replace(model._state, records=bare(model._state.records))
    return model


def shuffled(records):
    return records.select(np.random.default_rng(1).permutation(records.ids))


def changed(records, count):
    """Some features moved by their last bit."""
    features = records.inputs.copy()
    features[:count, 0] = np.nextafter(features[:count, 0], np.float32(9.0))
    return replace(records, inputs=features)


# The records come back


@pytest.mark.parametrize("strings", [False, True])
def test_records_come_back_whatever_their_order(strings):
    records = table(strings=strings)
    whole = HeldRecords.of(records)
    back = bare(whole).with_records(shuffled(records))
    assert back.inputs.tobytes() == records.inputs.tobytes()
    assert back.inputs.dtype == records.inputs.dtype
    assert back.content_hash == whole.content_hash == records.content_hash()
    assert back.retained().content_hash() == records.content_hash()


def test_forgotten_records_may_be_in_the_data_and_are_not_taken():
    """Also not looked at: their features may be others by now."""
    records = table()
    held = bare(HeldRecords.of(records)).without(np.array([0, 5, 40]))
    gone = held.ids[[0, 5, 40]]
    features = records.inputs.copy()
    features[records.rows(gone)] = 123.0
    for source in (records, records.without(gone), replace(records, inputs=features)):
        back = held.with_records(source)
        assert not back.inputs[[0, 5, 40]].any()
        assert back.retained().content_hash() == records.without(gone).content_hash() == back.content_hash


def test_extra_records_are_left_alone():
    records = table()
    some = np.sort(records.ids)[:50]
    back = bare(HeldRecords.of(records.select(some))).with_records(records)
    assert back.retained().content_hash() == records.select(some).content_hash()


def test_the_data_is_copied():
    """Erasing what is held must not reach into the caller's arrays."""
    records = table()
    before = records.inputs.tobytes()
    back = bare(HeldRecords.of(records)).with_records(records).without(np.array([3]))
    back.erase()
    assert records.inputs.tobytes() == before


def test_added_records_are_wanted_as_they_are_now():
    """They stand in the last rows, and at their ids' places in the data."""
    records = table()
    whole = HeldRecords.of(records)
    new = changed(records.select(whole.ids[[7]]), 1)
    held = bare(whole).without(np.array([7])).with_added(HeldRecords.of(new))
    assert held.inputs is None
    features = records.inputs.copy()
    features[records.rows(new.ids)] = new.inputs
    now = replace(records, inputs=features)
    back = held.with_records(now)
    assert back.inputs[-1].tobytes() == new.inputs[0].tobytes()
    assert back.retained().content_hash() == now.content_hash()
    with pytest.raises(DataError, match=r"records .* differ"):
        held.with_records(records)


# What is refused


def test_missing_records_are_counted():
    records = table()
    held = bare(HeldRecords.of(records))
    with pytest.raises(DataError, match="3 of the"):
        held.with_records(records.without(records.ids[:3]))
    held = held.without(held.rows(records.ids[:3]))
    with pytest.raises(DataError, match="1 of the"):
        held.with_records(records.without(records.ids[:4]))


@pytest.mark.parametrize("count", [1, 12])
def test_changed_records_are_counted(count):
    records = table()
    with pytest.raises(DataError, match=rf"{count} of the"):
        bare(HeldRecords.of(records)).with_records(changed(records, count))


def relabelled(records):
    labels = records.labels.copy()
    labels[4] = (labels[4] + 1) % 3
    return replace(records, labels=labels)


OTHERS = {
    "another label": (relabelled, "1 of the 80"),
    "another precision": (lambda records: replace(records, inputs=records.inputs.astype(np.float64)), "80 of the"),
    "another shape": (lambda records: replace(records, inputs=records.inputs[:, :, None]), "80 of the 80"),
    "other people": (lambda records: replace(records, subjects=records.subjects + 1), "80 of the 80"),
    "no people": (lambda records: replace(records, subjects=None), "80 of the 80"),
    "another name of a class": (lambda records: replace(records, class_names=("kind 0", "kind 1", "x")), "'x'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_other_records_are_refused(kind):
    other, words = OTHERS[kind]
    held = bare(HeldRecords.of(table()))
    with pytest.raises(DataError, match=words):
        held.with_records(other(table()))


def test_classes_may_stand_in_another_order():
    """Their names say which are meant."""
    records = table()
    held = bare(HeldRecords.of(records))
    turned = replace(records, class_names=("x", *records.class_names[::-1]), labels=3 - records.labels)
    found = held.with_records(turned).retained()
    assert found.class_names == records.class_names
    assert found.content_hash() == records.content_hash()


def test_ids_of_another_kind_are_refused():
    """Numbers that are written the same are not the same ids."""
    records = table()
    held = bare(HeldRecords.of(records))
    with pytest.raises(DataError):
        held.with_records(replace(records, ids=records.ids.astype(str)))


def test_data_of_something_else_is_refused():
    other = Dataset(np.zeros((2, 5), np.float32), [0, 1], ("kind 0", "kind 1", "kind 2"), [1, 2])
    with pytest.raises(DataError, match="80 of the"):
        bare(HeldRecords.of(table())).with_records(other)


# A model without its records


def test_without_features_they_are_asked_for():
    held = bare(HeldRecords.of(table()))
    for need in (held.retained, lambda: held.select(np.array([0]))):
        with pytest.raises(DataError, match="raw records"):
            need()


def test_without_features_the_rest_is_there():
    records = HeldRecords.of(table())
    held = bare(records)
    rows = held.rows(table().ids[:4])
    assert rows.tolist() == records.rows(table().ids[:4]).tolist()
    assert held.content_hash == records.content_hash
    assert held.twins(rows) == records.twins(rows) == 0
    assert held.of_subjects(np.array([50])).tolist() == records.of_subjects(np.array([50])).tolist()
    lighter = held.without(rows)
    held.owe(rows)
    lighter.erase()
    assert lighter.inputs is None
    assert not lighter.hashes[rows].any()
    assert lighter.content_hash == table().without(table().ids[:4]).content_hash()


def test_a_model_without_them_forgets_what_needs_none():
    """And comes to the same bytes; it plans and predicts as ever."""
    model, full = without_features(table_model()), table_model()
    core, influential, free = kinds(full, table())
    for ids in (free[:2], influential[:2], core[:1]):
        assert (
            model.plan(ids, core_policy="keep-extractor").guarantee
            == full.plan(ids, core_policy="keep-extractor").guarantee
        )
        assert (
            model.unlearn(ids, core_policy="keep-extractor").model_after
            == full.unlearn(ids, core_policy="keep-extractor").model_after
        )
    assert everything(model) == everything(full)
    assert model.predict_proba(table()).tobytes() == full.predict_proba(table()).tobytes()


def test_a_model_without_them_replaces():
    """The new record is at hand; the others are not needed."""
    model, full = without_features(table_model()), table_model()
    id_ = kinds(full, table())[1][0]
    new = table().inputs[3] + 0.5
    assert (
        model.replace(id_, new, "kind 2", core_policy="keep-extractor").model_after
        == full.replace(id_, new, "kind 2").model_after
    )
    assert everything(model) == everything(full)


def test_a_model_without_them_refuses_what_needs_them():
    model = without_features(table_model())
    core = core_of(model)
    before = everything(model)
    requests = (
        lambda: model.unlearn(core[:1], core_policy="retrain"),
        lambda: model.unlearn(core[:1], core_policy=lambda extractor, *_: extractor),
        lambda: model.replace(core[0], np.zeros(5), core_policy="retrain"),
    )
    for request in requests:
        with pytest.raises(DataError, match="raw records"):
            request()
        assert everything(model) == before


def test_with_them_back_it_trains_again():
    """As if it had had them all the time."""
    model, full = without_features(table_model()), table_model()
    core, influential, _ = kinds(full, table())
    for each in (model, full):
        each.unlearn(influential[:2])
    model._state = replace(model._state, records=model._state.records.with_records(table()))
    for each in (model, full):
        each.unlearn(core[:2], core_policy="retrain")
    assert everything(model) == everything(full)


# Replaced records in the head


def replaced(records, id_, features, label):
    rows = records.rows([id_])
    all_features, labels = records.inputs.copy(), records.labels.copy()
    all_features[rows], labels[rows] = features, label
    return replace(records, inputs=all_features, labels=labels)


@pytest.mark.parametrize(("kind", "label"), thinned(2, itertools.product(["core", "influential", "free"], [0, 1, 2])))
def test_replacing_is_a_fit_on_the_new_records(kind, label):
    """The head moves to where a fit from scratch ends, and the extractor stays."""
    model = table_model()
    ids = dict(zip(("core", "influential", "free"), kinds(model, table()), strict=True))[kind]
    extractor, records = copy.deepcopy(model.extractor_), table()
    for number, id_ in enumerate(ids[:3]):
        features = records.inputs[number] - 0.5
        records = replaced(records, id_, features, label)
        model.replace(id_, features, f"kind {label}", core_policy="keep-extractor")
        assert parts_of(model) == parts(extractor, fit_again(extractor, records), records.class_names)
        assert model.content_hash_ == records.content_hash()
    assert np.isin(ids[:3], core_of(model)).sum() == 0


def test_replacing_the_same_record_again_and_forgetting_it():
    model = table_model()
    id_ = kinds(model, table())[1][0]
    never = table_model()
    never.unlearn(id_, core_policy="keep-extractor")
    for step in range(4):
        model.replace(id_, table().inputs[step] + 1.0, f"kind {step % 3}", core_policy="keep-extractor")
    model.unlearn(id_, core_policy="keep-extractor")
    assert everything(model) == everything(never)
