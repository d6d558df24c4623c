"""The log in its folder: roots and proofs of Go's implementation, any batches, every checkpoint, damage."""

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxrr.errors import EvidenceError, UntrustedKey, WrongLog
from maxrr.evidence import Checkpoint, Log, SigningKey, check_log, compare_logs
from maxrr.evidence.exact_text import to_base64
from maxrr.evidence.log import CHECKPOINT, ENTRIES, ENTRY, LogRelation, LogWriter
from maxrr.evidence.log_proofs import Subtrees, leaf_hash
from tests.cases import every, examples
from tests.evidence.logs import KEY, ORIGIN, contents, digits, flipped, log_of, numbers, tree_hash

GO = json.loads((Path(__file__).parents[1] / "fixtures" / "evidence" / "go_tlog.json").read_text())


@pytest.fixture(autouse=True)
def unflushed(monkeypatch):
    """Nothing here loses power: test_log_crash has the flushes."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def digest(proof):
    return hashlib.sha256(bytes([len(proof.path)]) + b"".join(proof.path)).hexdigest()


def opened(folder):
    return Log.open(folder, ORIGIN, [KEY.public])


LARGE = (65_535, 65_536, 65_539)  # of which 65,537 has all that they have


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(said, id=str(said["size"]), marks=[pytest.mark.long] * (said["size"] in LARGE))
        for said in GO["some"]
    ],
)
def test_roots_and_proofs_are_those_of_go(said):
    size, subtrees = said["size"], Subtrees(map(leaf_hash, digits(0, said["size"])))
    root = subtrees.root(0, size)
    assert to_base64(root) == said["root"]
    for index, expected in said["inclusion"].items():
        proof = subtrees.prove_inclusion(int(index), size)
        assert digest(proof) == expected
        assert proof.verify(leaf_hash(index.encode()), size, root)
    for earlier in map(int, said["consistency"]):
        assert subtrees.root(0, earlier) == tree_hash(digits(0, earlier))


def test_all_proofs_from_files(tmp_path):
    log_of(tmp_path / "log", 257)
    log, entries = opened(tmp_path / "log"), numbers(0, 257)
    assert log.entries() == entries
    for index in (*every(7, 250), *range(250, 257)):
        assert log.prove_inclusion(index).verify(leaf_hash(entries[index]), 257, log.checkpoint.root)


@examples(200)
@given(st.lists(st.integers(0, 30), max_size=6), st.data())
@example([7, 1, 1], None)
@example([15, 0, 2], None)
def test_any_batches_give_the_log_of_one(tmp_path_factory, batches, data):
    folder = tmp_path_factory.mktemp("logs")
    writer, checkpoints, entries = LogWriter.create(folder / "log", ORIGIN, KEY), [], []
    for batch in batches:
        new = numbers(len(entries), len(entries) + batch)
        entries += new
        if data is not None and data.draw(st.booleans()):
            writer = LogWriter.open(folder / "log", ORIGIN, KEY)
        checkpoints.append(writer.append(new))
        assert check_log(folder / "log", ORIGIN, [KEY.public]) == checkpoints[-1]
    anew = LogWriter.create(folder / "anew", ORIGIN, KEY)
    anew.append(entries)
    assert anew.checkpoint == writer.checkpoint
    assert writer.checkpoint.root == tree_hash(entries)
    assert contents(folder / "anew") == contents(folder / "log")
    for earlier, later in pairwise(checkpoints):
        assert compare_logs(earlier, Log(folder / "log", later)) in (LogRelation.extends, LogRelation.same)
    for checkpoint in checkpoints:  # each is as readable as when it was the newest
        assert Log(folder / "log", checkpoint).entries() == entries[: checkpoint.size]


def test_entries_are_of_one_length(tmp_path):
    writer = log_of(tmp_path / "log", 2)
    before = contents(tmp_path / "log")
    for wrong in (b"", bytes(ENTRY - 1), bytes(ENTRY + 1)):
        with pytest.raises(WrongLog):
            writer.append([bytes(ENTRY), wrong])
    assert writer.append([]) == writer.checkpoint
    assert contents(tmp_path / "log") == before


def test_a_log_is_created_once(tmp_path):
    log_of(tmp_path / "log", 3)
    with pytest.raises(WrongLog):
        LogWriter.create(tmp_path / "log", ORIGIN, KEY)
    (tmp_path / "log" / CHECKPOINT).unlink()
    with pytest.raises(WrongLog):
        LogWriter.open(tmp_path / "log", ORIGIN, KEY)


def test_two_writers_do_not_sign_two_histories(tmp_path):
    first = log_of(tmp_path / "log", 3)
    second = LogWriter.open(tmp_path / "log", ORIGIN, KEY)
    first.append([b"a" * ENTRY])
    for entries in ([b"b" * ENTRY], []):
        with pytest.raises(WrongLog):
            second.append(entries)
    assert opened(tmp_path / "log").entries()[3:] == [b"a" * ENTRY]


def test_a_key_is_rotated(tmp_path):
    log_of(tmp_path / "log", 3)
    new = SigningKey.generate()
    with pytest.raises(UntrustedKey):
        LogWriter.open(tmp_path / "log", ORIGIN, new)
    writer = LogWriter.open(tmp_path / "log", ORIGIN, new, retired=[KEY.public])
    old = writer.checkpoint
    writer.append(numbers(3, 4))
    assert check_log(tmp_path / "log", ORIGIN, [new.public]).root == tree_hash(numbers(0, 4))
    with pytest.raises(UntrustedKey):
        check_log(tmp_path / "log", ORIGIN, [KEY.public])
    assert compare_logs(old, Log(tmp_path / "log", writer.checkpoint)) is LogRelation.extends


def test_what_a_log_does_not_have(tmp_path):
    log_of(tmp_path / "log", 3)
    log = opened(tmp_path / "log")
    for ask in (
        lambda: log.prove_inclusion(3), lambda: log.prove_inclusion(-1), lambda: log.prove_inclusion(4),
    ):  # fmt: skip
        with pytest.raises(WrongLog):
            ask()


def test_every_bit_of_a_log_counts(tmp_path):
    folder = tmp_path / "log"
    log_of(folder, 2, 3, 21)
    for name, content in contents(folder).items():
        for bit in every(29, 8 * len(content)):
            (folder / name).write_bytes(flipped(content, bit))
            with pytest.raises(EvidenceError):
                check_log(folder, ORIGIN, [KEY.public])
        (folder / name).write_bytes(content)
    check_log(folder, ORIGIN, [KEY.public])


def test_damaged_entries_give_no_proofs_and_no_writer(tmp_path):
    folder = tmp_path / "log"
    checkpoint = log_of(folder, 30).checkpoint
    whole = (folder / ENTRIES).read_bytes()
    for wrong in (flipped(whole, 8 * ENTRY * 5), whole[:-1], None, whole[ENTRY:]):
        (folder / ENTRIES).unlink()
        if wrong is not None:
            (folder / ENTRIES).write_bytes(wrong)
        log = Log(folder, checkpoint)
        for ask in (
            lambda log=log: log.prove_inclusion(4), log.entries,
            lambda: LogWriter.open(folder, ORIGIN, KEY),
        ):  # fmt: skip
            with pytest.raises(WrongLog):
                ask()
        (folder / ENTRIES).write_bytes(whole)
    (folder / ENTRIES).write_bytes(whole + b"left by one who was killed")
    LogWriter.open(folder, ORIGIN, KEY).append(numbers(30, 31))
    assert opened(folder).entries() == numbers(0, 31)
    for size, entries in ((600, [b"a"]), (32, numbers(0, 32))):
        (folder / CHECKPOINT).write_bytes(Checkpoint.sign(ORIGIN, size, tree_hash(entries), KEY).to_bytes())
        with pytest.raises(WrongLog):
            check_log(folder, ORIGIN, [KEY.public])


def test_a_restored_copy_is_noticed_by_who_kept_a_checkpoint(tmp_path):
    writer = log_of(tmp_path / "log", 5)
    backup = contents(tmp_path / "log")
    kept = writer.append([b"forgotten".ljust(ENTRY)])
    for name, content in backup.items():
        (tmp_path / "log" / name).write_bytes(content)
    restored = check_log(tmp_path / "log", ORIGIN, [KEY.public])
    assert compare_logs(kept, restored) is LogRelation.older
    again = LogWriter.open(tmp_path / "log", ORIGIN, KEY).append([b"something else".ljust(ENTRY)])
    assert compare_logs(kept, again) is LogRelation.forked
