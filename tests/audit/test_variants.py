"""What probabilities are fitted on, and what there is to compare."""

import numpy as np

from maxrr.audit.case import make_case
from maxrr.audit.shadows import RETRAINED, Shadows
from tests.audit.problems import TEST, TRAINING, asked, core

NOT_CORE = np.setdiff1d(TRAINING.ids, core())


def now(ids=NOT_CORE[:4]):
    case = asked(ids)
    return case.model, case.receipt, case.forgotten, TEST


def test_the_audited_model_is_scaled_as_the_retrained_one_is():
    """After an exact request both are the same head on the same extractor."""
    case = make_case(*now())
    maker = Shadows(case, "cpu")
    mine, again = maker.own(now()[0]), maker.views([maker.again])[RETRAINED][0]
    for part in ("forgotten", "retained", "test"):
        np.testing.assert_allclose(getattr(mine, part), getattr(again, part), rtol=0, atol=1e-9)
    assert len(mine.test) == len(case.test) == len(TEST)
