"""A plan is carried out in the state that it was made for, or not at all."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.errors import MaxRRError, NotHere, Refused, Stale
from maxrr.unlearning import Action, Guarantee
from tests.unlearning.problems import core_of, everything, fresh, kinds, table, table_model

NEW = np.random.default_rng(3).normal(size=5).astype(np.float32)


@pytest.fixture
def model():
    return table_model()


def test_executing_a_plan_is_the_request_itself(model):
    core, influential, free = kinds(model, table())
    ids = [core[0], influential[0], free[0]]
    other = table_model()
    plan = model.plan(ids, core_policy="retrain")
    receipt, expected = model.execute(plan), other.unlearn(ids, core_policy="retrain")
    assert everything(model) == everything(other)
    assert (receipt.guarantee, receipt.reason) == (expected.guarantee, expected.reason) == (plan.guarantee, plan.reason)
    plan = model.plan(influential[1], inputs=NEW)
    model.execute(plan)
    other.replace(influential[1], NEW)
    assert everything(model) == everything(other)


CHANGES = {
    "forgotten": lambda model, free, plan: model.unlearn(free[3:4]),
    "forgotten before": lambda model, free, plan: model.unlearn(free[:1]),
    "replaced": lambda model, free, plan: model.replace(free[3], NEW),
    "fitted": lambda model, free, plan: model.fit(table().without(free[:1])),
    "the plan itself": lambda model, free, plan: model.execute(plan),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("verb", ["forget", "replace", "refused"])
def test_a_plan_is_stale_after_any_change(model, change, verb):
    _, influential, free = kinds(model, table())
    model.unlearn(free[:1])
    plans = {
        "forget": model.plan(free[1:3]), "replace": model.plan(influential[0], inputs=NEW - 1.0),
        "refused": model.plan([3]),
    }  # fmt: skip
    if change == "the plan itself" and verb == "refused":
        with pytest.raises(NotHere):
            model.execute(plans[verb])
        return
    CHANGES[change](model, free, plans[verb])
    before, requests = everything(model), model._fitted.requests
    with pytest.raises(Stale, match="changed: plan again"):
        model.execute(plans[verb])
    assert (everything(model), model._fitted.requests) == (before, requests)


def test_what_changes_nothing_makes_no_plan_stale(model):
    _, influential, free = kinds(model, table())
    plan = model.plan(influential[:1])
    model.predict_proba(table())
    model.plan(free[:1])
    model.bundle()
    with pytest.raises(NotHere):
        model.unlearn([3])
    assert model.execute(plan).guarantee == "exact-refit"


def test_a_copy_takes_a_plan_until_one_of_the_two_goes_on(model):
    _, influential, free = kinds(model, table())
    other = copy.deepcopy(model)
    plan = model.plan(influential[:1])
    assert copy.deepcopy(other).execute(plan).guarantee == "exact-refit"
    other.unlearn(free[:1])
    with pytest.raises(Stale):
        other.execute(plan)
    one, another = copy.deepcopy(model), copy.deepcopy(model)
    one.fit(table().without(free[:1]))
    another.fit(table().without(free[1:2]))
    with pytest.raises(Stale):
        another.execute(one.plan(influential[:1]))


def test_another_models_plan_is_stale(model):
    other = fresh(HashCore(0.5, key="house"), table()).fit(table())
    assert other.model_hash_ == model.model_hash_
    with pytest.raises(Stale, match="another model's"):
        model.execute(other.plan(table().ids[:1]))


def test_a_plan_tells_nothing_of_the_state(model):
    plan = model.plan(table().ids[:1])
    fitted = model._fitted
    told = f"{plan.to_dict()} {plan!r} {plan} {plan.state}"
    for secret in (fitted.key.hex(), model.content_hash_, model.model_hash_, *map(str, table().ids[:1])):
        assert secret not in told


def test_a_copy_of_forgotten_values_is_found_when_it_is_planned(model):
    _, influential, free = kinds(model, table())
    values = table().select(free[:1]).inputs[0]
    model.unlearn(free[:1])
    with pytest.raises(ValueError, match="exactly the values"):
        model.plan(influential[0], inputs=values)
    plan = model.plan(influential[0], inputs=values, allow_copies="twins")
    assert model._fitted.overrides == ()
    with pytest.warns(UserWarning, match="forgotten ones") as caught:
        model.execute(plan)
    assert [warning.filename for warning in caught] == [__file__]
    (override,) = model._fitted.overrides
    assert (override.records, override.reason) == (1, "twins")


def test_errors_say_what_can_be_done_and_survive_a_pickle(model):
    with pytest.raises(Refused) as caught:
        model.unlearn(core_of(model)[:1], core_policy="refuse")
    assert isinstance(caught.value, MaxRRError)
    assert isinstance(caught.value, ValueError)
    assert [plan.request.policy for plan in caught.value.plans] == ["retrain", "keep-extractor"]
    again = pickle.loads(pickle.dumps(Refused("words", ("plan",))))
    assert (str(again), again.plans) == ("words", ("plan",))


FORGED = {
    "another action": {"action": Action.refuse}, "another guarantee": {"guarantee": Guarantee.refit},
    "another count": {"core": 0}, "other conditions": {"conditions": ["none"]}, "another reason": {"reason": "none"},
}  # fmt: skip


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("policy", ["retrain", "keep-extractor"])
def test_a_plan_that_was_changed_is_not_carried_out(change, policy, model):
    plan = model.plan(core_of(model)[:1], core_policy=policy)
    before = model.model_hash_, model.content_hash_
    with pytest.raises(Stale, match="it was changed"):
        model.execute(replace(plan, **change))
    assert (model.model_hash_, model.content_hash_) == before
    assert model.execute(replace(plan, seconds=0.0)).guarantee == plan.guarantee  # an estimate binds nobody


def test_a_plan_travels_between_processes(model):
    """Nothing but the plan has to come along: what it says is decided again where it is carried out."""
    core, influential, _ = kinds(model, table())
    for made in (
        model.plan([core[0], influential[0]], core_policy="retrain"), model.plan(influential[1], inputs=NEW),
    ):  # fmt: skip
        travelled = pickle.loads(pickle.dumps(made))
        assert copy.deepcopy(model).execute(travelled).reason == made.reason
        with pytest.raises(Stale):
            model.execute(replace(travelled, heads=made.heads + 1))
