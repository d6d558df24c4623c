"""The log of a workspace against its receipts: everything that can be wrong is found, and named."""

import json
import shutil
from dataclasses import replace

import pytest

from maxrr.errors import EvidenceError
from maxrr.evidence import LogWriter, SigningKey
from maxrr.evidence.exact_text import canonical_json
from maxrr.unlearning import HandedReceipt
from maxrr.workspace import check_receipt_log
from maxrr.workspace.names import origin_of
from tests.cases import THOROUGH, every
from tests.evidence.logs import contents, flipped
from tests.plain_receipts import receipt, receipts

KEY, LATER = SigningKey.generate(), SigningKey.generate()
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def how_many(monkeypatch):
    """A folder with the files that are looked at. What `workspace.json` says is one file here."""
    monkeypatch.setattr("os.fsync", lambda _: None)

    class Said:
        token = TOKEN

        def __init__(self, requests):
            self.requests = requests

        @classmethod
        def read(cls, folder):
            return cls(int((folder / "workspace.json").read_text()))

        last = read

    monkeypatch.setattr("maxrr.workspace.log_check.Root", Said)
    monkeypatch.setattr("maxrr.workspace.log_check.Commit", Said)


def line_of(handed):
    said = handed.to_bytes()
    return (said if handed.envelope else canonical_json({"unsigned": said.decode()})) + b"\n"


def logged(folder, handed, key=KEY, entries=None):
    """A workspace's receipts and their log."""
    folder.mkdir(exist_ok=True)
    (folder / "workspace.json").write_text(str(len(handed)))
    (folder / f"receipts-{TOKEN}.jsonl").write_bytes(b"".join(map(line_of, handed)))
    writer = LogWriter.create(folder / "log", origin_of(TOKEN), key)
    writer.append([bytes.fromhex(each.sha256) for each in handed] if entries is None else entries)
    return folder


def signed_after(row, unsigned=0):
    return [HandedReceipt(each) if each.number <= unsigned else HandedReceipt.sign(each, KEY) for each in row]


@pytest.mark.parametrize(("count", "unsigned"), [(0, 0), (1, 0), (3, 1), (260, 2)])
def test_a_log_that_holds(tmp_path, count, unsigned):
    folder = logged(tmp_path / "ws", signed_after(receipts(count), unsigned))
    found = check_receipt_log(folder, [KEY.public])
    assert (found.checkpoint.size, found.signed) == (count, count - unsigned)


def test_after_a_rotation(tmp_path):
    row = receipts(4)
    handed = [HandedReceipt.sign(each, KEY if each.number < 3 else LATER) for each in row]
    folder = logged(tmp_path / "ws", handed, LATER)
    assert check_receipt_log(folder, [LATER.public, KEY.public]).signed == 4
    with pytest.raises(EvidenceError, match="receipt 1: the envelope is not signed by a key that is trusted"):
        check_receipt_log(folder, [LATER.public])
    with pytest.raises(EvidenceError, match="the note is not signed"):
        check_receipt_log(folder, [KEY.public])


def test_what_an_interrupted_request_left_is_not_looked_at(tmp_path):
    folder = logged(tmp_path / "ws", signed_after(receipts(2)))
    for left in (line_of(HandedReceipt(receipt(3)))[:40], b"\x00", line_of(HandedReceipt(receipt(3)))):
        with open(folder / f"receipts-{TOKEN}.jsonl", "ab") as file:
            file.write(left)
        assert check_receipt_log(folder, [KEY.public]).signed == 2


def wrong():
    """What is found in a row of three, by what was done to it."""
    row = receipts(3)
    handed = signed_after(row)
    entries = [bytes.fromhex(each.sha256) for each in handed]
    other = HandedReceipt.sign(replace(row[1], reason="another"), KEY)
    alone = HandedReceipt.sign(replace(row[2], previous=""), KEY)
    second = [handed[0], HandedReceipt.sign(replace(row[1], number=3), KEY)]
    forged = [*handed[:2], HandedReceipt.sign(row[2], LATER)]
    return {
        "exchanged": (([handed[0], other, handed[2]], entries), "entry 1 of the log is not the hash of receipt 2"),
        "not in the row": (([*handed[:2], alone], None), "receipt 3 does not name the one before"),
        "another number": ((second, None), "receipt 2 says that it is number 3"),
        "another key": ((forged, None), "receipt 3: the envelope is not signed by a key that is trusted"),
        "no longer signed": (([*handed[:2], HandedReceipt(row[2])], None), "receipt 3 is not signed"),
        "logged in another order": ((handed, [entries[1], entries[0], entries[2]]), "entry 0 of the log is not"),
        "not logged": ((handed, entries[:2]), "receipt 3 is not logged"),
        "an older copy": ((handed[:2], entries), "older copy than its log"),
    }


@pytest.mark.parametrize("what", wrong())
def test_what_is_wrong_is_named(tmp_path, what):
    (handed, entries), match = wrong()[what]
    folder = logged(tmp_path / "ws", handed, entries=entries)
    with pytest.raises(EvidenceError, match=match):
        check_receipt_log(folder, [KEY.public])


def test_files_that_are_missing_or_of_another_workspace(tmp_path):
    folder = logged(tmp_path / "ws", signed_after(receipts(3)))
    file = folder / f"receipts-{TOKEN}.jsonl"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(EvidenceError, match="ends before receipt 3, of 3"):
        check_receipt_log(folder, [KEY.public])
    file.write_bytes(content.replace(b'"keyid"', b'"keyId"'))
    with pytest.raises(EvidenceError, match="receipt 1: a signature of the envelope has a field"):
        check_receipt_log(folder, [KEY.public])
    file.write_bytes(content.replace(b'{"payload":', b'{ "payload":'))
    with pytest.raises(EvidenceError, match="receipt 1 is not written as we write"):
        check_receipt_log(folder, [KEY.public])
    file.unlink()
    with pytest.raises(EvidenceError, match="cannot be read"):
        check_receipt_log(folder, [KEY.public])
    shutil.rmtree(folder / "log")
    with pytest.raises(EvidenceError, match="checkpoint cannot be read"):
        check_receipt_log(folder, [KEY.public])
    LogWriter.create(folder / "log", "maxrr.dev/workspace/fedcba9876543210", KEY)
    with pytest.raises(EvidenceError, match="of another log"):
        check_receipt_log(folder, [KEY.public])


def test_every_bit_of_the_log_and_of_the_receipts_counts(tmp_path):
    folder = logged(tmp_path / "ws", signed_after(receipts(2), unsigned=1))
    tried = 0
    for name, content in contents(folder).items():
        if name == "workspace.json":
            continue
        for bit in every(97 if name.startswith("receipts") else 11, 8 * len(content)):
            (folder / name).write_bytes(flipped(content, bit))
            with pytest.raises(EvidenceError):
                check_receipt_log(folder, [KEY.public])
            tried += 1
        (folder / name).write_bytes(content)
    check_receipt_log(folder, [KEY.public])
    assert tried > (30_000 if THOROUGH else 400)


def test_nothing_of_the_workspace_is_believed(tmp_path):
    """Receipts and log rewritten together, by one who has everything but the key."""
    row = receipts(3)
    folder = logged(tmp_path / "ws", signed_after(row))
    kept = (folder / "log" / "checkpoint").read_bytes()
    shutil.rmtree(folder)
    forged = [HandedReceipt.sign(replace(each, reason="another"), LATER) for each in row[:1]]
    logged(folder, forged, LATER)
    with pytest.raises(EvidenceError, match="not signed by a key"):
        check_receipt_log(folder, [KEY.public])
    (folder / "log" / "checkpoint").write_bytes(kept)
    with pytest.raises(EvidenceError):
        check_receipt_log(folder, [KEY.public])
    assert json.loads((folder / "workspace.json").read_text()) == 1
