"""What several networks say together, as in SISA: each has a vote, or their probabilities are averaged."""

import numpy as np
from numpy.typing import NDArray

from lab.heads import Floats, Ints


def softmax(scores: Floats) -> Floats:
    """Probabilities of the classes along the last axis."""
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(-1, keepdims=True))


def by_mean(scores: Floats) -> Ints:
    """The class that is most probable in the mean over the networks; scores are (networks, records, classes)."""
    return np.asarray(softmax(scores).mean(0).argmax(-1))


def by_majority(scores: Floats) -> Ints:
    """The class that most networks choose. Among classes with equally many votes the mean probabilities decide."""
    chosen: NDArray[np.int64] = scores.argmax(-1)
    votes = (chosen[..., None] == np.arange(scores.shape[-1])).sum(0)
    tied = votes == votes.max(-1, keepdims=True)
    return np.asarray(np.where(tied, softmax(scores).mean(0), -1.0).argmax(-1))
