"""Tables whose columns have changed places."""

from dataclasses import replace

from maxrr.data.dataset import Dataset


def in_order_of(known: tuple[str, ...] | None, dataset: Dataset) -> Dataset:
    """The records with their columns in the order that is known, where both have names for the same ones.

    >>> import numpy as np
    >>> table = Dataset(np.array([[1.0, 2.0]]), [0], ("yes",), [7], columns=("age", "income"))
    >>> in_order_of(("income", "age"), table).inputs
    array([[2., 1.]])
    """
    own = dataset.columns
    if known is None or own is None or own == known or set(own) != set(known):
        return dataset
    return replace(dataset, inputs=dataset.inputs[:, [own.index(name) for name in known]], columns=known)
