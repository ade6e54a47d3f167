"""Law 4 (linear cost) for readers: a chunk costs the same at the start of an output and after megabytes of others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
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


@pytest.fixture(scope="module")
def work() -> dict[tuple[str, str, str], list[int]]:
    """The work for each part of each output."""
    requests = json.dumps([(name, TOOLS, begin, repeated) for name, begin, repeated in OUTPUTS])
    command = [sys.executable, "-m", "tests.laws.reading_work"]
    done = subprocess.run(command, input=requests, capture_output=True, text=True, check=True, cwd=ROOT)
    return dict(zip(OUTPUTS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(("name", "begin", "repeated"), OUTPUTS)
def test_a_chunk_costs_the_same_late_as_early(
    work: dict[tuple[str, str, str], list[int]], name: str, begin: str, repeated: str
) -> None:
    parts = work[name, begin, repeated]
    assert max(parts[2:]) < 1.1 * max(parts[:2])
