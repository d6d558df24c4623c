"""Which records are for testing: one person's records are on one side."""

import numpy as np
import pytest

from maxrr.data import DataError, load
from maxrr.data.train_test import is_test

PEOPLE = np.array([f"p{row // 5}" for row in range(100)])
SOURCES = {
    "npz": lambda path: np.savez(
        path, X=np.arange(100.0)[:, None], y=np.arange(100) % 2, ids=np.arange(100), subjects=PEOPLE
    ),
    "csv": lambda path: path.write_text(
        "id,subject,label,x\n" + "".join(f"{row},{PEOPLE[row]},{row % 2},{row}\n" for row in range(100))
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SOURCES)
def test_by_subject_and_by_id(kind, tmp_path):
    path = tmp_path / f"table.{kind}"
    SOURCES[kind](path)
    train, test = load(path)
    assert not set(train.subjects) & set(test.subjects)
    assert test.ids.tolist() == np.flatnonzero(is_test(PEOPLE)).tolist()
    train, test = load(path, split_by="id")
    assert test.ids.tolist() == np.flatnonzero(is_test(np.arange(100))).tolist()
    assert set(train.subjects) & set(test.subjects)


def test_one_of_two():
    with pytest.raises(DataError, match="'subject', 'id', not"):
        load("digits", split_by="person")
