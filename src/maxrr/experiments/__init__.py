"""The paper's table and figures beside its own numbers, and the questions it leaves."""

from maxrr.experiments.lab import Lab
from maxrr.experiments.parts import PARTS, STUDIES
from maxrr.experiments.profiles import PROFILES, Profile

__all__ = ["PARTS", "PROFILES", "STUDIES", "Lab", "Profile"]
