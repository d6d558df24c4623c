"""The published schema of receipts is the one that the code has."""

import json
from pathlib import Path

from maxrr.unlearning.receipts import schema

PUBLISHED = Path(__file__).parents[1] / "docs" / "receipt.schema.json"


def test_the_published_schema_is_current() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema()
