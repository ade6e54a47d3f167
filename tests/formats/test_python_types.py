"""Schemas of Python types, and JSON read back as their values."""

from __future__ import annotations

import datetime
import enum
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, Optional

import jsonschema
import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from dovetail.errors import InputError
from dovetail.formats.docstrings import read_docstring
from dovetail.formats.python_types import is_python_type, schema_of, signature_of


class Person(BaseModel):
    first_name: str = Field(alias="firstName")
    age: int = Field(ge=0)


@dataclass
class Point:
    x: int
    y: int = 0


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Movie(typing.TypedDict, total=False):
    title: typing.Required[str]
    year: int


class Shelf(typing.TypedDict):
    movies: list[Movie]
    best: typing.NotRequired[Annotated[Movie, "favorite"] | None]


class Song(typing_extensions.TypedDict):
    title: str


UserId = NewType("UserId", int)

# a type, JSON that it takes, what that becomes, JSON that it refuses
TYPES = [
    (Person, '{"firstName": "Ada", "age": 36}', Person(firstName="Ada", age=36), '{"firstName": "Ada", "age": -1}'),
    (Point, '{"x": 1}', Point(1), "{}"),
    (Movie, '{"title": "Alien"}', {"title": "Alien"}, '{"year": 1979}'),
    (
        Shelf,
        '{"movies": [{"title": "Alien"}], "best": null}',
        {"movies": [{"title": "Alien"}], "best": None},
        '{"movies": [{}]}',
    ),
    (Song, '{"title": "Help!"}', {"title": "Help!"}, "{}"),
    (list[Movie], '[{"title": "Alien", "year": 1979}]', [{"title": "Alien", "year": 1979}], "[{}]"),
    (Optional[Movie], "null", None, "{}"),  # noqa: UP045
    (dict[str, list[Movie]], '{"a": []}', {"a": []}, '{"a": [{}]}'),
    (Color, '"red"', Color.RED, '"green"'),
    (Literal["a", 2], "2", 2, '"b"'),
    (list[int], "[1, 2]", [1, 2], '["x"]'),
    (tuple[int, str], '[1, "a"]', (1, "a"), "[1]"),
    (set[int], "[1]", {1}, '["x"]'),
    (int | None, "null", None, '"x"'),
    (Sequence[int], "[1]", [1], "{}"),
    (UserId, "7", 7, '"x"'),
    (Annotated[int, Field(le=9)], "9", 9, "10"),
    (datetime.date, '"2026-11-19"', datetime.date(2026, 11, 19), '"soon"'),
    (bool, "true", True, '"maybe"'),
    (TypeAdapter(list[bool]), "[true]", [True], "[7]"),
    (Any, "{}", {}, None),
]


@pytest.mark.parametrize(("source", "good", "value", "bad"), TYPES, ids=lambda case: str(case)[:30])
def test_a_type_has_a_schema_and_reads_json(source: Any, good: str, value: Any, bad: str | None) -> None:
    typed = schema_of(source)
    assert is_python_type(source)
    jsonschema.Draft202012Validator.check_schema(typed.schema)
    assert value == typed.read(good)
    if bad is not None:
        with pytest.raises(ValueError, match=r"."):
            typed.read(bad)


@pytest.mark.parametrize("value", [{"type": "object"}, "[0-9]+", ["a", "b"], None, 5, Person(firstName="x", age=1)])
def test_values_are_no_types(value: object) -> None:
    assert not is_python_type(value)


def test_strict_models_read_what_json_can_write() -> None:
    class Event(BaseModel):
        model_config = ConfigDict(strict=True)
        day: datetime.date
        seats: tuple[int, ...]

    assert datetime.date(2026, 1, 2) == schema_of(Event).convert({"day": "2026-01-02", "seats": [1]}).day


def test_what_does_not_fit_is_told_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"^/1: Input should be a valid integer"):
        schema_of(list[int]).read('[1, "x"]')


@pytest.mark.parametrize("source", [object(), lambda: None, type("Opaque", (), {})])
def test_what_has_no_schema_is_told(source: Any) -> None:
    with pytest.raises(InputError, match="has no JSON Schema"):
        schema_of(source)


def test_a_type_is_described_once() -> None:
    assert schema_of(Person) is schema_of(Person)


GOOGLE = """Book a table.

For dinner only.

Args:
    name: who comes,
        with all first names
    seats (int): how many
    **rest: more

Returns:
    whether: there was one
"""
NUMPY = """
Book a table.

Parameters
----------
name : str
    who comes,
    with all first names
seats : int, optional
    how many

Returns
-------
bool
    whether
"""
SPHINX = """Book a table.

:param name: who comes,
    with all first names
:param int seats: how many
:returns: whether: there was one
    or not
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_docstrings_describe_parameters(text: str) -> None:
    told, parameters = read_docstring(text)
    assert told.startswith("Book a table.")
    assert "whether" not in told
    assert "who comes, with all first names" == parameters["name"]
    assert "how many" == parameters["seats"]
    assert {"name", "seats"} <= parameters.keys() <= {"name", "seats", "rest"}


@pytest.mark.parametrize("text", ["", "One line.", "Look: a colon.\n\n- a list: of things\n  and more"])
def test_other_docstrings_are_descriptions(text: str) -> None:
    assert (text, {}) == read_docstring(text)


def test_a_signature_is_a_tool() -> None:
    def book(name: str, seats: Annotated[int, Field(ge=1)] = 2, _schema: Literal["a", "b"] | None = None) -> str:
        """Book a table.

        Args:
            seats: how many
        """
        return ""

    signature = signature_of(book)
    function = signature.tool["function"]
    assert ("book", "Book a table.") == (function["name"], function["description"])
    properties = function["parameters"]["properties"]
    assert ["name"] == function["parameters"]["required"]
    assert {"name", "seats", "_schema"} == properties.keys()
    assert ("how many", 2, 1) == tuple(properties["seats"][key] for key in ("description", "default", "minimum"))
    assert function["parameters"]["additionalProperties"] is False


def test_arguments_are_read_as_their_types() -> None:
    def go(
        point: Point, when: datetime.date, color: Color = Color.RED, times: int = Field(default=3, ge=1)
    ) -> None: ...

    signature = signature_of(go)
    assert {"point": Point(1), "when": datetime.date(2026, 1, 2), "times": 3} == signature.read(
        {"point": {"x": 1}, "when": "2026-01-02"}
    )
    assert Color.BLUE == signature.read({"point": {"x": 1}, "when": "2026-01-02", "color": "blue"})["color"]
    for wrong in ({}, {"point": {"x": 1}, "when": "2026-01-02", "more": 1}, {"point": 1, "when": "2026-01-02"}):
        with pytest.raises(ValueError, match=r"."):
            signature.read(wrong)
