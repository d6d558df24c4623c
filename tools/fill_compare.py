"""Put the numbers of results/compare/ into docs/compare.md, and draw its figure: `python tools/fill_compare.py`.

What is between `<!-- name -->` and `<!-- end -->` is made by the function of that name in `BLOCKS`, from the files of
the profile `PROFILE`. A sentence that says where we are worse is made from the numbers, so that it says what they say.
"""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from lab.compare.exact import CORE, FROZEN
from lab.compare.pieces import Pieces
from lab.compare.study import PROFILES, Study
from lab.comparison import difference, holm
from maxrr.audit.findings import FOUND

ROOT = Path(__file__).parents[1]
PAGE, FIGURE = ROOT / "docs" / "compare.md", ROOT / "docs" / "img" / "compare.png"
PROFILE, END = "quick", "<!-- end -->"
SET, CLASS = "random 50", "one class"
USES = ("alone", "below exact heads")
OURS = (FROZEN, CORE)
CONTROLS = ("retraining", "nothing done")
LEVEL = 0.05
Piece = dict[str, Any]


def pieces(part: str) -> list[Piece]:
    """What the files of a part hold."""
    paths = sorted((ROOT / "results" / "compare" / PROFILE).glob(f"{part}-*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def techniques() -> list[Piece]:
    """Pieces of part a with measures, the nearest to retraining first."""
    found = [piece for piece in pieces("a") if "klom" in piece]
    return sorted(found, key=distance)


def streams() -> list[Piece]:
    """The stream of every method, the fastest first."""
    return sorted((piece for piece in pieces("d") if "of the stream" in piece), key=lambda piece: piece["seconds"])


def one(found: list[Piece], **facts: str) -> Piece:
    """The piece of which these facts are true."""
    (piece,) = [each for each in found if all(each[name.replace("_", " ")] == value for name, value in facts.items())]
    return piece


def losses(use: str, forget_set: str) -> dict[str, tuple[float, float]]:
    """By how much each technique lowers the test accuracy, paired by model, and Holm's p over techniques."""
    found = [piece for piece in techniques() if piece["use"] == use and piece["forget set"] == forget_set]
    before = one(found, method="nothing done")["accuracy"]["test"]
    mine = [piece for piece in found if piece["method"] not in CONTROLS]
    each = [difference(before, piece["accuracy"]["test"]) for piece in mine]
    p = holm([lost.p for lost in each])
    return {piece["method"]: (lost.mean, one) for piece, lost, one in zip(mine, each, p, strict=True)}


# Blocks


def worse() -> str:
    """Who is cheaper, and who more accurate, than we are: in the stream, and where core records leave."""
    found = streams()
    ours = [one(found, method=name) for name in OURS]
    others = [piece for piece in found if piece["method"] not in OURS]
    rows = [["", "seconds", "accuracy after"]]
    rows += [[piece["method"], f"{piece['seconds']:.2g}", share(accuracy_of(piece))]
             for piece in [*(piece for piece in others if beats(piece, ours)), *ours]]  # fmt: skip
    lines = [table(rows)]
    below = [piece for piece in techniques() if (piece["use"], piece["forget set"]) == (USES[1], SET)]
    again = one(below, method="retraining")["request"]["seconds"]
    able = {piece["method"]: piece["request"]["seconds"] for piece in below if piece["method"] not in CONTROLS}
    if quick := [f"{name} {able[name]:.2g}" for name in sorted(able, key=able.__getitem__) if able[name] < again]:
        lines.append(f"- Core records leave exactly in {seconds(again)} of training; not exactly: {', '.join(quick)}.")
    if less := [piece for piece in others if piece["kept"] < max(mine["kept"] for mine in ours)]:
        told = (", ".join(f"{piece['method']} {size(piece['kept'])}" for piece in some) for some in (less, ours))
        lines.append(f"- Kept: {'; '.join(told)}.")
    return "\n".join([*lines, ""])


def beats(piece: Piece, ours: list[Piece]) -> bool:
    """Whether a method is faster or more accurate than either of our rows."""
    return any(piece["seconds"] < mine["seconds"] or accuracy_of(piece) > accuracy_of(mine) for mine in ours)


def accuracy_of(piece: Piece) -> float:
    """The accuracy at the end of a stream."""
    return float(piece["accuracy"]["after"])


def distances() -> str:
    """A row for each technique, alone and below our heads."""
    rows = [["", "KLoM alone", "below", "audit finds, alone", "features, below", "'unlearned' by MIA", "accuracy lost",
             "seconds"]]  # fmt: skip
    found = [piece for piece in techniques() if piece["forget set"] == SET]
    alone, below = ({piece["method"]: piece for piece in found if piece["use"] == use} for use in USES)
    lost = losses(USES[0], SET)
    for name, piece in alone.items():
        other = below[name]
        mark = "\\*" if name in lost and lost[name][1] < LEVEL else ""
        rows.append([
            name, klom_of(piece), klom_of(other), f"{piece['audit'].get(FOUND, 0)}/{piece['models']}",
            f"{other['features']['auc']:.2f}", f"{fmean(piece['claimed unlearned']):.0%}",
            f"{100 * lost[name][0]:+.1f}{mark}" if name in lost else "–", f"{piece['request']['seconds']:.2g}",
        ])  # fmt: skip
    return table(rows)


def whole_class() -> str:
    """What became of the techniques where a whole class was to be forgotten."""
    found = [piece for piece in techniques() if piece["forget set"] == CLASS]
    alone, below = ([piece for piece in found if piece["use"] == use] for use in USES)
    mine = [piece for piece in alone if piece["method"] not in CONTROLS]
    caught = min(piece["audit"].get(FOUND, 0) for piece in mine)
    return (
        f"- All {mine[0]['records']} records of a class: alone the seven end at {klom_of(mine[0])} to "
        f"{klom_of(mine[-1])} (nothing done {klom_of(one(alone, method='nothing done'))}, retraining "
        f"{klom_of(one(alone, method='retraining'))}), and the audit finds at least {caught} of {mine[0]['models']} "
        f"models of each. Below exact heads all are at {klom_of(max(below, key=distance))}: the class has no head "
        "any more.\n"
    )


def table(rows: list[list[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [f"|{'|'.join(row)}|\n" for row in rows]
    return lines[0] + f"|---|{'---:|' * (len(rows[0]) - 1)}\n" + "".join(lines[1:])


def distance(piece: Piece) -> float:
    """How far the forgotten records are from retraining."""
    return float(piece["klom"]["forgotten"]["95th"])


def klom_of(piece: Piece) -> str:
    """The distance with one digit."""
    return f"{distance(piece):.1f}"


def promised() -> str:
    """A row for each method that promises something, and what audits of the ends came to."""
    rows = [["", "accuracy after", "seconds", "kept", "furthest from a new fit"]]
    rows += [
        [piece["method"], share(accuracy_of(piece)), f"{piece['seconds']:.2g}", size(piece["kept"]), apart(piece)]
        for piece in streams()
    ]
    audits = [piece for piece in pieces("d") if piece["name"].startswith("audit")]
    strong = max(piece["power"] for piece in audits)
    away = {piece["method"]: apart(piece) for piece in streams()}
    found = [f"{piece['method']} at p = {piece['p']:.2f}, {away[piece['method']]} from a new fit"
             for piece in audits if piece["words"] == FOUND]  # fmt: skip
    return (
        f"{table(rows)}\nA new fit has the same noise. Audits by {audits[0]['retrained']} retrained models find at "
        f"most {strong:.0%} of models that kept all: they say little. Found: {'; '.join(found) or 'nothing'}.\n"
    )


def apart(piece: Piece) -> str:
    """How far the end of a stream is from a new fit, of which the noise is the same where there is any."""
    return "0" if piece["from a new fit"] == 0.0 else f"{piece['from a new fit']:.0e}"


def tried() -> str:
    """What was tried of each technique, on what, and where usual values were kept."""
    found = [piece for piece in pieces("a") if "tried" in piece]
    other = {setting_of(piece["tried"][1]["settings"]) for piece in found}
    kept = [f"{piece['method']} {piece['use']}" for piece in found if not piece["chosen"]]
    plan, place = PROFILES[PROFILE].a, torch.device("cpu")
    aside = Study("a", plan, 0, place, Pieces(ROOT, {}, place)).to_tune
    return (
        f"In this small profile each got {len(found[0]['tried'])} settings, usual values (not always its paper's) and "
        f"another rate ({', '.join(sorted(other))}), judged by {plan.tuned} models on {len(aside)} records forgotten "
        f"for that and {plan.validation} nobody trains on. Usual values won for {', '.join(kept) or 'none'}.\n"
    )


def setting_of(settings: Piece) -> str:
    """Settings in words."""
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def made() -> str:
    """What was measured, when and where."""
    found = [*pieces("a"), *pieces("d")]
    days = sorted({piece["made"]["date"] for piece in found})
    plan = pieces("a")[0]["setting"]["plan"]
    machines = " and ".join(sorted({piece["made"]["machine"] for piece in found}, reverse=True))
    minutes = sum(piece["made"]["seconds"] for piece in found) / 60
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    return (
        f"`python -m lab compare --profile {PROFILE}`, {when}, processors of {machines} (the class), {minutes:.0f} "
        f"minutes: {plan['models']} LeNet-5 of each kind, {plan['records']:,} images of Fashion-MNIST. Seconds are a "
        "processor's.\n"
    )


def share(value: float) -> str:
    """In percent."""
    return f"{100 * value:.1f} %"


def seconds(value: float) -> str:
    """With two digits."""
    return f"{value:.2g} s"


def size(value: int) -> str:
    """In megabytes."""
    return f"{value / 1e6:.2g} MB"


BLOCKS: dict[str, Callable[[], str]] = {
    "made": made, "worse": worse, "distances": distances, "class": whole_class, "promised": promised, "tried": tried,
}  # fmt: skip


def fill(text: str) -> str:
    """The page with the numbers that the files have now."""
    for name, make in BLOCKS.items():
        start, rest = text.split(f"<!-- {name} -->\n")
        text = f"{start}<!-- {name} -->\n{make()}{rest[rest.index(END) :]}"
    return text


def draw() -> None:
    """Draw the figure of the page."""
    from lab.figures.compare import draw as figure_of
    from lab.figures.look import look

    with look():
        figure_of(techniques(), streams(), SET).savefig(FIGURE, dpi=160, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()
