"""Real chat templates: what is found in them, and that what they render is accepted and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.templates.analysis import Analysis, analyze_template
from dovetail.templates.analysis.probes import Prober
from dovetail.templates.analysis.verify import PROBES, verifier_of
from tests.recorded import templates

# The templates that seed 003 lists and that are in the folder, with the tool format that it gives, or ours and why.
SEED = {
    "mistralai-Ministral-3-14B-Reasoning-2512": "TAG_WITH_JSON",  # the seed says "Reasoning" and leaves the format out
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "TAG_WITH_TAGGED",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "JSON_NATIVE",
    "google-gemma-2-2b-it": "NONE",
    "Qwen-QwQ-32B": "JSON_NATIVE",  # the seed says "Reasoning" and leaves the format out
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "JSON_NATIVE",
    # The seed says JSON_NATIVE; the template renders no calls, it only tells the model how to write them.
    "ibm-granite-granite-3.3-2B-Instruct": "NONE",
    "ByteDance-Seed-OSS": "TAG_WITH_TAGGED",
    "Qwen3-Coder": "TAG_WITH_TAGGED",
    # The seed says JSON_NATIVE; the name stands outside of the JSON: name<｜tool▁sep｜>{...}.
    "deepseek-ai-DeepSeek-V3.1": "TAG_WITH_JSON",
    "GLM-4.6": "TAG_WITH_TAGGED",
    "GLM-4.7-Flash": "TAG_WITH_TAGGED",
    # The seed says JSON_NATIVE; the name stands outside of the JSON: functions.name:0<|tool_call_argument_begin|>{...}.
    "Kimi-K2-Thinking": "TAG_WITH_JSON",
    "moonshotai-Kimi-K2": "TAG_WITH_JSON",
    "Apertus-8B-Instruct": "JSON_NATIVE",
    # The seed says TAG_WITH_JSON; each parameter has a tag of its own: <parameter name="city">Paris</parameter>.
    "MiniMax-M2": "TAG_WITH_TAGGED",
    "mistralai-Mistral-Nemo-Instruct-2407": "JSON_NATIVE",
    "meetkai-functionary-medium-v3.1": "TAG_WITH_JSON",
    "meetkai-functionary-medium-v3.2": "TAG_WITH_JSON",  # the seed has a dedicated handler
    # The seed says TAG_WITH_JSON; the name stands inside the JSON: functools[{"name": ..., "arguments": ...}].
    "fireworks-ai-llama-3-firefunction-v2": "JSON_NATIVE",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "TAG_WITH_JSON",  # the seed says "Reasoning"
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "TAG_WITH_JSON",  # the seed says "Reasoning"
    "llama-cpp-deepseek-r1": "TAG_WITH_JSON",  # the seed says "Reasoning"
    "meta-llama-Llama-3.1-8B-Instruct": "JSON_NATIVE",
    "meta-llama-Llama-3.2-3B-Instruct": "JSON_NATIVE",
    "meta-llama-Llama-3.3-70B-Instruct": "JSON_NATIVE",
    "openai-gpt-oss-120b": "TAG_WITH_JSON",  # the seed has a dedicated handler
    "Apriel-1.6-15b-Thinker-fixed": "JSON_NATIVE",  # the seed says "Reasoning", and JSON_NATIVE of its predecessor
    # The seed says JSON_NATIVE; the name stands outside of the JSON: [TOOL_CALLS]name[CALL_ID]...[ARGS]{...}.
    "Mistral-Small-3.2-24B-Instruct-2506": "TAG_WITH_JSON",
    "unsloth-mistral-Devstral-Small-2507": "TAG_WITH_JSON",
}

# One call leaves the section open, and every one behind the second closes it again.
BROKEN = {("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "one call")}

# Modes of reasoning and content, and the place of ids, where they are not NONE, PLAIN and NONE.
MODES = {
    "Apriel-1.6-15b-Thinker-fixed": ("DELIMITER", "PLAIN", "NONE"),
    "Cohere2MoE": ("FORCED_CLOSED", "ALWAYS_WRAPPED", "PRE_FUNC_NAME"),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("TOOLS_ONLY", "ALWAYS_WRAPPED", "PRE_FUNC_NAME"),
    "GLM-4.6": ("TAG_BASED", "PLAIN", "NONE"),
    "Kimi-K2-Thinking": ("TOOLS_ONLY", "PLAIN", "BETWEEN_FUNC_AND_ARGS"),
    "MiniMax-M2": ("FORCED_OPEN", "PLAIN", "NONE"),
    "Mistral-Small-3.2-24B-Instruct-2506": ("NONE", "PLAIN", "BETWEEN_FUNC_AND_ARGS"),
    "Qwen3.5-4B": ("FORCED_CLOSED", "PLAIN", "NONE"),
    "ibm-granite-granite-3.3-2B-Instruct": ("TAG_BASED", "WRAPPED_WITH_REASONING", "NONE"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("NONE", "PLAIN", "POST_ARGS"),
}

SAME = {
    "ByteDance-Seed-OSS": "seed_oss",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command_r7b",
    "GLM-4.7-Flash": "glm_4_7",
    "Kimi-K2-Thinking": "kimi",
    "Kimi-K3": "kimi_k3",
    "LFM2.5-8B-A1B": "lfm2",
    "MiniMax-M2": "minimax",
    "MiniMax-M3": "minimax_m3",
    "Qwen-Qwen3-0.6B": "qwen_3",
    "Qwen3.5-4B": "qwen_3_5",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v3_2",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "google-gemma-4-31B-it": "gemma_4",
    "meta-llama-Llama-3.1-8B-Instruct": "llama",
    "mistralai-Ministral-3-14B-Reasoning-2512": "ministral",
    "openai-gpt-oss-120b": "harmony",
}


def analyzed(conformance: Path, name: str) -> Analysis:
    return analyze_template((conformance / "llama_cpp" / "templates" / f"{name}.jinja").read_text())


@pytest.mark.parametrize("name", SEED)
def test_the_tool_format_is_that_of_the_seed_or_the_reason_is_given(conformance: Path, name: str) -> None:
    assert analyzed(conformance, name).modes.tools == SEED[name]


@pytest.mark.parametrize("name", MODES)
def test_the_modes_are_those_of_the_seed(conformance: Path, name: str) -> None:
    modes = analyzed(conformance, name).modes
    assert MODES[name] == (modes.reasoning, modes.content, modes.call_id)


@pytest.mark.parametrize("name", SAME)
def test_a_template_that_equals_a_built_in_dialect_says_so(conformance: Path, name: str) -> None:
    assert analyzed(conformance, name).same_as == SAME[name]


def test_what_real_templates_render_is_accepted_and_read_back_equal(conformance: Path) -> None:
    failed, proved = set(), 0
    paths = templates(conformance / "llama_cpp" / "templates")
    for path in paths:
        source = path.read_text()
        for row in verifier_of(analyze_template(source), Prober(source)).verify(PROBES):
            proved += row.passed
            if not row.passed:
                failed.add((path.stem, row.feature))
    assert len(paths) == 54
    assert BROKEN == failed
    assert proved > 240


def test_findings_stand_where_their_evidence_shows_them(conformance: Path) -> None:
    findings = analyzed(conformance, "Qwen3-Coder").findings
    assert {"turn.start", "turn.end", "calls.call_begin", "arguments.begin"} <= {row.what for row in findings}
    for row in findings:
        for start, end in row.evidence.spans:
            assert row.evidence.right[start:end] == row.value


def test_the_same_template_is_analyzed_once(conformance: Path) -> None:
    assert analyzed(conformance, "Qwen3-Coder") is analyzed(conformance, "Qwen3-Coder")


def test_capabilities_are_found_by_what_is_rendered(conformance: Path) -> None:
    able = analyzed(conformance, "Qwen-Qwen3-0.6B").capabilities
    assert able.tools
    assert able.tool_calls
    assert able.parallel_calls
    assert able.tool_role
    assert able.system_role
    assert able.content_with_calls
    assert not able.call_ids
    assert not able.reasoning_in_history
    assert (able.arguments, able.reasoning_field, able.thinking_switch) == (
        "either",
        "reasoning_content",
        "enable_thinking",
    )
    plain = analyzed(conformance, "google-gemma-2-2b-it").capabilities
    assert not plain.tools
    assert not plain.tool_calls
    assert not plain.system_role
    assert plain.arguments == "none"


def test_slips_of_a_template_that_no_reader_can_undo_are_noted(conformance: Path) -> None:
    for name, slip in (
        ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "not closed by <｜tool▁calls▁end｜>"),
        ("LFM2.5-8B-A1B", "without escapes"),
    ):
        assert any(slip in note for note in analyzed(conformance, name).notes)


def test_a_switch_for_reasoning_in_history_is_found(conformance: Path) -> None:
    able = analyzed(conformance, "GLM-4.7-Flash").capabilities
    assert (False, "clear_thinking") == (able.reasoning_in_history, able.history_switch)


def test_what_transformers_refuses_is_analyzed_and_noted(conformance: Path) -> None:
    notes = analyzed(conformance, "Kimi-K2-Thinking").notes
    assert any("append" in note for note in notes)
