"""Newton's method for all heads of some runs at once, where a small operation costs as much as a large one.

The method is that of `newton.py`: minimise the problem smoothed around the current multipliers, take the new ones,
narrow the smoothing. What differs is how it is laid out. A graphics processor spends microseconds on starting an
operation and on every number that the host wants to see, so here every head takes each step together with the others,
in operations on (heads × rows); heads that are done with a smoothing go on to the next one by
themselves, without the host; and it asks only now and then whether all have arrived.

Features come centred and scaled to lengths of about 1, with a column of ones for the bias, which makes (w, b) one
vector v of D = d + 1 numbers. Scores are X v, and the penalty is ½ Σ decay·v², where decay undoes the scaling and is 0
for the bias. Rows lie in blocks, because a sum over all of them is fast only where many processors take a part each.

Nothing here decides anything: a head that ends far from its solution is a poor start, not a wrong result.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from maxrr.svm.arrays import GOLDEN

BLOCK = 1024  # rows
LARGEST_PRODUCT = 2**26  # numbers held at once for the curvature
MOST_BAND_ROWS = 16_384  # that curvature is computed from
RIDGE = 1e-13  # of the trace: keeps Cholesky going where rounding would stop it
NARROWING = 5.0
ACCURACY = 0.3  # of the multipliers and the width. A step follows that squares the error
ASK = 4  # steps between questions from the host
MOST_STEPS = 120
FINEST, COARSEST = 9, 3  # steps from 2⁻⁹ to 2³ of Newton's are looked at first, each twice the one before
PARTS = 8  # then the gap between two of them is divided


@dataclass(frozen=True)
class Rows:
    """The samples that heads work on: those of a run share them, and heads are in the order of their runs."""

    X: Tensor  # (runs, blocks, BLOCK, D)
    y: Tensor  # (heads, rows): ±1
    cap: Tensor  # (heads, rows): upper bounds of the multipliers, 0 where a block is filled up
    steepness: Tensor  # (heads, 1), or (heads, rows) where samples weigh differently: σ of a smoothing of width 1
    decay: Tensor  # (heads, D)

    @cached_property
    def lots(self) -> Tensor:
        """A number from 0 to 1 for every row: those with the highest stand for the others."""
        places = torch.arange(1, self.y.shape[1] + 1, device=self.X.device, dtype=torch.float64)
        return (places * GOLDEN).frac().float()

    def scores(self, v: Tensor) -> Tensor:
        """X v for every head: (heads, rows)."""
        return (v.view(len(self.X), -1, v.shape[1]) @ self.X.flatten(1, 2).mT).flatten(0, 1)

    def in_blocks(self, weights: Tensor) -> Tensor:
        """From (heads, rows) to (runs, blocks, heads of a run, BLOCK)."""
        return weights.view(len(self.X), -1, self.X.shape[1], BLOCK).transpose(1, 2)

    def combined(self, weights: Tensor) -> Tensor:
        """Σ weightᵢxᵢ for every head: (heads, D)."""
        return (self.in_blocks(weights) @ self.X).sum(1).flatten(0, 1)

    def curvature(self, weights: Tensor) -> Tensor:
        """Σ weightᵢxᵢxᵢᵀ for every head, (heads, D, D), over the rows with a weight or an even part of them."""
        runs, dimension = len(self.X), self.X.shape[3]
        counts = (weights > 0.0).sum(1, keepdim=True)
        most = min(max(int(counts.max()), 1), MOST_BAND_ROWS, max(LARGEST_PRODUCT // dimension, 1))
        rows = self.X.flatten(0, 2)
        first = torch.arange(runs, device=rows.device).repeat_interleave(len(weights) // runs) * (len(rows) // runs)
        share = max(1, LARGEST_PRODUCT // (most * dimension))
        found = []
        for part in (slice(start, start + share) for start in range(0, len(weights), share)):
            chosen = torch.where(weights[part] > 0.0, self.lots, -1.0).topk(most, sorted=False).indices
            factor = weights[part].gather(1, chosen) * (counts[part] / most).clamp(min=1.0)
            near = rows[chosen + first[part, None]]
            found.append((near * factor[:, :, None]).mT @ near)
        return torch.cat(found)


@dataclass(frozen=True)
class Heads:
    """Weights, multipliers and smoothings of all heads, on the device."""

    v: Tensor  # (heads, D)
    alpha: Tensor  # (heads, rows): the multipliers that the problem is smoothed around
    width: Tensor  # (heads, 1): of the smoothing


def minimise(rows: Rows, heads: Heads, narrowest: float) -> Heads:
    """Newton's method until every head has solved a smoothing of width `narrowest`, or has taken many steps."""
    arrived = torch.zeros_like(heads.width, dtype=torch.bool)
    shortfall = 1.0 - rows.y * rows.scores(heads.v)
    for count in range(1, MOST_STEPS + 1):
        heads, shortfall, arrived = step(rows, heads, shortfall, arrived, narrowest)
        if count % ASK == 0 and bool(arrived.all()):
            break
    return heads


def step(
    rows: Rows, heads: Heads, shortfall: Tensor, arrived: Tensor, narrowest: float
) -> tuple[Heads, Tensor, Tensor]:
    """One step of every head that has not arrived."""
    sigma = rows.steepness / heads.width
    # 1. Multipliers and gradient.
    raised = torch.addcmul(heads.alpha, sigma, shortfall)
    multipliers = clip(raised, rows.cap)
    outward = heads.v * rows.decay
    gradient = outward - rows.combined(multipliers * rows.y)
    error, size = gradient.norm(dim=1, keepdim=True), multipliers.norm(dim=1, keepdim=True)
    solved = error <= ACCURACY * heads.width.clamp(max=1.0) * size
    # 2. Newton's direction; where rounding spoils it, the gradient's.
    band = raised == multipliers
    direction = newton_direction(rows, band * sigma, gradient)
    # 3. The best point along it.
    change = rows.y * rows.scores(direction)
    along = (torch.stack([gradient, outward, rows.decay * direction]) * direction).sum(2, keepdim=True)
    length = line_search(
        raised, rows.cap, sigma * change, change, slope=along[0], offset=along[1], curvature=along[2]
    ).masked_fill_(arrived, 0.0)
    v = torch.addcmul(heads.v, length, direction)
    shortfall = torch.addcmul(shortfall, length, change, value=-1.0)
    # 4. Heads that were near the minimum are now at it: they take the multipliers there, and a narrower smoothing.
    found = clip(torch.addcmul(heads.alpha, sigma, shortfall), rows.cap)
    alpha = torch.where(solved & ~arrived, found, heads.alpha)
    arrived = arrived | (solved & (heads.width <= narrowest))
    width = torch.where(solved, (heads.width / NARROWING).clamp_(min=narrowest), heads.width)
    return Heads(v, alpha, width), shortfall, arrived


def newton_direction(rows: Rows, weights: Tensor, gradient: Tensor) -> Tensor:
    """−H⁻¹ gradient for the curvature H of the smoothed problem."""
    hessian = rows.curvature(weights)
    diagonal = hessian.diagonal(dim1=1, dim2=2)
    diagonal += rows.decay + RIDGE * diagonal.sum(1, keepdim=True)
    diagonal[:, -1] += weights.amax(1) == 0.0  # without a band nothing bends along b, and any number will do
    factor, failed = torch.linalg.cholesky_ex(hessian)
    found = torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]
    return -torch.where(failed[:, None] == 0, found, gradient).nan_to_num(0.0, 0.0, 0.0)


def line_search(
    raised: Tensor, cap: Tensor, fall: Tensor, change: Tensor, *, slope: Tensor, offset: Tensor, curvature: Tensor
) -> Tensor:
    """The step at which the slope along each head's direction vanishes; 0 where the direction does not descend.

    The slope at step s is offset + s·curvature − Σ clip(raisedᵢ − s·fallᵢ, 0, capᵢ)·changeᵢ, and rises with s. Two
    looks at many steps at once, the second between those where the first saw its sign change, then the chord.
    """
    coarse, fine, _ = constants(slope.device)
    none = torch.zeros_like(slope)

    def slopes(steps: Tensor) -> Tensor:
        moved = torch.addcmul(raised[:, None], steps[:, :, None], fall[:, None], value=-1.0)
        return offset + steps * curvature - clip(moved, cap[:, None]).mul_(change[:, None]).sum(2)

    # Pairs of steps and slopes: (2, heads, steps).
    steps = coarse.expand(len(slope), -1)
    low, high = bracket(torch.cat([torch.stack([none, slope]), torch.stack([steps, slopes(steps)])], dim=2))
    steps = torch.addcmul(low[0], high[0] - low[0], fine)
    low, high = bracket(torch.cat([low, torch.stack([steps, slopes(steps)]), high], dim=2))
    rise = high - low
    return low[0] + rise[0] * (-low[1] / rise[1]).clamp(0.0, 1.0).nan_to_num(0.0)


def bracket(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The two neighbours between which slopes change their sign, or the last two: each (2, heads, 1)."""
    count = pairs.shape[2]
    last = (pairs[1, :, 1 : count - 1] <= 0.0).sum(1, keepdim=True)
    places = torch.cat([last, last + 1], dim=1).expand(2, -1, -1)
    found = pairs.gather(2, places)
    return found[:, :, :1], found[:, :, 1:]


def clip(values: Tensor, cap: Tensor) -> Tensor:
    """Values between 0 and cap."""
    return torch.clamp(values, min=constants(cap.device)[2], max=cap)


@cache
def constants(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Steps for the first look of the line search, parts of the gap between two of them for the second, and 0."""
    coarse = torch.arange(-FINEST, COARSEST + 1, dtype=torch.float64, device=device).exp2()
    return coarse, torch.arange(1, PARTS, dtype=torch.float64, device=device) / PARTS, coarse.new_zeros(())
