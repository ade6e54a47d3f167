"""Transforms: the shape of a value, with whole-string placeholders such as "{content.name}" for what was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from dovetail.errors import ResponseTemplateError
from dovetail.response_templates.content import pointer

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


def placeholders(transform: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the placeholders."""
    for value, _ in _strings(transform, ""):
        if whole := _PLACEHOLDER.fullmatch(value):
            yield tuple(whole[1].split("."))


def apply(transform: Any, scope: dict[str, Any]) -> Any:
    """`transform` with its placeholders replaced; raises ValueError where one has no value."""
    if isinstance(transform, dict):
        return {key: apply(value, scope) for key, value in transform.items()}
    if isinstance(transform, list):
        return [apply(value, scope) for value in transform]
    whole = _PLACEHOLDER.fullmatch(transform) if isinstance(transform, str) else None
    if whole is None:
        return transform
    value: Any = scope
    for key in whole[1].split("."):
        if not isinstance(value, dict):
            raise ValueError(f"the placeholder {transform} looks for {key!r} in a {type(value).__name__}")
        if key not in value:
            raise ValueError(f"the placeholder {transform} has no value: {key!r} is not among {sorted(value)}")
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
