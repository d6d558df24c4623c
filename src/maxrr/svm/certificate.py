"""What is proved about one head.

The head minimises P(w, b) = ½|w|² + Σ Cᵢ max(0, 1 − mᵢ) with margins mᵢ = yᵢ(w·xᵢ + b), yᵢ = ±1. In exact arithmetic
its w is unique, and b is the point nearest to zero of the interval of optimal ones. `exact/enclosure.py` proves how far
from it the published numbers can be; docs/specifications/svm.md has the proof on a page.
"""

from dataclasses import dataclass

FORM = 2
"""The canonical form of a head's bytes (`exact/rounding.py`). 1 was the outcome of a fixed sequence of operations."""

EXACT = 1e-8
"""The largest error of decision values with which a head still counts as solved."""


@dataclass(frozen=True)
class Certificate:
    """How far one head is from the exact solution of its problem, at most. Errors and gap are proved bounds.

    Attributes
    ----------
    decided
        Whether w and b are the canonical bytes (`exact/rounding.py`): any other decided computation for the same
        samples, weights and C ends in the same ones, whatever its start, order, processor or number of threads.
    weight_error
        The published w is no further from the exact one than this, by the length of their difference.
    bias_error
        The published b is no further from the exact one than this.
    error
        The decision value of every sample that is held is within this of the exact one, those of weight zero included.
    relative_gap
        (P − D) / P for exactly admissible multipliers, as proved: how far the objective is from its minimum.
    primal
        P at the published weights, to rounding.
    on_margin, inside
        How many samples have margins of exactly 1 (to 2⁻⁶⁰), and below it. Together the influential ones.
    """

    decided: bool
    weight_error: float
    bias_error: float
    error: float
    relative_gap: float
    primal: float
    on_margin: int
    inside: int

    @property
    def solved(self) -> bool:
        """Whether the exact answer is known: its canonical bytes, or every decision value to `EXACT`."""
        return self.decided or self.error <= EXACT
