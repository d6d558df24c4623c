"""Decisions to let in records with the values of forgotten ones, under other ids: they belong to other people."""

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
