"""Figures of a reproduction, drawn from its result files: ours and the paper's in one axes, and one file per figure."""

from lab.figures.files import draw

__all__ = ["draw"]
