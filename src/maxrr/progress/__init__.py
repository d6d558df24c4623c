"""What long work says while it runs, and a plain line that shows it."""

from maxrr.progress.line import Line, Progress

__all__ = ["Line", "Progress"]
