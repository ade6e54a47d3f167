"""What editors infer from the public names: checked by mypy, never run."""

import re
from collections.abc import Iterator
from typing import Any, Literal, TypedDict, assert_type

import numpy as np
from pydantic import BaseModel

import dovetail as dt
from dovetail.models import Speaker, Utterance


def masks(fmt: dict[str, object], draft: list[int]) -> None:
    vocabulary = dt.Vocabulary([b"a", b"b", b"<end>"], {"<end>": 2}, [2])
    assert_type(vocabulary.size, int)
    grammar = dt.compile(fmt, vocabulary)
    assert_type(grammar, dt.CompiledGrammar)
    matcher = grammar.matcher()
    assert_type(matcher, dt.Matcher)
    matcher.fill_mask(np.zeros(1, dtype=np.int32))
    dt.fill_masks([matcher, matcher.fork()], np.zeros((2, 1), dtype=np.int32))
    assert_type(matcher.accept(0), bool)
    assert_type(matcher.accept_bytes(b"a"), bool)
    assert_type(matcher.validate(draft), int)
    assert_type(matcher.forced(), bytes)
    assert_type(matcher.events(), list[dt.CaptureEvent])
    assert_type(matcher.is_complete, bool)
    assert_type(matcher.is_finished, bool)


def formats() -> None:
    assert_type(dt.load_format('{"type": "any_text"}'), dt.formats.Format)
    assert_type(dt.accepts({"type": "any_text"}, "text"), bool)
    assert_type(dt.accepts(dt.load_format({"type": "any_text"}), b"bytes"), bool)


def speaker(fmt: dict[str, object]) -> None:
    voice = Speaker(seed=1)
    assert_type(voice.speak(fmt), Utterance)
    assert_type(voice.stream(fmt), Iterator[int])


class Person(BaseModel):
    name: str


class Movie(TypedDict):
    title: str


def answers(model: Speaker, schema: dict[str, object], chat: list[dict[str, str]]) -> None:
    assert_type(dt.generate(model, "Who?", Person), Person)
    assert_type(dt.generate("smollm2", chat, Person, temperature=0.5, max_tokens=9), Person)
    assert_type(dt.generate(model, "Who?", Movie), Movie)
    assert_type(dt.generate(model, "Who?", list[int]), list[int])
    assert_type(dt.generate(model, "Who?", Literal["a", "b"]), Any)
    assert_type(dt.generate(model, "Who?", schema), Any)
    assert_type(dt.generate(model, "Who?", "[0-9]+"), str)
    assert_type(dt.generate(model, "Who?", re.compile("[0-9]+")), str)
    assert_type(dt.generate(model, "Who?", ["a", "b"]), str)
    assert_type(dt.generate(model, "Who?"), str)
    assert_type(dt.generate(model, ["Who?", "Where?"], Person), list[Person])
    assert_type(dt.generate(model, [chat, chat], Person), list[Person])
    assert_type(dt.generate(model, ["Who?"]), list[str])
    assert_type(dt.generate(model, "Who?", Person, stream=True), dt.AnswerStream[Person])
    assert_type(dt.generate(model, "Who?", Person, stream=True).value, Person)


async def later_answers(model: Speaker) -> None:
    assert_type(await dt.generate_async(model, "Who?", Person), Person)
    assert_type(await dt.generate_async(model, ["Who?"], Person), list[Person])
    stream = dt.generate_async(model, "Who?", Person, stream=True)
    assert_type(stream, dt.AsyncAnswerStream[Person])
    assert_type(await stream.value(), Person)


def calls(model: Speaker) -> None:
    result = dt.call(model, "Who?", [answers], tool_choice="required")
    assert_type(result, dt.CallResult)
    assert_type(result.text, str)
    assert_type(result.calls, tuple[dt.FunctionCall, ...])


def responses(template: dict[str, object], tools: list[dict[str, object]]) -> None:
    loaded = dt.ResponseTemplate.load(template)
    assert_type(loaded, dt.ResponseTemplate)
    assert_type(loaded.to_format(tools, "required", parallel_tool_calls=False), dt.StructuralTag)
    parser = dt.ResponseParser(loaded, prefix="", on_malformed="keep", spans=True)
    assert_type(parser.feed("text"), list[dict[str, Any]])
    assert_type(parser.finalize(), tuple[dict[str, Any], list[dict[str, Any]]])
    assert_type(dt.get_response_parser(object(), prefix=[1, 2]), dt.ResponseParser)


def errors(error: dt.InputError) -> None:
    assert_type((error.problem, error.path, error.fix), tuple[str, str, str])


def dialects(tools: list[dict[str, object]]) -> None:
    assert_type(dt.dialects.names(), list[str])
    dialect = dt.dialects.get("qwen_3")
    assert_type(dialect, dt.Dialect)
    assert_type(dialect.format(tools, "required", response_format={"type": "json_object"}), dt.StructuralTag)
    assert_type(dialect.render(dt.Message("Hello.")), str)
    assert_type(dt.get_model_structural_tag("llama", tools), dt.StructuralTag)


def reading(dialect: dt.Dialect, ids: list[int]) -> None:
    parser = dialect.parser(tools=[], prompt="<think>")
    assert_type(parser, dt.StreamParser)
    assert_type(parser.feed("text"), list[dt.Event])
    assert_type(parser.feed(b"bytes"), list[dt.Event])
    assert_type(parser.feed(ids), list[dt.Event])
    assert_type(parser.message, dt.Message)
    assert_type(parser.finish("length"), dt.Message)
    assert_type(dialect.parse("text").tool_calls, tuple[dt.ToolCall, ...])


class Answer(BaseModel):
    summary: str


async def runs() -> None:
    assert_type(dt.run("x", schema=Answer), dt.RunResult[Answer])
    assert_type(dt.run("x", schema=Answer).value.summary, str)
    assert_type(dt.run("x", schema={"type": "object"}).value, Any)
    assert_type(await dt.run_async("x", schema=Answer, model="m", max_turns=3), dt.RunResult[Answer])
