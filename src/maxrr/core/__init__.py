"""Which records the extractor may see: how often each is influential, and what a choice of them depends on."""

from maxrr.core.choice import Choice, Core
from maxrr.core.frequency import FrequencyCore, MiddleCore
from maxrr.core.ranking import Ranking, rank
from maxrr.core.selection import Frozen, FullCore, HashCore

__all__ = ["Choice", "Core", "FrequencyCore", "Frozen", "FullCore", "HashCore", "MiddleCore", "Ranking", "rank"]
