"""`generate` with the speaker: values of every kind of type, streams that grow, batches, errors."""

from __future__ import annotations

import asyncio
import enum
import itertools
import json
import re
import threading
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

import dovetail as dt
from dovetail.models import Speaker
from dovetail.models.answer_types import begun_json


class Person(BaseModel):
    first_name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)


@dataclass
class Point:
    x: int
    y: int


class Movie(typing.TypedDict):
    title: str
    year: int


class Color(enum.Enum):
    RED = "red"
    BLUE = "light blue"


class Picky(BaseModel):
    age: int

    @field_validator("age")
    @classmethod
    def never(cls, value: int) -> int:
        raise ValueError("no age is right")


SCHEMA = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
KINDS: list[tuple[Any, Any]] = [
    (Person, lambda value: isinstance(value, Person)),
    (Point, lambda value: isinstance(value, Point) and isinstance(value.x, int)),
    (Movie, lambda value: {"title", "year"} == set(value)),
    (list[int], lambda value: isinstance(value, list) and all(type(one) is int for one in value)),
    (list[Movie], lambda value: isinstance(value, list)),
    (Literal["yes", "no"], lambda value: value in ("yes", "no")),
    (Literal[1, "one"], lambda value: value in (1, "one")),
    (Color, lambda value: isinstance(value, Color)),
    (int | None, lambda value: value is None or type(value) is int),
    (bool, lambda value: type(value) is bool),
    (SCHEMA, lambda value: type(value["sure"]) is bool),
    (
        {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        lambda value: type(value["sure"]) is bool,
    ),
    ({"type": "const_string", "value": "hi"}, lambda value: value == "hi"),
    (dt.formats.RegexFormat(pattern="[0-9]{3}"), lambda value: re.fullmatch("[0-9]{3}", value)),
    ("[0-9]{4}", lambda value: re.fullmatch("[0-9]{4}", value)),
    (re.compile("ab|cd", re.IGNORECASE), lambda value: value.lower() in ("ab", "cd")),
    (["Rome", "Oslo", "Rome"], lambda value: value in ("Rome", "Oslo")),
    (("only",), lambda value: value == "only"),
    (None, lambda value: isinstance(value, str)),
    (str, lambda value: isinstance(value, str)),
]


@pytest.fixture(scope="module", params=["qwen_3", "hermes", "harmony"])
def speaker(request: pytest.FixtureRequest) -> Speaker:
    return Speaker(dialect=request.param)


@pytest.mark.parametrize(("answer", "fits"), KINDS, ids=[str(answer)[:40] for answer, _ in KINDS])
def test_an_answer_is_a_value_of_its_type(speaker: Speaker, answer: Any, fits: Any) -> None:
    for seed in range(3):
        assert fits(dt.generate(speaker, "Who are you?", answer, seed=seed, temperature=1))


@pytest.mark.parametrize(("answer", "fits"), KINDS, ids=[str(answer)[:40] for answer, _ in KINDS])
def test_a_stream_only_grows_and_ends_with_the_whole(speaker: Speaker, answer: Any, fits: Any) -> None:
    stream = dt.generate(speaker, "Who are you?", answer, stream=True, seed=5)
    parts = list(stream)
    assert all(grows(before, after) for before, after in itertools.pairwise(parts)), parts
    assert fits(stream.value)
    if isinstance(stream.value, str | list):
        assert parts[-1] == stream.value


def grows(before: Any, after: Any) -> bool:
    """Whether all of `before` is in `after`, at the same places."""
    match before, after:
        case str(), str():
            return after.startswith(before)
        case list(), list():
            return len(before) <= len(after) and all(map(grows, before, after))
        case dict(), dict():
            return before.keys() <= after.keys() and all(grows(before[key], after[key]) for key in before)
    return type(before) is type(after) and before == after


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.booleans())
def test_beginnings_of_json_only_grow(value: Any, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    begun = [begun_json(text[:end]) for end in range(len(text) + 1)]
    parts = [part for part in begun if part is not None]
    assert all(grows(before, after) for before, after in itertools.pairwise([*parts, json.loads(text)]))


@pytest.mark.parametrize(
    "prompt",
    [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}],
        ({"role": "user", "content": [{"type": "text", "text": "Who?"}]},),
    ],
)
def test_a_prompt_may_be_a_chat(prompt: Sequence[dict[str, Any]]) -> None:
    assert isinstance(dt.generate(Speaker(), prompt, Person, system="You are Ada."), Person)


@pytest.mark.parametrize("prompts", [["Who?", "Where?", "Why?"], [[{"role": "user", "content": "Who?"}]] * 3, []])
def test_several_prompts_are_one_batch(prompts: Any) -> None:
    people = dt.generate(Speaker(), prompts, Person, seed=1)
    assert len(prompts) == len(people)
    assert all(isinstance(one, Person) for one in people)


def test_a_batch_draws_each_answer_anew() -> None:
    said = dt.generate(Speaker(), ["Who?"] * 5, "[a-z]{20}", seed=1, temperature=1)
    assert 5 == len(set(said))
    assert said == dt.generate(Speaker(), ["Who?"] * 5, "[a-z]{20}", seed=1, temperature=1)


def test_the_async_twin_says_the_same() -> None:
    async def ask() -> None:
        speaker = Speaker()
        one = await dt.generate_async(speaker, "Who?", Person, seed=3)
        assert dt.generate(Speaker(), "Who?", Person, seed=3) == one
        assert 2 == len(await dt.generate_async(speaker, ["Who?", "Where?"], Person, seed=3))
        stream = dt.generate_async(speaker, "Who?", Person, stream=True, seed=3)
        parts = [part async for part in stream]
        assert one == await stream.value()
        assert one.model_dump() == parts[-1]
        async with await dt.generate_async(speaker, "Who?", Person, stream=True, seed=3) as again:
            async for part in again:
                assert parts[0] == part
                break

    asyncio.run(ask())


def test_it_works_inside_a_running_loop_too() -> None:
    async def notebook() -> Person:
        return dt.generate(Speaker(), "Who?", Person)

    assert isinstance(asyncio.run(notebook()), Person)


def test_a_name_is_loaded_once() -> None:
    before = threading.active_count()
    values = {dt.generate("speaker", "Who?", ["yes", "no"]) for _ in range(3)}
    assert values <= {"yes", "no"}
    assert threading.active_count() <= before + 1


def test_an_answer_that_is_cut_off_is_told() -> None:
    with pytest.raises(dt.AnswerError, match="cut off") as cut:
        dt.generate(Speaker(), "Who?", "[a-z]{50}", max_tokens=5, soft_limit=None)
    assert ("length", 0) == (cut.value.reason, cut.value.index)
    assert re.fullmatch("[a-z]+", cut.value.text)
    stream = dt.generate(Speaker(), "Who?", "[a-z]{50}", max_tokens=5, stream=True)
    with pytest.raises(dt.AnswerError, match="cut off"):
        list(stream)


def test_a_value_that_its_type_refuses_is_told() -> None:
    with pytest.raises(dt.AnswerError, match="no age is right") as refused:
        dt.generate(Speaker(), "Who?", Picky)
    assert "invalid" == refused.value.reason
    with pytest.raises(dt.AnswerError, match=r"prompt 0: .*no age is right") as batch:
        dt.generate(Speaker(), ["Who?", "Where?"], Picky)
    assert 2 == len(batch.value.answers)


@pytest.mark.parametrize(
    ("prompt", "answer", "options", "problem"),
    [
        ("Who?", 5, {}, "an answer cannot be 5"),
        ("Who?", [], {}, "no list of strings"),
        ("Who?", ["a", 1], {}, "no list of strings"),
        ("Who?", type("Opaque", (), {}), {}, "has no JSON Schema"),
        ("Who?", {"type": "object", "properties": 5}, {}, "properties"),
        ("Who?", "(", {}, "group"),
        ("Who?", re.compile(b"a"), {}, "bytes"),
        ("Who?", re.compile("a b", re.VERBOSE), {}, "flag"),
        ("Who?", bool, {"max_token": 5}, "there is no option 'max_token'"),
        ("Who?", bool, {"temperature": -1}, "temperature is -1"),
        (["Who?", "Where?"], bool, {"stream": True}, "cannot be one stream"),
        (5, bool, {}, "a prompt cannot be 5"),
        (b"Who?", bool, {}, "a prompt cannot be"),
        ([{"content": "x"}], bool, {}, "needs a role"),
    ],
)
def test_what_makes_no_sense_is_told(prompt: Any, answer: Any, options: Any, problem: str) -> None:
    with pytest.raises(dt.InputError, match=re.escape(problem)):
        dt.generate(Speaker(), prompt, answer, **options)


def test_a_model_that_is_not_there_is_told() -> None:
    with pytest.raises(dt.ModelError, match="no"):
        dt.generate("./nowhere.gguf", "Who?", bool)
