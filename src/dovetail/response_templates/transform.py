"""Transforms: the shape of a value, with whole-string placeholders such as "{content.name}" for what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import regex

from dovetail.errors import ResponseTemplateError
from dovetail.response_templates.content import pointer

Shape = Callable[[dict[str, Any]], Any]

_PLACEHOLDER = regex.compile(r"\{(\w+(?:\.\w+)*)\}")
_MAX_DEPTH = 100


def check(transform: Any, path: str, names: frozenset[str] | None) -> None:
    """Refuse placeholders inside longer text, and those that `names` (None: anything) does not have."""
    for value, place in _strings(transform, path):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole is None:
            if _PLACEHOLDER.search(value):
                raise ResponseTemplateError(
                    f"{value!r} mixes a placeholder with text",
                    place,
                    'make the placeholder the whole text: "{content}"',
                )
        elif names is not None and whole[1].split(".")[0] not in names:
            raise ResponseTemplateError(
                f"the placeholder {value} names nothing", place, f"write one of {', '.join(sorted(names))}"
            )


def compiled(transform: Any) -> Shape:
    """A function from what was read to the value; it raises ValueError where a placeholder has none."""
    if isinstance(transform, dict):
        members = [(key, compiled(value)) for key, value in transform.items()]
        return lambda scope: {key: value(scope) for key, value in members}
    if isinstance(transform, list):
        items = [compiled(value) for value in transform]
        return lambda scope: [value(scope) for value in items]
    whole = _PLACEHOLDER.fullmatch(transform) if isinstance(transform, str) else None
    if whole is None:
        return lambda _scope: transform
    path = whole[1].split(".")
    return lambda scope: _looked_up(transform, path, scope)


def _looked_up(placeholder: str, path: list[str], scope: dict[str, Any]) -> Any:
    value: Any = scope
    for key in path:
        if not isinstance(value, dict):
            raise ValueError(f"the placeholder {placeholder} looks for {key!r} in a {type(value).__name__}")
        if key not in value:
            raise ValueError(f"the placeholder {placeholder} has no value: {key!r} is not among {sorted(value)}")
        value = value[key]
    return value


def _strings(transform: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        raise ResponseTemplateError(f"the transform is nested more than {_MAX_DEPTH} deep", path, "nest less")
    if isinstance(transform, str):
        yield transform, path
    elif isinstance(transform, dict):
        for key, value in transform.items():
            yield from _strings(value, f"{path}/{pointer(key)}", depth + 1)
    elif isinstance(transform, list):
        for index, value in enumerate(transform):
            yield from _strings(value, f"{path}/{index}", depth + 1)
