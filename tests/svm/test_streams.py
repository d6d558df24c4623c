"""Streams of requests: every claim along the way is proved, and every state is that of a fit from scratch."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.cases import examples, some
from tests.svm.streams import REQUESTS, SOURCES, Stream

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # some of these have no weights


@pytest.mark.parametrize(
    ("source", "weighted"),
    some(
        len(SOURCES), [(source, (turn + number) % 2 == 1) for turn in (0, 1) for number, source in enumerate(SOURCES)]
    ),
)
def test_a_short_stream(source, weighted):
    stream = Stream(source, seed=10 + weighted, C=1.0, weighted=weighted, size=40)
    tally = stream.run(steps=6, every=3)
    assert stream.refused == 0
    assert tally.proved == tally.decided == tally.heads


def test_a_window_that_slides_over_a_drift():
    """One sample leaves and one arrives, a hundred times, and the centres turn by a right angle meanwhile.

    Each step moves every margin a little. Nothing that was proved about the far ones at the beginning holds at the end.
    """
    stream = Stream("drifting", seed=3, size=150, classes=3)
    for stream.steps in range(1, 101):
        y = stream.rng.choice(stream.labels(), 1)
        assert stream.change(np.array([0]), stream.made(y), y, np.ones(1))
        if stream.steps % 20 == 0:
            stream.judge()
    assert stream.tally.proved == stream.tally.decided == stream.tally.heads == 15


@pytest.mark.parametrize("source", ["dense_around_one", "of_all_lengths", "far_from_zero"])
def test_samples_far_outside_that_matter_in_the_end(source):
    """Influential samples leave, three at a time, until others have taken their place that lay outside at first."""
    stream = Stream(source, seed=5, size=120, classes=2)
    first = stream.rows[stream.influential()]
    while len(stream.y) > 40 and stream.leave(stream.influential()[-3:]):
        if len(stream.y) % 6 == 0:
            stream.judge()
    stream.judge()
    assert len(np.setdiff1d(stream.rows[stream.influential()], first)) >= 2
    assert stream.tally.proved == stream.tally.decided == stream.tally.heads


class Requests(RuleBasedStateMachine):
    """Any requests in any order; Hypothesis shortens the sequence that fails."""

    @initialize(
        source=st.sampled_from(list(SOURCES)), seed=st.integers(0, 2**16), C=st.sampled_from([0.01, 0.3, 1.0, 20.0]),
        weighted=st.booleans(), size=st.integers(12, 40), classes=st.integers(2, 4),
    )  # fmt: skip
    def begin(self, source, seed, C, weighted, size, classes):
        self.stream = Stream(source, seed, C, weighted, size, classes)

    @rule(kind=st.sampled_from(list(REQUESTS)))
    def request(self, kind):
        self.stream.steps += 1
        getattr(self.stream, kind)()

    @rule()
    def judge(self):
        self.stream.judge()

    def teardown(self):
        if hasattr(self, "stream"):
            self.stream.judge()


def test_any_requests_in_any_order():
    run_state_machine_as_test(Requests, settings=settings(examples(64), stateful_step_count=8))
