"""The log of a workspace against its receipts: everything that can be wrong is found, and named."""

import shutil
from dataclasses import replace

import pytest

from maxrr.errors import EvidenceError, NotAWorkspace, UntrustedKey, WrongLog
from maxrr.evidence import SigningKey
from maxrr.evidence.log import LogWriter
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import check_receipt_log
from maxrr.workspace.history import Frame, History
from maxrr.workspace.names import history_name, origin_of
from tests.cases import THOROUGH, every
from tests.evidence.logs import contents, flipped
from tests.plain_receipts import receipt, receipts
from tests.workspace.problems import answer_of

KEY, LATER = SigningKey.generate(), SigningKey.generate()
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)


def write_history(folder, receipts):
    """A history with these receipts, as bytes."""
    path = folder / history_name(TOKEN)
    History.create(path, TOKEN)
    history = History(path, b"a key that nobody asks for")
    for each in receipts:
        history.append(Frame(1, "0" * 64, answers=[answer_of(each)], receipts=each))
    return path


def logged(folder, handed, key=KEY, entries=None):
    """A workspace's receipts and their log."""
    folder.mkdir(exist_ok=True)
    write_history(folder, [each.to_bytes() for each in handed])
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
    with pytest.raises(UntrustedKey):
        check_receipt_log(folder, [KEY.public])


def test_what_an_interrupted_request_left_is_not_looked_at(tmp_path):
    folder = logged(tmp_path / "ws", signed_after(receipts(2)))
    for left in (b"\x00", HandedReceipt(receipt(3)).to_bytes(), bytes(100)):
        with open(folder / history_name(TOKEN), "ab") as file:
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
    whole = [each.to_bytes() for each in signed_after(receipts(3))]
    path = folder / history_name(TOKEN)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WrongLog):
        check_receipt_log(folder, [KEY.public])
    write_history(folder, [each.replace(b'"keyid"', b'"keyId"') for each in whole])
    with pytest.raises(EvidenceError, match=r"receipt 1: the envelope .* signatures\[0\] has a field"):
        check_receipt_log(folder, [KEY.public])
    write_history(folder, [each.replace(b'{"payload":', b'{ "payload":') for each in whole])
    with pytest.raises(EvidenceError, match="receipt 1 is not written as we write"):
        check_receipt_log(folder, [KEY.public])
    path.unlink()
    with pytest.raises(NotAWorkspace):
        check_receipt_log(folder, [KEY.public])
    write_history(folder, whole)
    shutil.rmtree(folder / "log")
    with pytest.raises(EvidenceError, match="checkpoint cannot be read"):
        check_receipt_log(folder, [KEY.public])
    LogWriter.create(folder / "log", "maxrr.dev/workspace/fedcba9876543210", KEY)
    with pytest.raises(EvidenceError, match="of another log"):
        check_receipt_log(folder, [KEY.public])


def test_every_bit_of_the_log_and_of_the_receipts_counts(tmp_path):
    handed = signed_after(receipts(2), unsigned=1)
    folder = logged(tmp_path / "ws", handed)
    tried = 0
    for name, content in contents(folder).items():
        places = [(0, len(content))]
        if name == history_name(TOKEN):
            places = [(content.index(each.to_bytes()), len(each.to_bytes())) for each in handed]
        for start, length in places:
            for bit in every(97 if name == history_name(TOKEN) else 11, 8 * length):
                (folder / name).write_bytes(flipped(content, 8 * start + bit))
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
    with pytest.raises(UntrustedKey):
        check_receipt_log(folder, [KEY.public])
    (folder / "log" / "checkpoint").write_bytes(kept)
    with pytest.raises(EvidenceError):
        check_receipt_log(folder, [KEY.public])
