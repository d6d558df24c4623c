"""One head at a time, on the samples near its margin alone; the others are proved to stay where they are.

Take the samples near the margin as a problem of their own, in which those far inside the margin enter by their sum,
with losses that go on as straight lines, and those far outside not at all. No loss of the whole problem is below that
of this one, and where the far samples are strictly on their sides the two are equal. So a solution of the small problem
at which they are is the solution of the whole one, with the same b nearest to zero and the same certificate.

That they are is seen without looking at them where the weights have moved less than would bring them to the margin
(`problem.Screen`), and by one pass over the data otherwise. Samples that crossed join the ones near the margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxrr.parallel.engine import Engine, InProcess, Threads
from maxrr.svm.arrays import NO_EXPONENT, Floats, Ints, marked
from maxrr.svm.exact.deciding import TOUCHING, distances, kept, screen_of, sums, with_longest
from maxrr.svm.exact.fallback import UnsettledError
from maxrr.svm.problem import Change, Head, Samples, Screen, Trial, moves, size
from maxrr.svm.search.working_set import REACH, SMALLEST, WIDTH, for_each_head, is_nearly_full, refine

MOST_ROUNDS = 6
MOST_CROSSED = 4  # times d + 1: if more samples are on another side than they were taken to be, the start was poor
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Band:
    """The samples near a head's margin, where the head is, and what is known about the others."""

    places: Ints  # of these among all samples, sorted
    far: Ints  # those inside the margin that are not among these, sorted
    samples: Samples
    trial: Trial
    w: Floats  # where the trial begins
    b: float
    screen: Screen | None  # of all samples there, if that is known

    def parcel(self) -> tuple[Floats, Samples, Trial]:
        """What a worker process needs of it, the features by themselves: they are sent in another way."""
        return self.samples.X, replace(self.samples, X=np.empty((0, len(self.w)))), self.trial


@dataclass(frozen=True, eq=False)
class Lifted:
    """A head that was solved on its band, as a candidate among all samples."""

    head: Head
    crossed: Ints


def settle(samples: Samples, bands: Sequence[Band | Head | None], engine: Engine) -> list[Head | None]:
    """Solve every head on its band. A head without a band, or that its band does not settle, is None."""
    found = [band if isinstance(band, Head) else None for band in bands]
    active = {number: band for number, band in enumerate(bands) if isinstance(band, Band)}
    for _ in range(MOST_ROUNDS if active else 0):
        heads = for_each_head(engine, solve_band, [band.parcel() for band in active.values()])
        solved = {number: lift(active[number], head) for number, head in zip(active, heads, strict=True) if head}
        lifted = {number: screened(samples, active[number], head) for number, head in solved.items()}
        unseen = [number for number, result in lifted.items() if result is None]
        if unseen:
            scores = samples.scores(np.stack([solved[number].w for number in unseen], axis=1))
            looks = Threads().map(
                lambda column: looked_at(samples, active[unseen[column]], solved[unseen[column]], scores[:, column]),  # noqa: B023
                range(len(unseen)),
            )
            lifted.update(zip(unseen, looks, strict=True))
        active = {}
        for number, result in lifted.items():
            assert result is not None
            if not len(result.crossed):
                found[number] = result.head
            elif len(result.crossed) <= MOST_CROSSED * (samples.X.shape[1] + 1):
                active[number] = band_around(samples, result.head, moved=result.crossed)
        if not active:
            break
    return found


def band_around(samples: Samples, head: Head, change: Change | None = None, moved: Ints = NOTHING) -> Band:
    """The band of a head that was solved for almost these samples, or is not quite solved yet.

    The head has a screen. Samples that arrived, or crossed the margin, are part of the band wherever they are.
    """
    assert head.screen is not None
    if change is not None:
        moved = np.concatenate([moved, change.arriving])
    known = head.known or sums(samples, samples.signs(head.positive), head.inside)
    leaving = NOTHING if change is None else change.leaving
    count = len(samples.codes)
    nearest = head.screen.nearest(SMALLEST * (len(head.on_margin) + len(moved) + len(leaving) + 1))
    inside, in_band = marked(head.inside, count), marked(nearest, count)
    unsummed = inside & ~marked(known.places, count)
    for others in (head.on_margin, moved, leaving, unsummed):
        in_band[others] = True
    places = np.flatnonzero(in_band)
    far = known.places[~in_band[known.places]]
    alpha = np.where(inside[places], samples.caps_at(places), 0.0)
    alpha[np.searchsorted(places, head.on_margin)] = head.multipliers
    here = np.searchsorted(places, known.places[in_band[known.places]])
    exponent = int(np.max(samples.exponents[far], initial=NO_EXPONENT))
    part = samples.only(places, replace(known, places=here), exponent)
    trial = trial_at(part, part.signs(head.positive), head.positive, head.w, head.b, alpha, WIDTH)
    trial.near = not len(moved) or is_nearly_full(len(head.on_margin), head.w)
    trial.moved = np.searchsorted(places, moved)
    return Band(places, far, part, trial, head.w, head.b, head.screen)


def trial_at(part: Samples, y: Floats, positive: int, w: Floats, b: float, alpha: Floats, width: float) -> Trial:
    """A trial on a part of the samples, with these multipliers."""
    assert part.base is not None
    signed = np.where(marked(part.base.places, len(y)), part.caps * y, 0.0)  # no copy of their rows
    margins = np.where(part.alive, y * (part.X @ w + b), np.inf)
    C = part.penalties.C
    return Trial(
        positive, y, w, b, margins, alpha, width, REACH * width, held=np.zeros(len(y)),
        pull=C * part.base.total.rounded() - signed @ part.X,
        tilt=C * float(part.base.tilt.rounded()[0]) - float(np.sum(signed)),
    )  # fmt: skip


def solve_band(parcel: tuple[Floats, Samples, Trial]) -> Head | None:
    """The head, if the samples that are not in the band stay where they are."""
    X, rest, trial = parcel
    if not rest.alive.any():
        return None
    try:
        (head,) = refine(replace(rest, X=X), [trial], InProcess())
    except UnsettledError:
        return None
    return head


def lift(band: Band, head: Head) -> Head:
    """A head solved on its band, with the numbers that samples have among all."""
    assert head.known is not None
    inside, summed = (
        np.sort(np.concatenate([band.far, band.places[parts]]), kind="stable")  # which merges what is sorted
        for parts in (head.inside, head.known.places)
    )
    known = replace(head.known, places=summed)
    certificate = replace(head.certificate, inside=len(inside))
    return replace(head, on_margin=band.places[head.on_margin], inside=inside, known=known, certificate=certificate)


def screened(samples: Samples, band: Band, head: Head) -> Lifted | None:
    """The head, given that its screen clears the samples that are far from the margin; the near ones are looked at.

    None if it does not clear them.
    """
    if band.screen is None or head.screen is None:
        return None
    near = marked(band.screen.places, len(samples.codes))
    near[band.places] = False
    others = np.flatnonzero(near & samples.alive)
    y = np.where(samples.codes[others] == head.positive, 1.0, -1.0)
    margins = y * (samples.scores_at(others, head.w) + head.b)
    distance = distances(samples.lengths[others], head.w, head.b, margins)
    known = Screen(others, distance, np.inf, 1.0).with_known(band.places[head.screen.places], head.screen.distance)
    screen = band.screen.after(size(head.w - band.w), abs(head.b - band.b), known.places, known.distance)
    if screen.rest_in_doubt(*slack_of(head)):
        return None
    screen = screen.of_nearest(2 * kept(len(head.w)), samples.lengths)
    return completed(samples, head, others, margins, distance, screen)


def looked_at(samples: Samples, band: Band, head: Head, scores: Floats) -> Lifted:
    """Complete a head by the scores of all samples."""
    margins = np.where(samples.alive, samples.signs(head.positive) * (scores + head.b), np.inf)
    screen = screen_of(samples, head.w, head.b, margins)
    others = np.flatnonzero(samples.alive & ~marked(band.places, len(margins)))  # the band was looked at more closely
    distance = distances(samples.lengths[others], head.w, head.b, margins[others])
    return completed(samples, head, others, margins[others], distance, screen)


def completed(samples: Samples, head: Head, others: Ints, margins: Floats, distance: Floats, screen: Screen) -> Lifted:
    """The head, and which of the other samples are not proved to be on the side that they were taken to be on."""
    inside = marked(head.inside, len(samples.codes))[others]
    crossed = ((margins < 1.0) != inside) | ~(distance > moves(samples.lengths[others], *slack_of(head)))
    certificate = with_longest(head.certificate, samples)
    return Lifted(replace(head, certificate=certificate, screen=screen), others[crossed])


def slack_of(head: Head) -> tuple[float, float]:
    """How far weights and bias of the exact solution can be from these."""
    return head.certificate.weight_error, head.certificate.bias_error + 2.0 * TOUCHING
