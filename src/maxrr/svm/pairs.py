"""One-vs-one: a head for every pair of classes, fitted to the samples of these two alone.

Each is a problem of two classes, and solved and moved as one (`heads.py`), on a view of all samples: their features are
copied for a pair while somebody needs them all, and no longer. What is kept of a head has the numbers that samples have
among all.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain, combinations
from typing import TypeVar

import numpy as np

from maxrr.parallel import Engine, InProcess, Processes, Threads, cores, single_threaded_blas
from maxrr.progress import Progress
from maxrr.svm import heads
from maxrr.svm.arrays import AnyArray, Floats, Ints, is_numpy, marked
from maxrr.svm.heads import WIDE, Solution, Work
from maxrr.svm.problem import Head, Samples
from maxrr.svm.search.start import Guess

Class = TypeVar("Class")

WORTH_PROCESSES = 500  # heads from scratch: with fewer the start of processes costs more than they save


def pairs(classes: Sequence[Class]) -> list[tuple[Class, Class]]:
    """The classes of every head, in the order of the heads. A head is positive for the second of its two.

    >>> pairs(["cat", "dog", "owl"])
    [('cat', 'dog'), ('cat', 'owl'), ('dog', 'owl')]
    """
    return list(combinations(classes, 2))


def vote(scores: Floats, classes: int) -> Ints:
    """The number of the class with most votes, for each sample of scores (samples × pairs); of several the first.

    >>> vote(np.array([[-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]), 3)  # the second sample: one vote for each
    array([0, 0])
    """
    votes = np.zeros((classes, len(scores)), dtype=np.int64)
    for (one, other), score in zip(pairs(range(classes)), scores.T, strict=True):
        second = score > 0.0
        votes[other] += second
        votes[one] += ~second
    return np.asarray(votes.argmax(axis=0))


def solve(
    samples: Samples, progress: Progress | None = None, engine: Engine | None = None, guess: Guess | None = None
) -> Solution:
    """Every head from scratch, or from a guess."""
    return move(samples, Solution(samples, (), Work()), np.empty(0, dtype=np.int64), progress, engine, guess)


def move(
    samples: Samples, solution: Solution, changed: Ints, progress: Progress | None = None,
    engine: Engine | None = None, guess: Guess | None = None,
) -> Solution:  # fmt: skip
    """Solve for `samples`, which differ from those of `solution` at the positions `changed` only.

    New heads are solved on the engine if there is one: each is given the samples of its two classes, and where it is
    by the guess for all new ones.
    """
    needed = pairs(samples.present)
    ready = {(head.against, head.positive): head for head in solution.heads}
    classes_changed = set(samples.codes[changed].tolist())
    old = [pair for pair in needed if pair in ready and not classes_changed.isdisjoint(pair)]
    new = [pair for pair in needed if pair not in ready]
    has_changed = marked(changed, len(samples.codes))
    there = samples.held | has_changed
    members = {code: np.flatnonzero((samples.codes == code) & there) for code in set(chain(*old, *new))}
    before = len(solution.samples.codes)

    def places_of(pair: tuple[int, int]) -> Ints:
        return np.sort(np.concatenate([members[code] for code in pair]), kind="stable")  # merges the two

    def move_pair(pair: tuple[int, int]) -> tuple[Head, Work]:
        places = places_of(pair)
        then = samples.among(places[places < before])
        known = Solution(then, (numbered_within(ready[pair], places),), Work())
        return only_head(heads.move(samples.among(places), known, np.flatnonzero(has_changed[places])))

    def parcel_of(number: int) -> tuple[AnyArray, Samples, Guess | None]:
        places = places_of(new[number])
        return *samples.among(places).parcel(), guess and guess.of_pair(number, places)

    parcels = map(parcel_of, range(len(new)))
    costs = []
    with ExitStack() as ending:
        ending.enter_context(single_threaded_blas())  # the products are small
        moved = ending.enter_context(closing(engine_for(samples, 0).map(move_pair, old)))
        chosen = engine_for(samples, len(new)) if engine is None else engine
        solved = ending.enter_context(closing(chosen.map(solve_pair, parcels)))
        for pair, (head, cost) in zip(old + new, chain(moved, solved), strict=True):
            ready[pair] = numbered_among_all(head, pair[0], places_of(pair), changed[~samples.held[changed]])
            costs.append(cost)
            if progress is not None:
                progress("heads", len(costs), len(old) + len(new))
    return Solution(samples.counting(), tuple(ready[pair] for pair in needed), total(costs))


def solve_pair(parcel: tuple[AnyArray, Samples, Guess | None]) -> tuple[Head, Work]:
    """The head of two classes, from scratch or from a guess."""
    X, rest, guess = parcel
    samples = replace(rest, X=X)
    if guess is None:
        return only_head(heads.solve(samples))
    (head,) = heads.from_guess(samples, heads.heads_needed(samples), guess, InProcess())
    return head, heads.work_of(samples, 0)


def only_head(solution: Solution) -> tuple[Head, Work]:
    """The head of a solution for two classes, and what it cost."""
    (head,) = solution.heads
    return head, solution.work


def numbered_within(head: Head, places: Ints) -> Head:
    """The same head, with the numbers that its samples have among those of these places."""
    return with_numbers(head, lambda known: np.searchsorted(places, known))


def numbered_among_all(head: Head, against: int, places: Ints, gone: Ints) -> Head:
    """The reverse, when some samples have gone; none of them shapes the head."""
    head = with_numbers(head, lambda known: places[known])
    return replace(head, against=against, screen=head.screen and head.screen.without(gone))


def with_numbers(head: Head, number: Callable[[Ints], Ints]) -> Head:
    """The same head when its samples get other numbers."""
    return replace(
        head,
        on_margin=number(head.on_margin),
        inside=number(head.inside),
        known=head.known and replace(head.known, places=number(head.known.places)),
        screen=head.screen and replace(head.screen, places=number(head.screen.places)),
    )


def engine_for(samples: Samples, new: int) -> Engine:
    """Where heads are solved, `new` of them from scratch: tensors are left to their own library's threads, or a device.

    Small steps hold the interpreter: for many new heads, which are of small classes, processes.
    """
    if not is_numpy(samples.X) or samples.device is not None or cores() == 1:
        return InProcess()
    if new >= WORTH_PROCESSES:
        return Processes(ahead=2 * cores())
    return Threads() if samples.X.shape[1] >= WIDE else InProcess()


def total(costs: Iterable[Work]) -> Work:
    """What several heads cost together."""
    found = list(costs)
    return Work(
        sum(cost.cold_solves for cost in found),
        sum(cost.passes for cost in found),
        sum(cost.rows_touched for cost in found),
    )
