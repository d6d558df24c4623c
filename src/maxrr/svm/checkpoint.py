"""Solved heads in a folder, so that a long fit that was interrupted goes on where it was.

Nothing in the folder is believed: a head that is read is where the solver starts, and is proved from the samples like
any other. A file that is damaged, or of other samples, costs time and nothing else.
"""

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxrr.files import write_atomically
from maxrr.svm.arrays import Bools, Floats, Ints
from maxrr.svm.certificate import Certificate
from maxrr.svm.problem import Head

ENDING = ".head.npz"
UNFINISHED = ".maxrr-*.tmp"  # what `write_atomically` leaves behind when it is killed
LARGEST = 1e120  # beyond any weight or multiplier, for the limits that samples and penalties have
UNPROVED = Certificate(False, np.inf, np.inf, np.inf, np.inf, np.inf, 0, 0)


class Checkpoint:
    """A folder of heads."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, head: Head) -> None:
        """Keep a head. A file is there whole or not at all."""

        def write(content: BinaryIO) -> None:
            np.savez(
                content, w=head.w, b=np.array([head.b]), on_margin=head.on_margin, inside=head.inside,
                multipliers=head.multipliers,
            )  # fmt: skip

        write_atomically(self.file(head.positive), write, private=True)

    def load(self, positive: int, features: int, alive: Bools) -> Head | None:
        """A head as it was kept, if there is one that could be for such samples."""
        try:
            with open(self.file(positive), "rb") as file, np.load(file, allow_pickle=False) as content:
                w, b, multipliers = (of_kind(content[name], np.float64) for name in ("w", "b", "multipliers"))
                on_margin, inside = (of_kind(content[name], np.int64) for name in ("on_margin", "inside"))
        except Exception:  # damage has many faces, and each library on the way its own words for it
            return None
        fits = w.shape == (features,) and b.shape == (1,) and multipliers.shape == on_margin.shape
        if not (fits and finite(w, b, multipliers) and places_of(on_margin, alive) and places_of(inside, alive)):
            return None
        if len(np.intersect1d(on_margin, inside)):
            return None
        return Head(positive, w, float(b[0]), on_margin, inside, multipliers, UNPROVED)

    def clear(self) -> None:
        """Remove the heads, also half-written ones: a fit that is done does not leave any behind."""
        for pattern in (f"*{ENDING}", UNFINISHED):
            for file in self.folder.glob(pattern):
                file.unlink(missing_ok=True)

    def file(self, positive: int) -> Path:
        return self.folder / f"{positive}{ENDING}"


def of_kind(array: NDArray[Any], kind: type) -> NDArray[Any]:
    """The array, if it is of this type; there is no other in a file that was written here."""
    if array.dtype != kind:
        raise ValueError(f"{array.dtype} instead of {np.dtype(kind)}")
    return array


def finite(*arrays: Floats) -> bool:
    """Whether all numbers are, and leave room for arithmetic."""
    return all(bool((np.abs(array) <= LARGEST).all()) for array in arrays)


def places_of(places: Ints, alive: Bools) -> bool:
    """Whether these are places of samples that take part, each once and sorted."""
    if places.ndim != 1 or (len(places) and not 0 <= places[0] <= places[-1] < len(alive)):
        return False
    return bool((np.diff(places) > 0).all() and alive[places].all())
