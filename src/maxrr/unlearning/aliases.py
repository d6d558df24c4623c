"""The types of what callers give, by name."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

Ids = int | str | Sequence[int | str] | NDArray[Any]
"""Record ids or subject ids, integers or strings: one, or a list or array of them."""

Inputs = ArrayLike
"""What the network takes, one record per row: pixels, token ids, rows of a table."""

Labels = ArrayLike
"""The class of each record: integers, booleans or strings."""
