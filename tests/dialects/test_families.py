"""The rows themselves: what has to hold between their fields, and that chat templates write what they say."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail.messages import Message, ToolCall
from dovetail.parsing.plan import plan
from tests.dialects.requests_data import TOOLS

NAMES = dt.dialects.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_call_begins_with_its_trigger_and_ids_have_a_pattern(name: str) -> None:
    dialect = dt.dialects.get(name)
    written = dialect.render(Message(tool_calls=(ToolCall.of("ping"),)))
    assert dialect.calls[0].opens_with in written
    for way in dialect.calls:
        assert (way.begin + way.call_begin + "{").startswith(way.opens_with[:1])
        assert bool(way.id_pattern) == ("ID" in repr(way.call))


@pytest.mark.parametrize("name", NAMES)
def test_special_tokens_are_markers_that_the_family_writes(name: str) -> None:
    dialect = dt.dialects.get(name)
    own = {"llama", "llama_4"}  # their special tokens end the turn or run code
    message = Message(tool_calls=(ToolCall.of("f", {"a": "b"}),))
    marks = f"{dialect.calls} {dialect.reasoning} {dialect.content} {dialect.turn} {dialect.render(message)}"
    assert name in own or [] == [token for token in dialect.special_tokens if token not in marks]


TEMPLATES = [
    # template, dialect, the messages that it can write
    ("Qwen-Qwen3-0.6B", "qwen_3", "text reasoned calls"),
    ("Qwen3-Coder", "qwen_3_coder", "text calls"),
    ("Qwen3.5-4B", "qwen_3_5", "text reasoned calls"),
    ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes", "text calls"),
    ("Qwen-Qwen2.5-7B-Instruct", "hermes", "text calls"),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron", "text reasoned calls"),
    ("ByteDance-Seed-OSS", "seed_oss", "text reasoned calls"),
    ("meta-llama-Llama-3.1-8B-Instruct", "llama", "text call"),
    ("meta-llama-Llama-3.3-70B-Instruct", "llama", "text call"),
    ("deepseek-ai-DeepSeek-V3.1", "deepseek_v3_1", "text calls"),
    ("deepseek-ai-DeepSeek-V3.2", "deepseek_v3_2", "text reasoned calls"),
    ("deepseek-ai-DeepSeek-V4", "deepseek_v4", "text reasoned calls"),
    ("moonshotai-Kimi-K2", "kimi", "text calls"),
    ("Kimi-K3", "kimi_k3", "text reasoned calls"),
    ("MiniMax-M2", "minimax", "text reasoned calls"),
    ("MiniMax-M3", "minimax_m3", "text reasoned calls"),
    ("GLM-4.7-Flash", "glm_4_7", "text reasoned calls"),
    ("Cohere2MoE", "command_r7b", "text reasoned calls"),
    ("mistralai-Mistral-Nemo-Instruct-2407", "mistral", "text calls"),
    ("Mistral-Small-3.2-24B-Instruct-2506", "mistral", "text calls"),
    ("mistralai-Ministral-3-14B-Reasoning-2512", "ministral", "text calls"),
    ("google-gemma-4-31B-it", "gemma_4", "text calls"),
    ("ibm-granite-granite-4.0", "granite", "text calls"),
    ("LFM2.5-8B-A1B", "lfm2", "text reasoned calls"),
    ("Apertus-8B-Instruct", "apertus", "text calls"),
    ("openai-gpt-oss-120b", "harmony", "text reasoned call"),
]
CITY = ToolCall.of("get_weather", {"city": "Rome", "days": 3}, "000000001")
WRITTEN = {
    "text": Message("Hello.\nWorld."),
    "reasoned": Message("Hello.", "Hm."),
    "call": Message("", "", (CITY,)),
    "calls": Message("", "", (CITY, ToolCall.of("ping", {}, "000000002"))),
}
END = "<end of the turn>"


@pytest.mark.parametrize(("template", "name", "kinds"), TEMPLATES)
def test_what_the_chat_template_writes_is_accepted(conformance: Path, template: str, name: str, kinds: str) -> None:
    dialect = dt.dialects.get(name)
    source = (conformance / "llama_cpp" / "templates" / f"{template}.jinja").read_text()
    fmt = dialect.format(TOOLS, reasoning="auto")
    for kind in kinds.split():
        written = rendered(source, dialect, WRITTEN[kind])
        assert dt.accepts(fmt, written), written


def rendered(template: str, dialect: dt.Dialect, message: Message) -> str:
    """The assistant's turn as the template writes it, without what is around it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    wire = message.to_hf() | ({"thinking": message.reasoning} if message.reasoning else {})
    options: dict[str, Any] = dict.fromkeys(("enable_thinking", "thinking", "reasoning"), bool(message.reasoning))
    conversation = [{"role": "user", "content": "Question?"}, wire]
    texts, _ = render_jinja_template(
        [conversation], TOOLS, chat_template=template, bos_token="", eos_token=END, **options
    )
    _, _, turn = texts[0].partition("Question?")
    _, _, turn = turn.partition(dialect.turn.start)
    if not dialect.turn.between:  # there the mark of the end is the last one of the output
        turn = turn.split(dialect.turn.end)[0]
    return turn.split(END)[0].removesuffix("<|tool_response>")


@pytest.mark.parametrize("name", NAMES)
def test_no_marker_is_complete_before_one_that_holds_it_inside(name: str) -> None:
    """A reader that has half of the longer marker would take the shorter one, and with other chunks it would not."""
    marks = plan(dt.dialects.get(name), (), True)
    for stops in (marks.openers, marks.reasoning_stops, marks.content_stops):
        for outer, inner in itertools.permutations(stops.markers, 2):
            assert inner not in outer[1:-1] or outer.endswith(inner), (outer, inner)


def test_a_row_can_be_varied() -> None:
    quiet = replace(dt.dialects.get("qwen_3"), name="quiet", reasoning=None)
    assert dt.accepts(quiet.format(TOOLS), "Hello.")
