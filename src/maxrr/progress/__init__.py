"""How long work tells how far it is, and a line that shows it."""

from maxrr.progress.line import Line, Progress

__all__ = ["Line", "Progress"]
