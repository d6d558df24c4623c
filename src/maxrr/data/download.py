"""One file from the network: checked as it arrives, kept only when whole and right."""

import hashlib
import http.client
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from maxrr.errors import DataError
from maxrr.files import write_atomically
from maxrr.progress import Progress

TIMEOUT = 10.0  # seconds to connect, and between two pieces
CHUNK = 1 << 16
LARGEST = 1 << 26  # no file that we fetch unpacks to more; a forged one might fill the disk


def download(url: str, path: Path, sha256: str, progress: Progress | None = None) -> None:
    """Fetch a gzipped file and keep it unpacked at `path`, if its content has this sha256. Nothing stays otherwise.

    Raises
    ------
    DataError
        The file cannot be reached or found, breaks off, is no gzip file, or has another content. The message has the
        address.
    """

    def receive(file: BinaryIO) -> None:
        unpack = zlib.decompressobj(wbits=31)  # 31: gzip
        digest = hashlib.sha256()
        size = 0
        for chunk in _chunks(url, path.name, progress):
            try:
                content = unpack.decompress(chunk)
            except zlib.error as error:
                raise DataError(f"{url}: is not a gzip file, or damaged: {error}") from None
            size += len(content)
            if size > LARGEST:
                raise DataError(f"{url}: unpacks to more than {LARGEST:,} bytes")
            digest.update(content)
            file.write(content)
        if not unpack.eof:
            raise DataError(f"{url}: is truncated")
        if digest.hexdigest() != sha256:
            raise DataError(
                f"{url}: has another content than published: sha256 {digest.hexdigest()}, expected {sha256}"
            )

    write_atomically(path, receive)


def _chunks(url: str, what: str, progress: Progress | None) -> Iterator[bytes]:
    """The bytes of a file in pieces; every way in which a network fails is a `DataError`."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            promised = response.headers.get("Content-Length", "")
            total = int(promised) if promised.isdecimal() else 0
            done = 0
            while chunk := response.read(CHUNK):
                done += len(chunk)
                if progress:
                    progress(f"fetching {what}", done, max(done, total))
                yield chunk
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(f"{url}: the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise DataError(f"{url}: cannot be reached: {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{url}: the connection broke: {str(error) or type(error).__name__}") from None
    if done < total:
        raise DataError(f"{url}: is truncated: {done:,} of {total:,} bytes arrived")
