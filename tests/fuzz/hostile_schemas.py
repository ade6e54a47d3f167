"""Schemas made to hurt, and what becomes of each: run as a program it tells every outcome and the peak of memory.

python -m tests.fuzz.hostile_schemas
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.engine import accepts
from dovetail.errors import LimitError, SchemaError
from dovetail.grammar import ir, json_schema

MANY = 10_000
MEGABYTE = 1_000_000


class Case(NamedTuple):
    """A schema with a text that it accepts, or None where it is refused."""

    make: Callable[[], Any]
    text: str | None
    style: str = "json"


def nested(wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(MANY):
        schema = wrap(schema)
    return schema


def chain(link: Callable[[int], Any], length: int = MANY) -> Any:
    links = {str(i): link(i + 1) for i in range(length)}
    return {"$ref": "#/$defs/0", "$defs": links | {str(length): {"type": "null"}}}


def twice(combine: Callable[[list[Any]], Any]) -> Any:
    """A schema that refers twice to one that refers twice to another, and so on."""
    return chain(lambda i: combine([{"$ref": f"#/$defs/{i}"}, {"$ref": f"#/$defs/{i}"}]), 30)


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def rings() -> Any:
    """Rings of definitions whose lengths are primes: all at once they come round after half a million steps."""
    primes = (2, 3, 5, 7, 11, 13, 17)
    found = {
        f"{p}.{i}": {
            "type": "object",
            "properties": {"x": {"$ref": f"#/$defs/{p}.{(i + 1) % p}"}},
            "minProperties": i > 0,
        }
        for p in primes
        for i in range(p)
    }
    return {"allOf": [{"$ref": f"#/$defs/{p}.0"} for p in primes], "$defs": found}


def resources() -> Any:
    """As large as the schema of a health standard: 700 kinds of records with 40 members, most of them other records."""
    scalars = [
        {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"},
        {"type": "boolean"},
        {"type": "integer", "minimum": 0},
    ]

    def member(kind: int, index: int) -> Any:
        described = {"description": f"the member {index} of kind {kind}, explained at length " * 2}
        if index % 4 == 3:
            return {**scalars[(kind + index) % 3], **described}
        other = {"$ref": f"#/definitions/Kind{(kind * 7 + index * 13) % 700}"}
        return {"type": "array", "items": other, **described} if index % 4 == 2 else other

    def kind(number: int) -> Any:
        properties = {"kind": {"const": f"Kind{number}"}, **{f"member{i}": member(number, i) for i in range(40)}}
        return {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}

    kinds = {f"Kind{i}": kind(i) for i in range(700)}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "oneOf": [{"$ref": f"#/definitions/Kind{i}"} for i in range(140)],
        "definitions": kinds,
    }


def tools() -> Any:
    """The parameters of 128 tools, as one union of calls."""

    def parameters(tool: int) -> Any:
        choice = {"enum": [f"choice {tool}.{i}" for i in range(20)]}
        inner = record(lat={"type": "number", "minimum": -90, "maximum": 90}, note={"type": "string", "maxLength": 200})
        return record(**{f"a{i}": [choice, inner, {"type": "array", "items": inner}][i % 3] for i in range(12)})

    return {"anyOf": [record(name={"const": f"tool_{i}"}, arguments=parameters(i)) for i in range(128)]}


PLACE = {"lat": 1.5, "note": ""}
CALL = {f"a{i}": ["choice 9.3", PLACE, [PLACE]][i % 3] for i in range(12)}

CASES: dict[str, Case] = {
    # A megabyte of one thing.
    "long enum": Case(lambda: {"enum": ["x" * 50 + str(i) for i in range(20_000)]}, '"' + "x" * 50 + '19999"'),
    "long properties": Case(
        lambda: {"type": "object", "properties": {f"p{i}": {"description": "d" * 80} for i in range(MANY)}},
        '{"p9999":1}',
    ),
    "long description": Case(lambda: {"type": "null", "description": "x" * MEGABYTE}, "null"),
    "long pattern": Case(lambda: {"type": "string", "pattern": "a" * MEGABYTE}, None),
    "long const": Case(lambda: {"const": "x" * 100_000}, '"' + "x" * 100_000 + '"'),
    "long list": Case(lambda: {"const": list(range(20_000))}, json.dumps(list(range(20_000)))),
    "long key": Case(
        lambda: {"type": "object", "properties": {"k" * MEGABYTE: {}}, "additionalProperties": True}, '{"kk": 1}'
    ),
    "long number": Case(lambda: {"minimum": int("9" * 4000)}, None),
    "long fraction": Case(lambda: {"type": "number", "minimum": 1e-320, "maximum": 1e308}, "1.5"),
    "resources": Case(resources, '{"kind":"Kind7","member3":true}'),
    "tools": Case(tools, '{"name":"tool_9","arguments":' + json.dumps(CALL) + "}"),
    # Ten thousand levels.
    "deep objects": Case(lambda: nested(lambda inner: record(a=inner)), '{"a":' * MANY + "null" + "}" * MANY),
    "deep arrays": Case(lambda: nested(lambda inner: {"type": "array", "items": inner}), "[[[]]]"),
    "deep anyOf": Case(lambda: nested(lambda inner: {"anyOf": [inner, {"type": "null"}]}), "null"),
    "deep allOf": Case(lambda: nested(lambda inner: {"allOf": [inner]}), "null"),
    "deep oneOf": Case(lambda: nested(lambda inner: {"oneOf": [inner, {"type": "string"}]}), None),
    "deep not": Case(lambda: nested(lambda inner: {"not": inner}), "null"),
    "deep if": Case(
        lambda: nested(lambda inner: {"if": {"type": "string"}, "then": inner, "else": {"type": "null"}}), "null"
    ),
    "deep value": Case(lambda: {"const": nested(lambda inner: [inner])}, None),
    "deep pattern": Case(lambda: {"type": "string", "pattern": "(" * MANY + "a" + ")" * MANY}, None),
    # Ten thousand of them.
    "values": Case(lambda: {"enum": [f"value {i}" for i in range(MANY)]}, '"value 9999"'),
    "mixed values": Case(
        lambda: {"enum": [one for i in range(2500) for one in (i, f"v{i}", [i], {"a": i})]}, '{"a": 2499}'
    ),
    "barred values of different letters": Case(
        lambda: {"type": "string", "pattern": "^.{2}", "not": {"enum": [chr(0x4E00 + i) * 2 for i in range(MANY)]}},
        None,
    ),
    "barred values": Case(lambda: {"type": "string", "not": {"enum": [f"v{i}" for i in range(MANY)]}}, '"v10000"'),
    "branches": Case(lambda: {"anyOf": [{"const": i} for i in range(MANY)]}, "9999"),
    "objects": Case(lambda: {"anyOf": [record(t={"const": i}) for i in range(MANY)]}, '{"t":9999}'),
    "late objects": Case(lambda: {"anyOf": [record(a={}, t={"const": i}) for i in range(2000)]}, '{"a":1,"t":1999}'),
    "patterned branches": Case(
        lambda: {"anyOf": [{"type": "string", "pattern": f"^p{i}x*$"} for i in range(MANY)]}, '"p77xx"'
    ),
    "exclusive branches": Case(lambda: {"oneOf": [{"const": i} for i in range(MANY)]}, None),
    "conjunctions": Case(lambda: {"allOf": [{"minLength": i} for i in range(MANY)]}, '"' + "x" * MANY + '"'),
    "patterns": Case(lambda: {"allOf": [{"pattern": f"a{i}"} for i in range(MANY)]}, None),
    "patterned keys": Case(lambda: {"patternProperties": {f"^p{i}": {"type": "null"} for i in range(MANY)}}, None),
    "properties": Case(
        lambda: {"type": "object", "properties": {f"p{i}": {} for i in range(MANY)}}, '{"p0":1,"p9999":2}'
    ),
    "dependencies": Case(lambda: {"dependentRequired": {f"a{i}": [f"a{i + 1}"] for i in range(MANY)}}, None),
    "definitions": Case(lambda: chain(lambda i: {"type": "array", "items": {"$ref": f"#/$defs/{i}"}}), "[[[]]]"),
    "counts": Case(
        lambda: {"type": "array", "maxItems": MANY, "items": {"type": "array", "minItems": 5, "maxItems": MANY}},
        "[[1,2,3,4,5]]",
    ),
    "contains": Case(lambda: {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(40)]}, None),
    # What multiplies.
    "product of lengths": Case(
        lambda: {"allOf": [{"anyOf": [{"minLength": i}, {"maxLength": 90 - i}]} for i in range(30)]}, '"abc"'
    ),
    "product of keys": Case(
        lambda: {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)]}, None
    ),
    "product of choices": Case(
        lambda: {"allOf": [{"oneOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)]}, None
    ),
    "overlapping oneOf": Case(lambda: {"oneOf": [{"type": "object", "required": [f"a{i}"]} for i in range(60)]}, None),
    "conditions": Case(
        lambda: {"allOf": [{"if": {"required": [f"a{i}"]}, "then": {"required": [f"a{i + 1}"]}} for i in range(40)]},
        '{"b":1}',
    ),
    "twice allOf": Case(lambda: twice(lambda both: {"allOf": both}), None),
    "twice anyOf": Case(lambda: twice(lambda both: {"anyOf": both}), "null"),
    "twice oneOf": Case(lambda: twice(lambda both: {"oneOf": both}), None),
    "twice not": Case(lambda: twice(lambda both: {"not": {"anyOf": both}}), None),
    "twice members": Case(
        lambda: twice(lambda both: {"type": "object", "properties": {"a": both[0], "b": both[1]}}), '{"b":{"a":{}}}'
    ),
    "shared unions": Case(
        lambda: chain(lambda i: {"anyOf": [{"$ref": f"#/$defs/{i}"}, {"$ref": f"#/$defs/{min(i + 1, MANY)}"}]}), None
    ),
    "rings": Case(rings, None),
    "unevaluated": Case(
        lambda: {"anyOf": [{"properties": {f"a{i}": {}}} for i in range(30)], "unevaluatedProperties": False}, None
    ),
    # Patterns on which a backtracking matcher or a determinized automaton would never end.
    "nested repeats": Case(lambda: {"type": "string", "pattern": "^((((a*)*)*)*)*b$"}, '"aaab"'),
    "overlapping repeats": Case(lambda: {"type": "string", "pattern": "^(a|a|aa)+$"}, '"' + "a" * MANY + '"'),
    "exponential automaton": Case(lambda: {"type": "string", "pattern": "(a|b)*a(a|b){200}$"}, '"' + "a" * 300 + '"'),
    "exponential complement": Case(lambda: {"type": "string", "not": {"pattern": "(a|b)*a(a|b){25}$"}}, None),
    "counted counts": Case(lambda: {"type": "string", "pattern": "^((a{1,99}){1,99}){1,99}$"}, '"aaa"'),
    "counted lengths": Case(
        lambda: {"type": "string", "pattern": "^(a{1,1000}b){1,1000}$", "maxLength": 100_000}, None
    ),
    "lookaheads": Case(lambda: {"type": "string", "pattern": "".join(f"(?=.*{c})" for c in "abcdefghijklmnop")}, None),
    "overlapping keys": Case(
        lambda: {
            "patternProperties": {f"(a|b)*a(a|b){{{i}}}$": {} for i in range(5, 15)},
            "additionalProperties": False,
        },
        None,
    ),
    # References that lead back.
    "itself": Case(lambda: {"$ref": "#"}, None),
    "each other": Case(
        lambda: {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, None
    ),
    "itself or null": Case(lambda: {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "null"),
    "not itself": Case(lambda: {"not": {"$ref": "#"}}, None),
    "itself required": Case(lambda: record(a={"$ref": "#"}), None),
    "lists of itself": Case(lambda: {"type": "array", "items": {"$ref": "#"}}, "[[],[[]]]"),
    "long chain": Case(lambda: chain(lambda i: {"$ref": f"#/$defs/{i}"}), None),
    "long ring": Case(
        lambda: {
            "$ref": "#/$defs/0",
            "$defs": {str(i): {"type": "array", "items": {"$ref": f"#/$defs/{(i + 1) % MANY}"}} for i in range(MANY)},
        },
        "[[[]]]",
    ),
    # In markup.
    "marked resources": Case(
        lambda: {"$ref": "#/definitions/Kind7", **resources(), "oneOf": [True]},
        '<cofl:value name="kind" type="raw">Kind7</cofl:value>',
        "cohere_xml",
    ),
    "marked objects": Case(
        lambda: {"anyOf": [record(t={"const": i}) for i in range(2000)]}, "<parameter=t>1999</parameter>", "qwen_xml"
    ),
    "marked patterns": Case(lambda: record(a={"allOf": [{"pattern": f"a{i}"} for i in range(MANY)]}), None, "qwen_xml"),
}


def outcome(case: Case) -> str:
    """Accepted, not accepted, or refused and why."""
    try:
        rule = ir.Rule("root", json_schema.lower(case.make(), style=case.style))
        return "accepted" if accepts(rule, case.text or "") else "not accepted"
    except (LimitError, SchemaError) as error:
        return f"refused: {error.problem}"


def peak() -> int:
    """The peak of memory in MiB; what getrusage tells is at least that of the process which started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def main() -> None:
    for name, case in CASES.items():
        found = outcome(case)
        print(json.dumps([name, found, peak()]), flush=True)


if __name__ == "__main__":
    main()
