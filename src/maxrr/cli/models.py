"""What options say of a model: its core, its network, and the weights of its classes."""

from __future__ import annotations

import secrets
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli.run import USAGE, Stop
from maxrr.cli.workspaces import named_network

if TYPE_CHECKING:
    from maxrr.core import Core, HashCore
    from maxrr.data import Dataset
    from maxrr.nets.seeding import Network

RUNS = 10
HASHED, FROZEN = "hash:0.33", "frozen"
LARGEST_KEY = 1 << 20  # bytes: whatever is larger is another file


def class_weights(given: list[str]) -> dict[str, float] | None:
    """Weights by class, as the options name them."""
    found = {}
    for each in given:
        name, _, number = each.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise Stop(USAGE, f"--class-weight is NAME=NUMBER, such as ill=50, not {each!r}") from None
    return found or None


def network_for(records: Dataset, maker: str | None) -> Network:
    """The network that was named, or one that suits the records."""
    from maxrr.data.fields import shapes
    from maxrr.nets import MLP, LeNet5
    from maxrr.nets.networks import SMALLEST

    shape, classes = records.shape, len(records.class_names)
    if maker is not None:
        return named_network(maker, shapes(records.inputs.dtype, shape), classes)
    if not shape:
        raise Stop(USAGE, "records with several inputs need a network of your own: name it with --network")
    return LeNet5(shape, classes) if len(shape) == 3 and min(shape[1:]) >= SMALLEST else MLP(prod(shape), classes)


def core_of(word: str, runs: int | None, key_file: Path | None, before: Core | None, shards: int) -> Core:
    """The core that the options name. A key that is not given is the one of `before`, or drawn."""
    from maxrr.core import FrequencyCore, Frozen, FullCore, MiddleCore

    kind, colon, after = word.partition(":")
    ranked = {"": MiddleCore, "middle": MiddleCore, "frequency": FrequencyCore}.get("" if word.isdecimal() else kind)
    if runs is not None and ranked is None:
        raise Stop(USAGE, f"--runs is for a core that is ranked, such as --core 20000, not for --core {word}")
    if key_file is not None and kind != "hash":
        raise Stop(USAGE, f"--core-key-file is for a core by hash, such as --core hash:0.33, not for --core {word}")
    if shards > 1 and word == FROZEN:
        raise Stop(USAGE, "--shards divides the core that extractors are trained on, and with --core frozen none is")
    if ranked is not None and (after or word).isdecimal():
        return ranked(int(after or word), RUNS if runs is None else runs, shards=shards)
    if kind == "hash" and colon:
        return replace(hash_core(after, key_file, before), shards=shards)
    if word == "full":
        return FullCore(shards)
    if word == FROZEN:
        return Frozen()
    raise Stop(
        USAGE, f"--core is a number, middle:NUMBER, frequency:NUMBER, hash:FRACTION, full or frozen, not {word!r}"
    )


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
