"""Outputs that llama.cpp's parsers are tested with, read by the dialects of the same families.

Compared as llama.cpp compares: names exact, text stripped at both ends, arguments as JSON values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dovetail import dialects
from dovetail.messages import Message

FAMILIES = {
    "Apertus-8B-Instruct": "apertus",
    "ByteDance-Seed-OSS": "seed_oss",
    "Cohere2MoE": "command_r7b",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command_r7b",
    "GLM-4.6": "glm_4_7",
    "GLM-4.7-Flash": "glm_4_7",
    "Kimi-K2-Thinking": "kimi",
    "Kimi-K3": "kimi_k3",
    "LFM2-8B-A1B": "lfm2",
    "LFM2.5-8B-A1B": "lfm2",
    "MiniMax-M2": "minimax",
    "MiniMax-M3": "minimax_m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "qwen_3",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "qwen_3",
    "Qwen3-Coder": "qwen_3_coder",
    "Qwen3.5-4B": "qwen_3_5",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek_r1",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v3_1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v3_2",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek_v4",
    "google-gemma-4-31B-it": "gemma_4",
    "google-gemma-4-31B-it-interleaved": "gemma_4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite",
    "ibm-granite-granite-4.0": "granite",
    "llama-cpp-deepseek-r1": "deepseek_r1",
    "meta-llama-Llama-3.1-8B-Instruct": "llama",
    "meta-llama-Llama-3.2-3B-Instruct": "llama",
    "meta-llama-Llama-3.3-70B-Instruct": "llama",
    "mistralai-Ministral-3-14B-Reasoning-2512": "ministral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral",
    "moonshotai-Kimi-K2": "kimi",
    "openai-gpt-oss-120b": "harmony",
    "unsloth-mistral-Devstral-Small-2507": "ministral",
}
NOT_DROPPED = "a call of a tool that was not offered is delivered, with a remark, and not dropped"
DIFFERENCES = {
    "Kimi-K2-Thinking#009": "a key is told with the first byte of its value, so that chunks change nothing",
    "MiniMax-M3#018": "an argument that may be text or an object, and is marked up, is an object",
    "Qwen3.5-4B#015": "a block that prompt and model both open is opened once",
    "openai-gpt-oss-120b#013": NOT_DROPPED,
    "openai-gpt-oss-120b#014": NOT_DROPPED,
}

Said = tuple[str, str, list[tuple[str, Any]]]


def read(case: dict[str, Any]) -> Message:
    given = case["inputs"]
    options: dict[str, Any] = {"prompt": case["prompt"], "inline_reasoning": given["reasoning_format"] == "none"}
    options["tools"] = [{"type": "function", "function": tool} for tool in given["tools"]] or None
    if given["json_schema"]:
        options["response_format"] = {"type": "json_schema", "json_schema": given["json_schema"]}
    parser = dialects.get(FAMILIES[case["template"].removesuffix(".jinja")]).parser(**options)
    parser.feed(case["input"])
    return parser.message if case["is_partial"] else parser.finish()


def value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def got(message: Message) -> Said:
    calls = [(call.name, value(call.arguments)) for call in message.tool_calls]
    return message.content.strip(), message.reasoning.strip(), calls


def wanted(expected: dict[str, Any]) -> Said:
    calls = [(call["name"], value(call["arguments"])) for call in expected["tool_calls"]]
    return (expected["content"] or "").strip(), (expected.get("reasoning_content") or "").strip(), calls


def test_llama_cpp_reads_the_same_but_for_known_differences(conformance: Path) -> None:
    lines = (conformance / "llama_cpp" / "chat_cases.jsonl").read_text().splitlines()
    cases = [case for case in map(json.loads, lines) if case["template"].removesuffix(".jinja") in FAMILIES]
    cases = [case for case in cases if case["kind"] == "parse"]
    assert len(cases) > 300
    differing = {case["id"] for case in cases if got(read(case)) != wanted(case["expect"])}
    assert set(DIFFERENCES) == differing
