"""Several inputs of one network as one structured array: one row per record, and one field per input.

Rows of such an array are selected, mapped, hashed, sent and erased like those of any other. Fields are named like the
arguments of the network, or, where it takes its inputs by place, '0', '1' and so on. They lie in one order, without
gaps: the same records are the same bytes in whichever order their inputs were given.
"""

from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.errors import DataError

Several = Mapping[str, ArrayLike] | tuple[NDArray[Any], ...]
"""Several inputs, each with one row per record: by the names of the network's arguments, or in their order."""


def are_several(given: object) -> TypeGuard[Several]:
    """Whether these are several inputs: a dictionary, or a tuple of arrays. A tuple of lists is one array."""
    if isinstance(given, Mapping):
        return True
    return isinstance(given, tuple) and bool(given) and all(hasattr(part, "__array__") for part in given)


def packed(given: Several) -> NDArray[Any]:
    """Pack several inputs into one structured array.

    >>> packed({"mask": [[True, False]], "ids": [[7, 0]]}).dtype
    dtype([('ids', '<i8', (2,)), ('mask', '?', (2,))])
    """
    named = dict(given) if isinstance(given, Mapping) else {str(place): part for place, part in enumerate(given)}
    order = in_order(list(named))
    parts = {name: _array(name, named[name]) for name in order}
    counts = {name: len(part) for name, part in parts.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise DataError(f"every input has one row per record, but {found}")
    array = np.empty(next(iter(counts.values())), [(name, part.dtype, part.shape[1:]) for name, part in parts.items()])
    for name, part in parts.items():
        array[name] = part
    return array


def canonical(array: NDArray[Any]) -> NDArray[Any]:
    """Sort the fields of a structured array, and close gaps between them."""
    names = array.dtype.names
    assert names is not None
    if array.ndim != 1:
        raise DataError(f"an array with several inputs has one row per record, and not the shape {array.shape}")
    ordered = in_order(list(names))
    wanted = np.dtype([(name, array.dtype[name]) for name in ordered])
    if (array.dtype, array.dtype.itemsize) == (wanted, wanted.itemsize):
        return array
    return packed({name: array[name] for name in ordered})


def in_order(names: Sequence[object]) -> list[str]:
    """Sort the names of inputs: by place, or else by the alphabet."""
    if not names:
        raise DataError("a network takes one input or more, and there is none")
    texts = [name for name in names if isinstance(name, str)]
    if set(texts) == {str(place) for place in range(len(names))}:
        return sorted(texts, key=int)
    wrong = [name for name in names if not isinstance(name, str) or not name.isidentifier() or iskeyword(name)]
    if wrong:
        raise DataError(f"inputs are named like arguments of the network, and none is called {wrong[0]!r}")
    return sorted(texts)


def by_place(names: Sequence[str]) -> bool:
    """Whether a network takes inputs of these names by place, and not by name."""
    return names[0] == "0"


def fields_of(dtype: np.dtype[Any]) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """The type and the shape of each input of a record, by name."""
    return {name: (dtype[name].base, dtype[name].shape) for name in dtype.names or ()}


def parts_of(array: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    """Return each input with its name for messages; a single input has no name."""
    if array.dtype.names is None:
        return [("", array)]
    return [(f" {name!r}", array[name]) for name in array.dtype.names]


def described(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Describe the type and shape of a record in words.

    >>> described(np.dtype(np.uint8), (1, 28, 28))
    'uint8 of shape (1, 28, 28)'
    >>> described(np.dtype([("ids", "<i8", (128,)), ("length", "<i8")]), ())
    'ids int64 of shape (128,) and length int64'
    """
    if dtype.names is not None:
        return " and ".join(f"{name} {described(*kind)}" for name, kind in fields_of(dtype).items())
    return f"{dtype} of shape {shape}" if shape else str(dtype)


def shapes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Return the shape of a record as functions that make networks take it; of several inputs one by name."""
    return shape if dtype.names is None else {name: size for name, (_, size) in fields_of(dtype).items()}


def as_facts(dtype: np.dtype[Any]) -> Any:
    """Describe a type as JSON."""
    if dtype.names is None:
        return dtype.str
    return tuple((name, base.str, shape) for name, (base, shape) in fields_of(dtype).items())


def from_facts(facts: Any) -> np.dtype[Any]:
    """Make a type from what `as_facts` wrote."""
    found: np.dtype[Any] = np.dtype(facts if isinstance(facts, str) else list(facts))
    kinds = {base.kind for base, _ in fields_of(found).values()} or {found.kind}
    if not kinds <= set("biuf"):
        raise ValueError(f"records of type {facts!r:.40} are no numbers")
    return found


def _array(name: str, given: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asanyarray(given)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.hasobject:
        raise DataError(f"the input {name!r} has records of different lengths, or no numbers: pad them to one length")
    if array.dtype.names is not None or array.ndim < 1:
        raise DataError(f"the input {name!r} must be an array with one row per record")
    return array
