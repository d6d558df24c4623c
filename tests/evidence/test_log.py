"""The log in its folder: the tiles of Go's implementation, any batches, readers of every checkpoint, damage."""

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
from maxrr.evidence.log import History
from maxrr.evidence.log_proofs import leaf_hash, prove_consistency, prove_inclusion, tile_path
from maxrr.evidence.log_writer import LogWriter
from tests.cases import every, examples
from tests.evidence.logs import KEY, ORIGIN, contents, flipped, log_of, numbers, perfect, tree_hash

GO = json.loads((Path(__file__).parents[1] / "fixtures" / "evidence" / "go_tlog.json").read_text())


@pytest.fixture(autouse=True)
def unflushed(monkeypatch):
    """Nothing here loses power: test_log_crash has the flushes."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def digest(proof):
    return hashlib.sha256(bytes([len(proof.path)]) + b"".join(proof.path)).hexdigest()


def test_paths_are_those_of_the_specification():
    assert tile_path(0, 1234067) == "tile/0/x001/x234/067"
    assert tile_path(3, 0, 255) == "tile/3/000.p/255"
    assert tile_path("entries", 999) == "tile/entries/999"
    assert tile_path("entries", 1000, 1) == "tile/entries/x001/000.p/1"


LARGE = (65_535, 65_536, 65_539)  # of which 65,537 has all that they have


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(said, id=str(said["size"]), marks=[pytest.mark.long] * (said["size"] in LARGE))
        for said in GO["some"]
    ],
)
def test_tiles_roots_and_proofs_are_those_of_go(said, tmp_path):
    size = said["size"]
    writer = log_of(tmp_path / "log", size)
    assert to_base64(writer.checkpoint.root) == said["root"]
    files = contents(tmp_path / "log")
    for path, sha256 in said["tiles"].items():
        assert hashlib.sha256(files[path]).hexdigest() == sha256
    if size <= 1000:
        assert said["tiles"].keys() == {path for path in files if path.startswith("tile/") and "entries" not in path}
    for index, expected in said["inclusion"].items():
        proof = writer.log.prove_inclusion(int(index))
        assert digest(proof) == expected
        assert proof.verify(leaf_hash(index.encode()), size, writer.checkpoint.root)
    for earlier, expected in said["consistency"].items():
        proof = writer.log.prove_consistency(int(earlier))
        assert digest(proof) == expected
        root = tree_hash(numbers(0, int(earlier)))
        assert proof.verify(int(earlier), root, size, writer.checkpoint.root)
    assert check_log(tmp_path / "log", ORIGIN, [KEY.public]) == writer.checkpoint


def test_the_example_of_the_specification(tmp_path):
    """'A tree of size 70,000 will be represented by 273 full level 0 tiles, one partial … of width 112, …'"""
    log_of(tmp_path / "log", 70_000)
    paths = contents(tmp_path / "log").keys()
    for level, full, partial in [("0", 273, "273.p/112"), ("1", 1, "001.p/17"), ("2", 0, "000.p/1")]:
        of_level = {path for path in paths if path.startswith(f"tile/{level}/")}
        assert of_level == {tile_path(int(level), i) for i in range(full)} | {f"tile/{level}/{partial}"}


def test_all_proofs_from_files(tmp_path):
    writer, entries = log_of(tmp_path / "log", 257), numbers(0, 257)
    subtree = perfect(entries)
    for index in (*every(7, 250), *range(250, 257)):
        assert writer.log.prove_inclusion(index) == prove_inclusion(index, 257, subtree)
        assert writer.log.prove_consistency(index) == prove_consistency(index, 257, subtree)
    assert list(writer.log.entries()) == entries


@examples(200)
@given(st.lists(st.integers(0, 300), max_size=6), st.data())
@example([255, 1, 1], None)
@example([254, 1, 1, 1], None)
@example([511, 0, 2], None)
def test_any_batches_give_the_log_of_one(tmp_path_factory, batches, data):
    folder = tmp_path_factory.mktemp("logs")
    writer, checkpoints, entries = LogWriter.create(folder / "log", ORIGIN, KEY), [], []
    for batch in batches:
        new = [hashlib.sha256(b"%d" % i).digest() for i in range(len(entries), len(entries) + batch)]
        new = [entry[: entry[0] % 33] for entry in new]  # of many lengths
        entries += new
        if data is not None and data.draw(st.booleans()):
            writer = LogWriter.open(folder / "log", ORIGIN, KEY)
        checkpoints.append(writer.append(new))
        assert check_log(folder / "log", ORIGIN, [KEY.public]) == checkpoints[-1]
    anew = LogWriter.create(folder / "anew", ORIGIN, KEY)
    anew.append(entries)
    assert anew.checkpoint == writer.checkpoint
    assert writer.checkpoint.root == tree_hash(entries)
    files = contents(folder / "log")
    assert contents(folder / "anew").items() <= files.items()
    # Besides, there are only partial tiles of earlier checkpoints, each of a tile that is not full yet.
    for extra in files.keys() - contents(folder / "anew").keys():
        assert ".p/" in extra
        assert extra.partition(".p/")[0] not in files
    for earlier, later in pairwise(checkpoints):
        assert compare_logs(earlier, Log(folder / "log", later)) in (History.extends, History.same)
    for checkpoint in checkpoints:  # each is as readable as when it was the newest
        assert list(Log(folder / "log", checkpoint).entries()) == entries[: checkpoint.size]


def test_one_by_one_over_two_full_tiles(tmp_path):
    writer, checkpoints = log_of(tmp_path / "log", 240), []
    for size in [*range(241, 270), *range(500, 520)]:
        before = contents(tmp_path / "log")
        checkpoints.append(writer.append(numbers(writer.checkpoint.size, size)))
        after = contents(tmp_path / "log")
        changed = {path for path in before.keys() & after.keys() if before[path] != after[path]}
        assert changed == {"checkpoint"}
        assert len(after.keys() - before.keys()) <= 5
    for checkpoint in checkpoints:
        Log(tmp_path / "log", checkpoint).prove_inclusion(checkpoint.size - 1)
    assert not (tmp_path / "log" / "tile" / "0" / "000.p").exists()
    assert not (tmp_path / "log" / "tile" / "entries" / "001.p").exists()


def test_how_much_an_append_writes_does_not_grow(tmp_path, monkeypatch):
    """The files are as many, and as large, after 300 entries as after 65,836."""
    counts = []
    for size in (300, 65_836):  # both 44 after a full tile
        writer, written = log_of(tmp_path / f"{size}", size), []
        monkeypatch.setattr(
            "maxrr.evidence.log_writer.write_atomically",
            lambda path, data, written=written, **_: written.append(len(data)),
        )
        writer.append([b"1"])
        counts.append(written[:2])
        assert len(written) == 3  # entries, hashes, checkpoint
        monkeypatch.undo()
    assert counts[0][1] == counts[1][1] == 32 * 45


def test_the_largest_entry_and_the_empty_one(tmp_path):
    writer = LogWriter.create(tmp_path / "log", ORIGIN, KEY)
    entries = [b"", bytes(65_535), b"a"]
    writer.append(entries)
    assert list(LogWriter.open(tmp_path / "log", ORIGIN, KEY).log.entries()) == entries
    before = contents(tmp_path / "log")
    with pytest.raises(EvidenceError, match="at most 65,535 bytes"):
        writer.append([b"b", bytes(65_536)])
    assert writer.append([]) == writer.checkpoint
    assert contents(tmp_path / "log") == before


def test_a_log_is_created_once(tmp_path):
    log_of(tmp_path / "log", 3)
    with pytest.raises(EvidenceError, match="has a log in it"):
        LogWriter.create(tmp_path / "log", ORIGIN, KEY)
    (tmp_path / "log" / "checkpoint").unlink()
    with pytest.raises(EvidenceError, match="has a log in it"):
        LogWriter.create(tmp_path / "log", ORIGIN, KEY)
    with pytest.raises(EvidenceError, match="checkpoint cannot be read"):
        LogWriter.open(tmp_path / "log", ORIGIN, KEY)


def test_two_writers_do_not_sign_two_histories(tmp_path):
    first = log_of(tmp_path / "log", 3)
    second = LogWriter.open(tmp_path / "log", ORIGIN, KEY)
    first.append([b"a"])
    for entries in ([b"b"], []):
        with pytest.raises(WrongLog):
            second.append(entries)
    assert list(LogWriter.open(tmp_path / "log", ORIGIN, KEY).log.entries())[3:] == [b"a"]


def test_a_key_is_rotated(tmp_path):
    log_of(tmp_path / "log", 3)
    new = SigningKey.generate()
    with pytest.raises(UntrustedKey):
        LogWriter.open(tmp_path / "log", ORIGIN, new)
    writer = LogWriter.open(tmp_path / "log", ORIGIN, new, retired=[KEY.public])
    old = writer.checkpoint
    writer.append([b"3"])
    assert check_log(tmp_path / "log", ORIGIN, [new.public]).root == tree_hash(numbers(0, 4))
    with pytest.raises(UntrustedKey):
        check_log(tmp_path / "log", ORIGIN, [KEY.public])
    assert compare_logs(old, writer.log) is History.extends


def test_what_a_log_does_not_have(tmp_path):
    log = log_of(tmp_path / "log", 3).log
    for ask in (
        lambda: log.prove_inclusion(3), lambda: log.prove_inclusion(-1), lambda: log.prove_consistency(4),
    ):  # fmt: skip
        with pytest.raises(EvidenceError, match="the log has"):
            ask()


def test_every_bit_of_a_small_log_counts(tmp_path):
    folder = tmp_path / "log"
    log_of(folder, 2, 3)
    for name, content in contents(folder).items():
        for bit in every(5, 8 * len(content)):
            (folder / name).write_bytes(flipped(content, bit))
            with pytest.raises(EvidenceError) as found:
                check_log(folder, ORIGIN, [KEY.public])
            assert name in str(found.value) or name == "checkpoint" or "entries" in name
        (folder / name).write_bytes(content)
    check_log(folder, ORIGIN, [KEY.public])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "log"
    log_of(folder, 200, 300, 513, 600)
    return folder


@examples(300)
@given(st.data())
def test_any_bit_of_a_larger_log_counts(large, data):
    files = contents(large)
    name = data.draw(st.sampled_from(sorted(files)))
    bit = data.draw(st.integers(0, 8 * len(files[name]) - 1))
    (large / name).write_bytes(flipped(files[name], bit))
    try:
        with pytest.raises(EvidenceError):
            check_log(large, ORIGIN, [KEY.public])
    finally:
        (large / name).write_bytes(files[name])


def test_the_check_names_what_is_wrong(large):
    def found(name, content):
        kept = (large / name).read_bytes()
        (large / name).unlink()
        if content is not None:
            (large / name).write_bytes(content)
        try:
            with pytest.raises(EvidenceError) as error:
                check_log(large, ORIGIN, [KEY.public])
            return str(error.value)
        finally:
            (large / name).write_bytes(kept)

    files = contents(large)
    tile, top, bundle = files["tile/0/001"], files["tile/1/000.p/2"], files["tile/entries/001"]
    assert found("tile/0/001", None) == "tile/0/001 is missing"
    assert found("tile/0/002.p/88", None) == "tile/0/002.p/88 is missing"
    assert found("tile/0/001", tile[:-1]) == "tile/0/001 has 8191 bytes instead of 8192"
    assert found("tile/0/001", flipped(tile, 8 * 32 * 5)) == "tile/0/001: hash 5 is not that of entry 261"
    assert found("tile/1/000.p/2", flipped(top, 300)) == "tile/1/000.p/2: hash 1 is not that of the tile tile/0/001"
    assert found("tile/entries/001", bundle[:-1]) == "tile/entries/001 ends within its entry 255"
    assert found("tile/entries/001", bundle + b"\0\0") == "tile/entries/001 has 257 entries instead of 256"
    assert found("tile/entries/001", bundle + b"\0") == "tile/entries/001 ends within its entry 256"
    assert found("tile/0/002.p/1", bytes(32)) == "tile/0/002.p/1 is not the beginning of what the log has become"
    assert "is not the beginning" in found("tile/entries/002.p/1", b"\0\0")
    assert found("checkpoint", None).endswith("checkpoint cannot be read: No such file or directory")
    older = Checkpoint.sign(ORIGIN, 600, tree_hash([b"a"]), KEY).to_bytes()
    assert "the root of 600 entries is" in found("checkpoint", older)
    longer = Checkpoint.sign(ORIGIN, 601, tree_hash(numbers(0, 601)), KEY).to_bytes()
    assert found("checkpoint", longer) == "tile/entries/002.p/89 is missing"
    check_log(large, ORIGIN, [KEY.public])


def test_damaged_tiles_give_no_proofs_no_entries_and_no_writer(tmp_path):
    folder = tmp_path / "log"
    log = log_of(folder, 300).log
    path = folder / "tile" / "0" / "000"
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, 8 * 32 * 5))
    for ask in (lambda: log.prove_inclusion(4), lambda: log.prove_inclusion(5), lambda: log.prove_consistency(7)):
        with pytest.raises(WrongLog):
            ask()
    with pytest.raises(WrongLog):
        list(log.entries())
    with pytest.raises(WrongLog):
        LogWriter.open(folder, ORIGIN, KEY)
    path.write_bytes(whole)
    for edge in ("tile/0/001.p/44", "tile/entries/001.p/44"):
        kept = (folder / edge).read_bytes()
        (folder / edge).write_bytes(flipped(kept, 100))
        with pytest.raises(EvidenceError):
            LogWriter.open(folder, ORIGIN, KEY)
        (folder / edge).write_bytes(kept)
    (folder / "tile/1/000.p/1").write_bytes(bytes(32))
    LogWriter.open(folder, ORIGIN, KEY)  # computes the hashes above the entries'
    with pytest.raises(EvidenceError, match=r"tile/1/000\.p/1: hash 0"):
        check_log(folder, ORIGIN, [KEY.public])


def test_a_restored_copy_is_noticed_by_who_kept_a_checkpoint(tmp_path):
    writer = log_of(tmp_path / "log", 5)
    backup = contents(tmp_path / "log")
    kept = writer.append([b"forgotten"])
    for name, content in backup.items():
        (tmp_path / "log" / name).write_bytes(content)
    restored = check_log(tmp_path / "log", ORIGIN, [KEY.public])
    assert compare_logs(kept, restored) is History.older
    again = LogWriter.open(tmp_path / "log", ORIGIN, KEY).append([b"something else"])
    assert compare_logs(kept, again) is History.forked
