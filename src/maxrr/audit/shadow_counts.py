"""How many models of which kind an audit makes."""

from collections.abc import Iterator
from dataclasses import dataclass

from maxrr.audit.case import Case
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Purpose, Shadows, View, shadow_seeds

LEAST, HALF = 8, 4  # shadow models, and of them with the records
SHARE = 0.39  # of them have the records: of 64 these are 25, and among 39 others a p of 0.05 is two ranks of forty


@dataclass(frozen=True)
class ShadowCounts:
    """Shadow models by kind, and all networks that are trained: theirs, and those made again with the recorded seed."""

    with_records: int
    retrained: int
    networks: int

    @classmethod
    def of(cls, shadows: int, core_touched: bool) -> "ShadowCounts":
        with_records = max(HALF, round(SHARE * shadows))
        again = 3 if core_touched else 2  # before the request, without the records, and on all others
        return cls(with_records, shadows - with_records, shadows + again)

    def wanted(self, case: Case, pilot: bool = False) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        """The kinds of models to make, and from which seeds. A pilot has seeds of its own."""
        seed = case.fitted.blueprint.seed
        remembering = (BEFORE, KEPT) if case.touches_core else (BEFORE,)
        kinds: list[tuple[tuple[str, ...], int, Purpose]] = [
            (remembering, self.with_records, "pilot with" if pilot else "with"),
            ((RETRAINED,), self.retrained, "pilot without" if pilot else "without"),
        ]
        for made, count, purpose in kinds:
            yield made, shadow_seeds(seed, count, purpose)

    def make(self, maker: Shadows, pilot: bool = False) -> dict[str, list[View]]:
        """What all these models say, by kind. Where no record was core, none of them kept any in its extractor."""
        views: dict[str, list[View]] = {kind: [] for kind in (BEFORE, KEPT, RETRAINED)}
        for kinds, seeds in self.wanted(maker.case, pilot):
            for _, kind, view in maker.views(kinds, seeds):
                views[kind].append(view)
        return views
