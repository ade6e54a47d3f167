"""Python types and functions as JSON Schema, and JSON as values of those types.

Person, list[int], Literal["a", "b"] --schema_of--> its JSON Schema, and a reader of answers
def get_weather(city: str): ...      --signature_of--> the JSON Schema of its arguments, and a reader of calls
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import GenericAlias, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import (
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from dovetail.errors import InputError
from dovetail.formats.docstrings import read_docstring
from dovetail.messages import to_json

T = TypeVar("T")
Schema = dict[str, Any]

MAX_KEPT = 512  # types whose schemas are not made again
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_TYPING = ("typing", "typing_extensions")
_make_typed_dict: Any = TypedDict  # whose names and fields are known only when it runs


@dataclass(frozen=True, slots=True)
class TypeSchema(Generic[T]):
    """The JSON Schema of a Python type, and the way from JSON to a value of the type."""

    schema: Schema
    adapter: TypeAdapter[T]

    def read(self, text: str | bytes) -> T:
        """The value that JSON text says; a ValueError tells what the type does not take, with its place."""
        try:
            return self.adapter.validate_json(text)
        except ValidationError as error:
            raise ValueError(problems(error)) from error

    def convert(self, value: Any) -> T:
        """The Python value of JSON that was read already."""
        return self.read(to_json(value))


def is_python_type(source: object) -> bool:
    """Whether this is a type, such as a class, `list[int]`, `Literal["a"]` or a TypeAdapter, and no value."""
    return isinstance(source, type | TypeAdapter | GenericAlias | UnionType) or type(source).__module__ in _TYPING


def schema_of(source: Any) -> TypeSchema[Any]:
    """The JSON Schema of a Pydantic model, dataclass, TypedDict, enum or any other type that Pydantic describes."""
    try:
        return _kept(source)
    except TypeError:  # a type that has no hash, such as Literal of a list
        return _made(source)


@functools.lru_cache(MAX_KEPT)
def _kept(source: Any) -> TypeSchema[Any]:
    return _made(source)


def _made(source: Any) -> TypeSchema[Any]:
    fix = "give a Pydantic model, a dataclass, a TypedDict or another type that Pydantic describes"
    if not is_python_type(source):
        raise InputError(f"{source!r} has no JSON Schema: it is no type", "", fix)
    try:
        adapter: TypeAdapter[Any] = source if isinstance(source, TypeAdapter) else TypeAdapter(_known(source))
        return TypeSchema(adapter.json_schema(), adapter)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
        raise InputError(f"{source!r} has no JSON Schema: {str(error).splitlines()[0]}", "", fix) from error


def _known(source: Any) -> Any:
    """The type with its TypedDicts as Pydantic knows them: before Python 3.12 it takes none of the module typing."""
    if sys.version_info >= (3, 12):
        return source
    if is_typeddict(source):  # one of the module typing: it does not know those of typing_extensions
        return _typed_dict(source)
    parts, origin = get_args(source), get_origin(source)
    if not parts or origin is Literal:
        return source
    known = tuple(_known(part) for part in parts)
    if all(new is old for new, old in zip(known, parts, strict=True)):
        return source
    if origin is Annotated:
        return Annotated[(known[0], *source.__metadata__)]
    if origin in (Required, NotRequired):
        return origin[known[0]]
    return Union[known] if origin is UnionType else origin[known]  # noqa: UP007


def _typed_dict(source: Any) -> Any:
    fields = {}
    for name, annotation in get_type_hints(source, include_extras=True).items():
        marked = get_origin(annotation) in (Required, NotRequired)
        mark = Required if name in source.__required_keys__ else NotRequired
        fields[name] = _known(annotation) if marked else mark[_known(annotation)]
    made = _make_typed_dict(source.__name__, fields)
    made.__doc__ = source.__doc__
    if hasattr(source, "__pydantic_config__"):
        made.__pydantic_config__ = source.__pydantic_config__
    return made


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes, as a model may call it: `schema` is that of its arguments, an object."""

    name: str
    description: str
    schema: Schema
    _arguments: TypeSchema[dict[str, Any]]
    _fields: Mapping[str, FieldInfo]  # those whose defaults Python does not know
    _context: str = ""  # the parameter that the caller fills, and not the model

    @property
    def tool(self) -> Schema:
        """The function as a request lists it."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as the types that the function names; a ValueError tells what is wrong with them."""
        values = self._arguments.convert(dict(arguments))
        for name, field in self._fields.items():
            if name not in values and not field.is_required():
                values[name] = field.get_default(call_default_factory=True)
        return values

    def with_context(self, arguments: dict[str, Any], context: object) -> dict[str, Any]:
        """The arguments, with the context where the function asks for one."""
        return {**arguments, self._context: context} if self._context else arguments


def signature_of(
    function: Callable[..., Any], name: str = "", description: str = "", context: type | None = None
) -> Signature:
    """The signature of a typed function, described by its docstring.

    A parameter annotated as `context` is nothing that a model fills.
    """
    name = name or getattr(function, "__name__", "")
    if not name.isidentifier():
        raise InputError(f"{name!r} cannot be the name of a tool", "", "pass name=...")
    documented, parameters = read_docstring(inspect.getdoc(function) or "")
    hints = get_type_hints(function, include_extras=True)
    types: dict[str, Any] = {}
    fields: dict[str, FieldInfo] = {}
    context_name = ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            raise InputError(f"a tool cannot have the parameter {parameter}", f"function {name}", "name each parameter")
        annotation = hints.get(parameter.name, Any)
        if context is not None and annotation is context:
            context_name = parameter.name
            continue
        types[parameter.name] = _argument(parameter, annotation, parameters.get(parameter.name, ""))
        if isinstance(parameter.default, FieldInfo):
            fields[parameter.name] = parameter.default
    # A TypedDict, because a Pydantic model cannot have fields such as `schema` or `_from`.
    arguments = _make_typed_dict(name, types)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    made = _made(arguments)
    return Signature(name, description or documented or name, made.schema, made, fields, context_name)


def _argument(parameter: inspect.Parameter, annotation: Any, description: str) -> Any:
    """The type of one argument with what is known about it; one that has a default may be left out."""
    if description:
        # Before what the caller wrote into the annotation, which counts where both describe it.
        inner, metadata = _without_metadata(annotation)
        annotation = Annotated[(inner, Field(description=description), *metadata)]
    default = parameter.default
    if isinstance(default, FieldInfo):
        annotation = Annotated[annotation, default]
        return annotation if default.is_required() else NotRequired[annotation]
    if default is inspect.Parameter.empty:
        return annotation
    if isinstance(default, str | int | float):
        annotation = Annotated[annotation, Field(default=default)]
    return NotRequired[annotation]


def _without_metadata(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    return annotation, ()


def result_text(result: Any) -> str:
    """What a function returned, as a model reads it: text as it is, anything else as JSON."""
    if isinstance(result, str):
        return result
    if result is None:
        return "Done."
    return to_json(TypeAdapter(Any).dump_python(result, mode="json"))


def problems(error: ValidationError) -> str:
    """What a value does not keep, each with the JSON Pointer of its place, in one line."""
    errors = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{''.join(f'/{part}' for part in one['loc'])}: {one['msg']}".removeprefix(": ") for one in errors)
