"""Files that are whole or absent, and what is in them. Knows nothing about learning."""

from maxrr.files.atomic import flush_folder, open_regular, overwrite, read_regular, write_atomically
from maxrr.files.locking import Lock
from maxrr.files.strict_json import from_plain, parse_json, sha256_of, to_plain

__all__ = [
    "Lock",
    "flush_folder",
    "from_plain",
    "open_regular",
    "overwrite",
    "parse_json",
    "read_regular",
    "sha256_of",
    "to_plain",
    "write_atomically",
]
