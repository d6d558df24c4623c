"""Small problems of every nasty family against the exact oracle: bounds hold, and decided bytes are the exact ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import examples, seeds
from tests.svm.nasty import FAMILIES
from tests.svm.oracle_run import check


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_claim_holds(family: str, weighted: bool) -> None:
    for seed in seeds(0, 8):
        counts, wrong = check(family, seed, weighted)
        assert not wrong, wrong
        assert counts["heads"] >= 2


@given(st.sampled_from(FAMILIES), st.integers(0, 2**32 - 1), st.booleans())
@examples(200)
def test_every_claim_holds_anywhere(family: str, seed: int, weighted: bool) -> None:
    _, wrong = check(family, seed, weighted)
    assert not wrong, wrong
