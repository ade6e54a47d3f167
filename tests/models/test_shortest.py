"""The shortest output of a grammar, and a speaker that comes to an end whatever its grammar."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings

import dovetail as dt
from dovetail.engine.loaders import Loaded
from dovetail.grammar import ir
from dovetail.models import Sampling, Speaker
from dovetail.models.shortest import shortest
from dovetail.models.speaker_policy import root_of
from tests.machines import compiled, within_limits
from tests.random_formats import Json, formats
from tests.strategies import rules_with_outputs


def grammar(text: str) -> Json:
    return {"type": "grammar", "grammar": text}


def schema(schema: Any) -> Json:
    return {"type": "json_schema", "json_schema": schema}


NODE = {"$defs": {"n": {"type": "object", "properties": {"l": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}
SHORTEST = [
    (grammar('root ::= "(" root root ")" | "xy"'), b"xy"),
    (grammar('root ::= root | "a"'), b"a"),
    (grammar('root ::= a a\na ::= b | "ccc"\nb ::= "dd" | root'), b"dddd"),
    ({"type": "regex", "pattern": "(ab|c){3,7}[x-z]?"}, b"ccc"),
    ({"type": "regex", "pattern": "aaa(é|a)"}, b"aaaa"),
    ({"type": "regex", "pattern": "[\\x01é]"}, b"\x01"),
    ({"type": "any_text"}, b""),
    ({"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ["--->", "/>"]}, b"</>"),
    (schema({"enum": ["long word", 7, "é"]}), b"7"),
    (ir.Rule("root", ir.Text((b"a",), ((b"bcd", ir.EMPTY),), None, min_chars=3)), b"eeebcd"),
    (schema(NODE), b"{}"),
    (schema({"type": "array", "items": {"type": "null"}, "minItems": 2}), b"[null,null]"),
    (
        {
            "type": "json_schema",
            "json_schema": {"type": "object", "required": ["b", "a"], "properties": {"a": {"const": 1}}},
        },
        b'{"a":1,"b":0}',
    ),
]


@pytest.mark.parametrize(("source", "expected"), SHORTEST, ids=lambda value: str(value)[:50])
def test_the_shortest_output_is_found(source: Json, expected: bytes) -> None:
    found = b"".join(piece for piece in shortest(root_of(source)) if isinstance(piece, bytes))
    assert dt.accepts(source, found)
    assert len(expected) == len(found)


@given(rules_with_outputs())
@within_limits
def test_no_output_is_shorter(case: tuple[ir.Rule, bytes]) -> None:
    rule, output = case
    matcher = compiled(rule).matcher()
    found = list(shortest(rule))
    if not any(isinstance(node, ir.Without) for other in ir.reachable(rule) for node in ir.walk(other.body)):
        assert matcher.accept_bytes(b"".join(found))
        assert matcher.is_complete
        matcher.reset()
    if matcher.accept_bytes(output) and matcher.is_complete:
        assert sum(map(len, found)) <= len(output)


def speak(speaker: Speaker, source: Any, **sampling: Any) -> tuple[bytes, list[int], str | None]:
    async def collect() -> tuple[bytes, list[int], str | None]:
        steps = [step async for step in speaker.generate("", source, Sampling(**sampling))]
        return b"".join(step.data for step in steps), [step.token for step in steps], steps[-1].finish

    return asyncio.run(collect())


ENDLESS = [
    grammar('root ::= "(" root root root ")" | "x"'),
    grammar('root ::= "a" root "b" root "c" root | "stop"'),
    grammar('root ::= [a-z] root [0-9] root | "!"'),
    schema(NODE | {"$defs": {"n": NODE["$defs"]["n"] | {"minProperties": 0}}}),  # type: ignore[index]
    {"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": "the very long end of all this"},
    {"type": "plus", "content": {"type": "tag", "begin": "b", "content": {"type": "any_text"}, "end": ".e."}},
    {"type": "regex", "pattern": "([a-z]+ )*[a-z]+\\."},
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("source", ENDLESS, ids=lambda value: str(value)[:60])
def test_the_speaker_ends_whatever_the_grammar(source: Json, seed: int) -> None:
    data, _, finish = speak(Speaker(), source, seed=seed)
    assert "stop" == finish
    assert dt.accepts(source, data)


@settings(max_examples=60)
@given(formats(tokens=True))
def test_the_speaker_ends_under_random_formats(source: Json) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"<a>", b"</a>", b"ab", b"<end>"]
    speaker = Speaker(tokenizer=Loaded(tokens, {"<a>": 256, "</a>": 257, "<end>": 259}, [259]))
    try:
        grammar = dt.compile(source, speaker.vocabulary)
    except dt.InputError:
        return  # no format at all
    _, ids, finish = speak(speaker, source, seed=1)
    assert "stop" == finish
    assert len(ids) == grammar.matcher().validate(ids)


def test_a_stop_token_that_the_format_spells_out_ends_the_output() -> None:
    speaker = Speaker(dialect="harmony")
    data, _, finish = speak(speaker, speaker.dialect.format(reasoning=False), seed=3)
    assert "stop" == finish
    assert data.endswith((b"<|return|>", b"<|end|>"))
