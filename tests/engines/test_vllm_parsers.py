"""Recorded outputs of model families, read by vLLM's own parser over our classes, say what a direct reading says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.plugins import load_general_plugins

import dovetail as dt

SIZES = (1, 7, 10_000)

# Where reading in two steps says something else: a second end of reasoning, which only one who has seen the first can
# tell from text; a call that begins and is cut off, in a test without tools.
DIFFER = {
    "TestNonStreaming::test_duplicate_think_end_absorbed",
    "TestStreaming::test_streaming_duplicate_think_end_absorbed",
    "TestReasoningParser::test_kimik2_tool_interruption",
}


class Said(NamedTuple):
    reasoning: str
    content: str
    calls: list[tuple[str, str]]


class Tokenizer:
    """Characters as tokens: the parsers ask for ids only where a prompt ends."""

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


@pytest.fixture(scope="session")
def cases(conformance: Path) -> list[dict[str, Any]]:
    return cases_of(conformance / "engines" / "parser_cases.jsonl")


def cases_of(data: Path) -> list[dict[str, Any]]:
    """The recorded outputs; those without tools get the tools that they call."""
    lines = data.read_text().splitlines()
    known = set(dt.dialects.names())
    cases = [case for case in map(json.loads, lines) if case["family"] in known]
    for case in cases:
        if case["kind"] == "reasoning":
            case["tools"] = []
        elif not all("function" in tool for tool in case["tools"]) or not case["tools"]:
            names = dict.fromkeys(name for want in case["wants"] for name, _ in want["calls"])
            case["tools"] = [{"type": "function", "function": {"name": name}} for name in names or ("f",)]
    return cases


def parser_of(dialect: str, kind: str) -> Any:
    load_general_plugins()  # by the entry point of the installed package
    name = f"dovetail-{dialect}"
    reasoning = None if kind == "calls" else name
    made = ParserManager.get_parser(name, reasoning, enable_auto_tools=True)
    assert made is not None
    return made(Tokenizer())


def request_of(tools: list[Any]) -> ChatCompletionRequest:
    messages = [{"role": "user", "content": "?"}]
    return ChatCompletionRequest(model="m", messages=messages, **({"tools": tools} if tools else {}))


def directly(case: dict[str, Any]) -> Said:
    """What the dialect says; a tool parser alone is never told that a prompt may have opened reasoning."""
    prompt = "" if case["kind"] == "calls" else None
    message = dt.dialects.get(case["family"]).parse(case["text"], case["tools"], prompt)
    return Said(message.reasoning, message.content, [(call.name, call.arguments) for call in message.tool_calls])


def whole(case: dict[str, Any]) -> Said:
    made = parser_of(case["family"], case["kind"])
    request = request_of(case["tools"])
    reasoning, content, calls = made.parse(case["text"], request, enable_auto_tools=True)
    return Said(reasoning or "", content or "", [(call.name, call.arguments) for call in calls or ()])


def streamed(case: dict[str, Any], size: int) -> Said:
    made = parser_of(case["family"], case["kind"])
    request = request_of(case["tools"])
    pieces = [case["text"][at : at + size] for at in range(0, len(case["text"]), size)] or [""]
    reasoning, content = "", ""
    calls: list[tuple[str, str]] = []
    prompt = [] if case["kind"] == "calls" else None
    for delta in _deltas(made, pieces, request, prompt):
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        for call in delta.tool_calls or ():
            if call.index == len(calls):
                calls.append((call.function.name, ""))
            calls[call.index] = (calls[call.index][0], calls[call.index][1] + (call.function.arguments or ""))
    return Said(reasoning, content, calls)


def _deltas(made: Any, pieces: list[str], request: ChatCompletionRequest, prompt: list[int] | None) -> Iterator[Any]:
    for at, piece in enumerate(pieces):
        last = at == len(pieces) - 1
        delta = made.parse_delta(piece, [ord(char) for char in piece], request, prompt, finished=last)
        if delta is not None:
            yield delta


def told(said: Said) -> Said:
    """White space at the ends is no part of what the recorded answers compare."""
    return Said(said.reasoning.strip(), said.content.strip(), said.calls)


def test_whole_outputs_are_read_as_directly(cases: list[dict[str, Any]]) -> None:
    differ = set()
    for case in cases:
        direct = told(directly(case))
        if case["kind"] == "calls" and direct.reasoning:
            # A tool parser alone has no place for reasoning but the content.
            assert (case["test"], whole(case).calls) == (case["test"], direct.calls)
        elif told(whole(case)) != direct:
            differ.add(case["test"].partition("::")[2])
    assert differ == DIFFER


def test_streams_are_read_as_directly(cases: list[dict[str, Any]]) -> None:
    for size in SIZES:
        differ = {
            case["test"].partition("::")[2] for case in cases if told(streamed(case, size)) != told(directly(case))
        }
        assert (size, differ) == (size, DIFFER)


def test_a_prompt_says_whether_reasoning_has_ended() -> None:
    made = parser_of("qwen_3", "both").reasoning_parser
    turn = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"

    def ended(text: str) -> bool:
        return bool(made.is_reasoning_end(list(map(ord, text))))

    assert not ended(turn)
    assert not ended(turn + "<think>\n")
    assert ended(turn + "<think>\n\n</think>\n\n")
    before, end = list(map(ord, turn + "<think>hm</think")), [ord(">")]
    assert not made.is_reasoning_end_streaming(before, before[-1:])
    assert made.is_reasoning_end_streaming(before + end, end)
    assert made.extract_content_ids([*before, *end, 65]) == [65]
    assert made.count_reasoning_tokens([*before, *end, 65]) == len(before + end)
