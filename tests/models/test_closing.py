"""How an output that is led to its end finds it, whatever a model would rather say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail.models import Speaker
from dovetail.models.speaker_policy import Talker, Voice

SPEAKER = Speaker(0)
VOICE = Voice(SPEAKER.vocabulary)


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"type": "object", "properties": fields, "required": list(fields)}}


def pattern(text: str) -> dict[str, Any]:
    return {"type": "string", "pattern": text}


# In none of the loops does a bracket or a quote lead on.
PLACES = {
    "address": record(name={"type": "string"}, email=pattern("^[a-z.]+@[a-z]+[.](com|org)$"), age={"type": "integer"}),
    "two addresses": record(a=pattern("^[a-z]+@[a-z]+$"), b=pattern("^[a-z]+@[a-z]+$")),
    "formats": record(mail={"type": "string", "format": "email"}, at={"type": "string", "format": "date-time"}),
    "numbers": record(x={"type": "integer"}, y={"type": "number"}, z={"type": "integer", "minimum": 1000}),
    "tree": {
        "type": "json_schema",
        "json_schema": {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#/$defs/node"}}},
                    "required": ["name", "children"],
                    "additionalProperties": False,
                }
            },
        },
        "tidy": True,
    },
    "expression": {"type": "regex", "pattern": "[a-z]+( [a-z]+)*: [0-9]+-[0-9]+;"},
    "grammar": {"type": "grammar", "grammar": 'root ::= [a-z]+ "=" value\nvalue ::= [0-9]+ ";" | [a-z]+ "!" value'},
}


@pytest.mark.parametrize("name", PLACES)
def test_the_way_to_the_end_is_known_from_the_beginning(name: str) -> None:
    matcher = dt.compile(PLACES[name], SPEAKER.vocabulary).matcher()
    assert Talker(VOICE, (), np.random.default_rng(0)).way_length(matcher, 300) < 130


def lead(talker: Talker, matcher: dt.Matcher, room: int, random: np.random.Generator) -> bool:
    """Say anything that leads to the end; whether it was reached."""
    while not matcher.is_finished and room:
        token = int(random.choice(talker.ways_out(matcher, VOICE.allowed(matcher), room)))
        assert matcher.accept(token)
        talker.say(token, VOICE.tokens[token])
        room -= 1
    return matcher.is_finished


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PLACES)
def test_a_model_that_says_anything_comes_to_the_end(name: str, seed: int) -> None:
    matcher, random = dt.compile(PLACES[name], SPEAKER.vocabulary).matcher(), np.random.default_rng(seed)
    assert lead(Talker(VOICE, (), random), matcher, 250, random)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["tree", "numbers", "address"])
def test_the_room_that_is_kept_is_enough_from_everywhere(name: str, seed: int) -> None:
    matcher, random = dt.compile(PLACES[name], SPEAKER.vocabulary).matcher(), np.random.default_rng(seed)
    talker = Talker(VOICE, (), random)
    for _ in range(40):
        allowed = VOICE.allowed(matcher)
        token = int(random.choice(allowed, p=talker.chances(matcher, allowed, False)))
        if token in SPEAKER.vocabulary.stop_token_ids:
            return
        assert matcher.accept(token)
        talker.say(token, VOICE.tokens[token])
    assert lead(talker, matcher, talker.way_length(matcher, 300) * 3 // 2 + 4, random)


def test_forced_text_is_spelled_in_the_longest_tokens() -> None:
    matcher = dt.compile({"type": "const_string", "value": "question"}, SPEAKER.vocabulary).matcher()
    left = Talker(VOICE, (), np.random.default_rng(0)).ways_out(matcher, VOICE.allowed(matcher), 9)
    assert [VOICE.by_bytes[b"question"]] == left.tolist()


def test_a_short_loop_is_left_to_the_model() -> None:
    matcher = dt.compile({"type": "regex", "pattern": "[a-z]+;"}, SPEAKER.vocabulary).matcher()
    talker = Talker(VOICE, (), np.random.default_rng(0))
    for _ in range(4):
        left = talker.ways_out(matcher, VOICE.allowed(matcher), 100)
        assert VOICE.by_bytes[b"q"] in left
        assert matcher.accept(VOICE.by_bytes[b"q"])
