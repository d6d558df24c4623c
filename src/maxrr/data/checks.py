"""Checks of what a dataset holds, and the messages for what it cannot hold."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.data import fields
from maxrr.errors import DataError, IdTaken

if TYPE_CHECKING:
    from maxrr.data.dataset import Dataset

BLOCK_BYTES = 1 << 24  # inputs are read this much at a time: a memory map is never loaded whole
LONGEST_IDENTIFIER = 1000  # characters of an id: NumPy gives every string of an array the room of the longest
DTYPES = tuple(map(np.dtype, ("uint8", "bool", "int8", "int16", "int32", "int64", "float16", "float32", "float64")))


@contextmanager
def named(source: object) -> Iterator[None]:
    """Put the name of a source before what is wrong with it."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{source}: {error}") from None


def some(values: NDArray[Any]) -> str:
    """Write the first five of some values for a message.

    >>> some(np.arange(7))
    '0, 1, 2, 3, 4 and 2 more'
    """
    shown = ", ".join(repr(value) for value in values[:5].tolist())
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5} more"


def blocks(inputs: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Consecutive rows, each block with the number of its first row."""
    step = max(1, BLOCK_BYTES // max(1, inputs[:1].nbytes))
    for start in range(0, len(inputs), step):
        yield start, inputs[start : start + step]


def listed(given: Any) -> Any:
    """Return one identifier as a list, and several as they are."""
    if isinstance(given, (str, bytes, int, np.generic)):
        return [given]
    return np.atleast_1d(given) if isinstance(given, np.ndarray) else given


def as_array(given: Any) -> NDArray[Any]:
    """Convert a column to an array. Arrow's dictionaries go by way of lists, because NumPy gets null wrong in them."""
    if type(getattr(given, "type", None)).__name__ == "DictionaryType":
        return np.array(given.to_pylist(), dtype=object)
    return np.asarray(given)


def check_dense(given: Any) -> None:
    """Refuse a sparse matrix: NumPy would make one object of it."""
    if hasattr(given, "tocsr"):
        from maxrr.svm.validation import DENSE  # brings scikit-learn

        raise DataError(f"sparse matrices are not supported: {DENSE.format('X.toarray()')}")


def check_identifiers(given: ArrayLike, what: str) -> NDArray[Any]:
    """Check ids, subject ids or class names, and return them as int64 or strings.

    Strings are looked at before NumPy makes an array of them: it drops a NUL at the end, so that 'a\\0' would be 'a',
    and gives every string the room of the longest.
    """
    items: Any = given if isinstance(given, (list, tuple)) else as_array(given)
    if isinstance(items, np.ndarray):
        if items.ndim != 1:
            raise DataError(f"{what} must be a list, not an array of shape {items.shape}")
        if items.dtype.kind == "i" or not items.size:
            return items.astype(np.str_ if items.dtype.kind in "UT" else np.int64)
        items = items.tolist()
    if all(isinstance(item, str) for item in items):
        for item in items:
            check_text(item, what)
        return np.array(items, dtype=np.str_ if items else np.int64)
    if all(isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in items):
        try:
            return np.array(items, dtype=np.int64)
        except OverflowError:
            raise DataError(f"{what} must fit in 64 bits with a sign: write larger ones as strings") from None
    missing = next((row for row, item in enumerate(items) if is_missing(item)), None)
    if missing is not None:
        raise DataError(f"{what} must be there for every record, and row {missing} has {items[missing]!r}: add it")
    kinds = ", ".join(sorted({type(item).__name__ for item in items}))
    raise DataError(f"{what} must be all integers or all strings, not {kinds}: write them as strings")


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, and what pandas has for these."""
    nothing = value is None or type(value).__name__ in ("NAType", "NaTType")
    return nothing or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))


def check_text(text: str, what: str) -> None:
    """Refuse a string with NUL in it, or so long that an array of strings would take too much memory."""
    if "\0" in text:
        raise DataError(f"{what} must not have the character NUL in them, as {text[:50]!r} does")
    if len(text) > LONGEST_IDENTIFIER:
        raise DataError(f"{what} must have {LONGEST_IDENTIFIER:,} characters at most, not {len(text):,}: {text[:50]!r}")


def check_blanks(given: NDArray[Any], what: str) -> None:
    """Refuse texts with blanks around them: who was forgotten as 'r5' must not come back as 'r5 ' from another file."""
    texts = given.tolist() if given.dtype.kind in "OUT" else []
    padded = next((row for row, text in enumerate(texts) if isinstance(text, str) and text != text.strip()), None)
    if padded is not None:
        raise DataError(f"{what} must have no blanks around them, and row {padded} has {texts[padded]!r}: strip them")


def check_inputs(inputs: ArrayLike | fields.Several) -> NDArray[Any]:
    """Check the inputs of records, and return them as one array; several inputs become its fields.

    Not copied, but for several inputs that are not in one array yet.
    """
    check_dense(inputs)
    array = fields.packed(inputs) if fields.are_several(inputs) else np.asanyarray(inputs)
    if array.dtype.names is not None:
        array = fields.canonical(array)
    for name, part in fields.parts_of(array):
        if part.dtype not in DTYPES:
            raise DataError(
                f"inputs{name} must be uint8 (pixels), another integer of up to 64 bits with a sign, bool, float16, "
                f"float32 or float64, not {part.dtype}: convert them"
            )
        if part.ndim < (1 if name else 2) or 0 in part.shape[1:]:
            raise DataError(f"inputs{name} must be (records, …) with numbers in each, not of shape {part.shape}")
    return array


def check_columns(names: Iterable[str], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Check that there is a different name for each number of a record."""
    columns = (names,) if isinstance(names, str) else tuple(names)
    if len(set(columns)) < len(columns) or not all(isinstance(name, str) for name in columns):
        raise DataError(f"the names of columns must be different strings, not {some(np.array(columns, dtype=object))}")
    if shape != (len(columns),):
        raise DataError(f"there are names of {len(columns)} columns for records of shape {shape}: one name per number")
    return tuple(map(str, columns))


def check_unique(ids: NDArray[Any]) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        raise IdTaken(f"record ids must be unique, but these repeat: {some(values[counts > 1])}")


def check_same_inputs(ours: "Dataset", other: "Dataset") -> None:
    """Refuse to join records whose inputs are of different types or shapes."""
    kinds = [fields.described(each.inputs.dtype, each.inputs.shape[1:]) for each in (ours, other)]
    if kinds[0] != kinds[1]:
        raise DataError(f"the records are {kinds[0]}, and those to join are {kinds[1]}: bring both as one kind")


def check_same_kind(ours: Any, other: "Dataset") -> None:
    """Refuse more records for a dataset or a model if columns or kinds of ids differ, or one side lacks something."""
    if ours.columns is not None and other.columns is not None and ours.columns != other.columns:
        name = next(
            (name for name in (*ours.columns, *other.columns) if (name in ours.columns) != (name in other.columns)), ""
        )
        what = f"such as {name!r}" if name else "in another order"
        raise DataError(f"the records to join have other columns, {what}: bring the same ones in the same order")
    for what, mine, theirs in (("record ids", ours.ids, other.ids), ("subject ids", ours.subjects, other.subjects)):
        if mine is not None and theirs is not None and mine.dtype.kind != theirs.dtype.kind:
            raise DataError(f"{what} are integers on one side, and strings on the other: use one kind")
    for what, mine, theirs in (("subjects", ours.subjects, other.subjects), ("weights", ours.weights, other.weights)):
        if (mine is None) != (theirs is None):
            raise DataError(f"the records have {what} on one side alone: give {what} for all, or for none")


def check_labels(labels: ArrayLike, ids: NDArray[Any], class_names: tuple[str, ...]) -> NDArray[np.int64]:
    """Check that there is one index into `class_names` for each record."""
    array = np.asarray(labels)
    if array.dtype.kind not in "iu" and array.size:
        raise DataError(f"labels must be indices into class_names, not {array.dtype}")
    if array.shape != ids.shape:
        raise DataError(f"there are {len(ids)} records, but labels have shape {array.shape}: one label per record")
    if len(set(class_names)) < len(class_names) or not all(isinstance(name, str) for name in class_names):
        raise DataError(f"class names must be different strings, not {class_names!r}")
    outside = np.flatnonzero((array < 0) | (array >= len(class_names)))
    if len(outside):
        raise DataError(
            f"record {ids[outside[0]].item()!r} has label {array[outside[0]]}, outside the {len(class_names)} classes "
            f"(0 to {len(class_names) - 1}); {len(outside)} such records in all"
        )
    return array.astype(np.int64, copy=False)


def check_weights(weights: ArrayLike, ids: NDArray[Any]) -> NDArray[np.float64]:
    """Check that there is one positive number for each record."""
    array = np.asarray(weights)
    if array.dtype.kind not in "iuf":
        raise DataError(f"weights must be numbers, not {array.dtype}")
    if array.shape != ids.shape:
        raise DataError(f"there are {len(ids)} records, but weights have shape {array.shape}: one weight per record")
    array = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(array) & (array > 0.0)))
    if len(wrong):
        raise DataError(
            f"record {ids[wrong[0]].item()!r} has the weight {array[wrong[0]]}: weights are positive numbers. Leave "
            "out records that should not count"
        )
    return array


def check_finite(inputs: NDArray[Any], ids: NDArray[Any]) -> None:
    for name, part in fields.parts_of(inputs):
        if part.dtype.kind != "f":
            continue
        for start, block in blocks(part):
            if not np.isfinite(block).all():
                row = start + int(np.argmin(np.isfinite(block).reshape(len(block), -1).all(axis=1)))
                raise DataError(f"record {ids[row].item()!r} has NaN or infinity in inputs{name}: repair or remove it")
