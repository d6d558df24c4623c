"""What a model is beside its arrays and secrets, as files have it: declared here, and read strictly, without PyTorch.

`Facts` tell how the model was made and what became of it; nothing in them tells of a record or a class. `Words` do, and
are erased with the heads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from maxrr.files.strict_json import Constraint, Count, Digest, PositiveFloat, PositiveInt
from maxrr.svm import Certificate
from maxrr.unlearning.conditions import DECIDE_EACH, conditions
from maxrr.unlearning.receipts import FUNCTION, Loss

Columns = tuple[str, ...] | None  # None where they have no names
LabelKind = Annotated[str, Constraint("U, i or b", ("U", "i", "b").__contains__)]
Sources = Annotated[tuple[dict[str, str], ...], Constraint("one source or more", len)]


LEAST_SHARE, MOST_SHARE = 0.15, 0.6  # of the time to solve a head, to move it by `MANY` records or more,
PER_FEATURE = 27.0  # and beside the least so much for each feature, over the records
MANY = 16


@dataclass(frozen=True)
class Durations:
    """Seconds that it takes to train one network on one record, to embed one record, to solve one head from scratch."""

    train: float
    embed: float
    head: float

    @classmethod
    def measured(cls, seconds: Sequence[float], core: int, records: int, heads: int) -> "Durations":
        """Compute the seconds for one record, or one head, from those that training, embedding and solving took."""
        training, embedding, solving = seconds
        return cls(training / max(core, 1), embedding / records, solving / heads)

    def expected(self, changes: int, heads: int, trains: float, embeds: float, anew: bool, wide: float = 0.0) -> float:
        """Estimate the seconds of a request from how many records are trained on, embedded, and move how many heads.

        To move a head by many records takes a sixth of solving it, where there are hundreds of records for each of the
        features, and more where there are few (`wide` is features over records); by one it takes half as long. No more
        than by many by hundreds, because then it is not followed record by record: measured with 64 to 1,280 features.
        On a GPU, where heads are solved fast, one record takes as long as many do (`wide` is infinite).
        """
        most = min(LEAST_SHARE + PER_FEATURE * wide, MOST_SHARE)
        few = 0.5 if wide < math.inf else 1.0
        share = 1.0 if anew else most * (few + (1.0 - few) * min(changes / max(heads, 1) / MANY, 1.0))
        return trains * self.train + embeds * self.embed + heads * share * self.head


@dataclass(frozen=True)
class NetworkFacts:
    """Which function makes a network, as in `maxrr.nets.naming.NamedNetwork`."""

    maker: str
    arguments: list[Any]


@dataclass(frozen=True)
class CoreFacts:
    """The class of a rule for the core, of `maxrr.core`, and its settings but for what it hashes ids with."""

    kind: str
    settings: dict[str, bool | int | float | str]


@dataclass(frozen=True)
class HeadFacts:
    """The number of the class that a head tells from the rest, and what is proved about the head."""

    label: Count
    certificate: Certificate


@dataclass(frozen=True)
class SetAside:
    """How many test records were set aside, and a hash under the model's key of their ids, classes and values."""

    records: Count
    hash: Digest


@dataclass(frozen=True)
class Override:
    """A decision to let in records with the values of forgotten ones, under other ids: they belong to other people.

    Attributes
    ----------
    time : str
        When, in UTC.
    records : int
        How many records were let in.
    reason : str
        Why, in the words of whoever decided.
    """

    time: str
    records: Count
    reason: str


@dataclass(frozen=True)
class Facts:
    """Everything about a model but its arrays, secrets and words; mostly the fields of `Blueprint`, `Choice` and
    `ModelState`.
    """

    network: NetworkFacts | None  # None where it has no name that can be imported
    core: CoreFacts | None  # None where the caller's own code chose
    shards: PositiveInt
    frozen: bool
    seed: Count
    recipe: dict[str, Any]
    C: PositiveFloat
    device: str | None
    threads: PositiveInt
    environment: dict[str, Any]
    given: dict[str, str]
    drafted: Count
    unconditional: bool
    depended_on: str
    details: dict[str, int | float | str]
    dtype: str | tuple[tuple[str, str, tuple[Count, ...]], ...]  # of one record, or of each of its inputs
    shape: tuple[Count, ...]
    layers: str
    heads: tuple[HeadFacts, ...]
    durations: Durations
    layouts: Count
    in_extractor: frozenset[bytes]
    stale: frozenset[int]
    untrained: frozenset[int]
    technique: bool
    adopted: bool
    set_aside: SetAside | None
    losses: tuple[Loss, ...]
    model_hash: Digest

    def __post_init__(self) -> None:
        if bool(self.stale) != (self.shards > 1 and bool(self.in_extractor)):
            raise ValueError("what shards keep of forgotten records does not go with what the extractor keeps")
        if not all(0 <= shard < self.shards for shard in self.stale | self.untrained):
            raise ValueError("there are not so many shards")
        if not isinstance(self.dtype, str) and (self.shape or not self.dtype):
            raise ValueError("records of several inputs have no shape of their own")

    @property
    def function(self) -> str | None:
        """The name of the caller's own function that trained the network; None where a recipe of ours did."""
        return self.recipe.get(FUNCTION)

    @property
    def decides_each(self) -> bool:
        """Whether the rule decides for each record by itself whether it is core."""
        return self.core is not None and self.core.kind in DECIDE_EACH

    @property
    def recipe_facts(self) -> dict[str, Any]:
        """The recipe under the name that `Blueprint` has for it: `conditions` takes either."""
        return self.recipe

    @property
    def record_shape(self) -> tuple[int, ...] | dict[str, tuple[int, ...]]:
        """The shape of one record, or of each of its inputs by name."""
        return self.shape if isinstance(self.dtype, str) else {name: shape for name, _, shape in self.dtype}

    def conditions(self, waiting: int) -> list[str]:
        """List the conditions that exactness rests on, given how many records wait for the core."""
        return conditions(self, self, len(self.in_extractor), self.technique, self.adopted, waiting)


@dataclass(frozen=True)
class Words:
    """What can be read of records and classes, and of why decisions were taken.

    `sources` say where records come from: first those of the last fit, then those that were added.
    """

    class_names: tuple[str, ...]
    label_kind: LabelKind
    columns: Columns
    class_weight: dict[str, PositiveFloat]
    overrides: tuple[Override, ...]
    sources: Sources


@dataclass(frozen=True)
class Secrets:
    """The key of a model's HMACs, what its core hashes ids with, and the secret of the commitment's salts."""

    key: bytes
    core: bytes | None
    secret: bytes
