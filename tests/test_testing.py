"""The builder of tests for authors of chat templates passes and fails as it should, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail.testing import TemplateTest, template

EXAMPLE = Path(__file__).parent.parent / "examples" / "chat_template.jinja"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]
PARIS = '<act to="get_weather">{"city": "Paris"}</act>'


@pytest.fixture(scope="module")
def example() -> TemplateTest:
    return template(EXAMPLE).tools(TOOLS)


def test_what_a_model_writes_means_what_is_expected(example: TemplateTest) -> None:
    example.input("Hello").expect("Hello")
    example.input("<ponder>hm</ponder>\nHello").expect("Hello", "hm")
    example.input(PARIS).expect(calls=[("get_weather", {"city": "Paris"})])
    example.input(f"I look.{PARIS}{PARIS}").expect("I look.", calls=[("get_weather", {"city": "Paris"})] * 2)
    example.input('Hi <act to="get_wea').partial().expect("Hi ")
    example.input('<act to="sing">{}</act>').unconstrained().expect(calls=[("sing", {})])
    example.messages({"role": "user", "content": "Sing"}).options(mood="gay").input("La").expect("La")


CALLS: list[Any] = [
    ("get_weather", {"city": "Paris"}),
    {"name": "get_weather", "arguments": '{"city": "Paris"}'},
    {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}},
    dt.ToolCall.of("get_weather", {"city": "Paris"}),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_may_be_given_in_any_shape(example: TemplateTest, call: Any) -> None:
    example.input(PARIS).expect(calls=[call])


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("Hello", {"content": "Bye"}, "the content differs"),
    ("<ponder>hm</ponder>\nHello", {"content": "Hello"}, "the reasoning differs"),
    (PARIS, {}, "the number of calls differs"),
    (PARIS, {"calls": [("sing", {"city": "Paris"})]}, "the name of call 0 differs"),
    (PARIS, {"calls": [("get_weather", {"city": "Rome"})]}, "the arguments of call 0 differs"),
    (
        PARIS,
        {"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "1"}]},
        "the id of call 0 differs",
    ),
    ('<act to="sing">{}</act>', {"calls": [("sing", {})]}, "remarks of the reader"),
    ('<act to="get_weather">{}</act>', {"calls": [("get_weather", {})]}, "the format does not allow"),
]


@pytest.mark.parametrize(("output", "expected", "words"), WRONG)
def test_a_difference_is_told_with_the_regions_of_the_output(
    example: TemplateTest, output: str, expected: dict[str, Any], words: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        example.input(output).expect(**expected)
    told = str(caught.value)
    assert words in told
    assert "<|turn|>assistant" in told
    assert "content" in told or "arguments" in told


def test_a_common_start_is_not_changed_by_what_is_built_on_it(example: TemplateTest) -> None:
    example.tools([]).options(x=1).partial()
    assert template(EXAMPLE).tools(TOOLS) == example


def test_an_answer_has_to_fit_its_schema(example: TemplateTest) -> None:
    asked = template(EXAMPLE).response_format({"type": "json_schema", "json_schema": {"name": "a", "schema": CITY}})
    asked.input('{"city": "Paris"}').expect('{"city": "Paris"}')
    with pytest.raises(AssertionError, match="does not allow"):
        asked.input('{"town": "Paris"}').expect('{"town": "Paris"}')
