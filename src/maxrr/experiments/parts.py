"""What can be reproduced and studied, by name."""

from collections.abc import Callable, Mapping

from maxrr.experiments.agreement import agreement
from maxrr.experiments.choices import choices
from maxrr.experiments.control import control
from maxrr.experiments.core_choice import core_choice
from maxrr.experiments.coverage import coverage
from maxrr.experiments.cross_validated import cross_validated
from maxrr.experiments.frontier import frontier
from maxrr.experiments.histogram import histogram
from maxrr.experiments.lab import Lab
from maxrr.experiments.matched import matched
from maxrr.experiments.members import members
from maxrr.experiments.more_runs import more_runs
from maxrr.experiments.ranking_length import ranking_length
from maxrr.experiments.refit import refit
from maxrr.experiments.results import Json
from maxrr.experiments.sensitivity import sensitivity
from maxrr.experiments.svms import svms
from maxrr.experiments.table import table
from maxrr.experiments.verification import verification

Part = Callable[[Lab], Json]

PARTS: Mapping[str, Part] = {
    "histogram": histogram,
    "coverage": coverage,
    "table": table,
    "verification": verification,
    "agreement": agreement,
    "sensitivity": sensitivity,
    "refit": refit,
}
STUDIES: Mapping[str, Part] = {
    "choices": choices,
    "svms": svms,
    "frontier": frontier,
    "core-choice": core_choice,
    "ranking-length": ranking_length,
    "members": members,
    "control": control,
    "cross-validated": cross_validated,
    "matched": matched,
    "more-runs": more_runs,
}
