"""Files that are whole or absent, and what is in them. Knows nothing about learning."""

from maxrr.files.atomic import write_atomically
from maxrr.files.hashes import sha256_of

__all__ = ["sha256_of", "write_atomically"]
