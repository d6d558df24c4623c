"""Records are found, chosen and hashed by id; what a dataset must not hold is refused with the record's name."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.data import DataError, Dataset, checks
from tests.data.sources import datasets, drawn

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])


def rows_of(data):
    """Every record in full, by id."""
    subjects = [None] * len(data) if data.subjects is None else data.subjects.tolist()
    names = [data.class_names[label] for label in data.labels]
    inputs = [record.tobytes() for record in data.inputs]
    return dict(zip(data.ids.tolist(), zip(inputs, names, subjects, strict=True), strict=True))


@drawn
@given(datasets(), st.data())
def test_subsets_are_those_of_a_naive_oracle(data, draw):
    every = data.ids.tolist()
    wanted = draw.draw(st.lists(st.sampled_from(every), unique=True))
    assert data.rows(wanted).tolist() == [every.index(id_) for id_ in wanted]
    records = rows_of(data)
    chosen, rest = data.select(wanted), data.without(wanted)
    assert chosen.ids.tolist() == wanted
    assert rest.ids.tolist() == [id_ for id_ in every if id_ not in wanted]
    assert rows_of(chosen) == {id_: records[id_] for id_ in wanted}
    assert rows_of(rest) == {id_: record for id_, record in records.items() if id_ not in wanted}
    for part in (chosen, rest):
        assert (part.shape, part.class_names, part.name) == (data.shape, data.class_names, data.name)
        assert part.inputs.dtype == data.inputs.dtype


@drawn
@given(datasets())
def test_in_order_is_sorted_and_the_same(data):
    ordered = data.in_order()
    assert ordered.ids.tolist() == sorted(data.ids.tolist())
    assert rows_of(ordered) == rows_of(data)
    assert ordered.in_order() is ordered


@drawn
@given(datasets(), st.data())
def test_of_subjects_is_that_of_a_naive_oracle(data, draw):
    if data.subjects is None:
        with pytest.raises(DataError, match="no subject ids"):
            data.of_subjects([1])
        return
    wanted = draw.draw(st.lists(st.sampled_from(data.subjects.tolist())))
    pairs = zip(data.ids.tolist(), data.subjects.tolist(), strict=True)
    assert data.of_subjects(wanted).tolist() == [id_ for id_, subject in pairs if subject in wanted]


def test_one_id_needs_no_list():
    data = Dataset(X, [0, 1, 0], ("a", "b"), ["x", "y", "z"], [7, 7, 8])
    assert data.select("y").ids.tolist() == ["y"]
    assert data.of_subjects(7).tolist() == ["x", "y"]


def test_ids_are_a_copy_that_cannot_be_changed():
    ids = np.arange(3)
    data = Dataset(X, [0, 1, 0], ("a", "b"), ids)
    ids[0] = 99
    assert data.rows([0]).tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        data.ids[0] = 99


def test_inputs_are_not_copied(tmp_path):
    inputs = np.memmap(tmp_path / "inputs", dtype=np.float32, mode="w+", shape=(5, 2))
    data = Dataset(inputs, np.zeros(5, dtype=int), ("a",), np.arange(5))
    assert data.inputs is inputs
    assert data.in_order().inputs is inputs
    in_memory = replace(data, inputs=np.zeros((5, 2), dtype=np.float32))
    assert data.content_hash() == in_memory.content_hash()


def test_a_dataset_may_be_empty():
    data = Dataset(X, [0, 1, 0], ("a", "b"), [1, 2, 3])
    empty = data.without([1, 2, 3])
    assert len(empty) == 0
    assert empty.in_order() is empty
    assert empty.select([]).record_hashes().shape == (0, 32)
    assert empty.content_hash() == replace(empty, class_names=("a", "c")).content_hash()
    with pytest.raises(DataError, match="id 1"):
        empty.rows([1])


@pytest.mark.parametrize("method", ["rows", "select", "without"])
@pytest.mark.parametrize(
    ("ids", "wanted", "message"),
    [
        ([1, 2, 3], [2, 9, 10], "no record has id 9, 10"),
        ([1, 2, 3], ["1"], "no record has id '1'"),
        (["1", "2", "3"], [1], "no record has id 1"),
        (["a", "b", "c"], ["ab"], "no record has id 'ab'"),
        ([1, 2, 3], list(range(10, 20)), "10, 11, 12, 13, 14 and 5 more"),
        ([1, 2, 3], [1.0], "all integers or all strings, not float"),
        ([1, 2, 3], [True], "not bool"),
        ([1, 2, 3], [[1]], "not list"),
    ],
)
def test_unknown_ids_are_named(method, ids, wanted, message):
    with pytest.raises(DataError, match=message):
        getattr(Dataset(X, [0, 1, 0], ("a", "b"), ids), method)(wanted)


def test_unknown_subjects_are_named():
    data = Dataset(X, [0, 1, 0], ("a", "b"), [1, 2, 3], ["p", "p", "q"])
    with pytest.raises(DataError, match="about subject 'r'"):
        data.of_subjects(["p", "r"])
    with pytest.raises(DataError, match="about subject 1"):
        data.of_subjects([1])


GOOD = {"inputs": X, "labels": [0, 1, 0], "class_names": ("a", "b"), "ids": [1, 2, 3]}
BAD = {
    "repeated ids": ({"ids": [7, 8, 7]}, "unique, but these repeat: 7"),
    "repeated strings": ({"ids": ["x", "x", "x"]}, "these repeat: 'x'"),
    "too few ids": ({"ids": [1, 2]}, "3 records, but 2 ids"),
    "fractional ids": ({"ids": [1.0, 2.0, 3.0]}, "all integers or all strings"),
    "ids of objects": ({"ids": np.array([1, "a", 2], dtype=object)}, "all integers or all strings"),
    "ids of two dimensions": ({"ids": [[1], [2], [3]]}, "not list"),
    "ids beyond 64 bits": ({"ids": np.array([1, 2, 2**64 - 1], dtype=np.uint64)}, "fit in 64 bits"),
    "a label above": ({"labels": [0, 2, 0]}, r"record 2 has label 2, outside the 2 classes \(0 to 1\)"),
    "a label below": ({"labels": [0, 0, -1]}, "record 3 has label -1"),
    "a large unsigned label": ({"labels": np.array([0, 2**64 - 1, 0], dtype=np.uint64)}, "record 2 has label"),
    "too few labels": ({"labels": [0, 1]}, "3 records, but labels have shape"),
    "labels as names": ({"labels": ["a", "b", "a"]}, "indices into class_names"),
    "fractional labels": ({"labels": [0.0, 1.0, 0.0]}, "indices into class_names"),
    "repeated classes": ({"class_names": ("a", "a")}, "different strings"),
    "classes that are no strings": ({"class_names": (0, 1)}, "different strings"),
    "no classes": ({"class_names": ()}, "outside the 0 classes"),
    "NaN": ({"inputs": np.where(X == 3.0, np.nan, X)}, "record 2 has NaN or infinity"),
    "infinity": ({"inputs": np.where(X == 4.0, -np.inf, X).astype(np.float32)}, "record 3 has NaN or infinity"),
    "integers without a sign": ({"inputs": X.astype(np.uint32)}, "uint8 .* not uint32"),
    "another byte order": ({"inputs": X.astype(">f4")}, "not >f4"),
    "one dimension": ({"inputs": X[:, 0]}, "shape"),
    "no numbers": ({"inputs": X[:, :0]}, "numbers in each"),
    "too few subjects": ({"subjects": [1, 2]}, "3 records, but 2 subject ids"),
    "fractional subjects": ({"subjects": [0.5, 1.0, 2.0]}, "subject ids must be all integers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_records(case):
    changes, message = BAD[case]
    with pytest.raises(DataError, match=message):
        Dataset(**(GOOD | changes))


def test_nan_is_found_in_any_block(monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 48)  # three records
    for row in range(10):
        inputs = np.zeros((10, 2))
        inputs[row, 1] = np.nan
        with pytest.raises(DataError, match=f"'r{row}' has NaN"):
            Dataset(inputs, [0] * 10, ("a",), [f"r{number}" for number in range(10)])


def test_columns_keep_their_names():
    data = Dataset(X, [0, 1, 0], ("a", "b"), ["x", "z", "y"], columns=["age", "weight"])
    assert data.columns == ("age", "weight")
    for part in (data.select(["y"]), data.without(["y"]), data.in_order(), replace(data, name="other")):
        assert part.columns == ("age", "weight")
    assert data.content_hash() == replace(data, columns=None).content_hash()
    assert np.array_equal(data.record_hashes(), replace(data, columns=("a", "b")).record_hashes())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("age",), r"names of 1 columns for records of shape \(2,\)"),
        (("age", "age"), "different strings, not 'age', 'age'"),
        ((1, 2), "different strings"),
        ("ab", r"names of 1 columns"),
    ],
)
def test_columns_that_do_not_fit(columns, message):
    with pytest.raises(DataError, match=message):
        Dataset(X, [0, 1, 0], ("a", "b"), [1, 2, 3], columns=columns)


def test_images_have_no_columns():
    with pytest.raises(DataError, match="4 columns"):
        Dataset(np.zeros((1, 1, 2, 2)), [0], ("a",), [1], columns=tuple("abcd"))


@drawn
@given(datasets(), st.data())
def test_joined_parts_are_the_whole(data, draw):
    some = draw.draw(st.lists(st.sampled_from(data.ids.tolist()), unique=True))
    one, other = data.select(some), data.without(some)
    used = np.unique(other.labels)  # the same classes under other numbers, and only those that have records
    names = tuple(data.class_names[label] for label in used[::-1])
    other = replace(other, labels=len(used) - 1 - np.searchsorted(used, other.labels), class_names=names)
    both = one.join(other)
    assert both.ids.tolist() == [*one.ids.tolist(), *other.ids.tolist()]
    assert rows_of(both) == rows_of(data)


def joinable(**changes):
    given = {"inputs": X, "labels": [0, 1, 1], "class_names": ("no", "yes"), "ids": ["a", "b", "c"]} | changes
    return Dataset(**given)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ids": ["d", "b", "e"]}, "these repeat: 'b'"),
        ({"ids": [1, 2, 3]}, "record ids are integers on one side"),
        ({"inputs": X[:, :1]}, r"float64 of shape \(2,\), and those to join are float64 of shape \(1,\)"),
        ({"inputs": X.astype(np.float32)}, "those to join are float32"),
        ({"subjects": [1, 2, 3]}, "have subjects on one side alone"),
        ({"weights": [1, 2, 3]}, "have weights on one side alone"),
        ({"columns": ("age", "weight")}, "other columns, such as 'height'"),
        ({"columns": ("height", "age")}, "other columns, in another order"),
    ],
)
def test_records_that_no_model_could_have_together_are_not_joined(changes, said):
    first = joinable(columns=("age", "height"))
    with pytest.raises(DataError, match=said):
        first.join(joinable(**{"ids": ["d", "e", "f"]} | changes))


def test_a_large_memory_map_is_joined_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 32)
    np.save(tmp_path / "x.npy", X)
    mapped = joinable(inputs=np.load(tmp_path / "x.npy", mmap_mode="r"))
    both = mapped.join(joinable(ids=["d", "e", "f"], inputs=X + 9.0))
    assert np.array_equal(both.inputs, np.concatenate([X, X + 9.0]))
