"""RMIA: has a model gained more confidence in a record than it has in most others, beside reference models?

A record's ratio is the model's probability of the true label over the one to be expected from a model of which it is
not known whether it saw the record. The score of a record x is the share of a population of other records z with
ratio(x) ≥ γ ratio(z).

References
----------
S. Zarifzadeh, P. Liu, R. Shokri, "Low-cost high-power membership inference attacks", 2024.
"""

import numpy as np

from maxrr.audit.checks import Floats
from maxrr.audit.signals import FLOOR

GAMMA = 2.0  # by how much a record must beat another


def rmia(unseen: Floats, seen: Floats, population_unseen: Floats, population_seen: Floats) -> Floats:
    """Scores of every model that did not see the records, by all other models: shape of `unseen`.

    Parameters
    ----------
    unseen, seen
        Probabilities of the true labels by models that did not see the records, and by models that did, shapes
        (models, records).
    population_unseen, population_seen
        The same of a population that none of them saw.

    >>> rmia(*map(np.array, ([[0.9], [0.1], [0.1]], [[0.9]], [[0.5, 0.7]] * 3, [[0.5, 0.7]]))).tolist()
    [[0.0], [0.0], [0.0]]
    """
    others = (np.sum(unseen, axis=0) - unseen) / (len(unseen) - 1)
    expected = (others + seen.mean(axis=0)) / 2.0
    of_all = np.sum(population_unseen, axis=0) + np.sum(population_seen, axis=0)
    usual = (of_all - population_unseen) / (len(population_unseen) + len(population_seen) - 1)
    ratios, among = above(unseen, expected), np.sort(GAMMA * above(population_unseen, usual), axis=1)
    found = [np.searchsorted(of_model, mine, side="right") for of_model, mine in zip(among, ratios, strict=True)]
    return np.asarray(np.stack(found) / among.shape[1])


def above(probabilities: Floats, expected: Floats) -> Floats:
    """Ratios of what is to what was to be expected; 0 of 0 is as expected."""
    return np.asarray(np.maximum(probabilities, FLOOR) / np.maximum(expected, FLOOR))
