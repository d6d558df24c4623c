"""Which records the extractor is trained on: how often each is influential, and ways to choose the core."""

from maxrr.core.choice import Core, FullCore, HashCore
from maxrr.core.ranking import FrequencyCore, MiddleCore, Ranking, rank
from maxrr.core.trained_elsewhere import Frozen

__all__ = ["Core", "FrequencyCore", "Frozen", "FullCore", "HashCore", "MiddleCore", "Ranking", "rank"]
