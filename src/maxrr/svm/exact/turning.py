"""Where the optimal biases of a head begin and end, given its weights.

The loss of a head is piecewise linear in b. Its slope rises by Cᵢ at every tᵢ = yᵢ − w·xᵢ, the b at which sample i has
margin 1, from minus the sum of Cᵢ over the positive samples on the far left. The optimal b go from the first tᵢ at
which the slope is no longer negative to the first at which it is positive. Both ends are monotone in each of the tᵢ, so
that bounds on these give bounds on the ends.
"""

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.exact.fixed_point import Integers


def ends(order: Ints, rises: Floats | Integers, below: float) -> tuple[int, int]:
    """The places in `order`, which sorts the turning points, where the slope is no longer negative, and positive.

    Left of all these points it is −`below`, and it rises by `rises` at each of them. A place beyond the last says that
    it does not come to that.

    >>> ends(np.array([2, 0, 1]), np.array([1.0, 3.0, 1.0]), 2.0)
    (1, 2)
    """
    slopes = np.cumsum(rises[order])
    return int(np.searchsorted(slopes, below, "left")), int(np.searchsorted(slopes, below, "right"))
