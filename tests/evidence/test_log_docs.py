"""What the page on signatures and the log shows runs as it stands there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "evidence-log-draft.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=["statement", "log"])
def test_the_code_of_the_page_runs(code):
    exec(compile(code, str(PAGE), "exec"), {})
