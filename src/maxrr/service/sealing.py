"""What names a person in a request lies in the database under a key, and the keys in a file beside it.

A database keeps dead rows and logs of what was replaced, so that nothing is surely erased in it. A key is overwritten
in place: then nobody can read what was sealed under it, in backups of the database neither.
"""

import fcntl
import hmac
import json
import os
import secrets
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maxrr.errors import DatabaseGone, NamesDestroyed
from maxrr.files.locking import is_named

SIZE, NONCE = 32, 12


class RequestKeys:
    """The keys of requests, one after the other in a file, each at the place that the request's serial number says.

    Before them, at place 0, is a key of the service's `own`, which stays.

    Several processes may use the file: each writes at places that the database gave to it alone.

    Parameters
    ----------
    path : Path
        The file. It is made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._end = weakref.finalize(self, os.close, self._file)  # once: then the number is that of another file
        fcntl.flock(self._file, fcntl.LOCK_EX)  # others may start now
        if not any(os.pread(self._file, SIZE, 0)):
            self.make(0)
            self.flush()
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self.own = self.find(0)

    @property
    def are_some(self) -> bool:
        """Whether the key of any request was made here."""
        return os.fstat(self._file).st_size > SIZE

    def make(self, serial: int) -> bytes:
        """Make the key of a request. Call `flush` before the database says that the request is there."""
        key = secrets.token_bytes(SIZE)
        self._write(serial, key)
        return key

    def flush(self) -> None:
        """Wait until all keys have reached the disk."""
        os.fdatasync(self._file)

    def find(self, serial: int) -> bytes:
        """Return the key of a request.

        Raises
        ------
        maxrr.errors.NamesDestroyed
            It was destroyed.
        """
        key = os.pread(self._file, SIZE, serial * SIZE)
        if len(key) < SIZE or not any(key):
            raise NamesDestroyed("what named a person in this request was destroyed when its answer was delivered")
        return key

    def destroy(self, serials: Iterable[int]) -> None:
        """Overwrite keys. Nobody can read what was sealed under them when this returns."""
        for serial in serials:
            self._write(serial, bytes(SIZE))
        self.flush()

    def _write(self, serial: int, key: bytes) -> None:
        check_in_place(self.path, os.fstat(self._file))
        if os.pwrite(self._file, key, serial * SIZE) != SIZE:
            raise OSError(f"{self.path}: the key of a request could not be written")

    def close(self) -> None:
        """Close the file, if it is still open."""
        self._end()
        self._file = -1


def check_in_place(path: str | Path, opened: os.stat_result) -> None:
    """Refuse to go on with a file that has lost its name: what is written there is in no copy, and gone after a start.

    Raises
    ------
    maxrr.errors.DatabaseGone
        Another file was put in its place, or none.
    """
    if not is_named(path, opened):
        raise DatabaseGone(f"{Path(path).name} was replaced in use: stop the service first, put it there again, start")


def seal(key: bytes, id_: str, content: bytes) -> bytes:
    """Encrypt content for the request with this id: nobody can put it into another one."""
    nonce = secrets.token_bytes(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, content, id_.encode())


def unseal(key: bytes, id_: str, sealed: bytes) -> bytes:
    """Decrypt what was sealed for the request with this id.

    Raises
    ------
    maxrr.errors.NamesDestroyed
        It was sealed under another key, as where the file of keys is older or younger than the database.
    """
    try:
        return AESGCM(key).decrypt(sealed[:NONCE], sealed[NONCE:], id_.encode())
    except InvalidTag:
        raise NamesDestroyed("what names a person in this request cannot be read with the key that is there") from None


def fingerprint(key: bytes, body: Any) -> str:
    """An HMAC of what was said, by which the same is known again for as long as the key is there."""
    return hmac.digest(key, json.dumps(body, sort_keys=True).encode(), "sha256").hex()
