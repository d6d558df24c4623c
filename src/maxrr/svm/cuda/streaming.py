"""Samples that stay in main memory while a device does the products: they are sent in blocks.

While the device works on one block the next is on its way, from a buffer that the device can fetch it from. There are
two of these, so that one is filled while the other is sent. A memory map is read a block at a time.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maxrr.parallel import Threads
from maxrr.svm.arrays import AnyArray, Device, Floats, Ints, blocks, is_narrow, like, to_numpy
from maxrr.svm.exact.fixed_point import MANTISSA, Fixed, integers

BLOCK_BYTES = 1 << 28  # of samples in float64 that are sent at a time: more of them are no faster


class Sign:
    """That what was asked of the device is done; a processor does it at once."""

    def __init__(self, place: torch.device) -> None:
        self.place = place
        self.event = torch.cuda.Event() if place.type == "cuda" else None  # type: ignore[no-untyped-call]

    def give(self) -> None:
        """After all that was asked for so far, on the stream that is current."""
        if self.event is not None:
            self.event.record(torch.cuda.current_stream(self.place))

    def before_more(self) -> None:
        """What is asked for from now on waits for it."""
        if self.event is not None:
            torch.cuda.current_stream(self.place).wait_event(self.event)

    def wait(self) -> None:
        """The caller waits for it."""
        if self.event is not None:
            self.event.synchronize()


class Lane:
    """A buffer in main memory, one on the device, and the way from one to the other."""

    def __init__(self, rows: int, X: NDArray[np.floating], place: torch.device) -> None:
        kind = torch.from_numpy(np.empty(0, X.dtype)).dtype
        self.count = 0
        self.here = torch.empty((rows, X.shape[1]), dtype=kind, pin_memory=place.type == "cuda")
        self.there = torch.empty((rows, X.shape[1]), dtype=kind, device=place)
        self.arrived, self.used = Sign(place), Sign(place)

    def send(self, X: AnyArray, stream: torch.cuda.Stream | None) -> None:
        """Set these rows on their way, as soon as the ones before them have been used."""
        self.arrived.wait()
        self.count = len(X)
        copy(X, self.here.numpy())
        if stream is None:
            self.there.copy_(self.here)
            return
        with torch.cuda.stream(stream):
            self.used.before_more()
            self.there[: self.count].copy_(self.here[: self.count], non_blocking=True)
            self.arrived.give()

    def received(self) -> Tensor:
        """The rows, for operations that are started from now on."""
        self.arrived.before_more()
        return self.there[: self.count]

    def release(self) -> None:
        """The operations that were started so far are the last ones on these rows."""
        self.used.give()


def copy(X: AnyArray, target: AnyArray) -> None:
    """Into a buffer, in threads: for one alone it takes longer than the way to the device."""

    def move(rows: slice) -> None:
        target[rows] = X[rows]

    deque(Threads().map(move, blocks(X)), maxlen=0)


def sent(X: NDArray[np.floating], step: int, device: Device) -> Iterator[tuple[slice, Tensor]]:
    """All rows on the device, so many at a time and as they are; each block is there until the next is asked for."""
    place = torch.device(device.name)
    stretches = [slice(first, min(first + step, len(X))) for first in range(0, len(X), step)]
    lanes = [Lane(min(step, len(X)), X, place) for _ in stretches[:2]]
    stream = None
    if place.type == "cuda":
        stream = torch.cuda.Stream(place)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(place))  # what had this memory before is done with it
    try:
        lanes[0].send(X[stretches[0]], stream)
        for number, rows in enumerate(stretches):
            if number + 1 < len(stretches):
                lanes[(number + 1) % 2].send(X[stretches[number + 1]], stream)
            lane = lanes[number % 2]
            yield rows, lane.received()
            lane.release()
    finally:
        if stream is not None:
            stream.synchronize()  # nothing is on its way to memory that somebody else gets


def rows_at_once(X: AnyArray, heads: int, device: Device) -> int:
    """How many rows are sent at a time: with their buffers and products they take half of what may be used."""
    width = X.shape[1]
    numbers = 2 * X.dtype.itemsize + (8 if is_narrow(X) else 0)
    fixed = 32 * heads * (width + 1)
    fitting = max(0, device.room() // 2 - fixed) // (numbers * width + 64 * heads + 32)
    return int(max(1, min(fitting, BLOCK_BYTES // (8 * width))))


def scores(X: NDArray[np.floating], weights: Floats, device: Device) -> Floats:
    """X @ weights in float64 (d × heads), one pass over the data."""
    found = np.empty((len(X), weights.shape[1]))
    there = torch.as_tensor(weights, device=device.name)
    for rows, block in sent(X, rows_at_once(X, weights.shape[1], device), device):
        found[rows] = to_numpy(block.double() @ there)
    return found


# Sums of samples without rounding where they are: `fixed_point.signed_sum` in other words.


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
