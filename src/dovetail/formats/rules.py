"""What must hold between format objects, beyond the shape of each: depth, triggers, ends, bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from dovetail.errors import FormatError
from dovetail.formats.explain import MAX_DEPTH, pointer, shown, too_deep
from dovetail.formats.models import (
    AnyTextFormat,
    AnyTokensFormat,
    CaptureFormat,
    DispatchFormat,
    Format,
    FormatModel,
    JsonSchemaFormat,
    OptionalFormat,
    OrFormat,
    PlusFormat,
    RepeatFormat,
    SequenceFormat,
    StarFormat,
    TagFormat,
    TagsWithSeparatorFormat,
    TokenDispatchFormat,
    TokenFormat,
    TokenTriggeredTagsFormat,
    TriggeredTagsFormat,
)
from dovetail.layouts.styles import Literals

WHITESPACE = " \t\r\n"


def check(fmt: Format, path: str = "", depth: int = 1) -> None:
    """Raise a FormatError at the first rule that `fmt` or something inside it breaks."""
    if depth > MAX_DEPTH:
        raise too_deep(path)
    kind = type(fmt)
    rule = _RULES.get(kind)
    if rule is not None:
        rule(fmt, path)
    if kind in _CONTAINERS:
        for step, child in parts(fmt):
            check(child, path + step, depth + 1)


def parts(fmt: Format) -> list[tuple[str, Format]]:
    """The formats directly inside `fmt`, each with its way from there as a JSON Pointer."""
    field = _CONTAINERS.get(type(fmt))
    if field is None:
        return []
    inside = getattr(fmt, field)
    match field:
        case "content":
            return [("/content", inside)]
        case "rules":
            return [(f"/rules/{i}/1", body) for i, (_, body) in enumerate(inside)]
        case _:
            return [(f"/{field}/{i}", child) for i, child in enumerate(inside)]


def _check_repeat(fmt: RepeatFormat, path: str) -> None:
    if fmt.max != -1 and fmt.min > fmt.max:
        problem = f"`min` is {fmt.min} but `max` is {fmt.max}"
        raise FormatError(problem, pointer(path, "max"), f"raise `max` to {fmt.min} or more, or set it to -1")


def _check_tag(fmt: TagFormat, path: str) -> None:
    if isinstance(fmt.end, TokenFormat) or any(fmt.end):
        return
    if _needs_end(fmt.content):
        raise FormatError(
            "the content can go on forever and every end is empty, so nothing could end the tag",
            pointer(path, "end"),
            "give an end that is not empty, or list in the content's `excludes` what may not occur in it",
        )


def _needs_end(fmt: Format) -> bool:
    """Whether `fmt` is endless and says nothing itself about where it stops."""
    match fmt:
        case SequenceFormat() | OrFormat():
            return any(_needs_end(element) for element in fmt.elements)
        case CaptureFormat():
            return _needs_end(fmt.content)
        case AnyTextFormat() | TriggeredTagsFormat() | DispatchFormat():
            return _endless(fmt) and not fmt.excludes
        case AnyTokensFormat() | TokenTriggeredTagsFormat() | TokenDispatchFormat():
            return _endless(fmt) and not fmt.exclude_tokens
        case _:
            return _endless(fmt)


def _endless(fmt: Format) -> bool:
    """Whether nothing in `fmt` itself bounds its length; a nested tag bounds its own content."""
    match fmt:
        case AnyTextFormat():
            return fmt.max_chars is None and fmt.max_tokens is None
        case AnyTokensFormat():
            return fmt.max_tokens is None
        case StarFormat() | PlusFormat() | DispatchFormat() | TokenDispatchFormat():
            return True
        case TriggeredTagsFormat() | TokenTriggeredTagsFormat():
            return not (fmt.at_least_one and fmt.stop_after_first)
        case TagsWithSeparatorFormat():
            return not fmt.stop_after_first
        case RepeatFormat():
            return fmt.max == -1 or (fmt.max > 0 and _endless(fmt.content))
        case OptionalFormat() | CaptureFormat():
            return _endless(fmt.content)
        case SequenceFormat() | OrFormat():
            return any(_endless(element) for element in fmt.elements)
        case _:
            return False


def _check_schema_excludes(fmt: JsonSchemaFormat, path: str) -> None:
    if not fmt.excludes or fmt.style == "json" or isinstance(fmt.style, Literals):
        return
    nests = fmt.style in ("cohere_xml", "minimax_m3_xml") if isinstance(fmt.style, str) else bool(fmt.style.item)
    if nests:
        problem = f"the style {fmt.style} has no `excludes`: its values nest in their own markup"
        raise FormatError(problem, pointer(path, "excludes"), "drop `excludes`, or choose another style")
    for i, text in enumerate(fmt.excludes):
        if text[0] in WHITESPACE or text[-1] in WHITESPACE:
            raise FormatError(
                f"{shown(text)} begins or ends with the white space that {fmt.style} allows around values",
                pointer(path, "excludes", i),
                "exclude the text without that white space",
            )


def _check_triggers(fmt: TriggeredTagsFormat, path: str) -> None:
    triggers = Counter(fmt.triggers)
    lengths = sorted({len(trigger) for trigger in triggers})
    for i, tag in enumerate(fmt.tags):
        at = f"{path}/tags/{i}/begin"
        if isinstance(tag.begin, TokenFormat):
            fix = "give the text of the token as a string, or use token_triggered_tags"
            raise FormatError("a tag inside triggered_tags begins with a token", at, fix)
        fitting = [tag.begin[:n] for n in lengths if n <= len(tag.begin) and tag.begin[:n] in triggers]
        _check_one_trigger(tag.begin, [t for t in fitting for _ in range(triggers[t])], "triggers", at)


def _check_trigger_tokens(fmt: TokenTriggeredTagsFormat, path: str) -> None:
    triggers = Counter(fmt.trigger_tokens)
    for i, tag in enumerate(fmt.tags):
        at = f"{path}/tags/{i}/begin"
        if not isinstance(tag.begin, TokenFormat):
            fix = f'write {{"type": "token", "token": {shown(tag.begin)}}}, or use triggered_tags'
            raise FormatError("a tag inside token_triggered_tags begins with a string", at, fix)
        token = tag.begin.token
        fitting = [token] * triggers[token]
        # An id and a text may name the same token: only a vocabulary can tell.
        if fitting or all(type(trigger) is type(token) for trigger in triggers):
            _check_one_trigger(token, fitting, "trigger_tokens", at)


def _check_one_trigger(begin: str | int, fitting: list[str] | list[str | int], field: str, path: str) -> None:
    if not fitting:
        fix = f"add its beginning to `{field}`, or change `begin`"
        raise FormatError(f"no trigger begins {shown(begin)}", path, fix)
    if len(fitting) > 1:
        both = " and ".join(shown(trigger) for trigger in fitting)
        raise FormatError(f"several triggers begin {shown(begin)}: {both}", path, f"keep one of them in `{field}`")


# Tables by class, because a request is checked on its way to the first mask: 4 times faster than class patterns.
_RULES: dict[type[FormatModel], Callable[[Any, str], None]] = {
    TagFormat: _check_tag,
    JsonSchemaFormat: _check_schema_excludes,
    RepeatFormat: _check_repeat,
    TriggeredTagsFormat: _check_triggers,
    TokenTriggeredTagsFormat: _check_trigger_tokens,
}
_CONTAINERS: dict[type[FormatModel], str] = {
    TagFormat: "content",
    OptionalFormat: "content",
    PlusFormat: "content",
    StarFormat: "content",
    RepeatFormat: "content",
    CaptureFormat: "content",
    SequenceFormat: "elements",
    OrFormat: "elements",
    TriggeredTagsFormat: "tags",
    TokenTriggeredTagsFormat: "tags",
    TagsWithSeparatorFormat: "tags",
    DispatchFormat: "rules",
    TokenDispatchFormat: "rules",
}
