"""Cores by how often a record is influential: most often, as in the paper, or in about half of the runs."""

import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from maxrr.core.choice import Choice, check_classes, choice_of
from maxrr.core.ranking import rank
from maxrr.core.shards import TIE_BREAKER, Sharding, as_bytes, checked_count
from maxrr.data import Dataset
from maxrr.nets.seeding import Network, stream
from maxrr.nets.training_function import Training
from maxrr.parallel import EngineLike
from maxrr.progress import Progress

RANKING = 7  # the stream below the model's seed that gives the seeds of these runs


@dataclass(frozen=True)
class FrequencyCore:
    """The paper's core: the `k` records that were influential in most of `runs` training runs on all records.

    Few records outside this core are influential, so that most can be forgotten at once. But the choice depends on
    every record: exactness holds given the core, and receipts say so. Where too few records were ever influential, the
    hash that breaks ties fills up the core; `Choice.details` says with how many records (`fill`).

    Parameters
    ----------
    k : int
        How many records are core.
    runs : int
        How many networks are trained for the ranking. Ten runs find about 90 % of the records that forty others find.
    tie_breaker : bytes or str
        What ids are hashed with to break ties, and to find their shards. It need not be secret.
    shards : int
        Into how many shards the core is divided, as in `HashCore`. The ranking trains on all records, as without.
    """

    k: int
    runs: int = 10
    tie_breaker: bytes | str = field(default=TIE_BREAKER, repr=False)
    shards: int = 1

    kind: ClassVar[str] = "frequency"
    share: ClassVar[float] = 1.0  # of the runs: the records nearest to it are core
    words: ClassVar[str] = "most often influential"

    def __post_init__(self) -> None:
        for name in ("k", "runs"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))  # NumPy's numbers become Python's
        if self.k < 1 or self.runs < 1:
            raise ValueError(f"a core has one record or more, from one run or more, not k={self.k}, runs={self.runs}")
        object.__setattr__(self, "shards", checked_count(self.shards))
        object.__setattr__(self, "tie_breaker", as_bytes(self.tie_breaker, "tie breaker"))

    @property
    def sharding(self) -> Sharding:
        """Which shard each core record is in."""
        return Sharding(self.shards, as_bytes(self.tie_breaker, "tie breaker"))

    @property
    def sentence(self) -> str:
        """What the choice depends on, as receipts repeat it."""
        return (
            f"the core is the {self.k:,} records {self.words} over {self.runs:,} training run{'s' * (self.runs > 1)} "
            "on all records: exact given that core"
        )

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Training, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
        engine: EngineLike = None,
    ) -> Choice:  # fmt: skip
        """Choose the core, as `Core.choose` does. The folder and the engine are used as in `rank`."""
        check_classes(dataset)
        if self.k > len(dataset):
            raise ValueError(f"a core of {self.k:,} records was asked for, but there are only {len(dataset):,}")
        ranking = rank(
            network, dataset, ranking_seeds(seed, self.runs), C=C, recipe=recipe, device=device, folder=folder,
            progress=progress, engine=engine,
        )  # fmt: skip
        ids = ranking.nearest(self.share, self.k, self.tie_breaker)
        ever = ranking.frequency() > 0
        influential = int(np.sum(np.isin(ids, ranking.ids[ever])))
        return choice_of(
            dataset, ids, kind=self.kind, unconditional=False,
            depended_on=self.sentence, runs=self.runs, ever_influential=int(ever.sum()),
            core_ever_influential=influential, fill=self.k - influential, worst_gap=ranking.worst_gap,
            shards=self.shards,
        )  # fmt: skip


@dataclass(frozen=True)
class MiddleCore(FrequencyCore):
    """The `k` records whose share of runs in which they were influential is nearest to one half.

    With cores of a third of Fashion-MNIST they gave more accurate models than the most frequent ones, by 0.5 points
    after 18 epochs, 0.3 after 36 and 0.7 after 72, and left 5 to 6 points fewer records free; than random ones, by 1.1
    points after 18 epochs. With cores of a third of a table it is 0.1 and 0.2 points, and 10 fewer free than the most
    frequent ones leave (lab/reproduction.md). As for `FrequencyCore`, exactness holds given the core.

    Parameters
    ----------
    k, runs, tie_breaker, shards
        As in `FrequencyCore`.
    """

    kind: ClassVar[str] = "middle"
    share: ClassVar[float] = 0.5
    words: ClassVar[str] = "influential nearest to half of the time"


def ranking_seeds(seed: int, runs: int) -> list[int]:
    """Seeds for the runs of a ranking. None is the model's own seed, so that its extractor is another network.

    More runs begin with the seeds of fewer runs.

    >>> ranking_seeds(0, 3)[:2] == ranking_seeds(0, 2)
    True
    """
    numbers: list[int] = stream(seed, RANKING).generate_state(runs, np.uint64).tolist()
    return numbers
