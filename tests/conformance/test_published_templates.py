"""Chat templates as they are published: what they render is read back, and those that break by themselves are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dovetail as dt
from tests.recorded import templates

# Each with the line of the template that is wrong, and why.
FAULTS = json.loads((Path(__file__).parent.parent / "templates" / "published_faults.json").read_text())
_MAX_FAULTS = 15

# Others publish templates with the same lines.
SAME_FAULTS = {
    "trl--deepseek_r1_distill": "hf-chat---deepseek-r1-distill-qwen-7b",
    "trl--deepseek_r1_distill_training": "hf-chat---deepseek-r1-distill-qwen-7b",
    "trl--gptoss": "unsloth--gptoss_template",
    "trl--gptoss_training": "unsloth--gptoss_template",
    "trl--lfm2_2_5": "hfjs--LiquidAI_LFM2.5-VL-450M",
    "trl--lfm2_2_5_v2": "hfjs--LiquidAI_LFM2.5-VL-450M",
    "vllm--tool_chat_template_toolace": "vllm--tool_chat_template_llama3.2_pythonic",
}

# They hold what models write; what they write themselves only partly shows it, and the check says which part.
DOUBTFUL = {
    "axolotl--falcon_h1",  # calls are told to the model in words, and never rendered
    "hfjs--MadeAgents_Hammer2.1",
    "vllm--tool_chat_template_glm4",
    "ov--TheBloke_CodeLlama-70B-Instruct-AWQ",  # the prompt of the next turn stands behind every conversation
    "mistral.rs--mistral_small_tool_call",  # the last question is marked as instructions, and in history as a question
    "ov--UnicomLLM_Unichat-llama3-Chinese-8B-28K",  # the first turn of the assistant has the header of the user
}


@pytest.fixture(scope="module")
def published(conformance: Path) -> Path:
    return conformance / "published_templates"


def checked(folder: Path, name: str) -> bool:
    """Whether everything that a template supports holds."""
    known = folder / "tokens.json"  # recorded, where somebody has it
    tokens = (json.loads(known.read_text()).get(name) if known.exists() else None) or {}
    template = (folder / f"{name}.jinja").read_text()
    named = {key: tokens.get(key, "</s>") if key in template else "" for key in ("bos_token", "eos_token")}
    try:
        return dt.check(template, **named).passed
    except dt.TemplateError:
        return False


@pytest.mark.slow
def test_published_templates_hold_but_for_those_that_break_by_themselves(published: Path) -> None:
    names = [path.stem for path in templates(published)]
    failed = {name for name in names if not checked(published, name)}
    assert len(FAULTS) <= _MAX_FAULTS
    assert set(SAME_FAULTS.values()) <= set(FAULTS)
    faulty = (set(FAULTS) | set(SAME_FAULTS)) & set(names)
    assert faulty | DOUBTFUL & set(names) == failed
