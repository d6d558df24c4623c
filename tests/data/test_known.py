"""The datasets known by name: their records, and the places where their files are found."""

import gzip
import hashlib
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxrr.data import DataError, available, fetch, known, load
from maxrr.data.known import PUBLISHED
from maxrr.errors import UnknownSource, UnreadableFile
from tests.data.sources import idx_bytes, tiny


@pytest.fixture(scope="module")
def fashion():
    return load("fashion-mnist")


def test_fashion_mnist(fashion):
    train, test = fashion
    assert (len(train), len(test), train.shape, train.inputs.dtype) == (60_000, 10_000, (1, 28, 28), np.uint8)
    assert np.array_equal(train.ids, np.arange(60_000))
    assert np.array_equal(test.ids, np.arange(60_000, 70_000))
    assert train.class_names[train.labels[0]] == "Ankle boot"
    assert train.class_names == test.class_names
    assert [set(np.bincount(part.labels)) for part in fashion] == [{6000}, {1000}]
    assert train.subjects is None


def test_digits():
    images, labels = load_digits(return_X_y=True)
    train, test = load("digits")
    for part in (train, test):
        assert part.inputs.dtype == np.float32
        assert np.array_equal(part.inputs.reshape(-1, 64) * 16, images[part.ids])
        assert np.array_equal(part.labels, labels[part.ids])
        assert part.class_names == tuple("0123456789")
    assert np.array_equal(np.union1d(train.ids, test.ids), np.arange(1797))
    assert train.ids[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 10]  # the split is fixed


@pytest.fixture
def entry(bare, monkeypatch):
    """A dataset that no place has yet."""
    dataset, files = tiny("http://127.0.0.1:9/")
    monkeypatch.setitem(PUBLISHED, "tiny", dataset)
    monkeypatch.setattr(known, "fetch", lambda name, progress: pytest.fail("nothing should be fetched"))
    return files


def put(folder, files, packed=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("place", ["own/tiny", "debian/tiny", "cache/maxrr/tiny"])
def test_every_place_is_looked_at(entry, bare, monkeypatch, place, packed):
    monkeypatch.setenv("MAXRR_DATA", str(bare / "own"))
    put(bare / place, entry, packed)
    train, test = load("tiny")
    assert train.inputs.tobytes() == entry["train-images-idx3-ubyte"][16:]
    assert test.ids.tolist() == [7, 8, 9]
    assert ("tiny", str(bare / place)) in available()


def test_places_are_looked_at_in_order(entry, bare, monkeypatch):
    monkeypatch.setenv("MAXRR_DATA", str(bare / "own"))
    for place in ("cache/maxrr/tiny", "debian/tiny", "own/tiny"):
        put(bare / place, entry)
        assert dict(available())["tiny"] == str(bare / place)


def test_the_cache_is_in_the_home_folder_by_default(entry, bare, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(bare / "home"))
    put(bare / "home" / ".cache" / "maxrr" / "tiny", entry)
    assert len(load("tiny")[0]) == 7


def test_what_is_available_on_a_bare_machine(bare):
    others = [(name, None) for name in ("fashion-mnist", "mnist", "cifar-10", "spam-assassin")]
    assert available() == [("digits", "scikit-learn"), *others]


@pytest.mark.parametrize("name", list(tiny("")[1]))
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_file_is_named(entry, bare, monkeypatch, name, packed):
    files = entry | {name: entry[name][:-1]}
    put(bare / "debian" / "tiny", files, packed)
    with pytest.raises(DataError, match=f"{name}(.gz)?: "):
        load("tiny")
    files = entry | {name: entry[name][:-1] + bytes([entry[name][-1] ^ 1])}
    put(bare / "debian" / "tiny", files, packed)
    with pytest.raises(DataError, match=f"{name}(.gz)?: "):
        load("tiny")
    with pytest.raises(DataError, match=f"{name}(.gz)?: "):
        fetch("tiny")


@pytest.mark.parametrize("packed", [False, True])
def test_every_truncation_is_refused(tmp_path, packed):
    content = idx_bytes(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    sha256 = hashlib.sha256(content).hexdigest()
    path = tmp_path / ("cut.gz" if packed else "cut")
    whole = gzip.compress(content) if packed else content
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=re.escape(str(path))):
            known.content_of(path, sha256)
    path.write_bytes(whole)
    assert known.array_of(known.content_of(path, sha256), 3).shape == (2, 3, 4)


def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(known, "LARGEST", 1 << 20)
    (tmp_path / "file.gz").write_bytes(gzip.compress(bytes(1 << 26), 1))
    tracemalloc.start()
    with pytest.raises(DataError, match="another content"):
        known.content_of(tmp_path / "file.gz", "0" * 64)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_fetching_what_is_here_says_where(entry, bare):
    put(bare / "debian" / "tiny", entry)
    assert fetch("tiny") == str(bare / "debian" / "tiny")
    assert fetch("digits") == "scikit-learn"
    assert not (bare / "cache").exists()
    with pytest.raises(UnknownSource):
        fetch("tine")


def test_a_folder_of_that_name_is_reached_by_a_path(entry, bare, monkeypatch):
    monkeypatch.chdir(bare)
    (bare / "tiny").mkdir()
    with pytest.raises(DataError, match="is empty"):
        load("./tiny")
    with pytest.raises(UnknownSource):
        load("nowhere")
    (bare / "data.xls").write_bytes(b"")
    with pytest.raises(UnreadableFile):
        load(bare / "data.xls")


def test_nothing_is_imported_before_it_is_needed():
    code = (
        "import sys, maxrr.data; print([m for m in ('PIL', 'urllib.request', 'sklearn', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
