"""The types of what callers give, by name."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from maxrr.data.fields import Several

Ids = int | str | Sequence[int | str] | NDArray[Any]
"""Record ids or subject ids, integers or strings: one, or a list or array of them."""

Inputs = ArrayLike | Several
"""What the network takes, one record per row: pixels, token ids, rows of a table. Several inputs are a dictionary of
arrays, by the names of the network's arguments, or a tuple of arrays, in their order."""

Labels = ArrayLike
"""The class of each record: integers, booleans or strings."""
