"""Extractors that were trained elsewhere: adopted with a way to train them again, or frozen with what they saw."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from maxrr.core import Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.trained_elsewhere import Adopted
from maxrr.data import DataError
from maxrr.nets import MLP, split
from maxrr.nets.seeding import all_drawing, begin
from maxrr.unlearning import Bundle, MaxRR, Outcome, contradictions, replay
from maxrr.unlearning.blueprint import relabel
from maxrr.unlearning.conditions import ADOPTED
from maxrr.unlearning.receipts import RETRAINED
from tests.cases import some
from tests.unlearning import trainings
from tests.unlearning.problems import SEED, core_of, fit_again, fresh, kinds, parts, parts_of, table
from tests.unlearning.test_own_training import CORE, expected, trained_alone


def network():
    return MLP(5, 3, hidden=(12,))


def trained_elsewhere(ids, records=None):
    """A network as somebody else has trained it, on these records."""
    core, started = relabel((records or table()).select(np.sort(ids))), begin(network(), SEED)
    with all_drawing(SEED):
        return trainings.by_adamw(started, core, SEED, torch.device("cpu"))


def adopted(ids, core=None, given=None):
    trained = trained_elsewhere(ids) if given is None else given
    return MaxRR.adopt(
        trained, core, trained_on=ids, train=trainings.by_adamw, C=0.7, seed=SEED, device="cpu"
    )  # fmt: skip


IDS = np.sort(table().ids)[::2]


def test_the_extractor_is_used_as_it_is_and_then_trained_here():
    records = table()
    model = adopted(IDS).fit(records)
    extractor = split(trained_elsewhere(IDS))[0]
    assert parts_of(model) == parts(extractor, fit_again(extractor, records), records.class_names)
    assert core_of(model).tolist() == IDS.tolist()
    _, influential, _ = kinds(model, records)
    receipt = model.unlearn(influential[:2])
    given = "the core is the 40 records that the caller named: exact given that core"
    assert (receipt.guarantee, receipt.conditions) == ("exact-refit", [given, ADOPTED])
    receipt = model.unlearn(IDS[:3], core_policy="retrain")
    assert (receipt.guarantee, receipt.bytes_claim) == ("exact-retrain", RETRAINED)
    assert ADOPTED not in receipt.conditions
    assert list(contradictions(receipt)) == []
    retained = records.without([*influential[:2], *IDS[:3]])
    assert parts_of(model) == expected(model, retained, IDS[3:])


def test_nothing_of_the_trained_weights_stays_in_the_model_once_it_is_trained_again():
    model = adopted(IDS).fit(table())
    held = model._fitted.blueprint.network.state_dict()
    assert not any(torch.equal(value, held[name]) for name, value in model.network.state_dict().items())


def test_a_replay_checks_it(here, tmp_path):
    records = table()
    model = adopted(IDS).fit(records)
    _, influential, _ = kinds(model, records)
    receipt = model.unlearn(influential[:1])
    retained = records.without(influential[:1])
    model.bundle().save(tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle", train=trainings.by_adamw)
    assert bundle.facts.adopted
    replayed = replay(receipt, bundle, retained)
    assert (replayed.outcome, replayed.made_again) == (Outcome.identical, "extractor and heads")
    assert ADOPTED not in replayed.not_covered


def test_and_finds_one_that_saw_other_records(here):
    records = table()
    model = adopted(IDS, given=trained_elsewhere(records.ids)).fit(records)
    _, influential, _ = kinds(model, records)
    receipt = model.unlearn(influential[:1])
    replayed = replay(receipt, model.bundle(), records.without(influential[:1]))
    assert replayed.outcome == Outcome.different
    assert ADOPTED in replayed.not_covered


def test_a_core_by_a_rule_is_held_against_what_was_trained_on():
    records = table()
    core = records.ids[CORE.is_core(records.ids, records.subjects)]
    model = adopted(core, CORE).fit(records)
    assert model._fitted.conditions == [ADOPTED]
    free = kinds(model, records)[2]
    model.unlearn([*core[:2], *free[:1]], core_policy="retrain")
    retained = records.without([*core[:2], *free[:1]])
    extractor = trained_alone(network(), retained, core[2:])
    assert parts_of(model) == parts(extractor, fit_again(extractor, retained), records.class_names)
    with pytest.raises(DataError, match="makes core: 1"):
        adopted(core[1:], CORE).fit(records)
    other = np.setdiff1d(records.ids, core)[0]
    with pytest.raises(DataError, match="makes core: 1"):
        adopted([*core, other], CORE).fit(records)


def test_records_that_wait_to_be_core_are_trained_on_by_a_model_that_trains_here():
    """An adopted network has not seen them: the message says which model can."""
    records = table()
    core = np.sort(records.ids[CORE.is_core(records.ids, records.subjects)])
    model = adopted(core[1:], CORE).fit(records.without(core[:1]))
    model.add(records.select(core[:1]))
    with pytest.raises(DataError, match=r"MaxRR\(network, core, train=…\)"):
        model.refit()
    model.set_params(core=CORE, network=network()).refit()
    oracle = MaxRR(network(), CORE, train=trainings.by_adamw, C=0.7, seed=SEED, device="cpu").fit(records)
    assert parts_of(model) == parts_of(oracle)


ADOPTED_BEFORE = some(2, [(True, "retrain"), (False, "keep-extractor"), (True, "keep-extractor"), (False, "retrain")])


def core_and_rule(by_rule):
    records = table()
    return (np.sort(records.ids[CORE.is_core(records.ids, records.subjects)]), CORE) if by_rule else (IDS, None)


@pytest.mark.parametrize(("by_rule", "policy"), ADOPTED_BEFORE)
def test_a_network_that_saw_a_forgotten_record_is_not_adopted_again(by_rule, policy):
    """This refused the fit, because a record was missing that nobody can bring any more."""
    core, rule = core_and_rule(by_rule)
    model = adopted(core, rule).fit(table())
    model.unlearn(core[:2], core_policy=policy)
    retained = table().without(core[:2])
    for fit_again_by in (model.refit, lambda: model.fit(retained)):
        fit_again_by()
        assert parts_of(model) == expected(model, retained, core[2:])
        assert core_of(model).tolist() == core[2:].tolist()
        assert (model._fitted.adopted, model._fitted.left_in_extractor) == (False, 0)
    if not by_rule:
        with pytest.raises(DataError, match="not among those"):
            model.fit(retained.without(core[2:3]))


@pytest.mark.parametrize(("by_rule", "policy"), ADOPTED_BEFORE)
def test_nor_one_that_saw_what_a_record_was_before(by_rule, policy):
    """This brought the extractor back that had learned from the old record, and said nothing about it."""
    core, rule = core_and_rule(by_rule)
    model = adopted(core, rule).fit(table())
    new = np.linspace(-1.0, 1.0, 5).astype(np.float32)
    model.replace(int(core[0]), new, core_policy=policy)
    model.refit()
    inputs = table().inputs.copy()
    inputs[table().rows(core[:1])] = new
    assert parts_of(model) == expected(model, replace(table(), inputs=inputs), core)
    assert (model._fitted.adopted, model._fitted.left_in_extractor) == (False, 0)


def test_a_network_whose_records_are_all_there_is_adopted_again():
    model = adopted(IDS).fit(table())
    model.unlearn(np.setdiff1d(table().ids, IDS)[:2])
    extractor = [value.clone() for value in model.extractor_.state_dict().values()]
    model.refit()
    assert model._fitted.adopted
    assert all(map(torch.equal, extractor, model.extractor_.state_dict().values()))


@pytest.mark.parametrize(("model", "why"), [
    (lambda: adopted(IDS).fit(table().without(IDS[:2])), "2 of the 40 records .* are not among those to fit"),
    (lambda: adopted(np.array(["a"]), given=network()).fit(table()), "are words, and .* are numbers"),
    (lambda: MaxRR(network(), Adopted(IDS)).fit(table()), "needs a way to train"),
    (lambda: MaxRR.adopt(network, trained_on=IDS, train=trainings.by_adamw).fit(table()), "is a torch.nn.Module"),
    (lambda: adopted(IDS, MiddleCore(5)), "by a rule for each record"),
])  # fmt: skip
def test_what_cannot_be_adopted(model, why):
    with pytest.raises(DataError, match=why):
        model()


# Frozen


def frozen(**settings):
    return MaxRR(split(trained_elsewhere(IDS))[0], Frozen(**settings), C=0.7, seed=SEED, device="cpu")


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
def test_a_network_that_keeps_forgotten_records_is_not_frozen_then():
    records = table()
    model = fresh(CORE, records).fit(records)
    core = core_of(model)[:2]
    model.unlearn(core, core_policy="keep-extractor")
    model.set_params(network=model.extractor_, core=Frozen())
    with pytest.raises(DataError, match="2 records"):
        model.refit()
    model.set_params(network=network(), core=CORE).refit()
    assert model._fitted.left_in_extractor == 0


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
def test_a_whole_network_is_no_extractor():
    whole = trained_elsewhere(IDS)
    with pytest.raises(DataError, match=r"3 classes.*split\(network\)\[0\].*whole=True"):
        MaxRR(whole, Frozen(), device="cpu").fit(table())
    MaxRR(whole, Frozen(whole=True), device="cpu").fit(table())
    for width in (2, 4):
        projection = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, width))
        assert MaxRR(projection, Frozen(), device="cpu").fit(table()).heads_.coef_.shape == (3, width)


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
def test_a_network_with_fewer_outputs_than_classes_keeps_its_weights():
    """This put a network in its place that was drawn from the seed, with an output for each class."""
    narrow = MLP(5, 2, hidden=(12,))
    weights = [value.clone() for value in narrow.state_dict().values()]
    model = MaxRR(narrow, Frozen(), device="cpu").fit(table()).refit()
    assert model.network is narrow
    assert all(map(torch.equal, weights, model.extractor_.state_dict().values()))
    model = adopted(IDS, given=narrow).fit(table()).refit()
    assert all(map(torch.equal, weights, model.extractor_.state_dict().values()))


def test_equal_ones_are_equal_and_show_nobody():
    assert Frozen() == Frozen() != Frozen(whole=True)
    assert "7" not in repr(Adopted([7], FullCore())) + repr(Adopted([7], HashCore(0.5, key="k")))
