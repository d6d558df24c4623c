"""Files that are whole or absent, and what is in them. Knows nothing about learning."""

from maxrr.files.atomic import write_atomically
from maxrr.files.hashes import sha256_of
from maxrr.files.locking import Lock
from maxrr.files.regular import open_regular, read_regular

__all__ = ["Lock", "open_regular", "read_regular", "sha256_of", "write_atomically"]
