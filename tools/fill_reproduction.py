"""Put the numbers of results/ into lab/reproduction.md: `python tools/fill_reproduction.py`.

A table stands between two comments, of which the first says what it is made from:

    <!-- grid svc/table -->
    …
    <!-- end -->

The words after `grid` or `lines` are a result file and, of `lines`, the rows wanted if not all, with ; between them.
`differences` is made from a file of the study core-choice. Each table of `OWN` has a function of its own. A table of
one of the `READINGS` says which it is.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from lab import published
from lab.cells import MARKS, MISSING, SIGNS, cell_text, groups
from lab.names import readable
from lab.parts import Kind, kind_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "lab" / "reproduction.md"
REQUEST = ROOT / "benchmarks" / "shards_request.json"
TABLE = re.compile(r"(<!-- (grid|lines|differences) (\S+)(?: ([^\n]*?))? -->\n).*?(<!-- end -->)", flags=re.DOTALL)
END = "<!-- end -->"
PROFILES = ("paper", "svc")
READINGS = ("reading-one", "reading-rest")
PROBABILITIES = {  # ways from scores to probabilities, by the scheme of the heads; the first is what the library does
    "one-vs-rest": {
        "retained": "one sigmoid per class, fitted to the retained records, divided by their sum",
        "everything": "the same, fitted to all training records, forgotten ones among them",
        "test": "the same, fitted to the test records",
        "unnormalised": "as 'retained', but not divided by their sum",
        "softmax": "of the scores themselves, without sigmoids",
    },
    "one-vs-one": {  # its pairs are coupled, so there is nothing to leave out
        "retained": "one sigmoid per pair, fitted to the retained records, coupled",
        "everything": "the same, fitted to all training records, forgotten ones among them",
    },
}
WORDS = {"agrees": "agree", "near": "near", "differs": "differ"}


def fill(text: str) -> str:
    """The page with the numbers that the result files have now."""
    for name, make in OWN.items():
        start, rest = text.split(f"<!-- {name} -->\n")
        text = f"{start}<!-- {name} -->\n{make()}{rest[rest.index(END) :]}"
    return TABLE.sub(lambda found: f"{found[1]}{make_table(found[2], found[3], found[4])}{found[5]}", text)


def make_table(kind: str, name: str, wanted: str | None) -> str:
    """One table."""
    content = read(name)
    caption = f"{reading_of(content)}, {content['runs']} runs:\n\n" if name.partition("/")[0] in READINGS else ""
    if kind == "grid":
        return caption + markdown_grid(content) + "\n"
    if kind == "differences":
        return differences(content)
    return caption + markdown_lines(content, *(word.strip() for word in (wanted or "").split(";") if word)) + "\n"


def reading_of(content: dict[str, Any]) -> str:
    """What a result was measured with, in words."""
    profile = content["setting"]["profile"]
    recipe, pixels = profile["recipe"], profile.get("pixels", "divided")
    words = f"{profile['heads']}, {recipe['epochs']} epochs, batches of {recipe['batch_size']}, {pixels} pixels"
    return words.capitalize()


def markdown_lines(content: dict[str, Any], *wanted: str) -> str:
    """One line per number: ours, the paper's, the difference, the verdict. Of some rows only, if they are named."""
    lines = ["| | ours | the paper's | difference | |", "|---|---:|---:|---:|---|"]
    for name, row in content["cells"].items():
        for column, cell in row.items():
            if wanted and name not in wanted:
                continue
            *numbers, verdict = cell_text(cell, kind_of(cell, column, content))
            what = name if len(row) == 1 else f"{readable(name, content)}: {readable(column, content)}"
            lines.append(f"| {what} | {' | '.join(numbers)} | {sign_and_word(verdict, cell)} |")
    return "\n".join(lines)


def markdown_grid(content: dict[str, Any]) -> str:
    """Rows and columns as the part has them; a cell holds ours, below it the paper's, difference, verdict."""
    cells = content["cells"]
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    lines = [
        f"| | {' | '.join(readable(column, content) for column in columns)} |", f"|---|{'---:|' * len(columns)}"
    ]  # fmt: skip
    for name, row in cells.items():
        told = [
            show_cell(row[column], kind_of(row[column], column, content)) if column in row else MISSING
            for column in columns
        ]
        lines.append(f"| {readable(name, content)} | {' | '.join(told)} |")
    return "\n".join(lines)


def show_cell(cell: dict[str, Any], kind: Kind) -> str:
    """A cell in one or two lines."""
    ours, paper, difference, verdict = cell_text(cell, kind)
    return ours if cell["paper"] is None else f"{ours}<br>{paper} ({difference}) {SIGNS[verdict]} {mark(cell)}".rstrip()


def sign_and_word(verdict: str, cell: dict[str, Any]) -> str:
    """A verdict with its sign, and what the equivalence test says."""
    return f"{SIGNS[verdict]} {verdict} {mark(cell)}".rstrip() if verdict in SIGNS else ""


def mark(cell: dict[str, Any]) -> str:
    """Of the equivalence test; nothing where there was none."""
    return MARKS.get(str(cell.get("equivalence")), "")


def differences(content: dict[str, Any]) -> str:
    """How far the chosen middle is ahead of the other cores, in points, with p-values corrected over all of them."""
    lines = ["| lead over | accuracy | t | corrected p | free | t | corrected p |", f"|---|{'---:|' * 6}"]
    rows: dict[str, list[str]] = {}
    for one in content["differences"]:
        t = "–" if one["t"] is None else f"{one['t']:.1f}".replace("-", "−")
        points = f"{signed(100 * one['mean'])} ± {100 * one['stderr']:.2f}"
        p = "< 0.0001" if one["holm"] < 1e-4 else f"{one['holm']:.4f}"
        rows.setdefault(f"{one['over']}, {one['k']:,}", []).extend((points, t, p))
    return "\n".join([*lines, *(f"| {name} | {' | '.join(told)} |" for name, told in rows.items())]) + "\n"


def seconds() -> str:
    """How long each way to refit takes."""
    content = read("paper/refit")
    ways = list(next(iter(content["seconds"].values())))
    lines = [f"| | {' | '.join(ways)} |", f"|---|{'---:|' * len(ways)}"]
    for name, found in content["seconds"].items():
        lines.append(f"| {readable(name, content)} | {' | '.join(f'{median(found[way]):.2f}' for way in ways)} |")
    return "\n".join(lines) + "\n"


def variants() -> str:
    """The ways to probabilities of both kinds of SVM, by what becomes of the paper's first verification figure."""
    lines = ["| SVMs | probabilities | MaxRR | perfect |", "|---|---|---:|---:|"]
    for name in READINGS:
        content = read(f"{name}/verification")
        for variant, cells in content["variants"].items():
            shares = (
                f"{100 * cells[f'claimed in all runs, {method}']['mean']:.1f} %" for method in ("MaxRR", "perfect")
            )
            heads = content["setting"]["profile"]["heads"]
            lines.append(f"| {heads} | {PROBABILITIES[heads][variant]} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def control() -> str:
    """In how many rows of the positive control the attack sees the forgetting, and how well it does at best."""
    lines = []
    for name in PROFILES:
        content = read(f"{name}/control")
        found = Counter(content["seen"].values())
        right = {row: cells["told apart"]["mean"] for row, cells in content["cells"].items()}
        best = max(right, key=lambda row: right[row])
        told = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
        lines.append(
            f"- {content['setting']['profile']['heads']}, {content['runs']} runs: {told}, of {len(right)}. At best "
            f"{100 * right[best]:.1f} % are told apart ({readable(best, content)})."
        )
    return "\n".join(lines) + "\n"


def scores() -> str:
    """The score of every reading; the best of each kind of SVM in bold, those within its noise in italics."""
    content = read("paper/readings")
    rows: dict[str, dict[str, str]] = {}
    for name, one in content["scores"].items():
        pixels, batches, heads, epochs = name.split(", ")
        best = name == content["best"][heads]["name"]
        sign = "**" if best else "*" if one["within_noise"] else ""
        rows.setdefault(f"{heads}, {pixels}, {batches}", {})[epochs] = (
            f"{sign}{one['score']:.1f} ± {one['stderr']:.1f}{sign}"
        )
    columns = list(next(iter(rows.values())))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(rows[name][column] for column in columns)} |" for name in sorted(rows)]
    return "\n".join(lines) + "\n"


def plateaus() -> str:
    """How far our curves of agreement are from the paper's points of 80 to 95 %, taken for so many runs."""
    ways = [(curve, words, shift) for curve, words in (("ours", "same"), ("counts", "as often")) for shift in (0, 1)]
    columns = [f"{words}, {16 + shift} to {19 + shift} runs" for _, words, shift in ways]
    lines = [f"| SVMs | forgotten | {' | '.join(columns)} |", f"|---|---|{'---:|' * len(ways)}"]
    for name in READINGS:
        content = read(f"{name}/agreement")
        for request, curve in content["share_with_the_same_verdict"].items():
            papers = curve["paper"]["shares"][16:20]
            told = [
                f"{100 * fmean(abs(a - b) for a, b in zip(curve[which][16 + shift :], papers, strict=False)):.1f}"
                for which, _, shift in ways
            ]
            heads = content["setting"]["profile"]["heads"]
            lines.append(f"| {heads} | {readable(request, content)} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def tally() -> str:
    """How many numbers agree, are near, or differ, and how many are equivalent; each counted once."""
    names = [*READINGS, "paper"]
    told = [f"{reading_of(read(f'{name}/table'))} | within the margin" for name in names]
    lines = [f"| | {' | '.join(told)} |", f"|---|{'---|---|' * len(names)}"]
    for part in ("histogram", "coverage", "table", "verification", "agreement"):
        title, found = read(f"paper/{part}")["title"], [groups(read(f"{name}/{part}")) for name in names]
        for reading in found[0]:
            told = [text for one in found for text in (outcomes(one[reading]), margins(one[reading]))]
            lines.append(f"| {', '.join(filter(None, (title, reading)))} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def outcomes(cells: list[dict[str, Any]]) -> str:
    """Verdicts in numbers."""
    found = Counter(cell["verdict"] for cell in cells)
    return ", ".join(f"{found[verdict]} {plural}" for verdict, plural in WORDS.items() if found[verdict])


def margins(cells: list[dict[str, Any]]) -> str:
    """What the equivalence tests say, in numbers."""
    found = Counter(cell["equivalence"] for cell in cells)
    return ", ".join(f"{found[outcome]} {mark}" for outcome, mark in MARKS.items() if found[outcome])


def losses() -> str:
    """What unlearning costs, in points of accuracy, paired by run."""
    lines = ["| | the paper | one-vs-one | one-vs-rest |", "|---|---:|---:|---:|"]
    papers = published.table()
    for words, after, before in LOSSES:
        theirs = 100 * (papers[after[0]][after[1]] - papers[before[0]][before[1]])
        ours = [paired(accuracies(name, *after), accuracies(name, *before)) for name in READINGS]
        lines.append(f"| {words} | {signed(theirs)} | {' | '.join(ours)} |")
    return "\n".join(lines) + "\n"


def accuracies(profile: str, row: str, column: str) -> list[float]:
    """Of every run of the table."""
    pieces = read(f"{profile}/table")["pieces"]
    found: list[float] = pieces["No and SVM"]["No"] if row == "No" else pieces[column][row]
    return found


def leads() -> str:
    """How much more accurate models with the middle core are than those with another, in points, paired by seed."""
    content = read("paper/frontier")
    sizes, pieces = content["setting"]["profile"]["cores"], content["pieces"]
    selectors = dict.fromkeys(point["selector"] for point in content["points"] if point["selector"] != "middle")
    lines = [f"| lead over | {' | '.join(f'{k:,}' for k in sizes)} |", f"|---|{'---:|' * len(sizes)}"]
    for name in selectors:
        told = [paired(pieces[f"middle {k}"]["accuracy"], pieces[f"{name} {k}"]["accuracy"]) for k in sizes]
        lines.append(f"| {name} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def core_epochs() -> str:
    """How far the middle core leads the paper's after each length of training, and what the rule makes of it."""
    lines = [
        "| epochs | lead in accuracy, 90 % interval | of each ranking | | lead in free records |",
        "|---:|---:|---|---|---:|",
    ]
    for epochs, one in read("paper/core-epochs")["leads"].items():
        rankings = ", ".join(signed(100 * lead) for lead in one["accuracy"]["rankings"])
        lines.append(
            f"| {epochs} | {interval(one['accuracy'])} | {rankings} | {one['outcome']} | {interval(one['free'])} |"
        )
    return "\n".join(lines) + "\n"


def interval(one: dict[str, Any], mean: str = "mean") -> str:
    """A difference in points, with its interval."""
    ends = (signed(100 * (one[mean] + side * one["reach"])) for side in (-1, 1))
    return f"{signed(100 * one[mean])} ({' to '.join(ends)})"


def shard_losses() -> str:
    """How much accuracy shards cost against one shard of the same core, in points, paired by seed."""
    pieces = read("paper/shards")["pieces"]
    found: dict[str, dict[int, list[float]]] = {}
    for name, piece in pieces.items():
        case = re.fullmatch(r"(\w+), S = (\d+), width 1, \d+ epochs", name)
        if case:
            found.setdefault(case[1], {})[int(case[2])] = piece["accuracy"]
    counts = sorted({count for of in found.values() for count in of} - {1})
    lines = [f"| core | {' | '.join(f'{count} shards' for count in counts)} |", f"|---|{'---:|' * len(counts)}"]
    for core, of in found.items():
        told = (paired(of[count], of[1]) if count in of else MISSING for count in counts)
        lines.append(f"| {core} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def shards_request() -> str:
    """Accuracy and seconds of the same models."""
    lines = [
        "| | epochs | seeds | accuracy | seconds, one core record | less one shard, falling rate | times as fast |",
        f"|---|{'---:|' * 6}",
    ]
    for name, one in json.loads(REQUEST.read_text(encoding="utf-8"))["summary"].items():
        reach = "" if one["reach"] is None else f" ± {one['reach']:.4f}"
        against = one.get("against")
        told = [interval(against, "gain"), f"{against['faster']:.1f}"] if against else [MISSING] * 2
        took = f"{one['request']:.0f} ({one['least']:.0f} to {one['most']:.0f})"
        facts = f"{one['epochs']} | {one['seeds']} | {one['accuracy']:.4f}{reach}"
        lines.append(f"| {name} | {facts} | {took} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def paired(ours: list[float], theirs: list[float]) -> str:
    """The mean difference in points, with its standard error."""
    points = [100 * (one - other) for one, other in zip(ours, theirs, strict=True)]
    return f"{signed(fmean(points))} ± {stdev(points) / len(points) ** 0.5:.2f}"


def signed(points: float) -> str:
    return f"{points:+.2f}".replace("-", "−")


def read(name: str) -> dict[str, Any]:
    """A result file."""
    found: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


LOSSES = (  # in words; the table's cell after, and before
    ("top 10k, from both", ("FE+SVM", "top10k"), ("No", "top10k")),
    ("top 20k, from both", ("FE+SVM", "top20k"), ("No", "top20k")),
    ("10k random after the top 10k, from both", ("FE+SVM", "top10k+random10k"), ("FE+SVM", "top10k")),
    ("10k random after the top 20k, from both", ("FE+SVM", "top20k+random10k"), ("FE+SVM", "top20k")),
    ("all but the top 20k, from both", ("FE+SVM", "nontop20k"), ("No", "nontop20k")),
    ("all but the top 20k, from the extractor", ("FE", "nontop20k"), ("No", "nontop20k")),
    ("all but the top 10k, from the extractor", ("FE", "nontop10k"), ("No", "nontop10k")),
)
OWN: dict[str, Callable[[], str]] = {
    "seconds": seconds, "variants": variants, "tally": tally, "losses": losses, "leads": leads, "control": control,
    "scores": scores, "plateaus": plateaus, "core-epochs": core_epochs,
    "shard-losses": shard_losses, "shards-request": shards_request,
}  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
