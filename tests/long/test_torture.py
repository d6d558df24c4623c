"""No certificate claims too much on features as real pipelines make them: hundreds of draws, and large ones."""

import pytest

from tests.svm.torture_run import check, draw

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some families make such heads


@pytest.mark.parametrize("seed", range(1000, 1300))
def test_up_to_2_000_samples(seed):
    outcome = check(draw(seed, 2_000))
    assert not outcome.failures, "\n".join(outcome.failures)


@pytest.mark.parametrize("seed", range(2000, 2020))
def test_up_to_20_000_samples(seed):
    outcome = check(draw(seed, 20_000))
    assert not outcome.failures, "\n".join(outcome.failures)


@pytest.mark.parametrize("seed", range(3000, 3100))
def test_with_weights(seed):
    outcome = check(draw(seed, 2_000, weighted=True))
    assert not outcome.failures, "\n".join(outcome.failures)
