"""The demo's page: its words are in `templates/demo.html.jinja`, its charts and pictures are made here."""

from functools import partial

import numpy as np
from markupsafe import Markup

from maxrr.report import pictures
from maxrr.report.charts import bar, fingerprint, shares, unit_histogram
from maxrr.report.marks import KINDS
from maxrr.report.page import render
from maxrr.report.receipts import date, in_words
from maxrr.report.story import Story

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
