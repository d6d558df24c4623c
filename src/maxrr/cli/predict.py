"""`maxrr predict`: the classes of records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from maxrr.cli import show
from maxrr.cli.inputs import TABLES, records_in
from maxrr.cli.options import WAIT, Folder, Json, Network, Wait
from maxrr.cli.workspaces import check_code, columns, dropped_columns, encoding_of, opened

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 3  # classes for programs, the most probable first


def predict(
    workspace: Folder,
    files: Annotated[
        list[Path],
        Argument(metavar="FILES", help="Files with records: PNG or JPEG images, .npy, .npz, .csv or .parquet files."),
    ],
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Tell the classes of records, with probabilities.

    Images are taken as they are: of the size that the workspace was fitted on, grey or in colour as there. An .npy file
    holds one record or many, an .npz file those in X or x_test, or in one array for each input, such as X.tokens. The
    columns of a .csv or .parquet file are found by their names, if the workspace knows them, and encoded as they were
    for fitting; those of labels and ids are passed
    over.

    Examples:

        maxrr predict ws/ photo.png
        maxrr predict ws/ new/*.jpg --json
        maxrr predict ws/ visits.csv
    """
    import numpy as np

    with opened(workspace, wait, network=network, read_only=True) as found:
        check_code(found)
        kind, encoding = found.model.kind_, encoding_of(found.source)
        others = [name for name in columns(found.source).values() if name is not None]
        others += dropped_columns(found.source)
        if kind.columns is None and any(path.suffix.lower() in TABLES for path in files):
            show.warning(f"{workspace} does not know what its columns are called: those of tables count in order")
        read = [records_in(path, kind, others, encoding) for path in files]
        names = [name for some, _ in read for name in some]
        records = np.concatenate([some for _, some in read])
        probabilities = found.model.predict_proba(records)
        classes = [kind.class_names[place] for place in kind.present]
    answers = [best(name, row, classes) for name, row in zip(names, probabilities, strict=True)]
    if json:
        show.json(answers)
        return
    rows = [(answer["record"], answer["class"], f"{answer['top'][0]['probability']:.3f}") for answer in answers]
    show.table(("record", "class", "probability"), rows, numbers=("probability",))


def best(name: str, probabilities: NDArray[Any], classes: list[str]) -> dict[str, Any]:
    """The class of one record, and those that come close."""
    order = sorted(range(len(classes)), key=lambda place: -probabilities[place])[:MOST]
    top = [{"class": classes[place], "probability": float(probabilities[place])} for place in order]
    return {"record": name, "class": top[0]["class"], "top": top}
