"""The demo's page: its words are in `templates/demo.html.jinja`, its charts and pictures are made here."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from maxrr.report import pictures
from maxrr.report.charts import bar, fingerprint, shares, unit_histogram
from maxrr.report.marks import KINDS
from maxrr.report.page import render
from maxrr.report.receipts import date, in_words
from maxrr.unlearning import Plan, Receipt, Replay

# What happened in a demo, as plain values: all that its page says comes from here.


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


COLUMNS = 48  # of the sheets with all images

# The look's colours, which a picture cannot ask for.
INKS: dict[str, pictures.Ink] = {"free": (110, 119, 129), "influential": (209, 98, 27), "core": (31, 111, 235)}


def demo_page(story: Story) -> str:
    """One self-contained HTML page that tells what a model forgot, how, and what that gave.

    Parameters
    ----------
    story : Story
        The fit, one or more requests, and the replay of the last of them.

    Returns
    -------
    str
        The page. It needs no other file and loads nothing from the network.
    """
    requests = story.requests
    return render(
        __package__,
        "demo.html.jinja",
        story=story,
        day=date(requests[-1].receipt),
        equal=sum(request.same_bytes for request in requests),
        longest=max(max(request.seconds, request.retrained_seconds) for request in requests),
        margins=margins(story),
        shares=shares([(KINDS[kind], int(members.sum())) for kind, members in story.kinds.items()]),
        contact_sheet=partial(contact_sheet, story),
        bar=bar,
        drawn=pictures.drawn,
        fingerprint=fingerprint,
        in_words=in_words,
    )


def margins(story: Story) -> partial[Markup]:
    """A histogram of all records by their margins, before any request."""
    # A record on the margin has a margin of 1 up to rounding, and the solved problem knows which side it is on.
    above = np.nextafter(1.0, 2.0)
    shown = np.where(story.influential, np.minimum(story.margins, 1.0), np.maximum(story.margins, above))
    groups = [(KINDS[kind], story.kinds[kind]) for kind in ("core", "influential", "free")]
    return partial(unit_histogram, shown, groups, story.forgotten, lowest=-2, edge=1.0, step=0.25)


def contact_sheet(story: Story, kind: str, label: str) -> Markup:
    """All images of a kind, in the order of their classes."""
    rows = np.flatnonzero(story.kinds[kind])
    rows = rows[np.argsort(story.labels[rows], kind="stable")]
    return pictures.contact_sheet(story.images[rows], story.forgotten[rows], COLUMNS, INKS[kind], label)
