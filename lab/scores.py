"""How hard a record is to learn, by two scores of the literature on data pruning.

EL2N (Paul, Ganguli and Dziugaite, "Deep learning on a data diet", 2021): the length of the error vector, softmax minus
truth, early in training, a mean over several networks. Forgetting events (Toneva et al., "An empirical study of example
forgetting", 2019): how often a record goes from right to wrong while a network is trained.

A network trained for few epochs is what a longer training was after these: weights and shuffles follow from the seed.
So networks at several ages are trainings of several lengths; where many networks step together, one training is looked
at several times.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from lab.heads import Bools
from lab.lab import Lab
from lab.stacking import find_right
from maxrr.nets import embed

Floats = NDArray[np.float64]


def outputs(lab: Lab, seeds: Sequence[int], epochs: int) -> Floats:
    """What networks of this age say of every record: (networks, records, classes)."""
    recipe = replace(lab.profile.recipe, epochs=epochs)
    networks = lab.train(seeds, lab.training, recipe=recipe)
    return np.stack([embed(network, lab.training, device=lab.device) for network in networks])


def look(lab: Lab, seeds: Sequence[int]) -> list[Bools]:
    """Which records networks get right at each look: (networks, records)."""
    looks = lab.profile.looks
    if lab.device.type == "cuda":
        return find_right(lab, seeds, looks)
    return [outputs(lab, seeds, epochs).argmax(2) == lab.training.labels for epochs in looks]


def el2n(lab: Lab) -> Floats:
    """The mean length of the error vector after the first look."""

    def measure() -> Floats:
        found = softmax(outputs(lab, lab.seeds(lab.profile.trials), lab.profile.looks[0]), axis=2)
        truth = np.eye(found.shape[2])[lab.training.labels]
        return np.asarray(np.sqrt(((found - truth) ** 2).sum(2)).mean(0))

    return lab.keep("el2n", measure)


def forgetting(lab: Lab) -> Floats:
    """Mean number of forgetting events between the looks; a record that is never right counts as always forgotten."""

    def measure() -> Floats:
        seeds = lab.seeds(max(2, lab.profile.trials // 2))
        right = look(lab, seeds)
        events = sum((before & ~after).astype(float) for before, after in pairwise(right))
        never = ~np.any(right, axis=0)
        return np.asarray(np.where(never, float(len(right)), events).mean(0))

    return lab.keep("forgetting", measure)
