"""A response template as a format: what keeps a model to the outputs that the template reads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dovetail.errors import InputError, ResponseTemplateError
from dovetail.formats import StructuralTag, load_format
from dovetail.layouts.styles import LAYOUTS, Literals
from dovetail.response_templates import shapes
from dovetail.response_templates.content import RESERVED, pointer
from dovetail.response_templates.delimiters import Delimiter
from dovetail.response_templates.shapes import Ahead, Gap, Name, Part, Unwritable
from dovetail.response_templates.tools import Tool, function_of

if TYPE_CHECKING:
    from dovetail.response_templates.template import Field, ResponseTemplate

FormatDict = dict[str, Any]

_BLANK = {0: "[ \\n]{0,2}", 1: "[ \\n]{1,2}"}
_MARKUP = ("qwen_xml", "minimax_xml", "glm_xml", "glm_4_5_xml", "muse_xml")
_MIN_HEAD = 2
_MAX_WAYS = 64


@dataclass(frozen=True, slots=True)
class _Request:
    """The tools that may be called, and how often."""

    tools: list[dict[str, Any]]
    low: int
    high: int  # -1: any number


def to_format(
    template: ResponseTemplate,
    tools: Sequence[Tool] | None,
    tool_choice: str | Mapping[str, Any],
    parallel_tool_calls: bool,
    reasoning: bool,
    started: Field | None,
) -> StructuralTag:
    """See `ResponseTemplate.to_format`; `started` is the field that is open before the model says anything."""
    request = _read_request(tools, tool_choice, parallel_tool_calls)
    return StructuralTag(format=load_format(_Converter(template, request, started).message(reasoning)))


def _read_request(tools: Sequence[Tool] | None, choice: str | Mapping[str, Any], parallel: bool) -> _Request:
    functions = [function_of(tool, index) for index, tool in enumerate(tools or ())]
    named = None
    if isinstance(choice, Mapping):
        function = choice.get("function", choice)
        named = function.get("name") if isinstance(function, Mapping) else None
    elif choice not in ("auto", "none", "required"):
        named = choice
    if isinstance(choice, Mapping) or named is not None:
        functions = [function for function in functions if function["name"] == named]
        if not functions:
            raise InputError(
                f"tool_choice names {named!r}, which is not among the tools", "/tool_choice", "name a tool"
            )
        return _Request(functions, 1, 1)
    if choice == "none" or not functions:
        if choice == "required":
            raise InputError("a call is required, and there are no tools", "/tools", "pass tools")
        return _Request([], 0, 0)
    return _Request(functions, 1 if choice == "required" else 0, -1 if parallel else 1)


class _Converter:
    def __init__(self, template: ResponseTemplate, request: _Request, started: Field | None) -> None:
        self._template = template
        self._request = request
        self._started = started
        fields = template.fields.values()
        self._calls = next((item for item in fields if _function(item) is not None), None)
        if request.tools and self._calls is None:
            raise ResponseTemplateError("no field of the template holds tool calls", "/fields", "pass no tools")
        if started is not None and started is self._calls:
            raise _refused(started, "open", "a call that the prompt has begun")

    def message(self, reasoning: bool) -> FormatDict:
        """Other texts first, then the content, then the calls."""
        elements: list[FormatDict] = []
        content: FormatDict | None = None
        # What opens where a text follows anywhere comes before all other text.
        for item in sorted(self._template.fields.values(), key=lambda item: not self._looks_ahead(item)):
            if item is self._calls:
                continue
            if item is self._started:
                elements.insert(0, self._rest(item, reasoning))
            elif item.open is None:
                content = self._outside(item)
            elif item.name == "content":
                content = self._region(item)
            elif reasoning or not item.optional:
                region = self._region(item)
                elements.append(_optional(region) if item.optional else region)
        elements += self._answer(content)
        if not elements:
            raise ResponseTemplateError("the template has no field that could be written", "/fields", "add one")
        return _sequence(elements)

    def _answer(self, content: FormatDict | None) -> list[FormatDict]:
        low, high = self._request.low, self._request.high
        if not self._request.tools:
            return [content] if content is not None else []
        calls = self._call_list(low, high)
        if content is None:
            return [calls]
        if self._template.implicit is not None:
            return [content, calls]
        if low:
            return [_optional(content), calls]
        return [{"type": "or", "elements": [_sequence([content, calls]), self._call_list(1, high)]}]

    # Text

    def _outside(self, item: Field) -> FormatDict:
        """Free text that no delimiter interrupts."""
        delimiters = [(other, other.open, "open") for other in self._template.fields.values() if other.open is not None]
        if item.close is not None:
            delimiters.append((item, item.close, "close"))
        heads = [head for other, made, key in delimiters for head in self._heads(other, made, key)]
        return _captured(item, {"type": "any_text", "excludes": list(dict.fromkeys(heads))})

    def _region(self, item: Field) -> FormatDict:
        """One region of text."""
        assert item.open is not None
        begin = self._written(item, item.open, "open")
        if any(isinstance(part, Name) for part in begin):
            raise _refused(item, "open", "a named group outside of a tool call")
        return _sequence([*filter(None, [self._between()]), *_formats(begin), self._rest(item, True)])

    def _rest(self, item: Field, with_text: bool) -> FormatDict:
        """The text of a region and its end."""
        if item.content != "text":
            raise _refused(item, "content", f"the content {item.content!r} without a schema")
        if item.close is None:
            raise _refused(item, "close", "a region without an end")
        if not with_text:
            return _sequence(self._closing(item))
        ends = list(item.close.literals or [self._word(item, item.close, "close")])
        heads = self._heads(item, item.close, "close")
        excludes = [head for head in [*heads, *self._ahead] if not any(end in head for end in ends)]
        body = {"type": "any_text", "excludes": list(dict.fromkeys(excludes))}
        tag = {"type": "tag", "begin": "", "content": _captured(item, body), "end": ends}
        return _sequence([tag, *_after(self._written(item, item.close, "close"))])

    def _between(self) -> FormatDict | None:
        """What may stand between regions where no field takes it: the start of the message again."""
        anchor = self._template.anchor.literals
        if self._template.implicit is not None or anchor is None:
            return None
        return _optional(_const(anchor[0]))

    # Tool calls

    def _call_list(self, low: int, high: int) -> FormatDict:
        item = self._calls
        assert item is not None
        if item.transform_each:
            body = self._array(item, high)
            call = _sequence([*self._opening(item, None), body, *self._closing(item)])
            return call if low else _optional(call)
        if not item.repeats:
            high = 1
        calls = [self._call(item, function) for function in self._request.tools]
        call = calls[0] if len(calls) == 1 else {"type": "or", "elements": calls}
        return {"type": "repeat", "min": low, "max": high, "content": call}

    def _call(self, item: Field, function: dict[str, Any]) -> FormatDict:
        opening = self._opening(item, function["name"])
        return _sequence([*opening, _captured(item, self._body(item, function)), *self._closing(item)])

    def _opening(self, item: Field, name: str | None) -> list[FormatDict]:
        if item.open is None:
            raise _refused(item, "open", "calls without an opening")
        parts = self._written(item, item.open, "open", name)
        between = self._between()
        return [*([between] if between else []), *_formats(parts)]

    def _closing(self, item: Field) -> list[FormatDict]:
        if item.close is None:
            raise _refused(item, "close", "a region without an end")
        word = self._word(item, item.close, "close")
        return [_const(word), *_after(self._written(item, item.close, "close"))]

    def _body(self, item: Field, function: dict[str, Any]) -> FormatDict:
        """The content of one call: its arguments, with the name where the delimiter does not have it."""
        name_path, arguments_path = self._paths(item)
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        if item.content == "xml-inline":
            return self._markup(item, schema)
        arguments = self._json(item, schema)
        if arguments_path == ("content",):
            return _sequence([_blank(0), arguments, _blank(0)])
        name = json.dumps(function["name"], ensure_ascii=False)
        start = f'{{"{name_path[-1]}": {name}, "{arguments_path[-1]}": '
        return _sequence([_blank(0), _const(start), arguments, _const("}"), _blank(0)])

    def _array(self, item: Field, high: int) -> FormatDict:
        """All calls in one array."""
        calls = [self._body(item, function) for function in self._request.tools]
        call = _captured(item, calls[0] if len(calls) == 1 else {"type": "or", "elements": calls})
        more = {"type": "star", "content": _sequence([_const(", "), call])}
        return _sequence([_const("["), call, *([more] if high != 1 else []), _const("]")])

    def _paths(self, item: Field) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Where the name and the arguments of a call stand: in the content, or (the name) in the delimiter."""
        function = _function(item)
        if function == "{content}":
            return ("content", "name"), ("content", "arguments")
        name, arguments = (_path(function.get(key)) for key in ("name", "arguments"))
        if item.transform_each:
            name, arguments = (("content", *path) for path in (name, arguments))
        in_content = name[:1] == ("content",)
        if (
            len(name) != (2 if in_content else 1)
            or len(arguments) != (2 if in_content else 1)
            or arguments[0] != "content"
        ):
            raise _refused(item, "transform", "a transform that takes the name or the arguments from elsewhere")
        return name, arguments

    def _json(self, item: Field, schema: Any) -> FormatDict:
        if item.content != "json":
            raise _refused(item, "content", f"arguments as {item.content!r}")
        source = self._source(item)
        if source.get("string_delims"):
            return self._literals(item, schema, source)
        if source.get("unquoted_keys"):
            # The parser takes what looks like a key inside a string for one.
            raise _refused(item, "content_args", "unquoted_keys beside strings in plain quotes")
        return {"type": "json_schema", "json_schema": schema, "excludes": self._excludes(item)}

    def _literals(self, item: Field, schema: Any, source: dict[str, Any]) -> FormatDict:
        """JSON with bare keys, and strings between delimiters of their own."""
        (start, end), *more = source["string_delims"]
        if start != end or more or not source.get("unquoted_keys"):
            raise _refused(item, "content_args", "string_delims other than one for both ends, beside unquoted_keys")
        if any(start.endswith(start[:size]) for size in range(1, len(start))):
            raise _refused(item, "content_args", f"the string delimiter {start!r}, which overlaps with itself,")
        syntax = Literals("{", "}", ":", ",", (start,), escapes=False, bare_keys=True)
        excludes = [*self._excludes(item), *RESERVED]
        return {"type": "json_schema", "json_schema": schema, "style": asdict(syntax), "excludes": excludes}

    def _markup(self, item: Field, schema: Any) -> FormatDict:
        """Arguments as tags, where the tag pattern reads one of the styles that we write."""
        source = self._source(item)
        tag = Delimiter.of_pattern(source["tag_pattern"])
        parser = source.get("value_parser") or {"name": "text"}
        if parser.get("name", "text") != "text" and not parser.get("args", {}).get("allow_non_json"):
            raise _refused(item, "content_args", "a value_parser that does not take every text")
        keys = list(schema.get("properties", {})) if isinstance(schema, dict) else []
        for style in _MARKUP:
            layout = LAYOUTS[style]
            sample = {
                key: layout.begin + key + "".join(layout.middle["string"]) + "v" + layout.stop for key in ["k", *keys]
            }
            if all(_reads(tag, text, key) for key, text in sample.items()):
                body = {
                    "type": "json_schema",
                    "json_schema": schema,
                    "style": style,
                    "excludes": self._excludes(item),
                }
                return _sequence([body, *self._leftover(item)])
        raise _refused(item, "content_args", "this tag_pattern")

    def _leftover(self, item: Field) -> list[FormatDict]:
        """Tags of the opening that the close does not close: models close them, and the parser does not mind."""
        assert item.open is not None
        assert item.close is not None
        words = "".join(part for part in self._written(item, item.open, "open", "x") if isinstance(part, str))
        closing = self._word(item, item.close, "close")
        names = [name for name in _tag_names(words) if f"</{name}>" not in closing]
        return [_optional(_sequence([_blank(0), _const(f"</{name}>"), _blank(0)])) for name in reversed(names)]

    def _source(self, item: Field) -> dict[str, Any]:
        source: dict[str, Any] = self._template.source["fields"][item.name].get("content_args", {})
        return source

    # Delimiters

    @cached_property
    def _ahead(self) -> list[str]:
        """Texts that may stand nowhere else, because they open a region from afar."""
        return [text for item in self._template.fields.values() for text in self._looks_ahead(item)]

    @staticmethod
    def _looks_ahead(item: Field) -> list[str]:
        if item.open is None or item.open.literals is not None:
            return []
        try:
            return [part.text for part in shapes.spelling([shapes.read(item.open.source)]) if isinstance(part, Ahead)]
        except Unwritable:
            return []

    def _excludes(self, item: Field) -> list[str]:
        """What the body of a call must not contain."""
        assert item.close is not None
        return list(dict.fromkeys([*self._heads(item, item.close, "close"), *self._ahead]))

    def _heads(self, item: Field, delimiter: Delimiter, key: str) -> list[str]:
        """What text must not contain, so that the delimiter is not in it."""
        if delimiter.literals is not None:
            return list(delimiter.literals)
        try:
            by_choice = [shapes.heads(choice) for choice in shapes.read(delimiter.source).choices]
        except Unwritable as error:
            raise _refused(item, key, str(error)) from None
        # A branch that only asks for the end of the output is in no text.
        heads = list(itertools.chain.from_iterable(by_choice))
        if not heads or any(len(head) < _MIN_HEAD for head in heads):
            raise _refused(item, key, f"a delimiter that may be as short as {min(heads, key=len, default='')!r}")
        return heads

    def _word(self, item: Field, delimiter: Delimiter, key: str) -> str:
        """The text of a delimiter, without the white space around it."""
        parts = self._written(item, delimiter, key)
        if any(isinstance(part, Ahead) for part in parts):
            raise _refused(item, key, "a lookahead")
        return "".join(part if isinstance(part, str) else " " for part in parts if not _is_slack(part))

    def _written(self, item: Field, delimiter: Delimiter, key: str, name: str | None = None) -> list[Part]:
        """The delimiter as it is written, checked on the delimiter itself."""
        if delimiter.literals is not None:
            return [delimiter.literals[0]]
        try:
            parts = shapes.spelling([shapes.read(delimiter.source)])
        except Unwritable as error:
            raise _refused(item, key, str(error)) from None
        named = [name if isinstance(part, Name) and name is not None else part for part in parts]
        ways = [("", part.filler) if isinstance(part, Gap) and part.filler else (part,) for part in named]
        for written in itertools.islice(itertools.product(*ways), _MAX_WAYS):
            if self._holds(delimiter, written, name):
                return [part for part in written if part != ""]
        problem = f"the tool name {name!r}" if name is not None else f"{delimiter.source!r}"
        raise _refused(item, key, problem)

    @staticmethod
    def _holds(delimiter: Delimiter, parts: Sequence[Part], name: str | None) -> bool:
        """Whether the delimiter matches what is written, as a whole, and reads the name back."""
        text, behind = "", "{"
        for part in parts:
            match part:
                case str():
                    text += part
                case Gap(low):
                    text += " " * low
                case Name():
                    text += "x"
                case Ahead(word):
                    behind += word
        match = delimiter.expression.match(text + behind)
        names = set(match.groupdict().values()) if match else set()
        return bool(match and match.end() == len(text)) and (name is None or not names or names == {name})


def _function(item: Field) -> Any:
    return item.transform.get("function") if isinstance(item.transform, dict) else None


def _path(placeholder: Any) -> tuple[str, ...]:
    if isinstance(placeholder, str) and placeholder.startswith("{") and placeholder.endswith("}"):
        return tuple(placeholder[1:-1].split("."))
    return ()


def _reads(tag: Delimiter, text: str, key: str) -> bool:
    matches = [match.groupdict() for match in tag.expression.finditer(text * 2)]
    return matches == [{"key": key, "value": "v"}] * 2


def _tag_names(text: str) -> list[str]:
    names = [piece.split(">")[0].split("=")[0].split(" ")[0] for piece in text.split("<")[1:]]
    return [name for name in names if name.isidentifier()]


def _is_slack(part: Part) -> bool:
    return isinstance(part, Gap) and part.low == 0


def _refused(item: Field, key: str, construct: str) -> ResponseTemplateError:
    return ResponseTemplateError(
        f"the field {item.name} does not convert to a format: {construct} cannot be written in one way",
        f"/fields/{pointer(item.name)}/{key}",
        "constrain with a format of your own, and keep the template for reading",
    )


def _formats(parts: Sequence[Part]) -> list[FormatDict]:
    spelled = (part for part in parts if isinstance(part, str | Gap))
    return [_const(part) if isinstance(part, str) else _blank(part.low) for part in spelled]


def _after(parts: Sequence[Part]) -> list[FormatDict]:
    """White space that a close takes after itself."""
    return [_blank(0)] if parts and _is_slack(parts[-1]) else []


def _const(text: str) -> FormatDict:
    return {"type": "const_string", "value": text}


def _blank(low: int) -> FormatDict:
    return {"type": "regex", "pattern": _BLANK[min(low, 1)]}


def _optional(content: FormatDict) -> FormatDict:
    return {"type": "optional", "content": content}


def _sequence(elements: Sequence[FormatDict]) -> FormatDict:
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": list(elements)}


def _captured(item: Field, content: FormatDict) -> FormatDict:
    return {"type": "capture", "name": item.name, "content": content}
