"""Ways to choose k records for the core."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab import scores
from lab.lab import Lab
from maxrr.core import FrequencyCore, MiddleCore, Ranking
from maxrr.core.shards import TIE_BREAKER, keyed_hashes

Ids = NDArray[Any]
Selector = Callable[[Lab, int], Ids]


def highest(lab: Lab, values: ArrayLike, k: int) -> Ids:
    """The k records with the highest values; ties are broken by a hash of the id."""
    return lab.training.ids[order(lab, values)[:k]]


def order(lab: Lab, values: ArrayLike) -> NDArray[np.intp]:
    """Rows from the highest value to the lowest."""
    hashes = np.array([int.from_bytes(value[:8], "big") for value in keyed_hashes(lab.training.ids, TIE_BREAKER)])
    return np.lexsort((hashes, -np.asarray(values, dtype=float)))


def frequency(lab: Lab, k: int) -> Ids:
    """The paper's: most often influential."""
    return lab.ranking.top(k)


def hashed(lab: Lab, k: int) -> Ids:
    """By the hash alone, as good as at random."""
    return highest(lab, np.zeros(len(lab.training)), k)


def mixed(lab: Lab, k: int) -> Ids:
    """Half by frequency, half by hash."""
    return half_hashed(lab, frequency(lab, k // 2), k)


def half_hashed(lab: Lab, chosen: Ids, k: int) -> Ids:
    """These, and as many of the others by hash as are missing."""
    others = hashed(lab, len(lab.training))
    return np.concatenate([chosen, others[~np.isin(others, chosen)][: k - len(chosen)]])


def balanced(lab: Lab, k: int) -> Ids:
    """Most often influential within each class, as many of each class as there are."""
    rows = order(lab, lab.ranking.frequency())
    labels = lab.training.labels[rows]
    place = np.zeros(len(rows), dtype=int)  # of a record within its class
    for label in np.unique(labels):
        place[labels == label] = np.arange(np.sum(labels == label))
    return lab.training.ids[rows[np.argsort(place, kind="stable")[:k]]]


def balanced_mixed(lab: Lab, k: int) -> Ids:
    """Half balanced, half by hash."""
    return half_hashed(lab, balanced(lab, k // 2), k)


def middle(lab: Lab, k: int) -> Ids:
    """Influential in about half of the runs: neither clear nor hopeless."""
    return middle_of(lab.ranking, k)


def middle_of_few(lab: Lab, k: int) -> Ids:
    """The same, from a ranking as short as the library's default."""
    return middle_of(some_runs(lab.ranking, slice(FrequencyCore.runs)), k)


def middle_of(ranking: Ranking, k: int) -> Ids:
    """The k records nearest to half of a ranking's runs, as `MiddleCore` has them."""
    return ranking.nearest(MiddleCore._share, k)


def some_runs(ranking: Ranking, runs: slice) -> Ranking:
    """The ranking of some of the runs alone."""
    return Ranking(ranking.ids, ranking.seeds[runs], ranking.votes[runs], ranking.worst_gap)


def el2n(lab: Lab, k: int) -> Ids:
    """The largest errors early in training."""
    return highest(lab, scores.el2n(lab), k)


def forgetting(lab: Lab, k: int) -> Ids:
    """The most forgetting events."""
    return highest(lab, scores.forgetting(lab), k)


FEW = f"middle of {FrequencyCore.runs} runs"
SELECTORS: Mapping[str, Selector] = {
    "frequency": frequency,
    "hash": hashed,
    "mixed": mixed,
    "balanced": balanced,
    "balanced mixed": balanced_mixed,
    "middle": middle,
    FEW: middle_of_few,
    "EL2N": el2n,
    "forgetting": forgetting,
}
