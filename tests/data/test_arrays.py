"""Arrays from files: what NumPy writes is read, objects and damaged files are refused."""

import os
from zipfile import ZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxrr.data import DataError
from maxrr.data.arrays import map_npy, names_in, read_npy, read_npz
from maxrr.errors import UnreadableFile
from tests.data.sources import drawn, load_by_rows

KINDS = hnp.integer_dtypes(endianness="?") | hnp.floating_dtypes(endianness="?") | hnp.unicode_string_dtypes()


@drawn
@given(hnp.arrays(KINDS, hnp.array_shapes(min_dims=0, min_side=0, max_dims=3)), st.booleans())
def test_what_numpy_writes_is_read(tmp_path, array, in_columns):
    array = np.asfortranarray(array) if in_columns else array
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", a=array)
    np.savez_compressed(tmp_path / "b.npz", a=array)
    found = [read_npy(tmp_path / "a.npy"), *(read_npz(tmp_path / name, ["a"])["a"] for name in ("a.npz", "b.npz"))]
    for one in found:
        assert (one.dtype, one.shape, one.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert names_in(tmp_path / "a.npz") == ["a"]


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", b"PK\x03\x04", b"\x80\x04."]
)
def test_what_is_no_array_is_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    for read in (read_npy, map_npy, names_in, load_by_rows):
        with pytest.raises(UnreadableFile):
            read(tmp_path / "a.npz")


def test_a_member_that_is_no_array_is_refused(tmp_path):
    """NumPy gives the bytes of such a member, so that commands ended with a traceback."""
    with ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", b"nonsense")
    with pytest.raises(UnreadableFile, match="X is no array"):
        read_npz(tmp_path / "a.npz", ["X"])


def test_objects_are_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([None]), y=np.arange(1))
    np.save(tmp_path / "a.npy", np.array([None]), allow_pickle=True)
    for read in (read_npy, map_npy):
        with pytest.raises(DataError, match=r"[Oo]bject"):
            read(tmp_path / "a.npy")
    with pytest.raises(DataError, match="allow_pickle"):
        load_by_rows(tmp_path / "a.npz")
    assert read_npz(tmp_path / "a.npz", ["y"])["y"].tolist() == [0]  # others are not looked at


def test_one_kind_is_not_taken_for_the_other(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "b.npz", X=np.arange(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    for read, name in ((names_in, "a.npz"), (read_npy, "b.npz")):
        with pytest.raises(DataError, match="another kind"):
            read(tmp_path / name)


def test_pipes_and_folders(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    (tmp_path / "b.npz").mkdir()
    for read in (read_npy, names_in):
        with pytest.raises(OSError, match="Is a pipe"):
            read(tmp_path / "a.npz")
        with pytest.raises(IsADirectoryError):
            read(tmp_path / "b.npz")
    with pytest.raises(DataError, match="neither a file"):
        load_by_rows(tmp_path / "a.npz")


def test_every_truncation_of_an_array_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(5))
    whole = (tmp_path / "a.npy").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "a.npy").write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"read as \.npy"):
            read_npy(tmp_path / "a.npy")
