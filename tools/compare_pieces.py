"""What results/compare/ holds of a profile, and what follows from it: who is nearer, who is worse, what is noise."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lab.compare.exact import CORE, FROZEN
from lab.compare.networks import NOTHING
from lab.compare.questions import ALONE
from lab.compare.study import PROFILES
from lab.compare.techniques import TECHNIQUES
from lab.comparison import difference, holm
from maxrr.audit.findings import FOUND

ROOT = Path(__file__).parents[1]
PROFILE = "quick"
CLASS = "one class"
OURS = (FROZEN, CORE)
LEVEL = 0.05
NOISE = 1.4  # of a difference of two KLoM at 24 models, where pieces have no p: of those of `quick` alone
Piece = dict[str, Any]


def pieces(part: str, profile: str | None = None) -> list[Piece]:
    """What the files of a part hold."""
    paths = sorted((ROOT / "results" / "compare" / (profile or PROFILE)).glob(f"{part}-*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def sets(part: str = "a") -> list[str]:
    """The forget sets of a part, but for a class."""
    plan = getattr(PROFILES[PROFILE], part)
    return [] if plan is None else [name for name in plan.forget if name != CLASS]


def measured(part: str = "a") -> list[Piece]:
    """Pieces with measures, each with what a request costs, which is measured last; nearest to retraining first."""
    costs = {(piece["use"], piece["method"]): piece["request"] for piece in pieces(part) if "request" in piece}
    found = [{**piece, "request": costs[piece["use"], piece["method"]]}
             for piece in pieces(part) if "klom" in piece and (piece["use"], piece["method"]) in costs]  # fmt: skip
    far: dict[str, float] = {}
    for piece in found:
        if piece["use"] == ALONE and piece["forget set"] != CLASS:
            far[piece["method"]] = far.get(piece["method"], 0.0) + distance(piece)
    return sorted(found, key=lambda piece: far[piece["method"]])


def rows(use: str, forget_set: str, part: str = "a") -> dict[str, Piece]:
    """What was measured of one use and forget set, by method."""
    found = measured(part)
    return {piece["method"]: piece for piece in found if (piece["use"], piece["forget set"]) == (use, forget_set)}


def lost(mine: dict[str, Piece]) -> dict[str, tuple[float, float]]:
    """By how much each technique lowers the test accuracy, paired by model, and Holm's p over techniques."""
    before = mine[NOTHING]["accuracy"]["test"]
    each = {name: difference(before, mine[name]["accuracy"]["test"]) for name in mine if name in TECHNIQUES}
    p = holm([one.p for one in each.values()])
    return {name: (one.mean, corrected) for (name, one), corrected in zip(each.items(), p, strict=True)}


def moved(mine: dict[str, Piece]) -> dict[str, int]:
    """Which techniques are nearer to retraining than nothing done (-1), which further (1), and which neither (0)."""
    away = {name: distance(mine[name]) - distance(mine[NOTHING]) for name in mine if name in TECHNIQUES}
    p = holm([chance(mine[name], mine[NOTHING]) for name in away])
    signs = {name: (apart > 0) - (apart < 0) for name, apart in away.items()}
    return {name: sign if one < LEVEL else 0 for (name, sign), one in zip(signs.items(), p, strict=True)}


def chance(piece: Piece, nothing: Piece) -> float:
    """The p-value of its difference from nothing done."""
    return float(piece.get("p", float(abs(distance(piece) - distance(nothing)) <= NOISE)))


def distance(piece: Piece) -> float:
    """How far the forgotten records are from retraining."""
    return float(piece["klom"]["forgotten"]["95th"])


def caught(piece: Piece) -> int:
    """In how many models the audit finds the records."""
    return int(piece["audit"].get(FOUND, 0))


# Methods with a promise


def streams() -> list[Piece]:
    """The stream of every method, the fastest first."""
    found = [
        {**piece, "anew": piece["fits"] and piece["fits"] - 1} for piece in pieces("d") if "of the stream" in piece
    ]
    return sorted(found, key=lambda piece: piece["seconds"])


def publics() -> list[Piece]:
    """Public weights: what every method came to over all seeds, the fastest first."""
    seeds: dict[str, list[Piece]] = {}
    for piece in pieces("c"):
        if "kept" in piece:
            seeds.setdefault(piece["method"], []).append(piece)
    found = [{"method": name, **together(each)} for name, each in seeds.items()]
    return sorted(found, key=lambda piece: piece["seconds"])


def together(each: Sequence[Piece]) -> Piece:
    """The seeds of a method as one."""
    accuracy = [piece["accuracy"] for piece in each]
    fits = [piece["fits"] for piece in each if piece["fits"] is not None]
    return {
        **{name: fmean(piece[name] for piece in each) for name in ("seconds", "fit", "kept")},
        "accuracy": {"after": fmean(accuracy), "spread": stdev(accuracy)},
        "requests": sum(len(piece["requests"]) for piece in each), "anew": sum(fits) - len(fits) if fits else None,
        "from a new fit": max(piece.get("from a new fit", 0.0) for piece in each),
    }  # fmt: skip


def accuracy_of(piece: Piece) -> float:
    """The accuracy that a method ends with."""
    return float(piece["accuracy"]["after"])


def beats(piece: Piece, ours: Sequence[Piece]) -> bool:
    """Whether a method is faster or more accurate than either of our rows."""
    return any(piece["seconds"] < mine["seconds"] or accuracy_of(piece) > accuracy_of(mine) for mine in ours)
