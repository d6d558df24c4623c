"""The two ways to tell many classes apart with heads that tell two apart."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from maxrr.parallel import Engine
from maxrr.progress import Progress
from maxrr.svm import heads, heads_elsewhere, pairs
from maxrr.svm.arrays import Floats, Ints, is_numpy
from maxrr.svm.checkpoint import Checkpoint
from maxrr.svm.heads import Solution
from maxrr.svm.problem import Samples
from maxrr.svm.search.start import NOWHERE, Near

Scheme = Literal["one-vs-rest", "one-vs-one"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)


def check(scheme: Scheme) -> None:
    """Refuse what is not a scheme."""
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be {' or '.join(map(repr, SCHEMES))}, not {scheme!r}")


def solve(
    scheme: Scheme, samples: Samples, checkpoint: Checkpoint | None = None, progress: Progress | None = None,
    near: Near = NOWHERE, engine: Engine | None = None, names: Sequence[Any] = (),
) -> Solution:  # fmt: skip
    """Every head from scratch; one-vs-rest, those of a checkpoint from there, and others from where the caller says.

    An engine is for samples in main memory that no device works on: others are solved here. `names` are those of the
    classes, for errors of an engine.
    """
    if engine is not None and not (is_numpy(samples.X) and samples.device is None):
        engine = None
    if scheme == "one-vs-one":
        return pairs.solve(samples, progress, engine)
    if engine is None or len(heads.heads_needed(samples)) == 1:
        return heads.solve(samples, checkpoint, progress, near)
    return heads_elsewhere.solve(samples, engine, names, checkpoint, progress, near)


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
