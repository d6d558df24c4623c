"""`--core`: a core in a word."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli.exits import USAGE, Stop

if TYPE_CHECKING:
    from maxrr.core import Core, HashCore

RUNS = 10
LARGEST_KEY = 1 << 20  # bytes: whatever is larger is another file


def core_of(word: str, runs: int | None, key_file: Path | None, before: Core | None) -> Core:
    """The core that the options name. A key that is not given is the one of `before`, or drawn."""
    from maxrr.core import FrequencyCore, Frozen, FullCore, MiddleCore

    kind, colon, after = word.partition(":")
    ranked = {"": MiddleCore, "middle": MiddleCore, "frequency": FrequencyCore}.get("" if word.isdecimal() else kind)
    if runs is not None and ranked is None:
        raise Stop(USAGE, f"--runs is for a core that is ranked, such as --core 20000, not for --core {word}")
    if key_file is not None and kind != "hash":
        raise Stop(USAGE, f"--core-key-file is for a core by hash, such as --core hash:0.33, not for --core {word}")
    if ranked is not None and (after or word).isdecimal():
        return ranked(int(after or word), RUNS if runs is None else runs)
    if kind == "hash" and colon:
        return hash_core(after, key_file, before)
    if word == "full":
        return FullCore()
    if word == "frozen":
        return Frozen()
    raise Stop(USAGE, f"--core is a number, frequency:NUMBER, hash:FRACTION, full or frozen, not {word!r}")


def hash_core(fraction: str, key_file: Path | None, before: Core | None) -> HashCore:
    """A core by hash: the same records again as long as the key is the same."""
    from maxrr.core import HashCore
    from maxrr.files import read_regular

    key: bytes | str
    if key_file is not None:
        key = read_regular(key_file, LARGEST_KEY).rstrip(b"\r\n")
    elif isinstance(before, HashCore):
        key = before.key
    else:
        key = secrets.token_bytes(32)
    try:
        share = float(fraction)
    except ValueError:
        raise Stop(USAGE, f"--core hash:FRACTION takes a number above 0 and at most 1, not {fraction!r}") from None
    return HashCore(share, key)
