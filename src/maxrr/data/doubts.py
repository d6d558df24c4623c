"""What may be wrong with the inputs of a table: columns that look like ids, and columns of very different scales."""

import re

import numpy as np

from maxrr.data.dataset import Dataset

ID = re.compile(r"(.*[_\W])?(id|uuid|guid|index)|unnamed: \d+|", re.IGNORECASE)
FEWEST = 20  # records: among fewer, whole numbers that happen to differ say nothing
APART = 100.0  # a network's first weights are as large for one column as for another: beyond this one drowns the rest


def doubts(table: Dataset) -> list[str]:
    """Describe doubtful columns, one sentence for each kind of doubt; images and arrays have no columns.

    A model that gets an id learns it by heart, and a request to forget a person by it finds nobody.

    >>> doubts(Dataset(np.array([[7.0, 2e5], [8.0, 9e5]]), [0, 1], ("a", "b"), [1, 2], columns=("user_id", "income")))
    ["the inputs 'user_id' look like ids: name them with --id or --subject, or pass over by --drop", \
"column 'income' varies 7e+05 times as much as column 'user_id': give both a mean and a width that bring them to about \
1, in the file that `maxrr data prepare` writes or by an Encoding"]
    """
    if table.columns is None or not len(table):
        return []
    columns, found = list(zip(table.columns, table.inputs.T, strict=True)), []
    if ids := [name for name, values in columns if ID.fullmatch(name.strip()) or are_numbered(values)]:
        named = ", ".join(map(repr, ids))
        found.append(f"the inputs {named} look like ids: name them with --id or --subject, or pass over by --drop")
    spreads = {
        name: 0.5 if np.isin(values, (0.0, 1.0)).all() else float(values.std(dtype=np.float64))  # a yes may be rare
        for name, values in columns
        if values.min() < values.max()
    }
    if spreads:
        wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
        if spreads[wide] > APART * spreads[narrow]:
            found.append(
                f"column {wide!r} varies {spreads[wide] / spreads[narrow]:.2g} times as much as column {narrow!r}: "
                "give both a mean and a width that bring them to about 1, in the file that `maxrr data prepare` writes "
                "or by an Encoding"
            )
    return found


def are_numbered(values: np.ndarray) -> bool:
    """Whether these are whole numbers, all different."""
    many = len(values) >= FEWEST
    return many and bool((values == np.trunc(values)).all()) and len(np.unique(values)) == len(values)
