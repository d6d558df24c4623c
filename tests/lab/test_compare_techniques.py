"""Techniques beside what they must come to: closed forms, one another in their limits, nothing at a rate of zero."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from lab.compare.descent import Stack, Work, change, height, nobody
from lab.compare.techniques import (
    GRIDS,
    TECHNIQUES,
    divergence,
    fine_tune,
    msg,
    neg_grad,
    random_labels,
    salun,
    scrub,
    technique_of,
    transpose,
)  # fmt: skip
from maxrr.data import Dataset
from maxrr.nets import LeNet5
from maxrr.nets.inputs import records

CPU = torch.device("cpu")


def images(count, first=0):
    random = np.random.default_rng(first)
    labels = np.arange(count) % 3
    pixels = (random.integers(0, 90, (count, 1, 8, 8)) + 60 * labels[:, None, None, None]).astype(np.uint8)
    return Dataset(pixels, labels, ("a", "b", "c"), np.arange(first, first + count))


STAY, LEAVE = images(40), images(6, 100)
NONE = LEAVE.select(LEAVE.ids[:0])


def network(seed=0):
    torch.manual_seed(seed)
    return LeNet5((1, 8, 8), 3, width=0.5)


def changed(technique, stay=STAY, leave=LEAVE, seed=5, of=None):
    """The weights after a technique."""
    made = copy.deepcopy(of or network())
    change(technique, [made], stay, leave, [seed], CPU, 3)
    return {name: value.detach().clone() for name, value in made.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def near(one, other):
    return all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


# Closed forms, on a linear network where the gradient of the cross-entropy is known


def slope(weights, dataset):
    """Of a linear network with these weights: the mean of (softmax − one-hot) ⊗ inputs."""
    X = dataset.inputs.reshape(len(dataset), -1) / np.float32(255)
    said = functional.softmax(torch.tensor(X) @ weights.T, dim=1).numpy()
    return torch.tensor((said - np.eye(3)[dataset.labels]).T.astype(np.float32) @ X / len(X))


@pytest.mark.parametrize("climb", [0.0, 0.3])
def test_a_step_of_neg_grad_is_down_one_gradient_and_up_the_other(climb):
    linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 3, bias=False))
    before = linear[1].weight.detach().clone()
    after = changed(lambda work: neg_grad(work, epochs=1, lr=0.5, climb=climb), of=linear)["1.weight"]
    expected = before - 0.5 * ((1 - climb) * slope(before, STAY) - climb * slope(before, LEAVE))
    assert torch.allclose(after, expected, atol=1e-5)


def test_the_second_step_has_momentum():
    linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 3, bias=False))
    before = linear[1].weight.detach().clone()
    first = slope(before, STAY)
    once = before - 0.1 * first
    expected = once - 0.1 * (0.9 * first + slope(once, STAY))
    after = changed(lambda work: fine_tune(work, epochs=2, lr=0.1), of=linear)["1.weight"]  # a batch is all records
    assert torch.allclose(after, expected, atol=1e-5)


def test_scrub_steps_away_from_the_teacher_on_what_it_forgets():
    teacher = network()
    inputs = records(LEAVE, teacher, CPU).batch(torch.arange(6))[0]
    apart = {}
    for climbs in (0, 4):
        weights = changed(lambda work, climbs=climbs: scrub(work, 5, climbs, lr=0.3, alpha=0.0, climbing=1.0))
        scores = [torch.func.functional_call(teacher, state, inputs) for state in (teacher.state_dict(), weights)]
        apart[climbs] = divergence(scores[0][None], scores[1][None], 4.0).item()
    assert apart[4] > 1.1 * apart[0] > 0.0


def test_kl_is_pytorchs_and_none_from_oneself():
    teacher, scores = torch.randn(2, 1, 7, 3)
    expected = functional.kl_div(
        functional.log_softmax(scores[0] / 4, 1), functional.log_softmax(teacher[0] / 4, 1), log_target=True,
        reduction="batchmean",
    )  # fmt: skip
    assert divergence(teacher, scores, 4.0)[0] == pytest.approx(16.0 * expected.item(), rel=1e-4)
    assert abs(divergence(scores, scores, 4.0)[0]) < 1e-6


def test_the_rate_rises_and_falls():
    assert [height(step, 10, "linear", 0.2) for step in (0, 1, 2, 6)] == [0.5, 1.0, 1.0, 0.5]
    assert height(5, 10, "cosine", 0.0) == pytest.approx(0.5)


# Limits


def test_with_nothing_to_forget_they_fine_tune():
    tuned = changed(fine_tune, leave=NONE)
    for technique in (neg_grad, random_labels, salun):
        assert same(changed(technique, leave=NONE), tuned)
    assert near(changed(lambda work: scrub(work, alpha=0.0, epochs=1), leave=NONE),
                changed(lambda work: fine_tune(work, epochs=1), leave=NONE))  # fmt: skip
    assert not same(changed(random_labels), tuned)


def test_one_is_another_in_the_limit():
    assert same(changed(lambda work: neg_grad(work, climb=0.0)), changed(fine_tune))
    assert same(changed(lambda work: salun(work, share=1.0)), changed(random_labels))
    assert not same(changed(salun), changed(random_labels))


@pytest.mark.parametrize("name", sorted(set(TECHNIQUES) - {"MSG", "CT"}))
def test_at_a_rate_of_zero_nothing_moves(name):
    assert same(changed(technique_of(name, {"lr": 0.0})), network().state_dict())


def test_transposing_twice_is_nothing_and_touches_kernels_alone():
    def still(work):
        transpose(work, lr=0.0)

    before, once = network().state_dict(), changed(still)
    assert torch.equal(once["0.weight"], before["0.weight"].mT)
    assert all(torch.equal(value, before[name]) for name, value in once.items() if name not in ("0.weight", "3.weight"))
    assert same(changed(lambda work: (still(work), still(work))), before)


def test_msg_draws_thirty_percent_of_each_kernel_anew():
    before, after = network().state_dict(), changed(lambda work: msg(work, lr=0.0))
    counts = {name: (after[name] != value).sum().item() for name, value in before.items()}
    kernels = ("0.weight", "3.weight")
    assert {name: count for name, count in counts.items() if count} == {
        name: round(0.3 * before[name].numel()) for name in kernels
    }


def test_msg_holds_back_the_other_weights_of_kernels_alone():
    before, after = network().state_dict(), changed(lambda work: msg(work, lr=0.05, share=0.01, rein=0.0))
    shares = {name: after[name] / value for name, value in before.items() if name.endswith("weight")}
    away = {name: (share - share.median()).abs() for name, share in shares.items()}
    assert max(away[name].median().item() for name in ("0.weight", "3.weight")) < 1e-6  # the same decay for most
    assert min(away[name].quantile(0.9).item() for name in ("7.weight", "9.weight", "11.weight")) > 1e-3


def test_random_labels_are_drawn_in_every_epoch(monkeypatch):
    drawn = []
    rows = Work.rows
    monkeypatch.setattr(Work, "rows", lambda work, given: (drawn.append(given[0]), rows(work, given))[1])
    changed(lambda work: random_labels(work, epochs=3))
    labels = [each.tolist() for each in drawn if len(each) == len(LEAVE)]
    assert len(labels) == 3
    assert labels[0] != labels[1] != labels[2]


def test_forgetting_labels_costs_accuracy_on_them():
    """Networks that know everything: on wrong labels, or climbing, they get worse on what they forget."""
    made = network()
    change(lambda work: fine_tune(work, epochs=60, lr=0.05), [made], images(40), LEAVE, [1], CPU, 3)
    inputs, labels = records(LEAVE, made, CPU).batch(torch.arange(6))
    before = functional.cross_entropy(made(inputs), labels).item()
    for technique in (random_labels, lambda work: neg_grad(work, climb=0.6)):
        later = copy.deepcopy(made)
        change(technique, [later], STAY.select(STAY.ids[:3]), LEAVE, [1], CPU, 3)
        assert functional.cross_entropy(later(inputs), labels).item() > before


# Networks together


@pytest.mark.parametrize("name", TECHNIQUES)
def test_networks_together_end_where_each_ends_alone(name):
    technique, both = technique_of(name, {}), [network(1), network(2)]
    alone = [changed(technique, seed=seed, of=made) for seed, made in zip((7, 8), both, strict=True)]
    work = Work(Stack(both, CPU), records(STAY, both[0], CPU), records(LEAVE, both[0], CPU), (7, 8), 3)
    technique(work)
    work.stack.write_to(both)
    assert all(near(dict(made.state_dict()), one) for made, one in zip(both, alone, strict=True))
    assert len(nobody(STAY, both[0], CPU)) == 0


@pytest.mark.parametrize("name", GRIDS)
def test_all_are_tried_as_often_and_first_as_they_are(name):
    assert len(GRIDS[name]) == 6
    assert GRIDS[name][0] == {}
    assert len({str(settings) for settings in GRIDS[name]}) == 6
