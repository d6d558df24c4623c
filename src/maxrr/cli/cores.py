"""`--core`: a core in a word."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli.exits import USAGE, Stop

if TYPE_CHECKING:
    from maxrr.core import Core, HashCore

RUNS = 10


def core_of(word: str, runs: int | None, key_file: Path | None, before: Core | None) -> Core:
    """The core that the options name. A key that is not given is the one of `before`, or drawn."""
    from maxrr.core import FrequencyCore, Frozen, FullCore

    kind, colon, fraction = word.partition(":")
    if runs is not None and not word.isdecimal():
        raise Stop(USAGE, f"--runs is for a core that is ranked, such as --core 20000, not for --core {word}")
    if key_file is not None and kind != "hash":
        raise Stop(USAGE, f"--core-key-file is for a core by hash, such as --core hash:0.33, not for --core {word}")
    if word.isdecimal():
        return FrequencyCore(int(word), RUNS if runs is None else runs)
    if kind == "hash" and colon:
        return hash_core(fraction, key_file, before)
    if word == "full":
        return FullCore()
    if word == "frozen":
        return Frozen()
    raise Stop(USAGE, f"--core is a number, hash:FRACTION, full or frozen, not {word!r}")


def hash_core(fraction: str, key_file: Path | None, before: Core | None) -> HashCore:
    """A core by hash: the same records again as long as the key is the same."""
    from maxrr.core import HashCore

    key: bytes | str
    if key_file is not None:
        key = key_file.read_bytes().rstrip(b"\r\n")
    elif isinstance(before, HashCore):
        key = before.key
    else:
        key = secrets.token_bytes(32)
    try:
        share = float(fraction)
    except ValueError:
        raise Stop(USAGE, f"--core hash:FRACTION takes a number above 0 and at most 1, not {fraction!r}") from None
    return HashCore(share, key)
