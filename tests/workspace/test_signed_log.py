"""The log that a workspace has written, checked with the public key alone."""

import shutil
import subprocess
import sys
from contextlib import suppress
from unittest import mock

import pytest

from maxrr.errors import EvidenceError, WrongLog
from maxrr.evidence import PublicKeys, make_key, rotate_key
from maxrr.evidence.log import LogWriter
from maxrr.evidence.public_keys import find_key
from maxrr.workspace import Workspace, check_receipt_log
from tests.evidence.logs import contents, flipped
from tests.workspace.problems import copied, history_in, receipts_in


class Signed:
    """A workspace that signs, its key, and records to forget."""

    def __init__(self, folder, private, records):
        self.folder, self.private = folder, private
        self.ids = iter(records.ids.tolist())

    @property
    def keys(self):
        return PublicKeys.load(self.private.with_suffix(".pub")).keys

    def forget(self, count=1, *, signed=True):
        key = {"signing_key": find_key(self.private)} if signed else {}
        with Workspace.open(self.folder, **key) as workspace:
            for _ in range(count):
                workspace.model.unlearn([next(self.ids)], core_policy="keep-extractor")

    def check(self):
        found = check_receipt_log(self.folder, self.keys)
        return found.checkpoint.size, found.signed


@pytest.fixture
def signed(folder, tmp_path, records):
    """After a request from before it had a key, and two since."""
    make_key(tmp_path / "key.pem")
    made = Signed(folder, tmp_path / "key.pem", records)
    made.forget(signed=False)
    made.forget(2)
    return made


def test_all_receipts_are_logged_and_those_since_the_key_are_signed(signed):
    assert signed.check() == (3, 2)
    signed.forget(2)
    assert signed.check() == (5, 4)


def test_a_key_is_rotated(signed):
    rotate_key(signed.private)
    signed.forget()
    assert signed.check() == (4, 3)
    with pytest.raises(EvidenceError, match="receipt 2: the envelope is not signed by a key that is trusted"):
        check_receipt_log(signed.folder, signed.keys[:1])


def test_a_request_that_is_not_logged_is_named_and_logged_by_the_next_opening(signed):
    workspace = Workspace.open(signed.folder, signing_key=find_key(signed.private))
    with mock.patch.object(LogWriter, "append", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        workspace.model.unlearn([next(signed.ids)], core_policy="keep-extractor")
    with pytest.raises(WrongLog):
        signed.check()
    workspace.close()
    Workspace.open(signed.folder, signing_key=find_key(signed.private)).close()
    assert signed.check() == (4, 3)


def test_an_older_copy_beside_a_newer_log(signed, tmp_path):
    older = copied(signed.folder, tmp_path / "older")
    signed.forget()
    shutil.rmtree(older / "log")
    shutil.copytree(signed.folder / "log", older / "log")
    with pytest.raises(WrongLog):
        check_receipt_log(older, signed.keys)


def test_any_bit_of_log_and_receipts_counts(signed):
    files = {name: content for name, content in contents(signed.folder).items() if name.startswith("log/")}
    history = history_in(signed.folder)
    places = [(name, 0, len(content), 61) for name, content in files.items()]
    files[history.name] = history.read_bytes()
    receipts = receipts_in(signed.folder)
    places += [(history.name, files[history.name].index(each), len(each), 997) for each in receipts]
    for name, start, length, step in places:
        for bit in range(8 * start, 8 * (start + length), step):
            (signed.folder / name).write_bytes(flipped(files[name], bit))
            with pytest.raises(EvidenceError):
                signed.check()
        (signed.folder / name).write_bytes(files[name])
    signed.check()


CODE = "import sys; from maxrr.workspace import check_receipt_log; from maxrr.evidence import PublicKeys; " \
    "check_receipt_log(sys.argv[1], PublicKeys.load(sys.argv[2]).keys); print(*sys.modules)"  # fmt: skip


def test_the_check_needs_neither_pytorch_nor_arrays(signed):
    command = [sys.executable, "-c", CODE, signed.folder, signed.private.with_suffix(".pub")]
    loaded = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.split()
    assert {"torch", "numpy", "sklearn"}.intersection(loaded) == set()
