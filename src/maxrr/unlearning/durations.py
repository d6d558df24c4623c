"""How long a request will take, going by how long fitting took."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Durations:
    """Seconds that it takes to train on one record, to embed one record, and to solve one head from scratch."""

    train: float
    embed: float
    head: float

    @classmethod
    def measured(cls, seconds: Sequence[float], core: int, records: int, heads: int) -> "Durations":
        """From the seconds that training, embedding and solving took."""
        training, embedding, solving = seconds
        return cls(training / max(core, 1), embedding / records, solving / heads)

    def expected(self, forgotten: int, heads: int, trains: int, embeds: float, anew: bool) -> float:
        """About how long it takes to forget, with so many heads moved, or solved anew.

        Moving a head by one record takes about a twentieth of solving it, by a thousand nearly half: measured on
        LeNet-5 features by benchmarks/unlearning.py.
        """
        share = 1.0 if anew else 0.05 + 0.4 * min(forgotten / 1000, 1.0)
        return trains * self.train + embeds * self.embed + heads * share * self.head
