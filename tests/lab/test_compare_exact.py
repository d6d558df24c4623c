"""Methods that promise something keep it: beside a fresh fit on what is left, or a bound that holds."""

from dataclasses import replace
from functools import cache
from operator import is_

import numpy as np
import pytest
import torch

from lab.compare.exact import CORE, FROZEN, METHODS, Bench, Certified, Ridge, Sisa
from lab.compare.promises import away
from maxrr import MaxRR
from maxrr.core import Frozen, HashCore
from maxrr.data import Dataset
from maxrr.nets import MLP, NoNetwork, Recipe, train


def table(count=120, seed=0):
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    middles = np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0]])
    inputs = (random.normal(size=(count, 4)) + middles[labels]).astype(np.float32)
    return Dataset(inputs, labels, ("a", "b", "c"), np.arange(1_000 * seed, 1_000 * seed + count))


@cache
def bench():
    recipe = Recipe(epochs=30, lr=1e-2)

    def ours(row, seed):
        if row == FROZEN:
            return MaxRR(NoNetwork(), Frozen(), device="cpu", verbose=False)
        return MaxRR(MLP(4, 3, (8,)), HashCore(0.5, key="k"), seed=seed, train=recipe, device="cpu", verbose=False)

    return Bench(MLP(4, 3, (8,)), recipe, recipe, torch.device("cpu"), 3, lambda records: records.inputs, ours)


DATA, TEST = table(), table(30, seed=1)
GONE = [*DATA.ids[:3].tolist(), *DATA.ids[70:72].tolist()]


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"certified removal"}))
def test_forgetting_is_fitting_without_the_records(name):
    one = METHODS[name](bench(), DATA, 3)
    before = one.probabilities(TEST)
    one.forget(GONE[:2])
    one.forget(GONE[2:])
    again = METHODS[name](bench(), DATA.without(GONE), 3)
    assert np.abs(one.probabilities(TEST) - again.probabilities(TEST)).max() < (1e-6 if name == "ridge head" else 1e-12)
    assert not np.array_equal(before, one.probabilities(TEST))
    assert np.mean(one.probabilities(TEST).argmax(1) == TEST.labels) > 0.7
    assert (one.kept == 0) == (name == "retraining")


def test_the_ridge_head_is_the_one_solved_without_the_records():
    one = Ridge(bench(), DATA, 0)
    one.forget(GONE)
    X = np.hstack([DATA.without(GONE).inputs.astype(float), np.ones((len(DATA) - len(GONE), 1))])
    Y = np.where(DATA.without(GONE).labels[:, None] == np.arange(3), 1.0, -1.0)
    solved = np.linalg.solve(X.T @ X + np.eye(5), X.T @ Y)
    assert np.abs(one.weights.numpy() - solved).max() < 1e-9


@pytest.mark.parametrize("method", [Ridge, Certified])
def test_requests_to_heads_embed_nothing_and_copy_no_features_of_others(method):
    seen = []

    def features(records):
        seen.append(len(records))
        return records.inputs

    one = method(replace(bench(), features=features), DATA, 0)
    there, kept = one.store.X, one.kept
    rows = DATA.rows(GONE)
    others = np.delete(there.numpy(), rows, axis=0)
    one.forget(GONE)
    assert seen == [len(DATA)]
    assert one.store.X is there
    assert (there[rows] == 0.0).all()
    assert np.array_equal(np.delete(there.numpy(), rows, axis=0), others)
    assert len(one.store) == len(DATA) - len(GONE)
    assert one.kept == kept >= 8 * len(DATA) * (4 + 1 + 3)  # features, the intercept and a sign for each class


def test_sisa_trains_the_touched_shards_alone_from_the_touched_slice_on():
    one = Sisa(bench(), DATA, 3)
    before = [list(copies) for copies in one.copies]
    parts, slices = one.place(DATA)
    row = int(np.flatnonzero(slices == 2)[0])
    one.forget([DATA.ids[row]])
    same = [[*map(is_, *pair)] for pair in zip(one.copies, before, strict=True)]
    expected = [[True] * 4 for _ in range(one.PARTS)]
    expected[parts[row]] = [True, True, True, False]
    assert same == expected
    weights = sum(value.nbytes for value in before[0][0].state_dict().values())
    assert one.kept == one.PARTS * (one.SLICES - 1) * weights  # first weights follow from a seed


def test_sisa_trains_each_time_on_all_slices_so_far(monkeypatch):
    seen = []

    def watched(network, records, *others, **options):
        seen.append(set(records.ids.tolist()))
        return train(network, records, *others, **options)

    monkeypatch.setattr("lab.compare.exact.train", watched)
    one = Sisa(replace(bench(), part=Recipe(epochs=2)), DATA, 3)
    parts, slices = one.place(DATA)
    expected = [set(DATA.ids[(parts == part) & (slices <= number)].tolist())
                for part in range(one.PARTS) for number in range(one.SLICES)]  # fmt: skip
    assert seen == expected


def test_what_certified_removal_leaves_is_within_its_bound_and_near_a_new_fit():
    steady = replace(bench(), certified=(0.1, 1.0))  # so that the bound of one record is within the noise
    one = Certified(steady, DATA, 0)
    noise, start = one.noise.clone(), one.weights.clone()
    one.forget([])
    assert torch.equal(one.weights, start)
    for id_ in GONE[:2]:
        one.forget([id_])
        assert (one.gradient(one.weights).norm(dim=0) <= one.left + 1e-8).all()
    again = Certified(steady, DATA.without(GONE[:2]), 0)
    assert (one.fits, torch.equal(again.noise, noise)) == (1, True)
    assert (one.weights - again.weights).norm() < 0.2 * (start - again.weights).norm()


def test_the_noise_of_certified_removal_hides_what_its_theorem_says():
    """C. Guo et al., theorem 3: noise of σ = c · bound / ε with c = √(2 ln(1.5 / δ)), here 4.3854."""
    assert Certified(replace(bench(), certified=(0.1, 3.0)), DATA, 0).most == pytest.approx(3.0 / 4.38538, rel=1e-5)


@pytest.mark.parametrize("pair", [*Certified.GRID, (1e-6, 10.0)])
def test_certified_removal_is_solved_with_every_setting(pair):
    one = Certified(replace(bench(), certified=pair), DATA, 0)
    assert float(one.gradient(one.weights).norm(dim=0).max()) < 1e-9
    assert np.abs(one.probabilities(TEST).sum(1) - 1.0).max() < 1e-12


def test_what_requests_leave_adds_up():
    one, expected = Certified(replace(bench(), certified=(0.1, 10.0)), DATA, 0), np.zeros(3)
    for id_ in GONE[:3]:
        before = one.weights.clone()
        one.forget([id_])
        steps = (one.weights - before).numpy()
        X = one.X.numpy()
        expected += 0.25 * np.linalg.norm(X, 2) * np.linalg.norm(steps, axis=0) * np.linalg.norm(X @ steps, axis=0)
        assert one.left.numpy() == pytest.approx(expected, rel=1e-5)
    assert one.fits == 1


def test_a_new_fit_has_the_noise_that_certified_removal_has_now():
    one = Certified(replace(bench(), certified=(1e-3, 1e-3)), DATA, 0)
    for id_ in DATA.ids[:10].tolist():
        one.forget([id_])
    again = one.anew(DATA.without(DATA.ids[:10]))
    assert one.fits == again.fits > 1
    assert torch.equal(one.noise, again.noise)
    assert not torch.equal(one.noise, Certified(one.bench, DATA, 0).noise)
    assert away(one, "certified removal", one.bench, DATA.without(DATA.ids[:10]), 0, TEST) < 1e-4


def test_certified_removal_fits_anew_once_the_noise_hides_no_more():
    one = Certified(replace(bench(), certified=(1e-3, 1e-3)), DATA, 0)
    for id_ in DATA.ids[:10].tolist():
        one.forget([id_])
        assert float(one.left.max()) <= one.most
    assert one.fits > 1


def test_ours_has_two_rows():
    assert {CORE, FROZEN} <= METHODS.keys()
