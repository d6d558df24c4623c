"""Weights of classes by their names; those of classes without records by HMACs, until such a class comes back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.plain_text import first_few
from maxrr.unlearning.classes import without_name
from maxrr.unlearning.hashes import GONE_CLASS, class_hmac


def by_name(
    weights: Mapping[Any, float] | None, labels: NDArray[Any], dataset: Dataset, key: bytes,
    before: Mapping[str, float], *, again: bool = False,
) -> dict[str, float]:  # fmt: skip
    """Weights by the names of the classes. A class that is not there is a mistake, or was forgotten since.

    The model that is fitted anew tells by the weights that it has `before`: one that was forgotten is among them under
    its HMAC. `again` says that the records are the model's own, whose forgotten classes have lost name and label.

    >>> two = Dataset(np.zeros((2, 1)), [0, 1], ("3", "5"), [0, 1])
    >>> by_name({5: 2.0}, np.array([3, 5]), two, b"key", {})
    {'5': 2.0}
    >>> by_name({5: 2.0, 7: 3.0}, np.array([3, 5]), two, b"key", {of_gone_class(b"key", "7"): 1.0}).values()
    dict_values([2.0, 3.0])
    """
    called, names = labels.tolist(), dataset.class_names
    present = np.unique(dataset.labels).tolist()
    lost = {code for code, name in enumerate(names) if again and code not in present and name == without_name(code)}
    codes = [code for code in range(len(names)) if code not in lost]
    known = {names[code]: names[code] for code in codes} | {called[code]: names[code] for code in codes}
    back = {of_gone_class(key, names[code]): names[code] for code in present}
    gone = {name: weight for name, weight in before.items() if name.startswith(GONE_CLASS)}
    found = dict[str, float]()
    for label, weight in (weights or {}).items():
        hidden = label if str(label).startswith(GONE_CLASS) else of_gone_class(key, str(label))
        # Whoever called a class by its place has no other word for it: it is known by its weight.
        alike = [name for name, former in gone.items() if lost and former == weight]
        if label in known:
            found[known[label]] = float(weight)
        elif hidden in back or hidden in gone:
            found[back.get(hidden, hidden)] = float(weight)
        elif alike:
            found |= dict.fromkeys(alike, float(weight))
        else:
            raise DataError(f"class_weight names class {label!r}; the classes are {first_few(names)}")
    return found


def of_gone_class(key: bytes, name: str) -> str:
    """What stands for the name of a class without records: enough to know its weight when it comes back."""
    return GONE_CLASS + class_hmac(key, name)
