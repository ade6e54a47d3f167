"""Jinja2 with the settings, filters and globals that Transformers gives to chat templates."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

_CLOCK: ContextVar[Callable[[], datetime]] = ContextVar("clock")


class _GenerationTag(Extension):
    """`{% generation %}` marks what the model writes; its body is a scope of its own, as in Transformers."""

    tags = {"generation"}  # noqa: RUF012 - the name and type are jinja2's

    def parse(self, parser: Parser) -> nodes.CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Macro) -> str:
        return caller()


class _Dict:
    """`dict` for templates: the class itself would show them its attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """A namespace without private names, which would reach its own insides."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _refuse_private(name)
        Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace holds no name with a leading underscore, such as {name!r}")


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(format: str) -> str:
    return _CLOCK.get()().strftime(format)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals.update(
        raise_exception=_raise_exception, strftime_now=_strftime_now, dict=_Dict(), namespace=_Namespace
    )
    return environment


def compile_template(source: str) -> jinja2.Template:
    """The template, ready for `render`."""
    return _environment().from_string(source)


def render(template: jinja2.Template, values: dict[str, Any], clock: Callable[[], datetime]) -> str:
    """The text that the template makes of `values`."""
    token = _CLOCK.set(clock)
    try:
        return "".join(template.root_render_func(template.new_context(values)))
    finally:
        _CLOCK.reset(token)
