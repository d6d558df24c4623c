"""Which classes a model has when records of new ones arrive: their names, their order, and what callers call them.

Where classes are called by the labels of an array, they stay in the order of these, as a fit on all records has them:
a new one may come between two others. Where they are those of a dataset, callers know them by their places: new ones
come after the others, or where the arriving dataset has them, if it has all others in their places.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.errors import DataError, UnknownClass
from maxrr.plain_text import first_few
from maxrr.unlearning.commitment import GONE_CLASS, class_hmac


class Classes(NamedTuple):
    """All classes by number, and the numbers that those of before have now."""

    names: tuple[str, ...]
    labels: NDArray[Any]  # what callers call them
    number_of: NDArray[np.int64]

    @property
    def renumbered(self) -> bool:
        """Whether a class of before has another number."""
        return not np.array_equal(self.number_of, np.arange(len(self.number_of)))


def without_name(number: int) -> str:
    """What a class is called whose name is forgotten with its last record."""
    return f"(forgotten class {number})"


def with_arriving(
    names: tuple[str, ...], labels: NDArray[Any], present: Collection[int], arriving: Sequence[str],
    used: Sequence[str], *, by_place: bool,
) -> Classes:  # fmt: skip
    """The classes once records come of a dataset that has the classes `arriving`, and records of those `used`.

    They are known by their places, or by the labels of an array. Names such as '0' and '1' do not tell which.
    """
    same = np.arange(len(names))
    if by_place and len(arriving) >= len(names) and all(arriving[number] == names[number] for number in present):
        return Classes(tuple(arriving), np.arange(len(arriving)), same)
    known = {name for number, name in enumerate(names) if number in present or name != without_name(number)}
    new = [name for name in used if name not in known]
    if not new:
        return Classes(names, labels, same)
    found: list[tuple[int | None, str, Any]] = [
        (number, name, label) for number, (name, label) in enumerate(zip(names, labels.tolist(), strict=True))
    ]
    for name in new:
        label = len(found) if by_place else label_of(name, labels)
        later = (
            place for place, (number, _, other) in enumerate(found)
            if not by_place and (number is None or number in present) and other > label
        )  # fmt: skip
        found.insert(next(later, len(found)), (None, name, label))
    places = {number: place for place, (number, _, _) in enumerate(found) if number is not None}
    written = [
        without_name(place) if number is not None and name == without_name(number) and number not in present else name
        for place, (number, name, _) in enumerate(found)
    ]  # fmt: skip
    calls = [label for _, _, label in found]
    return Classes(
        tuple(written), np.array(calls, dtype=labels.dtype if labels.dtype.kind != "U" else np.str_),
        np.array([places[number] for number in range(len(names))], dtype=np.int64),
    )  # fmt: skip


def label_of(name: str, labels: NDArray[Any]) -> Any:
    """What callers call a new class of this name, where they call the others by labels."""
    if labels.dtype.kind == "U":
        return name
    if labels.dtype.kind == "i" and name.removeprefix("-").isdecimal() and str(int(name)) == name:
        return int(name)
    kind = {"i": "integers", "b": "booleans"}[labels.dtype.kind]
    raise DataError(f"the classes of the model are {kind}, and a new one cannot be called {name!r}")


# Weights of classes


def weights_by_name(
    weights: Mapping[Any, float] | None, labels: NDArray[Any], dataset: Dataset, key: bytes, before: Mapping[str, float]
) -> dict[str, float]:
    """Weights by the names of the classes; of a class that was forgotten, which was among those `before`, by its HMAC.

    >>> two = Dataset(np.zeros((2, 1)), [0, 1], ("3", "5"), [0, 1])
    >>> weights_by_name({5: 2.0}, np.array([3, 5]), two, b"key", {})
    {'5': 2.0}
    >>> weights_by_name({5: 2.0, 7: 3.0}, np.array([3, 5]), two, b"key", {of_gone_class(b"key", "7"): 1.0}).values()
    dict_values([2.0, 3.0])
    """
    called = dict(zip(labels.tolist(), enumerate(dataset.class_names), strict=True))
    lost = {label for label, (code, name) in called.items() if name == without_name(code)}
    known = {name: name for _, name in called.values()} | {label: name for label, (_, name) in called.items()}
    back = {of_gone_class(key, dataset.class_names[code]): dataset.class_names[code] for code in set(dataset.labels)}
    gone = {name: weight for name, weight in before.items() if name.startswith(GONE_CLASS)}
    found = dict[str, float]()
    for label, weight in (weights or {}).items():
        hidden = label if str(label).startswith(GONE_CLASS) else of_gone_class(key, str(label))
        if label in lost:
            found |= gone
        elif label in known:
            found[known[label]] = float(weight)
        elif hidden in gone:
            found[back.get(hidden, hidden)] = float(weight)
        else:
            raise UnknownClass(f"class_weight names class {label!r}; the classes are {first_few(dataset.class_names)}")
    return found


def of_gone_class(key: bytes, name: str) -> str:
    """What stands for the name of a class without records: enough to know its weight when it comes back."""
    return GONE_CLASS + class_hmac(key, name)
