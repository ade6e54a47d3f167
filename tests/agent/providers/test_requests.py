"""What is sent: strict schemas where a service takes them, choices, limits; and which provider the options name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.agent.providers import NoModelError, configured, connect
from dovetail.agent.providers.catalog import Catalog, Prices, rows_of
from dovetail.agent.providers.local import speaker_provider
from dovetail.agent.providers.strict import fits
from dovetail.agent.types import (
    STRUCTURED_OUTPUT,
    Named,
    ProviderError,
    ProviderOptions,
    Request,
    ToolSpec,
    Usage,
    UserTurn,
)
from dovetail.errors import InputError
from tests.agent.providers.conftest import SERVICES, ask, connected, read
from tests.agent.servers import Reply, ScriptedServer
from tests.agent.servers.openai_wire import _not_strict

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def closed(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


STRICT = [
    # schema, taken by OpenAI, taken by Anthropic
    (CLOSED, True, True),
    (closed(), True, True),
    ({"type": "object"}, False, False),
    ({}, False, False),
    (CLOSED | {"required": []}, False, True),
    (CLOSED | {"additionalProperties": True}, False, False),
    (CLOSED | {"required": ["a", "b"]}, False, False),
    (closed(a={"type": "array", "items": {"type": "string"}}), True, True),
    (closed(a={"type": "array"}), False, False),
    (closed(a={}), False, False),
    (closed(a=True), False, False),
    (closed(a={"type": "integer", "minimum": 1}), True, False),
    (closed(a={"type": "string", "minLength": 1}), False, False),
    (closed(a={"type": "string", "pattern": "^a$"}), True, False),
    (closed(a={"type": "string", "format": "email"}), True, True),
    (closed(a={"type": "string", "format": "color"}), False, False),
    (closed(a={"anyOf": [{"type": "null"}, CLOSED]}), True, True),
    (closed(a={"oneOf": [{"type": "null"}, CLOSED]}), False, False),
    (closed(a={"allOf": [CLOSED]}), False, True),
    (closed(a={"$ref": "#/$defs/x"}) | {"$defs": {"x": CLOSED}}, True, True),
    (closed(a={"$ref": "other.json"}), False, False),
    ({"$ref": "#/$defs/x", "$defs": {"x": CLOSED}}, False, False),
    (closed(a=closed(b=closed(c=closed(d=CLOSED)))), True, True),
]


@pytest.mark.parametrize(("schema", "by_openai", "by_anthropic"), STRICT, ids=lambda value: str(value)[:60])
def test_strictness_is_asked_for_where_the_service_takes_the_schema(
    schema: dict[str, Any], by_openai: bool, by_anthropic: bool
) -> None:
    assert (by_openai, by_anthropic) == (fits(schema, "openai"), fits(schema, "anthropic"))
    if by_openai:
        assert _not_strict(schema, "") is None


def test_a_schema_that_lies_in_itself_is_looked_at_to_a_depth() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = closed(a=schema)
    assert not fits(schema, "openai")


def tools_of(service: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    match service:
        case "openai":
            return [tool["function"] for tool in body["tools"]]
        case "anthropic":
            return list(body["tools"])
        case _:
            return list(body["tools"][0]["functionDeclarations"])


TWO = (ToolSpec("exact", "Said.", CLOSED, strict=True), ToolSpec("open", "", {"type": "object"}, strict=True))
ASKED = Request((UserTurn("hi"),), "sys", TWO, max_output_tokens=77, temperature=0.5)
CHOICES: dict[str, dict[Any, Any]] = {
    "openai": {
        "auto": "auto",
        "required": "required",
        "none": "none",
        Named("open"): {"type": "function", "function": {"name": "open"}},
    },
    "anthropic": {
        "auto": {"type": "auto"},
        "required": {"type": "any"},
        "none": {"type": "none"},
        Named("open"): {"type": "tool", "name": "open"},
    },
    "gemini": {
        "auto": {"mode": "VALIDATED"},
        "required": {"mode": "ANY"},
        "none": {"mode": "NONE"},
        Named("open"): {"mode": "ANY", "allowedFunctionNames": ["open"]},
    },
}


@pytest.mark.parametrize("service", SERVICES)
def test_tools_choices_and_limits_are_sent(service: str) -> None:
    requests = [replace(ASKED, tool_choice=choice) for choice in CHOICES[service]]
    bodies = [ask(service, request, Reply("ok"))[2][0].body for request in requests]
    for body, expected in zip(bodies, CHOICES[service].values(), strict=True):
        sent = body["toolConfig"]["functionCallingConfig"] if service == "gemini" else body["tool_choice"]
        assert expected == sent
    exact, loose = tools_of(service, bodies[0])
    assert ("exact", "Said.", "open") == (exact["name"], exact["description"], loose["name"])
    if service != "gemini":
        assert (True, None) == (exact.get("strict"), loose.get("strict"))
    limits = bodies[0].get("generationConfig", bodies[0])
    assert {77, 0.5} <= set(filter(lambda value: isinstance(value, int | float), limits.values()))


def test_further_fields_reach_the_service_and_thinking_gives_way_to_a_forced_call() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    _, _, received = ask("anthropic", replace(ASKED, tool_choice="auto"), Reply("ok"), extra=thinking)
    assert thinking["thinking"] == received[0].body["thinking"]
    _, _, received = ask("anthropic", replace(ASKED, tool_choice=Named("open")), Reply("ok"), extra=thinking)
    assert "thinking" not in received[0].body
    _, _, received = ask("openai", ASKED, Reply("ok"), extra={"top_k": 5}, seed=9)
    assert (5, 9) == (received[0].body["top_k"], received[0].body["seed"])
    _, _, received = ask("gemini", ASKED, Reply("ok"), extra={"thinking_config": {"includeThoughts": True}})
    sent = received[0].body["generationConfig"]["thinkingConfig"]
    assert sent in ({"includeThoughts": True}, {"include_thoughts": True})  # the service takes both


def test_anthropic_is_told_what_to_keep_and_how_much_may_be_written() -> None:
    """Tools, instructions and the conversation are each marked; what it kept is counted and paid for as such."""
    _, _, received = ask("anthropic", ASKED, Reply("ok"), effort="low", temperature=0.5)
    body, mark = received[0].body, {"type": "ephemeral"}
    assert mark == body["system"][-1]["cache_control"] == body["tools"][-1]["cache_control"]
    assert mark == body["messages"][-1]["content"][-1]["cache_control"]
    assert str(body).count("cache_control") == 3
    assert ({"effort": "low"}, 0.5) == (body["output_config"], body["temperature"])
    _, _, received = ask("anthropic", ASKED, Reply("ok"), effort="low", temperature=0.5, model="claude-haiku-4-5")
    body = received[0].body
    assert {"type": "enabled", "budget_tokens": 2048} == body["thinking"]
    assert "temperature" not in body  # which the service does not take beside thinking
    for model, most in (("claude-haiku-4-5", 64_000), ("claude-3-haiku-20240307", 4096), ("mystery", 16_384)):
        with ScriptedServer([Reply("ok")]) as server:
            read(connected(server, "anthropic", model=model), Request((UserTurn("hi"),)))
        assert most == server.received[0].body["max_tokens"]


def test_gemini_is_told_its_effort_in_its_own_way() -> None:
    for model, told in (("gemini-2.5-pro", {"thinking_budget": 8192}), ("gemini-9", {"thinking_level": "MEDIUM"})):
        _, _, received = ask("gemini", ASKED, Reply("ok"), effort="medium", model=model)
        assert told == received[0].body["generationConfig"]["thinkingConfig"]


def test_the_longest_name_that_fits_tells_the_prices() -> None:
    catalog = Catalog(rows_of({"gpt-5-own": {"input": 1, "output": 2}}, "here"))
    assert [0.25, 1.25, 1] == [
        found.input
        for name in ("gpt-5-mini-2025-08-07", "openai/gpt-5", "gpt-5-own")
        if (found := catalog.find(name).usd)
    ]
    for name in ("mystery", "gpt-5.9", "claude-new", "gpt-5-other"):  # what nobody knows is not guessed
        assert catalog.find(name).usd is None
    assert (32_000, 272_000) == (catalog.find("claude-new").output, catalog.find("gpt-5.9").context)
    prices = Prices(input=10, output=100, cached=1, written=20)
    assert 1 + 1 + 20 + 10 == round(prices.cost(Usage(2_100_000, 100_000, 1_000_000, 1_000_000)), 6)


def test_a_long_request_costs_what_long_requests_cost() -> None:
    long = {"above": 200_000, "input": 4, "cached": 0.4, "output": 18}
    (row,) = rows_of({"own": {"input": 2, "cached": 0.2, "output": 12, "long": long}}, "here")
    assert row.usd is not None
    for usage, dollars in (
        (Usage(200_000, 1_000_000), 0.4 + 12),
        (Usage(300_000, 1_000_000, 100_000), 0.8 + 0.04 + 18),
    ):
        assert dollars == round(row.usd.cost(usage), 6)
    shipped = Catalog().find("gemini-2.5-pro").usd
    assert shipped is not None
    assert shipped.long is not None
    assert shipped.long.above == 200_000


def test_prices_that_are_none_are_refused_with_their_place() -> None:
    for prices, place in (
        ({"input": -1, "output": 1}, "/own/input"),
        ({"input": 1, "output": 1, "long": {"above": 0, "input": 1, "output": 1}}, "/own/long/above"),
        ({"input": 1, "output": 1, "long": {"input": 1, "output": 1}}, "/own/long/above"),
    ):
        with pytest.raises(InputError) as raised:
            rows_of({"own": prices}, "--prices")
        assert place in str(raised.value)


# Which provider.

KEYS = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g"}
CONFIGURED = [
    # options, environment, expected name and model
    (ProviderOptions(), KEYS | {"ANTHROPIC_MODEL": "claude-x"}, ("anthropic", "claude-x")),
    (ProviderOptions(), {"OPENAI_MODEL": "q", "OPENAI_BASE_URL": "http://localhost"}, ("openai", "q")),
    (ProviderOptions(model="speaker"), KEYS, ("speaker", "speaker")),
    (ProviderOptions(model="claude-x"), KEYS, ("anthropic", "claude-x")),
    (ProviderOptions(model="gemini-x"), KEYS, ("gemini", "gemini-x")),
    (ProviderOptions(model="gpt-x"), KEYS, ("openai", "gpt-x")),
    (ProviderOptions(model="claude-x", name="openai"), KEYS, ("openai", "claude-x")),
    (ProviderOptions(model="qwen", base_url="http://localhost:8000/v1"), {}, ("openai", "qwen")),
    (ProviderOptions(model=str(Path(__file__).parent)), {}, ("local", str(Path(__file__).parent))),
]


@pytest.mark.parametrize(("options", "environment", "expected"), CONFIGURED)
def test_options_and_environment_name_the_provider(
    options: ProviderOptions, environment: dict[str, str], expected: tuple[str, str]
) -> None:
    found = configured(options, environment)
    assert expected == (found.name, found.model)


@pytest.mark.parametrize(
    "options", [ProviderOptions("mystery"), ProviderOptions("openai"), ProviderOptions("local", "x")]
)
def test_options_that_name_nothing_are_told(options: ProviderOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(ProviderError, match=r"provider|no model|cannot be loaded"):
        connect(options)


# The speaker.


def test_the_speaker_answers_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_MODEL", "ANTHROPIC_MODEL", "GEMINI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for environment in ({}, KEYS):
        with pytest.raises(NoModelError, match="--model speaker"):
            configured(ProviderOptions(), environment)
    for options in (ProviderOptions("speaker"), ProviderOptions(model="speaker")):
        provider = connect(options)
        assert ("speaker", "speaker") == (provider.name, provider.model)
        assert read(provider, Request((UserTurn("hi"),)))[0].turn.text


def test_the_speaker_calls_no_tool_but_the_terminal_one_of_its_own_accord() -> None:
    shell = ToolSpec("run_shell_command", "", {"type": "object"})
    answer = ToolSpec(STRUCTURED_OUTPUT, "", CLOSED)
    for seed in range(10):
        provider = speaker_provider(ProviderOptions(seed=seed))
        assert () == read(provider, Request((UserTurn("hi"),), "", (shell,)))[0].turn.tool_uses
        (use,) = read(provider, Request((UserTurn("hi"),), "", (shell, answer)))[0].turn.tool_uses
        assert STRUCTURED_OUTPUT == use.name
    (use,) = read(provider, Request((UserTurn("hi"),), "", (shell,), "required"))[0].turn.tool_uses[:1]
    assert shell.name == use.name


LEAVES: list[Any] = [
    {"type": "string", "maxLength": 5},
    {"type": "integer", "minimum": -3, "maximum": 40},
    {"enum": ["red", "green", None]},
    {"type": "string", "format": "date"},
    {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
    {"type": "boolean"},
    {"type": "number", "multipleOf": 0.25},
]
SCHEMAS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda items, low: {"type": "array", "items": items, "minItems": low}, inner, st.integers(0, 2)),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.dictionaries(st.sampled_from(["a", "b c", "ü"]), inner, min_size=1).map(lambda p: closed(**p)),
    ),
    max_leaves=5,
)
ROOTS = st.dictionaries(st.sampled_from(["name", "n", "tags"]), SCHEMAS).flatmap(
    lambda properties: st.sampled_from([closed(**properties), {"type": "object", "properties": properties}])
)


@settings(max_examples=40)
@given(ROOTS, st.integers(0, 99))
def test_the_speaker_meets_the_contract_for_any_schema(schema: dict[str, Any], seed: int) -> None:
    provider = speaker_provider(ProviderOptions(seed=seed))
    request = Request((UserTurn("hi"),), "", (ToolSpec(STRUCTURED_OUTPUT, "", schema),))
    reply, _ = read(provider, request)
    (use,) = reply.turn.tool_uses
    assert "tool_use" == reply.finish
    assert json.loads(use.arguments) == use.value
    jsonschema.validate(use.value, schema, format_checker=jsonschema.FormatChecker())


INEXACT: list[dict[str, Any]] = [
    closed(a={"type": "array", "uniqueItems": True, "items": {"type": "boolean"}, "minItems": 2}),
    closed(a={"type": "array", "contains": {"const": 3}, "items": {"type": "integer", "minimum": 1, "maximum": 4}}),
    closed(a={"type": "integer", "minimum": 0, "maximum": 30, "not": {"multipleOf": 2}}),
]


@pytest.mark.parametrize("schema", INEXACT, ids=str)
def test_the_speaker_meets_schemas_that_no_grammar_holds_exactly(schema: dict[str, Any]) -> None:
    for seed in (None, 1, 2):
        request = Request((UserTurn("hi"),), "", (ToolSpec(STRUCTURED_OUTPUT, "", schema),))
        (use,) = read(speaker_provider(ProviderOptions(seed=seed)), request)[0].turn.tool_uses
        jsonschema.validate(use.value, schema)
