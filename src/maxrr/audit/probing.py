"""What an extractor's features give away of records. Heads can be fitted again without them, features stay.

Two numbers for each record, larger if the extractor knows it. *Relearned*: the margin of the record in heads that are
fitted with it: what an extractor has once learned to tell apart, linear heads tell apart more easily. *Membership*: a
linear probe learns to tell core records, which the extractor saw, from test records, which it did not; then it is asked
about the record.
"""

import numpy as np
from numpy.typing import NDArray

from maxrr.audit.checks import Floats

Labelled = tuple[Floats, NDArray[np.int64]]  # features (records × features), and labels
RIDGE = 1e-3  # of the mean variance


def margins(scores: Floats, labels: NDArray[np.int64], classes: NDArray[np.int64]) -> Floats:
    """By how much the score of a record's class is above the best of the others, shape (records,).

    >>> margins(np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]]), np.array([0, 1]), np.arange(3))
    array([ 0.5, -2. ])
    """
    wide = scores.reshape(len(scores), -1)
    if wide.shape[1] == 1:  # two classes have one head
        wide = np.hstack([-wide, wide])
    rows, columns = np.arange(len(labels)), np.searchsorted(classes, labels)
    others = wide.copy()
    others[rows, columns] = -np.inf
    return np.asarray(wide[rows, columns] - others.max(axis=1))


def membership(members: Labelled, others: Labelled, asked: Labelled) -> Floats:
    """What a linear probe says that learned to tell members from others, within each class; shape (records,)."""
    X = np.vstack([members[0], others[0]])
    labels = np.concatenate([members[1], others[1]])
    side = np.repeat([1.0, -1.0], [len(members[1]), len(others[1])])
    classes = np.unique(labels)
    means = np.stack([X[labels == label].mean(axis=0) for label in classes])
    X = X - means[np.searchsorted(classes, labels)]
    side = side - side.mean()
    scatter = X.T @ X
    ridge = RIDGE * np.trace(scatter) / len(scatter) + np.finfo(float).tiny
    weights = np.linalg.solve(scatter + ridge * np.eye(len(scatter)), X.T @ side)
    nearest = np.minimum(np.searchsorted(classes, asked[1]), len(classes) - 1)
    known = classes[nearest] == asked[1]  # a class without members has no mean of its own
    centre = np.where(known[:, None], means[nearest], means.mean(axis=0))
    return np.asarray((asked[0] - centre) @ weights)
