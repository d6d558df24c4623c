"""Single records from files: for predictions, and to replace a record."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxrr.cli.run import FAILED, Stop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxrr.data import Encoding
    from maxrr.unlearning.record_kind import RecordKind

IMAGES = (".png", ".jpg", ".jpeg")
TABLES = (".csv", ".parquet")


def records_in(
    path: Path, kind: RecordKind, others: Collection[str], encoding: Encoding
) -> tuple[list[str], NDArray[Any]]:  # fmt: skip
    """The records in a file, and a name for each. In a table, the columns called `others` are no inputs.

    What is wrong with a file is a `Stop` or a `DataError`.
    """
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return [str(path)], from_image(path, kind)[None]
    if suffix == ".npy":
        return numbered(path, from_npy(path, kind))
    if suffix == ".npz":
        return numbered(path, from_npz(path, kind))
    if suffix in TABLES:
        return numbered(path, from_table(path, kind, others, encoding))
    raise Stop(FAILED, f"{path}: cannot be read as records: give PNG, JPEG, .npy, .npz, .csv or .parquet files")


def numbered(path: Path, records: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Records with names, by their places in the file if there are several."""
    return [str(path)] if len(records) == 1 else [f"{path}:{row}" for row in range(len(records))], records


def from_image(path: Path, kind: RecordKind) -> NDArray[Any]:
    """An image file as a record: its pixels, from 0 to 1 where the workspace's records are no bytes."""
    import numpy as np

    from maxrr.data.images import decoded

    pixels = decoded(path)
    if pixels.shape != kind.shape:
        found = " × ".join(map(str, pixels.shape))
        raise Stop(FAILED, f"{path}: is {found} pixels, but the workspace's records are {kind}: convert it")
    return pixels if kind.dtype == np.uint8 else (pixels / 255.0).astype(kind.dtype)


def from_npy(path: Path, kind: RecordKind) -> NDArray[Any]:
    """The records in an .npy file."""
    from maxrr.data.arrays import read_npy

    return as_records(path, read_npy(path), kind)


def from_npz(path: Path, kind: RecordKind) -> NDArray[Any]:
    """The records in an .npz file: X or x_test, as in a source, or its only array."""
    from maxrr.data.arrays import names_in, read_npz

    there = names_in(path)
    if kind.dtype.names is not None:
        return several_from_npz(path, there, kind)
    names = [name for name in ("X", "x_test") if name in there] or there
    if len(names) != 1:
        raise Stop(FAILED, f"{path}: which of {', '.join(names[:5]) or 'no arrays'} are records? Name the array X")
    return as_records(path, read_npz(path, names)[names[0]], kind)


def several_from_npz(path: Path, there: list[str], kind: RecordKind) -> NDArray[Any]:
    """The records in an .npz file that has one array for each of their inputs: X.ids or x_test.ids, or just ids."""
    from maxrr.data.arrays import read_npz
    from maxrr.data.fields import fields_of, packed
    from maxrr.unlearning.record_kind import RecordKind

    prefix = next((x for x in ("X.", "x_test.") if any(name.startswith(x) for name in there)), "")
    inputs = fields_of(kind.dtype)
    absent = [f"{prefix}{name}" for name in inputs if f"{prefix}{name}" not in there]
    if absent:
        raise Stop(FAILED, f"{path}: lacks {', '.join(absent)}: the workspace's records are {kind}")
    arrays = read_npz(path, [f"{prefix}{name}" for name in inputs])
    return packed(
        {
            name: as_records(path, arrays[f"{prefix}{name}"], RecordKind(shape, dtype))
            for name, (dtype, shape) in inputs.items()
        }
    )


def from_table(path: Path, kind: RecordKind, others: Collection[str], encoding: Encoding) -> NDArray[Any]:
    """The records in a CSV or Parquet file: its columns by name where these are known, and otherwise in their order."""
    from maxrr.data.csv_file import parsed
    from maxrr.data.frames import frame_in, names_of, table_of

    columns = None if kind.columns is None else encoding.columns_of(kind.columns)
    if path.suffix.lower() == ".csv":
        table = parsed(path, others, columns, encoding=encoding)
    else:
        frame = frame_in(path)
        table = table_of(frame, str(path), names_of(frame), others, columns, encoding=encoding)
    if kind.shape != (len(table.columns),):
        raise Stop(FAILED, f"{path}: has shape {table.numbers.shape}, but the workspace's records are {kind}")
    return table.as_type(kind.dtype)


def as_records(path: Path, found: NDArray[Any], kind: RecordKind) -> NDArray[Any]:
    """One record or many, as the workspace has them."""
    import numpy as np

    if kind.dtype.names is not None:
        raise Stop(FAILED, f"{path}: the workspace's records are {kind}: bring an .npz file with an array for each")
    if found.dtype.kind not in "biuf":
        raise Stop(FAILED, f"{path}: holds {found.dtype}, not numbers")
    plane = kind.shape[1:] if kind.shape[:1] == (1,) else kind.shape  # of grey images, which may lack the channel
    if found.shape in (kind.shape, plane):
        found = found[None]
    if found.shape[1:] not in (kind.shape, plane) or not len(found):
        raise Stop(FAILED, f"{path}: has shape {found.shape}, but the workspace's records are {kind}")
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is refused below
        records = found.reshape(-1, *kind.shape).astype(kind.dtype)
    if kind.dtype.kind != "f" and not np.array_equal(records, found.reshape(records.shape)):
        known = "bytes from 0 to 255" if kind.dtype == np.uint8 else str(kind.dtype)
        raise Stop(FAILED, f"{path}: holds numbers that are no {known}, as the workspace's records are")
    if not np.isfinite(records).all():
        raise Stop(FAILED, f"{path}: holds NaN or infinity")
    return records
