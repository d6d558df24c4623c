"""The README and the pages in docs are true: their Python runs, their links lead somewhere, their commands exist."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def run_python(page: Path) -> None:
    """All blocks of a page, from top to bottom: a later one may use what an earlier one made."""
    exec(compile("\n".join(blocks(page, "python")), page.name, "exec"), {})


@each_page
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(page)


def test_data_page_shows_what_describe_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `list` and `get` print depends on the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONUTF8", "1")
    page = ROOT / "docs" / "data.md"
    run_python(page)  # which writes the file described
    (shown,) = (block for block in blocks(page, "console") if "data describe" in block)
    command, printed = shown.removeprefix("$ maxrr ").split("\n", maxsplit=1)
    done = subprocess.run(
        [sys.executable, "-m", "maxrr", *shlex.split(command)], capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stdout == printed


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert targets or page.name != "README.md"
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_commands_exist() -> None:
    targets = re.findall(r"^make (\w+)", "\n".join(blocks(ROOT / "README.md", "sh")), flags=re.MULTILINE)
    assert targets
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, flags=re.MULTILINE)] == []


def test_the_accuracies_are_those_that_were_measured() -> None:
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "benchmarks" / "core_accuracy.json").read_text(encoding="utf-8"))["lines"]
    lines = {(line["ranking_runs"], line["epochs"], line["batch_size"]): line for line in measured}
    for epochs, named in ((18, "18 epochs, batches of 64 (default)"), (36, "36 epochs")):
        line = lines[100, epochs, 64]
        accuracy = f"{line['accuracy']:.3f} ± {line['standard_error']:.3f}"
        assert f"| {named} | {accuracy} | {line['not_free']:,.0f} |" in page
    ten = lines[10, 18, 64]
    assert f"does as well as one by a hundred ({ten['accuracy']:.3f} ± {ten['standard_error']:.3f})" in page


def rate(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['found']} of {found['of']} ({100 * low:.0f} to {100 * high:.0f} %)"


def test_the_audits_are_those_that_were_measured() -> None:
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "benchmarks" / "audit.json").read_text(encoding="utf-8"))["cores"]["hash"]
    core, others = (measured[name]["attacks"] for name in ("core records", "records outside the core"))
    for attack, found in core.items():
        cells = [rate(found[name]) for name in ("approximate-refit", "nothing done", "exact-retrain")]
        other = others.get(attack)
        cells += ["–" if other is None else rate(other["exact-refit"]), rate(found["power"])]
        cells += ["–" if other is None else rate(other["power"])]
        assert f"| `{attack}` | {' | '.join(cells)} |" in page
    seen = core["lira"]["nothing done"]["TPR at 0.1 %"]
    assert f"false positives LiRA recognises {100 * seen:.1f} % of the core records before the request" in " ".join(
        page.split()
    )
    assert measured["made"]["date"] in page


def test_the_cost_of_durability_is_what_was_measured() -> None:
    page = (ROOT / "docs" / "workspace.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "benchmarks" / "workspace.json").read_text(encoding="utf-8"))
    for name, row in measured["requests"].items():
        kind, count = name.split(", ")
        times = f"{1e3 * row['durable']:.0f} ms | {1e3 * row['in_memory']:.0f} ms | {1 / row['durable']:.0f}"
        assert f"| `{kind}`, {count} record{'s' * (count != '1')} | {times} | {row['fsyncs']} |" in page
