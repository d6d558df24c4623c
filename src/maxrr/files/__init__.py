"""Files that are whole or absent, and what is in them. Knows nothing about learning."""

from maxrr.files.atomic import flush_folder as flush_folder
from maxrr.files.atomic import open_regular as open_regular
from maxrr.files.atomic import overwrite as overwrite
from maxrr.files.atomic import read_regular as read_regular
from maxrr.files.atomic import write_atomically as write_atomically
from maxrr.files.locking import Lock as Lock
from maxrr.files.strict_json import from_plain as from_plain
from maxrr.files.strict_json import parse_json as parse_json
from maxrr.files.strict_json import sha256_of as sha256_of
from maxrr.files.strict_json import to_plain as to_plain
