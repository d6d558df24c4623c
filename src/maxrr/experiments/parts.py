"""What can be reproduced and studied, by name."""

from collections.abc import Callable, Mapping

from maxrr.experiments.agreement import agreement
from maxrr.experiments.coverage import coverage
from maxrr.experiments.histogram import histogram
from maxrr.experiments.lab import Lab
from maxrr.experiments.refit import refit
from maxrr.experiments.results import Json
from maxrr.experiments.sensitivity import sensitivity
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
