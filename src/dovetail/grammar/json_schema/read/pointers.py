"""Places in a schema: how they are carried, shown to people, and followed step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

from dovetail.errors import GrammarError, LimitError, SchemaError

Result = TypeVar("Result")

# A linked list costs one tuple per step down; the text is only made when an error needs it.
Where = tuple[Any, ...]  # (parent, key), or () at the root


def render(where: Where) -> str:
    """The JSON Pointer of a place."""
    steps: list[str] = []
    while where:
        where, key = where
        steps.append("/" + str(key).replace("~", "~0").replace("/", "~1"))
    return "".join(reversed(steps))


def follow(root: Any, base: Where, fragment: str, reference: str, where: Where) -> tuple[Any, Where]:
    """What the JSON Pointer in a fragment leads to from `root`, which stands at `base`, and its place."""
    target, place = root, base
    for step in unquote(fragment).split("/")[1:]:
        key: Any = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isdecimal():
            key = int(key)
        place = (place, key)
        try:
            target = target[key]
        except (KeyError, IndexError, TypeError):
            problem = f"$ref {reference!r} names nothing: there is no {render(place)}"
            raise SchemaError(problem, render(where), "correct the pointer or add the definition") from None
    return target, place


def located(where: Where, call: Callable[..., Result], *arguments: Any) -> Result:
    """The result of `call`, whose complaints get the place in the schema."""
    try:
        return call(*arguments)
    except GrammarError as error:
        problem = f"{error.problem} ({error.path})" if error.path else error.problem
        raise SchemaError(problem, render(where), error.fix) from error
    except LimitError as error:
        raise LimitError(error.problem, render(where), error.fix) from error
