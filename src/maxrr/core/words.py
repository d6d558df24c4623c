"""What a choice of the core says of itself, by the rule alone: for whoever compares it with what was written down."""

from typing import NamedTuple

from maxrr.core.choice import BY_HASH, EVERY_RECORD, Core, Details, FullCore, HashCore, in_shards
from maxrr.core.frequency import FrequencyCore, MiddleCore
from maxrr.core.trained_elsewhere import Frozen, word_of
from maxrr.nets.seeding import Network


class Words(NamedTuple):
    """Of a `Choice`: its `depended_on`, and what of its `details` does not depend on the records."""

    depended_on: str
    details: Details


def words_of(core: Core | None, network: Network) -> Words | None:
    """What every choice by a rule of this library says; None for any other, whose words are its maker's.

    >>> words_of(HashCore(0.3, key="house"), network=None).details
    {'kind': 'hash', 'fraction': 0.3}
    """
    if type(core) is HashCore:
        return Words(BY_HASH, {"kind": "hash", "fraction": core.fraction, **in_shards(core.shards)})
    if type(core) is FullCore:
        return Words(EVERY_RECORD, {"kind": "full", **in_shards(core.shards)})
    if type(core) in (FrequencyCore, MiddleCore) and isinstance(core, FrequencyCore):
        return Words(core.sentence, {"kind": core.kind, "runs": core.runs, **in_shards(core.shards)})
    if type(core) is Frozen and core.pretrained_on is None:
        return Words(word_of(network), {"kind": "frozen"})
    return None
