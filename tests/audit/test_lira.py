"""LiRA against SciPy's Gaussians, one record and one model at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests.cases import THOROUGH

from maxrr.audit.lira import VARIANCE_FLOOR, lira_leave_one_out, lira_offline, lira_online
from maxrr.audit.roc import auc, roc

cases = settings(deadline=None, derandomize=True, max_examples=60 if THOROUGH else 15)
SPREADS = ["record", "pooled"]


@st.composite
def problems(draw, fewest=2):
    """Logits of shadow models and who saw what: for every record at least so many models on either side."""
    models, records = draw(st.integers(2 * fewest, 10)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    places = np.array([random.permutation(models) for _ in range(records)]).T
    member = places < draw(st.integers(fewest, models - fewest))
    return random.normal(size=records) * 3, random.normal(size=(models, records)) * 2 + 3 * member, member


def deviations(shadows, member, spread):
    """Standard deviations of each record, with the sums written out."""
    groups = [
        [x for x, inside in zip(*column, strict=True) if inside] for column in zip(shadows.T, member.T, strict=True)
    ]
    squares = [sum((x - np.mean(group)) ** 2 for x in group) for group in groups]
    if spread == "pooled":
        together = sum(squares) / sum(len(group) - 1 for group in groups)
        variances = [together for _ in groups]
    else:
        variances = [square / (len(group) - 1) for square, group in zip(squares, groups, strict=True)]
    return [np.mean(group) for group in groups], [max(v, VARIANCE_FLOOR) ** 0.5 for v in variances]


def plain_online(target, shadows, member, spread):
    inside, outside = deviations(shadows, member, spread), deviations(shadows, ~member, spread)
    return [
        norm.logpdf(x, inside[0][i], inside[1][i]) - norm.logpdf(x, outside[0][i], outside[1][i])
        for i, x in enumerate(target)
    ]


def plain_offline(target, shadows, member, spread):
    means, widths = deviations(shadows, ~member, spread)
    return [-norm.logsf(x, means[i], widths[i]) for i, x in enumerate(target)]


@cases
@given(problems(), st.sampled_from(SPREADS))
def test_equals_the_formulas(problem, spread):
    np.testing.assert_allclose(lira_online(*problem, spread), plain_online(*problem, spread), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(lira_offline(*problem, spread), plain_offline(*problem, spread), rtol=1e-8, atol=1e-8)


@cases
@given(problems(fewest=3), st.sampled_from(SPREADS))
def test_leaving_one_out_is_scoring_by_the_others(problem, spread):
    _, shadows, member = problem
    for form, score in (("online", lira_online), ("offline", lira_offline)):
        found = lira_leave_one_out(shadows, member, form, spread)
        for model, logits in enumerate(shadows):
            others = np.delete(shadows, model, axis=0), np.delete(member, model, axis=0)
            np.testing.assert_allclose(found[model], score(logits, *others, spread), rtol=1e-6, atol=1e-8)


@cases
@given(problems(fewest=3), st.randoms(use_true_random=False))
def test_order_of_records_and_models_does_not_matter(problem, random):
    target, shadows, member = problem
    records = random.sample(range(target.size), target.size)
    models = random.sample(range(len(shadows)), len(shadows))
    moved = shadows[models][:, records], member[models][:, records]
    for spread in SPREADS:
        one = lira_online(target, shadows, member, spread)
        np.testing.assert_allclose(lira_online(target[records], *moved, spread), one[records], rtol=1e-9, atol=1e-9)
        each = lira_leave_one_out(shadows, member, "online", spread)[models][:, records]
        np.testing.assert_allclose(lira_leave_one_out(*moved, "online", spread), each, rtol=1e-6, atol=1e-8)


@cases
@given(problems(), st.floats(-5, 5), st.sampled_from([0.5, 4.0]))
def test_shift_and_scale_of_the_logits_do_not_matter(problem, shift, scale):
    target, shadows, member = problem
    for score in (lira_online, lira_offline):
        moved = score(target * scale + shift, shadows * scale + shift, member)
        np.testing.assert_allclose(moved, score(target, shadows, member), rtol=1e-7, atol=1e-7)


def test_models_that_do_not_differ_say_nothing():
    """Records that shape nothing: all models agree, up to 1e-10."""
    shadows, member = np.full((6, 2), 7.0), np.repeat([[True], [False]], 3, axis=0).repeat(2, axis=1)
    for spread in SPREADS:
        np.testing.assert_array_equal(lira_online([7.0, 7.0], shadows, member, spread), [0.0, 0.0])
        nearly = lira_online([7.0, 7.0 + 1e-10], shadows + 1e-10 * member, member, spread)
        np.testing.assert_allclose(nearly, [0.0, 0.0], atol=1e-7)
        np.testing.assert_allclose(lira_leave_one_out(shadows, member, "online", spread), 0.0, atol=1e-7)


def test_far_in_the_tail_scores_still_rise():
    shadows, nobody = np.array([[-1.0], [1.0]]).repeat(4, axis=1), np.zeros((2, 4), dtype=bool)
    scores = lira_offline([10.0, 100.0, 1000.0, -100.0], shadows, nobody)
    assert np.isfinite(scores).all()
    assert (np.diff(scores[:3]) > 0).all()
    assert 0.0 <= scores[3] < 1e-300


def test_offline_does_not_look_at_models_that_saw_the_record():
    shadows, member = np.array([[0.0], [1.0], [5.0], [9.0]]), np.array([[False], [False], [True], [True]])
    changed = np.array([[0.0], [1.0], [-50.0], [70.0]])
    assert lira_offline([2.0], shadows, member).tolist() == lira_offline([2.0], changed, member).tolist()


def test_hard_records_do_not_pass_for_nonmembers():
    """Membership adds 1.5 to logits that differ by 10 between records: one threshold for all is blind, LiRA is not."""
    random = np.random.default_rng(0)
    member = random.random((65, 400)) < 0.5
    logits = random.normal(0, 10, 400) + 1.5 * member + random.normal(0, 0.5, (65, 400))
    scores = lira_online(logits[0], logits[1:], member[1:])
    assert auc(roc(scores[member[0]], scores[~member[0]])) > 0.95
    assert auc(roc(logits[0][member[0]], logits[0][~member[0]])) < 0.65


@pytest.mark.parametrize("form", ["online", "offline"])
def test_too_few_shadow_models(form):
    score = {"online": lira_online, "offline": lira_offline}[form]
    one_a_side = [[1.0, 2.0], [3.0, 4.0]], np.array([[True, True], [False, False]])
    with pytest.raises(ValueError, match=r"too few shadow models: record 0 has 1 on one side.*train more"):
        score([0.0, 0.0], *one_a_side)
    with pytest.raises(ValueError, match="2 for some"):  # even together they have no spread
        score([0.0, 0.0], *one_a_side, "pooled")
    with pytest.raises(ValueError, match="too few"):
        lira_leave_one_out([[1.0]], [[False]], form)
    nobody_missed_record_1 = np.array([[True, True]] * 2 + [[False, True]] * 2)
    with pytest.raises(ValueError, match="record 1 has 0"):
        score([0.0, 0.0], np.ones((4, 2)), nobody_missed_record_1, "pooled")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lira_online([0.0], [[1.0, 2.0]], [[True, True]]), "target has 1 records and shadows have 2"),
        (lambda: lira_online([0.0], [[1.0]], [[1]]), "must be booleans"),
        (lambda: lira_online([0.0], [[1.0]], [True]), "of shape"),
        (lambda: lira_offline([np.nan], [[1.0]], [[False]]), "target must be finite"),
        (lambda: lira_offline([0.0], [[1.0], [2.0]], [[False], [False]], "each"), "common, not 'each'"),
        (lambda: lira_leave_one_out([[1.0]] * 6, [[False]] * 6, "inline"), "online or offline, not 'inline'"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
