"""A start for all heads of some runs on a graphics processor: far closer to the solution than `start` goes.

Newton's method in lock-step (`cuda/newton.py`), three times: on a thinned sample, for a rough direction; on all samples
that may come to influence any head; and on these once more, chosen anew, until the partition is all but clear. What is
left for `working_set` is to settle it on working sets of a few hundred samples, work for a processor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from maxrr.svm.arrays import Floats, Ints, blocks, times, to_numpy
from maxrr.svm.cuda.newton import BLOCK, Heads, Rows, minimise
from maxrr.svm.problem import Head, Samples
from maxrr.svm.search.start import WIDEST, Guess, thin

ENOUGH = 8192  # samples for a rough direction
ROUGH = 1.0  # and how narrow a smoothing is worth solving for it
STAGES = (0.2, 2e-3)  # the same for the samples that count
RESUMED = 5e-2  # how wide the smoothing is that a head begins with which was solved before
FAR = 1.0  # a sample with a margin beyond 1 by more than this does not count
MOST = 2**26  # heads times samples that count: more are left to `working_set`


@dataclass(frozen=True)
class RunSamples:
    """All samples of several runs. `minimise` wants them centred, scaled to lengths of about 1, with a one added."""

    X: Tensor  # (runs, n, d), as they are
    y: Tensor  # (heads of a run, n): the same for all runs
    caps: Tensor  # (heads of a run, n), or (1, n) where they are the same: Cᵢ, or 0 for samples that take no part
    even: bool  # whether they are all the same
    decay: Tensor  # (runs, D)
    origin: Tensor  # (runs, d), what is subtracted from the features
    length: Tensor  # (runs, 1), what they are divided by

    def shortfall(self, v: Tensor) -> Tensor:
        """1 − margins of all samples: (runs, heads, n)."""
        w, b = self.unscaled(v)
        scores = torch.stack([times(X, of_run.mT).mT for X, of_run in zip(self.X, w, strict=True)])
        return 1.0 - self.y * (scores + b[:, :, None])

    def unscaled(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (runs, heads, d) and biases (runs, heads) for the features as they are."""
        w = v[:, :, :-1] / self.length[:, :, None]
        return w, v[:, :, -1] - (w @ self.origin[:, :, None])[:, :, 0]

    def scaled(self, w: Floats, b: Floats) -> Tensor:
        """The vectors v (1, heads, D) for weights and biases of the features as they are."""
        there, biases = (torch.as_tensor(part, device=self.X.device)[None] for part in (w, b))
        biases = biases + (there @ self.origin[:, :, None])[:, :, 0]
        return torch.cat([there * self.length[:, :, None], biases[:, :, None]], dim=2)

    def only(self, chosen: Tensor, cap: Tensor) -> Rows:
        """Some rows, filled up to whole blocks: those of each run, and each head's upper bounds.

        `chosen` is (runs, 1, m), `cap` (runs, heads, m).
        """
        heads, filling = cap.shape[1], -cap.shape[2] % BLOCK
        rows = torch.stack([X[places].double() for X, places in zip(self.X, chosen, strict=True)])
        rows.sub_(self.origin[:, None, None]).div_(self.length[:, None, None])
        X = pad(rows, (0, 1, 0, filling), value=1.0).flatten(0, 1)
        y = pad(self.y.expand(len(cap), -1, -1).gather(2, chosen.expand_as(cap)), (0, filling))
        caps = pad(cap, (0, filling)).flatten(0, 1)
        # What samples stand for alone makes little difference to how steep their smoothing should be.
        steepness = 0.5 * (caps.sum(1, keepdim=True) / (caps > 0.0).sum(1, keepdim=True) if self.even else caps)
        return Rows(
            X.view(len(X), -1, BLOCK, X.shape[2]), y.flatten(0, 1), caps, steepness,
            self.decay.repeat_interleave(heads, 0),
        )  # fmt: skip


def guess_run(samples: Samples, classes: list[int]) -> Guess:
    """Bring every head of a run near its solution."""
    (found,) = guess_runs(samples, [samples.X], [(None, positive) for positive in classes])
    return found


def guess_runs(samples: Samples, features: list[Tensor], classes: Sequence[tuple[int | None, int]]) -> list[Guess]:
    """Bring every head of several runs near its solution; each run has features (n, d) of the same samples.

    Heads are for the second of two classes, against the first or, if that is None, against all others.
    """
    run = prepare(samples, features, classes)
    known = sorted({one for pair in classes for one in pair if one is not None})
    v, width = find_direction(run, *thin(by_class(samples, known), ENOUGH)), 2.0 * ROUGH
    shortfall = run.shortfall(v)
    return approach(run, v, centres(shortfall, run.caps, v.new_full((), width)), shortfall, width, STAGES)


def resume_run(samples: Samples, heads: list[Head]) -> Guess:
    """Bring heads near their solution that were solved for almost these samples, from where they were."""
    run = prepare(samples, [samples.X], [(None, head.positive) for head in heads])
    v = run.scaled(np.stack([head.w for head in heads]), np.array([head.b for head in heads]))
    shortfall = run.shortfall(v)
    alpha = torch.where(shortfall > 0.0, run.caps, 0.0)
    on_margin = np.concatenate([head.on_margin for head in heads])
    owner = np.repeat(np.arange(len(heads)), [len(head.on_margin) for head in heads])
    places = torch.as_tensor(owner, device=v.device), torch.as_tensor(on_margin, device=v.device)
    alpha[0][places] = torch.as_tensor(np.concatenate([head.multipliers for head in heads]), device=v.device)
    (found,) = approach(run, v, torch.minimum(alpha, run.caps), shortfall, RESUMED, STAGES[-1:])
    return found


def approach(
    run: RunSamples, v: Tensor, alpha: Tensor, shortfall: Tensor, wide: float, stages: tuple[float, ...]
) -> list[Guess]:
    """Narrow the smoothing, from these weights and multipliers, on the samples that count."""
    runs, heads = alpha.shape[:2]
    width = v.new_full((runs * heads, 1), wide)
    # The other samples are taken to have no influence, which is looked at again each time.
    for narrowest in stages:
        nearness = shortfall.masked_fill(run.caps == 0.0, -torch.inf).amax(1, keepdim=True)
        most = int((nearness >= -FAR).sum(2).max())
        if not 0 < most * len(width) <= MOST:
            break
        most = min(most + -most % BLOCK, nearness.shape[2])  # blocks are filled with what may yet come to count
        near = nearness.topk(most, sorted=False).indices
        places = near.expand(-1, heads, -1)
        cap = run.caps.expand_as(alpha).gather(2, places)
        begun = pad(alpha.gather(2, places), (0, -most % BLOCK))
        found = minimise(run.only(near, cap), Heads(v.flatten(0, 1), begun.flatten(0, 1), width), narrowest)
        v, width = found.v.view_as(v), found.width
        alpha = torch.zeros_like(alpha).scatter_(2, places, found.alpha[:, :most].reshape(places.shape))
        shortfall = run.shortfall(v)
    # The few numbers that say where each run ended.
    w, b = run.unscaled(v)
    width = width.view_as(b)
    return [describe(*parts, run.caps) for parts in zip(w, b, width, alpha, strict=True)]


def describe(w: Tensor, b: Tensor, width: Tensor, alpha: Tensor, caps: Tensor) -> Guess:
    """Copy one run's guess to main memory."""
    between = torch.nonzero((alpha > 0.0) & (alpha < caps))
    return Guess(
        to_numpy(w), to_numpy(b), to_numpy(width),
        head=to_numpy(between[:, 0]), sample=to_numpy(between[:, 1]), multiplier=to_numpy(alpha[tuple(between.T)]),
    )  # fmt: skip


def prepare(samples: Samples, features: list[Tensor], classes: Sequence[tuple[int | None, int]]) -> RunSamples:
    """Centre and scale the samples, so that nothing that follows depends on the units of X."""
    origin, length = (torch.stack(parts) for parts in zip(*map(centre_and_length, features), strict=True))
    decay = pad((1.0 / length.square()).expand(-1, origin.shape[1]), (0, 1))
    device = origin.device
    codes = torch.as_tensor(samples.codes, device=device)
    positive = codes == torch.as_tensor([second for _, second in classes], device=device)[:, None]
    y = torch.where(positive, 1.0, -1.0).to(origin.dtype)
    caps = torch.as_tensor(np.where(samples.alive, samples.caps, 0.0), device=device)[None]
    against = [first for first, _ in classes if first is not None]
    if against:
        caps = caps * (positive | (codes == torch.as_tensor(against, device=device)[:, None]))
    X = features[0][None] if len(features) == 1 else torch.stack(features)
    return RunSamples(X, y, caps, samples.penalties.even, decay, origin, length)


def centre_and_length(X: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of samples (d), and how far they typically are from it (1)."""
    origin = torch.stack([X[part].double().sum(0) for part in blocks(X)]).sum(0) / len(X)
    size = torch.stack([(X[part].double() - origin).square().sum() for part in blocks(X)]).sum()
    length = (size / len(X)).sqrt()
    return origin, torch.where(length > 0.0, length, 1.0)[None]


def find_direction(run: RunSamples, chosen: Ints, weight: Floats) -> Tensor:
    """Weights from a thinned sample, each of which stands for so many: (runs, heads, D)."""
    places, stands_for = (torch.as_tensor(part, device=run.X.device) for part in (chosen, weight))
    runs, heads = len(run.X), len(run.y)
    cap = (run.caps[:, places] * stands_for).expand(runs, heads, -1)
    rows = run.only(places.expand(runs, 1, -1), cap)
    # As `first_width`, from the samples that were chosen.
    size = (run.X[:, None, places].double().square().sum(3) * cap).sum(2) / ((cap > 0.0) * stands_for).sum(2)
    width = (0.5 * size).clamp(min=WIDEST).view(-1, 1)
    v = width.new_zeros((len(width), run.X.shape[2] + 1))
    alpha = centres(torch.ones_like(rows.y), rows.cap, width)
    return minimise(rows, Heads(v, alpha, width), ROUGH).v.view(runs, heads, -1)


def by_class(samples: Samples, classes: list[int]) -> list[Ints]:
    """The samples of each class that has a head, and then all others."""
    alive = np.flatnonzero(samples.alive)
    codes = samples.codes[alive]
    return [*(alive[codes == code] for code in classes), alive[~np.isin(codes, classes)]]


def centres(shortfall: Tensor, cap: Tensor, width: Tensor) -> Tensor:
    """The centres of the smoothed hinge, as in `start.centres`: half way up where the margin is 1."""
    sigma = cap / (2.0 * width)
    return torch.minimum(torch.addcmul(torch.minimum(0.5 * cap, WIDEST * sigma), sigma, shortfall).clamp_(min=0.0), cap)
