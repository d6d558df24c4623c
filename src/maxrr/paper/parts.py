"""What can be reproduced and studied, by name."""

from collections.abc import Callable, Mapping

from maxrr.paper.agreement import agreement
from maxrr.paper.choices import choices
from maxrr.paper.control import control
from maxrr.paper.core_choice import core_choice
from maxrr.paper.coverage import coverage
from maxrr.paper.cross_validated import cross_validated
from maxrr.paper.frontier import frontier
from maxrr.paper.histogram import histogram
from maxrr.paper.lab import Lab
from maxrr.paper.matched import matched
from maxrr.paper.members import members
from maxrr.paper.more_runs import more_runs
from maxrr.paper.ranking_length import ranking_length
from maxrr.paper.refit import refit
from maxrr.paper.results import Json
from maxrr.paper.sensitivity import sensitivity
from maxrr.paper.svms import svms
from maxrr.paper.table import table
from maxrr.paper.verification import verification

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
