"""One-vs-rest heads on an engine: a worker solves those of some classes as they are solved here (`heads.py`).

All samples are shared once; what travels for a group are its classes, and its heads when they are solved.
"""

import math
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from maxrr.parallel import Engine
from maxrr.parallel.by_name import at_once
from maxrr.parallel.engine import completed
from maxrr.parallel.parcels import by_path, opened
from maxrr.progress import Progress
from maxrr.svm.arrays import Bools, Floats, Ints
from maxrr.svm.checkpoint import Checkpoint
from maxrr.svm.heads import (
    MOST_TOGETHER,
    Solution,
    Work,
    group_size,
    heads_needed,
    left_in,
    solve_group,
    threads_for,
    work_of,
)
from maxrr.svm.problem import Head, Penalties, Samples
from maxrr.svm.search.start import NOWHERE, Near

PER_WORKER = 2  # groups: more would even out who has more to do, but every group reads all samples by itself

Group = tuple[list[int], list[Head], dict[int, tuple[Floats, float]]]
"""Classes, those of their heads that were left from before, and where the others begin."""
Shared = tuple[Any, Floats, Ints, Ints, Bools, float, Floats, Floats]
"""Samples as arrays alone, which every engine hands over in its best way."""


def solve(
    samples: Samples, engine: Engine, names: Sequence[Any], checkpoint: Checkpoint | None = None,
    progress: Progress | None = None, near: Near = NOWHERE,
) -> Solution:  # fmt: skip
    """Every head from scratch, or from where the caller says, or from where an interrupted fit has left it.

    With a checkpoint heads are kept as they come, and a group that fails does not end the others.
    """
    needed = heads_needed(samples)
    groups = [group_of(samples, classes, checkpoint, near) for classes in spread(samples, needed, at_once(engine))]
    ready: dict[int, Head] = {}
    cost = Work()

    def classes_of(group: Group) -> str:
        return f"the heads of the classes {', '.join(repr(names[positive]) for positive in group[0])}"

    with closing(
        completed(engine, solve_there, groups, shared(samples), kept=checkpoint is not None, purpose=classes_of)
    ) as done:
        for _, (found, fresh, work) in done:
            if checkpoint is not None:
                for positive in fresh:
                    checkpoint.save(found[positive])
            ready |= found
            cost = Work(
                cost.cold_solves + work.cold_solves, cost.passes + work.passes, cost.rows_touched + work.rows_touched
            )
            if progress is not None:
                progress("heads", len(ready), len(needed))
    return Solution(samples.counting(), tuple(ready[positive] for positive in needed), cost)


def spread(samples: Samples, classes: list[int], workers: int) -> list[list[int]]:
    """Heads that are solved together: as many as here, or fewer, so that all workers have some."""
    size = min(group_size(samples), MOST_TOGETHER, math.ceil(len(classes) / (PER_WORKER * workers)))
    return [classes[first : first + size] for first in range(0, len(classes), size)]


def group_of(samples: Samples, classes: list[int], checkpoint: Checkpoint | None, near: Near) -> Group:
    """What a worker is told of a group."""
    left = [] if checkpoint is None else left_in(checkpoint, samples, classes)
    return classes, left, {positive: near[positive] for positive in classes if positive in near}


def shared(samples: Samples) -> Shared:
    """What all workers are given."""
    weighed = samples.penalties
    return (
        by_path(samples.X), samples.lengths, samples.exponents, samples.codes, samples.alive, weighed.C,
        weighed.weights, weighed.bounds,
    )  # fmt: skip


def solve_there(group: Group, given: Shared) -> tuple[dict[int, Head], list[int], Work]:
    """What a worker does for a group: its heads, which of them are from scratch, and what they cost."""
    (classes, left, near), (X, lengths, exponents, codes, held, C, weights, bounds) = group, given
    samples = Samples(opened(X), lengths, exponents, codes, held, Penalties(C, weights, bounds))
    found, fresh = solve_group(samples, classes, left, threads_for(samples), near)
    return found, fresh, work_of(samples, len(fresh))
