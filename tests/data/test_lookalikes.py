"""Columns that became inputs of a table and look like something else."""

import shlex

import numpy as np
import pytest

from maxrr.data import DataError, Dataset, load
from maxrr.data.lookalikes import lookalikes

N = 40


def table(name, values):
    inputs = np.stack([np.asarray(values, dtype=np.float32), np.arange(N) % 3], axis=1).astype(np.float32)
    return Dataset(inputs, np.arange(N) % 2, ("a", "b"), np.arange(N), columns=(name, "x"))


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("person_id", "--subject"), ("customerId", "--id"), ("ID", "--id"), ("patient id", "--drop 'patient id'"),
        ("weight", "--weight"), ("sample_weight", "--weight"), ("fnlwgt", "--weight"), ("index", "--drop index"),
        ("Unnamed: 0", "--drop 'Unnamed: 0'"), ("", "--drop ''"), ("visit_date", "--drop visit_date"),
    ],
)  # fmt: skip
def test_by_its_name(name, option):
    (said,) = lookalikes([table(name, np.arange(N) % 4)])
    assert said.startswith(f"the column {name!r} is an input, and looks like ")
    assert option in said


@pytest.mark.parametrize("name", ["$(touch here) id", "`touch here` id", "'; touch here; ' id", '"; touch here; " id'])
def test_advice_that_is_pasted_runs_nothing(name):
    (said,) = lookalikes([table(name, np.arange(N) % 4)])
    assert shlex.split(said.rpartition("--drop ")[2]) == [name]
    assert shlex.quote(name) in said  # and no shell expands it


@pytest.mark.parametrize("name", ["age", "paid", "humid", "weight_kg", "update", "indexed", "grid", "candidate"])
def test_other_names_say_nothing(name):
    assert lookalikes([table(name, np.arange(N) % 4)]) == []


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (np.arange(N) * 7 + 1000, 1),  # whole numbers, all different
        (np.arange(N) + 900_000_001, 1),  # in float32 they are not, but too large for a count
        (np.arange(N) + 0.5, 0),
        (np.arange(N) // 2, 0),
    ],
)
def test_by_its_numbers(values, found):
    whole = table("number", values)
    assert len(lookalikes([whole])) == found
    sides = whole.select(np.arange(9)), whole.select(np.arange(9, N))
    assert len(lookalikes(sides)) == found


def test_few_records_and_arrays_say_nothing():
    assert lookalikes([table("number", np.arange(N)).select(np.arange(10))]) == []
    assert lookalikes([Dataset(np.arange(N)[:, None] * 1.0, [0] * N, ("a",), np.arange(N))]) == []


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["id,who,label,age", *(f"{row},p {row},{row % 2},{row % 5}" for row in range(N))]))
    return path


def test_a_column_that_is_dropped_is_not_read(people):
    """Its cells need not be numbers, nor anything else."""
    train, _ = load(people, drop=["who"])
    assert train.columns == ("age",)


@pytest.mark.parametrize(
    ("dropped", "words"),
    [("whom", "no column 'whom' that could be dropped"), ("label", "is the label, id, subject or weight")],
)
def test_what_cannot_be_dropped(people, dropped, words):
    with pytest.raises(DataError, match=words):
        load(people, drop=[dropped])


def test_arrays_have_no_columns_to_drop():
    with pytest.raises(DataError, match=r"has no columns that drop \(--drop\) could mean"):
        load("digits", drop=["x"])
