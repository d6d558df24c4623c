"""A record's side depends on its id alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxrr.data.train_test import is_test
from tests.data.sources import IDENTIFIERS, drawn, identifiers


@drawn
@given(IDENTIFIERS.flatmap(lambda kind: st.lists(kind, min_size=1, unique=True)))
def test_no_other_record_can_move_it(ids):
    together = is_test(identifiers(ids))
    assert together.tolist() == [is_test(identifiers([id_]))[0] for id_ in ids]


def test_an_integer_and_its_text_are_on_the_same_side():
    numbers = np.arange(-50, 1000)
    assert np.array_equal(is_test(numbers), is_test(numbers.astype(str)))


def test_about_a_fifth_is_for_testing():
    count = 20_000
    share = is_test(np.arange(count)).mean()
    assert abs(share - 0.2) < 5 * np.sqrt(0.2 * 0.8 / count)  # five standard deviations of a fair draw


def test_names_that_are_not_unicode_have_a_side():
    assert is_test(np.array(["a/\udcff.png"])).shape == (1,)
