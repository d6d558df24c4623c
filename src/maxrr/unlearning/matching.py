"""Records that callers bring, as records of the kind that a model was fitted on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import check_dense
from maxrr.data.fields import are_several, described, fields_of, packed
from maxrr.errors import DataError
from maxrr.unlearning.aliases import Inputs

Kind = np.dtype[Any]
Shape = tuple[int, ...]
Convert = Callable[[NDArray[Any], Kind, Shape, str], NDArray[Any]]

KINDS = {
    "pixels": "pixels of 0 to 255 in uint8, which it divides by 255", "f": "floats, which it takes as they are",
    "i": "integers, which it takes as they are", "b": "booleans, which it takes as they are",
}  # fmt: skip


def to_predict(given: Inputs, kind: Kind, shape: Shape) -> NDArray[Any]:
    """Records to predict: of the model's shape, and numbers of its kind."""
    return matched(given, kind, shape, as_fitted)


def to_replace(given: Inputs, kind: Kind, shape: Shape) -> NDArray[Any]:
    """One record as an array of one, in the model's type, if that holds its numbers as they are."""
    return to_learn(in_a_row(given, kind), kind, shape)


def to_learn(given: Inputs, kind: Kind, shape: Shape) -> NDArray[Any]:
    """Records to add, in the model's type, if that holds their numbers as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return matched(given, kind, shape, in_its_type)


def in_a_row(given: Inputs, kind: Kind) -> Inputs:
    """One record as an array of one, or as several."""
    check_dense(given)
    if isinstance(given, Mapping):
        return {name: np.asarray(part)[None] for name, part in given.items()}
    if kind.names is not None and isinstance(given, tuple):
        return tuple(np.asarray(part)[None] for part in given)
    return np.asarray(given)[None]


def matched(given: Inputs, kind: Kind, shape: Shape, convert: Convert) -> NDArray[Any]:
    """An array of records like the model's, each of whose inputs is converted by itself."""
    check_dense(given)
    if kind.names is None:
        if isinstance(given, Mapping):
            raise DataError(f"the model's network takes one input, {described(kind, shape)}: bring one array")
        return convert(np.asarray(given), kind, shape, "")
    array = packed(given) if are_several(given) else np.asarray(given)
    found = {} if array.dtype.names is None else {name: array[name] for name in array.dtype.names}
    if set(found) != set(kind.names):
        raise DataError(f"the model's network takes {described(kind, ())}: {difference(list(found), kind.names)}")
    parts = {name: convert(found[name], *fields_of(kind)[name], f" {name!r}") for name in kind.names}
    return array if all(part is found[name] for name, part in parts.items()) else packed(parts)


def difference(found: Sequence[str], known: Sequence[str]) -> str:
    """In which inputs two kinds of records differ."""
    if not found:
        return "bring a dictionary of arrays with these names, or a tuple where they are numbers"
    wrong = [f"{name!r} is missing" for name in known if name not in found]
    wrong += [f"there is no input {name!r}" for name in found if name not in known]
    return ", ".join(wrong)


def as_fitted(part: NDArray[Any], kind: Kind, shape: Shape, name: str) -> NDArray[Any]:
    """An input of the model's shape and kind. Floats stay as they are, of either length."""
    if part.shape[1:] != shape:
        if part.shape == shape:
            raise DataError(f"this is one record{name} of shape {shape}: add an axis in front, as in record[None]")
        raise DataError(f"the records{name} have shape {part.shape[1:]}, but the model was fitted on {shape}")
    if word(part.dtype) != word(kind):
        raise DataError(
            f"the records{name} are {part.dtype}, but the model was fitted on {KINDS[word(kind)]}: bring the same kind"
        )
    if part.dtype == kind or kind.kind == "f":
        return part
    return exactly(part, kind, f"the records{name} do")


def in_its_type(part: NDArray[Any], kind: Kind, shape: Shape, name: str) -> NDArray[Any]:
    """An input of new records, of the model's shape and in its type; refused where that would change its numbers."""
    if part.shape[1:] != shape:
        raise DataError(f"the new record{name} has shape {part.shape[1:]}, but the model's records have {shape}")
    if part.dtype == np.uint8 != kind:
        raise DataError(f"the new record{name} is of bytes, which networks divide by 255, but the model's are {kind}")
    if word(part.dtype) != word(kind) and not (kind.kind == "f" and part.dtype.kind in "biu"):
        raise DataError(
            f"the new record{name} is {part.dtype}, but the model was fitted on {KINDS[word(kind)]}: bring the same "
            "kind"
        )
    if kind.kind != "f":
        return exactly(part, kind, f"the new record{name} does")
    found = part.astype(kind)
    if not np.array_equal(found.astype(part.dtype), part, equal_nan=True):  # back again: == rounds
        raise DataError(
            f"the new records{name} are {part.dtype}, and the model holds {kind}, which would change their numbers. "
            f"Convert them yourself, with astype({kind.name!r}), or fit again"
        )
    return found


def exactly(part: NDArray[Any], kind: Kind, who: str) -> NDArray[Any]:
    """The same integers or booleans in another type."""
    with np.errstate(invalid="ignore"):
        content = part.astype(kind)
    if not np.array_equal(content, part):
        raise DataError(f"{who} not fit into {kind}, which the model's records are of")
    return content


def word(kind: Kind) -> str:
    """What networks make of numbers of a type: pixels, floats, integers or booleans."""
    return "pixels" if kind == np.uint8 else kind.kind
