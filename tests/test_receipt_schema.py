"""The published schema of receipts is the one that follows from their declared types."""

import json
import typing
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from maxrr.unlearning.receipts import Receipt

PUBLISHED = Path(__file__).parents[1] / "docs" / "receipt.schema.json"


def test_the_published_schema_is_current() -> None:
    said = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "MaxRR receipt", **schema_of(Receipt)}
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == said


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of a type that receipts use."""
    if is_dataclass(kind):
        types = typing.get_type_hints(kind)
        parts = {field.name: schema_of(types[field.name]) for field in fields(kind)}
        required = [field.name for field in fields(kind) if field.default is not None]
        return {"type": "object", "properties": parts, "required": required, "additionalProperties": False}
    if type(None) in typing.get_args(kind):  # of an optional field, which is there only with a value
        return schema_of(typing.get_args(kind)[0])
    if typing.get_origin(kind) is list:
        return {"type": "array", "items": schema_of(typing.get_args(kind)[0])}
    simple = {str: "string", bool: "boolean", int: "integer", float: "number"}
    return {"type": simple.get(kind, "object")}
