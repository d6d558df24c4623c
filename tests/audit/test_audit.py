"""The auditor audits itself: models that kept what they say they forgot, honest ones, and such as say nothing."""

import json

import numpy as np
import pytest
from scipy.stats import betabinom, binom
from tests.audit.problems import (
    CLASSES,
    ENOUGH,
    FEW,
    NOISY,
    TEST,
    TRAINING,
    WRONG,
    Asked,
    asked,
    contents,
    core,
    fitted,
    keeping_secretly,
    shadows_of,
    verdict_on,
)  # fmt: skip
from tests.unlearning.problems import fresh, kinds

from maxrr.audit import ATTACKS, audit
from maxrr.audit.evidence import STRONG
from maxrr.audit.shadows import RETRAINED
from maxrr.audit.verdicts import ALPHA, FOUND, INDISTINGUISHABLE
from maxrr.core import HashCore
from maxrr.unlearning import MaxRR
from maxrr.unlearning.oblivion import id_mark

CORE_IDS = core()[[1, 3, 5]]
MODELS = {"before", "after", "retrained", "all"}


@pytest.fixture(scope="module")
def plain():
    """A report on a core request, with all attacks."""
    now = asked(CORE_IDS)
    return now, audit(*now, attacks=ATTACKS, shadows=FEW)


# What must be found, and what must not


def test_a_core_record_that_was_kept_and_repeated_is_found():
    """A wrongly labelled one, since no audit can find what a model would have known anyway."""
    honest = asked(WRONG[[2]], "overfitted", core_policy="retrain")
    secret = keeping_secretly(honest, times=50)
    found = audit(*secret, shadows=ENOUGH, attacks=STRONG)
    assert found.verdict.words == FOUND
    assert (found.guarantee, found.records) == ("exact-retrain", 1)  # so the receipt says
    for attack in STRONG:
        after, retrained = (found.findings[attack][name].statistic for name in ("after", "retrained"))
        assert after > retrained


def test_an_overfitted_extractor_is_found_out_and_retraining_is_not():
    """Every record is core, and training went on until wrong labels were learned: to refit the head is not enough.

    Of ten honest models more would be flagged with a chance of 1e-3 at the stated rate. They share those that they are
    compared with, so the rate is itself drawn: that of being above the largest of so many.
    """
    now = asked(WRONG[:6], "overfitted")
    evidence, maker = shadows_of(now)
    others = range(10)
    head_only = [
        view
        for seed, extractor in maker.extractors(maker.case.core_before, others)
        for _, view in maker.seen(extractor, [RETRAINED], seed)
    ]
    honest = [view for _, _, view in maker.views((RETRAINED,), others)]
    assert fitted("overfitted").score(NOISY) > 0.9
    assert verdict_on(maker.own(now.model), evidence).words == FOUND
    assert sum(verdict_on(view, evidence).words == FOUND for view in head_only) >= 9
    flagged = sum(verdict_on(view, evidence).words == FOUND for view in honest)
    assert flagged <= betabinom.isf(1e-3, 10, 1, len(evidence.retrained))


def test_ten_honest_models_are_not_flagged_more_often_than_stated():
    """Each with a seed and records of its own. More would happen with a chance of 1e-3 at the stated rate."""
    flagged = 0
    for seed in range(10):
        model = fresh(HashCore(0.5, key="house"), TRAINING, seed=100 + seed).fit(TRAINING)
        ids = np.random.default_rng(seed).choice(np.sort(TRAINING.ids), 4, replace=False)
        receipt = model.unlearn(ids, core_policy="retrain")
        evidence, maker = shadows_of(Asked(model, receipt, TRAINING.select(ids), TEST), had=3)
        flagged += verdict_on(maker.own(model), evidence).words == FOUND
    assert flagged <= binom.isf(1e-3, 10, ALPHA)


class Constant(MaxRR):
    """It says the same of everybody."""

    def predict_proba(self, X):
        return np.full((len(X), CLASSES), 1 / CLASSES)


def test_a_constant_model_gives_chance():
    now = asked(CORE_IDS)
    model = Constant(**now.model.get_params())
    model._state = now.model._state
    found = audit(model, now.receipt, now.forgotten, now.test, shadows=FEW, attacks=ATTACKS)
    assert found.others.auc_after == 0.5
    assert found.claimed_unlearned["after"] == 1.0
    assert found.findings["threshold"]["after"].statistic == 0.0
    assert found.findings["loss"]["after"].statistic == pytest.approx(-np.log(CLASSES))
    assert found.findings["entropy"]["after"].statistic == pytest.approx(-np.log(CLASSES))
    assert found.distances["divergence of probabilities"].value > found.distances["divergence of probabilities"].mean


# Exact guarantees


def test_a_record_that_shaped_nothing_leaves_nothing_to_find():
    """With a frozen extractor: models with and without it are the same but for their probabilities' scale."""
    _, _, free = kinds(fitted("frozen"), TRAINING)
    now = asked(free[:3], "frozen")
    assert now.receipt.guarantee == "exact-untouched"
    assert now.model.model_hash_ == fitted("frozen").model_hash_
    found = audit(*now, shadows=ENOUGH, attacks=STRONG)
    assert found.verdict.words == INDISTINGUISHABLE
    assert found.verdict.power.flagged == 0
    assert "of 24 models that had them, 0 are found" in str(found)  # nobody should take comfort in the words alone


def test_a_frozen_extractor_is_told_about():
    _, influential, _ = kinds(fitted("frozen"), TRAINING)
    found = audit(*asked(influential[:5], "frozen"), shadows=ENOUGH, attacks=STRONG)
    assert found.guarantee == "exact-refit"
    assert found.verdict.words == INDISTINGUISHABLE
    assert found.verdict.power.flagged > 0
    assert any("frozen" in line and "proof says more" in line for line in found.assumed)
    assert found.findings["lira"]["all"] == found.findings["lira"]["retrained"]


NOT_CORE = np.setdiff1d(TRAINING.ids, core())


@pytest.mark.parametrize(
    ("ids", "kind", "policy", "guarantee"),
    [
        (CORE_IDS, "hash", "retrain", "exact-retrain"),
        (NOT_CORE[:5], "hash", "head", "exact-refit"),
        (TRAINING.ids[:5], "frozen", "head", "exact-refit"),
    ],
)
def test_what_is_exact_equals_retraining_by_every_attack(ids, kind, policy, guarantee):
    """Up to rounding, and so in every rank."""
    now = asked(ids, kind, core_policy=policy)
    assert now.receipt.guarantee == guarantee
    found = audit(*now, shadows=FEW, attacks=ATTACKS)
    for attack in ATTACKS:
        after, retrained = (found.findings[attack][name] for name in ("after", "retrained"))
        assert after.statistic == pytest.approx(retrained.statistic, rel=1e-6, abs=1e-9)
        assert after.p_value == retrained.p_value
        assert after.curve.auc == pytest.approx(retrained.curve.auc)
    assert found.claimed_unlearned["after"] == found.claimed_unlearned["retrained"]
    assert found.others.auc_after == pytest.approx(found.others.auc_retrained)


def test_what_is_approximate_does_not(plain):
    _, found = plain
    assert found.guarantee == "approximate-refit"
    assert found.findings["loss"]["after"].statistic != pytest.approx(found.findings["loss"]["retrained"].statistic)


# The report


def test_says_what_was_done(plain):
    now, found = plain
    assert (found.receipt, found.model_hash) == (now.receipt.number, now.model.model_hash_)
    assert (found.records, found.with_records, found.retrained) == (3, FEW // 2, FEW // 2)
    assert set(found.findings) == set(ATTACKS)
    assert all(set(of_models) == MODELS for of_models in found.findings.values())
    assert set(found.claimed_unlearned) == MODELS
    assert set(found.by_class) == {TRAINING.class_names[label] for label in now.forgotten.labels}
    assert found.others.records == len(TRAINING) - 3
    assert found.environment["device"] == "cpu"
    assert str(found).startswith("not enough evidence (needs about 40 more shadow models): p = ")
    curves = [one.curve for of_models in found.findings.values() for one in of_models.values()]
    for curve in curves:
        assert 0.0 <= curve.auc_interval[0] <= curve.auc_interval[1] <= 1.0
        assert curve.tpr_at_01 <= curve.tpr_at_1 <= curve.tpr[-1] == curve.fpr[-1] == 1.0
        assert curve.fpr == sorted(curve.fpr)
        assert curve.tpr == sorted(curve.tpr)
        assert (curve.fpr[0], curve.tpr[0]) == (0.0, 0.0)


def test_names_records_by_their_marks_only(plain):
    now, found = plain
    assert {one.mark for one in found.exposed} == set(now.receipt.record_marks)
    classes = {id_mark(now.model._fitted.key, int(id_)).hex(): TRAINING.class_names[label]
               for id_, label in zip(now.forgotten.ids, now.forgotten.labels, strict=True)}  # fmt: skip
    assert {one.mark: one.class_name for one in found.exposed} == classes
    text = found.to_json()
    assert not [id_ for id_ in now.forgotten.ids if str(id_) in text]
    assert now.model._fitted.key.hex() not in text
    p_values = [one.p_value for one in found.exposed]
    assert p_values == sorted(p_values)


def test_json_is_valid_and_complete(plain):
    """Without NaN or infinity, which JSON does not know."""

    def refuse(name):
        raise ValueError(name)

    _, found = plain
    read = json.loads(found.to_json(), parse_constant=refuse)
    assert read["words"] == str(found.verdict)
    assert read["verdict"]["p_value"] == found.verdict.p_value
    assert read["findings"]["lira"]["after"]["curve"]["auc"] == found.findings["lira"]["after"].curve.auc
    assert set(read) == {*vars(found), "words"}


def test_the_same_again_is_the_same_report(plain):
    now, found = plain
    assert contents(audit(*now, attacks=ATTACKS, shadows=FEW)) == contents(found)


def test_the_order_of_rows_does_not_matter(plain):
    now, found = plain
    again = audit(
        now.model, now.receipt, now.forgotten.select(CORE_IDS[::-1]), TEST.select(TEST.ids[::-1]), attacks=ATTACKS,
        shadows=FEW,
    )  # fmt: skip
    assert contents(again) == contents(found)


def test_fewer_attacks_say_the_same_of_what_they_say(plain):
    now, found = plain
    fewer = audit(*now, attacks=("rmia", "lira"), shadows=FEW)
    assert fewer.findings == {attack: found.findings[attack] for attack in ("rmia", "lira")}
    assert (fewer.verdict.words, fewer.verdict.p_value) == (found.verdict.words, found.verdict.p_value)


def test_an_odd_shadow_model_is_retrained(plain):
    now, _ = plain
    found = audit(*now, attacks=("lira",), shadows=FEW + 1)
    assert (found.with_records, found.retrained) == (FEW // 2, FEW // 2 + 1)


def test_a_single_record_has_a_p_value_and_no_curve():
    found = audit(*asked(core()[:1]), attacks=ATTACKS, shadows=FEW)
    assert found.records == 1
    for of_models in found.findings.values():
        assert {one.curve for one in of_models.values()} == {None}
        assert all(0.0 < one.p_value <= 1.0 for one in of_models.values())
    assert found.by_class == {}
    assert len(found.exposed) == 1
    assert json.loads(found.to_json())["findings"]["lira"]["after"]["curve"] is None


@pytest.mark.parametrize("policy", ["head", "retrain"])
def test_a_whole_class_may_be_forgotten(policy):
    """Retrained models give it no chance at all, and neither does the audited one."""
    now = asked(TRAINING.ids[TRAINING.labels == 1], core_policy=policy)
    found = audit(*now, attacks=ATTACKS, shadows=FEW)
    assert found.claimed_unlearned["after"] == found.claimed_unlearned["retrained"] == 1.0
    losses = {name: -one.statistic for name, one in found.findings["loss"].items()}
    assert losses["after"] == losses["retrained"] > 100.0 > 2.0 > losses["before"]
    assert found.findings["loss"]["after"].p_value == 1.0
    assert set(found.by_class) == {"kind 1"}


def test_extractors_that_saw_more_are_told_about():
    now = asked(CORE_IDS)
    now.model.unlearn(core()[[0]])
    assert any("also saw 1 core records" in line for line in audit(*now, shadows=FEW, attacks=("lira",)).assumed)


# Progress and interruptions


def test_progress_counts_all_shadow_models():
    seen = []
    audit(*asked(NOT_CORE[:2]), shadows=FEW, attacks=("lira",), report=lambda *now, **numbers: seen.append(now))
    assert [now for now in seen if now[0] == "shadow models"] == [
        ("shadow models", done, FEW) for done in range(1, FEW + 1)
    ]
    assert len(seen) > FEW


@pytest.mark.parametrize("stop", [3, 6])
def test_an_interrupted_audit_goes_on_to_the_same_report(tmp_path, plain, stop):
    now, found = plain

    def interrupt(what, done, total, **numbers):
        if what == "shadow models" and done == stop:
            raise KeyboardInterrupt

    folder = tmp_path / "audit"
    with pytest.raises(KeyboardInterrupt):
        audit(*now, attacks=ATTACKS, shadows=FEW, folder=folder, report=interrupt)
    assert any(folder.rglob("*.npz"))
    assert contents(audit(*now, attacks=ATTACKS, shadows=FEW, folder=folder)) == contents(found)
    assert not folder.exists()


def test_a_folder_of_the_caller_keeps_what_is_his(tmp_path, plain):
    now, found = plain
    (tmp_path / "mine.txt").write_text("mine")
    assert contents(audit(*now, attacks=ATTACKS, shadows=FEW, folder=tmp_path)) == contents(found)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
