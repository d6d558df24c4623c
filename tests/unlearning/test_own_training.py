"""Training by a function of one's own: the naive oracle, what is recorded, and what is claimed."""

import copy
import importlib
import random
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore
from maxrr.data import DataError
from maxrr.errors import NoNetworkReturned, TrainingMissing
from maxrr.files import sha256_of
from maxrr.nets import MLP, Recipe, split
from maxrr.nets.initial_weights import DrawnAnewWarning
from maxrr.nets.seeding import all_drawing, begin
from maxrr.nets.training_function import NotRepeatableWarning
from maxrr.unlearning import Bundle, MaxRR, Outcome, Receipt, contradictions, replay
from maxrr.unlearning.blueprint import relabel
from maxrr.unlearning.receipts import RETRAINED
from tests.unlearning import trainings
from tests.unlearning.problems import SEED, core_of, fit_again, kinds, parts, parts_of, table

CORE = HashCore(0.5, key="house")


def model_by(train=trainings.by_adamw, core=CORE, **settings):
    return MaxRR(MLP(5, 3, hidden=(12,)), core, C=0.7, seed=SEED, device="cpu", train=train, **settings)


def trained_alone(network, records, core_ids, train=trainings.by_adamw):
    """The oracle: the function on these core records alone."""
    core = relabel(records.select(np.sort(core_ids)))
    with all_drawing(SEED):
        return split(train(begin(network, SEED), core, SEED, torch.device("cpu")))[0]


def expected(model, records, core_ids):
    extractor = trained_alone(model.network, records, core_ids)
    return parts(extractor, fit_again(extractor, records), records.class_names)


def test_fit_and_forgetting_are_those_of_the_function_on_the_core_alone():
    records = table()
    model = model_by().fit(records)
    core = core_of(model)
    assert parts_of(model) == expected(model, records, core)
    _, influential, _ = kinds(model, records)
    gone = [*core[:3], *influential[:2]]
    receipt = model.unlearn(gone, core_policy="retrain")
    retained = records.without(gone)
    assert parts_of(model) == expected(model, retained, np.setdiff1d(core, gone))
    assert parts_of(model) == parts_of(model_by().fit(retained))
    assert receipt.guarantee == "exact-retrain"


def test_what_is_recorded_and_claimed():
    records = table()
    model = model_by().fit(records)
    core = core_of(model)
    _, influential, free = kinds(model, records)
    facts = {
        "function": "tests.unlearning.trainings:by_adamw", "source_sha256": sha256_of(trainings.__file__),
        "source_covers": "the module of the function, and nothing that it imports", "run_twice": "same",
    }  # fmt: skip
    word = (
        "the extractor was trained by tests.unlearning.trainings:by_adamw, the operator's own code: that it used "
        "nothing but the records it was given is the operator's word"
    )
    for ids, guarantee, claim in (
        (free[:1], "exact-untouched", "identical"), (influential[:1], "exact-refit", "identical"),
        (core[:1], "exact-retrain", RETRAINED),
    ):  # fmt: skip
        plan = model.plan(ids, core_policy="retrain")
        receipt = Receipt.from_json(model.execute(plan).to_json())
        assert (receipt.guarantee, receipt.bytes_claim, receipt.recipe) == (guarantee, claim, facts)
        assert plan.conditions == receipt.conditions == [word]
        assert list(contradictions(receipt)) == []
    forged = replace(receipt, bytes_claim="identical")
    assert any("retrained from scratch" in wrong for wrong in contradictions(forged))


def test_others_draw_as_before():
    model = model_by()
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    model.fit(table())
    now = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    assert now == before


def test_a_replay_runs_it_again(here):
    records = table()
    model = model_by().fit(records)
    gone = core_of(model)[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    replayed = replay(receipt, model.bundle(), records.without(gone))
    assert (replayed.outcome, replayed.made_again) == (Outcome.identical, "extractor and heads")
    assert replayed.not_covered == model._fitted.conditions[0]  # what else the function read, nobody sees
    assert any("training functions" in said for said in replayed.not_compared)


@pytest.mark.long
def test_and_does_so_in_a_fresh_process():
    records = table()
    model = model_by().fit(records)
    gone = core_of(model)[:2]
    assert replay(model.unlearn(gone, core_policy="retrain"), model.bundle(), records.without(gone))


def test_two_runs_that_differ_are_seen(here):
    records = table()
    with pytest.warns(NotRepeatableWarning, match=r"'3.bias' most"):
        model = model_by(trainings.by_chance).fit(records)
    gone = core_of(model)[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    assert receipt.bytes_claim == RETRAINED
    assert "differed" in receipt.recipe["run_twice"]
    assert "differed" in receipt.conditions[0]
    replayed = replay(receipt, model.bundle(), records.without(gone))
    # The last layer is cut off: what it drew does not come to the heads.
    assert replayed.outcome == Outcome.identical


def test_inputs_that_the_function_scales_are_seen():
    """Features are computed of the records as they are: a network that was trained on others is at a loss there."""
    records, scaled = table(), list[bool]()
    for train in (trainings.by_adamw, trainings.of_scaled_inputs):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model_by(train).fit(records)
        scaled.append(any("deviation" in str(each.message) for each in said))
    assert scaled == [False, True]


def test_functions_that_take_other_arguments_are_refused_before_the_work():
    with pytest.raises(DataError):
        model_by(trainings.of_two_arguments).fit(table())
    with pytest.raises(DataError):
        model_by().fit(table()).plan([0], core_policy=trainings.of_two_arguments)


def test_a_function_that_fails_on_few_records_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("maxrr.nets.training_function.PART", 30)
    with pytest.warns(NotRepeatableWarning, match="no full batch"):
        model = model_by(trainings.of_many_records, core=FullCore()).fit(table())
    assert parts_of(model) == expected(model, table(), table().ids)
    receipt = model.unlearn(table().ids[:1], core_policy="keep-extractor")
    assert receipt.recipe["run_twice"].endswith("it fails (ZeroDivisionError)")
    assert "no full batch" not in receipt.to_json()  # a message may name records, and stays off receipts


MODULE = """
from tests.unlearning.trainings import by_adamw


def train(network, dataset, seed, device):
    return by_adamw(network, dataset, seed, device)


def another(network, dataset, seed, device):
    return network
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of one's own that can be edited."""
    (tmp_path / "training_of_a_team.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("training_of_a_team")
    del sys.modules["training_of_a_team"]


def test_another_function_of_the_module_is_not_taken_for_it(here, module, tmp_path):
    """It has the same source."""
    records = table()
    model = model_by(module.train).fit(records)
    gone = core_of(model)[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    model.bundle().save(tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle", network=model.network, train=module.another)
    replayed = replay(receipt, bundle, records.without(gone))
    assert (replayed.outcome, replayed.made_again) == (Outcome.in_part, "heads")
    said = "training_of_a_team:another was given, and training_of_a_team:train trained the model"
    assert said in replayed.not_covered


def test_other_source_is_not_run_and_not_claimed(here, module, tmp_path):
    records = table()
    model = model_by(module.train).fit(records)
    gone = core_of(model)[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    (tmp_path / "training_of_a_team.py").write_text(MODULE + "# another thought\n")
    replayed = replay(receipt, model.bundle(), records.without(gone))
    assert (replayed.outcome, replayed.made_again) == (Outcome.in_part, "heads")
    assert "SHA-256" in replayed.not_covered
    with pytest.raises(DataError, match="bring the module"):
        model.unlearn(core_of(model)[:1], core_policy="retrain")


def test_a_bundle_runs_no_code_that_only_it_names(here, tmp_path):
    records = table()
    model = model_by().fit(records)
    gone = core_of(model)[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    model.bundle().save(tmp_path / "bundle")
    with pytest.raises(TrainingMissing, match=r"trainings:by_adamw"):
        Bundle.load(tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle", train=trainings.by_adamw)
    assert replay(receipt, bundle, records.without(gone)).outcome == Outcome.identical


def test_a_ranking_uses_it_too():
    model = model_by(core=FrequencyCore(30, runs=2)).fit(table())
    assert parts_of(model) == expected(model, table(), core_of(model))


def test_what_else_it_does_to_the_network_stays_behind():
    model = model_by(trainings.with_leftovers).fit(table())
    assert parts_of(copy.deepcopy(model)) == parts_of(model_by().fit(table()))


def test_it_cannot_change_the_records():
    records = table()
    before = records.content_hash()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model_by(trainings.greedy, core=FullCore()).fit(records)
    assert records.content_hash() == before


def test_functions_that_no_fresh_process_finds():
    def within(network, dataset, seed, device):
        return network

    for train in (within, lambda *_: None, trainings.object_of_a_class, within.__get__(3)):
        with pytest.raises(DataError, match="fresh process"):
            model_by(train).fit(table())


@pytest.mark.parametrize("train", [trainings.nothing, trainings.another_network])
def test_a_forgotten_return_is_said_first_and_not_called_hard_to_repeat(train):
    with pytest.raises(NoNetworkReturned):  # and no warning, which is an error here
        model_by(train).fit(table())


@pytest.mark.parametrize(("train", "why"), [
    (trainings.diverging, "weights that are not finite"),
    ("adamw", "train is a function or a Recipe"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::maxrr.nets.training_function.NotRepeatableWarning")
def test_what_is_no_training(train, why):
    with pytest.raises(DataError, match=why):
        model_by(train).fit(table())


def test_one_way_to_train_at_a_time():
    with pytest.raises(DataError, match="batch_size and lr"):
        model_by(epochs=3).fit(table())
    with pytest.raises(DataError, match="Frozen nothing"):
        model_by(core=Frozen(whole=True)).fit(table())


def test_a_recipe(here, tmp_path):
    """The same as for a function, but for what is claimed: it is our own."""
    records, recipe = table(), Recipe(6, 16, 1e-2, optimiser="sgd", schedule="cosine", label_smoothing=0.1)
    model = model_by(recipe).fit(records)
    gone = core_of(model)[:2]
    receipt = model.unlearn(gone, core_policy="retrain")
    assert parts_of(model) == parts_of(model_by(recipe).fit(records.without(gone)))
    assert (receipt.recipe, receipt.bytes_claim, receipt.conditions) == (recipe.facts, "identical", [])
    model.bundle().save(tmp_path / "bundle")
    assert replay(receipt, Bundle.load(tmp_path / "bundle"), records.without(gone)).outcome == Outcome.identical
    assert clone(model).train == recipe


def test_a_trained_network_is_not_drawn_anew_without_a_word():
    trained = trainings.by_adamw(MLP(5, 3), table(), 0, torch.device("cpu"))
    with pytest.warns(DrawnAnewWarning, match=r"Frozen\(\), MaxRR.adopt"):
        MaxRR(trained, CORE, epochs=1, device="cpu").fit(table())
