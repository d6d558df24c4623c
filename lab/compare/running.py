"""`measure`: the parts of a profile, piece by piece."""

import json
from collections.abc import Sequence
from pathlib import Path

from lab.compare import networks
from lab.compare.pieces import Pieces
from lab.compare.promises import Promises
from lab.compare.questions import USES
from lab.compare.study import PROFILES, Exact, Networks, Study
from lab.compare.techniques import TECHNIQUES
from lab.results import Clock
from maxrr.nets.inputs import chosen_device

PARTS = {
    "a": "techniques on a small network, on four kinds of forget sets",
    "b": "the best three on a larger network",
    "c": "methods that promise something, from public weights",
    "d": "a stream of requests for methods that promise something",
}


def measure(
    part: str, profile: str, out: Path, seed: int = 0, device: str | None = None, clock: Clock | None = None,
    uses: Sequence[str] = USES,
) -> None:  # fmt: skip
    """Measure what the files do not have; raise `lab.results.OutOfTimeError` where a piece would end too late."""
    sizes = PROFILES[profile]
    plan, place = getattr(sizes, part), chosen_device(device)
    if plan is None:
        return
    pieces = Pieces(out / profile, sizes.setting(part, seed), place, clock or Clock())
    if isinstance(plan, Networks):
        names = list(plan.techniques) if plan.best is None else best(pieces, plan.best)
        networks.measure(Study(part, plan, seed, place, pieces), names, uses)
        return
    assert isinstance(plan, Exact)
    work = Promises(plan, seed, place, pieces)
    work.measure_public() if part == "c" else work.measure_stream()


def best(pieces: Pieces, count: int) -> list[str]:
    """The techniques of part a whose forgotten records come nearest to retraining, over both uses and all sets but a
    class, where the distance is full alone and none below exact heads.
    """
    found: dict[str, list[float]] = {}
    for path in pieces.folder.glob("a-*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        counts = content.get("method") in TECHNIQUES and "klom" in content and content["forget set"] != "one class"
        if counts:
            found.setdefault(content["method"], []).append(content["klom"]["forgotten"]["95th"])
    if len(found) < len(TECHNIQUES):
        raise ValueError("part b compares the best techniques of part a: measure part a first")
    return sorted(found, key=lambda name: sum(found[name]) / len(found[name]))[:count]
