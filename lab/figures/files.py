"""Figures as files. Only here matplotlib is asked for, and only when something is to be drawn."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from lab.parts import part_of
from maxrr.files import write_atomically

DPI = 160
METADATA: dict[str, dict[str, str | None]] = {  # nothing that changes from day to day
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def draw(results: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write PART.svg and PART.png into the folder for every part that has a figure; the same results, the same bytes.

    Parameters
    ----------
    results
        What the result files hold, by their names.
    folder
        Where the files are written. It is made if it is not there.

    Returns
    -------
    list of Path
        The files that were written, two for each figure.

    Raises
    ------
    ImportError
        Where matplotlib is missing.
    """
    try:
        from lab.figures.look import look
    except ModuleNotFoundError as error:
        raise ImportError(f"drawing figures needs {error.name}: pip install 'maxrr[plots]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in results.items():
        part = part_of(content)
        if part.drawing is None:
            continue
        with look():
            figure = part.draw(content)
            figure.draw_without_rendering()
            figure.set_layout_engine(None)  # all is in its place, for both files
            for suffix, metadata in METADATA.items():
                image = BytesIO()
                figure.savefig(image, format=suffix, dpi=DPI, metadata=metadata)
                path = folder / f"{name}.{suffix}"
                write_atomically(path, image.getvalue())
                written.append(path)
    return written
