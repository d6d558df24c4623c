"""What forgetting random records costs where networks are trained on parts of the records: expectations, exactly.

A *stage* is a stretch of training that goes through some records for some epochs. It is repeated if a forgotten record
is among these, and then without them. A network on a shard is one stage. SISA (Bourtoule et al., 2021) cuts a shard
into R slices: stage i goes through the first i slices, beginning with the weights that stage i − 1 left. Whoever
forgets a record of slice j goes back to the weights before stage j. As in that paper all stages last equally long, and
as long in all as training without slices goes through records: 2 / (R + 1) of its epochs each.

Requested are r different records, drawn at random from a population of N. None of n given records is among them with
probability C(N − n, r) / C(N, r), so there is nothing to simulate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Stage:
    """A stretch of training: so many records, each gone through so often."""

    records: int
    epochs: float


def in_shards(sizes: Sequence[int], epochs: float) -> list[Stage]:
    """A network on each shard."""
    return [Stage(size, epochs) for size in sizes]


def in_slices(sizes: Sequence[int], epochs: float, slices: int) -> list[Stage]:
    """The same with so many slices a shard, as equal as they can be.

    >>> in_slices([30], 18, 2)
    [Stage(records=15, epochs=12.0), Stage(records=30, epochs=12.0)]
    """
    each = 2.0 * epochs / (slices + 1)
    return [Stage(size * number // slices, each) for size in sizes for number in range(1, slices + 1)]


@cache
def spared(records: int, population: int, requested: int) -> float:
    """The probability that a request contains none of these records.

    >>> spared(1, 4, 1), spared(2, 4, 3)
    (0.75, 0.0)
    """
    if requested > population - records:
        return 0.0
    drawn = np.arange(requested)
    return math.exp(float(np.sum(np.log1p(-records / (population - drawn)))))


def expected_touched(sizes: Sequence[int], population: int, requested: int) -> float:
    """How many of the shards a request touches."""
    return sum(1.0 - spared(size, population, requested) for size in sizes)


def expected_work(stages: Sequence[Stage], population: int, requested: int) -> float:
    """Records × epochs that are trained again. A stage without requested records is not repeated.

    >>> expected_work([Stage(2, 10), Stage(2, 10)], 4, 1)
    10.0
    """
    share = requested / population  # of a stage's records, which training again leaves out
    return sum(
        stage.epochs * stage.records * (1.0 - spared(stage.records, population, requested) - share) for stage in stages
    )


@dataclass(frozen=True)
class Speeds:
    """Seconds on one machine, for networks of one width in so many shards.

    Attributes
    ----------
    network
        That a training takes before its first step and after its last.
    step
        To go through one record once.
    side_by_side
        How many networks the machine trains at the same time without slowing down.
    embed
        To embed all records with one extractor.
    fit
        To fit the heads anew.
    move
        To move the heads when so many records outside the core go, by their number; what is not there is fitted anew.
    """

    network: float
    step: float
    side_by_side: int
    embed: float
    fit: float
    move: dict[int, float]

    def training(self, stages: Sequence[Stage], sizes: Sequence[int], population: int, requested: int) -> float:
        """Expected seconds to train again what a request touches."""
        touched = expected_touched(sizes, population, requested)
        some = 1.0 - spared(sum(sizes), population, requested)
        at_once = min(float(self.side_by_side), touched / some) if some else 1.0
        return (self.network * touched + self.step * expected_work(stages, population, requested)) / at_once

    def request(
        self, stages: Sequence[Stage], sizes: Sequence[int], influential: int, population: int, requested: int
    ) -> float:  # fmt: skip
        """Expected seconds of a request to MaxRR, with so many influential records outside the core.

        If the request touches the core, extractors are trained again, their features are computed, and the heads are
        fitted; if it touches influential records alone, the heads are moved.
        """
        core = sum(sizes)
        untouched = spared(core, population, requested)
        only_heads = untouched - spared(core + influential, population, requested)
        return (
            self.training(stages, sizes, population, requested)
            + self.embed * expected_touched(sizes, population, requested)
            + self.fit * (1.0 - untouched)
            + self.move.get(requested, self.fit) * max(only_heads, 0.0)
        )
