"""Two states of a log: what one is to the other, by the entries themselves."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.errors import EvidenceError, WrongLog
from maxrr.evidence import Checkpoint, Log, compare_logs
from maxrr.evidence.log import ENTRIES, LogRelation, LogWriter
from tests.cases import examples
from tests.evidence.logs import KEY, ORIGIN, log_of, numbers, tree_hash


@pytest.fixture(autouse=True)
def unflushed(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)


def by_entries(kept, shown):
    """What `compare_logs` must say of logs whose files are all there, from the lists of entries."""
    if kept == shown:
        return LogRelation.same
    if shown[: len(kept)] == kept:
        return LogRelation.extends
    return LogRelation.older if kept[: len(shown)] == shown else LogRelation.forked


@examples(200)
@given(
    st.lists(st.integers(0, 300), min_size=2, max_size=2),
    st.none() | st.integers(0, 299),
    st.tuples(*[st.booleans()] * 2),
)
def test_all_outcomes(tmp_path_factory, sizes, changed, whole):
    folder = tmp_path_factory.mktemp("logs")
    entries = [numbers(0, size) for size in sizes]
    if changed is not None and changed < sizes[1]:
        entries[1][changed] = b"changed".ljust(32)
    states = []
    for name, those, tiles in zip("ab", entries, whole, strict=True):
        writer = LogWriter.create(folder / name, ORIGIN, KEY)
        writer.append(those)
        states.append(Log(folder / name, writer.checkpoint) if tiles else writer.checkpoint)
    expected = by_entries(*entries)
    if (
        len(entries[0]) != len(entries[1]) and not whole[len(entries[0]) < len(entries[1])]
    ):  # no tiles of the larger one
        expected = LogRelation.unknown if len(entries[0]) < len(entries[1]) else LogRelation.older
    assert compare_logs(*states) == expected


def test_two_logs_are_not_compared(tmp_path):
    writer = log_of(tmp_path / "log", 3)
    other = Checkpoint.sign("example.com/other", 3, writer.checkpoint.root, KEY)
    with pytest.raises(EvidenceError, match="two logs"):
        compare_logs(writer.checkpoint, other)


def test_damaged_entries_do_not_make_a_split_view(tmp_path):
    writer = log_of(tmp_path / "log", 5, 300)
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    (tmp_path / "copy" / ENTRIES).write_bytes(bytes(32 * 300))
    damaged = Log(tmp_path / "copy", writer.checkpoint)
    kept = Checkpoint.sign(ORIGIN, 5, tree_hash(numbers(0, 5)), KEY)
    with pytest.raises(WrongLog):
        compare_logs(kept, damaged)
    assert compare_logs(kept, Log(tmp_path / "log", writer.checkpoint)) == LogRelation.extends
