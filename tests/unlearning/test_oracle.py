"""Every guarantee with every core against the naive oracle: train again without the records, compare bytes.

The core that was recorded is taken as given: that is all the paper claims for a core chosen by frequency.
"""

import copy
import itertools

import numpy as np
import pytest

from maxrr.core.choice import Choice
from maxrr.nets import embed
from maxrr.svm import fit_platt
from maxrr.unlearning import Guarantee
from tests.cases import thinned
from tests.unlearning.problems import (
    CORES,
    EVERY_CORE,
    commitments,
    core_of,
    digits,
    fit_again,
    fitted,
    fresh,
    kinds,
    parts,
    parts_of,
    probe,
    train_again,
)  # fmt: skip

NOT_CORE = ("frequency", "hash", "frozen")
IN_SHARDS = pytest.param("hash in shards", marks=pytest.mark.long)  # on a small table in test_shards
WITH_CORE = ("frequency", "hash", "full", IN_SHARDS)


class Given:
    """A core that somebody has chosen already."""

    def __init__(self, ids):
        self.ids = ids

    def choose(self, network, dataset, **_):
        return Choice(np.sort(self.ids), False, "given", {"kind": "given", "k": len(self.ids)})


def take(kind, what, count):
    """Some ids of one kind of records, and a copy of the model."""
    model = copy.deepcopy(fitted(kind))
    found = dict(zip(("core", "influential", "free"), kinds(model, digits()), strict=True))[what]
    assert len(found) >= count, (kind, what, len(found))
    return model, np.random.default_rng(1).choice(found, count, replace=False)


def oracle(model, forgotten, core_ids, extractor=None):
    """What the model shall be, from the records that it retains."""
    retained = digits().without(forgotten)
    if extractor is None:
        extractor = train_again(model, retained, np.setdiff1d(core_ids, forgotten))
    return parts(extractor, fit_again(extractor, retained), retained.class_names)


def check(model, receipt, forgotten, guarantee, expected, before):
    assert receipt.guarantee == guarantee == Guarantee(receipt.guarantee).value
    assert parts_of(model) == expected
    assert model.model_hash_ == expected[0]
    assert model.content_hash_ == digits().without(forgotten).content_hash()
    assert (receipt.model_before, receipt.commitment_before) == commitments(model, before, digits())
    assert (receipt.model_after, receipt.commitment_after) == commitments(
        model, expected[0], digits().without(forgotten)
    )
    assert (receipt.records_before, receipt.records_after) == (300, 300 - len(forgotten))
    assert receipt.bytes_claim == ("identical" if guarantee.startswith("exact") else "nothing")
    assert receipt.core + receipt.influential + receipt.free == receipt.requested == len(forgotten)


def frozen_extractor_of(model, kind):
    """The extractor is given if it was not trained here."""
    return model.network if kind == "frozen" else None


@pytest.mark.parametrize("kind", [*CORES, IN_SHARDS])
def test_a_fit_is_the_core_then_the_extractor_then_the_head(kind):
    model = copy.deepcopy(fitted(kind))
    assert parts_of(model) == oracle(model, [], core_of(model), frozen_extractor_of(model, kind))
    assert model.content_hash_ == digits().content_hash()


@pytest.mark.parametrize("kind", thinned(2, NOT_CORE))
def test_exact_untouched(kind):
    model, ids = take(kind, "free", 12)
    core, before = core_of(model), model.model_hash_
    expected = oracle(model, ids, core, frozen_extractor_of(model, kind))
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    check(model, receipt, ids, "exact-untouched", expected, before)
    assert receipt.model_before == receipt.model_after


@pytest.mark.parametrize(
    ("kind", "policy"), thinned(2, itertools.product(NOT_CORE, ["keep-extractor", "retrain", "refuse"]))
)
def test_exact_refit(kind, policy):
    model, ids = take(kind, "influential", 3)
    core, before = core_of(model), model.model_hash_
    expected = oracle(model, ids, core, frozen_extractor_of(model, kind))
    receipt = model.unlearn(ids, core_policy=policy)
    check(model, receipt, ids, "exact-refit", expected, before)
    assert receipt.model_before != receipt.model_after


@pytest.mark.parametrize("kind", thinned(2, WITH_CORE))
def test_approximate_refit_moves_the_head_alone(kind):
    model, ids = take(kind, "core", 5)
    before = model.model_hash_
    extractor = copy.deepcopy(model.extractor_)
    expected = oracle(model, ids, core_of(model), extractor)
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    check(model, receipt, ids, "approximate-refit", expected, before)
    assert receipt.core_left_in_extractor == receipt.core == 5
    assert not np.isin(ids, core_of(model)).any()


@pytest.mark.parametrize("kind", WITH_CORE)
def test_exact_retrain(kind):
    model, ids = take(kind, "core", 5)
    core, before = core_of(model), model.model_hash_
    others = np.setdiff1d(digits().ids, core)[:3]
    ids = np.concatenate([ids, others])
    expected = oracle(model, ids, core)
    receipt = model.unlearn(ids, core_policy="retrain")
    check(model, receipt, ids, "exact-retrain", expected, before)
    assert receipt.core_left_in_extractor == 0
    assert receipt.unconditional == (kind != "frequency")
    assert np.array_equal(core_of(model), np.setdiff1d(core, ids))


@pytest.mark.parametrize("kind", ["hash", "full", "frozen", IN_SHARDS])
def test_where_the_core_depends_on_no_other_record_it_is_the_model_that_never_saw_them(kind):
    """Fitted anew, core and all: what unconditional means."""
    model, ids = take(kind, "core" if kind != "frozen" else "influential", 6)
    receipt = model.unlearn(ids, core_policy="retrain")
    never = fresh(EVERY_CORE[kind], digits()).fit(digits().without(ids))
    assert receipt.unconditional == (kind != "frozen")
    assert parts_of(model) == parts_of(never)
    assert model.content_hash_ == never.content_hash_
    assert model.predict_proba(probe()).tobytes() == never.predict_proba(probe()).tobytes()


def test_a_frequency_core_is_exact_given_the_core():
    model, ids = take("frequency", "core", 6)
    core = core_of(model)
    receipt = model.unlearn(ids, core_policy="retrain")
    given = fresh(Given(np.setdiff1d(core, ids)), digits()).fit(digits().without(ids))
    assert parts_of(model) == parts_of(given)
    assert "that core" in receipt.core_depended_on


def test_after_head_then_retrain_nothing_is_left_in_the_extractor():
    """The second request trains without the records of the first."""
    model, ids = take("hash", "core", 8)
    core = core_of(model)
    model.unlearn(ids[:4], core_policy="keep-extractor")
    receipt = model.unlearn(ids[4:], core_policy="retrain")
    assert receipt.core_left_in_extractor == 0
    assert receipt.unconditional
    assert parts_of(model) == oracle(model, ids, core)


def test_probabilities_are_those_of_platt_on_the_retained_records(model):
    ids = digits().ids[:9]
    model.predict_proba(probe())
    model.unlearn(ids, core_policy="keep-extractor")
    retained = digits().without(ids)
    features = embed(model.extractor_, retained, device="cpu")
    scaling = fit_platt(model.heads_.decision_function(features), retained.labels, model.heads_.classes_)
    expected = scaling.probabilities(model.decision_function(probe()))
    assert np.allclose(model.predict_proba(probe()), expected, rtol=0.0, atol=1e-12)
