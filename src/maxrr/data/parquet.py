"""A Parquet file: a table whose columns know their types."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxrr.data.arrays import EXPANSION, SMALL
from maxrr.data.dataset import Dataset
from maxrr.data.frames import part_of_frame
from maxrr.data.table import Columns
from maxrr.data.train_test import SplitBy, divide, pair
from maxrr.errors import DataError
from maxrr.files import open_regular

CELL = 8  # bytes that a value takes in memory, about


def read(
    path: Path, wanted: Columns, split_by: SplitBy = "subject", whole: bool = False
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records from a Parquet file. Inputs are stored as float32."""
    part, columns = part_of_frame(frame_in(path), str(path), wanted)
    return pair(*divide(part, str(path), split_by), str(path), columns=columns, whole=whole)


def frame_in(path: Path) -> Any:
    """The table in a Parquet file, as Arrow has it.

    Raises
    ------
    DataError
        It is damaged, or a small file that would fill the memory; or pyarrow is not installed.
    """

    def read(opened: Any) -> Any:
        whole = opened.metadata.num_rows * opened.metadata.num_columns * CELL
        if whole > max(SMALL, EXPANSION * path.stat().st_size):
            raise DataError(
                f"{path}: would unpack to {whole:,} bytes, many times its size. If it is yours, read it with "
                "pandas or polars, and use maxrr.data.from_frame"
            )
        return opened.read()

    return _opened(path, read)


def header_in(path: Path) -> list[str]:
    """What the columns of a Parquet file are called."""
    return list(_opened(path, lambda opened: opened.schema_arrow.names))


def _opened(path: Path, read: Callable[[Any], Any]) -> Any:
    """What `read` makes of a Parquet file. Errors get its name."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError("reading Parquet files needs pyarrow: pip install 'maxrr[parquet]'") from None
    with open_regular(path) as file:
        try:
            return read(ParquetFile(file))
        except (ArrowException, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
