"""Arrays from files that others made: what is there counts, not what a header promises."""

import io
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxrr.data import DataError, arrays
from maxrr.data.arrays import names_in, read_npy, read_npz
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


def npy(shape, descr="<f8", data=b"", version=1, padding=0):
    """The .npy format with any promise."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode() + b" " * padding + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def npz(path, members, how=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


PROMISES = {
    "more than there is": (npy("(10, )", data=bytes(72)), "its header promises 1.. bytes, and there are"),
    "less than there is": (npy("(8, )", data=bytes(72)), "its header promises 1.. bytes, and there are"),
    "exabytes": (npy(f"({2**60}, )", data=bytes(8)), "its header promises 9,223,372"),
    "more than any integer": (npy(f"({2**62}, {2**62})"), "its header promises"),
    "less than nothing": (npy("(-1, )"), "its header promises float64 of shape"),
    "strings without room": (npy(f"({2**60}, )", "<U0"), "its header promises <U0"),
    "nothing at all": (npy(f"({2**60}, )", "|V0"), "its header promises"),
    "long strings": (npy("(1, )", "<U5000", bytes(20000)), "strings of more than 1,000 characters"),
    "objects": (npy("(1, )", "|O", bytes(8)), "holds Python objects"),
    "objects in records": (npy("(1, )", [("a", "|O")], bytes(8)), "holds Python objects"),
    "code": (npy("(1, )", "__import__('os')"), "cannot be read"),
    "a long header": (npy("(1, )", version=2, padding=20_000), "its header is too large"),
    "a header that is cut": (npy("(1, )")[:40], "cannot be read"),
    "a header of gigabytes": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "its header is too large"),
    "another version": (npy("(1, )", data=bytes(8)).replace(b"Y\x01", b"Y\x09"), "not in the .npy format"),
    "nonsense": (b"nonsense", "not in the .npy format"),
    "nothing": (b"", "not in the .npy format"),
    "brackets": (npy("(" * 9000), "cannot be read"),
}


@pytest.mark.parametrize("case", PROMISES)
def test_promises(tmp_path, case):
    content, message = PROMISES[case]
    (tmp_path / "a.npy").write_bytes(content)
    npz(tmp_path / "a.npz", [("X.npy", content), ("y.npy", content)])
    tracemalloc.start()
    for read, name in ((read_npy, "a.npy"), (lambda path: read_npz(path, ["X"]), "a.npz"), (load_by_rows, "a.npz")):
        with pytest.raises(DataError, match=message) as caught:
            read(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@pytest.mark.parametrize("case", PROMISES)
def test_members_that_are_not_asked_for_are_not_read(tmp_path, case):
    good = io.BytesIO()
    np.save(good, np.arange(3))
    npz(tmp_path / "a.npz", [("X.npy", good.getvalue()), ("other.npy", PROMISES[case][0]), ("read.me", b"x")])
    assert read_npz(tmp_path / "a.npz", ["X"])["X"].tolist() == [0, 1, 2]
    assert names_in(tmp_path / "a.npz") == ["X", "other", "read.me"]


def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    """A file of 4 MB would have been 4 GB of zeros. Here both are less."""
    monkeypatch.setattr(arrays, "SMALL", 1 << 20)
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1 << 20, 4)), y=np.zeros(1 << 20))
    tracemalloc.start()
    with pytest.raises(DataError, match="unpack to 41,9"):
        load_by_rows(tmp_path / "a.npz")
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()
    monkeypatch.setattr(arrays, "SMALL", 1 << 26)
    assert read_npz(tmp_path / "a.npz", ["X"])["X"].shape == (1 << 20, 4)


def test_a_size_that_is_a_lie(tmp_path):
    """The directory of an archive says how large a member is: no more is unpacked, whatever is in it."""
    path = npz(tmp_path / "a.npz", [("X.npy", npy("(100, )", data=bytes(800)))])
    honest = path.read_bytes()
    size = len(npy("(100, )", data=bytes(800)))
    for other in (size - 8, size + 8, 0, 2**32 - 2):
        path.write_bytes(honest.replace(struct.pack("<I", size), struct.pack("<I", other)))
        with pytest.raises(DataError, match="cannot be read"):
            read_npz(path, ["X"])


@pytest.mark.parametrize("names", [("X.npy", "X.npy"), ("X.npy", "X")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_one_name_twice(tmp_path, names):
    path = npz(tmp_path / "a.npz", [(name, npy("(1, )", data=bytes(8))) for name in names])
    for read in (names_in, load_by_rows):
        with pytest.raises(DataError, match="holds 'X' twice"):
            read(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_pack(tmp_path, how):
    """zipfile does not bound what these unpack to."""
    path = npz(tmp_path / "a.npz", [("X.npy", npy("(1, )", data=bytes(8)))], how)
    with pytest.raises(DataError, match="way that NumPy"):
        read_npz(path, ["X"])


def test_a_foreign_member_is_named(tmp_path):
    path = npz(tmp_path / "a.npz", [("X.npy", b"x"), ("y.npy", b"x"), ("notes.txt", b"x"), ("sub/", b"")])
    with pytest.raises(DataError, match="has sub/, which"):
        load_by_rows(path)


def test_pipes_and_folders(tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    (tmp_path / "b.npz").mkdir()
    for read in (read_npy, names_in):
        with pytest.raises(OSError, match="pipe, not"):
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


def test_records_without_numbers_are_not_counted_first(tmp_path):
    """A shape with a zero takes no room in the file; a row number for each of its records would."""
    npz(tmp_path / "a.npz", [("X.npy", npy(f"({2**40}, 0)", "|u1")), ("y.npy", npy("(0, )", "<i8"))])
    with pytest.raises(DataError, match="X has 1099511627776"):
        load_by_rows(tmp_path / "a.npz")
