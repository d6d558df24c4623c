"""Memory maps travel by the path of their file."""

import copy
import pickle

import numpy as np
import pytest

from maxrr.data import Dataset
from maxrr.data.arrays import is_scratch, map_npy, scratch, take
from maxrr.errors import EngineError
from maxrr.parallel import Processes
from maxrr.parallel.parcels import Mapped, by_path, opened

ROWS, COLUMNS = 3000, 40


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "inputs.npy", np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32))
    return tmp_path / "inputs.npy"


def dataset(inputs):
    return Dataset(inputs, np.arange(len(inputs)) % 2, ("no", "yes"), np.arange(len(inputs)))


def sent(thing):
    content = pickle.dumps(thing)
    return pickle.loads(content), len(content)


VIEWS = {
    "whole": lambda X: X,
    "plain": np.asarray,
    "some rows": lambda X: X[100:2000:7],
    "backwards": lambda X: X[::-1],
    "columns": lambda X: X[:, 3:9].T,
    "reshaped": lambda X: X.reshape(-1, 8, 5)[3:],
    "other type": lambda X: X.view(np.uint8),
    "one row for many": lambda X: np.broadcast_to(X[7], (50, COLUMNS)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("open_file", [lambda path: np.load(path, mmap_mode="r"), map_npy], ids=["numpy", "ours"])
def test_a_memory_map_or_a_view_of_one(path, view, open_file):
    array = view(open_file(path))
    there, size = sent(by_path(array))
    assert isinstance(there, Mapped)
    assert size < 1000
    found = opened(there)
    assert found.dtype == array.dtype
    assert found.strides == array.strides
    assert found.tobytes() == array.tobytes()
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    assert opened(by_path(found)).tobytes() == array.tobytes()  # sent on from there
    assert isinstance(by_path(found), Mapped)


def test_columns_first(tmp_path):
    X = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = opened(by_path(mapped))
    assert found.flags.f_contiguous
    assert np.array_equal(found, X)


def test_an_offset_beyond_the_first_page(tmp_path):
    np.arange(5000, dtype=np.int64).tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", np.int64, "r", offset=8 * 1030, shape=(100,))
    assert opened(by_path(mapped)).tolist() == list(range(1030, 1130))


def test_what_was_written_is_seen(path):
    mapped = np.load(path, mmap_mode="r+")
    mapped[2, 3] = 5.0
    assert opened(by_path(mapped))[2, 3] == 5.0


def by_value(array):
    return by_path(array) is array


def test_what_no_file_has_travels_by_value(path):
    private = np.load(path, mmap_mode="c")
    private[0, 0] = 7.0
    nameless = take(np.load(path, mmap_mode="r"), np.arange(10))
    assert by_value(private)
    assert by_value(nameless)
    assert by_value(np.ones(3))
    assert by_value(np.load(path, mmap_mode="r")[:0])
    assert by_value(None)
    with open(path, "rb") as file:
        mapped = np.memmap(file, np.uint8, "r")
    path.unlink()
    assert by_value(mapped)
    np.save(path, np.zeros((ROWS, COLUMNS), np.float32))  # of the same size
    assert by_value(mapped)


def test_a_file_without_a_name(monkeypatch):
    monkeypatch.setattr("maxrr.data.arrays.LARGE", 0)
    array = scratch((10, 2), np.dtype(np.float32))
    assert is_scratch(array)
    assert by_value(array)
    there, _ = sent(dataset(array))
    assert np.array_equal(there.inputs, array)


def test_a_dataset(path):
    data = dataset(map_npy(path))
    data.rows([5])  # its index travels along
    there, size = sent(data)
    assert size < 100 * ROWS
    assert isinstance(there.inputs, np.memmap)
    assert there.content_hash() == data.content_hash()
    again, size = sent(sent(data)[0])  # not opened in between
    assert size < 100 * ROWS
    assert np.array_equal(again.without([1]).inputs, data.without([1]).inputs)
    assert np.array_equal(copy.deepcopy(data).inputs, data.inputs)
    assert repr(there) == repr(data)


def test_a_dataset_in_memory_travels_whole(path):
    data = dataset(np.load(path))
    there, size = sent(data)
    assert size > data.inputs.nbytes
    assert np.array_equal(there.inputs, data.inputs)
    assert not hasattr(there, "output")


@pytest.mark.parametrize("change", ["missing", "longer", "another", "empty"])
def test_another_file_is_noticed_when_it_is_needed(path, change):
    content = pickle.dumps(dataset(map_npy(path)))
    if change == "missing":
        path.rename(path.with_name("elsewhere.npy"))
    elif change == "longer":
        with open(path, "ab") as file:
            file.write(b"x")
    elif change == "another":
        np.save(path, np.zeros((ROWS, COLUMNS), np.float32))
    else:
        path.write_bytes(b"")
    there = pickle.loads(content)  # where an error would be taken for a lost worker
    assert len(there.ids) == ROWS
    with pytest.raises(EngineError, match=r"inputs\.npy.*shared file system, or load it into memory"):
        _ = there.inputs


def test_in_worker_processes(path):
    data = dataset(map_npy(path))
    assert list(Processes(1).map(Dataset.content_hash, [data])) == [data.content_hash()]
    content = by_path(data.inputs)
    path.unlink()
    ((_, future),) = Processes(1).as_finished(opened, [content])
    assert isinstance(future.exception(), EngineError)
