"""The journal and the files that only grow: what was committed is read back, and anything else is damage or cut off."""

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.workspace import WorkspaceError
from maxrr.workspace.appending import Extent, Growing
from maxrr.workspace.journal import HEADER, Frame, Journal, last_frame
from tests.cases import every

KEY, SEAL = b"k" * 32, "ab" * 32


def frame(number):
    grown = {"proofs.bin": Extent(number, "cd" * 32)}
    return Frame(number, number - 1, grown, (number, number + 7), {number // 256: "ef" * 32}, "01" * 32)


FRAMES = [frame(number) for number in range(1, 4)]


@pytest.fixture
def path(tmp_path):
    """A journal with three frames."""
    journal = Journal(tmp_path / "journal.bin", KEY, SEAL)
    journal.create()
    for each in FRAMES:
        journal.append(each)
    return journal.path


def read(path, key=KEY, seal=SEAL):
    return Journal(path, key, seal).read()


def test_frames_are_read_back_and_go_on(path):
    assert read(path) == FRAMES
    again = Journal(path, KEY, SEAL)
    again.read()
    again.append(frame(4))
    assert read(path) == [*FRAMES, frame(4)]
    assert last_frame(path)["requests"] == 4


def test_another_key_or_another_root_does_not_go_with_it(path):
    for key, seal in ((b"o" * 32, SEAL), (KEY, "cd" * 32)):
        with pytest.raises(WorkspaceError, match="its frame 1 was not written under the key"):
            read(path, key, seal)


def test_cut_off_anywhere_the_frames_before_count(path):
    content, whole = path.read_bytes(), []
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        if length < len(HEADER):
            with pytest.raises(WorkspaceError, match="it is no journal"):
                read(path)
            continue
        journal = Journal(path, KEY, SEAL)
        found = journal.read()
        assert found == FRAMES[: len(found)]
        assert journal.torn == (length > journal.length)
        whole.append(len(found))
        journal.cut()
        journal.append(frame(9))
        assert read(path) == [*found, frame(9)]
    assert whole == sorted(whole)
    assert set(whole) == {0, 1, 2, 3}


def test_zeros_after_the_last_frame_do_not_count(path):
    content = path.read_bytes()
    for count in (1, 7, 8, 100, 5000):
        path.write_bytes(content + bytes(count))
        assert read(path) == FRAMES


def test_every_bit_counts(path):
    content = path.read_bytes()
    for bit in every(5, 8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(WorkspaceError, match=r"journal\.bin is damaged"):
            read(path)


def test_frames_cannot_be_left_out_or_moved(path):
    journal = Journal(path, KEY, SEAL)
    starts = [len(HEADER)]
    content = path.read_bytes()
    for each in FRAMES:
        starts.append(starts[-1] + 40 + len(each.to_bytes()))
    one, two, three = (content[a:b] for a, b in itertools.pairwise(starts))
    assert starts[-1] == len(content)
    for other in (two + three, one + three, two + one + three, one + one, three):
        path.write_bytes(HEADER + other)
        with pytest.raises(WorkspaceError, match="was not written under the key"):
            read(path)
    del journal


@given(st.lists(st.binary(max_size=40), max_size=6), st.binary(max_size=20))
def test_a_file_that_grows_is_the_sum_of_what_was_appended(tmp_path_factory, parts, rest):
    path = tmp_path_factory.mktemp("growing") / "file.bin"
    file = Growing.created(path, b"first")
    extents = [file.extent]
    for part in parts:
        file = file.append(part)
        extents.append(file.extent)
    whole = b"".join([b"first", *parts])
    assert path.read_bytes() == whole
    with open(path, "ab") as more:
        more.write(rest)
    for extent in extents:
        found, content = Growing.read(path, extent)
        assert (found.extent, content) == (extent, whole[: extent.length])
        assert extent.sha256 == hashlib.sha256(content).hexdigest()
    file.cut()
    assert path.read_bytes() == whole
    assert file.part(2, 5) == whole[2:5]


def test_a_file_that_is_shorter_or_another_is_refused(tmp_path):
    file = Growing.created(tmp_path / "file.bin", b"what was committed")
    for other, why in ((b"what was committ", "it ends after 16 of 18 bytes"), (b"What was committed", "the hash")):
        file.path.write_bytes(other)
        with pytest.raises(WorkspaceError, match=why):
            Growing.read(file.path, file.extent)
