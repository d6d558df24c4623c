"""Texts that find a place of their own."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

STEP = 4.0  # pixels between the points that stand for a drawn line
PADDING = 3.0  # pixels around a text
# Where a text may stand: to which sides of its mark, and how many typographic points away.
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
DISTANCES = (7.0, 12.0, 18.0)

Floats = NDArray[np.float64]


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Places as near to these as can be, in the same order, and at least a gap apart.

    >>> apart([0.5, 0.0, 0.5], 0.25)
    [0.375, 0.0, 0.625]
    """
    groups: list[list[int]] = []
    for which in sorted(range(len(places)), key=lambda which: places[which]):
        groups.append([which])  # around the mean of its places; where it meets the one below, both become one
        while len(groups) > 1 and ends(groups[-1], places, gap)[0] < ends(groups[-2], places, gap)[1] + gap:
            last = groups.pop()
            groups[-1] += last
    found = list(places)
    for group in groups:
        low, _ = ends(group, places, gap)
        for number, which in enumerate(group):
            found[which] = low + gap * number
    return found


def ends(group: Sequence[int], places: Sequence[float], gap: float) -> tuple[float, float]:
    """Of labels that stand a gap apart around the mean of their places."""
    middle, half = sum(places[which] for which in group) / len(group), gap * (len(group) - 1) / 2.0
    return middle - half, middle + half


def place(figure: Figure, axes: Axes, names: Mapping[str, tuple[float, float]]) -> None:
    """Write each name beside its mark, nearest to that one, and over nothing, as far as there is such a place.

    Everything else must be drawn already. Names take no part in the layout: they stay inside the axes.
    """
    figure.draw_without_rendering()  # now the axes are where they will be
    inked, taken, frame = ink(axes), list[Bbox](), axes.get_window_extent()
    marks = {name: axes.transData.transform(point) for name, point in names.items()}
    pixels = figure.dpi / 72.0  # in a typographic point
    for name, mark in marks.items():
        text = axes.annotate(name, names[name], (0, 0), textcoords="offset points", ha="center", va="center")
        text.set_in_layout(False)
        half = np.array(text.get_window_extent().size) / 2.0
        others = [other for other in marks.values() if other is not mark]
        best, lowest = None, np.inf
        for offset, distance in around(half / pixels):
            centre = mark + offset * pixels
            box = Bbox([centre - half, centre + half]).padded(PADDING)
            price = distance / STEP + cost(box, inked, taken, frame) + 1000.0 * is_nearer(box, others, mark)
            if price < lowest:
                best, lowest = box, price
                text.set_position((offset[0], offset[1]))
        if best is not None:
            taken.append(best)


def around(half: Floats) -> Iterator[tuple[Floats, float]]:
    """Where the centre of a text of this half size may be, from its mark, and how far from it the text then is."""
    for distance in DISTANCES:
        for side in SIDES:
            away = distance * (0.7 if all(side) else 1.0)  # as far along the diagonal
            yield np.array(side) * (half + away), distance


def cost(box: Bbox, inked: Floats, taken: Sequence[Bbox], frame: Bbox) -> float:
    """How much a text would cover; another text, or the border of the axes, is the worst."""
    covered = np.sum(np.all((inked > box.min) & (inked < box.max), axis=1))
    outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
    return float(covered) + 1000.0 * outside + 1000.0 * sum(box.overlaps(other) for other in taken)


def is_nearer(box: Bbox, others: Sequence[Floats], mark: Floats) -> bool:
    """Whether a reader would take the text in the box for that of another mark."""
    return any(space(box, other) <= space(box, mark) for other in others)


def space(box: Bbox, point: Floats) -> float:
    """Between a box and a point.

    >>> space(Bbox([[0, 0], [2, 2]]), np.array([5.0, 6.0]))
    5.0
    """
    return float(np.hypot(*np.maximum(0.0, np.maximum(box.min - point, point - box.max))))


def ink(axes: Axes) -> Floats:
    """Points along all lines and error bars of the axes, in pixels."""
    paths = [line.get_transform().transform(line.get_xydata()) for line in axes.lines]
    for bars in axes.collections:
        paths += [bars.get_transform().transform(path.vertices) for path in bars.get_paths()]
    points = [np.empty((0, 2)), *paths]
    for corners in paths:
        for one, other in pairwise(corners):
            points.append(np.linspace(one, other, max(2, int(np.hypot(*(other - one)) / STEP))))
    return np.concatenate(points)
