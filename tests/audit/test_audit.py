"""The auditor audits itself: models that kept what they say they forgot, honest ones, and such as say nothing."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from maxrr.audit import AuditReport, audit
from maxrr.audit.attacks import ATTACKS, FEATURES, Signals
from maxrr.audit.auditing import labels_of
from maxrr.audit.findings import ALL, FEWEST, is_found
from maxrr.audit.shadows import LEAST, with_and_without
from maxrr.core import HashCore
from maxrr.data import DataError
from maxrr.unlearning import MaxRR
from maxrr.unlearning.tombstones import id_hmac
from tests.audit.problems import (
    CLASSES,
    FEW,
    TEST,
    TRAINING,
    WRONG,
    asked,
    contents,
    core,
    shadows_of,
)  # fmt: skip
from tests.cases import some
from tests.several_inputs import Text, texts

CORE_IDS = core()[[1, 3, 5]]
MODELS = {"before", "after", "retrained"}


@pytest.fixture(scope="module")
def plain():
    """A report on a core request, with all attacks."""
    now = asked(CORE_IDS)
    return now, audit(*now, shadows=FEW)


# What must be found, and what must not


class Constant(MaxRR):
    """It says the same of everybody."""

    def predict_proba(self, X):
        return np.full((len(X), CLASSES), 1 / CLASSES)


def test_too_few_models_to_show_anything_are_refused_before_they_are_made(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxrr.audit.shadows.LEAST", LEAST)
    for shadows in (0, FEW, LEAST - 1):
        with pytest.raises(ValueError, match=str(LEAST)):
            audit(*asked(CORE_IDS), shadows=shadows, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        audit(*asked(CORE_IDS), shadows=LEAST, progress=stop)
    assert with_and_without(LEAST)[1] >= FEWEST
    assert [with_and_without(number) for number in (32, 64, 65)] == [(13, 19), (25, 39), (26, 39)]


def test_a_constant_model_gives_chance():
    now = asked(CORE_IDS)
    model = Constant(**now.model.get_params())
    model._state = now.model._state
    found = audit(model, now.receipt, now.forgotten, now.test, shadows=FEW)
    assert found.claimed_unlearned["after"] == 1.0
    assert found.attacks["threshold"]["after"].statistic == 0.0
    assert found.attacks["threshold"]["after"].curve.auc == pytest.approx(0.5, abs=0.5)


# Exact guarantees


def test_with_a_frozen_extractor_there_is_nothing_to_rank_among():
    """Nothing is drawn in training: to retrain gives one model, and a replay compares with it."""
    with pytest.raises(DataError, match="replay compares"):
        audit(*asked(TRAINING.ids[:5], "frozen"), shadows=FEW)


OF_HEADS = [attack for attack in ATTACKS if attack != FEATURES]
NOT_CORE = np.setdiff1d(TRAINING.ids, core())


@pytest.mark.parametrize(
    ("ids", "kind", "policy", "guarantee"),
    [
        (CORE_IDS, "hash", "retrain", "exact-retrain"),
        (NOT_CORE[:5], "hash", "keep-extractor", "exact-refit"),
    ],
)
def test_what_is_exact_equals_retraining_by_every_attack(ids, kind, policy, guarantee):
    """Up to rounding, and so in every rank."""
    now = asked(ids, kind, core_policy=policy)
    assert now.receipt.guarantee == guarantee
    found = audit(*now, shadows=FEW)
    assert set(found.attacks) == set(ATTACKS if found.core_touched else OF_HEADS)
    for attack in found.attacks:
        after, retrained = (found.attacks[attack][name] for name in ("after", "retrained"))
        assert after.statistic == pytest.approx(retrained.statistic, rel=1e-6, abs=1e-9)
        assert after.p_value == retrained.p_value
        assert after.curve.auc == pytest.approx(retrained.curve.auc)
    assert found.claimed_unlearned["after"] == found.claimed_unlearned["retrained"]


def test_what_is_approximate_does_not(plain):
    _, found = plain
    assert found.guarantee == "approximate-refit"
    assert found.attacks["lira"]["after"].statistic != pytest.approx(found.attacks["lira"]["retrained"].statistic)


# The report


def test_says_what_was_done(plain):
    now, found = plain
    assert (found.receipt, found.model_hash) == (now.receipt.number, now.model.model_hash_)
    assert (found.records, found.core_touched) == (3, True)
    assert (found.finding.at_most.models, found.finding.retrained) == (4, 4)
    assert set(found.attacks) == set(ATTACKS)
    assert all(set(of_models) == MODELS for of_models in found.attacks.values())
    assert set(found.claimed_unlearned) == MODELS
    assert found.environment["device"] == "cpu"
    assert str(found).startswith("not enough evidence (4 retrained models can never show anything, 19 are the fewest")
    assert found.attacks["lira"]["after"].p_value == found.finding.p_value
    curves = [one.curve for of_models in found.attacks.values() for one in of_models.values()]
    for curve in curves:
        assert 0.0 <= curve.auc_of_retrained[0] <= curve.auc_of_retrained[1] <= 1.0
        assert curve.tpr_at_01 <= curve.tpr_at_1 <= curve.tpr[-1] == curve.fpr[-1] == 1.0
        assert curve.fpr == sorted(curve.fpr)
        assert curve.tpr == sorted(curve.tpr)
        assert (curve.fpr[0], curve.tpr[0]) == (0.0, 0.0)


def test_names_records_by_their_marks_only(plain):
    now, found = plain
    assert {one.tombstone for one in found.exposed} == set(now.receipt.tombstones)
    classes = {id_hmac(now.model._fitted.key, int(id_)).hex(): TRAINING.class_names[label]
               for id_, label in zip(now.forgotten.ids, now.forgotten.labels, strict=True)}  # fmt: skip
    assert {one.tombstone: one.class_name for one in found.exposed} == classes
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
    assert read["words"] == str(found.finding)
    assert read["finding"]["p_value"] == found.finding.p_value
    assert read["attacks"]["lira"]["after"]["curve"]["auc"] == found.attacks["lira"]["after"].curve.auc
    assert set(read) == {*vars(found), "format", "version", "words"}


def test_json_is_read_back_as_it_was(plain):
    """To draw the page again; what is none of ours is refused."""
    _, found = plain
    assert AuditReport.from_json(found.to_json()) == found
    for text, said in (
        ("[]", "not in the format"),
        ('{"format": "maxrr audit", "version": 2}', "version 2"),
        ('{"format": "maxrr audit", "version": 1}', "damaged"),
    ):
        with pytest.raises(ValueError, match=said):
            AuditReport.from_json(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"records": "many"}, {"seconds": None}, {"claimed_unlearned": {"a": "b"}}, {"assumed": "nothing"},
        {"core_touched": 1}, {"finding": {}},
    ],
)  # fmt: skip
def test_a_report_with_something_else_in_it_is_damaged(plain, changes):
    with pytest.raises(ValueError, match="damaged"):
        AuditReport.from_json(json.dumps(json.loads(plain[1].to_json()) | changes))


def test_the_same_again_is_the_same_report(plain):
    now, found = plain
    assert contents(audit(*now, shadows=FEW)) == contents(found)


def test_the_order_of_rows_does_not_matter(plain):
    now, found = plain
    again = audit(
        now.model, now.receipt, now.forgotten.select(CORE_IDS[::-1]), TEST.select(TEST.ids[::-1]),
        shadows=FEW,
    )  # fmt: skip
    assert contents(again) == contents(found)


def test_more_are_retrained_than_have_the_records(plain):
    """Ranks are among the former."""
    now, _ = plain
    found = audit(*now, shadows=FEW + 2)
    assert (found.finding.at_most.models, found.finding.retrained) == (4, 6)
    assert {power.models for power in (*found.finding.power.values(), found.finding.at_most)} == {4}


def test_a_single_record_has_a_p_value_and_no_curve():
    found = audit(*asked(core()[:1]), shadows=FEW)
    assert found.records == 1
    for of_models in found.attacks.values():
        assert {one.curve for one in of_models.values()} == {None}
        assert all(0.0 < one.p_value <= 1.0 for one in of_models.values())
    assert len(found.exposed) == 1
    assert json.loads(found.to_json())["attacks"]["lira"]["after"]["curve"] is None


@pytest.mark.long
@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
def test_a_whole_class_may_be_forgotten(policy):
    """Retrained models give it no chance at all, and neither does the audited one."""
    now = asked(TRAINING.ids[TRAINING.labels == 1], core_policy=policy)
    found = audit(*now, shadows=FEW)
    assert found.claimed_unlearned["after"] == found.claimed_unlearned["retrained"] == 1.0
    scores = {name: one.statistic for name, one in found.attacks["lira"].items()}
    assert scores["after"] == scores["retrained"] < scores["before"]
    assert found.attacks["lira"]["after"].p_value == 1.0


@pytest.mark.parametrize(
    ("first", "others"), [("keep-extractor", 1), pytest.param("retrain", 1, marks=pytest.mark.long)]
)
def test_extractors_that_saw_more_are_told_about(first, others):
    """Whether or not they saw the records of the receipt, too."""
    now = asked(CORE_IDS, core_policy=first)
    assert audit(*now, shadows=FEW).caveats == []
    now.model.unlearn(core()[[0]], core_policy="keep-extractor")
    said, _ = audit(*now, shadows=FEW).caveats
    assert f"also saw {others} core record of other requests" in said


def test_two_audits_of_one_receipt_do_not_take_each_others_work_away(tmp_path, plain):
    """The second begins while the first is at work, and ends before it."""
    (now, found), folder, inner = plain, tmp_path / "audit", []

    def meanwhile(what, done, total, **numbers):
        if (what, done, numbers) == ("models", 5, {}):
            inner.append(audit(*now, shadows=FEW, folder=folder))

    outer = audit(*now, shadows=FEW, folder=folder, progress=meanwhile)
    assert contents(outer) == contents(inner[0]) == contents(found)
    assert not folder.exists()


# A second audit


def test_a_second_audit_of_a_receipt_is_counted_and_told():
    now = asked(NOT_CORE[:3])
    copied = copy.deepcopy(now.model)
    first, second = (audit(*now, shadows=FEW) for _ in range(2))
    assert (first.earlier, second.earlier) == (0, 1)
    assert (first.caveats, [text.partition(":")[0] for text in second.caveats]) == (
        [], ["it is audit number 2 of this receipt"],
    )  # fmt: skip
    assert "audit number" not in str(first)
    assert "number 2" in str(second)
    assert second.finding == first.finding
    assert AuditReport.from_json(second.to_json()) == second
    assert audit(copied, *[*now][1:], shadows=FEW).earlier == 2


def test_audits_are_counted_by_receipt_and_only_if_they_end():
    now = asked(NOT_CORE[:3])
    later = now.model.unlearn(NOT_CORE[3:4])
    other = (now.model, later, TRAINING.select(NOT_CORE[3:4]), TEST)

    def interrupt(what, done, total, **_):
        if (what, done) == ("models", total):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(*now, shadows=FEW, progress=interrupt)
    with pytest.raises(DataError):
        audit(now.model, now.receipt, now.forgotten, TRAINING, shadows=FEW)
    assert audit(*now, shadows=FEW).earlier == 0
    assert audit(*other, shadows=FEW).earlier == 0
    assert audit(*other, shadows=FEW).earlier == 1


def test_a_receipt_that_was_changed_is_refused(plain):
    now, _ = plain
    with pytest.raises(DataError, match="model handed"):
        audit(now.model, replace(now.receipt, guarantee="exact-retrain"), now.forgotten, now.test, shadows=FEW)


def test_it_is_said_that_later_requests_were_answered():
    now = asked(NOT_CORE[:2])
    later = "1 request was answered since: what is audited is the model as it is now"
    assert later not in audit(*now, shadows=FEW).assumed
    now.model.unlearn(NOT_CORE[2:4])
    assert later in audit(*now, shadows=FEW).assumed


@pytest.mark.parametrize("wrong", range(4))
def test_what_is_of_another_kind_is_named(plain, wrong):
    now, _ = plain
    given = [*now]
    given[wrong] = None
    with pytest.raises(TypeError, match=f"{('model', 'receipt', 'forgotten', 'test')[wrong]} should be a"):
        audit(*given, shadows=FEW)


# Progress and interruptions


def test_progress_counts_all_shadow_models():
    seen = []
    audit(*asked(NOT_CORE[:2]), shadows=FEW, progress=lambda *now, **numbers: seen.append(now))
    assert list(dict.fromkeys(seen)) == [("models", done, FEW + 1) for done in range(FEW + 2)]  # from none to all


@pytest.mark.parametrize("stop", some(1, [3, 6]))
def test_an_interrupted_audit_goes_on_to_the_same_report(tmp_path, plain, stop):
    now, found = plain

    def interrupt(what, done, total, **_):
        if what == "models" and done == stop:
            raise KeyboardInterrupt

    folder = tmp_path / "audit"
    with pytest.raises(KeyboardInterrupt):
        audit(*now, shadows=FEW, folder=folder, progress=interrupt)
    assert any(folder.rglob("*.npz"))
    assert contents(audit(*now, shadows=FEW, folder=folder)) == contents(found)
    assert not folder.exists()


def test_a_folder_of_the_caller_keeps_what_is_his(tmp_path, plain):
    now, found = plain
    (tmp_path / "mine.txt").write_text("mine")
    assert contents(audit(*now, shadows=FEW, folder=tmp_path)) == contents(found)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


# Extractors and their features


def test_what_no_extractor_saw_has_no_features_to_attack():
    found = audit(*asked(NOT_CORE[:5]), shadows=FEW)
    assert FEATURES not in found.attacks
    assert "attacked" in " ".join(found.assumed)
    assert found.finding.power[ALL] == found.finding.at_most


@pytest.mark.long
def test_features_remember_what_the_head_was_made_to_forget():
    """Wrong labels that an extractor has learned: a head fitted again without them does not undo that."""
    now = asked(WRONG[:6], "overfitted")
    evidence, maker = shadows_of(now, had=8)
    assert is_found(evidence.scores("features", Signals.of(maker.own(now.model), labels_of(maker.case))))


def test_records_with_several_inputs():
    everything = texts(150)
    records, test = everything.select(everything.ids[:90]), everything.select(everything.ids[90:])
    model = MaxRR(Text(), HashCore(0.5, key="house"), epochs=12, lr=5e-3, device="cpu").fit(records)
    gone = records.select(model.core_.ids[:3])
    receipt = model.unlearn(gone.ids, core_policy="retrain")
    report = audit(model, receipt, gone, test, shadows=FEW)
    assert report == AuditReport.from_json(report.to_json())
    with pytest.raises(DataError, match="tokens int64"):
        audit(model, receipt, gone, replace(test, inputs={"tokens": test.inputs["tokens"]}), shadows=FEW)
