"""The history: what was committed is read back, and anything else is damage, or at its end and cut off."""

import itertools
from contextlib import suppress

import pytest

from maxrr.workspace import WorkspaceError
from maxrr.workspace.history import FirstLine, Frame, History, framed, frames_in, is_begun
from tests.cases import every

KEY = b"k" * 32
TOKEN = "0123456789abcdef"
HEADER = FirstLine(TOKEN).to_bytes()


def frame(number):
    receipt, proofs = b"receipt" * number, b"proof" * number
    return Frame(
        number, "01" * 32, number - 1, 300, {"records": 3}, 0, "", [number, number + 7], {"0": "ef" * 32},
        {"hashes": {}} if number == 1 else None, answers=[["cd" * 32, "ab" * 32, 1, len(receipt), len(proofs)]],
        tombstones=bytes([number]) * 96, receipts=receipt, proofs=proofs,
    )  # fmt: skip


FRAMES = [frame(number) for number in range(1, 4)]


@pytest.fixture
def path(tmp_path):
    """A history with three frames."""
    path = tmp_path / f"history-{TOKEN}.bin"
    History.create(path, TOKEN)
    history = History(path, KEY)
    for each in FRAMES:
        history.append(each)
    return path


def read(path, key=KEY):
    return History(path, key).read()


def starts_in(path):
    """Where each frame begins, and the last one ends."""
    mac, found = HEADER, [len(HEADER)]
    for each in FRAMES:
        content = framed(KEY, mac, each.to_bytes())
        mac = content[-32:]
        found.append(found[-1] + len(content))
    assert found[-1] == path.stat().st_size
    return found


def test_frames_are_read_back_and_go_on(path):
    assert read(path) == FRAMES
    again = History(path, KEY)
    again.read()
    again.append(frame(4))
    assert read(path) == frames_in(path) == [*FRAMES, frame(4)]


def test_what_came_meanwhile_is_read_after_the_rest(path):
    reader, writer = History(path, KEY, keep=True), History(path, KEY)
    assert reader.read() == writer.read() == FRAMES
    writer.append(frame(4))
    assert (reader.read(), reader.read()) == ([frame(4)], [])
    assert reader.part(0, len(HEADER)) == writer.part(0, len(HEADER)) == HEADER


def test_nothing_is_read_under_another_key(path):
    other = History(path, b"o" * 32)
    assert (other.read(), other.torn) == ([], True)


def test_cut_off_anywhere_the_frames_before_count(path, no_waiting):
    content, whole = path.read_bytes(), []
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        if length < len(HEADER):
            with pytest.raises(WorkspaceError, match="no history"):
                read(path)
            continue
        history = History(path, KEY)
        found = history.read()
        assert found == FRAMES[: len(found)] == frames_in(path)
        assert history.torn == (length > history.length)
        assert is_begun(path) == (length > len(HEADER))
        whole.append(len(found))
        history.append(frame(9))
        assert read(path) == [*found, frame(9)]
    assert whole == sorted(whole)
    assert set(whole) == {0, 1, 2, 3}


def test_zeros_after_the_last_frame_do_not_count(path):
    content = path.read_bytes()
    for count in (1, 7, 8, 100, 5000):
        path.write_bytes(content + bytes(count))
        assert read(path) == FRAMES


def test_every_bit_counts(path):
    """A frame that was changed is not believed, nor is any after it; and it is damage if it is as long as it says."""
    content, starts = path.read_bytes(), starts_in(path)
    for bit in every(17, 8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        whole = sum(bit // 8 >= start for start in starts[1:])
        if bit // 8 < len(HEADER):
            with suppress(WorkspaceError):  # or it names another workspace
                assert read(path) == []
            continue
        if bit // 8 >= starts[whole] + 8 and whole:
            with pytest.raises(WorkspaceError, match=r"frame.* not"):
                read(path)
            continue
        if bit // 8 >= starts[whole] + 8:  # of the first frame the folder tells, or another goes on from it
            with suppress(WorkspaceError):
                assert read(path) == []
            continue
        history = History(path, KEY)
        assert (history.read(), history.torn) == (FRAMES[:whole], True)


def test_frames_cannot_be_left_out_or_moved(path):
    content = path.read_bytes()
    one, two, three = (content[a:b] for a, b in itertools.pairwise(starts_in(path)))
    for other in (two + one, three):
        path.write_bytes(HEADER + other)
        history = History(path, KEY)
        assert (history.read(), history.torn) == ([], True)
    for other in (one + three, one + one):
        path.write_bytes(HEADER + other)
        with pytest.raises(WorkspaceError, match="last frame"):
            read(path)
    path.write_bytes(HEADER + two + three)
    with pytest.raises(WorkspaceError, match="frames is not"):
        read(path)


def test_a_note_changes_nothing_else(path):
    history = History(path, KEY)
    history.read()
    history.note(audit={"receipt": "cd" * 32})
    assert read(path)[-1] == Frame(3, "01" * 32, 2, 300, {"records": 3}, audit={"receipt": "cd" * 32})


def test_a_backup_says_so_in_its_first_line(path):
    """And its frames are the same, under HMACs that begin with that line."""
    history = History(path, KEY, keep=True)
    history.read()
    path.write_bytes(history.as_backup("2026-11-18T09:00:00+00:00"))
    backup = History(path, KEY)
    assert backup.first_line == (TOKEN, "2026-11-18T09:00:00+00:00", 3)
    assert (backup.read(), backup.torn) == (FRAMES, False)
    path.write_bytes(path.read_bytes().replace(backup.first_line.to_bytes(), HEADER))
    with pytest.raises(WorkspaceError, match="what was written"):
        read(path)


def test_a_history_of_another_version_is_left_alone(path):
    path.write_bytes(path.read_bytes().replace(b"history 1", b"history 2"))
    with pytest.raises(WorkspaceError, match="version 2"):
        read(path)
