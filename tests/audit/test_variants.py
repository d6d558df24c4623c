"""What probabilities are fitted on, and who the members of the threshold attack are."""

import numpy as np
import pytest

from maxrr.audit import audit
from maxrr.audit.case import make_case
from maxrr.audit.shadows import RETRAINED, Shadows
from maxrr.data import DataError
from tests.audit.problems import FEW, NOISY, TEST, TRAINING, asked, core

NOT_CORE = np.setdiff1d(TRAINING.ids, core())


def now(ids=NOT_CORE[:4]):
    case = asked(ids)
    return case.model, case.receipt, case.forgotten, TEST


def test_the_audited_model_is_scaled_as_the_retrained_one_is():
    """After an exact request both are the same head on the same extractor."""
    case = make_case(*now())
    maker = Shadows(case, "cpu", None, None)
    mine, again = maker.own(now()[0]), maker.rebuilt()[RETRAINED]
    for part in ("forgotten", "retained", "test"):
        np.testing.assert_allclose(getattr(mine, part), getattr(again, part), rtol=0, atol=1e-9)
    assert len(mine.test) == len(case.test) == len(TEST)


def test_without_the_core_no_member_is_core():
    case = make_case(*now(), core_as_members=False)
    assert len(case.sample) == len(TRAINING) - 4 - len(core())
    assert not np.isin(case.retained.ids[case.sample], core()).any()
    whole = asked(NOISY.ids[:3], kind="overfitted", core_policy="retrain")
    with pytest.raises(DataError, match="every retained record is core"):
        make_case(whole.model, whole.receipt, whole.forgotten, whole.test, core_as_members=False)


def test_core_records_leave_no_head_to_compare():
    assert audit(*now(core()[:3]), shadows=FEW, device="cpu").heads_distance is None
