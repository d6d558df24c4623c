"""`maxrr predict`: the classes of records, which come from files of many kinds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from maxrr.cli import show
from maxrr.cli.options import Folder, Json
from maxrr.cli.workspaces import opened, reading_in
from maxrr.errors import OtherShape, UnreadableFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxrr.data.reading import Reading
    from maxrr.unlearning.record_kind import RecordKind

MOST = 3  # classes for programs, the most probable first
IMAGES = (".png", ".jpg", ".jpeg")
TABLES = (".csv", ".parquet")


def predict(
    workspace: Folder,
    files: Annotated[
        list[Path],
        Argument(metavar="FILES", help="Files with records: PNG or JPEG images, .npy, .npz, .csv or .parquet files."),
    ],
    json: Json = False,
) -> None:
    """Tell the classes of records, with probabilities.

    Images are taken as they are: of the size that the workspace was fitted on, grey or in colour as there. An .npy file
    holds one record or many, an .npz file those in X or x_test, or in one array for each input, such as X.tokens. The
    columns of a .csv or .parquet file are found by their names, if the workspace knows them, and encoded as they were
    for fitting; those of labels and ids are passed over. The class is that of `MaxRR.predict`, by the heads'
    scores; another may be more probable, above all where classes have weights.

    Examples:

        maxrr predict ws/ photo.png
        maxrr predict ws/ new/*.jpg --json
        maxrr predict ws/ visits.csv
    """
    import numpy as np

    from maxrr.svm.calibration import best_classes

    with opened(workspace, read_only=True) as found:
        found.check_code()
        kind, reading = found.model.kind_, reading_in(found.sources[0])
        if kind.columns is None and any(path.suffix.lower() in TABLES for path in files):
            show.warning(f"{workspace} does not know what its columns are called: those of tables count in order")
        read = [records_in(path, kind, reading) for path in files]
        names = [name for some, _ in read for name in some]
        records = np.concatenate([some for _, some in read])
        probabilities = found.model.predict_proba(records)
        chosen = best_classes(found.model.decision_function(records))
        classes = [kind.class_names[place] for place in kind.present]
    answers = [
        answer(name, row, classes, place)
        for name, row, place in zip(names, probabilities, chosen.tolist(), strict=True)
    ]
    if json:
        show.json(answers)
        return
    rows = [(said["record"], said["class"], f"{said['probability']:.3f}") for said in answers]
    show.table(("record", "class", "probability"), rows, numbers=("probability",))


def answer(name: str, probabilities: NDArray[Any], classes: list[str], chosen: int) -> dict[str, Any]:
    """Describe the class of one record, and the most probable classes."""
    order = sorted(range(len(classes)), key=lambda place: -probabilities[place])[:MOST]
    top = [{"class": classes[place], "probability": float(probabilities[place])} for place in order]
    return {"record": name, "class": classes[chosen], "probability": float(probabilities[chosen]), "top": top}


# Records in files


def records_in(path: Path, kind: RecordKind, reading: Reading) -> tuple[list[str], NDArray[Any]]:
    """Read the records in a file, and name each: by its place in the file, if there are several."""
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        records = from_image(path, kind)[None]
    elif suffix == ".npy":
        from maxrr.data.arrays import read_npy

        records = as_records(path, read_npy(path), kind)
    elif suffix == ".npz":
        records = from_npz(path, kind)
    elif suffix in TABLES:
        records = from_table(path, kind, reading)
    else:
        raise UnreadableFile(f"{path}: cannot be read as records: give PNG, JPEG, .npy, .npz, .csv or .parquet files")
    return [str(path)] if len(records) == 1 else [f"{path}:{row}" for row in range(len(records))], records


def from_image(path: Path, kind: RecordKind) -> NDArray[Any]:
    """Read an image file as a record: its pixels as bytes, or from 0 to 1 for a model of floats."""
    import numpy as np

    from maxrr.data.images import decoded

    pixels = decoded(path)
    if pixels.shape != kind.shape:
        found = " × ".join(map(str, pixels.shape))
        raise OtherShape(f"{path}: is {found} pixels, but the workspace's records are {kind}: convert it")
    return pixels if kind.dtype == np.uint8 else (pixels / 255.0).astype(kind.dtype)


def from_npz(path: Path, kind: RecordKind) -> NDArray[Any]:
    """Read the records in an .npz file: X or x_test, or its only array; of several inputs X.ids or ids."""
    from maxrr.data.arrays import names_in, read_npz
    from maxrr.data.fields import fields_of, packed
    from maxrr.unlearning.record_kind import RecordKind

    there = names_in(path)
    if kind.dtype.names is None:
        names = [name for name in ("X", "x_test") if name in there] or there
        if len(names) != 1:
            raise OtherShape(f"{path}: which of {', '.join(names[:5]) or 'no arrays'} are records? Name the array X")
        return as_records(path, read_npz(path, names)[names[0]], kind)
    prefix = next((x for x in ("X.", "x_test.") if any(name.startswith(x) for name in there)), "")
    inputs = fields_of(kind.dtype)
    absent = [f"{prefix}{name}" for name in inputs if f"{prefix}{name}" not in there]
    if absent:
        raise OtherShape(f"{path}: lacks {', '.join(absent)}: the workspace's records are {kind}")
    arrays = read_npz(path, [f"{prefix}{name}" for name in inputs])
    return packed(
        {
            name: as_records(path, arrays[f"{prefix}{name}"], RecordKind(shape, dtype))
            for name, (dtype, shape) in inputs.items()
        }
    )


def from_table(path: Path, kind: RecordKind, reading: Reading) -> NDArray[Any]:
    """Read the records in a CSV or Parquet file: columns by name where the names are known, else in their order."""
    from maxrr.data.checks import named
    from maxrr.data.encoding import columns_of
    from maxrr.data.tables import columns_in, inputs_of

    columns = None if kind.columns is None else columns_of(reading.encoding, kind.columns)
    with named(path):
        found = columns_in(path, reading, check=lambda header: None)
        table = inputs_of(found, [*reading.others, *reading.drop], columns, reading.encoding)
        if kind.shape != (len(table.names),):
            raise OtherShape(f"{path}: has shape {table.numbers.shape}, but the workspace's records are {kind}")
        return table.as_type(kind.dtype)


def as_records(path: Path, found: NDArray[Any], kind: RecordKind) -> NDArray[Any]:
    """Convert an array of one record or many to the shape and type of the model's records."""
    import numpy as np

    if kind.dtype.names is not None:
        raise OtherShape(f"{path}: the workspace's records are {kind}: bring an .npz file with an array for each")
    if found.dtype.kind not in "biuf":
        raise OtherShape(f"{path}: holds {found.dtype}, not numbers")
    plane = kind.shape[1:] if kind.shape[:1] == (1,) else kind.shape  # of grey images, which may lack the channel
    if found.shape in (kind.shape, plane):
        found = found[None]
    if found.shape[1:] not in (kind.shape, plane) or not len(found):
        raise OtherShape(f"{path}: has shape {found.shape}, but the workspace's records are {kind}")
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is refused below
        records = found.reshape(-1, *kind.shape).astype(kind.dtype)
    if kind.dtype.kind != "f" and not np.array_equal(records, found.reshape(records.shape)):
        raise OtherShape(f"{path}: holds numbers that are no {kind.dtype}, as the workspace's records are")
    if not np.isfinite(records).all():
        raise OtherShape(f"{path}: holds NaN or infinity")
    return records
