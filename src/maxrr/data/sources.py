"""`load`: records from a name, a file or a folder."""

from pathlib import Path

from maxrr.data import archive, images, known, places, table
from maxrr.data.dataset import Dataset
from maxrr.data.ids import IdsFrom, check_ids_from
from maxrr.data.known import PUBLISHED
from maxrr.errors import DataError
from maxrr.progress import Progress


def load(
    source: str | Path, *, label: str = "label", id: str = "id", subject: str = "subject",
    ids_from: IdsFrom | None = None, whole: bool = False, progress: Progress | None = None,
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
    a folder                  PNG and JPEG images, one folder per class, inside folders train and test or directly
    ========================  =================================================================================

    Where a source has no test records of its own, about a fifth of its records are for testing. A record's id alone
    decides whether it is one of them, and other records cannot change that. With very few records there may be none.
    Ids are unique over training and test records. The classes are those of the training records.

    A dataset known by name is looked for in $MAXRR_DATA and its folder of that name, in /usr/share/datasets, then in
    the user's cache; its files are checked by SHA-256 at every load. To read a folder that has such a name, write
    './mnist'.

    Parameters
    ----------
    source : str or Path
        A name or a path, as in the table above.
    label, id, subject : str
        Names of the columns of a CSV file that hold labels, record ids and subject ids. A column 'subject' may be
        missing; so may the ids if `ids_from` is given.
    ids_from : "content" or "rows", optional
        How to make ids for the records of a CSV or .npz file that has none; an error if it has ids, and so is a file
        without ids if this is not given. "content": a hash of each record's inputs without its label. The id stays as
        long as the inputs do; records with equal inputs get -2, -3, … in the order of the file. "rows": row numbers.
        When a line is deleted, the records after it get other ids, among them ids of forgotten records.
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
    if path.suffix == ".npz":
        return archive.read(path, ids_from, whole)
    if path.suffix == ".csv":
        return table.read(path, label, id, subject, ids_from, whole)
    raise DataError(f"{source}: cannot be read: give an .npz or .csv file, a folder, or one of {known_names}")


def _check_given(source: str | Path, ids_from: str | None) -> None:
    """Refuse `ids_from` for these sources: their records always have ids."""
    try:
        check_ids_from(True, ids_from, "a number or a path")
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
