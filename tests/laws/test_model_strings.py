"""Random strings under our built-in model styles and under XGrammar's own tags for the same requests.

Both grammars speak, and each string also comes with a marker of the family set into it. Where the two answer otherwise,
the first class of `known_differences.toml` that fits says why; one that none fits is a finding.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xgrammar

import dovetail as dt
from dovetail.dialects import Dialect
from dovetail.grammar.lower import lower
from tests.dialects.requests_data import NAMED, TOOLS
from tests.laws.differential import Peer
from tests.strategies import SeededDice, make_output

CLASSES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["model_strings"]
MODELS = "deepseek_r1 deepseek_v3_2 deepseek_v4 glm_4_7 harmony kimi llama minimax qwen_3 qwen_3_5 qwen_3_coder".split()
STRINGS = 30  # under each of the two grammars of a request
REQUESTS = [(choice, reasoning) for choice in ("auto", "required", NAMED, "none") for reasoning in (True, False)]


def markers(dialect: Dialect) -> list[str]:
    reasoning = [dialect.reasoning.start, dialect.reasoning.end] if dialect.reasoning else []
    rows = [way for way in dialect.calls if not way.tolerated]
    calls = [mark for way in rows for mark in (way.begin, way.call_begin, way.call_end, way.end)]
    return [mark for mark in (*reasoning, *calls, dialect.turn.end, "\n", " ", "<") if mark]


def strings(model: str, seed: str, *rules: Any) -> Iterator[str]:
    dice, draw, marks = SeededDice(seed), random.Random(seed), markers(dt.dialects.get(model))
    for rule in rules:
        for _ in range(STRINGS):
            text = bytes(make_output(dice, rule)).decode("utf-8", "replace")
            at = draw.randrange(len(text) + 1)
            yield from (text, text[:at] + draw.choice(marks) + text[at:])


def differences(model: str, peer: Peer) -> Iterator[tuple[str, str]]:
    """Who alone takes a string, and the string."""
    for choice, reasoning in REQUESTS:
        request = {"tools": TOOLS, "tool_choice": choice, "reasoning": reasoning}
        theirs = xgrammar.get_model_structural_tag(model, **request).model_dump(exclude_none=True)["format"]
        rules = [lower(dt.get_model_structural_tag(model, **request).format), lower(dt.load_format(theirs))]
        grammar = peer.compile(theirs)
        assert grammar is not None
        for text in strings(model, f"{model} {choice} {reasoning}", *rules):
            taken, taken_there = dt.accepts(rules[0], text), peer.accepts(grammar, text.encode())
            if taken != taken_there:
                yield ("ours" if taken else "theirs"), text


@pytest.fixture(scope="module")
def peer() -> Peer:
    return Peer()


@pytest.mark.parametrize("model", MODELS)
def test_where_a_string_is_taken_by_one_alone_the_reason_is_known(model: str, peer: Peer) -> None:
    found = set()
    for who, text in differences(model, peer):
        fitting = [
            name
            for name, row in CLASSES.items()
            if model in row["models"] and who == row["taken"] and re.search(row["pattern"], text)
        ]
        assert fitting, f"{who} alone: {text!r}"
        found.add(fitting[0])
    assert {name for name, row in CLASSES.items() if model in row["models"]} == found
