"""Put the numbers of results/compare/ into docs/compare.md, and draw its figure: `python tools/fill_compare.py`.

What is between `<!-- name -->` and `<!-- end -->` is made by the function of that name in `BLOCKS`, from the files of
the profile `PROFILE`; a part that it does not have gives nothing. Who is better or worse is said as the numbers are.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

import torch

from lab.compare.measures import EPSILON
from lab.compare.networks import NOTHING, RETRAINING, TUNED
from lab.compare.pieces import Pieces
from lab.compare.questions import ALONE, HEADS, USES
from lab.compare.study import PROFILES, Study
from lab.compare.techniques import TECHNIQUES
from lab.comparison import holm
from maxrr.audit.findings import ALPHA, FOUND, WORTH
from tools import compare_pieces as results
from tools.compare_pieces import CLASS, LEVEL, OURS, Piece

PAGE, FIGURE = (results.ROOT / "docs" / name for name in ("compare.md", "img/compare.png"))
END = "<!-- end -->"
MARKS = {-1: "**", 0: "", 1: "_"}  # nearer, neither, further
Row = dict[str, Piece]  # pieces by method
Column = tuple[str, Row, Callable[[Row, str], str]]


# Blocks


def made() -> str:
    """What was measured, when and where."""
    found = [piece for part in "abcd" for piece in results.pieces(part)]
    how = [piece["made"] for piece in found]
    days, minutes = sorted({each["date"] for each in how}), sum(each["seconds"] for each in how) / 60
    timed = [piece for piece in found if "request" in piece or "seconds" in piece]
    places = {f"a processor of {each['machine']}" if each["device"] == "cpu" else each["device"] for each in how}
    clocks = {"of a processor, one thread" if piece["made"]["device"] == "cpu" else "on the clock" for piece in timed}
    plans = [results.pieces(part)[0]["setting"]["plan"] for part in "ab" if results.pieces(part)]
    of_each = "; ".join(
        f"{plan['models']} {plan['network']} of each kind, {plan['records']:,} images of `{plan['data']}`"
        for plan in plans
    )
    return (
        f"`python -m lab compare --profile {results.PROFILE}`, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
        f"{' and '.join(sorted(places))}, {minutes:.0f} minutes: {of_each}. Seconds: "
        f"{' or '.join(sorted(clocks))}.\n"
    )


def worse() -> str:
    """Who is cheaper, and who more accurate, than we are: with a promise, and where core records leave."""
    kinds = {"stream": results.streams(), "public weights": results.publics()}
    kinds = {name: found for name, found in kinds.items() if found}
    names = [piece["method"] for piece in results.streams()]
    ours = {kind: [piece for piece in found if piece["method"] in OURS] for kind, found in kinds.items()}
    winners = {piece["method"] for kind, found in kinds.items() for piece in found if results.beats(piece, ours[kind])}
    rows = [["", *(f"{kind}: {what}" for kind in kinds for what in ("seconds", "accuracy"))]]
    for name in [*(name for name in names if name in winners and name not in OURS), *OURS]:
        mine = [piece for found in kinds.values() for piece in found if piece["method"] == name]
        rows.append([name, *(cell for piece in mine for cell in (seconds_of(piece), share(piece)))])
    below = results.rows(HEADS, results.sets()[0])
    seconds = {name: piece["request"]["seconds"] for name, piece in below.items()}
    again, kept = seconds[RETRAINING], max(ours["stream"], key=lambda piece: piece["kept"])
    quick = sorted((name for name in TECHNIQUES if seconds[name] < again), key=seconds.__getitem__)
    others = [piece for piece in results.streams() if piece["method"] not in OURS]
    less = [f"{piece['method']} {size(piece)}" for piece in others if piece["kept"] < kept["kept"]]
    lines = [table(rows)]
    if quick:
        told = ", ".join(f"{name} {seconds[name]:.2g}" for name in quick)
        lines.append(f"- Core records leave exactly in {again:.2g} s of training; not exactly: {told}.")
    if less:
        lines.append(f"- Kept in the stream: {', '.join(less)}; ours {size(kept)}.")
    return "\n".join([*lines, ""])


def promised() -> str:
    """Methods with a promise: in the stream, at its end, and on public weights."""
    found, plan = results.streams(), results.pieces("d")[0]["setting"]["plan"]
    some = [piece["method"] for piece in found if piece["timed"] < piece["requests"]]
    part = f" (the first {plan['timed']} timed of {'; '.join(some)})" if some else ""
    text = (
        f"{plan['requests']:,} requests for 1, 5 or 20 random records of {plan['records']:,}{part}; features come from "
        f"a network on a public tenth:\n\n{table([['', 'accuracy after', *FACTS], *map(facts, found)])}\n"
        f"A new fit has the same noise. {audits()}\n"
    )
    if mine := results.publics():
        plan = results.pieces("c")[0]["setting"]["plan"]
        rows = [[*facts(piece), f"{piece['fit']:.2g}"] for piece in mine]
        text += (
            f"\nPublic weights (EfficientNet), {plan['records']:,} images of `{plan['data']}`, {plan['seeds']} seeds, "
            f"single records:\n\n{table([['', 'accuracy', *FACTS, 'seconds of a fit'], *rows])}\n"
            "±: the spread over seeds.\n"
        )
    return text


FACTS = ("seconds", "kept", "furthest from a new fit", "fitted anew")


def facts(piece: Piece) -> list[str]:
    """A row of a method with a promise."""
    spread = f" ± {100 * piece['accuracy']['spread']:.1f}" if "spread" in piece["accuracy"] else ""
    away, anew = piece["from a new fit"], "" if piece["anew"] is None else f"{piece['anew']:,}/{piece['requests']:,}"
    return [
        piece["method"],
        share(piece) + spread,
        seconds_of(piece),
        size(piece),
        f"{away:.0e}" if away else "0",
        anew,
    ]


def audits() -> str:
    """What audits of the ends of the stream came to."""
    found = [piece for piece in results.pieces("d") if "words" in piece]
    strong = max(piece["power"] for piece in found)
    some = [f"{piece['method']} (p = {piece['p']:.2f})" for piece in found if piece["words"] == FOUND]
    little = ": they say little" if strong < WORTH else ""
    return (
        f"Audits by {found[0]['retrained']} retrained models find at most {strong:.0%} of models that kept "
        f"all{little}. Found: {', '.join(some) or 'nothing'}; one in {round(1 / ALPHA)} is by chance."
    )


def distances() -> str:
    """Techniques: how near to retraining, at what cost, and what became of a class."""
    names = results.sets()
    mine = {(use, name): results.rows(use, name) for use in USES for name in names}
    alone, below = (mine[use, names[0]] for use in USES)
    near: list[Column] = [(f"{SHORT[use]}: {name}", row, far) for (use, name), row in mine.items()]
    costs: list[Column] = [
        ("accuracy lost, alone", alone, loss), ("below", below, loss), ("seconds, alone", alone, cost),
        ("below", below, cost), ("tug of war", alone, tug), ("'unlearned' by MIA", alone, simple),
        ("U-LiRA", alone, told_apart), ("features, below", below, features),
    ]  # fmt: skip
    return (
        f"Core records leave a network alone, or one below our exact heads. KLoM, 95th percentile over records; in "
        f"brackets, of how many of {alone[NOTHING]['models']} models the audit finds. **Nearer** than nothing done, "
        f"_further_: {noise(alone)}.\n\n{table_of(near, list(alone))}\n{told(mine)}\n"
        f"{names[0].capitalize()}, as seconds in the figure; \\*: test accuracy changed, p < {LEVEL}, paired, Holm's "
        f"correction. Alone: tug of war (1 is as retraining), MIA, U-LiRA's true positives at 1% false; features, 0.5 "
        f"is guessing.\n\n{table_of(costs, list(alone))}\n{whole_class()}"
    )


SHORT = {ALONE: "alone", HEADS: "below"}


def noise(mine: Row) -> str:
    """How it is told who is nearer."""
    if "p" in mine[NOTHING]:
        return f"p < {LEVEL}, by swapping models, Holm's correction over techniques"
    return f"beyond noise, about {results.NOISE} of KLoM at {mine[NOTHING]['models']} models"


def told(mine: dict[tuple[str, str], Row]) -> str:
    """What distances came to."""
    lines = []
    for use in USES:
        ways = [results.moved(row) for (each, _), row in mine.items() if each == use]
        nearer, further = ([name for name in ways[0] if all(way[name] == sign for way in ways)] for sign in (-1, 1))
        every = " on every set" if len(ways) > 1 else ""
        lines.append(
            f"- {use.capitalize()}, nearer than nothing done{every}: {', '.join(nearer) or 'none'}; further: "
            f"{', '.join(further) or 'none'}."
        )
    below = {name: row for (use, name), row in mine.items() if use == HEADS}
    p = holm([results.chance(row[RETRAINING], row[NOTHING]) for row in below.values()])
    seen = [name for name, one in zip(below, p, strict=True) if one < LEVEL]
    first = mine[ALONE, results.sets()[0]]
    caught = [", ".join(str(results.caught(row[name])) for row in below.values()) for name in (NOTHING, RETRAINING)]
    lines += [
        f"- Below exact heads distance tells nothing done from retraining on {', '.join(seen) or 'no set'}; the audit "
        f"finds {caught[0]} against {caught[1]}.",
        f"- 'Unlearned' by MIA: nothing done {simple(first, NOTHING)}, retraining {simple(first, RETRAINING)}.",
    ]
    if TUNED in first:
        moves = ", ".join(f"{results.distance(mine[ALONE, name][TUNED]):.1f}" for name in results.sets())
        lines.append(f"- Training on by itself takes retrained models to {moves}, alone.")
    rows = [piece for row in mine.values() for piece in row.values()]
    if bad := [f"{piece['method']} {piece['diverged']}" for piece in rows if piece.get("diverged")]:
        lines.append(f"- Diverged models: {', '.join(bad)}.")
    return "\n".join([*lines, ""]) + larger()


def larger() -> str:
    """Beside fewer models, what the profile `paper` has of random records: with more models, of more records."""
    if results.PROFILE == "paper":
        return ""
    found = [piece for piece in results.pieces("a", "paper") if "klom" in piece]
    alone, below = ({piece["method"]: piece for piece in found if piece["use"] == use} for use in USES)
    bare, kept, left = alone[NOTHING], below[NOTHING], below[RETRAINING]
    mean = " against ".join(f"{piece['klom']['forgotten']['mean']:.2f}" for piece in (kept, left))
    return (
        f"- {kept['models']} models trained on {kept['setting']['plan']['records']:,} images show a trace below "
        f"exact heads: the audit finds {results.caught(kept)} where nothing was done (alone "
        f"{results.caught(bare)}), {results.caught(left)} of retraining; mean KLoM {mean}.\n"
    )


def whole_class() -> str:
    """What became of the techniques where a whole class was to be forgotten."""
    alone, below = (results.rows(use, CLASS) for use in USES)
    others = [name for name in alone if name not in (RETRAINING, TUNED)]
    full = sorted(results.distance(alone[name]) for name in others)
    tell = sorted(below[name]["features"]["auc"] for name in others)
    order = sorted(alone, key=lambda name: -fmean(alone[name]["tug of war"]))
    columns: list[Column] = [
        ("forgotten accuracy", alone, gone), ("tug of war", alone, tug), ("'unlearned' by MIA", alone, simple),
        (f"audit finds, of {alone[NOTHING]['models']}", alone, lambda row, name: str(results.caught(row[name]))),
    ]  # fmt: skip
    return (
        f"All {alone[NOTHING]['records']:,} records of a class, alone; in tug of war 1 is as retraining:\n\n"
        f"{table_of(columns, order)}\n"
        f"- KLoM is {full[0]:.1f} to {full[-1]:.1f} of at most {math.log(1.0 / EPSILON):.1f}, of retraining "
        f"{results.distance(alone[RETRAINING]):.1f}.\n"
        f"- Below exact heads the class has no head: KLoM is at most {max(map(results.distance, below.values())):.1f}. "
        f"Features: {tell[0]:.2f} to {tell[-1]:.2f}, retraining {features(below, RETRAINING)}.\n"
    )


def network() -> str:
    """The best techniques on a larger network."""
    if not results.measured("b"):
        return ""
    plan, (name,) = results.pieces("b")[0]["setting"]["plan"], results.sets("b")
    alone, below = (results.rows(use, name, "b") for use in USES)
    columns = [("KLoM alone", alone, far), ("below", below, far), ("accuracy lost, alone", alone, loss),
               ("seconds", alone, cost)]  # fmt: skip
    return (
        f"\nThe best {plan['best']} with {plan['models']} {plan['network']} on {plan['records']:,} images of "
        f"`{plan['data']}`, {name}:\n\n{table_of(columns, list(alone))}"
    )


# Cells


def far(row: Row, name: str) -> str:
    """The distance, marked by who is nearer, and how many models the audit finds."""
    mark = MARKS[results.moved(row).get(name, 0)]
    return f"{mark}{results.distance(row[name]):.1f}{mark} ({results.caught(row[name])})"


def loss(row: Row, name: str) -> str:
    """The test accuracy lost, in points, and whether by chance."""
    if name not in (found := results.lost(row)):
        return "–"
    return f"{round(100 * found[name][0], 1) + 0.0:+.1f}" + ("\\*" if found[name][1] < LEVEL else "")


def cost(row: Row, name: str) -> str:
    """Seconds of a request."""
    seconds = row[name]["request"]["seconds"]
    return f"{seconds:.2g}" if seconds >= 0.001 else "0"


def tug(row: Row, name: str) -> str:
    """The tug of war."""
    return f"{fmean(row[name]['tug of war']):.2f}"


def gone(row: Row, name: str) -> str:
    """The accuracy on forgotten records."""
    return f"{fmean(row[name]['accuracy']['forgotten']):.2f}"


def simple(row: Row, name: str) -> str:
    """The share of the forgotten records that the simple attack calls unlearned."""
    return f"{fmean(row[name]['claimed unlearned']):.0%}"


def told_apart(row: Row, name: str) -> str:
    """How many of its answers are told from retraining's, where one in a hundred of those is mistaken."""
    return f"{row[name]['u-lira']['tpr at 1 % fpr']:.0%}"


def features(row: Row, name: str) -> str:
    """How well the attack on features tells."""
    return f"{row[name]['features']['auc']:.2f}"


def table_of(columns: Sequence[Column], names: Sequence[str]) -> str:
    """A table with a row for each technique."""
    rows = [[name, *(show(row, name) for _, row, show in columns)] for name in names]
    return table([["", *(title for title, _, _ in columns)], *rows])


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    lines = [f"|{'|'.join(row)}|\n" for row in rows]
    return lines[0] + f"|---|{'---:|' * (len(rows[0]) - 1)}\n" + "".join(lines[1:])


def tried() -> str:
    """What was tried of each technique, on what, and what was chosen; and of methods with a promise."""
    chosen = {(part, piece["use"], piece["method"]): setting_of(piece["chosen"]) or "usual"
              for part in "ab" for piece in results.pieces(part) if "tried" in piece}  # fmt: skip
    kinds = list(dict.fromkeys(kind[:2] for kind in chosen))
    plan, place = PROFILES[results.PROFILE].a, torch.device("cpu")
    aside = Study("a", plan, 0, place, Pieces(results.ROOT, {}, place)).to_tune
    rows = [["", *(f"{SHORT[use]}{', larger' if part == 'b' else ''}" for part, use in kinds)]]
    rows += [[name, *(chosen.get((*kind, name), "") for kind in kinds)] for name in TECHNIQUES]
    promises = [f"{piece['method']} {len(piece['tried'])}" for piece in results.pieces("d") if "tried" in piece]
    return (
        f"Each got {plan.tries} settings, usual values (not always its paper's) first, judged by {plan.tuned} models "
        f"on {len(aside)} records forgotten for that and {plan.validation} held back. Chosen:\n\n{table(rows)}\n"
        f"With a promise, judged by accuracy on a tenth of the records: {', '.join(promises)}.\n"
    )


def setting_of(settings: Piece) -> str:
    """Settings in words."""
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def share(piece: Piece) -> str:
    """The accuracy that a method ends with."""
    return f"{results.accuracy_of(piece):.1%}"


def seconds_of(piece: Piece) -> str:
    """Seconds of a request."""
    return f"{piece['seconds']:.2g}"


def size(piece: Piece) -> str:
    """What is kept for requests, in megabytes."""
    return f"{piece['kept'] / 1e6:.2g} MB"


BLOCKS: dict[str, Callable[[], str]] = {
    "made": made, "worse": worse, "promised": promised, "distances": distances, "network": network, "tried": tried,
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

    techniques: dict[str, list[Piece]] = {}
    for part, title in (("a", "{}"), ("b", "larger, {}")):
        for name in results.sets(part):
            found = [piece for piece in results.measured(part) if piece["forget set"] == name]
            techniques |= {title.format(name): found} if found else {}
    promises = {"promise: a stream": results.streams(), "promise: public weights": results.publics()}
    with look():
        figure = figure_of(techniques, {title: found for title, found in promises.items() if found})
        figure.savefig(FIGURE, dpi=160, metadata={"Software": None})


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()
