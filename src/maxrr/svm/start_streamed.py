"""A start for heads on a device that has no room for all samples: Newton's method on some of them at a time.

In every round all samples are sent in blocks, and for each head those near its margin are chosen: all of them, or where
these are too many a part, each standing for several. What the others add to the gradient, and what the part gets wrong
about it, is a constant vector that the same pass over the data computes: so where a round begins the gradient is that
of all samples. From round to round the weights move less, fewer samples are so near that it matters, and in the end all
of these are there. As in `start_cuda`, nothing here decides anything.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from maxrr.parallel import Threads
from maxrr.svm.arrays import Bools, Floats, Ints, to_numpy
from maxrr.svm.device import Device
from maxrr.svm.newton_cuda import BLOCK, LARGEST_PRODUCT, WIDE, Heads, Rows, minimise
from maxrr.svm.problem import Samples
from maxrr.svm.start import BAND, Guess
from maxrr.svm.start_cuda import ENOUGH, FAR, STAGES, RunSamples, centres, find_direction, thin
from maxrr.svm.streaming import PER_HEAD, rows_at_once, sent
from maxrr.svm.working_set import REACH

FEW_ROWS, MANY_ROWS = (1 << 13, 48), (1 << 16, 96)  # samples that a head works on, or so many times d + 1: between
LEAST_ROWS = 24  # times d + 1: with room for less than this the device is of no use
MOST_ROUNDS = 8  # four are usual
NARROWEST = STAGES[-1] / 10.0  # smoothing
NEXT = 2.0  # times the typical change of margins: samples further from the margin do not matter in the next round,
SAFE = 4.0  # and samples further than so many did not in this one
MOST_TOGETHER = 16  # heads that share a thinned sample, in which each of them has more than its share
MEASURED = 4096  # samples from which centre and length are taken


@dataclass(frozen=True)
class Limits:
    """What the memory that may be used on the device is enough for."""

    rows: int  # that a head works on, at most: whole blocks
    together: int  # heads at a time
    product: int  # numbers held at once for the curvature

    @classmethod
    def of(cls, room: int, width: int, heads: int) -> "Limits":
        """A quarter each for rows on their way and for products, the rest for heads: all of them, if they fit."""
        dimension = width + 1
        per_row = 8 * dimension * (1 if dimension >= WIDE else 2) + PER_HEAD
        low, high = (max(rows, times * dimension) for rows, times in (FEW_ROWS, MANY_ROWS))
        wanted = min(max(room // 2 // (heads * per_row), low), high)
        rows = min(wanted, room // 4 // (12 * dimension)) // BLOCK * BLOCK
        each = rows * per_row + 32 * dimension * dimension
        return cls(rows, room // 2 // max(each, 1), min(LARGEST_PRODUCT, room // 4 // 16))


@dataclass
class Progress:
    """Where the heads of a group are, in main memory."""

    w: Floats  # (heads × d), for the features as they are
    b: Floats
    reach: Floats  # samples further from the margin are taken to stay on their side
    width: Floats  # of the smoothing that was solved
    done: Bools
    multipliers: dict[int, tuple[Ints, Floats]]  # by head, those strictly between their bounds


@dataclass(frozen=True)
class Scale:
    """What is subtracted from features and what they are divided by, as `minimise` wants them."""

    origin: Tensor  # (d)
    length: float

    def scaled(self, w: Tensor, b: Tensor) -> Tensor:
        """v for weights (heads, d) and biases (heads)."""
        return torch.cat([w * self.length, (b + w @ self.origin)[:, None]], dim=1)

    def unscaled(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """The reverse."""
        w = v[:, :-1] / self.length
        return w, v[:, -1] - w @ self.origin

    def combined(self, total: Tensor, tilt: Tensor) -> Tensor:
        """Σ aᵢyᵢxᵢ of the features as `minimise` wants them, from that of the features as they are and Σ aᵢyᵢ."""
        return torch.cat([(total - tilt[:, None] * self.origin) / self.length, tilt[:, None]], dim=1)

    @property
    def decay(self) -> Tensor:
        """(1, D)."""
        found = torch.full((1, len(self.origin) + 1), self.length**-2, dtype=torch.float64, device=self.origin.device)
        found[:, -1] = 0.0
        return found


def guess_run(samples: Samples, classes: list[int]) -> Guess | None:
    """Every head near its solution; None if the device has no room for that."""
    device = samples.device
    assert device is not None
    width, heads = samples.X.shape[1], len(classes)
    limits = Limits.of(device.room(), width, heads)
    if limits.rows < LEAST_ROWS * (width + 1) or limits.together < 1:
        return None
    scale = scale_of(samples, device)
    # 1. A rough direction, from a thinned sample.
    step = min(limits.together, MOST_TOGETHER)
    parts = [classes[first : first + step] for first in range(0, heads, step)]
    directions = [direction(samples, part, scale, limits, device) for part in parts]
    w, b = (np.concatenate(found) for found in zip(*directions, strict=True))
    now = Progress(w, b, np.full(heads, FAR), np.full(heads, FAR), np.zeros(heads, dtype=bool), {})
    # 2. From there on the samples that count.
    for _ in range(MOST_ROUNDS):
        left = np.flatnonzero(~now.done)
        if not len(left):
            break
        round_of(samples, classes, left, now, scale, limits, device)
    # 3. The few numbers that say where each head ended.
    none = np.empty(0, dtype=np.int64), np.empty(0)
    between = [now.multipliers.get(number, none) for number in range(heads)]
    return Guess(
        now.w, now.b, now.width, head=np.repeat(np.arange(heads), [len(places) for places, _ in between]),
        sample=np.concatenate([places for places, _ in between]),
        multiplier=np.concatenate([values for _, values in between]),
    )  # fmt: skip


def scale_of(samples: Samples, device: Device) -> Scale:
    """The mean of the samples, and how far they typically are from it, as some of them say."""
    alive = np.flatnonzero(samples.alive)
    some = samples.rows(alive[:: max(1, len(alive) // MEASURED)])
    origin = some.mean(axis=0)
    length = float(np.sqrt(np.mean(np.sum((some - origin) ** 2, axis=1)))) or 1.0
    return Scale(torch.as_tensor(origin, device=device.name), length)


def direction(
    samples: Samples, classes: list[int], scale: Scale, limits: Limits, device: Device
) -> tuple[Floats, Floats]:
    """Weights and biases from a thinned sample."""
    chosen, weight = thin(samples, classes, min(ENOUGH, limits.rows // 2))
    chosen, weight = chosen[: limits.rows], weight[: limits.rows]
    X = torch.as_tensor(samples.on_device(chosen), device=device.name)
    y = np.where(samples.codes[chosen] == np.array(classes)[:, None], 1.0, -1.0)
    run = RunSamples(
        X[None], torch.as_tensor(y, device=device.name), torch.ones(len(X), dtype=torch.bool, device=device.name),
        torch.as_tensor(samples.bounds[chosen], device=device.name), samples.penalties.even, scale.decay,
        scale.origin[None], torch.full_like(scale.origin[:1, None], scale.length), limits.product,
    )  # fmt: skip
    v = find_direction(run, np.arange(len(chosen)), weight, samples.caps[chosen])
    w, b = scale.unscaled(v[0])
    return to_numpy(w), to_numpy(b)


def round_of(
    samples: Samples, classes: list[int], left: Ints, now: Progress, scale: Scale, limits: Limits, device: Device
) -> None:  # fmt: skip
    """Choose samples for these heads, and move the heads to where these lead."""
    wanted = [classes[number] for number in left]
    shortfall, total, tilt = survey(samples, wanted, now.w[left], now.b[left], now.reach[left], device)
    choices = list(Threads().map(lambda row: choose(row[0], samples.alive, row[1], limits.rows, BAND * (samples.X.shape[1] + 1)),
                                 zip(shortfall, now.reach[left], strict=True)))  # fmt: skip
    for first in range(0, len(left), limits.together):
        part = slice(first, first + limits.together)
        work_on(samples, wanted[part], left[part], shortfall[part], choices[part], total[part], tilt[part],
                now, scale, limits, device)  # fmt: skip


def survey(
    samples: Samples, classes: list[int], w: Floats, b: Floats, width: Floats, device: Device
) -> tuple[Floats, Floats, Floats]:
    """1 − margins of all samples (heads × n), and Σ aᵢyᵢxᵢ and Σ aᵢyᵢ for multipliers by a smoothing of some width.

    One pass over the data. Multipliers of samples further than the width from the margin are at their bounds.
    """
    samples.counter.passes += 1
    X, heads = samples.everything(), len(classes)
    shortfall = np.empty((heads, len(X)))
    weights, biases, widths, wanted = (
        torch.as_tensor(part, device=device.name) for part in (w.T.copy(), b, width, np.array(classes))
    )
    total, tilt = torch.zeros_like(weights.T), torch.zeros_like(biases)
    caps = np.where(samples.alive, samples.caps, 0.0)
    for rows, block in sent(X, rows_at_once(X, heads, device), device):
        codes, cap = (torch.as_tensor(part[rows], device=device.name) for part in (samples.codes, caps))
        wide = block.double()
        y = torch.where(codes[:, None] == wanted, 1.0, -1.0).to(wide.dtype)
        short = 1.0 - y * (wide @ weights + biases)
        signed = centres(short, cap[:, None], widths) * y
        total.addmm_(signed.T, wide)
        tilt += signed.sum(0)
        shortfall[:, rows] = to_numpy(short).T
    return shortfall, to_numpy(total), to_numpy(tilt)


@dataclass(frozen=True)
class Choice:
    """The samples that a head works on in a round."""

    places: Ints
    weight: float  # how many each stands for
    reach: float  # all others are further from the margin than this
    narrowest: float  # smoothing that is worth solving


def choose(shortfall: Floats, alive: Bools, reach: float, most: int, band: int) -> Choice:
    """The samples within reach of the margin, and more where there is room; where there is not, some of them.

    All of them are solved so narrowly that few more are left in doubt than so many, which make up a band.
    """
    distance = np.where(alive, np.abs(shortfall), np.inf)
    near = np.flatnonzero(distance <= reach)
    if len(near) > most:
        places = near[(np.arange(most) * len(near)) // most]
        return Choice(places, len(near) / most, reach, max(STAGES[-1], reach * min(1.0, band / most)))
    if len(distance) > most:
        reach = max(reach, float(np.partition(distance, most - 1)[most - 1]))
        near = np.flatnonzero(distance <= reach)[:most]
    else:
        near, reach = np.flatnonzero(alive), np.inf
    nearest = float(np.partition(distance, band)[band]) if len(distance) > band else np.inf
    return Choice(near, 1.0, reach, float(np.clip(nearest / (2.0 * REACH), NARROWEST, STAGES[-1])))


def work_on(
    samples: Samples, classes: list[int], numbers: Ints, shortfall: Floats, choices: list[Choice], total: Floats,
    tilt: Floats, now: Progress, scale: Scale, limits: Limits, device: Device,
) -> None:  # fmt: skip
    """Newton's method for some heads at once, each on its own samples."""
    name, heads, dimension = device.name, len(numbers), samples.X.shape[1] + 1
    most = max(len(choice.places) for choice in choices)
    filled = most + -most % BLOCK
    # 1. The samples, and what the others add.
    X = torch.zeros((heads, filled, dimension), dtype=torch.float64, device=name)
    y, cap, short = (np.zeros((heads, filled)) for _ in range(3))
    for slot, (choice, positive) in enumerate(zip(choices, classes, strict=True)):
        count, places = len(choice.places), choice.places
        rows = torch.as_tensor(samples.on_device(places), device=name)
        X[slot, :count, :-1] = rows
        X[slot, :count, :-1] -= scale.origin
        X[slot, :count, :-1] /= scale.length
        X[slot, :count, -1] = 1.0
        y[slot, :count] = np.where(samples.codes[places] == positive, 1.0, -1.0)
        cap[slot, :count] = choice.weight * samples.caps[places]
        short[slot, :count] = shortfall[slot, places]
    y, cap, short = (torch.as_tensor(part, device=name) for part in (y, cap, short))
    reach = torch.as_tensor(now.reach[numbers], device=name)[:, None]
    alpha = centres(short, cap, reach)
    rows = Rows(X.view(heads, -1, BLOCK, dimension), y, cap, 0.5 * cap, scale.decay.expand(heads, -1), largest=limits.product)
    everyone = scale.combined(*(torch.as_tensor(part, device=name) for part in (total, tilt)))
    rows = replace(rows, pull=everyone - rows.combined(alpha * y))
    # 2. Newton.
    v = scale.scaled(*(torch.as_tensor(part[numbers], device=name) for part in (now.w, now.b)))
    narrowest = torch.as_tensor([choice.narrowest for choice in choices], dtype=torch.float64, device=name)[:, None]
    found = minimise(rows, Heads(v, alpha, reach), narrowest)
    change = rows.scores(found.v - v) * (cap > 0.0)
    typical = (change.square().sum(1) / (cap > 0.0).sum(1).clamp(min=1)).sqrt()
    # 3. Where this leads, as far as it is to be believed: samples out of reach may come to matter before that.
    step = (reach[:, 0] / typical).nan_to_num(1.0).clamp(max=1.0)
    w, b = (to_numpy(part) for part in scale.unscaled(v + step[:, None] * (found.v - v)))
    moved, short_of = to_numpy(step * typical), to_numpy(step < 1.0)
    multipliers, between = to_numpy(found.alpha), to_numpy((found.alpha > 0.0) & (found.alpha < cap))
    now.w[numbers], now.b[numbers], now.width[numbers] = w, b, to_numpy(found.width)[:, 0]
    for slot, (number, choice) in enumerate(zip(numbers.tolist(), choices, strict=True)):
        whole = choice.weight == 1.0
        now.done[number] = whole and SAFE * moved[slot] <= choice.reach and not short_of[slot]
        now.reach[number] = min(FAR, max(NEXT * float(moved[slot]), STAGES[-1]))
        if whole:
            mine = np.flatnonzero(between[slot])
            now.multipliers[number] = choice.places[mine], multipliers[slot, mine]
