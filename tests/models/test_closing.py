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
    "expression": {"type": "regex", "pattern": "[a-z]+( [a-z]+)*: [0-9]+-[0-9]+;"},
    "grammar": {"type": "grammar", "grammar": 'root ::= [a-z]+ "=" value\nvalue ::= [0-9]+ ";" | [a-z]+ "!" value'},
}


@pytest.mark.parametrize("name", PLACES)
def test_the_way_to_the_end_is_known_from_the_beginning(name: str) -> None:
    matcher = dt.compile(PLACES[name], SPEAKER.vocabulary).matcher()
    assert Talker(VOICE, (), np.random.default_rng(0)).way_length(matcher, 300) < 130


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PLACES)
def test_a_model_that_says_anything_comes_to_the_end(name: str, seed: int) -> None:
    matcher = dt.compile(PLACES[name], SPEAKER.vocabulary).matcher()
    random = np.random.default_rng(seed)
    talker, room, said = Talker(VOICE, (), random), 250, b""
    while not matcher.is_finished and room:
        left = talker.ways_out(matcher, VOICE.allowed(matcher), room)
        token = int(random.choice(left))
        assert matcher.accept(token)
        talker.say(token, VOICE.tokens[token])
        said, room = said + VOICE.tokens[token], room - 1
    assert matcher.is_finished, said


def test_a_short_loop_is_left_to_the_model() -> None:
    matcher = dt.compile({"type": "regex", "pattern": "[a-z]+;"}, SPEAKER.vocabulary).matcher()
    talker = Talker(VOICE, (), np.random.default_rng(0))
    for _ in range(4):
        left = talker.ways_out(matcher, VOICE.allowed(matcher), 100)
        assert VOICE.by_bytes[b"q"] in left
        assert matcher.accept(VOICE.by_bytes[b"q"])
