"""IDX files: what is written is read, and nothing but a whole file is."""

import gzip
import hashlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from maxrr.data import DataError, known
from tests.data.sources import drawn, idx_bytes

SMALL = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def stored(folder, content, packed):
    path = folder / ("file.gz" if packed else "file")
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


@drawn
@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
def test_what_is_written_is_read(tmp_path, array):
    sha256 = hashlib.sha256(idx_bytes(array)).hexdigest()
    for packed in (False, True):
        path = stored(tmp_path, idx_bytes(array), packed)
        found = known.read_idx(path, array.ndim, sha256)
        assert found.dtype == np.uint8
        assert np.array_equal(found, array)
        assert known.content_sha256(path) == sha256


def test_files_are_never_written(tmp_path):
    path = stored(tmp_path, idx_bytes(SMALL), packed=False)
    array = known.read_idx(path, 3)
    array[0] = 255
    assert path.read_bytes() == idx_bytes(SMALL)


@pytest.mark.parametrize("packed", [False, True])
def test_every_truncation_is_refused(tmp_path, packed):
    whole = stored(tmp_path, idx_bytes(SMALL), packed).read_bytes()
    path = tmp_path / ("cut.gz" if packed else "cut")
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"cut(\.gz)?: (is truncated|cannot be read)"):
            known.read_idx(path, 3)


def test_every_changed_byte_of_a_packed_file_is_refused_or_harmless(tmp_path):
    whole = gzip.compress(idx_bytes(SMALL))
    path = tmp_path / "file.gz"
    sha256 = hashlib.sha256(idx_bytes(SMALL)).hexdigest()
    harmless = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            assert np.array_equal(known.read_idx(path, 3, sha256), SMALL)
            harmless += 1
        except DataError:
            pass
    assert harmless <= 6  # of gzip's header: the time stamp, a hint at the compression, the operating system


HUGE = bytes([0, 0, 8, 3]) + b"\xff" * 12


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx_bytes(SMALL) + b"x", "goes on after its end, where its header promises 24"),
        (b"\x89PNG" + b"x" * 40, "not the IDX file expected: starts with 89504e47, not 00000803"),
        (idx_bytes(SMALL[0]), "starts with 00000802, not 00000803"),
        (b"\0\0\x0d" + idx_bytes(SMALL)[3:], "starts with 00000d03"),
        (HUGE, "more than any file of this kind has"),
        (b"", "is truncated: 0 bytes, and the header alone has 16"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message, packed):
    path = stored(tmp_path, content, packed)
    with pytest.raises(DataError, match=message) as caught:
        known.read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_a_huge_content_is_not_unpacked(tmp_path):
    path = stored(tmp_path, idx_bytes(SMALL) + bytes(1 << 24), packed=True)
    tracemalloc.start()
    with pytest.raises(DataError, match="goes on after its end"):
        known.read_idx(path, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 23  # a few chunks of a megabyte, of sixteen


def test_another_content_is_refused_with_both_checksums(tmp_path):
    path = stored(tmp_path, idx_bytes(SMALL), packed=False)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DataError, match=f"than published: sha256 {found}, expected {'0' * 64}; replace it"):
        known.read_idx(path, 3, "0" * 64)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere: cannot be read: No such file"):
        known.read_idx(tmp_path / "nowhere", 3)


def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    """A forged header promises whatever the packed zeros behind it unpack to."""
    monkeypatch.setattr(known, "LARGEST", 1 << 20)
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + (1 << 26).to_bytes(4, "big") + bytes(1 << 26), 1))
    tracemalloc.start()
    with pytest.raises(DataError, match="its header promises 67,108,864 bytes, more than any file of this kind has"):
        known.read_idx(path, 1)
    known.content_sha256(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
