"""What other implementations of unlearning fell into, one test each."""

import copy
import itertools
import json
import re

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.nets import embed
from maxrr.unlearning.tombstones import id_hmac
from tests.cases import some, thinned
from tests.unlearning.problems import (
    CORES,
    commitments,
    core_of,
    digits,
    fit_again,
    fitted,
    fresh,
    hash_of,
    kinds,
    parts,
    parts_of,
    probe,
    table,
    table_model,
    train_again,
)  # fmt: skip
from tests.unlearning.search import holds_bytes, holds_ids, reachable

POLICIES = [{"core_policy": "keep-extractor"}, {"core_policy": "retrain"}]


def mixture(model, dataset, each=3):
    """Some core records, some influential ones and some that are neither."""
    return np.concatenate([ids[:each] for ids in kinds(model, dataset)])


def test_every_record_counts_so_no_deletion_finds_an_old_result(hashed):
    """A cache whose key left records out would answer some of these with the model that it has."""
    core = core_of(hashed)
    for id_ in core[[0, len(core) // 2, -1]]:
        model = copy.deepcopy(hashed)
        model.unlearn([id_], core_policy="retrain")
        extractor = train_again(model, digits(), np.setdiff1d(core, [id_]))
        assert parts_of(model)[1] == parts(extractor, model.heads_, digits().class_names)[1]
        assert model.model_hash_ != hashed.model_hash_


def test_a_second_request_does_not_bring_back_what_the_first_forgot(hashed):
    core, first, second = core_of(hashed), core_of(hashed)[:3], core_of(hashed)[3:6]
    hashed.unlearn(first, core_policy="retrain")
    hashed.unlearn(second, core_policy="retrain")
    retained = digits().without(np.concatenate([first, second]))
    extractor = train_again(hashed, retained, np.setdiff1d(core, np.concatenate([first, second])))
    assert parts_of(hashed) == parts(extractor, fit_again(extractor, retained), retained.class_names)


@pytest.mark.parametrize("kind", some(1, ["hash", "full", "frozen"]))  # the oracle's tests have all of them
def test_probabilities_are_those_of_a_model_that_never_saw_the_records(kind):
    """They are fitted to the records, so they must be fitted again, even where the head stays as it is."""
    model = copy.deepcopy(fitted(kind))
    before = model.predict_proba(probe())
    found = kinds(model, digits())
    ids = np.concatenate([found[2][:20], found[0][:20]])
    model.unlearn(ids, core_policy="retrain")
    never = fresh(CORES[kind], digits()).fit(digits().without(ids))
    assert model.predict_proba(probe()).tobytes() == never.predict_proba(probe()).tobytes()
    assert model.predict_proba(probe()).tobytes() != before.tobytes()


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        pytest.param(kind, words, id="-".join((kind, *words.values())))
        for kind, words in thinned(2, itertools.product(CORES, POLICIES))
    ],
)
def test_nothing_in_the_object_knows_the_records(kind, request_):
    """Ids, pixels, features, hashes of the records, and which row was how influential."""
    model = copy.deepcopy(fitted(kind))
    ids = mixture(model, digits())
    model.predict_proba(probe())
    gone = digits().select(ids)
    old = embed(model.extractor_, gone, device="cpu")
    wide = np.asarray(old, dtype=np.float64)
    pixels = [record.tobytes() for record in gone.inputs]
    secrets = pixels + [row.tobytes() for array in (old, wide) for row in array]
    secrets += [digest.tobytes() for digest in gone.record_hashes()]
    before = copy.deepcopy(model)
    assert len(holds_bytes(before, secrets)) == 3 * len(ids)  # the search finds them where they are
    assert holds_ids(before, ids.tolist()) == sorted(ids.tolist())
    model.unlearn(ids, **request_)
    model.predict_proba(probe())
    new = embed(model.extractor_, gone, device="cpu")
    secrets += [row.tobytes() for array in (new, np.asarray(new, dtype=np.float64)) for row in array]
    assert holds_ids(model, ids.tolist()) == []
    assert holds_bytes(model, secrets) == []


def test_nor_after_rectifying(hashed):
    ids = mixture(hashed, digits(), each=1)
    gone = digits().select(ids)
    for id_ in ids:
        hashed.replace(id_, 255 - digits().select([id_]).inputs[0], core_policy="keep-extractor")
    assert holds_bytes(hashed, [record.tobytes() for record in gone.inputs]) == []
    assert holds_bytes(hashed, [digest.tobytes() for digest in gone.record_hashes()]) == []


def test_nor_when_ids_are_strings():
    data = table(strings=True)
    model = fresh(HashCore(0.5, key="k"), data).fit(data)
    ids = mixture(model, data)
    assert len(holds_ids(model, ids.tolist())) == len(ids)
    model.unlearn(ids, core_policy="keep-extractor")
    assert holds_ids(model, ids.tolist()) == []


def test_multipliers_and_margins_of_forgotten_records_are_gone(hashed):
    ids = mixture(hashed, digits())
    rows = hashed._fitted.records.rows(ids)
    hashed.unlearn(ids, core_policy="keep-extractor")
    head = hashed.heads_
    assert not np.isin(rows, head.support_).any()
    assert not np.isin(rows, head._rows).any()
    for found in reachable(head):
        if isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == (len(digits()),):
            assert not np.isfinite(found[rows][~np.isin(found[rows], (0.0, 1.0))]).any()  # 1 is the weight of no record


def test_the_caller_keeps_his_records_and_the_model_a_copy(records):
    """What the model erases are its own; what the caller changes later does not reach the model."""
    before = records.content_hash()
    model = fresh(HashCore(0.5, key="house"), records).fit(records)
    assert parts_of(model) == parts_of(table_model())
    model.unlearn(records.ids[:10], core_policy="keep-extractor")
    assert records.content_hash() == before
    records.inputs[:] = 0.0
    assert model.content_hash_ == table().without(table().ids[:10]).content_hash()


def test_a_receipt_has_the_hashes_of_both_models(hashed):
    before = hashed.model_hash_
    ids = kinds(hashed, digits())[1][:2]
    receipt = hashed.unlearn(ids, core_policy="keep-extractor")
    after = hash_of(hashed.extractor_, hashed.heads_, digits().class_names)
    found = [commitments(hashed, hash_, digits())[0] for hash_ in (before, after)]
    assert [receipt.model_before, receipt.model_after] == found
    assert receipt.model_before != receipt.model_after


def test_the_hash_is_over_every_part_of_the_model(hashed):
    names = digits().class_names
    extractor, head = hashed.extractor_, hashed.heads_
    found = {hashed.model_hash_}
    state = extractor.state_dict()
    for name in state:
        other = copy.deepcopy(extractor)
        values = other.state_dict()[name].view(-1)
        values[-1] += 1e-3
        found.add(hash_of(other, head, names))
    for part in ("w", "b"):
        other = copy.deepcopy(head)
        solved = other._state.solution.heads[-1]
        changed = solved.w + np.eye(len(solved.w))[-1] * 1e-12 if part == "w" else np.nextafter(solved.b, np.inf)
        object.__setattr__(solved, part, changed)
        found.add(hash_of(extractor, other, names))
    found.add(hash_of(extractor, head, (*names[:-1], "another name")))
    assert len(found) == 1 + len(state) + 2 + 1


def test_the_core_is_never_printed(model):
    """That a record is core says something about it."""
    ids = digits().ids[:2]
    shown = [
        repr(model),
        str(model.plan(ids, core_policy="keep-extractor")),
        repr(model.plan(ids, core_policy="keep-extractor")),
        repr(model.core_),
        repr(model.bundle()),
    ]
    shown += [repr(model._state), model._repr_html_() if hasattr(model, "_repr_html_") else ""]
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    shown += [receipt.to_json(), repr(receipt), str(receipt), str(model.bundle()), repr(model)]
    known = {str(id_) for id_ in digits().ids.tolist()}
    for text in shown:
        assert not known.intersection(re.findall(r"(?<![\da-f])\d+(?![\da-f])", text))  # hashes have digits, too


def test_the_key_is_never_shown(model):
    key = model._fitted.key
    bundle = model.bundle()
    receipt = model.unlearn(digits().ids[:2], core_policy="keep-extractor")
    for text in (repr(model), str(model), repr(bundle), receipt.to_json(), repr(model.core_)):
        assert repr(key) not in text
        assert key.hex() not in text
    assert holds_bytes(receipt, [key, key.hex().encode()]) == []


def test_receipts_name_records_by_keyed_hashes_alone(hashed):
    ids = mixture(hashed, digits())
    receipt = hashed.unlearn(ids, core_policy="keep-extractor")
    assert receipt.tombstones == sorted(id_hmac(hashed._fitted.key, int(id_)).hex() for id_ in ids)
    assert holds_ids(receipt, ids.tolist()) == []
    assert holds_ids(json.loads(receipt.to_json()), ids.tolist()) == []
    other = fresh(CORES["hash"], digits()).fit(digits())
    assert not set(other.unlearn(ids, core_policy="keep-extractor").tombstones) & set(receipt.tombstones)


def test_a_key_is_drawn_for_each_model(records):
    one, two = (fresh(HashCore(0.5, key="k"), records).fit(records) for _ in range(2))
    ids = records.ids[:3]
    assert not set(one.unlearn(ids, core_policy="keep-extractor").tombstones) & set(
        two.unlearn(ids, core_policy="keep-extractor").tombstones
    )
    assert parts_of(one) == parts_of(two)


def test_the_choice_by_ranking_is_said_on_the_receipt():
    """The ranking saw every record: 'exact' holds given the core."""
    model = copy.deepcopy(fitted("frequency"))
    receipt = model.unlearn(kinds(model, digits())[1][:1])
    assert receipt.guarantee == "exact-refit"
    assert not receipt.unconditional
    assert receipt.core_depended_on == model.core_.depended_on
    assert "that core" in receipt.core_depended_on
    assert receipt.core_details["runs"] == 2


def test_what_was_recorded_counts_not_what_was_set_since(records):
    """Parameters changed after `fit` are for the next one."""
    changed, kept = table_model(), table_model()
    changed.set_params(seed=77, epochs=1, C=3.0, lr=0.1, batch_size=7)
    ids = core_of(kept)[:2]
    receipts = [model.unlearn(ids, core_policy="retrain") for model in (changed, kept)]
    assert parts_of(changed) == parts_of(kept)
    assert [receipt.seed for receipt in receipts] == [kept.seed] * 2
    assert receipts[0].recipe == receipts[1].recipe
    assert receipts[0].C == receipts[1].C
    assert changed.bundle().blueprint.seed == kept.seed
    assert changed.bundle().blueprint.recipe == kept.bundle().blueprint.recipe
