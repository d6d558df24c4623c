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
        What the records are: "free", "influential" or "core".
    rows : array of int
        The records, as rows of the story's arrays.
    plans : tuple of Plan
        First the plan that was carried out, then the alternatives to it.
    receipt : Receipt
        What was done.
    seconds, retrained_seconds : float
        How long forgetting took, and how long training again on the retained records took.
    before, model, retrained : str
        The hashes of the model before the request, of the model after it, and of the model that training again gave.
    accuracy : float
        The share of test records that the model classifies rightly after the request.
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
        """Whether forgetting and training again gave the same bytes."""
        return self.model == self.retrained


@dataclass(frozen=True, eq=False)
class Story:
    """A model that was fitted, and forgot.

    Attributes
    ----------
    source : str
        The data set's name.
    images : array of float
        The training records (n × height × width), 0 for paper to 1 for ink.
    labels : array of int
        The class of each training record, as a place in `class_names`.
    class_names : tuple of str
        The names of all classes.
    core, influential : array of bool
        Which training records are core, and which are influential before any request; a record may be both.
    margins : array of float
        The margin of each training record in the head where it is smallest, before any request.
    test_records : int
        How many test records there are.
    accuracy : float
        The share of test records that the model classifies rightly before any request.
    fit_seconds : float
        How long `MaxRR.fit` took.
    requests : tuple of RequestStory
        The requests in the order they were made: the model of each had carried out all those before it.
    replay : Replay
        The replay of the last receipt, in a fresh process.
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
        """Which records are free, influential or core, as by `kinds_of`."""
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
        return all(request.same_bytes for request in self.requests) and bool(self.replay)


def kinds_of(core: Bools, influential: Bools) -> dict[str, Bools]:
    """The three kinds of records, which differ in what forgetting costs.

    Parameters
    ----------
    core, influential : array of bool
        Which records are core, and which are influential.

    Returns
    -------
    dict of str to array of bool
        Which records are "free", "influential" and "core". Every record is of one kind: a core record is only core,
        influential or not.

    Examples
    --------
    >>> kinds_of(np.array([True, False, False]), np.array([True, True, False]))["influential"]
    array([False,  True, False])
    """
    return {"free": ~core & ~influential, "influential": influential & ~core, "core": core}
