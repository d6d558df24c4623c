"""The page of a reproduction: each number with its standard error, the paper's beside it, and a verdict."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from maxrr.paper.counting import SEVERAL, counted, groups, verdicts
from maxrr.paper.figures.names import DATA, Json, profile, readable
from maxrr.paper.figures.verdicts import MARKS, SIGNS
from maxrr.report.markup import Html, tag, together
from maxrr.report.page import figure, hero, page, paragraphs, section, table
from maxrr.report.words import count, listed

PAPERS_DATA = "fashion-mnist"
SHARES = (
    "claimed",
    "told apart",
    "same in",
    "as often",
    "share",
    "overlap",
)  # words in the name of a quantity that is a share
MISSING = "–"
STYLES = {"agrees": "good", "near": "near", "differs": "bad"}


class About(NamedTuple):
    """What a part asks, and how its figure is read."""

    lead: str
    caption: str


FILLED = "Filled: ours, with two standard errors to either side. Hollow: the paper's."
PARTS = {
    "histogram": About(
        "A support vector shapes the model, and most records never are one. In how many of the runs are the others?",
        "Solid: ours. Dashed: the paper's. The scale of records is logarithmic.",
    ),
    "coverage": About(
        "Records that are core or influential cost work to forget. All others are forgotten for free.", ""
    ),
    "table": About(
        "Six sets of records are unlearned from the SVM, from the extractor (FE), from both, or from neither (No).",
        f"{FILLED} Its errors are assumed to be those of its row 'No'. A shaded panel has a wider scale.",
    ),
    "table-mnist": About(
        "The same six sets on MNIST, of which the paper only says that little changes.",
        "Our accuracies, with two standard errors to either side. A shaded panel has a wider scale.",
    ),
    "verification": About(
        "The paper's attack looks at every forgotten record. In how many of the runs does it claim that the record was "
        "unlearned, for MaxRR and for a model that never had it?",
        "Filled: ours. Hollow: the paper's. The scale of shares is logarithmic.",
    ),
    "agreement": About(
        "For how many of the forgotten records is the verdict about MaxRR the one about perfect retraining? Verdicts "
        "are compared run by run, as the paper says; and by how often a record is claimed unlearned over all runs, "
        "which its curve resembles more.",
        "Discs: ours, run by run. Squares: ours, over all runs. Hollow: the paper's.",
    ),
    "sensitivity": About(
        "Random support vectors are unlearned. The paper does not say which share of them, so there are several.",
        "Lines are ours, with two standard errors to either side; dashed levels are the paper's.",
    ),
    "refit": About(
        "The paper proposes to fit the head again to what is left of its support vectors. Beside that: a fit to all "
        "retained records, and a head that is moved from where it was and ends where this fit does.",
        "Accuracies with two standard errors to either side, and seconds on a logarithmic scale.",
    ),
    "frontier": About(
        "A core that spares more records may cost accuracy. Each way to select it has a mark of its own.",
        "Up is more accurate, to the right more records are forgotten for free. A shaded panel has a wider scale.",
    ),
    "core-choice": About(
        "A core that is chosen by the records it is reported on looks better than it is. This one was chosen on "
        "records held back from training, by a rule written down before, and then measured once on the test records.",
        "Up is more accurate, to the right more records are forgotten for free. Seeds are fresh.",
    ),
    "ranking-length": About(
        "A core from few runs, beside the core of the longest ranking: how many runs are enough?",
        "Overlap and accuracy by the number of runs, whose doublings are equally far apart.",
    ),
    "choices": About(
        "Where the paper leaves open how something was done, each reading of it gives numbers of its own.",
        "Filled: ours, with two standard errors to either side. Dashed: the paper's.",
    ),
    "svms": About(
        "The same networks under other SVMs: an SVM a class or a pair of classes, with three penalties C. What changes "
        "is the SVM's doing, not the training's.",
        "Filled: ours, with two standard errors to either side. Dashed: the paper's.",
    ),
    "members": About(
        "The attack needs members to choose its threshold by. Three sets of records can stand for them when 2,000 core "
        "records are forgotten, and verdicts agree more or less with each.",
        "",
    ),
    "control": About(
        "The paper's attack on the same records before and after they are forgotten. If it claims about as many "
        "unlearned before, its claims say nothing about forgetting. Told apart: how often 'claimed unlearned' means "
        "'after'; a coin has a half.",
        "Ours, with two standard errors to either side, by request and method.",
    ),
    "cross-validated": About(
        "Probabilities as scikit-learn's SVC has them: sigmoids fitted to scores of SVMs that did not see the record. "
        "The whole core is forgotten.",
        "",
    ),
    "matched": About(
        "Random support vectors are unlearned, as many records that are not influential, and as many at random.",
        "Accuracies and what they differ by, paired by run, with two standard errors to either side.",
    ),
    "more-runs": About("The largest request of the sensitivity, with as many runs as the paper's.", ""),
}  # fmt: skip


def reproduction_page(results: Mapping[str, Json], figures: Mapping[str, str]) -> str:
    """One self-contained HTML page.

    Parameters
    ----------
    results
        What the result files hold, by the names of their parts.
    figures
        SVG by the names of parts; a part may have none.
    """
    return page(
        f"MaxRR reproduction: {headline(results)}",
        "Reproduction of the paper",
        opening(results),
        summary(results),
        *(part_section(part, content, figures.get(part)) for part, content in results.items()),
        foot=foot(results.values()),
    )


# A number


def cell_text(cell: Json, share: bool = False) -> tuple[str, str, str, str]:
    """A cell in words: ours with its standard error, the paper's, the signed difference, the verdict.

    From 2 on it is a count. Below that it is an accuracy, unless it is said to be a share. Differences of ours are
    signed, those of shares in points.

    >>> cell_text({"mean": 0.8953, "stderr": 0.0004, "paper": 0.8971, "difference": -0.0018, "verdict": "agrees"})
    ('0.8953 ± 0.0004', '0.8971', '−0.0018', 'agrees')
    >>> cell_text({"mean": 24103.4, "stderr": None, "paper": None, "difference": None, "verdict": None})
    ('24,103', '–', '–', '–')
    >>> cell_text({"mean": -0.08, "stderr": 0.01, "paper": None, "difference": None, "signed": True}, share=True)[0]
    '−8.0 ± 1.0 points'
    """
    mean, stderr, paper, difference = (cell[name] for name in ("mean", "stderr", "paper", "difference"))
    scale, form, unit, units = 1.0, ".4f", "", ""
    if max(mean, paper or 0.0) >= 2.0:
        form = ",.0f"
    elif share:
        scale, form, unit, units = 100.0, ".1f", " %", " points"
    sign = "+" if cell.get("signed") else ""  # a difference of ours
    unit = units if sign else unit
    ours = (
        f"{scale * mean:{sign}{form}}".replace("-", "−")
        + ("" if stderr is None else f" ± {scale * stderr:{form}}")
        + unit
    )
    if paper is None:
        return ours, MISSING, MISSING, MISSING
    signed = f"{scale * difference:+{form}}".replace("-", "−")
    if not signed.strip("+−0."):
        signed = signed[1:]  # nothing has no sign
    return ours, f"{scale * paper:{form}}{unit}", f"{signed}{units}", str(cell["verdict"])


def badge(verdict: str, cell: Json) -> Html:
    """A verdict by its sign and its word, and what the equivalence test says."""
    if verdict not in SIGNS:
        return together(verdict)
    sign = tag("span", SIGNS[verdict], class_="sign", aria_hidden="true")
    tested = cell.get("equivalence")
    said = [" ", tag("span", MARKS[tested], title=tested)] if tested in MARKS else []
    return tag("span", tag("span", sign, verdict, class_=STYLES[verdict]), *said)


def is_share(row: str, column: str) -> bool:
    """Whether a quantity is read best in percent; accuracies are not: their third digit matters."""
    return any(word in name for word in SHARES for name in (row, column))


# All numbers


def headline(results: Mapping[str, Json]) -> str:
    """What came out, in one sentence."""
    found = counted(results)
    agree, near, differ = (found[verdict] for verdict in SIGNS)
    total = agree + near + differ
    if not total:
        if verdicts(results.values()).keys() - {None}:
            return "Several of our numbers stand beside one of the paper's: none is counted"
        if PAPERS_DATA in {profile(content).get("data") for content in results.values()}:
            return "The paper gives no numbers for what was measured here"
        return "The data are not the paper's: there is nothing to compare with"
    if agree == total:
        return f"All {total} numbers agree with the paper" if total > 1 else "The one number agrees with the paper"
    said = [f"{agree} of {count(total, 'number')} {'agrees' if agree == 1 else 'agree'} with the paper"]
    said += [f"{near} {'is' if near == 1 else 'are'} near"] if near else []
    said += [f"{differ} {'differs' if differ == 1 else 'differ'}"] if differ else []
    return ", ".join(said)


def opening(results: Mapping[str, Json]) -> Html:
    found = counted(results)
    if not found.keys() - {None}:
        numbers = sum(verdicts(results.values()).values())
        lead = (
            "Each is a mean over runs with its standard error. They show that everything runs, and what it gives here."
        )
        facts = [(f"{numbers:,}", "numbers"), (f"{len(results)}", "parts")]
        return hero(f"{headline(results)}.", lead, facts)
    lead = (
        "Every number is a mean over runs with its standard error. Beside it stands what the paper gives. What "
        "stands in several cells is counted once."
    )
    if any(verdicts([results[part]]).keys() - {None} for part in SEVERAL if part in results):
        lead += " Where several of ours stand beside one of the paper's, which leaves a choice open, none is counted."
    facts = [
        (f"{found['agrees']}", "agree: within twice the joint standard error"),
        (f"{found['near']}", "are near: within twice that"),
        (f"{found['differs']}", "differ"),
        (f"{found[None]}", "have no counterpart in the paper"),
    ]
    return hero(f"{headline(results)}.", lead, facts)


def summary(results: Mapping[str, Json]) -> Html:
    rows = []
    for part, content in results.items():
        for reading, cells in groups(content).items():
            found = Counter(cell["verdict"] for cell in cells)
            told = [str(found[verdict]) if found[verdict] else MISSING for verdict in (*SIGNS, None)]
            title = ", ".join(filter(None, (titled(part, content), reading)))
            rows.append((title, str(content.get("runs", MISSING)), *told))
    headings = ("part", "runs", *(f"{sign} {verdict}" for verdict, sign in SIGNS.items()), "not in the paper")
    return section(
        "What was measured",
        f"{count(len(results), 'part')}, and how many numbers of each agree with the paper.",
        tag("div", table(headings, rows, "Parts with their numbers of verdicts"), class_="cells"),
    )


def titled(part: str, content: Json) -> str:
    """The title of a part; with its data, where the part is named after them."""
    data = str(profile(content).get("data", ""))
    title = str(content.get("title", part))
    return f"{title}, {DATA.get(data, data)}" if data and part.endswith(f"-{data}") else title


# A part


def part_section(part: str, content: Json, svg: str | None) -> Html:
    """Its figure, and a table of its numbers."""
    about = PARTS.get(part) or PARTS.get(str(content.get("part")), About("", ""))
    title = titled(part, content)
    drawn = [drawing(title, about.caption, svg)] if svg else []
    numbers = [tag("div", numbers_of(content, title), class_="cells")] if content.get("cells") else []
    return section(title, about.lead, *drawn, *numbers)


def drawing(title: str, caption: str, svg: str) -> Html:
    """A figure as an image: its names and its style stay its own. It is on white, whatever the page is on."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    image = tag("img", src=source, alt=f"Figure: {title}. {caption}")
    return figure(caption, tag("div", image, class_="drawing"))


def numbers_of(content: Json, title: str) -> Html:
    """A line a number where all are of one kind; else rows and columns, as the part has them."""
    cells = content["cells"]
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    if len(columns) == 1:
        (column,) = columns
        rows = []
        for name, row in cells.items():
            *told, verdict = cell_text(row[column], is_share(name, column))
            rows.append((readable(name, content), *told, badge(verdict, row[column])))
        return table((column, "ours", "the paper's", "difference", "verdict"), rows, title)
    grid = [
        (
            readable(name, content),
            *(shown(row[column], is_share(name, column)) if column in row else MISSING for column in columns),
        )
        for name, row in cells.items()
    ]
    return table(("", *(readable(column, content) for column in columns)), grid, title)


def shown(cell: Json, share: bool) -> Html:
    """A cell of a table, a line for each of its parts; ours alone where the paper has nothing."""
    ours, paper, difference, verdict = cell_text(cell, share)
    lines = [tag("span", ours, class_="ours")]
    if cell["paper"] is not None:
        lines += [tag("span", f"paper {paper}"), tag("span", difference), tag("span", badge(verdict, cell))]
    return tag("span", *lines, class_="lines")


# How it came about


def foot(contents: Iterable[Json]) -> Html:
    """The rule, the settings, and all machines and versions that occur."""
    contents = list(contents)
    pieces = [piece for content in contents for piece in content.get("made", {}).values()]
    rule = (
        "Two numbers agree if they differ by no more than twice the joint standard error, theirs and ours together; up "
        "to twice that they are near, beyond it they differ. The paper gives no errors: its accuracies are taken to "
        "vary as its row 'No' does, its counts by 2.5 %, its shares by 2.5 points."
    )
    test = (
        "Beside it an equivalence test: ✓ if the 90 % interval of our mean lies within a margin around the number that "
        "the paper prints (0.01 of an accuracy, 10 % of a count, 5 points of a share), ✗ if all of it lies outside, "
        "else ?."
    )
    settings = dict.fromkeys(setting_text(content) for content in contents if "setting" in content)
    made = [text for text in [made_text(pieces)] if text]
    return together(
        paragraphs(rule, test, *settings, *made),
        paragraphs("The numbers of every run are in the JSON files of the results."),
    )


def setting_text(content: Json) -> str:
    """What the numbers of a part follow from."""
    found = profile(content)
    data = str(found.get("data", ""))
    facts = [f"profile '{found['name']}'"] if "name" in found else []
    facts += [f"data {DATA.get(data, data)}"] if data else []
    facts += [f"{found['heads']} SVMs"] if "heads" in found else []
    facts += [f"{count(found['ranked'], 'run')} of the ranking"] if "ranked" in found else []
    facts += [f"{found['runs']} of the table"] if "runs" in found else []
    facts += [f"{found['few']} of everything else"] if "few" in found else []
    facts += [f"{name.replace('_', ' ')} {value}" for name, value in found.get("recipe", {}).items()]
    facts.append(f"seed {content['setting'].get('seed', MISSING)}")
    return f"Setting: {', '.join(facts)}."


def made_text(pieces: list[Json]) -> str:
    """When, on what and with which versions; pieces may differ, so all that occur are named."""
    found: dict[str, list[str]] = {}
    for piece in pieces:
        for name, value in piece.items():
            if name != "seconds" and str(value) not in found.setdefault(name, []):
                found[name].append(str(value))
    told = {name: listed(sorted(values)) for name, values in found.items()}
    if not told:
        return ""
    start = f"Made on {told.pop('date', MISSING)}, on {told.pop('device', MISSING)} ({told.pop('machine', MISSING)})"
    return f"{start}, with {listed([f'{name} {versions}' for name, versions in told.items()])}."
