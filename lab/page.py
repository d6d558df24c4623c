"""The page of a reproduction. Its prose is in `templates/reproduction.html.jinja`; here numbers are put into words."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping

from lab.cells import MARKS, MISSING, SIGNS, cell_text, count_for_headline, count_verdicts, groups
from lab.names import DATA, profile, readable
from lab.parts import TABLE, UNKNOWN, Json, kind_of, part_of
from lab.rule import LEVEL, MARGINS, POINTS, RELATIVE
from maxrr.report.page import render
from maxrr.report.words import count, listed

PAPERS_DATA = "fashion-mnist"


def reproduction_page(results: Mapping[str, Json], figures: Mapping[str, str]) -> str:
    """One self-contained HTML page.

    Parameters
    ----------
    results
        What the result files hold, by the names of their parts.
    figures
        SVG by the names of parts; a part may have none.

    Returns
    -------
    str
        The page, with its style and figures inside.
    """
    found = count_for_headline(results)
    contents = list(results.values())
    return render(
        __package__,
        "reproduction.html.jinja",
        results=results,
        figures={part: as_image(svg) for part, svg in figures.items()},
        headline=headline(results),
        compared=bool(found.keys() - {None}),
        counted=found,
        some_stand_beside_one=any(
            count_verdicts([content]).keys() - {None}
            for name, content in results.items()
            if TABLE.get(name, UNKNOWN).alternatives
        ),
        numbers=sum(count_verdicts(contents).values()),
        summary=list(summary(results)),
        settings=dict.fromkeys(setting_text(content) for content in contents if "setting" in content),
        made=made([piece for content in contents for piece in content.get("made", {}).values()]),
        missing=MISSING,
        marks=MARKS,
        signs=SIGNS,
        relative=RELATIVE,
        points=POINTS,
        margins=MARGINS,
        interval=1.0 - 2.0 * LEVEL,
        cell_text=cell_text,
        columns_of=columns_of,
        kind_of=kind_of,
        readable=readable,
        title_of=title_of,
        words_of=words_of,
    )


def as_image(svg: str) -> str:
    """A figure as the source of an image: its names and its style stay its own."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


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


def summary(results: Mapping[str, Json]) -> Iterator[tuple[str, str, Counter[str | None]]]:
    """A line for each part, or for each reading of it: title, runs, and how many numbers got which verdict."""
    for part, content in results.items():
        for reading, cells in groups(content).items():
            title = ", ".join(filter(None, (title_of(part, content), reading)))
            yield title, str(content.get("runs", MISSING)), Counter(cell["verdict"] for cell in cells)


def title_of(part: str, content: Json) -> str:
    """The title of a part; with its data, where the part is named after them."""
    data = str(profile(content).get("data", ""))
    title = str(content.get("title", part))
    return f"{title}, {DATA.get(data, data)}" if data and part.endswith(f"-{data}") else title


def words_of(content: Json) -> tuple[str, str]:
    """What a part asks, and how its figure is read."""
    part = part_of(content)
    return part.elsewhere.get(str(profile(content).get("data")), (part.lead, part.caption))


def columns_of(content: Json) -> list[str]:
    """The columns that occur in any row of a part."""
    return list(dict.fromkeys(column for row in content["cells"].values() for column in row))


# How it came about


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
    return ", ".join(facts)


def made(pieces: list[Json]) -> dict[str, str]:
    """When, on what and with which versions; pieces may differ, so all that occur are named. Empty without pieces."""
    found: dict[str, list[str]] = {}
    for piece in pieces:
        for name, value in piece.items():
            if name != "seconds" and str(value) not in found.setdefault(name, []):
                found[name].append(str(value))
    if not found:
        return {}
    told = {name: listed(sorted(values)) for name, values in found.items()}
    where = {name: told.pop(name, MISSING) for name in ("date", "device", "machine")}
    return where | {"versions": listed([f"{name} {versions}" for name, versions in told.items()])}
