"""One-vs-one: a head for every pair of classes, fitted to the samples of these two alone.

Each is a problem of two classes, and solved and moved as one (`heads.py`), on a view of all samples: their features are
copied for a pair while somebody needs them all, and no longer. What is kept of a head has the numbers that samples have
among all.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import TypeVar

import numpy as np

from maxrr.parallel import Engine, InProcess, Threads, cores
from maxrr.svm import heads
from maxrr.svm.arrays import Floats, Ints, is_numpy, marked
from maxrr.svm.heads import Solution, Work, classes_present
from maxrr.svm.problem import Head, Samples
from maxrr.svm.working_set import for_each_head

Class = TypeVar("Class")


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


def solve(samples: Samples) -> Solution:
    """Every head from scratch."""
    return move(samples, Solution(samples, (), Work()), np.empty(0, dtype=np.int64))


def move(samples: Samples, solution: Solution, changed: Ints) -> Solution:
    """Solve for `samples`, which differ from those of `solution` at the positions `changed` only."""
    needed = pairs(classes_present(samples.codes, samples.alive))
    ready = {(head.against, head.positive): head for head in solution.heads}
    classes_changed = set(samples.codes[changed].tolist())
    work = [pair for pair in needed if pair not in ready or not classes_changed.isdisjoint(pair)]
    has_changed = marked(changed, len(samples.codes))
    there = samples.held | has_changed
    members = {code: np.flatnonzero((samples.codes == code) & there) for code in set(chain(*work))}
    before = len(solution.samples.codes)

    def solve_pair(pair: tuple[int, int]) -> tuple[Head, Work]:
        places = np.sort(np.concatenate([members[code] for code in pair]))
        part = samples.among(places)
        if pair in ready:
            then = samples.among(places[places < before])
            head = with_places(ready[pair], lambda known: np.searchsorted(places, known))
            found = heads.move(part, Solution(then, (head,), Work()), np.flatnonzero(has_changed[places]))
        else:
            found = heads.solve(part)
        (head,) = found.heads
        gone = np.flatnonzero(~part.held)
        head = replace(head, against=pair[0], screen=head.screen and head.screen.without(gone))
        return with_places(head, lambda found: places[found]), found.work

    solved = for_each_head(engine_for(samples), solve_pair, work)
    ready.update(zip(work, (head for head, _ in solved), strict=True))
    return Solution(samples.counting(), tuple(ready[pair] for pair in needed), total(cost for _, cost in solved))


def with_places(head: Head, number: Callable[[Ints], Ints]) -> Head:
    """The same head when its samples get other numbers."""
    return replace(
        head,
        on_margin=number(head.on_margin),
        inside=number(head.inside),
        known=head.known and replace(head.known, places=number(head.known.places)),
        screen=head.screen and replace(head.screen, places=number(head.screen.places)),
    )


def engine_for(samples: Samples) -> Engine:
    """Where heads are solved: tensors are left to their own library's threads."""
    return Threads() if is_numpy(samples.X) and cores() > 1 else InProcess()


def total(costs: Iterable[Work]) -> Work:
    """What several heads cost together."""
    found = list(costs)
    return Work(
        sum(cost.cold_solves for cost in found),
        sum(cost.passes for cost in found),
        sum(cost.rows_touched for cost in found),
    )
