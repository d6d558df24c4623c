"""No certificate claims too much on features as real pipelines make them: a small part of `torture_run`."""

import numpy as np
import pytest

from tests.cases import some, thinned
from tests.svm.torture import FAMILIES
from tests.svm.torture_run import check, draw

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some families make such heads


@pytest.mark.parametrize(("seed", "family"), thinned(2, enumerate(FAMILIES, 26)))
def test_one_draw_of_each_family(seed, family):
    """With Clarabel's word on the objective. The seed also says n and C."""
    outcome = check(draw(seed, 150, [family]), oracle=True)
    assert not outcome.failures, "\n".join(outcome.failures)


@pytest.mark.parametrize("family", ["dead_columns", "contradicting", "rank_deficient"])
def test_one_draw_with_weights(family):
    outcome = check(draw(60, 60, [family], weighted=True), oracle=False)
    assert not outcome.failures, "\n".join(outcome.failures)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", some(1, [30, 300]))
def test_families_keep_their_promises(family, n):
    for seed in (0, 1):
        X, y = FAMILIES[family](np.random.default_rng(seed), n)
        again, _ = FAMILIES[family](np.random.default_rng(seed), n)
        assert X.dtype == np.float64
        assert X.shape == (len(y), X.shape[1])
        assert len(y) <= n
        assert np.isfinite(X).all()
        assert np.issubdtype(y.dtype, np.integer)
        counts = np.unique(y, return_counts=True)[1]
        assert len(counts) >= 2
        assert counts.min() >= 2
        assert X.tobytes() == again.tobytes()
