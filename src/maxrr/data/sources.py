"""`load`: records from a name, a file or a folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from maxrr.data import images, known
from maxrr.data.checks import named
from maxrr.data.dataset import Dataset
from maxrr.data.encoding import Encoding
from maxrr.data.labels import IdsFrom, check_ids_from
from maxrr.data.numpy_files import read_archive, read_mapped
from maxrr.data.reading import Reading, reading_of
from maxrr.data.tables import SUFFIXES, columns_in, part_of
from maxrr.data.train_test import SplitBy, divide, pair
from maxrr.errors import DataError, UnknownSource, UnreadableFile
from maxrr.progress import Progress


def load(
    source: str | Path, *, reading: str | None = None, label: str | None = None, id: str | None = None,
    subject: str | None = None, weight: str | None = None, encoding: Encoding | None = None,
    ids_from: IdsFrom | None = None, split_by: SplitBy | None = None, meta: str | Path | None = None,
    drop: Sequence[str] | None = None, whole: bool = False, progress: Progress | None = None,
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Training and test records of a dataset known by name, or from a file or folder.

    ========================  =================================================================================
    source                    what it is
    ========================  =================================================================================
    'digits'                  8 × 8 images inside scikit-learn
    'fashion-mnist', 'mnist'  28 × 28 images: found on this machine, or else fetched and kept in the user's cache
    'cifar-10'                32 × 32 photographs in colour: likewise
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

    A dataset known by name is looked for in the folder of that name in $MAXRR_DATA, in /usr/share/datasets, then in
    the user's cache; its files are checked by SHA-256 at every load. To read a folder that has such a name, write
    './mnist'.

    Parameters
    ----------
    source : str or Path
        A name or a path, as in the table above.
    reading : str, optional
        How the source is read, as the file says that `prepare` writes beside it; that file, if not given. What is given
        below counts instead of what it says.
    label, id, subject : str, optional
        Names of the columns of a CSV or Parquet file that hold labels, record ids and subject ids. A column 'subject'
        may be missing; so may the ids if `ids_from` is given. Other sources have no columns: naming some is an error.
    weight : str, optional
        The column of a CSV or Parquet file that says how much a record counts. Without it there are no weights.
    encoding : Encoding, optional
        How the columns of a CSV or Parquet file that are not plain numbers become inputs. Without one, texts, dates,
        lists and missing values are errors.
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
    drop : list of str
        Columns of a CSV or Parquet file that are passed over. All that are neither these nor named above are inputs.
    whole : bool
        Whether all records are for training, also those that would be for testing. Use it for a file of records that
        were set aside.
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
    found = reading_of(source) if reading is None else Reading.from_toml(reading)
    given: dict[str, Any] = {
        "label": label, "id": id, "subject": subject, "weight": weight, "encoding": encoding, "ids_from": ids_from,
        "split_by": split_by, "meta": None if meta is None else str(Path(meta).absolute()),
        "drop": None if drop is None else tuple(drop), "drafted": None if encoding is None else (),
    }  # fmt: skip
    how = replace(found or Reading(), **{name: value for name, value in given.items() if value is not None})
    return read(source, how, whole, progress)


def read(source: str | Path, how: Reading, whole: bool, progress: Progress | None) -> tuple[Dataset, Dataset]:
    """Read the records of a source."""
    path, known_names = Path(source), known.names()
    if source in known_names or path.is_dir():
        with named(source):
            how.check_no_columns()
            check_ids_from(True, how.ids_from, "a number or a path")
    if source in known_names:
        return known.load(str(source), whole, progress)
    if path.is_dir():
        return images.read(path, progress, whole)
    if not path.is_file():
        raise UnknownSource(f"{source}: is neither a file or folder nor one of {', '.join(known_names)}")
    if path.suffix == ".npy":
        return read_mapped(path, how, whole)
    if path.suffix == ".npz":
        return read_archive(path, how, whole)
    if path.suffix not in SUFFIXES:
        names = ", ".join(known_names)
        raise UnreadableFile(
            f"{source}: cannot be read: give an .npz, .npy, .csv or .parquet file, a folder, or {names}"
        )
    with named(path):
        if how.meta is not None:
            raise DataError("meta (--meta) is for an .npy file, which says nothing of its rows itself. Leave it out")
        part, columns = part_of(columns_in(path, how, check=how.check), how)
    sides = divide(part, str(path), how.split_by)
    return pair(*sides, str(path), columns=columns, whole=whole, drafted=len(how.drafted))
