"""Variants of an audit: what probabilities are fitted on, and who the members of the threshold attack are."""

import numpy as np
import pytest

from maxrr.audit import audit
from maxrr.audit.attacks import PLATT, folds_of
from maxrr.audit.case import make_case
from maxrr.audit.shadows import RETRAINED, Shadows, shadow_seeds
from maxrr.data import DataError
from maxrr.nets import embed
from maxrr.svm import LinearSVM, fit_platt
from tests.audit.problems import FEW, NOISY, TEST, TRAINING, asked, core

NOT_CORE = np.setdiff1d(TRAINING.ids, core())


def now(ids=NOT_CORE[:4]):
    case = asked(ids)
    return case.model, case.receipt, case.forgotten, TEST


@pytest.mark.parametrize("platt", PLATT)
def test_the_audited_model_is_scaled_as_the_retrained_one_is(platt):
    """After an exact request both are the same head on the same extractor."""
    case = make_case(*now(), platt=platt)
    maker = Shadows(case, "cpu", None, None)
    mine, again = maker.own(now()[0]), maker.rebuilt()[RETRAINED]
    for part in ("forgotten", "retained", "test"):
        np.testing.assert_allclose(getattr(mine, part), getattr(again, part), rtol=0, atol=1e-9)
    assert len(mine.test) == len(case.test) == (len(TEST) // 2 if platt == "held-out" else len(TEST))


def heads():
    """The audited model's extractor, and its features of the retained records in order."""
    model = now()[0]
    retained = TRAINING.without(NOT_CORE[:4]).in_order()
    return model, retained, embed(model.extractor_, retained, device="cpu")


def test_held_out_probabilities_are_of_the_test_records_that_no_attack_sees():
    model, _, _ = heads()
    case = make_case(*now(), platt="held-out")
    assert not np.intersect1d(case.test.ids, case.held_out.ids).size
    scaling = fit_platt(model.decision_function(case.held_out), case.held_out.labels, model.heads_.classes_)
    expected = scaling.probabilities(model.decision_function(case.test))
    np.testing.assert_allclose(Shadows(case, "cpu", None, None).own(model).test, expected, rtol=0, atol=1e-12)


def test_cross_validated_probabilities_are_those_of_heads_that_did_not_see_the_fold():
    model, retained, features = heads()
    folds = folds_of(retained.ids)
    apart = np.empty((len(retained), 3))
    for fold in np.unique(folds):
        inside = folds == fold
        svm = LinearSVM(C=model.C).fit(features[~inside], retained.labels[~inside])
        apart[inside] = svm.decision_function(features[inside])
    scaling = fit_platt(apart, retained.labels, model.heads_.classes_)
    case = make_case(*now(), platt="cross-validated")
    expected = scaling.probabilities(model.decision_function(case.test))
    np.testing.assert_allclose(Shadows(case, "cpu", None, None).own(model).test, expected, rtol=0, atol=1e-9)


def test_without_the_core_no_member_is_core():
    case = make_case(*now(), core_as_members=False)
    assert len(case.sample) == len(TRAINING) - 4 - len(core())
    assert not np.isin(case.retained.ids[case.sample], core()).any()
    whole = asked(NOISY.ids[:3], kind="overfitted", core_policy="retrain")
    with pytest.raises(DataError, match="every retained record is core"):
        make_case(whole.model, whole.receipt, whole.forgotten, whole.test, core_as_members=False)


def test_variants_reach_the_report_and_wrong_names_do_not():
    plain, other = (audit(*now(), shadows=FEW, device="cpu", **options) for options in ({}, {"platt": "held-out"}))
    assert plain.heads_distance == other.heads_distance == 0.0
    assert plain.attacks["threshold"]["after"] != other.attacks["threshold"]["after"]
    with pytest.raises(ValueError, match="one of retained, held-out, cross-validated; not on 'test'"):
        audit(*now(), shadows=FEW, device="cpu", platt="test")


def test_core_records_leave_no_head_to_compare():
    assert audit(*now(core()[:3]), shadows=FEW, device="cpu").heads_distance is None


def test_shadow_views_follow_the_variant():
    case = make_case(*now(), platt="held-out")
    ((_, _, view),) = Shadows(case, "cpu", None, None).views([RETRAINED], shadow_seeds(0, 1))
    assert len(view.test) == len(TEST) // 2
