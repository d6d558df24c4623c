"""What happened in a demo, as plain values: all that its page says comes from here."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxrr.unlearning import Plan, Receipt, Replay

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class RequestStory:
    """One request: the records, what was planned and done, and the model that never saw them.

    Attributes
    ----------
    kind : str
        "free", "influential" or "core".
    rows
        The records, as rows of the story's arrays.
    plans : tuple of Plan
        The one that was carried out first, then the alternatives.
    seconds, retrained_seconds : float
        Of forgetting, and of training again on the records that were left.
    before, model, retrained : str
        The hashes of the model before and afterwards, and of the one that training again gave.
    accuracy : float
        On the test records, after the request.
    """

    kind: str
    rows: Ints
    plans: tuple[Plan, ...]
    receipt: Receipt
    seconds: float
    retrained_seconds: float
    before: str
    model: str
    retrained: str
    accuracy: float

    @property
    def same_bytes(self) -> bool:
        return self.model == self.retrained


@dataclass(frozen=True, eq=False)
class Story:
    """A model that was fitted, and forgot.

    Attributes
    ----------
    source : str
        The data set's name.
    images
        The training records (n × height × width), 0 for paper to 1 for ink.
    labels, class_names
    core, influential
        Which of them are; a record may be both.
    margins
        Of each record in the head where it is smallest, before any request.
    test_records : int
    accuracy : float
        On the test records, before any request.
    fit_seconds : float
    requests
        In the order they were made, each on top of those before it.
    replay
        Of the last receipt, in a fresh process.
    """

    source: str
    images: Floats
    labels: Ints
    class_names: tuple[str, ...]
    core: Bools
    influential: Bools
    margins: Floats
    test_records: int
    accuracy: float
    fit_seconds: float
    requests: tuple[RequestStory, ...]
    replay: Replay

    @cached_property
    def kinds(self) -> dict[str, Bools]:
        """Who is of which kind."""
        return kinds_of(self.core, self.influential)

    @cached_property
    def forgotten(self) -> Bools:
        """The records that some request named."""
        mask = np.zeros(len(self.labels), dtype=bool)
        for request in self.requests:
            mask[request.rows] = True
        return mask

    @property
    def same_bytes(self) -> bool:
        """Whether every request ended in the bytes of training again, and the fresh process agreed."""
        return all(request.same_bytes for request in self.requests) and self.replay.outcome == "identical"


def kinds_of(core: Bools, influential: Bools) -> dict[str, Bools]:
    """The three kinds that differ in what forgetting costs. A core record is that, influential or not."""
    return {"free": ~core & ~influential, "influential": influential & ~core, "core": core}
