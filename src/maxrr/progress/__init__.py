"""How long work tells how far it is, and what shows it: a line, or a bar in notebooks."""

from maxrr.progress.bar import Bar
from maxrr.progress.line import Line, Progress

__all__ = ["Bar", "Line", "Progress"]
