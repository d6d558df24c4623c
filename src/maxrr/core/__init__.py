"""Which records the extractor is trained on: how often each is influential, and ways to choose the core."""

from maxrr.core.choice import Choice, Core, Details, FullCore, HashCore
from maxrr.core.ranking import FrequencyCore, MiddleCore, Ranking, rank
from maxrr.core.shards import Sharding, UntrainedShardsWarning
from maxrr.core.trained_elsewhere import Adopted, Frozen

__all__ = [
    "Adopted",
    "Choice",
    "Core",
    "Details",
    "FrequencyCore",
    "Frozen",
    "FullCore",
    "HashCore",
    "MiddleCore",
    "Ranking",
    "Sharding",
    "UntrainedShardsWarning",
    "rank",
]
