"""What `describe` counts is what a naive oracle counts."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.data import DataError, Dataset, describe
from tests.data.sources import drawn

RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 4)), max_size=15)


def made(records, first, with_subjects, dtype=np.uint8):
    pixels, labels, people = np.array(records, dtype=np.int64).reshape(-1, 3).T
    inputs = np.stack([pixels, pixels], axis=1).astype(dtype)
    ids = np.arange(first, first + len(records))
    return Dataset(inputs, labels, ("a", "b", "c"), ids, people if with_subjects else None, f"from {first}")


@drawn
@given(RECORDS, st.none() | RECORDS, st.booleans())
def test_counts(train, test, with_subjects):
    parts = [train] if test is None else [train, test]
    found = describe(*(made(part, 100 * side, with_subjects) for side, part in enumerate(parts)))
    assert found.records == tuple(map(len, parts))
    assert found.names == ("from 0", "from 100")[: len(parts)]
    assert (found.shape, found.dtype) == ((2,), "uint8")
    for label, name in enumerate("abc"):
        assert found.balance[name] == tuple(sum(record[1] == label for record in part) for part in parts)
    assert found.subjects == (len({record[2] for part in parts for record in part}) if with_subjects else None)
    groups = defaultdict(list)
    for side, part in enumerate(parts):
        for pixel, label, _ in part:
            groups[pixel].append((side, label))
    twins = [group for group in groups.values() if len(group) > 1]
    assert found.duplicate_groups == len(twins)
    assert found.duplicate_records == sum(map(len, twins))
    assert found.conflicting_groups == sum(len({label for _, label in group}) > 1 for group in twins)
    assert found.shared_groups == sum(len({side for side, _ in group}) > 1 for group in twins)


def test_subjects_on_one_side_only_are_not_counted():
    assert describe(made([(1, 1, 1)], 0, True), made([(1, 1, 1)], 9, False)).subjects is None


def test_datasets_that_do_not_belong_together_are_refused():
    with pytest.raises(DataError, match="shape, type"):
        describe(made([(1, 1, 1)], 0, False), made([(1, 1, 1)], 9, False, np.float32))
