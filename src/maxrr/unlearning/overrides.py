"""Decisions of an operator to let values in that a forgotten record had, under other ids: other people's, he says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Override:
    """One such decision.

    Attributes
    ----------
    time : str
        When, in UTC.
    records : int
        How many records were let in.
    reason : str
        Why, in the words of whoever decided.
    """

    time: str
    records: int
    reason: str
