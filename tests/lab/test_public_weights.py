"""Public weights and a small core: what is measured first, what is worked out from it, and a look at all of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lab import public_networks
from lab.figures.public_weights import lines_of
from lab.profiles import PUBLIC as PROFILE
from lab.public_cases import (
    ASKED,
    EPOCHS,
    KINDS,
    PEOPLE,
    PUBLIC,
    SCRATCH,
    SEEDS,
    TENTH,
    Case,
    cases,
    key_of,
    recipe_of,
    work,
)  # fmt: skip
from lab.public_others import RANKED, RIDGE_HEAD, SISA, one_hot, without
from lab.public_weights import choose_penalty, expected, measure
from lab.results import Clock, OutOfTimeError
from maxrr.core import HashCore
from tests.lab.problems import RECORDS, tiny_lab

FOUND = {"core": 100, "influential": 300, "free": 600, "seconds": {"train": 40.0, "embed": 8.0}}
REQUESTS = {
    "free": {"seconds": 0.001},
    "influential": {"seconds": 0.4},
    "5 records": {"seconds": 0.5},
    "20 records": {"seconds": 0.8},
    "core": {"seconds": 50.0},
}


def test_the_tenth_comes_first_and_no_case_twice():
    every = cases(PROFILE)
    assert every[:SEEDS] == [Case(PUBLIC, TENTH, seed) for seed in range(SEEDS)]
    assert len({case.name for case in every}) == len(every)
    assert {case.share for case in every if case.start == PUBLIC} == {0.0, *EPOCHS}
    assert [case.name for case in every if case.replayed] == ["public weights, core 10 %, seed 0"]


def test_of_the_far_case_no_request_is_timed():
    far = cases(replace(PROFILE, data="fashion-mnist"))
    assert not any(case.timed for case in far)
    assert {case.share for case in far} == {0.0, TENTH, 1.0}
    assert len({case.name for case in far}) == len(far)


def test_networks_from_scratch_take_as_many_steps_whatever_the_core(tmp_path):
    lab = replace(tiny_lab(tmp_path), profile=PROFILE)
    images = np.zeros((40, 3, 32, 32), np.uint8)
    labels, ids = np.arange(40) % 2, np.arange(40)
    lab = replace(lab, training=replace(lab.training, inputs=images, labels=labels, ids=ids))
    steps = {share: share * recipe_of(lab, Case(SCRATCH, share, 0)).epochs for share in (1.0, 0.5, TENTH)}
    assert set(steps.values()) == {40.0}
    assert work(lab, Case(PUBLIC, TENTH, 0)) > 2 * work(lab, Case(PUBLIC, TENTH, 1))


def test_what_a_request_is_expected_to_take():
    one = 0.1 * 50.0 + 0.9 * (300 * 0.4 + 600 * 0.001) / 900
    assert expected(FOUND, REQUESTS, 1, 1, 1000) == pytest.approx(one)
    assert expected(FOUND, REQUESTS, 1, 1, 1000, person=True) == pytest.approx(one)
    spared = 0.9**20
    assert expected(FOUND, REQUESTS, 1, 20, 1000) == pytest.approx((1.0 - spared) * 50.0 + spared * 0.8)
    assert expected(FOUND, REQUESTS, 1, 20, 1000, person=True) == pytest.approx(0.1 * 50.0 + 0.9 * 0.8)


def test_shards_beyond_the_first_take_their_part_of_a_fit():
    rng = np.random.default_rng(0)
    drawn = np.where(rng.random((200_000, 5)) < 0.1, rng.integers(1, 5, (200_000, 5)), 0)  # 0: outside the core
    touched = np.array([[(row == shard).any() for shard in range(1, 5)] for row in drawn[:20_000]]).sum(1)
    cost = np.where(touched > 0, 50.0 + (touched - 1) * 48.0 / 4, 0.5)
    assert expected(FOUND, REQUESTS, 4, 5, 1000) == pytest.approx(cost.mean(), rel=0.02)


def test_without_a_core_only_heads_move():
    assert expected({**FOUND, "core": 0}, REQUESTS, 1, 20, 1000) == 0.8


def test_a_small_lab_measures_every_kind_of_case(measured, lab):
    content = measured["public-weights"]
    assert content["runs"] == 2
    others = ("C, public weights", "C, from scratch", RIDGE_HEAD, SISA, RANKED)
    pieces = {name: piece for name, piece in content["pieces"].items() if name not in others}
    assert list(pieces) == [case.name for case in cases(lab.profile)]
    for case in cases(lab.profile):
        piece = pieces[case.name]
        assert sum(piece[kind] for kind in KINDS) == RECORDS
        assert (piece["core"] == 0) == (case.share == 0.0)
        assert ("requests" in piece) == case.timed
        if case.asked:
            assert (case.share in ASKED, piece["requests"]["core"]["guarantee"]) == (True, "exact-retrain")
            assert "sha256" in piece["requests"]["core"]["conditions"][0]
    sisa, ridge = content["pieces"][SISA], content["pieces"][RIDGE_HEAD]
    assert 0.0 < ridge["accuracy"] <= 1.0
    assert sisa["accuracy"] >= max(sisa["of one part"]) - 0.2
    assert len(sisa["seconds"]) == sisa["parts"] == 2
    ranked = content["pieces"][RANKED]
    assert all(sum(ranked[name][kind] for kind in KINDS) == RECORDS for name in ("most often", "middle"))
    assert ranked["most often"]["free"] >= ranked["middle"]["free"]
    points = {point["row"]: point for point in content["work"]}
    assert all(set(point["expected"]) == set(map(str, PEOPLE)) for point in points.values())
    assert [point["share"] for point in lines_of(content["work"])["public weights"]] == [0.0, 0.4, 1.0]


def test_where_time_runs_out_the_result_is_of_the_cases_until_then(measured, lab, tmp_path):
    whole, first = measured["public-weights"], cases(lab.profile)[0]
    kept = {name: piece for name, piece in whole["pieces"].items() if name in (first.name, "C, public weights")}
    made = {name: whole["made"][name] for name in kept}
    late = replace(lab, out=tmp_path, clock=Clock(ends=0.0, begun=True))
    late.results("public-weights").write({"setting": late.setting, "made": made, "pieces": kept})
    with pytest.raises(OutOfTimeError):
        measure(late)
    assert list(late.results("public-weights").read()["cells"]) == [first.row]


def test_no_record_that_is_not_core_decides_c(tmp_path):
    lab, case = tiny_lab(tmp_path), Case(PUBLIC, 0.4, 0)
    core = HashCore(case.share, key=key_of(lab, case)).is_core(lab.training.ids)
    labels = np.where(core, lab.training.labels, (lab.training.labels + 1) % len(lab.training.class_names))
    others = replace(lab, training=replace(lab.training, labels=labels))
    assert not np.array_equal(others.training.labels, lab.training.labels)
    assert choose_penalty(others, case) == choose_penalty(lab, case)


def test_the_largest_c_of_the_best_is_taken(measured):
    chosen = measured["public-weights"]["pieces"]["C, public weights"]
    assert str(chosen["C"]) in chosen["accuracy"]
    best = max(chosen["accuracy"].values())
    assert chosen["C"] == max(float(C) for C, value in chosen["accuracy"].items() if value == best)


def test_networks_have_the_features_that_are_told():
    images = torch.rand(2, 3, 32, 32)
    network = public_networks.ResNet9((3, 32, 32), 7)
    assert network(images).shape == (2, 7)
    assert sum(weights.numel() for weights in network.parameters()) == 6_571_591
    halved = public_networks.Halve()(images)
    assert torch.equal(halved, torch.nn.functional.max_pool2d(images, 2))
    once, again = (public_networks.stand_in((1, 8, 8), 3).state_dict() for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in once)


def test_a_record_taken_off_a_ridge_head_leaves_the_head_of_the_others():
    numbers = np.random.default_rng(0)
    X, labels = torch.from_numpy(numbers.normal(size=(60, 7))), numbers.integers(0, 3, 60)
    Y, ridge, kept = one_hot(labels, 3), 0.5 * torch.eye(7, dtype=torch.float64), np.arange(4, 60)
    fitted = torch.linalg.inv(X.T @ X + ridge), X.T @ Y
    weights, _, _ = without(*fitted, X[:4], Y[:4])
    anew = torch.linalg.solve(X[kept].T @ X[kept] + ridge, X[kept].T @ Y[kept])
    assert torch.allclose(weights, anew, rtol=1e-12, atol=1e-12)
