"""The README and the pages in docs are true: their Python runs, their links lead somewhere, their commands exist."""

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from maxrr.audit.attacks import interval
from tests.small_networks import here  # noqa: F401

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md", ROOT / "lab" / "reproduction.md", *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[gs]*/*.md")),
]  # fmt: skip
LONG = ("specifications/audit", "specifications/cluster", "guides/serving", "guides/own-training")  # many networks


def name_of(page: Path) -> str:
    return f"{page.parent.name}/{page.stem}"


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def read_json(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def run_python(page: Path) -> None:
    """All blocks of a page, from top to bottom: a later one may use what an earlier one made."""
    exec(compile("\n".join(blocks(page, "python")), page.name, "exec"), {})


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=name_of(page), marks=[pytest.mark.long] * (name_of(page) in LONG)) for page in PAGES],
)
def test_python_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if (beside := page.with_suffix("")).is_dir():  # files that the page speaks of
        shutil.copytree(beside, tmp_path, dirs_exist_ok=True)
    if page.name != "README.md":
        request.getfixturevalue("here")  # one replay in a fresh process is enough
    run_python(page)


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert targets or page.name != "README.md"
    assert [target for target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """Where links into a page may lead: its headings, as they are written in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@each_page
def test_links_into_pages_lead_to_their_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)", page.read_text(encoding="utf-8"))
    pages = [(page if not target else page.parent / target, part) for target, part in links]
    assert [(target.name, part) for target, part in pages if part not in anchors(target)] == []


def test_commands_exist() -> None:
    """`make` says of each what it would do."""
    targets = re.findall(r"^make (\w+)", "\n".join(blocks(ROOT / "README.md", "sh")), flags=re.MULTILINE)
    assert targets
    for target in targets:
        done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, encoding="utf-8")
        assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


def test_the_accuracies_are_those_that_were_measured() -> None:
    page = (ROOT / "docs" / "guides" / "choosing.md").read_text(encoding="utf-8")
    reproduction = (ROOT / "lab" / "reproduction.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ((?:hash|middle|frequency), [\d,]+).*? \| ([\d. ±]+) \| ([\d.]+) % \| ([\d.]+) %", page, re.MULTILINE
    )
    assert len(rows) == 5
    for core, accuracy, free, exact in rows:  # the table there is made from the result files
        assert re.search(rf"^\| {core} \| {accuracy} \| {free} ± [\d.]+ % \| {exact} ±", reproduction, re.MULTILINE)
    measured = read_json("benchmarks/unlearning.json")["hash, cpu"]
    assert f"beside {measured['train_again_seconds']:.0f} seconds of training again" in " ".join(page.split())
    requests = measured["requests"]
    for name, words in (("exact-untouched, 1", "free"), ("exact-refit, 1", "influential"), ("exact-refit, 1,000", "")):
        row = requests[name]
        ratio = float(f"{row['ratio']:.3g}")
        assert re.search(rf"{words}.* \| {row['seconds']:.2g}0* \| {ratio:,.0f} \|", page), name
    for shards, accuracy, seconds in re.findall(r"^\| (\d) \| ([\d.]+) \| (\d+) \|$", page, re.MULTILINE):
        named = "one shard" if shards == "1" else f"{shards} shards"
        assert re.search(rf"^\| {named}, falling rate .* {accuracy} ± \S+ \| {seconds} \(", reproduction, re.MULTILINE)


def rate(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['found']} of {found['of']} ({100 * low:.0f} to {100 * high:.0f} %)"


def test_the_audits_are_those_that_were_measured() -> None:
    page = (ROOT / "benchmarks" / "audit.md").read_text(encoding="utf-8")
    text, cores = " ".join(page.split()), read_json("benchmarks/audit.json")["cores"]
    assert cores.keys() == {"hash", "frequency"}
    honest, seen = [], {}
    for name, measured in cores.items():
        core, others = (measured[request]["attacks"] for request in ("core records", "records outside the core"))
        for attack, found in core.items():
            cells = [rate(found[kind]) for kind in ("approximate-refit", "nothing done", "exact-retrain")]
            other = others.get(attack)
            cells += ["–" if other is None else rate(other["exact-refit"]), rate(found["power"])]
            cells += ["–" if other is None else rate(other["power"])]
            assert f"| `{attack}` | {' | '.join(cells)} |" in page
        honest += [core["lira"]["exact-retrain"], others["lira"]["exact-refit"]]
        seen[name] = f"{100 * core['lira']['nothing done']['TPR at 0.1 %']:.1f} %"
        assert measured["made"]["date"] in page
    wrong, models = sum(one["found"] for one in honest), sum(one["of"] for one in honest)
    assert f"Of the {models} honest models LiRA finds {wrong}, where the rule allows {models * 0.05:.0f}" in text
    assert f"LiRA recognises {seen['hash']} of the core records before the request, {seen['frequency']} of the" in text


def test_an_audit_is_right_about_itself_as_far_as_was_measured() -> None:
    text = (ROOT / "benchmarks" / "audit.md").read_text(encoding="utf-8")
    study = runpy.run_path(str(ROOT / "benchmarks" / "audit_null.py"))
    measured = read_json("benchmarks/audit_null.json")
    whole = [one for one in measured["situations"] if "guarantee alone" not in one]
    assert [one["situation"] for one in whole] == [situation.name for situation in study["SITUATIONS"]]
    assert min(one["audits"] for one in whole) >= 100
    found = sum(one["honest"]["found"] for one in whole)
    low, _ = interval(found, sum(one["audits"] for one in whole))
    assert low <= 0.05
    assert study["filled"](text, measured) == text
    honest, lies = study["tables"](measured)
    for said in (*honest, *lies, study["in_all"](measured), f"Measured on {measured['date']}"):
        assert said in text


def test_the_cost_of_durability_is_what_was_measured() -> None:
    page = (ROOT / "docs" / "specifications" / "workspace.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    measured = read_json("benchmarks/requests.json")
    for row in measured["rows"][1:]:
        memory, durable = row["memory"], ["", "", "", ""]
        if "durable" in row:
            there = row["durable"]
            durable = [f"{1 / there[name]:.0f}" for name in ("first", "together", "later")]
            durable.append(f"{there['open_later']:.2g} s")
        times = [f"{1e3 * memory[name]:.2f} ms" for name in ("plan", "first", "later")]
        assert [f"{row['records']:,}", *times, *durable] in rows
    small, large = measured["extractors"]
    assert (
        f"an extractor of {large['extractor_bytes'] / 1e6:.0f} MB, as large as that of a ViT-B/16, "
        f"{1 / large['durable']:.0f} a second; with one of {small['extractor_bytes'] / 1e3:.0f} kB, "
        f"{1 / small['durable']:.0f}"
    ) in page
    assert measured["circumstances"]["date"][:10] in page


def test_the_time_of_one_record_is_what_was_measured() -> None:
    page = (ROOT / "docs" / "guides" / "serving.md").read_text(encoding="utf-8")
    measured = read_json("benchmarks/serving.json")
    names = {
        "workspace": "`workspace.model.predict`", "served, onnx": "served, `onnx`",
        "PyTorch alone": "the network in PyTorch alone",
    }  # fmt: skip
    for name, words in names.items():
        cells = [f"{1e3 * seconds:.2f} ms" for seconds in measured["median_seconds"][name].values()]
        assert " | ".join([words, *cells]) in page
    assert measured["median_seconds"]["served, onnx"]["1"] < 2e-3
    assert measured["date"] in page


def test_embeddings_page_says_what_was_measured() -> None:
    found, page = (
        read_json("benchmarks/embeddings.json"),
        (ROOT / "docs" / "guides" / "embeddings.md").read_text("utf-8"),
    )
    assert (found["records"], found["width"], found["classes"]) == (1_000_000, 768, 10)
    assert found["date"][:10] in page
    for shown in (
        f"| {found['bytes_of_the_file'] / 1e9:.1f} GB (", f"| {found['fit']['anonymous_bytes'] / 1e9:.1f} GB |",
        f"| {found['fit']['seconds']:.0f} s |", f"| {found['forget_one_free']['seconds']:.2f} s |",
        f"| {found['forget_one_influential']['seconds']:.1f} s |", f"{found['influential']:,} of the records",
    ):  # fmt: skip
        assert shown in page, shown
