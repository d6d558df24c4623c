"""Workspaces of models that a function of the caller's own trains, that were adopted, or that saw what they say."""

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.errors import DataError, TrainingMissing
from maxrr.nets import Recipe
from maxrr.nets.naming import NamedNetwork
from maxrr.unlearning import Bundle, MaxRR, Outcome, replay
from maxrr.unlearning.conditions import ADOPTED
from maxrr.workspace import Workspace, overview
from tests.nets.test_naming import of_records
from tests.unlearning import trainings
from tests.unlearning.problems import kinds, table
from tests.unlearning.test_own_training import model_by
from tests.unlearning.test_trained_elsewhere import IDS, adopted
from tests.workspace.problems import given


def test_the_function_is_given_by_whoever_opens(here, tmp_path):
    records = table()
    Workspace.create(tmp_path / "ws", model_by(), records).close()
    with Workspace.open(tmp_path / "ws") as workspace:
        core, influential, _ = kinds(workspace.model, records)
        workspace.model.unlearn(influential[:1])
        assert workspace.model.predict(records).shape == (len(records),)
        with pytest.raises(TrainingMissing, match=r"trainings:by_adamw"):
            workspace.check_code(training=True)
        with pytest.raises(DataError, match="MAXRR_TRAIN"):
            given(workspace, records).model.unlearn(core[:2], core_policy="retrain")
        with pytest.raises(DataError, match="MAXRR_TRAIN"):
            workspace.model.fit(records.without(influential[:1]))
    retained = records.without([*influential[:1], *core[:2]])
    with Workspace.open(tmp_path / "ws", train=trainings.by_adamw) as workspace:
        workspace.check_code(training=True)
        receipt = given(workspace, records).model.unlearn(core[:2], core_policy="retrain")
        assert workspace.model.model_hash_ == model_by().fit(retained).model_hash_
        assert replay(receipt, workspace.model, records).outcome == Outcome.identical
        assert ":by_adamw" in workspace.status().conditions[0]
        workspace.model.fit(retained)
        assert workspace.model.model_hash_ == model_by().fit(retained).model_hash_
        present = workspace.status()
    assert overview(tmp_path / "ws").status == present


def test_a_recipe_is_kept(tmp_path):
    recipe = Recipe(3, 16, optimiser="sgd", schedule="cosine")
    records = table()
    Workspace.create(tmp_path / "ws", model_by(recipe), records).close()
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model.train == recipe
        core, _, _ = kinds(workspace.model, records)
        given(workspace, records).model.unlearn(core[:2], core_policy="retrain")
        assert workspace.model.model_hash_ == model_by(recipe).fit(records.without(core[:2])).model_hash_


def test_an_adopted_extractor_until_it_is_trained_here(here, tmp_path):
    records = table()
    Workspace.create(tmp_path / "ws", adopted(IDS), records).close()
    with Workspace.open(tmp_path / "ws", train=trainings.by_adamw) as workspace:
        assert ADOPTED in workspace.status().conditions
        free = np.setdiff1d(records.ids, IDS)
        receipt = workspace.model.unlearn(free[:1])
        assert replay(receipt, workspace.model, records).outcome == Outcome.identical
        given(workspace, records).model.unlearn(IDS[:2], core_policy="retrain")
    with Workspace.open(tmp_path / "ws") as workspace:
        assert ADOPTED not in workspace.status().conditions
        in_memory = adopted(IDS).fit(records)
        in_memory.unlearn([*free[:1], *IDS[:2]], core_policy="retrain")
        assert workspace.model.model_hash_ == in_memory.model_hash_


@pytest.mark.parametrize("change", [{"function": 3}, {"run_twice": True}, {"mood": "good"}])
def test_facts_that_are_no_function(change):
    from maxrr.nets.training_function import OwnTraining, training_of

    facts = OwnTraining.by(trainings.by_adamw).facts
    assert training_of(facts) == OwnTraining.by(trainings.by_adamw)
    with pytest.raises(ValueError, match="no training function"):
        training_of(facts | change)


def test_an_adopted_core_by_a_rule_goes_on_by_it(tmp_path):
    records = table()
    rule = HashCore(0.5, key="house")
    core = records.ids[rule.is_core(records.ids, records.subjects)]
    Workspace.create(tmp_path / "ws", adopted(core, rule), records).close()
    with Workspace.open(tmp_path / "ws", train=trainings.by_adamw) as workspace:
        assert workspace.model.core == rule


@pytest.mark.usefixtures("here")
def test_a_model_and_the_shell_take_the_same_functions(tmp_path):
    records = table()
    named = NamedNetwork("tests.nets.test_naming:of_records", (records.shape, len(records.class_names)))
    core, settings = HashCore(0.5, key="k"), {"epochs": 2, "device": "cpu"}
    with Workspace.create(tmp_path / "ws", MaxRR(of_records, core, **settings), records) as workspace:
        assert workspace.model.model_hash_ == MaxRR(named, core, **settings).fit(records).model_hash_
        receipt = given(workspace, records).model.unlearn(records.ids[:2], core_policy="retrain")
        workspace.model.bundle().save(tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle", network=of_records)
    assert replay(receipt, bundle, records).outcome == "identical"
    with Workspace.open(tmp_path / "ws", network=of_records) as workspace:
        assert len(workspace.model.predict(records)) == len(records)
