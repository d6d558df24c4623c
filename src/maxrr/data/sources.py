"""`load`: records from a name, a file or a folder."""

from collections.abc import Sequence
from pathlib import Path

from maxrr.data import csv_file, images, known, places
from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding
from maxrr.data.frames import header_of_parquet, read_parquet
from maxrr.data.known import PUBLISHED
from maxrr.data.labels import IdsFrom, check_ids_from
from maxrr.data.numpy_files import read_archive, read_mapped
from maxrr.data.table import Columns
from maxrr.data.train_test import SplitBy, check_split_by
from maxrr.errors import DataError
from maxrr.progress import Progress

TABLES = {".csv": csv_file.read, ".parquet": read_parquet}


def load(
    source: str | Path, *, label: str = "label", id: str = "id", subject: str = "subject",
    weight: str | None = None, encoding: Encoding | None = None, ids_from: IdsFrom | None = None,
    split_by: SplitBy = "subject", meta: str | Path | None = None, whole: bool = False,
    drop: Sequence[str] = (), progress: Progress | None = None,
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records of a dataset known by name, or from a file or folder.

    ========================  =================================================================================
    source                    what it is
    ========================  =================================================================================
    'digits'                  8 × 8 images inside scikit-learn
    'fashion-mnist', 'mnist'  28 × 28 images: found on this machine, or else fetched and kept in the user's cache
    a path ending in .npz     arrays x_train, y_train, x_test and y_test, or X and y; ids, or `ids_from`. Inputs that a
                              network takes by name, as they are: X.tokens, X.mask in the place of X
    a path ending in .csv     a table with a header, a column of labels, one of ids, or `ids_from`, numbers
    ... in .parquet           the same; needs pyarrow
    a path ending in .npy     embeddings or other inputs, which are not loaded; `meta` says what its rows are
    a folder                  PNG and JPEG images, one folder per class, inside folders train and test or directly
    ========================  =================================================================================

    Where a source has no test records of its own, about a fifth of its records are for testing. A hash of the person
    whom a record is about decides whether it is one of them, so that all records about one person are on one side; of
    the record's id, where the source names no people. Other records cannot change that. With few records or people
    there may be none.
    Ids are unique over training and test records. The classes are those of the training records.

    A dataset known by name is looked for in $MAXRR_DATA and its folder of that name, in /usr/share/datasets, then in
    the user's cache; its files are checked by SHA-256 at every load. To read a folder that has such a name, write
    './mnist'.

    Parameters
    ----------
    source : str or Path
        A name or a path, as in the table above.
    label, id, subject : str
        Names of the columns of a CSV or Parquet file that hold labels, record ids and subject ids. A column 'subject'
        may be missing; so may the ids if `ids_from` is given. Other sources have no columns: naming some is an error.
    weight : str, optional
        The column of a CSV or Parquet file that says how much a record counts. Without it there are no weights.
    encoding : Encoding, optional
        How the columns of a CSV or Parquet file that are not plain numbers become inputs. Without one, texts and
        missing values are errors.
    ids_from : "content" or "rows", optional
        How to make ids for the records of a CSV, Parquet or .npz file that has none; an error if it has ids, and so
        is a file without ids if this is not given. "content": a hash of each record's inputs without its label.
        The id stays as long as the inputs do; records with equal inputs get -2, -3, … in the order of the file. "rows":
        row numbers. When a line is deleted, the records after it get other ids, among them ids of forgotten records.
    split_by : {"subject", "id"}
        What decides which records are for testing, where the source does not say it. "id" may put records about one
        person on both sides.
    meta : str or Path, optional
        Beside an .npy file, and only there: the CSV or Parquet file that has the labels, ids, subjects and weights of
        its rows, one line per row, in the same order. Other columns are not looked at.
    whole : bool
        Whether all records are for training, also those that would be for testing. Use it for a file of records that
        were set aside.
    drop : list of str
        Columns of a CSV or Parquet file that are passed over. All that are neither these nor named above are inputs.
    progress : Progress, optional
        Called as files arrive or images are read.

    Returns
    -------
    train, test : Dataset
        Training and test records, with the same classes.

    Raises
    ------
    DataError
        Something is wrong with the data; the message names the file, and the record where it is one.

    Examples
    --------
    >>> train, test = load("digits")
    >>> len(train), len(test), train.shape
    (1420, 377, (1, 8, 8))
    """
    check_split_by(split_by)
    wanted = Columns(label, id, subject, weight, ids_from, encoding or Encoding(), tuple(drop))
    if (meta is not None) != (Path(source).suffix == ".npy" and not Path(source).is_dir()):
        raise DataError(
            f"{source}: is a file of numbers alone: say what its rows are, meta='people.csv' (--meta people.csv)"
            if meta is None
            else f"{source}: meta (--meta) is for an .npy file, which says nothing of its rows itself. Leave it out"
        )
    if meta is not None and drop:
        raise DataError(f"{meta}: only the columns that are named are looked at: leave drop (--drop) out")
    if not is_table(source) and meta is None:
        _check_no_columns(source, wanted)
    if source == "digits" or source in PUBLISHED or Path(source).is_dir():
        _check_given(source, ids_from)
    if source == "digits":
        return known.digits(whole)
    if isinstance(source, str) and source in PUBLISHED:
        entry = PUBLISHED[source]
        files = places.find(entry)
        if files is None:
            places.fetch(source, progress)
            files = places.files_in(places.cache(entry), entry)
        return known.read(entry, files, whole)
    path = Path(source)
    known_names = ", ".join(["digits", *PUBLISHED])
    if path.is_dir():
        return images.read(path, progress, whole)
    if not path.is_file():
        raise DataError(f"{source}: is neither a file or folder nor one of {known_names}")
    if meta is not None:
        return read_mapped(path, Path(meta), wanted, split_by, whole)
    if path.suffix == ".npz":
        return read_archive(path, ids_from, split_by, whole)
    if path.suffix in TABLES:
        return TABLES[path.suffix](path, wanted, split_by, whole)
    raise DataError(
        f"{source}: cannot be read: give an .npz, .npy, .csv or .parquet file, a folder, or one of {known_names}"
    )


def is_table(source: str | Path) -> bool:
    """Whether the records are in a file with columns, which have names."""
    return Path(source).suffix in TABLES and not Path(source).is_dir()


def header_of(table: str | Path) -> list[str]:
    """What the columns of a table are called."""
    path = Path(table)
    return csv_file.header_in(path) if path.suffix == ".csv" else header_of_parquet(path)


def _check_no_columns(source: str | Path, wanted: Columns) -> None:
    """Refuse names of columns where there are none: they would be passed over."""
    usual = Columns(ids_from=wanted.ids_from)
    given = [
        name
        for name in ("label", "id", "subject", "weight", "encoding", "drop")
        if getattr(wanted, name) != getattr(usual, name)
    ]
    if given:
        raise DataError(
            f"{source}: has no columns that {given[0]} (--{given[0]}) could mean: it is for .csv and .parquet files. "
            "Leave it out"
        )


def _check_given(source: str | Path, ids_from: str | None) -> None:
    """Refuse `ids_from` for these sources: their records always have ids."""
    try:
        check_ids_from(True, ids_from, "a number or a path")
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
