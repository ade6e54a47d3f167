"""Calls as servers number them that only resemble the service: constant, missing and interleaved indices and ids."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.agent.types import Request, ToolSpec, UserTurn
from tests.agent.providers.conftest import ask
from tests.agent.servers import Reply

ASKED = Request((UserTurn("look"),), "", (ToolSpec("look", "", {"type": "object"}),))
TWO = [("look", {"at": 1}), ("look", {"at": 2})]


def piece(text: Any, name: str | None = None, index: int | None = None, id: str | None = None) -> dict[str, Any]:
    """One piece of a call as it stands on the wire."""
    function = {"arguments": text} | ({"name": name} if name is not None else {})
    made: dict[str, Any] = {"type": "function", "function": function}
    return made | ({"index": index} if index is not None else {}) | ({"id": id} if id is not None else {})


ONE, OTHER = '{"at": 1}', '{"at": 2}'
PIECES: dict[str, list[list[dict[str, Any]]]] = {
    "the service": [
        [piece("", "look", 0, "a")],
        [piece(ONE, index=0)],
        [piece("", "look", 1, "b")],
        [piece(OTHER, index=1)],
    ],
    "index 0, ids differ, one chunk": [[piece(ONE, "look", 0, "a"), piece(OTHER, "look", 0, "b")]],
    "index 0, ids differ, in pieces": [
        [piece("", "look", 0, "a")],
        [piece(ONE, index=0)],
        [piece("", "look", 0, "b")],
        [piece(OTHER, index=0)],
    ],
    "index 0, no ids": [[piece(ONE, "look", 0)], [piece(OTHER, "look", 0)]],
    "index 0, empty ids": [[piece(ONE, "look", 0, "")], [piece(OTHER, "look", 0, "")]],
    "index 0, one id for all": [[piece(ONE, "look", 0, "call_0")], [piece(OTHER, "look", 0, "call_0")]],
    "one id for all": [[piece(ONE, "look", 0, "x"), piece(OTHER, "look", 1, "x")]],
    "no index": [[piece('{"at"', "look", id="a")], [piece(": 1}", id="a")], [piece(OTHER, "look", id="b")]],
    "neither index nor id": [[piece('{"at"', "look")], [piece(": 1}")], [piece(OTHER, "look")]],
    "interleaved": [
        [piece("", "look", 0, "a"), piece("", "look", 1, "b")],
        [piece('{"at"', index=0), piece('{"at"', index=1)],
        [piece(": 2}", index=1), piece(": 1}", index=0)],
    ],
    "interleaved by id": [
        [piece("", "look", 0, "a"), piece("", "look", 0, "b")],
        [piece('{"at"', index=0, id="a")],
        [piece(OTHER, index=0, id="b"), piece(": 1}", index=0, id="a")],
    ],
    "id and name in every piece": [
        [piece('{"at"', "look", 0, "a")],
        [piece(": 1}", "look", 0, "a")],
        [piece("", "look", 1, "b")],
        [piece(OTHER, "look", 1, "b")],
    ],
    "the name comes late": [
        [piece("", "", 0, "a")],
        [piece('{"at"', None, 0)],
        [piece(": 1}", "look", 0)],
        [piece(OTHER, "look", 1, "b")],
    ],
    "arguments as objects": [[piece({"at": 1}, "look", 0, "a"), piece({"at": 2}, "look", 1, "b")]],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_calls_are_told_apart_however_a_server_numbers_them(pieces: list[list[dict[str, Any]]]) -> None:
    reply, _, _ = ask("openai", ASKED, Reply(call_deltas=pieces))
    assert TWO == [(use.name, use.value) for use in reply.turn.tool_uses]
    assert 2 == len({use.id for use in reply.turn.tool_uses})


@pytest.mark.parametrize("text", ["", '{"at": 1', '{"at"'])
def test_a_call_that_the_token_limit_cut_says_nothing(text: str) -> None:
    pieces = [[piece(ONE, "look", 0, "a")], [piece(text, "look", 1, "b")]]
    reply, _, _ = ask("openai", ASKED, Reply(call_deltas=pieces, finish="length"))
    assert [{"at": 1}, None] == [use.value for use in reply.turn.tool_uses]
