"""Which part of the results is drawn by what. 'coverage' is four numbers: a table says them better."""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from maxrr.paper.figures.agreement import agreement
from maxrr.paper.figures.beside import control, matched
from maxrr.paper.figures.choices import choices
from maxrr.paper.figures.frontier import frontier
from maxrr.paper.figures.histogram import histogram
from maxrr.paper.figures.names import Json
from maxrr.paper.figures.ranking_length import ranking_length
from maxrr.paper.figures.refit import refit
from maxrr.paper.figures.sensitivity import sensitivity
from maxrr.paper.figures.table import table
from maxrr.paper.figures.verification import verification

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
