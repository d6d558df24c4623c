"""docs/compare.md says what results/compare/ holds: blocks are made from the files, and what they say is so."""

import json
import re

import pytest

from lab.compare.exact import CORE, FROZEN, METHODS
from lab.compare.networks import NOTHING, RETRAINING, TUNED
from lab.compare.questions import ALONE, HEADS, USES
from lab.compare.study import PROFILES
from lab.compare.techniques import TECHNIQUES
from maxrr.audit.findings import FOUND, WORTH
from tools import compare_pieces, fill_compare
from tools.compare_pieces import (
    CLASS,
    LEVEL,
    PROFILE,
    caught,
    chance,
    distance,
    lost,
    measured,
    moved,
    pieces,
    publics,
    rows,
    sets,
    streams,
)
from tools.fill_compare import FIGURE, PAGE, SHORT, distances, fill, larger, promised, worse

PLANS = PROFILES[PROFILE]
ROWS = {(use, name): rows(use, name) for use in USES for name in (*sets(), CLASS)}
SIGNS = {"**": -1, "": 0, "_": 1}


def tables(text):
    """The tables of a text, each as its rows by their first cell, cells by the heading of their column."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        head, _, *rows = [line[1:-1].split("|") for line in block.splitlines()]
        found.append({row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows})
    return found


def test_the_page_is_filled_from_the_files():
    text = PAGE.read_text(encoding="utf-8")
    assert fill(text) == text
    assert len(text.split()) <= 920
    assert FIGURE.exists()


def test_every_piece_says_how_it_was_made():
    found = [piece for part in "abcd" for piece in pieces(part)]
    assert found
    for piece in found:
        assert piece["made"]["command"] == f"python -m lab compare --profile {PROFILE} --part {piece['part']}"
        assert piece["setting"]["seed"] == 0
        assert piece["made"].keys() >= {"date", "machine", "device", "seconds", "torch"}


def test_all_are_there():
    for row in ROWS.values():
        assert row.keys() - {TUNED} == {*TECHNIQUES, RETRAINING, NOTHING}
        assert (TUNED in row) == (PROFILE == "paper")
        assert PROFILE == "quick" or all("p" in piece for piece in row.values())
    assert {piece["method"] for piece in streams()} == set(METHODS)
    if PLANS.c:
        assert {piece["method"] for piece in publics()} == set(METHODS)
    if PLANS.b:
        assert len({piece["method"] for piece in measured("b")} & set(TECHNIQUES)) == PLANS.b.best


def test_marks_in_the_table_are_what_the_pieces_say():
    """By bounds on Holm's correction: no p above the level is marked, and every p below a seventh of it."""
    near = tables(distances())[0]
    for (use, name), row in ROWS.items():
        for technique in TECHNIQUES if name != CLASS else ():
            mark, number, count = re.fullmatch(
                r"(\*\*|_|)(\d+\.\d)\1 \((\d+)\)", near[technique][f"{SHORT[use]}: {name}"]
            ).groups()
            away, p = distance(row[technique]) - distance(row[NOTHING]), chance(row[technique], row[NOTHING])
            assert SIGNS[mark] in (0, 1 if away > 0 else -1)
            assert p < LEVEL if mark else p >= LEVEL / len(TECHNIQUES)
            assert abs(float(number) - distance(row[technique])) <= 0.051
            assert int(count) == caught(row[technique])


@pytest.mark.parametrize("use", USES)
def test_who_is_said_to_be_nearer_or_further_is_marked_so_on_every_set(use):
    text = distances()
    (said,) = [line for line in text.splitlines() if line.startswith(f"- {use.capitalize()}, nearer")]
    nearer, further = re.fullmatch(r".*?: (.*); further: (.*)\.", said).groups()
    near = tables(text)[0]
    for names, mark in ((nearer, "**"), (further, "_")):
        cells = {name: [near[name][f"{SHORT[use]}: {each}"] for each in sets()] for name in TECHNIQUES}
        marked = {name for name in TECHNIQUES if all(cell.startswith(mark) for cell in cells[name])}
        assert marked == ({*names.split(", ")} - {"none"})


def test_where_distance_tells_below_exact_heads():
    (said,) = re.findall(r"distance tells nothing done from retraining on (.*); the", distances())
    for name in sets():
        p = chance(ROWS[HEADS, name][RETRAINING], ROWS[HEADS, name][NOTHING])
        assert p < LEVEL if name in said.split(", ") else p >= LEVEL / len(sets())


def test_below_exact_heads_more_models_show_a_trace():
    """What is said beside the profile `quick`."""
    if PROFILE == "paper":
        return
    found = [piece for piece in pieces("a", "paper") if piece.get("use") == HEADS and "klom" in piece]
    kept, left = ({piece["method"]: piece for piece in found}[name] for name in (NOTHING, RETRAINING))
    assert kept["models"] == left["models"] == 100
    assert caught(kept) > 5 * caught(left)
    assert kept["klom"]["forgotten"]["mean"] > left["klom"]["forgotten"]["mean"]
    assert f"show a trace below exact heads: the audit finds {caught(kept)} where nothing was done" in larger()


def test_accuracy_has_a_star_where_it_changed():
    cells = tables(distances())[1]
    for name, (_, p) in lost(ROWS[ALONE, sets()[0]]).items():
        assert cells[name]["accuracy lost, alone"].endswith("*") == (p < LEVEL)


def test_what_promises_bytes_has_them():
    for found in filter(None, (streams(), publics())):
        away = {piece["method"]: piece["from a new fit"] for piece in found}
        assert away[CORE] == away[FROZEN] == away["SISA"] == away["retraining"] == 0.0
        assert away["ridge head"] < 1e-9  # up to rounding
        assert away["certified removal"] < 1e-3  # beside a new fit under the same noise


def stream(method, taken, accuracy):
    return {"method": method, "seconds": taken, "accuracy": {"after": accuracy}, "kept": 9}


def test_who_beats_either_of_our_rows_is_listed(monkeypatch):
    made = [stream(FROZEN, 2.0, 0.8), stream(CORE, 4.0, 0.7), stream("SISA", 3.0, 0.6), stream("ridge head", 5.0, 0.75),
            stream("retraining", 5.0, 0.7)]  # fmt: skip
    monkeypatch.setattr(compare_pieces, "streams", lambda: made)
    monkeypatch.setattr(compare_pieces, "publics", list)
    rows = [line for line in worse().splitlines() if "%" in line]
    assert rows == ["|SISA|3|60.0%|", "|ridge head|5|75.0%|", f"|{FROZEN}|2|80.0%|", f"|{CORE}|4|70.0%|"]
    public = [stream(each["method"], 9.0, 0.1) for each in made]
    public[-1]["accuracy"]["after"] = 0.2
    monkeypatch.setattr(compare_pieces, "publics", lambda: public)
    assert "|retraining|5|70.0%|9|20.0%|" in worse().splitlines()


def test_audits_of_the_ends_are_said_as_they_are():
    audits, text = [piece for piece in pieces("d") if "words" in piece], promised()
    assert ("they say little" in text) == all(piece["power"] < WORTH for piece in audits)
    found = [f"{piece['method']} (p = {piece['p']:.2f})" for piece in audits if piece["words"] == FOUND]
    assert f"Found: {', '.join(found) or 'nothing'};" in text


def test_only_what_is_no_chance_after_correction_is_nearer():
    def piece(far, p):
        return {"klom": {"forgotten": {"95th": far}}, "p": p}

    row = {NOTHING: piece(2.0, 1.0), "CT": piece(3.0, 0.01), "MSG": piece(1.0, 0.02), "SCRUB": piece(1.0, 0.06),
           RETRAINING: piece(0.0, 0.005)}  # fmt: skip
    assert moved(row) == {"CT": 1, "MSG": -1, "SCRUB": 0}
    row["SCRUB"] = piece(1.0, 0.04)
    row["MSG"] = piece(1.0, 0.03)  # twice that is above the level
    assert moved(row) == {"CT": 1, "MSG": 0, "SCRUB": 0}


def as_paper():
    """Pieces of the profile `paper`, made from those of another: only to see that the page shows them."""
    plan = PROFILES["paper"]
    a = [piece for piece in pieces("a") if piece.get("forget set", sets()[0]) == sets()[0]]
    for name in (*plan.a.forget, *plan.b.forget):
        part = "a" if name in plan.a.forget else "b"
        for piece in a:
            if part == "a" or piece["method"] in (RETRAINING, NOTHING, "CT", "MSG", "SCRUB"):
                yield part, {**piece, "forget set": name, "p": 0.005}
    for piece in streams():
        yield "d", piece
        single = {**piece, "accuracy": piece["accuracy"]["after"], "requests": [1.0, 2.0, 3.0]}
        del single["of the stream"]
        for seed in range(plan.c.seeds):
            yield "c", {**single, "seed": seed, "accuracy": single["accuracy"] + 0.01 * seed}
    for piece in pieces("d"):
        if "words" in piece:
            yield "d", piece


def test_the_page_shows_all_parts_of_the_paper_profile(monkeypatch, tmp_path):
    folder = tmp_path / "results" / "compare" / "paper"
    folder.mkdir(parents=True)
    plans = {part: json.loads(json.dumps(PROFILES["paper"].setting(part, 0))) for part in "abcd"}
    for number, (part, piece) in enumerate(as_paper()):
        content = {**piece, "part": part, "setting": plans[part]}
        (folder / f"{part}-{number}.json").write_text(json.dumps(content), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(compare_pieces, "ROOT", tmp_path)
    monkeypatch.setattr(compare_pieces, "PROFILE", "paper")
    monkeypatch.setattr(fill_compare, "FIGURE", tmp_path / "figure.png")
    filled = fill(text)
    near = next(table for table in tables(filled) if "alone: memorised 200" in table.get("CT", ()))
    assert [*near["CT"]] == [f"{use}: {name}" for use in ("alone", "below") for name in sets()]
    larger = PROFILES["paper"].b
    assert f"The best {larger.best} with {larger.models} {larger.network}" in filled
    assert "5 seeds" in filled
    assert "± 1.6" in filled  # percent points between five seeds, a hundredth each apart
    fill_compare.draw()
    assert (tmp_path / "figure.png").stat().st_size > 10_000
