"""Sums of samples on a graphics processor without rounding: `fixed_point.signed_sum` in other words."""

import numpy as np
import torch
from torch import Tensor

from maxrr.svm.arrays import Floats, Ints, blocks, like, to_numpy
from maxrr.svm.exact.fixed_point import MANTISSA, Fixed, integers


def signed_sum(X: Tensor, places: Ints, signs: Floats) -> tuple[Fixed, Ints]:
    """Σ yᵢxᵢ over the rows at some places for yᵢ = ±1, and how many numbers of each column are not zero."""
    total, filled = Fixed.zeros(X.shape[1]), np.zeros(X.shape[1], dtype=np.int64)
    width = MANTISSA - max(len(places), 2).bit_length()  # of whole numbers whose sum is below 2^MANTISSA
    for part in blocks(X[: len(places)]):
        rows, factors = X[like(places[part], X)].double(), like(signs[part], X)
        filled += to_numpy((rows != 0.0).sum(0))
        exponents = np.frexp(to_numpy(rows.abs().amax(0)))[1].astype(np.int64)
        lowest = int(exponents.min(initial=0))
        rest = rows * like(np.ldexp(1.0, width - exponents), X)  # by powers of two: nothing is rounded
        values, count = Fixed.zeros(X.shape[1]).values, 0
        while True:
            whole = torch.round(rest)
            values, count = (values << width) + to_numpy(factors @ whole).astype(np.int64).astype(object), count + 1
            rest -= whole
            if not bool(rest.any()):
                break
            rest *= 2.0**width
        total = total.plus(Fixed(values << integers((exponents - lowest).tolist()), width * count - lowest))
    return total, filled
