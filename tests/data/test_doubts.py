"""Columns that look like ids, and columns of other scales, are told before a network is trained on them."""

import numpy as np
import pytest

from maxrr.data import DataError, Dataset, load
from maxrr.data.doubts import doubts

N = 40


def table(name, values):
    inputs = np.stack([np.asarray(values), np.arange(N) % 3], axis=1).astype(np.float32)
    return Dataset(inputs, np.arange(N) % 2, ("a", "b"), np.arange(N), columns=(name, "x"))


@pytest.mark.parametrize("name", ["person_id", "customer-ID", "ID", "patient id", "index", "Unnamed: 0", ""])
def test_an_id_by_its_name(name):
    assert doubts(table(name, np.arange(N) % 4)) == [
        f"the inputs {name!r} look like ids: name them with --id or --subject, or pass over by --drop"
    ]


@pytest.mark.parametrize("name", ["age", "paid", "humid", "update", "indexed", "grid", "candidate"])
def test_other_names_say_nothing(name):
    assert doubts(table(name, np.arange(N) % 4)) == []


@pytest.mark.parametrize(("values", "found"), [(np.arange(N) * 7, 1), (np.arange(N) + 0.5, 0), (np.arange(N) // 2, 0)])
def test_an_id_by_its_numbers(values, found):
    said = [one for one in doubts(table("number", values)) if "look like ids" in one]
    assert len(said) == found


def test_few_records_and_arrays_say_nothing():
    assert doubts(table("number", np.arange(N)).select(np.arange(10))) == []
    assert doubts(Dataset(np.arange(N)[:, None] * 1.0, [0] * N, ("a",), np.arange(N))) == []
    assert doubts(table("number", np.arange(N)).select([])) == []


@pytest.mark.parametrize(("factor", "told"), [(50.0, False), (1e5, True), (0.0, False)])  # a constant harms nobody
def test_columns_of_other_scales(factor, told):
    said = doubts(table("income", factor * (0.5 + np.arange(N) % 2)))
    assert any("'income' varies 6.1e+04 times as much as column 'x'" in one for one in said) == told


def test_a_yes_or_no_has_no_scale():
    rare = (np.arange(N) == 0).astype(float)
    assert doubts(table("rare", rare)) == []


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
    with pytest.raises(DataError, match=r"drop \(--drop\)"):
        load("digits", drop=["x"])
