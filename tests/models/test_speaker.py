"""The embedded speaker says only what its format allows, ends, and repeats itself for the same seed."""

from __future__ import annotations

from typing import Any

import pytest

import dovetail as dt
from dovetail.engine.loaders import Loaded
from dovetail.models import Speaker

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "age": {"type": "integer"},
    },
    "required": ["name", "tags"],
}
TREE = {"$ref": "#/$defs/node", "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
FORMATS: list[dict[str, Any]] = [
    {"type": "const_string", "value": "hello 你好"},
    {"type": "json_schema", "json_schema": PERSON},
    {"type": "json_schema", "json_schema": TREE},
    {"type": "any_text"},
    {"type": "regex", "pattern": "[a-z]+(, [a-z]+)*"},
    {"type": "grammar", "grammar": 'root ::= "(" root ")" root | "x"'},
    {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
    {"type": "tag", "begin": "<note>", "content": {"type": "any_text"}, "end": ["</note>", "</end of note>"]},
    {
        "type": "triggered_tags",
        "triggers": ["<function="],
        "tags": [
            {
                "type": "tag",
                "begin": "<function=f>",
                "content": {"type": "json_schema", "json_schema": PERSON},
                "end": "</function>",
            }
        ],
        "at_least_one": True,
    },
    {
        "type": "tag",
        "begin": {"type": "token", "token": "<|start|>"},
        "content": {"type": "any_tokens"},
        "end": {"type": "token", "token": "<|return|>"},
    },
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: str(fmt)[:60])
def test_what_is_said_ends_and_is_accepted(fmt: dict[str, Any], seed: int) -> None:
    speaker = Speaker(seed)
    said = speaker.speak(fmt)
    assert said.complete
    assert len(said.token_ids) == dt.compile(fmt, speaker.vocabulary).matcher().validate(said.token_ids)
    assert said.data + b"<|end|>" == b"".join(speaker.tokens[i] for i in said.token_ids)


def test_the_same_seed_says_the_same_and_streams_the_same() -> None:
    said = Speaker(5).speak(FORMATS[1])
    assert said == Speaker(5).speak(FORMATS[1])
    assert said.token_ids == tuple(Speaker(5).stream(FORMATS[1]))
    assert said != Speaker(6).speak(FORMATS[1])


def test_the_hard_limit_cuts_off_and_says_so() -> None:
    said = Speaker().speak(FORMATS[1], max_tokens=3)
    assert (3, False) == (len(said.token_ids), said.complete)


def test_outputs_vary() -> None:
    speaker = Speaker()
    assert len({speaker.speak({"type": "regex", "pattern": "[a-d]{2}"}).data for _ in range(200)}) == 16


def test_a_speaker_may_have_another_tokenizer() -> None:
    speaker = Speaker(tokenizer=Loaded([b"a", b"b", b"ab", b"<end>"], {"<end>": 3}, [3]))
    said = {speaker.speak({"type": "regex", "pattern": "(ab)+"}).data for _ in range(50)}
    assert {b"ab", b"abab"} <= said
