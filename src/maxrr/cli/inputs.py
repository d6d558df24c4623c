"""Single records from files: for predictions, and to replace a record."""

from __future__ import annotations

import csv
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxrr.cli.exits import FAILED, Stop

if TYPE_CHECKING:
    from numpy.typing import NDArray

IMAGES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Kind:
    """What a workspace's records are like."""

    shape: tuple[int, ...]
    dtype: Any

    def __str__(self) -> str:
        return f"{' × '.join(map(str, self.shape))} {self.dtype}"


def records_in(path: Path, kind: Kind, keys: Collection[str]) -> tuple[list[str], NDArray[Any]]:
    """The records in a file, and a name for each. In a table, columns with these `keys` are no features."""
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return [str(path)], from_image(path, kind)[None]
    if suffix == ".npy":
        return numbered(path, as_records(path, from_npy(path), kind))
    if suffix == ".npz":
        return numbered(path, as_records(path, from_npz(path), kind))
    if suffix == ".csv":
        return numbered(path, as_records(path, from_csv(path, keys), kind))
    raise Stop(FAILED, f"{path}: cannot be read as records: give PNG, JPEG, .npy, .npz or .csv files")


def numbered(path: Path, records: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Records with names, by their places in the file if there are several."""
    return [str(path)] if len(records) == 1 else [f"{path}:{row}" for row in range(len(records))], records


def from_image(path: Path, kind: Kind) -> NDArray[Any]:
    """An image file as a record: its pixels, from 0 to 1 where the workspace's records are no bytes."""
    import numpy as np

    from maxrr.data.images import decoded

    pixels = decoded(path)
    if pixels.shape != kind.shape:
        found = " × ".join(map(str, pixels.shape))
        raise Stop(FAILED, f"{path}: is {found} pixels, but the workspace's records are {kind}: convert it")
    return pixels if kind.dtype == np.uint8 else (pixels / 255.0).astype(kind.dtype)


def from_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file."""
    import numpy as np

    try:
        with open(path, "rb") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    except ValueError as error:
        raise Stop(FAILED, f"{path}: cannot be read as .npy: {error}") from None


def from_npz(path: Path) -> NDArray[Any]:
    """The records in an .npz file: X or x_test, as in a source, or its only array."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            names = [name for name in ("X", "x_test") if name in archive.files] or archive.files
            if len(names) != 1:
                raise Stop(FAILED, f"{path}: which of {', '.join(names)} are records? Name the array X")
            return np.asarray(archive[names[0]])
    except (ValueError, zipfile.BadZipFile) as error:
        raise Stop(FAILED, f"{path}: cannot be read as .npz: {error}") from None


def from_csv(path: Path, keys: Collection[str]) -> NDArray[Any]:
    """The numbers of a CSV file with a header, a record a line."""
    import numpy as np

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header, *lines = [row for row in csv.reader(file, strict=True) if any(cell.strip() for cell in row)] or [[]]
        columns = [place for place, name in enumerate(header) if name.strip() not in keys]
        return np.array([[float(line[place]) for place in columns] for line in lines], dtype=np.float32)
    except (ValueError, IndexError, csv.Error) as error:
        raise Stop(FAILED, f"{path}: cannot be read as a table of numbers with a header: {error}") from None


def as_records(path: Path, found: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """One record or many, as the workspace has them."""
    import numpy as np

    if found.dtype.kind not in "biuf":
        raise Stop(FAILED, f"{path}: holds {found.dtype}, not numbers")
    plane = kind.shape[1:] if kind.shape[0] == 1 else kind.shape  # of grey images, which may lack the channel
    if found.shape in (kind.shape, plane):
        found = found[None]
    if found.shape[1:] not in (kind.shape, plane) or not len(found):
        raise Stop(FAILED, f"{path}: has shape {found.shape}, but the workspace's records are {kind}")
    records = found.reshape(-1, *kind.shape).astype(kind.dtype)
    if kind.dtype == np.uint8 and not np.array_equal(records, found.reshape(records.shape)):
        raise Stop(FAILED, f"{path}: holds numbers that are no bytes from 0 to 255, as the workspace's records are")
    if not np.isfinite(records).all():
        raise Stop(FAILED, f"{path}: holds NaN or infinity")
    return records
