"""How long a request will take, going by how long fitting took, and the last request that moved heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Durations:
    """Seconds that it takes to train one network on one record, to embed one record, to solve one head from scratch.

    `moving` is how many times longer heads took to move, when they were last moved, than is expected of any model.
    """

    train: float
    embed: float
    head: float
    moving: float = 1.0

    @classmethod
    def measured(
        cls, seconds: Sequence[float], core: int, records: int, heads: int, at_once: int = 1
    ) -> "Durations":  # fmt: skip
        """From the seconds that training so many networks at once, embedding and solving took."""
        training, embedding, solving = seconds
        return cls(at_once * training / max(core, 1), embedding / records, solving / heads)

    def expected(self, forgotten: int, heads: int, trains: float, embeds: float, anew: bool) -> float:
        """About how long it takes to forget, with so many heads moved, or solved anew."""
        share = 1.0 if anew else self.moving * share_of_solving(forgotten)
        return trains * self.train + embeds * self.embed + heads * share * self.head

    def after_moving(self, seconds: float, forgotten: int, heads: int, embeds: int) -> "Durations":
        """The same, knowing how long a request took that moved so many heads and embedded so many records."""
        expected = heads * share_of_solving(forgotten) * self.head
        took = seconds - embeds * self.embed
        return replace(self, moving=took / expected) if expected > 0.0 and took > 0.0 else self


def share_of_solving(forgotten: int) -> float:
    """How long moving a head takes, of the time that solving it takes.

    By one record it is about a twentieth, by a thousand nearly half: measured on LeNet-5 features by
    benchmarks/unlearning.py. Of a small model, which is solved in a moment, it is several times more.
    """
    return 0.05 + 0.4 * min(forgotten / 1000, 1.0)
