"""The two ways to tell many classes apart with heads that tell two apart."""

from typing import Literal, get_args

import numpy as np

from maxrr.progress import Progress
from maxrr.svm import heads, pairs
from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.checkpoint import Checkpoint
from maxrr.svm.heads import Solution
from maxrr.svm.problem import Samples
from maxrr.svm.start import NOWHERE, Near

Scheme = Literal["one-vs-rest", "one-vs-one"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


def solve(
    scheme: Scheme, samples: Samples, checkpoint: Checkpoint | None = None, progress: Progress | None = None,
    near: Near = NOWHERE,
) -> Solution:  # fmt: skip
    """Every head from scratch; one-vs-rest, those of a checkpoint from there, and others from where the caller says."""
    if scheme == "one-vs-rest":
        return heads.solve(samples, checkpoint, progress, near)
    return pairs.solve(samples, progress)


def move(scheme: Scheme, samples: Samples, solution: Solution, changed: Ints) -> Solution:
    """Solve for `samples`, which differ from those of `solution` at the positions `changed` only.

    Heads that these do not influence are not computed again.
    """
    if scheme == "one-vs-rest":
        return heads.unmoved(samples, solution, changed) or heads.move(samples, solution, changed)
    return pairs.move(samples, solution, changed)


def choose(scheme: Scheme, scores: Floats, classes: int) -> Ints:
    """The number of each sample's class, by its scores (samples × heads)."""
    if scores.shape[1] == 1:  # two classes share one head
        return (scores[:, 0] > 0.0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1)) if scheme == "one-vs-rest" else pairs.vote(scores, classes)
