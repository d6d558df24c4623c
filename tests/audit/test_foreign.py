"""Audits of models that are not ours: from probabilities alone, the finding of the audit that has receipt and model."""

import numpy as np
import pytest

from maxrr.audit import audit, audit_predictions
from maxrr.audit.auditing import make_case
from maxrr.audit.findings import FOUND, NOT_ENOUGH
from maxrr.audit.shadows import BEFORE, RETRAINED, Shadows, shadow_models, with_and_without
from tests.audit.problems import ENOUGH, TRAINING, asked, core


def arrays(views):
    """What models say of the forgotten records, and after them of the test records."""
    return np.stack([np.concatenate([view.forgotten, view.test]) for view in views])


def test_the_finding_is_that_of_an_audit_with_model_and_receipt():
    """Where no extractor saw the records, so that models with them are what is looked for, too."""
    now = asked(np.setdiff1d(TRAINING.ids, core())[:6])
    case = make_case(*now)
    maker = Shadows(case, "cpu")
    views = maker.views(shadow_models(case, *with_and_without(ENOUGH)))
    with_them, without, (mine,) = (arrays(some) for some in (views[BEFORE], views[RETRAINED], [maker.own(now.model)]))
    labels = np.concatenate([case.forgotten.labels, case.test.labels])
    found = audit_predictions(mine, without, with_them, labels, np.arange(len(labels)) < len(case.forgotten))
    assert found == audit(*now, shadows=ENOUGH, device="cpu").finding


def said(seed, models, records=30, of=60, gain=0.0):
    """Made-up probabilities of three classes; models are so much surer of the first records."""
    scores = np.random.default_rng(seed).normal(size=(models, of, 3))
    scores[:, :records, 0] += gain
    odds = np.exp(scores)
    return odds / odds.sum(2, keepdims=True)


GONE, TRUE = np.arange(60) < 30, np.zeros(60, dtype=int)
NEVER, ONCE = said(1, 39), said(2, 25, gain=2.0)


def test_a_model_that_kept_the_records_is_found_and_retrained_ones_are_rarely():
    assert audit_predictions(ONCE[0], NEVER, ONCE[1:], TRUE, GONE).words == FOUND
    words = [
        audit_predictions(NEVER[number], np.delete(NEVER, number, axis=0), ONCE, TRUE, GONE).words
        for number in range(0, len(NEVER), 2)
    ]
    assert words.count(FOUND) <= 3  # at most one in 20 by the rule; of 20 more than 3 has a chance of 2 %
    assert words.count(NOT_ENOUGH) <= 4


def test_the_order_of_records_and_of_models_does_not_matter():
    order, models = np.random.default_rng(3).permutation(60), np.random.default_rng(4).permutation(39)
    mine = said(5, 1, gain=0.3)[0]
    given = (mine, NEVER, ONCE, GONE), (mine[order], NEVER[models][:, order], ONCE[:, order], GONE[order])
    found = [audit_predictions(*three, TRUE, gone) for *three, gone in given]
    assert len({(one.words, one.p_value, one.as_odd, one.at_most.rate) for one in found}) == 1


def test_too_few_models_say_so():
    with pytest.warns(UserWarning, match="19"):
        assert audit_predictions(NEVER[0], NEVER[1:8], ONCE, TRUE, GONE).words == NOT_ENOUGH


@pytest.mark.parametrize(
    "change",
    [
        {"audited": NEVER}, {"retrained": NEVER[0]}, {"retrained": NEVER[:, :59]}, {"remembering": ONCE[:1]},
        {"labels": TRUE[:59]}, {"forgotten": GONE[:59]}, {"forgotten": np.zeros(60, bool)}, {"forgotten": TRUE == 0},
    ],
)  # fmt: skip
def test_arrays_that_do_not_belong_together_are_refused(change):
    good = {"audited": NEVER[0], "retrained": NEVER[1:], "remembering": ONCE, "labels": TRUE, "forgotten": GONE}
    with pytest.raises(ValueError, match="records"):
        audit_predictions(**good | change)
