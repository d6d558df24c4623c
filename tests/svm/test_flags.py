"""Flags that share blocks are those of a plain array."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxrr.svm.problem import BLOCK, Flags
from tests.cases import examples

SIZES = st.sampled_from([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])


@examples(200)
@given(size=SIZES, seed=st.integers(0, 99), steps=st.lists(st.integers(1, 40), max_size=5))
def test_clearing_some_leaves_the_others_and_those_before(size, seed, steps):
    rng = np.random.default_rng(seed)
    plain = rng.random(size) < 0.8
    states = [(Flags(plain), plain.copy())]
    for count in steps:
        rows = rng.choice(size, min(count, size), replace=False) if size else np.empty(0, dtype=np.int64)
        plain = plain.copy()
        plain[rows] = False
        states.append((states[-1][0].without(rows), plain))
    for flags, expected in states:
        assert (len(flags), flags.count) == (size, int(expected.sum()))
        few = rng.choice(size, min(size, 9), replace=False) if size else np.empty(0, dtype=np.int64)
        assert flags[few].tolist() == expected[few].tolist() == [flags.at(row) for row in few.tolist()]
        assert np.array_equal(flags, expected)
        assert np.flatnonzero(flags).tolist() == np.flatnonzero(expected).tolist()
        assert (~flags).tolist() == (~expected).tolist()
        other = rng.random(size) < 0.5
        assert (flags & other).tolist() == (expected & other).tolist()
        assert (flags | other).tolist() == (expected | other).tolist()
        assert flags[few].tolist() == expected[few].tolist()  # also once the array was made


def test_what_was_given_may_change():
    given_ = np.ones(5, dtype=bool)
    flags = Flags(given_)
    given_[:] = False
    assert flags.count == 5
    assert flags.array().all()
    assert not flags.array().flags.writeable
