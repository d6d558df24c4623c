"""Which part of the results is drawn by what. 'coverage' is four numbers: a table says them better."""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from maxrr.report.figures.agreement import agreement
from maxrr.report.figures.beside import control, matched
from maxrr.report.figures.choices import choices
from maxrr.report.figures.frontier import frontier
from maxrr.report.figures.histogram import histogram
from maxrr.report.figures.names import Json
from maxrr.report.figures.ranking_length import ranking_length
from maxrr.report.figures.refit import refit
from maxrr.report.figures.sensitivity import sensitivity
from maxrr.report.figures.table import table
from maxrr.report.figures.verification import verification

DRAWINGS: Mapping[str, Callable[[Json], Figure]] = {
    "histogram": histogram,
    "table": table,
    "verification": verification,
    "agreement": agreement,
    "sensitivity": sensitivity,
    "refit": refit,
    "frontier": frontier,
    "core-choice": frontier,
    "ranking-length": ranking_length,
    "choices": choices,
    "svms": choices,
    "control": control,
    "matched": matched,
}
