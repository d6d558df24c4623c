"""The demo's page: its words are in `templates/demo.html.jinja`, its charts and pictures are made here."""

import base64
import io
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from maxrr.report.charts import bar, fingerprint, shares, unit_histogram
from maxrr.report.page import KINDS, render, tag
from maxrr.report.words import day
from maxrr.unlearning import Plan, Receipt, Replay
from maxrr.unlearning.receipts import in_words

Ink = tuple[int, int, int]

BLACK: Ink = (27, 31, 36)


def drawn(image: NDArray[np.floating], ink: Ink = BLACK) -> str:
    """A data URI of an image (height × width) of 0, paper, to 1, ink. Paper is transparent: it is the page's."""
    from PIL import Image  # only here: results are shown also where there is none

    opacity = np.clip(np.rint(255.0 * image), 0, 255).astype(np.uint8)
    picture = Image.fromarray(opacity)
    picture.putpalette(ink * 256)  # makes it an image of 256 entries, which differ in opacity alone
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True, transparency=bytes(range(256)))
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def sheet(images: NDArray[np.floating], columns: int, edge: int = 1) -> NDArray[np.floating]:
    """Images (n × height × width) with an edge of paper, side by side, row after row, on one.

    >>> sheet(np.ones((3, 1, 1)), columns=2, edge=0)
    array([[1., 1.],
           [1., 0.]])
    """
    missing = -len(images) % columns
    filled = np.pad(images, ((0, missing), (edge, edge), (edge, edge)))
    rows, (height, width) = len(filled) // columns, filled.shape[1:]
    return filled.reshape(rows, columns, height, width).swapaxes(1, 2).reshape(rows * height, columns * width)


def sheet_of(images: NDArray[np.floating], gone: NDArray[np.bool_], columns: int, ink: Ink, label: str) -> Markup:
    """Draw all images as one picture, with empty frames in the places of those that are gone."""
    whole = sheet(np.where(gone[:, None, None], 0.0, images), columns)
    high, wide = whole.shape
    height, width = images.shape[1] + 2, images.shape[2] + 2  # of one with its edges
    frames = (
        tag(
            "rect", x=width * (place % columns) + 1, y=height * (place // columns) + 1,
            width=width - 2, height=height - 2,
        )
        for place in np.flatnonzero(gone).tolist()
    )  # fmt: skip
    return tag(
        "svg",
        tag("image", href=drawn(whole, ink), width=wide, height=high),
        tag("g", *frames, class_="frames"),
        class_="sheet", viewBox=f"0 0 {wide} {high}", role="img", aria_label=label,
    )  # fmt: skip


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
    recall : dict of str to float
        The same share of the test records of each class, by its name.
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
    recall: dict[str, float]
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
INKS: dict[str, Ink] = {"free": (110, 119, 129), "influential": (209, 98, 27), "core": (31, 111, 235)}


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
        day=day(requests[-1].receipt.time),
        equal=sum(request.same_bytes for request in requests),
        longest=max(max(request.seconds, request.retrained_seconds) for request in requests),
        margins=margins(story),
        shares=shares([(KINDS[kind], int(members.sum())) for kind, members in story.kinds.items()]),
        contact_sheet=partial(contact_sheet, story),
        bar=bar,
        drawn=drawn,
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
    return sheet_of(story.images[rows], story.forgotten[rows], COLUMNS, INKS[kind], label)
