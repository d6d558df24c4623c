"""Hundreds of requests to one model: every claim along the way is proved, every state is that of a fit from scratch."""

import pytest

from tests.svm.streams import SOURCES, Stream

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights

REFUSED = 0.02  # of the requests, at most: samples that differ by 1e-15 of themselves beside others 1e4 times as long


@pytest.mark.parametrize(("C", "weighted"), [(0.01, True), (1.0, False), (1.0, True), (50.0, False)])
@pytest.mark.parametrize("source", SOURCES)
def test_a_long_stream(source, C, weighted):
    stream = Stream(source, seed=int(100 * C) + weighted, C=C, weighted=weighted)
    tally = stream.run(steps=250, every=5)
    assert stream.refused <= REFUSED * stream.steps
    assert tally.models == 50
    assert tally.proved >= 0.98 * tally.heads
    assert tally.decided >= 0.98 * tally.heads


@pytest.mark.parametrize("source", ["dense_around_one", "of_all_lengths", "stretched", "far_from_zero", "drifting"])
def test_many_samples_most_of_them_far_from_the_margin(source):
    """2,000 samples: what is proved about those far away is what every small request rests on."""
    stream = Stream(source, seed=7, size=2000)
    tally = stream.run(steps=60, every=10)
    assert stream.refused <= REFUSED * stream.steps
    assert tally.proved == tally.decided == tally.heads
