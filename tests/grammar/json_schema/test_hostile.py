"""Schemas made to hurt end in a working grammar or in a clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dovetail.engine import accepts
from dovetail.errors import LimitError, SchemaError
from dovetail.grammar import ir, json_schema

MANY = 10_000


def nested(wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(MANY):
        schema = wrap(schema)
    return schema


def chain(link: Callable[[int], Any]) -> Any:
    return {"$ref": "#/$defs/0", "$defs": {str(i): link(i + 1) for i in range(MANY)} | {str(MANY): {"type": "null"}}}


HOSTILE: list[tuple[str, Any, str | None]] = [
    # what, schema, a text it accepts or None where the schema is refused
    ("values", {"enum": [f"value {i}" for i in range(MANY)]}, '"value 9999"'),
    ("branches", {"anyOf": [{"const": i} for i in range(MANY)]}, "9999"),
    (
        "objects",
        {"anyOf": [{"type": "object", "properties": {"t": {"const": i}}, "required": ["t"]} for i in range(2000)]},
        '{"t":1999}',
    ),
    ("exclusive branches", {"oneOf": [{"const": i} for i in range(MANY)]}, None),
    ("properties", {"type": "object", "properties": {f"p{i}": {} for i in range(MANY)}}, '{"p0":1,"p9999":2}'),
    ("arrays", nested(lambda inner: {"type": "array", "items": inner}), "[[[]]]"),
    ("unions", nested(lambda inner: {"anyOf": [inner, {"type": "null"}]}), "null"),
    ("conjunctions", nested(lambda inner: {"allOf": [inner]}), "null"),
    ("references", chain(lambda i: {"$ref": f"#/$defs/{i}"}), None),
    (
        "shared unions",
        chain(lambda i: {"anyOf": [{"$ref": f"#/$defs/{i}"}, {"$ref": f"#/$defs/{min(i + 1, MANY)}"}]}),
        None,
    ),
    ("products", {"allOf": [{"anyOf": [{"minLength": i}, {"maxLength": 90 - i}]} for i in range(30)]}, '"abc"'),
    (
        "counts",
        {"type": "array", "maxItems": MANY, "items": {"type": "array", "minItems": 5, "maxItems": MANY}},
        "[[1,2,3,4,5]]",
    ),
    ("repetition", {"type": "string", "pattern": "^(a{1,1000}b){1,1000}$", "maxLength": 100_000}, None),
]


@pytest.mark.parametrize(("schema", "text"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_schema_works_or_is_refused(schema: Any, text: str | None) -> None:
    if text is None:
        with pytest.raises((LimitError, SchemaError)):
            json_schema.lower(schema)
    else:
        assert accepts(ir.Rule("root", json_schema.lower(schema)), text)
