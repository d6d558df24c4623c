"""Files that are whole or absent, and what is in them. Knows nothing about learning."""

from maxrr.files.atomic import flush_folder, write_atomically
from maxrr.files.checked import field_types, fits
from maxrr.files.erasing import overwrite
from maxrr.files.hashes import sha256_of
from maxrr.files.locking import Lock, enter
from maxrr.files.regular import open_regular, read_regular
from maxrr.files.strict_json import parse_json

__all__ = [
    "Lock",
    "enter",
    "field_types",
    "fits",
    "flush_folder",
    "open_regular",
    "overwrite",
    "parse_json",
    "read_regular",
    "sha256_of",
    "write_atomically",
]
