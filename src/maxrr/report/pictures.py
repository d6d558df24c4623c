"""Images inside the page: arrays as PNGs in data URIs."""

import base64
import io

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from maxrr.report.marks import tag

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


def contact_sheet(images: NDArray[np.floating], gone: NDArray[np.bool_], columns: int, ink: Ink, label: str) -> Markup:
    """All images as one picture, with empty frames in the places of those that are gone."""
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
