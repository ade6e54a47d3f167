"""Requests to a server with the masks and parsers of Dovetail, each with what its answer has to be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import openai

Check = Callable[["Answer"], object]


@dataclass
class Answer:
    """One choice of an answer, whole or added up from a stream."""

    content: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    finish: str | None = None


@dataclass(frozen=True)
class Case:
    name: str
    check: Check
    asked: dict[str, Any]
    question: str = "What is the weather in Rome?"
    stream: bool = False
    refused: tuple[str, ...] = ()  # words of the error, where there has to be one

    def answers(self, client: openai.OpenAI) -> list[Answer]:
        asked: dict[str, Any] = {"max_tokens": 160, "temperature": 0.0} | self.asked
        asked.setdefault("messages", [{"role": "user", "content": self.question}])
        if self.stream:
            return added_up(client.chat.completions.create(model="m", stream=True, **asked))
        made = client.chat.completions.create(model="m", **asked)
        return [
            Answer(
                choice.message.content or "",
                [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []],
                choice.finish_reason,
            )
            for choice in made.choices
        ]

    def run(self, client: openai.OpenAI) -> None:
        if self.refused:
            try:
                told = self.answers(client)
            except openai.BadRequestError as error:
                missing = [word for word in self.refused if word not in str(error)]
                assert not missing, f"{self.name}: {error} does not say {missing}"
                return
            raise AssertionError(f"{self.name}: not refused, but answered {told}")
        answers = self.answers(client)
        assert len(answers) == self.asked.get("n", 1), answers
        for answer in answers:
            assert self.check(answer) is not False, f"{self.name}: {answer}"


def added_up(stream: Any) -> list[Answer]:
    made: dict[int, Answer] = {}
    ids: dict[tuple[int, int], str] = {}
    for chunk in stream:
        for choice in chunk.choices:
            answer = made.setdefault(choice.index, Answer())
            answer.content += choice.delta.content or ""
            answer.finish = choice.finish_reason or answer.finish
            for call in choice.delta.tool_calls or []:
                assert call.index <= len(answer.calls), "calls come one after the other"
                if call.index == len(answer.calls):
                    assert call.id
                    assert call.function.name
                    ids[choice.index, call.index] = call.id
                    answer.calls.append((call.function.name, ""))
                name, arguments = answer.calls[call.index]
                answer.calls[call.index] = (name, arguments + (call.function.arguments or ""))
    assert len(set(ids.values())) == len(ids)
    return [made[index] for index in sorted(made)]


def schema_of(schema: Any, strict: bool = True) -> dict[str, Any]:
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": strict}}
    }


def outputs(**constraint: Any) -> dict[str, Any]:
    return {"extra_body": {"structured_outputs": constraint}}


def fits(schema: Any) -> Check:
    def check(answer: Answer) -> object:
        jsonschema.validate(json.loads(answer.content), schema)
        return answer.finish == "stop" and not answer.calls

    return check


def matches(pattern: str) -> Check:
    return lambda answer: bool(re.fullmatch(pattern, answer.content, re.DOTALL)) and answer.finish == "stop"


def one_of(*texts: str) -> Check:
    return lambda answer: answer.content in texts and answer.finish == "stop"


def calls(*tools: dict[str, Any], exactly: int | None = None, finish: str = "tool_calls") -> Check:
    """The answer calls these tools, with arguments that fit; the last may be cut off by the limit."""
    known = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in tools}

    def check(answer: Answer) -> object:
        whole = answer.calls if answer.finish == finish and exactly else answer.calls[:1]
        for name, arguments in whole:
            jsonschema.validate(json.loads(arguments), known[name])
        count = len(answer.calls) == exactly if exactly else bool(answer.calls)
        return count and all(name in known for name, _ in answer.calls) and "<tool_call>" not in answer.content

    return check


def answers_or_calls(schema: Any, *tools: dict[str, Any]) -> Check:
    return lambda answer: calls(*tools)(answer) if answer.calls else fits(schema)(answer)


def tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": name.replace("_", " "), "parameters": parameters}
    return {"type": "function", "function": function}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def choose(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


DAYS = {"type": "integer", "minimum": 1, "maximum": 7}
WEATHER = tool("get_weather", closed(city={"enum": ["Rome", "Oslo"]}, days=DAYS))
CLOCK = tool("get_time", closed(zone={"enum": ["UTC", "CET"]}))
PING = tool("ping", closed())
TRIP = tool(
    "plan", closed(trip=closed(to={"enum": ["Rome", "Oslo"]}, legs={"type": "array", "items": DAYS, "maxItems": 2}))
)
RISK = closed(risk={"enum": ["low", "high"]}, why={"type": "string", "maxLength": 20})
ONE = {"tool_choice": "required", "parallel_tool_calls": False}
TAG = {"type": "tag", "begin": "<x>", "content": {"type": "regex", "pattern": "[0-9]{3}"}, "end": "</x>"}
DIGIT = {"type": "regex", "pattern": "[0-9]"}
OLD_TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<r>", "schema": RISK, "end": "</r>"}],
    "triggers": ["<r"],
}
NO_LEAF: Any = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}


def any_text(answer: Answer) -> object:
    return bool(answer.content) and not answer.calls


def _tagged(content: dict[str, Any]) -> dict[str, Any]:
    return outputs(structural_tag=json.dumps({"type": "structural_tag", "format": content}))


TOUR = [
    Case("free text", any_text, {"max_tokens": 10}, "Say hello."),
    Case("schema", fits(RISK), schema_of(RISK), "How risky is it?"),
    Case("any object", lambda a: a.content.lstrip().startswith("{"), {"response_format": {"type": "json_object"}}),
    Case("regex", matches("[A-Z]{2}-[0-9]{3}"), outputs(regex="[A-Z]{2}-[0-9]{3}")),
    Case("choice", one_of("yes", "no", "perhaps"), outputs(choice=["yes", "no", "perhaps"])),
    Case("EBNF", matches("a[0-9]z|b"), outputs(grammar='root ::= "a" [0-9] "z" | "b"')),
    Case("Lark", matches("a[0-9]z|b"), outputs(grammar='start: "a" /[0-9]/ "z" | "b"')),
    Case("structural tag", matches("<x>[0-9]{3}</x>"), _tagged(TAG)),
    Case("tools, auto", lambda a: bool(a.content or a.calls), {"tools": [WEATHER], "max_tokens": 20}),
    Case("tools, required", calls(WEATHER), {"tools": [WEATHER], "tool_choice": "required"}),
    Case("tools, named", calls(WEATHER), {"tools": [WEATHER], "tool_choice": choose("get_weather")}),
    Case("tools, one call", calls(WEATHER, exactly=1), {"tools": [WEATHER], **ONE}),
    Case("tools and a schema", answers_or_calls(RISK, WEATHER), {"tools": [WEATHER]} | schema_of(RISK)),
    Case("stream of one call", calls(WEATHER, exactly=1), {"tools": [WEATHER], **ONE}, stream=True),
    Case("stream of a schema", fits(RISK), schema_of(RISK), stream=True),
    Case(
        "the end is ignored",
        lambda a: a.content in ("yes", "no") and a.finish == "length",
        {"extra_body": {"ignore_eos": True, "structured_outputs": {"choice": ["yes", "no"]}}, "max_tokens": 12},
    ),
    Case(
        "stop tokens that are text",
        matches("[0-9]{8}"),
        {"extra_body": {"stop_token_ids": [33], "structured_outputs": {"regex": "[0-9]{8}"}}},
    ),
    Case("a type that is none", any_text, schema_of({"type": "strin"}), refused=("strin", "use one of", "/type")),
    Case(
        "multipleOf",
        lambda a: json.loads(a.content) % 7 == 0,
        schema_of({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 100}),
    ),
    Case("allOf", one_of('"yes"', '"no"'), schema_of({"allOf": [{"type": "string"}, {"enum": ["yes", "no"]}]})),
    Case(
        "uniqueItems",
        lambda a: sorted(json.loads(a.content)) == [1, 2, 3],
        schema_of({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3, "maxItems": 3}),
    ),
]


def _schema(name: str, schema: Any, **asked: Any) -> Case:
    return Case(name, fits(schema), schema_of(schema) | asked)


MORE = [
    _schema("bounds", {"type": "integer", "minimum": 12, "maximum": 17}),
    _schema("references", {"$defs": {"c": closed(n=DAYS)}, **closed(a={"$ref": "#/$defs/c"}, b={"$ref": "#/$defs/c"})}),
    _schema("list of choices", {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3}),
    _schema("anyOf", {"anyOf": [closed(n=DAYS), {"type": "null"}]}),
    _schema("pattern", {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}),
    _schema("pattern and length", {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 5}),
    _schema("date", closed(day={"type": "string", "format": "date"})),
    _schema("letters beyond ASCII", closed(größe={"enum": ["für", "où", "日本"]})),
    _schema(
        "patternProperties beside properties",
        {
            "type": "object",
            "properties": {"n": DAYS},
            "patternProperties": {"^x_[a-c]$": DAYS},
            "required": ["n"],
            "additionalProperties": False,
        },
    ),
    _schema("several types", closed(v={"type": ["boolean", "null"]})),
    _schema("drawn at random", RISK, temperature=1.0, seed=7),
    _schema("two answers", RISK, n=2, temperature=0.7, seed=3),
    Case("not strict", fits({"type": "object"}), schema_of(closed(n=DAYS), strict=False)),
    Case("regex beyond ASCII", matches("[äöü]{3}"), outputs(regex="[äöü]{3}")),
    Case("one choice begins another", one_of("yes", "yes, please"), outputs(choice=["yes", "yes, please"])),
    Case("EBNF of several rules", matches("[0-9](,[0-9]){2}"), outputs(grammar='root ::= d "," d "," d\nd ::= [0-9]')),
    Case(
        "Lark of several rules",
        matches("(up|down) [0-9]"),
        outputs(grammar='start: way " " D\nway: "up" | "down"\nD: /[0-9]/'),
    ),
    Case(
        "older structural tag",
        lambda a: all(fits(RISK)(Answer(t, [], "stop")) for t in re.findall("<r>(.*?)</r>", a.content, re.DOTALL)),
        outputs(structural_tag=json.dumps(OLD_TAG)) | {"max_tokens": 30},
    ),
    Case(
        "a tag that must come",
        matches("<x>[0-9]{3}</x>"),
        _tagged(
            {
                "type": "triggered_tags",
                "triggers": ["<x>"],
                "tags": [TAG],
                "at_least_one": True,
                "stop_after_first": True,
            }
        ),
    ),
    Case("one of two tools", calls(WEATHER, CLOCK, exactly=1), {"tools": [WEATHER, CLOCK], **ONE}),
    Case("the second tool", calls(CLOCK), {"tools": [WEATHER, CLOCK], "tool_choice": choose("get_time")}),
    Case("a tool without parameters", calls(PING, exactly=1), {"tools": [PING], **ONE, "max_tokens": 300}),
    Case("nested arguments", calls(TRIP, exactly=1), {"tools": [TRIP], **ONE}),
    Case("tools that may not be called", any_text, {"tools": [WEATHER], "tool_choice": "none", "max_tokens": 20}),
    Case(
        "two answers with calls",
        calls(WEATHER, exactly=1),
        {"tools": [WEATHER], **ONE, "n": 2, "temperature": 0.8, "seed": 5},
    ),
    Case("stream of a regex", matches("[A-Z]{2}-[0-9]{3}"), outputs(regex="[A-Z]{2}-[0-9]{3}"), stream=True),
    Case(
        "stream of the second tool",
        calls(CLOCK),
        {"tools": [WEATHER, CLOCK], "tool_choice": choose("get_time")},
        stream=True,
    ),
    Case(
        "stream of two answers",
        one_of("yes", "no"),
        outputs(choice=["yes", "no"]) | {"n": 2, "temperature": 0.5},
        stream=True,
    ),
    Case(
        "stream of tools and a schema",
        answers_or_calls(RISK, WEATHER),
        {"tools": [WEATHER]} | schema_of(RISK),
        stream=True,
    ),
    Case(
        "behind the result of a tool",
        fits(RISK),
        schema_of(RISK)
        | {
            "messages": [
                {"role": "user", "content": "How risky is the weather?"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"city": "Rome", "days": 1}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "storm"},
            ]
        },
    ),
    Case(
        "cut off", lambda a: a.finish == "length" and a.content.lstrip()[:1] == "{", schema_of(RISK) | {"max_tokens": 3}
    ),
    Case("a bad regex", any_text, outputs(regex="[a-"), refused=("not closed", "/pattern")),
    Case("a schema that nothing fits", any_text, schema_of(NO_LEAF), refused=("no",)),
    Case("a bad grammar", any_text, outputs(grammar="root ::= (("), refused=("parameter=",)),
    Case("neither EBNF nor Lark", any_text, outputs(grammar="what is this?"), refused=("neither EBNF",)),
    Case("a bad structural tag", any_text, _tagged({"type": "tug"}), refused=("tug", "/format")),
    Case(
        "a structural tag that only Dovetail has",
        matches("[0-9]"),
        _tagged({"type": "capture", "name": "n", "content": DIGIT}),
    ),
    Case("no choice", any_text, outputs(choice=[]), refused=("choice",)),
    Case("a bad schema of a tool", any_text, {"tools": [tool("f", {"type": "objekt"})], **ONE}, refused=("objekt",)),
    Case(
        "a tool that is not there", any_text, {"tools": [PING], "tool_choice": choose("pong")}, refused=("tool_choice",)
    ),
]
