"""Where the published datasets are looked for on this machine, and how they are fetched."""

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from maxrr.data import known
from maxrr.data.known import PUBLISHED, Known
from maxrr.errors import DataError
from maxrr.files import write_atomically
from maxrr.progress import Progress

DEBIAN = Path("/usr/share/datasets")


def available() -> list[tuple[str, str | None]]:
    """The datasets known by name, and where each is on this machine.

    Returns
    -------
    list of (str, str or None)
        Name and place; None where the dataset has to be fetched first.
    """
    found: list[tuple[str, str | None]] = [("digits", "scikit-learn")]
    for entry in PUBLISHED.values():
        files = find(entry)
        found.append((entry.name, str(_folder(files)) if files else None))
    return found


def fetch(name: str, progress: Progress | None = None, *, site: str | None = None) -> str:
    """Make sure that a dataset known by name is on this machine; fetch it from the network if it is not.

    Its files are checked by SHA-256 in either case. What is fetched is stored in the user's cache. Files that arrived
    before a failure are not fetched again.

    Parameters
    ----------
    name : str
        As `available` lists them: 'digits', 'fashion-mnist' or 'mnist'.
    progress : Progress, optional
        Called with the bytes fetched so far.
    site : str, optional
        Another address to fetch from, ending in '/'. It has each file under its usual name with .gz added.

    Returns
    -------
    str
        The folder of its files; 'scikit-learn' for the digits.

    Raises
    ------
    DataError
        The name is unknown, a file on this machine is damaged, or one could not be fetched. The message then says
        where the dataset was looked for, and the ways to get it.
    """
    if name == "digits":
        return "scikit-learn"
    if name not in PUBLISHED:
        raise DataError(f"no dataset is known as {name!r}, only digits, {', '.join(PUBLISHED)}")
    entry = PUBLISHED[name]
    files = find(entry)
    if files:
        known.read(entry, files)
        return str(_folder(files))
    target = cache(entry)
    for file, sha256 in entry.sha256.items():
        if file not in files_in(target, entry):
            try:
                target.mkdir(parents=True, exist_ok=True)
                download(f"{site or entry.site}{file}.gz", target / file, sha256, progress)
            except DataError as error:
                raise DataError(_unavailable(entry, error)) from None
    return str(target)


def find(entry: Known) -> dict[str, Path] | None:
    """Its four files from the first place that has them all."""
    for place in places(entry):
        files = files_in(place, entry)
        if len(files) == len(entry.sha256):
            return files
    return None


def places(entry: Known) -> Iterator[Path]:
    """Where its files are looked for, in this order."""
    if own := os.environ.get("MAXRR_DATA"):
        yield Path(own) / entry.name
        yield Path(own)
    yield DEBIAN / entry.name
    yield cache(entry)


def cache(entry: Known) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maxrr" / entry.name


def files_in(place: Path, entry: Known) -> dict[str, Path]:
    """Those of its files that are there, raw or packed; none if they are those of another dataset."""
    found = {}
    for name in entry.sha256:
        for path in (place / name, place / f"{name}.gz"):
            if path.is_file():
                found[name] = path
                break
    return {} if _belong_to_another(found, entry) else found


def _belong_to_another(files: dict[str, Path], entry: Known) -> bool:
    """All published datasets use the same file names, and $MAXRR_DATA may hold any of them: the smallest file tells."""
    smallest = "t10k-labels-idx1-ubyte"
    if smallest not in files:
        return False
    try:
        content = known.content_sha256(files[smallest])
    except DataError:
        return False  # damaged: reading it says so
    return any(content == other.sha256[smallest] for other in PUBLISHED.values() if other != entry)


def _folder(files: dict[str, Path]) -> Path:
    return next(iter(files.values())).parent


def _unavailable(entry: Known, reason: Exception) -> str:
    lines = [f"{entry.name} is not on this machine, and fetching it failed.", f"  {reason}", "It was looked for in"]
    if not os.environ.get("MAXRR_DATA"):
        lines.append("  $MAXRR_DATA: not set")
    for place in places(entry):
        lines.append(f"  {place}: {len(files_in(place, entry))} of its {len(entry.sha256)} files")
    lines.append("To get it, do one of these:")
    if entry.package:
        lines.append(f"  apt-get install {entry.package}   (Debian and its relatives)")
    lines.append(f"  put {', '.join(entry.sha256)}, as they are or as .gz, into a folder, and set MAXRR_DATA to it")
    lines.append(f"  maxrr data get {entry.name}   (with a connection to {entry.site})")
    return "\n".join(lines)


# One file from the network: checked as it arrives, kept only when whole and right.


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
    import http.client  # these take a tenth of a second
    import urllib.error
    import urllib.request

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
