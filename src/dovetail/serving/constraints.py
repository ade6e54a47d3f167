"""What an answer has to be: the response formats of all interfaces as one format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from dovetail.errors import InputError
from dovetail.formats import AnyTextFormat, Format, choice, load_format
from dovetail.serving.errors import RequestError

_FREE: tuple[Any, ...] = ({}, {"type": "text"})


@dataclass(frozen=True, slots=True)
class Answer:
    """The format of an answer, and where in the request its parts were written."""

    format: Format
    places: tuple[tuple[str, str], ...]  # beginnings of pointers into the format, and what they were in the request

    def place(self, path: str) -> str:
        """The pointer into the request for a pointer into the format."""
        for inner, outer in self.places:
            if path == inner or path.startswith((inner + "/", inner + ",")) or not inner:
                return outer + path.removeprefix(inner)
        return self.places[0][1]


def relocated(error: InputError, path: str) -> InputError:
    """An error that names the path at which the caller wrote what is wrong."""
    return type(error)(error.problem, path, error.fix)


def read_answer(sources: dict[str, Any], path: str) -> Answer | None:
    """The one constraint of a request, under whichever name it came; None where text is free.

    `path` is where the interface at hand has its `response_format`.
    """
    given = {name: value for name, value in sources.items() if value is not None and value not in _FREE}
    if len(given) > 1:
        places = [path if name == "response_format" else f"/{name}" for name in given]
        problem = f"{' and '.join(places)} all say what the answer has to be"
        raise RequestError(problem, places[1], "send one of them")
    for name, value in given.items():
        return _READERS[name](value, path if name == "response_format" else f"/{name}")
    return None


def response_format(value: Any, path: str) -> Answer | None:
    """OpenAI's `response_format`, the `text.format` of Responses and Anthropic's `format` alike."""
    if not isinstance(value, dict):
        raise RequestError(f"this is a {type(value).__name__}", path, 'send an object such as {"type": "json_object"}')
    if value.get("type") == "json_schema" and "json_schema" not in value:
        # Responses and Messages have no envelope around the schema.
        flat = {key: value[key] for key in ("name", "schema", "strict") if value.get(key) is not None}
        if "schema" not in flat:
            raise RequestError("`schema` is missing", f"{path}/schema", "add it")
        return _loaded({"type": "json_schema", "json_schema": {"name": "answer"} | flat}, path, f"{path}/schema")
    inner = value.get("json_schema")
    enveloped = isinstance(inner, dict) and "schema" in inner
    return _loaded(value, path, f"{path}/json_schema/schema" if enveloped else f"{path}/json_schema")


def _loaded(value: dict[str, Any], path: str, schema_path: str) -> Answer | None:
    places = (("/json_schema", schema_path), ("", f"{path}/format" if value.get("type") == "structural_tag" else path))
    try:
        made = load_format(value)
    except InputError as error:
        # Pointers of the loader begin at what it was given.
        outer = schema_path if error.path.startswith("/json_schema/json_schema") else path
        raise relocated(error, outer + error.path.removeprefix("/json_schema/json_schema")) from None
    return None if made == AnyTextFormat() else Answer(made, places)


def structured_outputs(value: Any, path: str) -> Answer | None:
    """vLLM's `structured_outputs`: one of its keys says what the answer is."""
    given = [key for key in _STRUCTURED if value.get(key) not in (None, False)]
    if len(given) != 1:
        fix = f"give exactly one of {', '.join(_STRUCTURED)}"
        raise RequestError(f"structured_outputs has {len(given)} constraints", path, fix)
    key = given[0]
    inner, where = value[key], f"{path}/{key}"
    match key:
        case "json_object":
            return response_format({"type": "json_object"}, where)
        case "structural_tag" | "json" if isinstance(inner, str):
            return _STRUCTURED[key](_object(inner, where), where)
        case _:
            return _STRUCTURED[key](inner, where)


def _object(text: str, path: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise RequestError(f"this is not JSON: {error}", path, "send JSON") from None


def _schema(value: Any, path: str) -> Answer | None:
    if not isinstance(value, dict | bool):
        raise RequestError(f"this is a {type(value).__name__}", path, "send a JSON Schema")
    return _loaded({"type": "json_schema", "json_schema": {"name": "answer", "schema": value}}, path, path)


def _regex(value: Any, path: str) -> Answer:
    return Answer(load_format({"type": "regex", "pattern": _text(value, path)}), (("/pattern", path), ("", path)))


def _ebnf(value: Any, path: str) -> Answer:
    return Answer(load_format({"type": "grammar", "grammar": _text(value, path)}), (("/grammar", path), ("", path)))


def _choice(value: Any, path: str) -> Answer:
    if not isinstance(value, list):
        raise RequestError("the choices are no list of strings", path, "send a list of strings")
    try:
        return Answer(choice(value), (("/elements", path), ("", path)))
    except InputError as error:
        raise RequestError(error.problem, path, error.fix) from None


def _tag(value: Any, path: str) -> Answer | None:
    if not isinstance(value, dict):
        raise RequestError(f"this is a {type(value).__name__}", path, "send a structural tag")
    return response_format({"type": "structural_tag"} | value, path)


def _text(value: Any, path: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise RequestError("a text that is not empty is expected here", path, "write it as a string")


_STRUCTURED = {
    "json": _schema,
    "regex": _regex,
    "choice": _choice,
    "grammar": _ebnf,
    "json_object": _schema,
    "structural_tag": _tag,
}
_READERS = {
    "response_format": response_format,
    "structured_outputs": structured_outputs,
    "regex": _regex,
    "ebnf": _ebnf,
}
