"""Scores of all models by all attacks, on views that were made up: who had the records is known here."""

import functools
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from maxrr.audit import attacks as signals
from maxrr.audit.attacks import ATTACKS, Labels, Signals, Threshold, View, lira, rmia, values_to_rank
from maxrr.audit.auditing import judge, most_exposed
from maxrr.audit.findings import ALL, ALPHA, FOUND, INDISTINGUISHABLE, AttackResult
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED
from tests.audit.problems import CLASSES, constant, evidence_of, finding_on, made_up

LABELS = Labels(*(np.random.default_rng(0).integers(CLASSES, size=count) for count in (6, 40, 50)))
STRONG = ("lira", "rmia")
RECORDS, POPULATION = np.arange(6), np.arange(50)


def views(count, sure=0.0, seed=1):
    """Of models that are so much surer of the forgotten records."""
    random = np.random.default_rng(seed)
    return [made_up(random, LABELS, sure) for _ in range(count)]


def evidence(with_records=24, retrained=24, sure=2.0):
    return evidence_of(views(with_records, sure), views(retrained, seed=2), LABELS)


def audited_view(sure, seed=99):
    return views(1, sure, seed)[0]


def audited(sure, seed=99):
    return Signals.of(audited_view(sure, seed), LABELS)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_row_for_each_model_and_a_column_for_each_record(attack):
    known = evidence(5, 7)
    scores = known.scores(attack, audited(0.0))
    assert scores.shape == (8, 6)
    assert np.isfinite(scores).all()
    assert values_to_rank(attack, scores).shape == (8, 6)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_model_that_had_the_records_scores_higher(attack):
    """By every attack, than all that never had them; one that never had them does not."""
    known = evidence(sure=4.0)
    knows = values_to_rank(attack, known.scores(attack, audited(4.0))).mean(axis=1)
    never = values_to_rank(attack, known.scores(attack, audited(0.0))).mean(axis=1)
    assert knows[0] >= knows[1:].max()
    assert knows[0] > np.median(knows[1:])
    assert never[0] <= never[1:].max()


@pytest.mark.parametrize("attack", [*STRONG, "threshold"])
def test_to_remember_better_is_never_to_be_found_less(attack):
    """Also far beyond what models remember that had the records once."""
    known, view = evidence(), audited_view(0.0)
    found = []
    for doubt in (0.5, 0.1, 1e-2, 1e-4, 1e-8):
        sure = np.full(view.forgotten.shape, doubt / (CLASSES - 1))
        sure[RECORDS, LABELS.forgotten] = 1 - doubt
        model = Signals.of(replace(view, forgotten=sure), LABELS)
        found.append(known.scores(attack, model)[0].mean())
    assert found == sorted(found)
    assert found[0] < found[-1]


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_audited_model_is_treated_as_the_retrained_ones_are(attack):
    """Change places with one of them, and the scores do."""
    had, (other, *rest), view = views(6, 2.0), views(6, seed=2), audited_view(1.0)
    scores = evidence_of(had, [other, *rest], LABELS).scores(attack, Signals.of(view, LABELS))
    swapped = evidence_of(had, [view, *rest], LABELS).scores(attack, Signals.of(other, LABELS))
    np.testing.assert_allclose(swapped[[1, 0, *range(2, 7)]], scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_order_of_models_and_of_records_does_not_matter(attack):
    random = np.random.default_rng(3)
    orders = {part.name: random.permutation(len(getattr(LABELS, part.name))) for part in fields(Labels)}
    labels = Labels(**{name: getattr(LABELS, name)[order] for name, order in orders.items()})

    def turned(view):
        return View(
            **{name: getattr(view, name)[order] for name, order in orders.items()},
            relearned=view.relearned[orders["forgotten"]],
        )

    had, retrained, view, models = views(6, 2.0), views(6, seed=2), audited_view(1.0), random.permutation(6)
    scores = evidence_of(had, retrained, LABELS).scores(attack, Signals.of(view, LABELS))
    shuffled = evidence_of([turned(one) for one in had[::-1]], [turned(retrained[row]) for row in models], labels)
    found = shuffled.scores(attack, Signals.of(turned(view), labels))
    np.testing.assert_allclose(found[0], scores[0, orders["forgotten"]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1:], scores[1:][models][:, orders["forgotten"]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_model_in_question_is_no_evidence_against_itself(attack):
    """One of those with the records is scored as if it had never been among them."""
    had, retrained = views(6, 2.0), views(6, seed=2)
    known, alone = evidence_of(had, retrained, LABELS), evidence_of(had[:2] + had[3:], retrained, LABELS)
    suspect = Signals.of(had[2], LABELS)
    assert np.array_equal(known.scores(attack, suspect, without=2), alone.scores(attack, suspect))


def test_lira_is_on_losses_less_those_of_test_records():
    """By all models but the one in question."""

    def signals_of(view):
        of_test = np.mean(signals.cross_entropy(view.test, LABELS.test))
        return of_test - signals.cross_entropy(view.forgotten, LABELS.forgotten)

    had, retrained, view = views(6, 2.0), views(7, seed=2), audited_view(1.0)
    unseen, seen = (np.array([signals_of(one) for one in side]) for side in ([view, *retrained], had))
    found = evidence_of(had, retrained, LABELS).scores("lira", Signals.of(view, LABELS))
    np.testing.assert_allclose(found, lira(unseen, seen), rtol=1e-6, atol=1e-9)


def test_the_population_of_rmia_are_the_test_records():
    had, retrained, view = views(6, 2.0), views(7, seed=2), audited_view(1.0)
    rows = [view, *retrained]
    p_x = [np.array([one.forgotten[RECORDS, LABELS.forgotten] for one in side]) for side in (rows, had)]
    p_z = [np.array([one.test[POPULATION, LABELS.test] for one in side]) for side in (rows, had)]
    found = evidence_of(had, retrained, LABELS).scores("rmia", Signals.of(view, LABELS))
    np.testing.assert_allclose(found, rmia(*p_x, *p_z), atol=1e-12)


def test_the_threshold_is_the_models_own():
    view, known = audited_view(1.0), evidence(3, 3)
    attack = Threshold.fit(
        signals.cross_entropy(view.retained, LABELS.retained), signals.cross_entropy(view.test, LABELS.test)
    )
    claimed = signals.cross_entropy(view.forgotten, LABELS.forgotten) < attack.threshold
    scores = known.scores("threshold", Signals.of(view, LABELS))
    assert (scores[0] > 0.0).tolist() == claimed.tolist()
    assert values_to_rank("threshold", scores)[0].tolist() == claimed.tolist()


def test_a_threshold_that_calls_everybody_a_member_is_a_number():
    """Where members have the larger losses, the best that it can do is to call all or none."""
    view = audited_view(0.0)
    certain = np.full(view.test.shape, 1e-3)
    certain[POPULATION, LABELS.test] = 1 - 1e-3 * (CLASSES - 1)
    found = Signals.of(replace(view, test=certain), LABELS).beyond_threshold
    assert np.isfinite(found).all()


def surer(part, labels, by):
    """The same probabilities with larger logits of the true classes."""
    rows = np.arange(len(part))
    p = part[rows, labels]
    odds = p / (1 - p) * np.exp(by)
    raised = part * (1 / (1 + odds) / (1 - p))[:, None]
    raised[rows, labels] = odds / (1 + odds)
    return raised


def test_to_be_surer_of_everything_says_nothing_about_the_records():
    """To LiRA, which compares with test records; the bare losses would be deceived."""
    known, view = evidence(6, 6), audited_view(1.0)
    forgotten, test = surer(view.forgotten, LABELS.forgotten, 0.7), surer(view.test, LABELS.test, 0.7)
    one, other = (Signals.of(each, LABELS) for each in (view, replace(view, forgotten=forgotten, test=test)))
    assert (
        known.scores("lira", other)[0].mean() - known.scores("lira", one)[0].mean() < 0.3
    )  # half of that is too little
    assert (other.losses < one.losses).all()


# Models that always say the same


@pytest.mark.parametrize("attack", ATTACKS)
def test_constant_models_give_chance(attack):
    same = constant(LABELS)
    known = evidence_of([same] * 24, [same] * 24, LABELS)
    found = AttackResult.of(attack, known.scores(attack, Signals.of(same, LABELS)))
    assert found.p_value == 1.0
    assert (found.curve.auc, found.curve.balanced_accuracy) == (0.5, 0.5)
    assert found.curve.auc_of_retrained == (0.5, 0.5)
    assert (found.curve.tpr_at_1, found.curve.tpr_at_01) == (0.0, 0.0)


def test_constant_models_tell_members_from_nobody():
    same = constant(LABELS)
    assert (Signals.of(same, LABELS).beyond_threshold <= 0.0).all()  # all are claimed unlearned


# From scores to a finding

CASE = SimpleNamespace(
    forgotten=SimpleNamespace(labels=LABELS.forgotten, ids=RECORDS, class_names=("a", "b", "c")),
    retained=SimpleNamespace(labels=LABELS.retained), sample=np.arange(40), test=SimpleNamespace(labels=LABELS.test),
    fitted=SimpleNamespace(key=b"key"), touches_core=True,
)  # fmt: skip


@functools.cache
def about_one(sure):
    """What is said of a model that is so sure of the records."""
    return about(audited_view(sure, 5))


def about(after):
    """What is said of a model, beside models that are sure of records that they had."""
    targets = {
        "before": audited_view(4.0),
        "after": after,
        "retrained": audited_view(0.0, 6),
    }
    made = {BEFORE: views(24, 4.0, 3), KEPT: views(24, 4.0), RETRAINED: views(39, seed=2)}
    return judge(CASE, made, targets)


@pytest.mark.parametrize(("sure", "words"), [(0.0, INDISTINGUISHABLE), (4.0, FOUND)])
def test_the_finding_is_on_what_the_model_knows(sure, words):
    found = about_one(sure)
    assert found["finding"].words == words
    assert found["finding"].power[ALL].rate > 0.9
    assert set(found["attacks"]) == set(ATTACKS)
    for attack in STRONG:
        before = found["attacks"][attack]["before"].curve
        assert before.auc > 0.9
        assert before.auc > before.auc_of_retrained[1]


def test_the_others_do_not_change_the_finding():
    view = audited_view(0.0, 5)
    shouting = about(replace(view, relearned=view.relearned + 1e3))
    assert shouting["attacks"]["features"]["after"].p_value == 1 / 40
    assert shouting["finding"] == about_one(0.0)["finding"]


def test_power_is_of_the_models_that_the_question_is_about():
    """Extractors that saw core records, below heads fitted again; beside it the most that can be hoped for."""
    targets = {name: audited_view(0.0, seed) for seed, name in enumerate(("before", "after", "retrained"), 5)}
    made = {BEFORE: views(24, 4.0, 3), KEPT: views(24, 0.5, 4), RETRAINED: views(39, seed=2)}
    found = judge(CASE, made, targets)["finding"]
    assert found.power[ALL].rate < 0.3
    assert found.at_most.rate > 0.9


def test_the_most_exposed_record_is_the_one_that_is_remembered():
    scores = np.random.default_rng(4).normal(size=(40, len(LABELS.forgotten)))
    scores[0, 4] = 9.0
    found = most_exposed(CASE, scores)
    assert len(found) == 6
    assert found[0].score == max(one.score for one in found) == 9.0
    assert found[0].p_value == min(one.p_value for one in found) == 1 / 40
    assert found[0].class_name == CASE.forgotten.class_names[LABELS.forgotten[4]]
    assert all(one.p_value <= one.corrected for one in found)


def test_a_record_that_is_shunned_stands_out_as_one_that_is_remembered():
    scores = np.random.default_rng(3).normal(size=(20, len(LABELS.forgotten)))
    scores[0, 1] = -9.0
    first, *others_ = most_exposed(CASE, scores)
    assert (first.score, first.p_value, first.corrected) == (-9.0, 0.05, 0.05)
    assert min(other.corrected for other in others_) > 0.05


def test_the_most_exposed_of_many_is_nobody_where_all_are_honest():
    """Of so many records some stand out by chance; corrected for that, one model in twenty has any that do."""
    known = evidence()
    found = [most_exposed(CASE, known.scores("lira", Signals.of(view, LABELS))) for view in views(60, seed=21)]
    alone = sum(min(one.p_value for one in of_model) <= ALPHA for of_model in found)
    corrected = sum(min(one.corrected for one in of_model) <= ALPHA for of_model in found)
    assert alone > corrected
    assert corrected <= binom.isf(1e-3, 60, ALPHA)


@pytest.mark.parametrize("count", [25, pytest.param(60, marks=pytest.mark.long)])
def test_of_models_that_are_treated_alike_no_more_can_be_flagged_than_stated(count):
    """Whatever they say: each in turn is the audited one, and one in twenty at most is odd among the others."""
    had, models = views(4, 1.0), views(count, seed=2)
    flagged = sum(
        finding_on(view, evidence_of(had, models[:number] + models[number + 1 :], LABELS), LABELS).words == FOUND
        for number, view in enumerate(models)
    )
    assert 0 < flagged <= ALPHA * count
