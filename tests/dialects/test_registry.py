"""Dialects and structural tags by name."""

from __future__ import annotations

from typing import Any

import pytest

import dovetail as dt
from dovetail.dialects import registry
from dovetail.dialects.families import FAMILIES
from tests.dialects.requests_data import TOOLS


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_known", dict(registry._known))


def test_the_families_of_the_specification_are_built_in() -> None:
    wanted = """llama qwen_3 qwen_3_5 qwen_3_coder kimi deepseek_r1 harmony deepseek_v3_2 minimax glm_4_7 gemma_4
    deepseek_v4 kimi_k3 deepseek_v3_1 deepseek_v4_1 mimo minimax_m3 cohere exaone hermes mistral llama_4 granite phi_4
    lfm2 seed_oss nemotron apertus command_r7b ministral dots ernie_4_5 functiongemma gigachat_3 granite_20b_fc
    hunyuan_a13b hy_v3 inkling intern_s1 internlm_2 jamba ling_3 longcat minicpm_5 muse_glimmer olmo_3 poolside_v1
    step_3 step_3_5 trinity xlam"""
    assert sorted(wanted.split()) == sorted(family.name for family in FAMILIES)
    assert set(wanted.split()) <= set(dt.dialects.names())


@pytest.mark.parametrize("look_up", [dt.dialects.get, dt.get_model_structural_tag, dt.get_builtin_structural_tag])
def test_an_unknown_name_is_refused_with_the_known_ones(look_up: Any) -> None:
    with pytest.raises(ValueError, match="qwen_3_coder") as caught:
        look_up("gpt_2")
    assert isinstance(caught.value, dt.DovetailError)


@pytest.mark.parametrize(
    ("slip", "meant"), [("qwen3", "qwen_3"), ("Llama-4", "llama_4"), ("deepseek_v32", "deepseek_v3_2")]
)
def test_a_slip_of_a_name_is_told_what_was_meant(slip: str, meant: str) -> None:
    for look_up in (dt.dialects.get, dt.get_model_structural_tag):
        with pytest.raises(dt.DialectError, match=f"did you mean '{meant}'"):
            look_up(slip)


def test_the_name_is_checked_before_everything_else() -> None:
    with pytest.raises(dt.DialectError, match="there is no model style"):
        dt.get_model_structural_tag("gpt_2", tools="no list")


def test_a_style_is_the_format_of_its_dialect() -> None:
    made = dt.get_model_structural_tag("qwen_3", TOOLS, "required", False, parallel_tool_calls=False)
    assert dt.dialects.get("qwen_3").format(TOOLS, "required", False, parallel_tool_calls=False) == made
    assert made == dt.get_builtin_structural_tag("qwen_3", TOOLS, "required", "disabled", parallel_tool_calls=False)


def test_a_style_of_ones_own_gets_the_request() -> None:
    seen: dict[str, Any] = {}

    @dt.register_model_structural_tag("parrot")
    def parrot(**request: Any) -> dict[str, Any]:
        seen.update(request)
        return {"type": "structural_tag", "format": {"type": "const_string", "value": "squawk"}}

    made = dt.get_model_structural_tag("parrot", TOOLS, "none", any_order=True)
    assert dt.accepts(made, "squawk")
    assert (TOOLS, "none", True, True) == (seen["tools"], seen["tool_choice"], seen["reasoning"], seen["any_order"])
    assert "parrot" not in dt.dialects.names()


def test_a_dialect_of_ones_own_is_known_by_its_name() -> None:
    mute = dt.dialects.register(dt.Dialect("mute"))
    assert mute is dt.dialects.get("mute")
    assert dt.accepts(dt.get_model_structural_tag("mute", TOOLS), "Hello.")
