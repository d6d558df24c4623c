"""What a request would do to a state: which heads and classes it touches, and what becomes of the core."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core.shards import untrained
from maxrr.unlearning.records import Ints
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import ModelState


@dataclass(frozen=True, eq=False)
class Effect:
    """The records and heads that a request touches in a state, whichever policy it has."""

    influential: Ints  # rows of those that are not core
    shaping: int  # records that are influential, those that are core included
    many: bool  # so many that heads are fitted anew
    shaped: int  # heads
    labels_left: Ints  # of records, those that arrive included
    twins: int

    @classmethod
    def of(cls, fitted: ModelState, request: Request) -> "Effect":
        records = fitted.records
        among, shaped = fitted.heads._influential_among(request.rows)
        shaping = int(among.sum())
        left = np.flatnonzero(records.counts_without(request.rows))
        if request.added is not None:
            left = np.union1d(left, request.added.labels)
        influential = request.rows[among & ~fitted.core[request.rows]]
        return cls(influential, shaping, fitted.heads._are_many(shaping), shaped, left, records.twins(request.rows))


@dataclass(frozen=True, eq=False)
class CoreAfter:
    """The core once a request was carried out, and the shards that have to be trained again."""

    labels: NDArray[np.int64]  # of all core records
    shard: NDArray[np.int64]  # of each
    shards: tuple[int, ...]  # that are trained on again
    share: float  # of the features that are computed anew

    @property
    def untrained(self) -> list[int]:
        """The shards that have too few records to be trained on."""
        return untrained(self.shard, self.labels, self.shards)

    @property
    def records(self) -> int:
        """How many records are trained on."""
        if not self.shards:
            return 0
        return int(np.isin(self.shard, np.setdiff1d(self.shards, self.untrained)).sum())

    @classmethod
    def of(cls, fitted: ModelState, request: Request) -> "CoreAfter":
        records, added, sharding = fitted.records, request.added, fitted.blueprint.sharding
        staying = records.alive.copy()
        staying[request.rows] = False
        core = records.ids[fitted.core & staying]

        def afterwards(name: str) -> NDArray[Any]:
            """Return the ids, subjects or labels of all records that there will be."""
            arriving = [] if added is None else [getattr(added, name)]
            return np.concatenate([getattr(records, name)[staying], *arriving])

        ids, labels = afterwards("ids"), afterwards("labels")
        subjects = None if records.subjects is None else afterwards("subjects")
        chosen = np.isin(ids, fitted.blueprint.core_ids(ids, subjects, core, fitted.waiting))
        shard = sharding.of(ids[chosen], None if subjects is None else subjects[chosen])
        touched = set(records.shards(sharding, request.core_rows).tolist())
        shards = tuple(sorted(touched | fitted.stale)) if sharding.count > 1 else (0,)
        return cls(labels[chosen], shard, shards, len(shards) / sharding.count)


NO_CORE = CoreAfter(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), (), 1.0)
