"""Law 4 (linear cost) for readers: a chunk costs the same at the start of an output and after megabytes of others."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dovetail import dialects

TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
]
OUTPUTS: list[tuple[str, str, str]] = [
    # dialect, how the output begins, what it repeats
    ("qwen_3", "", "Prose with 1 < 2, \n\n a <tool_ and such, é. "),
    ("qwen_3", "<think>", "Prose with 1 < 2, \n a </thin and such. "),
    ("qwen_3", "", "<tool_call>"),
    ("qwen_3", "", '<tool_call>{"arguments": "'),
    ("qwen_3", "", '<tool_call>{"arguments": {"a": "'),
    ("qwen_3", "", '<tool_call>{"x": [{"y": "'),
    ("qwen_3", "", '<tool_call>{"x": ["," ,'),
    ("qwen_3", '<tool_call>{"name": "f", "arguments": {"a": "', "words \\n and </tool_call> "),
    ("qwen_3", '<tool_call>{"name": "f", "arguments": {"a": [', '{"b": ["c", 1.5, null]}, '),
    ("qwen_3", '<tool_call>{"name": "f", "arguments": ', "["),
    ("qwen_3", '<tool_call>{"arguments": {"a": "', "held until the name comes "),
    ("qwen_3", "", " \n"),
    ("qwen_3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n", 'raw "text" </param '),
    ("qwen_3_coder", "<tool_call>\n<function=f>\n<parameter=b>\n", "text of an unknown type "),
    ("qwen_3_coder", "<tool_call>\n<function=f>\n", "<parameter=a>\nx\n</parameter>\n"),
    ("llama", "", '{"name": "Bob", "x": {"name": '),
    ("llama_4", "", "[f (x) [g("),
    ("qwen_3", '<tool_call>{"name": "f", "arguments": {"n": 1, ', 'x" {"y": "z} '),
    ("kimi", "<|tool_calls_section_begin|>", " noise <|tool_calls_section_begin|>"),
    ("llama_4", "[f(a='", "it\\'s "),
    ("llama_4", "[f(a='", "it's   "),
    ("gemma_4", "<|tool_call>call:f{a:", "[["),
    ("minimax_m3", ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">', "]<]minimax[>[<b>"),
    ("harmony", "<|channel|>analysis<|message|>", "thoughts <|start "),
    ("harmony", "", "stray <|channel|>x "),
]
SIZE, PART = 160_000, 8_000


@pytest.mark.parametrize(("name", "begin", "repeated"), OUTPUTS)
def test_a_chunk_costs_the_same_late_as_early(name: str, begin: str, repeated: str) -> None:
    text = begin + repeated * (SIZE // len(repeated))
    parser = dialects.get(name).parser(TOOLS, "")
    feed: Callable[[str], object] = parser.feed
    seconds = []
    for start in range(0, len(text) - PART, PART):
        chunks = [text[i : i + 8] for i in range(start, start + PART, 8)]
        begun = time.perf_counter()
        for chunk in chunks:
            feed(chunk)
        seconds.append(time.perf_counter() - begun)
    # The quickest parts are compared, because a busy machine only ever adds time.
    assert min(seconds[-6:]) < 4 * min(seconds[1:7]) + 0.01
    parser.finish()
