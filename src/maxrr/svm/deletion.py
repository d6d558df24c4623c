"""A solved head minus, or plus, some samples is nearly solved: start from there."""

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.problem import Head, Samples, Trial


def touched(head: Head, positions: Ints) -> bool:
    """Whether any of these samples shapes the head."""
    return bool(np.isin(positions, head.free).any() or np.isin(positions, head.bounded).any())


def resume(samples: Samples, C: float, head: Head, margins: Floats, alpha: Floats, width: float) -> Trial:
    """A trial that starts at a solved head, on samples that are no longer the ones it was solved for."""
    margins = np.where(samples.alive, margins, np.inf)
    alpha = np.where(samples.alive, alpha, 0.0)
    nothing = np.zeros(len(margins), dtype=bool)
    return Trial(
        head.positive, samples.signs(head.positive), head.w, head.b, margins, alpha,
        width=width, reach=10*width, frozen=nothing, pull=np.zeros_like(head.w), tilt=0.0, warm=True,
    )  # fmt: skip
