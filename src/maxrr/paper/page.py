"""The page of a reproduction: each number with its standard error, the paper's beside it, and a verdict."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping

from maxrr.paper.cells import MARKS, MISSING, SIGNS, cell_text, count_for_headline, count_verdicts, groups
from maxrr.paper.names import DATA, profile, readable
from maxrr.paper.parts import TABLE, UNKNOWN, Json, Kind, kind_of, part_of
from maxrr.report.markup import Html, tag, together
from maxrr.report.page import figure, hero, page, paragraphs, section, table
from maxrr.report.words import count, listed

PAPERS_DATA = "fashion-mnist"
STYLES = {"agrees": "good", "near": "near", "differs": "bad"}


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


def badge(verdict: str, cell: Json) -> Html:
    """A verdict by its sign and its word, and what the equivalence test says."""
    if verdict not in SIGNS:
        return together(verdict)
    sign = tag("span", SIGNS[verdict], class_="sign", aria_hidden="true")
    tested = cell.get("equivalence")
    said = [" ", tag("span", MARKS[tested], title=tested)] if tested in MARKS else []
    return tag("span", tag("span", sign, verdict, class_=STYLES[verdict]), *said)


# All numbers


def headline(results: Mapping[str, Json]) -> str:
    """What came out, in one sentence."""
    found = count_for_headline(results)
    agree, near, differ = (found[verdict] for verdict in SIGNS)
    total = agree + near + differ
    if not total:
        if count_verdicts(results.values()).keys() - {None}:
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
    found = count_for_headline(results)
    if not found.keys() - {None}:
        numbers = sum(count_verdicts(results.values()).values())
        lead = (
            "Each is a mean over runs with its standard error. They show that everything runs, and what it gives here."
        )
        facts = [(f"{numbers:,}", "numbers"), (f"{len(results)}", "parts")]
        return hero(f"{headline(results)}.", lead, facts)
    lead = (
        "Every number is a mean over runs with its standard error. Beside it stands what the paper gives. What "
        "stands in several cells is counted once."
    )
    if any(
        count_verdicts([content]).keys() - {None}
        for name, content in results.items()
        if TABLE.get(name, UNKNOWN).alternatives
    ):
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
            title = ", ".join(filter(None, (title_of(part, content), reading)))
            rows.append((title, str(content.get("runs", MISSING)), *told))
    headings = ("part", "runs", *(f"{sign} {verdict}" for verdict, sign in SIGNS.items()), "not in the paper")
    return section(
        "What was measured",
        f"{count(len(results), 'part')}, and how many numbers of each agree with the paper.",
        tag("div", table(headings, rows, "Parts with their numbers of verdicts"), class_="cells"),
    )


def title_of(part: str, content: Json) -> str:
    """The title of a part; with its data, where the part is named after them."""
    data = str(profile(content).get("data", ""))
    title = str(content.get("title", part))
    return f"{title}, {DATA.get(data, data)}" if data and part.endswith(f"-{data}") else title


# A part


def part_section(part: str, content: Json, svg: str | None) -> Html:
    """Its figure, and a table of its numbers."""
    about = part_of(content)
    lead, caption = about.elsewhere.get(str(profile(content).get("data")), (about.lead, about.caption))
    title = title_of(part, content)
    drawn = [drawing(title, caption, svg)] if svg else []
    numbers = [tag("div", numbers_of(content, title), class_="cells")] if content.get("cells") else []
    return section(title, lead, *drawn, *numbers)


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
            *told, verdict = cell_text(row[column], kind_of(row[column], column, content))
            rows.append((readable(name, content), *told, badge(verdict, row[column])))
        return table((column, "ours", "the paper's", "difference", "verdict"), rows, title)
    grid = [
        (
            readable(name, content),
            *(
                show_cell(row[column], kind_of(row[column], column, content)) if column in row else MISSING
                for column in columns
            ),
        )
        for name, row in cells.items()
    ]
    return table(("", *(readable(column, content) for column in columns)), grid, title)


def show_cell(cell: Json, kind: Kind) -> Html:
    """A cell of a table, a line for each of its parts; ours alone where the paper has nothing."""
    ours, paper, difference, verdict = cell_text(cell, kind)
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
