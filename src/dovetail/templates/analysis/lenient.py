"""Rendering for analysis where Transformers refuses: what a template would have written if its runtime took it.

Some templates were written for other runtimes: they append to lists, add what is undefined to text, or write a generator
as JSON. Their layout is there to be read all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from dovetail.templates import sandbox


class _Nothing(jinja2.ChainableUndefined):
    """An undefined value that is empty text wherever text is needed."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return other

    def __radd__(self, other: Any) -> Any:
        return other


class _Environment(SandboxedEnvironment):
    intercepted_binops = frozenset()


def _tojson(value: Any, *_: Any, **options: Any) -> str:
    known = {key: options[key] for key in ("indent", "separators", "sort_keys") if key in options}
    return json.dumps(value, ensure_ascii=False, default=_listed, **known)


def _listed(value: Any) -> Any:
    return "" if isinstance(value, jinja2.Undefined) else list(value)


@lru_cache(maxsize=16)
def _compile(source: str) -> jinja2.Template:
    strict = sandbox._environment()
    environment = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=_Nothing,
        extensions=[type(extension) for extension in strict.extensions.values()],
    )
    environment.globals.update(strict.globals)
    environment.filters["tojson"] = _tojson
    return environment.from_string(source)


class LenientTemplate:
    """A chat template in a runtime that takes more than Transformers does."""

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        self.bos_token = bos_token
        self.eos_token = eos_token
        self._compiled = _compile(source)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **kwargs: Any,
    ) -> str:
        """The prompt, as far as anything can be made of it."""
        values = {"bos_token": self.bos_token, "eos_token": self.eos_token, "documents": None, **kwargs}
        values |= {"messages": messages, "tools": tools, "add_generation_prompt": add_generation_prompt}
        return sandbox.render(self._compiled, values, datetime.now)
