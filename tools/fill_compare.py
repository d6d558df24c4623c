"""Put the numbers of results/compare/ into docs/compare.md, and draw its figure: `python tools/fill_compare.py`.

What is between `<!-- name -->` and `<!-- end -->` is made by the function of that name in `BLOCKS`, from the files of
the profile `PROFILE`. A sentence that says where we are worse is made from the numbers, so that it says what they say.
"""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.compare.exact import CORE, FROZEN
from lab.comparison import difference, holm

ROOT = Path(__file__).parents[1]
PAGE, FIGURE = ROOT / "docs" / "compare.md", ROOT / "docs" / "img" / "compare.png"
PROFILE, END = "quick", "<!-- end -->"
SET = "random 50"
USES = ("alone", "below exact heads")
CONTROLS = ("retraining", "nothing done")
Piece = dict[str, Any]


def pieces(part: str) -> list[Piece]:
    """What the files of a part hold."""
    paths = sorted((ROOT / "results" / "compare" / PROFILE).glob(f"{part}-*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def techniques() -> list[Piece]:
    """Pieces of part a with measures, the nearest to retraining first."""
    found = [piece for piece in pieces("a") if "klom" in piece]
    return sorted(found, key=lambda piece: piece["klom"]["forgotten"]["95th"])


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
    """Who is cheaper, and who more accurate, than we are in the stream."""
    found = streams()
    core, frozen = one(found, method=CORE), one(found, method=FROZEN)
    faster = [piece for piece in found if piece["seconds"] < frozen["seconds"]]
    better = [piece for piece in found if piece["accuracy"]["after"] > core["accuracy"]["after"]]
    lines = [f"- {named(piece)} answers a request in {seconds(piece['seconds'])}, MaxRR on the same features in "
             f"{seconds(frozen['seconds'])}." for piece in faster]  # fmt: skip
    lines += [f"- {named(piece)} ends at {share(piece['accuracy']['after'])}, MaxRR with a small core at "
              f"{share(core['accuracy']['after'])}." for piece in better]  # fmt: skip
    return "\n".join([*lines, ""])


def named(piece: Piece) -> str:
    """The method at the beginning of a sentence."""
    return str(piece["method"][0].upper() + piece["method"][1:])


def distances() -> str:
    """A row for each technique, alone and below our heads."""
    lines = ["| | KLoM, forgotten | KLoM, test | TPR at 1 % FPR | features, AUC | audit finds | 'unlearned' by MIA "
             "| test accuracy lost | seconds |", "|---|" + "---:|" * 8]  # fmt: skip
    for use in USES:
        mine = [piece for piece in techniques() if piece["use"] == use and piece["forget set"] == SET]
        lost = losses(use, SET)
        lines.append(f"| **{use}** |" + " |" * 8)
        for piece in mine:
            name = piece["method"]
            kept, audit = piece["klom"], piece["audit"]
            found = audit.get("residual influence found", 0)
            less = f"{100 * lost[name][0]:+.1f}{'*' if lost[name][1] < 0.05 else ''}" if name in lost else "–"
            lines.append(
                f"| {name} | {kept['forgotten']['95th']:.1f} | {kept['test']['95th']:.1f} | "
                f"{share(piece['u-lira']['tpr at 1 % fpr'])} | {piece['features']['auc']:.2f} | "
                f"{found} of {sum(audit.values())} | {share(fmean(piece['claimed unlearned']))} | {less} | "
                f"{piece['request']['seconds']:.2g} |"
            )
    return "\n".join([*lines, ""])


def promised() -> str:
    """A row for each method that promises something."""
    audits = {piece["method"]: piece for piece in pieces("d") if piece["name"].startswith("audit")}
    lines = ["| | accuracy before → after | seconds per request | kept | furthest from a new fit | audit at the end |",
             "|---|---:|---:|---:|---:|---|"]  # fmt: skip
    for piece in streams():
        said, accuracy = audits.get(piece["method"]), piece["accuracy"]
        away = piece["from a new fit"]
        lines.append(
            f"| {piece['method']} | {share(accuracy['before'])} → {share(accuracy['after'])} | "
            f"{seconds(piece['seconds'])} | {size(piece['kept'])} | {'0' if away == 0.0 else f'{away:.0e}'} | "
            f"{said['words'] if said else 'nothing is drawn: see the column before'} |"
        )
    return "\n".join([*lines, ""])


def tried() -> str:
    """What was tried of each technique, with the distance that decided."""
    found = [piece for piece in pieces("a") if "tried" in piece]
    lines = ["| | alone | below exact heads |", "|---|---|---|"]
    for name in dict.fromkeys(piece["method"] for piece in found):
        cells = []
        for use in USES:
            piece = one(found, method=name, use=use)
            cells.append("; ".join(attempt(each, piece["chosen"]) for each in piece["tried"]))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def attempt(each: Piece, chosen: Piece) -> str:
    """One setting with its distance, bold if chosen."""
    named = ", ".join(f"{name} {value:g}" for name, value in each["settings"].items()) or "as published"
    text = f"{named}: {'diverged' if each['distance'] is None else format(each['distance'], '.2f')}"
    return f"**{text}**" if each["settings"] == chosen else text


def made() -> str:
    """What was measured, when and where."""
    found = [*pieces("a"), *pieces("c"), *pieces("d")]
    days = sorted({piece["made"]["date"] for piece in found})
    plan = pieces("a")[0]["setting"]["plan"]
    machines = sorted({f"{piece['made']['device']} of {piece['made']['machine']}" for piece in found})
    minutes = sum(piece["made"]["seconds"] for piece in found) / 60
    return (
        f"`python -m lab compare --profile {PROFILE}`, seed 0, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
        f"{', '.join(machines)} shared with other work, {minutes:.0f} minutes: {plan['models']} LeNet-5 of each kind "
        f"on {plan['records']:,} images of Fashion-MNIST.\n"
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
    "made": made, "worse": worse, "distances": distances, "promised": promised, "tried": tried,
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
