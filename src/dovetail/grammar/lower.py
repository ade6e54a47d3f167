"""From a format to the grammar that it means.

Where free text meets the end of its tag, the end moves into the text's own automaton (`ir.Text.stops`), so that one
state reads both. That is the same language only while no other string can complete inside text + end: with the end
"aba", the text "ab" and its end spell "ababa", which already holds an "aba". Such ends stay literals behind the text,
and every split of the output into text and end counts.

Triggers are different: they belong to the text. The first one that completes commits, and an excluded string that
completes with it or before it wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from dovetail import formats as f
from dovetail.errors import GrammarError, LimitError
from dovetail.formats.loading import BareSchema
from dovetail.grammar import ebnf, ir, json_schema, regex

# Beyond these sizes ends stay literals: looking for overlaps would cost more than it gains.
_MAX_END_BYTES = 256
_MAX_OTHERS = 1000
# Strings against strings: the work that a dispatch may ask for.
_MAX_PAIRS = 1_000_000
# An upper bound from here on is none: no output is that long, and the core counts up to it.
_MANY = 2**30


class Ends(NamedTuple):
    """The ends of the nearest enclosing tag; `optional` where "" is one of them."""

    texts: tuple[bytes, ...] = ()
    tokens: tuple[int | str, ...] = ()
    optional: bool = False


_NO_ENDS = Ends(optional=True)
_Parsed = TypeVar("_Parsed")


def lower(fmt: f.Format | f.StructuralTag, path: str = "") -> ir.Rule:
    """The grammar of a format that `load_format` has checked; `path` is where it stands in the caller's input."""
    if isinstance(fmt, f.StructuralTag):
        fmt, path = fmt.format, path + "/format"
    return ir.Rule("root", _open(fmt, _NO_ENDS, path))


def rule_of(source: f.FormatSource | ir.Rule) -> ir.Rule:
    """The grammar of whatever `load_format` takes, or the grammar itself."""
    return source if isinstance(source, ir.Rule) else lower(f.load_format(source))


def lower_schema(bare: BareSchema, content: json_schema.Content | None = None) -> ir.Rule:
    """The grammar of a JsonSchemaFormat of which nothing else is said; `content` is the schema's fingerprint."""
    body = json_schema.lower(bare.schema, strict=bare.strict, any_order=bare.any_order, path=bare.path, content=content)
    return ir.Rule("root", ir.Call(ir.Rule("json_schema", body)))


def _open(fmt: f.Format, ends: Ends, path: str) -> ir.Node:
    """What `fmt` matches inside a tag with these ends."""
    return _OPEN[type(fmt)](fmt, ends, path)


def _closed(fmt: f.Format, ends: Ends, path: str) -> ir.Node:
    """What `fmt` matches, followed by one of the ends."""
    if ends.texts:
        close = _CLOSED.get(type(fmt))
        if close is not None:
            return close(fmt, ends, path)
    return ir.seq(_open(fmt, ends, path), _closing(ends))


def _closing(ends: Ends) -> ir.Node:
    if ends.tokens:
        return ir.Tokens(ends.tokens)
    if not ends.texts:
        return ir.EMPTY
    node = ir.alt(*[ir.Lit(text, special=True) for text in ends.texts])
    return ir.optional(node) if ends.optional else node


def _literal(text: str) -> ir.Node:
    return ir.Lit(text.encode(), special=True) if text else ir.EMPTY


def _unique(*groups: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))


def _encoded(texts: Iterable[str]) -> tuple[bytes, ...]:
    return tuple([text.encode() for text in texts])


def _bound(count: int | None) -> int | None:
    return None if count is None or count >= _MANY else count


# One text fragment.


def _const_string(fmt: f.ConstStringFormat, _ends: Ends, _path: str) -> ir.Node:
    return _literal(fmt.value)


def _json_schema(fmt: f.JsonSchemaFormat, _ends: Ends, path: str) -> ir.Node:
    body = json_schema.lower(
        fmt.json_schema,
        style=fmt.style,
        strict=fmt.strict,
        any_order=fmt.any_order,
        max_whitespace=fmt.max_whitespace_cnt,
        excludes=fmt.excludes,
        on_inexact=fmt.on_inexact,
        pad=fmt.pad,
        tidy=fmt.tidy,
        path=path + "/json_schema",
    )
    return ir.Call(ir.Rule("json_schema", body))


def _qwen_xml_parameter(fmt: f.QwenXmlParameterFormat, _ends: Ends, path: str) -> ir.Node:
    body = json_schema.lower(fmt.json_schema, style="qwen_xml", path=path + "/json_schema")
    return ir.Call(ir.Rule("json_schema", body))


def _grammar(fmt: f.GrammarFormat, _ends: Ends, path: str) -> ir.Node:
    return ir.Call(_located(ebnf.parse, fmt.grammar, path + "/grammar"))


def _regex(fmt: f.RegexFormat, _ends: Ends, path: str) -> ir.Node:
    return ir.Call(ir.Rule("regex", _located(regex.parse, fmt.pattern, path + "/pattern")))


def _located(parse: Callable[[str], _Parsed], text: str, path: str) -> _Parsed:
    """Parse a text that stands at `path`, so that an error tells both places."""
    try:
        return parse(text)
    except GrammarError as error:
        raise type(error)(error.problem, f"{path}, {error.path}" if error.path else path, error.fix) from None


# Free text.


def _any_text(fmt: f.AnyTextFormat, ends: Ends, _path: str) -> ir.Node:
    return _named_text(fmt, ends, ())


def _any_text_closed(fmt: f.AnyTextFormat, ends: Ends, _path: str) -> ir.Node:
    return _named_text_closed(fmt, ends, ())


def _named_text(fmt: f.AnyTextFormat, ends: Ends, names: tuple[str, ...]) -> ir.Node:
    excludes = _unique(_encoded(fmt.excludes), ends.texts)
    return ir.Text(excludes, captures=names, max_chars=_bound(fmt.max_chars), max_tokens=_bound(fmt.max_tokens))


def _named_text_closed(fmt: f.AnyTextFormat, ends: Ends, names: tuple[str, ...]) -> ir.Node:
    excludes = _encoded(fmt.excludes)
    if _bound(fmt.max_tokens) is not None or not _can_stop_at(ends, excludes):
        return ir.seq(_named_text(fmt, ends, names), _closing(ends))
    return _stopping_text(excludes, (), ends, names, _bound(fmt.max_chars))


def _stopping_text(
    excludes: Iterable[bytes],
    triggers: tuple[tuple[bytes, ir.Node], ...],
    ends: Ends,
    names: tuple[str, ...] = (),
    max_chars: int | None = None,
) -> ir.Text:
    """Free text that reads its own end."""
    # Without an end no string that holds one can occur either.
    needed = _unique(text for text in excludes if not _contains(text, ends.texts))
    stops = (*triggers, *((text, ir.EMPTY) for text in ends.texts))
    return ir.Text(needed, stops, ir.EMPTY if ends.optional else None, names, max_chars)


def _contains(text: bytes, others: Iterable[bytes]) -> bool:
    return any(other in text for other in others)


def _can_stop_at(ends: Ends, excludes: Sequence[bytes], triggers: Iterable[bytes] = ()) -> bool:
    """Whether no other string, nor the same one anew, can complete while an end is being read."""
    if not ends.texts or sum(map(len, ends.texts)) > _MAX_END_BYTES:
        return False
    others = [text for text in (*excludes, *triggers) if not _contains(text, ends.texts)]
    if len(others) > _MAX_OTHERS:
        return False
    for end in ends.texts:
        if any(other in end or _runs_into(other, end) for other in others):
            return False
        for other in ends.texts:
            # An end that begins another one is the exception: a text stops at both.
            if (other in end and not end.startswith(other)) or _runs_into(other, end):
                return False
    return True


def _runs_into(first: bytes, second: bytes) -> bool:
    """Whether `second` can begin inside `first`, after its start."""
    if first.find(second, 1) >= 0:
        return True
    return any(second.startswith(first[at:]) for at in range(max(1, len(first) - len(second) + 1), len(first)))


# Composition.


def _sequence(fmt: f.SequenceFormat, ends: Ends, path: str) -> ir.Node:
    return ir.seq(*(_open(part, ends, f"{path}/elements/{i}") for i, part in enumerate(fmt.elements)))


def _sequence_closed(fmt: f.SequenceFormat, ends: Ends, path: str) -> ir.Node:
    last = len(fmt.elements) - 1
    parts = [_open(part, ends, f"{path}/elements/{i}") for i, part in enumerate(fmt.elements[:last])]
    return ir.seq(*parts, _closed(fmt.elements[last], ends, f"{path}/elements/{last}"))


def _or(fmt: f.OrFormat, ends: Ends, path: str) -> ir.Node:
    return ir.alt(*(_open(part, ends, f"{path}/elements/{i}") for i, part in enumerate(fmt.elements)))


def _or_closed(fmt: f.OrFormat, ends: Ends, path: str) -> ir.Node:
    return ir.alt(*(_closed(part, ends, f"{path}/elements/{i}") for i, part in enumerate(fmt.elements)))


def _optional(fmt: f.OptionalFormat, ends: Ends, path: str) -> ir.Node:
    return ir.optional(_open(fmt.content, ends, path + "/content"))


def _optional_closed(fmt: f.OptionalFormat, ends: Ends, path: str) -> ir.Node:
    return ir.alt(_closed(fmt.content, ends, path + "/content"), _closing(ends))


def _plus(fmt: f.PlusFormat, ends: Ends, path: str) -> ir.Node:
    return ir.Repeat(_open(fmt.content, ends, path + "/content"), 1, None)


def _star(fmt: f.StarFormat, ends: Ends, path: str) -> ir.Node:
    return ir.star(_open(fmt.content, ends, path + "/content"))


def _repeat(fmt: f.RepeatFormat, ends: Ends, path: str) -> ir.Node:
    return ir.Repeat(_open(fmt.content, ends, path + "/content"), fmt.min, None if fmt.max == -1 else _bound(fmt.max))


def _capture(fmt: f.CaptureFormat, ends: Ends, path: str) -> ir.Node:
    names, content = _captured(fmt)
    if isinstance(content, f.AnyTextFormat):
        return _named_text(content, ends, names)
    return ir.Capture(fmt.name, _open(fmt.content, ends, path + "/content"))


def _capture_closed(fmt: f.CaptureFormat, ends: Ends, path: str) -> ir.Node:
    names, content = _captured(fmt)
    if isinstance(content, f.AnyTextFormat):
        return _named_text_closed(content, ends, names)
    return ir.seq(_capture(fmt, ends, path), _closing(ends))


def _captured(fmt: f.Format) -> tuple[tuple[str, ...], f.Format]:
    """What nested captures hold, with their names, outermost first."""
    names: list[str] = []
    while isinstance(fmt, f.CaptureFormat):
        names.append(fmt.name)
        fmt = fmt.content
    return tuple(names), fmt


# Tags and what dispatches to them.


def _ends_of(tag: f.TagFormat) -> Ends:
    if isinstance(tag.end, f.TokenFormat):
        return Ends(tokens=(tag.end.token,))
    if isinstance(tag.end, str):
        return Ends((tag.end.encode(),)) if tag.end else _NO_ENDS
    return Ends(_unique(_encoded(text for text in tag.end if text)), optional="" in tag.end)


def _tag(fmt: f.TagFormat, _ends: Ends, path: str) -> ir.Node:
    begin = ir.Tokens((fmt.begin.token,)) if isinstance(fmt.begin, f.TokenFormat) else _literal(fmt.begin)
    return ir.seq(begin, _inside(fmt, path))


def _inside(tag: f.TagFormat, path: str) -> ir.Node:
    """A tag without its begin."""
    return _closed(tag.content, _ends_of(tag), path + "/content")


def _tags_with_separator(fmt: f.TagsWithSeparatorFormat, _ends: Ends, path: str) -> ir.Node:
    tags = ir.alt(*(_tag(tag, _NO_ENDS, f"{path}/tags/{i}") for i, tag in enumerate(fmt.tags)))
    if fmt.stop_after_first:
        return tags if fmt.at_least_one else ir.optional(tags)
    one = ir.Call(ir.Rule("tags", tags))
    if fmt.separator:
        several = ir.seq(one, ir.star(ir.seq(_literal(fmt.separator), one)))
        return several if fmt.at_least_one else ir.optional(several)
    return ir.Repeat(one, 1 if fmt.at_least_one else 0, None)


def _triggered_tags(fmt: f.TriggeredTagsFormat, ends: Ends, path: str) -> ir.Node:
    return _triggered(fmt, ends, path, close=False)


def _triggered_tags_closed(fmt: f.TriggeredTagsFormat, ends: Ends, path: str) -> ir.Node:
    return _triggered(fmt, ends, path, close=True)


def _triggered(fmt: f.TriggeredTagsFormat, ends: Ends, path: str, *, close: bool) -> ir.Node:
    arms: dict[str, list[ir.Node]] = {trigger: [] for trigger in fmt.triggers}
    lengths = sorted({len(trigger) for trigger in arms})
    firsts: list[ir.Node] = []
    for i, tag in enumerate(fmt.tags):
        assert isinstance(tag.begin, str)  # rules.check saw to that, and to the one trigger
        begin = tag.begin
        size = next(n for n in lengths if begin[:n] in arms)
        inside = _inside(tag, f"{path}/tags/{i}")
        arms[begin[:size]].append(ir.seq(_literal(begin[size:]), inside))
        if fmt.at_least_one:
            firsts.append(ir.seq(_literal(begin), inside))
    if fmt.at_least_one and fmt.stop_after_first:
        return ir.seq(ir.alt(*firsts), _closing(ends) if close else ir.EMPTY)
    names = (fmt.text_capture,) if fmt.text_capture else ()
    rest = _dispatching(fmt.type, fmt.excludes, arms, ends, loop=not fmt.stop_after_first, close=close, names=names)
    return ir.seq(ir.alt(*firsts), rest) if fmt.at_least_one else rest


def _dispatch(fmt: f.DispatchFormat, ends: Ends, path: str) -> ir.Node:
    return _dispatching(fmt.type, fmt.excludes, _dispatch_arms(fmt, ends, path), _NO_ENDS, loop=fmt.loop, close=False)


def _dispatch_closed(fmt: f.DispatchFormat, ends: Ends, path: str) -> ir.Node:
    # A dispatch has no automatic end; but where its excludes name the ends, its text stops at them all the same.
    if not set(ends.texts) <= set(_encoded(fmt.excludes)):
        return ir.seq(_dispatch(fmt, ends, path), _closing(ends))
    return _dispatching(fmt.type, fmt.excludes, _dispatch_arms(fmt, ends, path), ends, loop=fmt.loop, close=True)


def _dispatch_arms(fmt: f.DispatchFormat, ends: Ends, path: str) -> dict[str, list[ir.Node]]:
    arms: dict[str, list[ir.Node]] = {}
    for i, (pattern, content) in enumerate(fmt.rules):
        arms.setdefault(pattern, []).append(_open(content, ends, f"{path}/rules/{i}/1"))
    return arms


def _dispatching(
    name: str,
    excludes: Iterable[str],
    arms: dict[str, list[ir.Node]],
    ends: Ends,
    *,
    loop: bool,
    close: bool,
    names: tuple[str, ...] = (),
) -> ir.Node:
    """Free text that goes on with an arm behind its trigger, and then, where `loop`, is free again."""
    forbidden = _unique(_encoded(excludes), ends.texts)
    if len(arms) * len(forbidden) > _MAX_PAIRS:
        problem = f"{len(arms)} triggers and {len(forbidden)} excluded strings are too many together"
        raise LimitError(problem, "", "shorten one of the lists")
    triggers: list[tuple[bytes, ir.Node]] = []
    barred: list[bytes] = []
    for text, nodes in arms.items():
        trigger = text.encode()
        if not nodes:
            barred.append(trigger)  # It would commit to nothing.
        elif not _contains(trigger, forbidden):
            triggers.append((trigger, ir.alt(*nodes)))
    forbidden = _unique(forbidden, barred)
    merged = close and _can_stop_at(ends, forbidden, (trigger for trigger, _ in triggers))
    rule = ir.Rule(name, ir.EMPTY)
    again = ir.Call(rule) if loop else _closing(ends) if merged else ir.EMPTY
    stops = tuple((trigger, ir.seq(arm, again)) for trigger, arm in triggers)
    rule.body = _stopping_text(forbidden, stops, ends, names) if merged else ir.Text(forbidden, stops, captures=names)
    return ir.seq(ir.Call(rule), _closing(ends)) if close and not merged else ir.Call(rule)


# Tokens.


def _token(fmt: f.TokenFormat, _ends: Ends, _path: str) -> ir.Node:
    return ir.Tokens((fmt.token,))


def _other_tokens(*groups: Iterable[int | str]) -> ir.Tokens:
    return ir.Tokens(tuple(dict.fromkeys(token for group in groups for token in group)), exclude=True)


def _exclude_token(fmt: f.ExcludeTokenFormat, ends: Ends, _path: str) -> ir.Node:
    return _other_tokens(fmt.exclude_tokens, ends.tokens)


def _any_tokens(fmt: f.AnyTokensFormat, ends: Ends, _path: str) -> ir.Node:
    return ir.Repeat(_other_tokens(fmt.exclude_tokens, ends.tokens), 0, _bound(fmt.max_tokens))


def _token_triggered_tags(fmt: f.TokenTriggeredTagsFormat, ends: Ends, path: str) -> ir.Node:
    tags = ir.alt(*(_tag(tag, _NO_ENDS, f"{path}/tags/{i}") for i, tag in enumerate(fmt.tags)))
    if fmt.at_least_one and fmt.stop_after_first:
        return tags
    free = _other_tokens(fmt.trigger_tokens, fmt.exclude_tokens, ends.tokens)
    rest = _token_dispatching(fmt.type, free, tags, loop=not fmt.stop_after_first)
    return ir.seq(tags, rest) if fmt.at_least_one else rest


def _token_dispatch(fmt: f.TokenDispatchFormat, ends: Ends, path: str) -> ir.Node:
    arms = [
        ir.seq(ir.Tokens((token,)), _open(content, ends, f"{path}/rules/{i}/1"))
        for i, (token, content) in enumerate(fmt.rules)
    ]
    free = _other_tokens((token for token, _ in fmt.rules), fmt.exclude_tokens)
    return _token_dispatching(fmt.type, free, ir.alt(*arms), loop=fmt.loop)


def _token_dispatching(name: str, free: ir.Tokens, arms: ir.Node, *, loop: bool) -> ir.Node:
    rule = ir.Rule(name, ir.EMPTY)
    rule.body = ir.seq(ir.star(free), ir.optional(ir.seq(arms, ir.Call(rule)) if loop else arms))
    return ir.Call(rule)


_Lowering = Callable[[Any, Ends, str], ir.Node]

_OPEN: dict[type[f.FormatModel], _Lowering] = {
    f.ConstStringFormat: _const_string,
    f.JsonSchemaFormat: _json_schema,
    f.QwenXmlParameterFormat: _qwen_xml_parameter,
    f.GrammarFormat: _grammar,
    f.RegexFormat: _regex,
    f.AnyTextFormat: _any_text,
    f.SequenceFormat: _sequence,
    f.OrFormat: _or,
    f.OptionalFormat: _optional,
    f.PlusFormat: _plus,
    f.StarFormat: _star,
    f.RepeatFormat: _repeat,
    f.TagFormat: _tag,
    f.TriggeredTagsFormat: _triggered_tags,
    f.TagsWithSeparatorFormat: _tags_with_separator,
    f.DispatchFormat: _dispatch,
    f.TokenFormat: _token,
    f.ExcludeTokenFormat: _exclude_token,
    f.AnyTokensFormat: _any_tokens,
    f.TokenTriggeredTagsFormat: _token_triggered_tags,
    f.TokenDispatchFormat: _token_dispatch,
    f.CaptureFormat: _capture,
}
# The formats that can take the end of their tag into themselves; any other is followed by it.
_CLOSED: dict[type[f.FormatModel], _Lowering] = {
    f.AnyTextFormat: _any_text_closed,
    f.SequenceFormat: _sequence_closed,
    f.OrFormat: _or_closed,
    f.OptionalFormat: _optional_closed,
    f.CaptureFormat: _capture_closed,
    f.TriggeredTagsFormat: _triggered_tags_closed,
    f.DispatchFormat: _dispatch_closed,
}
