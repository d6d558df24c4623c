"""The page of a reproduction. Its prose is in `templates/reproduction.html.jinja`; here numbers are put into words."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping

from maxrr.paper.counting import SEVERAL, counted, groups, verdicts
from maxrr.paper.figures.names import DATA, Json, profile, readable
from maxrr.paper.figures.verdicts import MARKS, SIGNS
from maxrr.report.page import render
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


def reproduction_page(results: Mapping[str, Json], figures: Mapping[str, str]) -> str:
    """One self-contained HTML page.

    Parameters
    ----------
    results
        What the result files hold, by the names of their parts.
    figures
        SVG by the names of parts; a part may have none.
    """
    found = counted(results)
    contents = list(results.values())
    return render(
        __package__,
        "reproduction.html.jinja",
        results=results,
        figures={part: as_image(svg) for part, svg in figures.items()},
        headline=headline(results),
        compared=bool(found.keys() - {None}),
        counted=found,
        some_stand_beside_one=any(verdicts([results[part]]).keys() - {None} for part in SEVERAL if part in results),
        numbers=sum(verdicts(contents).values()),
        summary=list(summary(results)),
        settings=dict.fromkeys(setting_text(content) for content in contents if "setting" in content),
        made=made([piece for content in contents for piece in content.get("made", {}).values()]),
        missing=MISSING,
        marks=MARKS,
        signs=SIGNS,
        cell_text=cell_text,
        columns_of=columns_of,
        is_share=is_share,
        readable=readable,
        titled=titled,
    )


def as_image(svg: str) -> str:
    """A figure as the source of an image: its names and its style stay its own."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


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


def summary(results: Mapping[str, Json]) -> Iterator[tuple[str, str, Counter[str | None]]]:
    """A line for each part, or for each reading of it: title, runs, and how many numbers got which verdict."""
    for part, content in results.items():
        for reading, cells in groups(content).items():
            title = ", ".join(filter(None, (titled(part, content), reading)))
            yield title, str(content.get("runs", MISSING)), Counter(cell["verdict"] for cell in cells)


def titled(part: str, content: Json) -> str:
    """The title of a part; with its data, where the part is named after them."""
    data = str(profile(content).get("data", ""))
    title = str(content.get("title", part))
    return f"{title}, {DATA.get(data, data)}" if data and part.endswith(f"-{data}") else title


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
