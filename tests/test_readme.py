"""The README is true: its Python runs, its links lead somewhere, its commands exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_runs() -> None:
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_commands_exist() -> None:
    targets = re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
    assert targets
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, flags=re.MULTILINE)] == []
