"""Distances to retraining: EasyDUB's own numbers, naive oracles, and cases whose answer is known."""

import numpy as np
import pytest

from lab.compare.measures import SIDES, Answers, audited, claimed, compare, klom, p_of, scored, tug_of_war, u_lira
from maxrr.audit import audit_predictions
from maxrr.audit.findings import FOUND

# What `klom_from_margins` of easydub/eval.py (github.com/easydub/EasyDUB-code at 5de3c4c) makes of `margins()`, in both
# directions. Its record 6 is 0 although the models have nothing in common: the largest margin is in no bin.
EASYDUB = (
    [0.9149719571606438, 5.016201917361923, 10.673583831366003, 0.0, 8.662262001288617, 1.7175960894876823, 0.0,
     1.4300965544724757],
    [1.2660690255768805, 4.372792745176721, 10.47320469413031, 0.0, 3.60108350262548, 5.047757582277903,
     11.512925464970229, 4.825230627795394],
)  # fmt: skip


def margins():
    """Of unlearned and of retrained models: alike, apart, all the same, beyond the clip, and in heaps."""
    random = np.random.default_rng(41)
    unlearned, retrained = random.normal(2.0, 1.5, (2, 40, 8))
    unlearned[:, 1] += 3.0
    unlearned[:, 2] += 40.0
    unlearned[:, 3], retrained[:, 3] = 1.25, 1.25
    unlearned[:, 4] *= 90.0
    retrained[:20, 5] -= 8.0
    unlearned[:, 6], retrained[:, 6] = 7.0, -7.0
    unlearned[:, 7] = np.round(unlearned[:, 7])
    return unlearned, retrained


@pytest.mark.parametrize("direction", [0, 1])
def test_klom_is_easydubs(direction):
    unlearned, retrained = margins()[:: 1 - 2 * direction]
    assert klom(unlearned, retrained) == pytest.approx(EASYDUB[direction], abs=1e-12)


@pytest.mark.parametrize(("models", "floor"), [(39, 2.4), (100, 0.65)])
def test_the_floor_of_retrained_against_retrained(models, floor):
    """As the issue of this comparison says it, for margins that are Gaussian."""
    found = klom(*np.random.default_rng(0).normal(size=(2, models, 2_000)))
    assert np.quantile(found, 0.95) == pytest.approx(floor, rel=0.05)


@pytest.mark.parametrize(("share", "likely"), [(1.0, (0.05, 1.0)), (0.0, (0.0, 0.02)), (2.0, (0.0, 0.02))])
def test_swapping_tells_who_is_nearer_to_retraining(share, likely):
    """Models that keep this share of what nothing done leaves; half of what is else about a model is its original's."""
    random = np.random.default_rng(3)
    retrained, own, before = random.normal(size=(3, 60, 100))
    trace = np.abs(random.normal(size=100))
    low, high = likely
    assert low <= p_of(share * trace + (own + before) / 2**0.5, trace + before, retrained) <= high
    assert p_of(before, before, retrained) == 1.0


def test_of_many_records_some_are_swapped():
    random = np.random.default_rng(4)
    three = random.normal(size=(3, 20, 1_000)) + np.array([0.5, 0.0, 0.0])[:, None, None]
    assert p_of(*three) == p_of(*three[:, :, ::5])


def test_scores_are_those_of_models_scored_by_all_others_one_by_one():
    unlearned, retrained = np.random.default_rng(1).normal(size=(2, 6, 3)) * [1.0, 2.0, 0.3]
    found = scored(unlearned, retrained)
    for model in range(6):
        rest = np.delete(unlearned, model, axis=0)
        for record in range(3):
            ours, theirs = (
                -0.5 * ((unlearned[model, record] - some.mean()) ** 2 / some.var(ddof=1) + np.log(some.var(ddof=1)))
                for some in (rest[:, record], retrained[:, record])
            )
            assert found[model, record] == pytest.approx(ours - theirs)


def test_u_lira_tells_what_is_apart_and_not_what_is_alike():
    random = np.random.default_rng(2)
    alike, apart = random.normal(size=(2, 50, 40)), random.normal([[[0.0]], [[9.0]]], 1.0, (2, 50, 40))
    assert u_lira(*alike)["auc"] == pytest.approx(0.5, abs=0.05)
    assert u_lira(*alike)["tpr at 1 % fpr"] < 0.05
    assert u_lira(*apart) == {"tpr at 1 % fpr": 1.0, "auc": 1.0}


def answers(seed, models=24, shift=0.0, records=30):
    random = np.random.default_rng(seed)
    found = {side: random.normal(1.0, 1.0, (models, records)) for side in SIDES}
    found["forgotten"] += shift
    return Answers(found, {side: each > 0.0 for side, each in found.items()}, random.normal(shift, 1.0, (models, 30)))


def test_tug_of_war_is_one_with_itself_and_a_product_of_differences():
    one = answers(0)
    assert tug_of_war(one, one).tolist() == [1.0] * 24
    wrong = Answers(one.margins, {**one.right, "test": ~one.right["test"]}, one.relearned)
    expected = 1.0 - np.abs(2.0 * one.accuracy("test") - 1.0)
    assert tug_of_war(wrong, one) == pytest.approx(expected)


def test_forgotten_records_are_claimed_unlearned_if_their_loss_is_large():
    one = answers(1)
    one.margins["retained"] += 20.0
    for shift, share in ((40.0, 0.0), (-40.0, 1.0)):
        assert claimed(Answers({**one.margins, "forgotten": one.margins["forgotten"] + shift}, one.right,
                               one.relearned)).tolist() == [share] * 24  # fmt: skip


def test_all_measures_are_there_and_the_audit_finds_what_was_kept():
    retrained, remembering = answers(2), answers(3, shift=3.0)
    found = compare(answers(4, shift=3.0), retrained, remembering)
    assert found["audit"] == {FOUND: 24}
    assert found["klom"]["forgotten"]["95th"] > found["klom"]["test"]["95th"]
    assert found["features"]["auc"] > 0.9
    assert audited(remembering, answers(5, models=8), remembering) == {}


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_audits_of_many_models_are_those_of_each_alone(shift):
    mine, retrained, remembering = answers(1, 6, shift), answers(2), answers(3, shift=2.0)

    def said(some):
        margin = np.concatenate([some.margins["forgotten"], some.margins["test"]], axis=1)
        true = 1.0 / (1.0 + np.exp(-margin))
        return np.stack([true, 1.0 - true], axis=2)

    true, gone = np.zeros(60, dtype=int), np.arange(60) < 30
    alone = [audit_predictions(p, said(retrained), said(remembering), true, gone).words for p in said(mine)]
    assert audited(mine, retrained, remembering) == {word: alone.count(word) for word in set(alone)}
