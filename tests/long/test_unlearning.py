"""Unlearning on Fashion-MNIST: what is promised exactly equals the naive oracle to the byte."""

import copy

import numpy as np
import pytest

from maxrr import LinearSVM
from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore
from maxrr.data import load
from maxrr.nets import LeNet5, embed, split, train
from maxrr.unlearning import MaxRR, replay
from maxrr.workspace import Workspace
from tests.workspace.problems import given

EPOCHS, SEED = 2, 1
pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # on some machines after so few epochs


@pytest.fixture(scope="module")
def some():
    training, _ = load("fashion-mnist")
    return training.select(training.ids[:10_000])


CORES = {"hash": HashCore(0.5, key="long"), "frequency": FrequencyCore(5_000, runs=2)}


@pytest.fixture(scope="module", params=CORES)
def fitted(some, request):
    model = MaxRR(LeNet5(), CORES[request.param], epochs=EPOCHS, seed=SEED, device="cpu").fit(some)
    assert 4_500 < len(model.core_.ids) < 5_500
    return model


def check(model, extractor, retained):
    """Extractor and head, in bytes, against a head from scratch."""
    head = LinearSVM(C=1.0).fit(embed(extractor, retained, device="cpu"), retained.labels)
    expected = extractor.state_dict()
    assert all(value.numpy().tobytes() == expected[name].numpy().tobytes()
               for name, value in model.extractor_.state_dict().items())  # fmt: skip
    assert model.heads_.coef_.tobytes() == head.coef_.tobytes()
    assert model.heads_.intercept_.tobytes() == head.intercept_.tobytes()
    assert model.content_hash_ == retained.content_hash()


def trained(records, core_ids, epochs=EPOCHS):
    run = train(LeNet5(), records.select(core_ids), SEED, epochs=epochs, device="cpu", threads=1)
    return split(run.network)[0]


def test_exact_refit_of_twenty_is_the_model_that_never_saw_them(some, fitted):
    model = copy.deepcopy(fitted)
    influential = model.ids_of("influential")
    ids = np.random.default_rng(0).choice(influential, 20, replace=False)
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    assert (receipt.guarantee, receipt.bytes_claim) == ("exact-refit", "identical")
    retained = some.without(ids)
    check(model, trained(retained, model.core_.ids), retained)


def test_exact_retrain_is_the_model_that_never_saw_them(some, fitted):
    model = copy.deepcopy(fitted)
    core = model.core_.ids.copy()
    ids = np.concatenate([core[:10], np.setdiff1d(some.ids, core)[:10]])
    receipt = model.unlearn(ids, core_policy="retrain")
    by_hash = isinstance(model.core, HashCore)
    assert (receipt.guarantee, receipt.bytes_claim, receipt.unconditional) == ("exact-retrain", "identical", by_hash)
    retained = some.without(ids)
    check(model, trained(retained, np.setdiff1d(core, ids)), retained)
    if by_hash:  # nothing is given: fitting anew on the retained records is the same model
        never = MaxRR(LeNet5(), model.core, epochs=EPOCHS, seed=SEED, device="cpu").fit(retained)
        assert model.model_hash_ == never.model_hash_


@pytest.mark.parametrize("core", CORES)
def test_exact_untouched_is_the_model_that_never_saw_them(some, core):
    """Only features from more training leave records that are neither core nor influential."""
    epochs = 12
    model = MaxRR(LeNet5(), CORES[core], epochs=epochs, seed=SEED, device="cpu").fit(some)
    shaping = np.setdiff1d(model.ids_of(), model.ids_of("free"))
    ids = np.setdiff1d(some.ids, shaping)
    assert len(ids) > 100
    before = model.model_hash_
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    assert (receipt.guarantee, receipt.bytes_claim, model.model_hash_) == ("exact-untouched", "identical", before)
    retained = some.without(ids)
    check(model, trained(retained, model.core_.ids, epochs), retained)


def test_every_record_core(some):
    model = MaxRR(LeNet5(), FullCore(), epochs=1, seed=SEED, device="cpu").fit(some)
    ids = some.ids[:7]
    assert model.unlearn(ids, core_policy="retrain").guarantee == "exact-retrain"
    never = MaxRR(LeNet5(), FullCore(), epochs=1, seed=SEED, device="cpu").fit(some.without(ids))
    assert model.model_hash_ == never.model_hash_


def test_an_extractor_from_elsewhere(some):
    elsewhere, _ = load("fashion-mnist")
    extractor = split(train(LeNet5(), elsewhere.select(elsewhere.ids[20_000:25_000]), 3, epochs=1).network)[0]
    model = MaxRR(extractor, Frozen(), device="cpu").fit(some)
    ids = np.random.default_rng(0).choice(some.ids, 300, replace=False)
    assert model.unlearn(ids, core_policy="keep-extractor").guarantee == "exact-refit"
    never = MaxRR(extractor, Frozen(), device="cpu").fit(some.without(ids))
    assert model.model_hash_ == never.model_hash_


def test_a_workspace_on_the_disk_ends_in_the_same_bytes(some, fitted, tmp_path):
    model = copy.deepcopy(fitted)
    core = model.core_.ids.copy()
    others = np.setdiff1d(some.ids, core)
    Workspace.create(tmp_path / "ws", fitted, some).close()
    for ids, policy in ((others[:300], "keep-extractor"), (core[:5], "retrain"), (others[300:330], "keep-extractor")):
        model.unlearn(ids, core_policy=policy)
        with Workspace.open(tmp_path / "ws") as workspace:
            receipt = given(workspace, some).model.unlearn(ids, core_policy=policy)
            assert (workspace.model.model_hash_, receipt.bytes_claim) == (model.model_hash_, "identical")
    with Workspace.open(tmp_path / "ws", read_only=True) as workspace:
        assert replay(receipt, workspace.model, some).outcome == "identical"
