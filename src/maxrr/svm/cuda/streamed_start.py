"""A start for heads on a device that has no room for all samples: Newton's method on some of them at a time.

In every round all samples are sent in blocks, and for each head those near its margin are chosen: all of them, or where
these are too many a part, each standing for several. What the others add to the gradient, and what the part gets wrong
about it, is a constant vector that the same pass over the data computes: so where a round begins the gradient is that
of all samples. From round to round the weights move less, fewer samples are so near that it matters, and in the end all
of these are there. As in `cuda/start.py`, nothing here decides anything.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maxrr.parallel import Threads
from maxrr.svm.arrays import Bools, Device, Floats, Ints, to_numpy
from maxrr.svm.cuda.newton import BLOCK, LARGEST_PRODUCT, WIDE, Heads, Rows, minimise
from maxrr.svm.cuda.start import FAR, MOST, STAGES, RunSamples, centres, find_direction, thin
from maxrr.svm.cuda.streaming import BLOCK_BYTES, rows_at_once, sent
from maxrr.svm.problem import Samples
from maxrr.svm.search.bands import NOTHING
from maxrr.svm.search.start import BAND, Guess
from maxrr.svm.search.working_set import REACH

FEW_ROWS, MANY_ROWS = (1 << 13, 48), (1 << 16, 96)  # samples that a head works on, or so many times d + 1: between
LEAST_ROWS = 24  # times d + 1: with room for less than this the device is of no use
MOST_ROUNDS = 12  # five are usual
NARROWEST = STAGES[-1] / 10.0  # smoothing
NEXT = 2.0  # times the typical change of margins: samples further from the margin do not matter in the next round,
SAFE = 4.0  # and samples further than so many did not in this one
WIDER = 2.0  # the reach, where heads would have gone further
MOST_TOGETHER = 16  # heads that share a thinned sample, in which each of them has more than its share
MEASURED = 4096  # samples from which centre and length are taken
COPIES = 32  # bytes for a number in the samples that heads work on where all are on the device: four times in float64
PER_HEAD = 400  # bytes for each of these samples in each head


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


@dataclass(frozen=True)
class Task:
    """Heads to start, and what with."""

    samples: Samples
    classes: list[int]  # of the heads
    device: Device
    limits: Limits
    scale: Scale

    def there(self, values: NDArray[Any]) -> Tensor:
        """An array on the device."""
        return torch.as_tensor(values, device=self.device.name)


@dataclass
class State:
    """Where the heads are, in main memory."""

    w: Floats  # (heads × d), for the features as they are
    b: Floats
    reach: Floats  # samples further from the margin are taken to stay on their side
    width: Floats  # of the smoothing that was solved
    done: Bools
    multipliers: dict[int, tuple[Ints, Floats]]  # by head: places of those strictly between their bounds, and these


def brought(samples: Samples, heads: int) -> Samples:
    """The samples on the device that was asked for, if they fit there with all that so many heads need beside them."""
    device, X = samples.device, samples.X
    if device is None:
        return samples
    count = len(samples.codes)
    size = count * X.shape[1] * X.dtype.itemsize
    working = COPIES * count * X.shape[1] + PER_HEAD * min(heads * count, MOST) + 16 * LARGEST_PRODUCT
    if size + working > device.room():
        return samples
    there = torch.empty(X.shape, dtype=torch.from_numpy(np.empty(0, X.dtype)).dtype, device=device.name)
    for rows, block in sent(X, max(1, BLOCK_BYTES // (8 * X.shape[1])), device):
        there[rows] = block
    return replace(samples, X=there, device=None)


def guess_run(samples: Samples, classes: list[int]) -> Guess | None:
    """Every head near its solution; None if the device has no room for that."""
    assert samples.device is not None
    width, heads = samples.X.shape[1], len(classes)
    limits = Limits.of(samples.device.room(), width, heads)
    if limits.rows < LEAST_ROWS * (width + 1) or limits.together < 1:
        return None
    task = Task(samples, classes, samples.device, limits, scale_of(samples, samples.device))
    # 1. A rough direction, from a thinned sample.
    step = min(limits.together, MOST_TOGETHER)
    directions = [direction(task, classes[first : first + step]) for first in range(0, heads, step)]
    w, b = (np.concatenate(found) for found in zip(*directions, strict=True))
    state = State(w, b, np.full(heads, FAR), np.full(heads, FAR), np.zeros(heads, dtype=bool), {})
    # 2. From there on the samples that count.
    for _ in range(MOST_ROUNDS):
        if state.done.all():
            break
        go_on(task, state, np.flatnonzero(~state.done))
    # 3. The few numbers that say where each head ended.
    between = [state.multipliers.get(number, (NOTHING, np.empty(0))) for number in range(heads)]
    return Guess(
        state.w, state.b, state.width, head=np.repeat(np.arange(heads), [len(places) for places, _ in between]),
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


def direction(task: Task, classes: list[int]) -> tuple[Floats, Floats]:
    """Weights and biases from a thinned sample."""
    samples, scale, limits = task.samples, task.scale, task.limits
    chosen, weight = thin(
        samples, classes, limits.rows // 2
    )  # with what small classes add, about as many as a head has
    y = task.there(np.where(samples.codes[chosen] == np.array(classes)[:, None], 1.0, -1.0))
    run = RunSamples(
        task.there(samples.on_device(chosen))[None], y, task.there(samples.caps[chosen])[None],
        samples.penalties.even, scale.decay, scale.origin[None],
        torch.full_like(scale.origin[:1, None], scale.length), limits.product,
    )  # fmt: skip
    v = find_direction(run, np.arange(len(chosen)), weight)
    w, b = scale.unscaled(v[0])
    return to_numpy(w), to_numpy(b)


def go_on(task: Task, state: State, numbers: Ints) -> None:
    """One round for the heads of these numbers: choose samples, and move the heads to where these lead."""
    samples, together = task.samples, task.limits.together
    seen = survey(task, state, numbers)
    band = BAND * (samples.X.shape[1] + 1)

    def chosen(slot: int) -> Choice:
        return choose(seen.shortfall[slot], samples.alive, state.reach[numbers[slot]], task.limits.rows, band)

    choices = list(Threads().map(chosen, range(len(numbers))))
    for first in range(0, len(numbers), together):
        slots = range(first, min(first + together, len(numbers)))
        move(task, state, numbers[slots], seen.only(slots), [choices[slot] for slot in slots])


@dataclass(frozen=True)
class Survey:
    """What all samples say about some heads."""

    shortfall: Floats  # (heads × n): 1 − margins
    total: Floats  # (heads × d): Σ aᵢyᵢxᵢ for multipliers by a smoothing as wide as the reach,
    tilt: Floats  # and Σ aᵢyᵢ. Those of samples out of reach are at their bounds

    def only(self, slots: range) -> "Survey":
        """Of some of the heads."""
        part = slice(slots.start, slots.stop)
        return Survey(self.shortfall[part], self.total[part], self.tilt[part])


def survey(task: Task, state: State, numbers: Ints) -> Survey:
    """One pass over the data."""
    samples, heads = task.samples, len(numbers)
    samples.counter.passes += 1
    X, caps = samples.everything(), np.where(samples.alive, samples.caps, 0.0)
    classes = np.array([task.classes[number] for number in numbers])
    weights, biases, widths, wanted = (
        task.there(part) for part in (state.w[numbers].T.copy(), state.b[numbers], state.reach[numbers], classes)
    )
    shortfall, total, tilt = np.empty((heads, len(X))), torch.zeros_like(weights.T), torch.zeros_like(biases)
    for rows, block in sent(X, rows_at_once(X, heads, task.device), task.device):
        codes, cap, wide = task.there(samples.codes[rows]), task.there(caps[rows]), block.double()
        y = torch.where(codes[:, None] == wanted, 1.0, -1.0).to(wide.dtype)
        short = 1.0 - y * (wide @ weights + biases)
        signed = centres(short, cap[:, None], widths) * y
        total += signed.T @ wide  # `addmm_` asks cuBLAS for what it does not have for few columns
        tilt += signed.sum(0)
        shortfall[:, rows] = to_numpy(short).T
    return Survey(shortfall, to_numpy(total), to_numpy(tilt))


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


def rows_of(task: Task, numbers: Ints, seen: Survey, choices: list[Choice]) -> tuple[Rows, Tensor]:
    """The samples of some heads, and 1 − their margins."""
    samples, heads, dimension = task.samples, len(numbers), task.samples.X.shape[1] + 1
    count = max(len(choice.places) for choice in choices)
    count += -count % BLOCK
    X = torch.zeros((heads, count, dimension), dtype=torch.float64, device=task.device.name)
    y, cap, shortfall = (np.zeros((heads, count)) for _ in range(3))
    for slot, (number, choice) in enumerate(zip(numbers, choices, strict=True)):
        places, here = choice.places, X[slot, : len(choice.places)]
        here[:, :-1] = task.there(samples.on_device(places))
        here[:, :-1] -= task.scale.origin
        here[:, :-1] /= task.scale.length
        here[:, -1] = 1.0
        y[slot, : len(places)] = np.where(samples.codes[places] == task.classes[number], 1.0, -1.0)
        cap[slot, : len(places)] = choice.weight * samples.caps[places]
        shortfall[slot, : len(places)] = seen.shortfall[slot, places]
    bounds = task.there(cap)
    return Rows(
        X.view(heads, -1, BLOCK, dimension), task.there(y), bounds, 0.5 * bounds, task.scale.decay.expand(heads, -1),
        largest=task.limits.product,
    ), task.there(shortfall)  # fmt: skip


def move(task: Task, state: State, numbers: Ints, seen: Survey, choices: list[Choice]) -> None:
    """Newton's method for some heads at once, each on its own samples."""
    # 1. The samples, and what the others add.
    rows, shortfall = rows_of(task, numbers, seen, choices)
    reach = task.there(state.reach[numbers])[:, None]
    alpha = centres(shortfall, rows.cap, reach)
    everyone = task.scale.combined(task.there(seen.total), task.there(seen.tilt))
    rows = replace(rows, pull=everyone - rows.combined(alpha * rows.y))
    # 2. Newton.
    v = task.scale.scaled(task.there(state.w[numbers]), task.there(state.b[numbers]))
    narrowest = task.there(np.array([[choice.narrowest] for choice in choices]))
    found = minimise(rows, Heads(v, alpha, reach), narrowest)
    there = rows.cap > 0.0
    typical = ((rows.scores(found.v - v) * there).square().sum(1, keepdim=True) / there.sum(1, keepdim=True)).sqrt()
    # 3. Where this leads, as far as it is to be believed: samples out of reach may come to matter before that.
    step = (reach / typical).nan_to_num(1.0).clamp(max=1.0)
    state.w[numbers], state.b[numbers] = (
        to_numpy(part) for part in task.scale.unscaled(v + step * (found.v - v).nan_to_num())
    )
    state.width[numbers] = to_numpy(found.width)[:, 0]
    moved, arrived = to_numpy((step * typical).nan_to_num())[:, 0], to_numpy(step == 1.0)[:, 0]
    multipliers, between = to_numpy(found.alpha), to_numpy((found.alpha > 0.0) & (found.alpha < rows.cap))
    for slot, (number, choice) in enumerate(zip(numbers.tolist(), choices, strict=True)):
        whole = choice.weight == 1.0
        state.done[number] = whole and arrived[slot] and SAFE * moved[slot] <= choice.reach
        if arrived[slot]:
            state.reach[number] = min(FAR, max(NEXT * float(moved[slot]), STAGES[-1]))
        else:
            state.reach[number] *= WIDER
        if whole:
            mine = np.flatnonzero(between[slot])
            state.multipliers[number] = choice.places[mine], multipliers[slot, mine]
