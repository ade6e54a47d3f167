"""The dialects by name, and the structural tags that models are asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from dovetail.dialects.dialect import Dialect
from dovetail.dialects.families import FAMILIES
from dovetail.errors import DialectError
from dovetail.formats import StructuralTag, load_format
from dovetail.typing import Reasoning, ToolChoice, Tools

Maker = Callable[..., StructuralTag | dict[str, Any]]

_known: dict[str, Dialect | Maker] = {dialect.name: dialect for dialect in FAMILIES}


def names() -> list[str]:
    """The names of all dialects, in alphabetical order."""
    return sorted(name for name, entry in _known.items() if isinstance(entry, Dialect))


def get(name: str) -> Dialect:
    """The dialect of this name."""
    entry = _known.get(name)
    if not isinstance(entry, Dialect):
        raise DialectError(f"there is no dialect {name!r}", "", _instead(name, names()))
    return entry


def register(dialect: Dialect) -> Dialect:
    """Make a dialect known by its name, in place of one that had it."""
    _known[dialect.name] = dialect
    return dialect


def register_model_structural_tag(name: str) -> Callable[[Maker], Maker]:
    """Register a function that makes the structural tag of a model; it gets the arguments of the request by name.

    >>> @register_model_structural_tag("parrot")
    ... def parrot(tools, tool_choice, reasoning, **options):
    ...     return {"type": "structural_tag", "format": {"type": "any_text"}}
    """

    def decorate(make: Maker) -> Maker:
        _known[name] = make
        return make

    return decorate


def get_model_structural_tag(
    model: str,
    tools: Tools | None = None,
    tool_choice: ToolChoice = "auto",
    reasoning: Reasoning = True,
    *,
    parallel_tool_calls: bool = True,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
) -> StructuralTag:
    """The structural tag under which a model reasons, talks and calls tools in its own format."""
    entry = _known.get(model) if isinstance(model, str) else None
    if entry is None:
        raise DialectError(f"there is no model style {model!r}", "/model", _instead(model, sorted(_known)))
    made = (entry.format if isinstance(entry, Dialect) else entry)(
        tools=tools,
        tool_choice=tool_choice,
        reasoning=reasoning,
        parallel_tool_calls=parallel_tool_calls,
        any_order=any_order,
        exclude_special_tokens=exclude_special_tokens,
        max_whitespace_cnt=max_whitespace_cnt,
    )
    return made if isinstance(made, StructuralTag) else StructuralTag(format=load_format(made))


def _instead(name: object, known: Sequence[str]) -> str:
    """What to write instead of a name that is not known: the one that it looks like, or any."""
    text = str(name)[:100].lower().replace("-", "_").replace(".", "_")
    bare = {one.replace("_", ""): one for one in known}
    near = get_close_matches(text, known, 1) or get_close_matches(text.replace("_", ""), bare, 1)
    meant = f"did you mean {bare.get(near[0], near[0])!r}? " if near else ""
    return f"{meant}use one of {', '.join(known)}"


get_builtin_structural_tag = get_model_structural_tag
