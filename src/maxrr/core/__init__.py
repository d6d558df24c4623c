"""Which records the extractor is trained on: how often each is influential, and ways to choose the core."""

from maxrr.core.choice import Core, FullCore, HashCore
from maxrr.core.ranking import FrequencyCore, MiddleCore, Ranking, rank
from maxrr.core.trained_elsewhere import Adopted, Frozen

__all__ = ["Adopted", "Core", "FrequencyCore", "Frozen", "FullCore", "HashCore", "MiddleCore", "Ranking", "rank"]
