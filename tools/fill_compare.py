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
from maxrr.audit.findings import FOUND

ROOT = Path(__file__).parents[1]
PAGE, FIGURE = ROOT / "docs" / "compare.md", ROOT / "docs" / "img" / "compare.png"
PROFILE, END = "quick", "<!-- end -->"
SET = "random 50"
USES = ("alone", "below exact heads")
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
    """Who is cheaper, and who more accurate, than we are: in the stream, and where core records leave."""
    found = streams()
    core, frozen = one(found, method=CORE), one(found, method=FROZEN)
    others = [piece for piece in found if piece["method"] not in (CORE, FROZEN)]
    faster = [piece for piece in others if piece["seconds"] < frozen["seconds"]]
    better = [piece for piece in others if piece["accuracy"]["after"] > max(accuracy_of(core), accuracy_of(frozen))]
    lines = [f"- {named(piece)} takes {seconds(piece['seconds'])} for a request, MaxRR on the same features "
             f"{seconds(frozen['seconds'])}." for piece in faster]  # fmt: skip
    lines += [f"- {named(piece)} ends at {share(accuracy_of(piece))}, MaxRR at {share(accuracy_of(frozen))}."
              for piece in better]  # fmt: skip
    below = [piece for piece in techniques() if (piece["use"], piece["forget set"]) == (USES[1], SET)]
    again = one(below, method="retraining")["request"]["seconds"]
    able = [piece for piece in below if piece["method"] not in CONTROLS]
    quick = min(able, key=lambda piece: float(piece["request"]["seconds"]))
    least = min(again, quick["request"]["seconds"])
    if least < again:
        lines.append(f"- Core records leave exactly in {seconds(again)} of training, with {quick['method']} in "
                     f"{seconds(least)}.")  # fmt: skip
    kept = min(others, key=lambda piece: (piece["kept"] == 0, piece["kept"]))
    lines.append(f"- {named(kept)} keeps {size(kept['kept'])} beside the model, MaxRR {size(core['kept'])}.")
    return "\n".join([*lines, ""])


def accuracy_of(piece: Piece) -> float:
    """The accuracy at the end of a stream."""
    return float(piece["accuracy"]["after"])


def named(piece: Piece) -> str:
    """The method at the beginning of a sentence, with its article where it takes one."""
    name = str(piece["method"])
    return f"A {name}" if name == "ridge head" else name[0].upper() + name[1:]


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


def table(rows: list[list[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [f"|{'|'.join(row)}|\n" for row in rows]
    return lines[0] + f"|---|{'---:|' * (len(rows[0]) - 1)}\n" + "".join(lines[1:])


def klom_of(piece: Piece) -> str:
    """The distance of the forgotten records."""
    return f"{piece['klom']['forgotten']['95th']:.1f}"


def promised() -> str:
    """A row for each method that promises something, and what audits of the ends came to."""
    rows = [["", "accuracy after", "seconds", "kept", "furthest from a new fit"]]
    rows += [
        [piece["method"], share(accuracy_of(piece)), f"{piece['seconds']:.2g}", size(piece["kept"]),
         "0" if piece["from a new fit"] == 0.0 else f"{piece['from a new fit']:.0e}"] for piece in streams()
    ]  # fmt: skip
    audits = [piece for piece in pieces("d") if piece["name"].startswith("audit")]
    strong = max(piece["power"] for piece in audits)
    found = [f"{piece['method']} at p = {piece['p']:.2f}, by chance" for piece in audits if piece["words"] == FOUND]
    return (
        f"{table(rows)}\nAudits of the ends, by {audits[0]['retrained']} retrained models, find at most {strong:.0%} "
        f"of models that kept all records, so they say little. Found: {'; '.join(found) or 'nothing'}.\n"
    )


def tried() -> str:
    """What was tried of each technique, and where the default was kept."""
    found = [piece for piece in pieces("a") if "tried" in piece]
    other = {setting_of(piece["tried"][1]["settings"]) for piece in found}
    kept = [f"{piece['method']} {piece['use']}" for piece in found if not piece["chosen"]]
    return (
        f"Each technique got {len(found[0]['tried'])} settings here: its default and another rate "
        f"({', '.join(sorted(other))}). The default was kept of {', '.join(kept) or 'none'}.\n"
    )


def setting_of(settings: Piece) -> str:
    """Settings in words."""
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def made() -> str:
    """What was measured, when and where."""
    shown = [piece for piece in pieces("a") if piece.get("forget set", SET) == SET]
    found = [*shown, *pieces("d")]
    days = sorted({piece["made"]["date"] for piece in found})
    plan = pieces("a")[0]["setting"]["plan"]
    machines = sorted({f"{piece['made']['device']} of {piece['made']['machine']}" for piece in found})
    minutes = sum(piece["made"]["seconds"] for piece in found) / 60
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    return (
        f"`python -m lab compare --profile {PROFILE}`, {when}, {machines[0]} with other work, {minutes:.0f} minutes: "
        f"{plan['models']} LeNet-5 of each kind, {plan['records']:,} images of Fashion-MNIST. Seconds are a "
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
