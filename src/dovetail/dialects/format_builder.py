"""From a dialect and a request to the format of the turn."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dovetail import formats as f
from dovetail.dialects.requests import Request, Tool
from dovetail.dialects.separated import json_arguments, quoted_arguments
from dovetail.errors import DialectError
from dovetail.layouts.styles import Literals
from dovetail.parsing.layouts import (
    ARGUMENTS,
    ID,
    NAME,
    CallLayout,
    Content,
    Field,
    JsonCall,
    KeyedCall,
    Quoted,
    TaggedCall,
    ToolCalls,
)

if TYPE_CHECKING:
    from dovetail.dialects.dialect import Dialect

Level = Literal["text", "token"]
Pieces = tuple[str | Field, ...]

# White space that a template writes beside its markers: at the ends of a literal, around line breaks, between markers,
# and indentation. A single blank between words is text.
_GAP = re.compile(r"\A\s+|\s+\Z|\s*\n\s*|(?<=[>\]}|｜])\s+(?=[<\[{|])|[ \t]{2,}")
_MARKER = re.compile(r"[<\[｜|]\S*[>\]｜|]")
_SPACE = f.RegexFormat(pattern=r"[ \t\r\n]{0,32}")  # in place of a gap: models write less than indented files do


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may ask of the format beside the request itself."""

    any_order: bool = False
    exclude_special_tokens: bool = True
    max_whitespace_cnt: int | None = None
    tidy: bool = False
    level: Level = "text"


@dataclass(frozen=True, slots=True)
class Block:
    """One section of calls, or one call where there are no sections."""

    begin: str
    content: f.Format
    end: str
    lead: str
    spacing: str
    separator: str | None  # None where nothing follows


def make_format(dialect: Dialect, request: Request, answer: f.Format | None, options: Options) -> f.Format:
    """The format of one turn; `answer` is what its content has to be, or None where text is free."""
    return _Maker(dialect, request, answer, options).turn()


class _Maker:
    def __init__(self, dialect: Dialect, request: Request, answer: f.Format | None, options: Options) -> None:
        self.dialect = dialect
        self.request = request
        self.answer = answer
        self.options = options
        self.tokens = sorted(dialect.special_tokens, key=len, reverse=True) if options.level == "token" else []
        self.ways = [way for way in dialect.calls if self._tools(way) and not way.tolerated]
        if request.choice != "auto" and not self.ways:
            raise DialectError(
                f"{dialect.name} has no way to call these tools", "/tools", 'use another model, or tool_choice "none"'
            )

    def _tools(self, way: ToolCalls) -> list[Tool]:
        return [
            tool for tool in self.request.tools if way.tools == "all" or (way.tools == "builtin") == bool(tool.builtin)
        ]

    # The turn.

    def turn(self) -> f.Format:
        if self.dialect.turn.between:
            return self._channels()
        parts = [self._reasoning(), self._body(), *self._literal(self.dialect.turn.closing)]
        whole = _sequence([part for part in parts if part is not None])
        unclosed = self._reasoning_up_to_calls()
        if unclosed:
            whole = _either([whole, _sequence([*unclosed, *self._literal(self.dialect.turn.closing)])])
        if not self.dialect.turn.opened:
            return whole
        behind = _behind(whole, self.dialect.turn.opened)
        # Not every prompt opens the block, and some models open it again.
        return _either([behind, whole]) if self.dialect.optional_space else behind

    def _reasoning(self) -> f.Format | None:
        block, mode = self.dialect.reasoning, self.request.reasoning
        if block is None:
            return None
        if mode == "disabled":
            return _sequence(self._beside_answer(block.skipped)) if block.skipped else None
        triggers = [way.opens_with for way in self.dialect.calls] if block.ends_at_calls else []
        inside = self._text("reasoning", self._words(block.start, *triggers), block.end)
        after = self._beside_answer(block.after)
        opener = self._marker(block.start)
        if mode == "auto":
            whole = _sequence([*opener, inside, *after])
            bare = [_sequence([*self._marker(block.end), *after])] if block.bare_end else []
            empty = self._marker(block.empty) if self.answer is None else self._exactly(block.empty)
            bare += [_sequence(empty)] if empty else []
            return f.OptionalFormat(content=_either([whole, *bare]))
        match block.opened_by:
            case "prompt":
                return _sequence([inside, *after])
            case "model":
                return _sequence([*opener, inside, *after])
            case "either":
                return _sequence([*_optional(opener), inside, *after])

    def _reasoning_up_to_calls(self) -> list[f.Format]:
        """Reasoning that calls close, and these; nothing where the family closes it itself."""
        block, mode = self.dialect.reasoning, self.request.reasoning
        if block is None or not block.open_at_calls or mode == "disabled" or not self.ways:
            return []
        triggers = [way.opens_with for way in self.dialect.calls]
        text = f.AnyTextFormat(excludes=self._words(block.start, block.end, *triggers))
        opener = self._marker(block.start)
        if mode != "auto" and block.opened_by != "model":
            opener = [] if block.opened_by == "prompt" else _optional(opener)
        return [*opener, f.CaptureFormat(name="reasoning", content=text), self._calls()]

    def _body(self) -> f.Format:
        """Content and calls, in this order."""
        content = self.dialect.content
        if not content.wrapped:
            return self._unwrapped()
        if content.always and content.optional and self.ways:
            calls = _sequence([self._content_block(content, None), self._calls()])
            return calls if self.request.choice != "auto" else _either([calls, self._unwrapped()])
        if content.always and not content.optional:
            return self._blocks(content)
        ways: list[f.Format] = []
        if self.request.choice == "auto":
            block = self._content_block(content, self.answer)
            both = self.ways and self.answer is None
            ways.append(_sequence([block, f.OptionalFormat(content=self._calls())]) if both else block)
        if content.optional:
            ways.append(self._unwrapped())
        elif self.ways:
            ways.append(self._calls())
        return _either(ways)

    def _blocks(self, content: Content) -> f.Format:
        """A block of content, which is always there, and then the calls."""
        opened = content.prompt_opens and self.request.reasoning == "disabled"
        free = self._content_block(content, None, opened)
        answer = self._content_block(content, self.answer, opened)
        if not self.ways:
            return answer
        calls = _sequence([free, self._calls()])
        if self.request.choice != "auto":
            return calls
        return _either([answer, calls])

    def _content_block(self, content: Content, answer: f.Format | None, opened: bool = False) -> f.Format:
        ways = []
        for begin in content.begins[:1] if opened else content.begins:
            opener = [] if opened else self._marker(begin) if self.answer is None else self._exactly(begin)
            ways.append(_sequence([*opener, self._inside(answer, content.ends)]))
        return _either(ways)

    def _inside(self, answer: f.Format | None, ends: tuple[str, ...]) -> f.Format:
        """The content of a block up to and with its end; one without an end goes up to the next call."""
        if answer is None and not any(ends):
            triggers = tuple(way.opens_with for way in self.dialect.calls)
            return f.CaptureFormat(name="content", content=f.AnyTextFormat(excludes=self._words(*triggers)))
        if answer is None:
            return self._text("content", self._words(), *ends)
        closing = [_either([_sequence(self._exactly(end)) for end in ends])] if any(ends) else []
        return _sequence([f.CaptureFormat(name="content", content=answer), *closing])

    def _unwrapped(self) -> f.Format:
        """Free text with calls in it, only calls, or only the answer."""
        if not self.ways:
            answer = self.answer or f.AnyTextFormat(excludes=self._words())
            return f.CaptureFormat(name="content", content=answer)
        if self.request.choice == "forced":
            return self._calls()
        if self.answer is not None:
            answer = f.CaptureFormat(name="content", content=self.answer)
            return self._calls() if self.request.choice == "required" else _either([self._calls(), answer])
        return self._calls_in_text(at_least_one=self.request.choice == "required")

    def _channels(self) -> f.Format:
        """Blocks in any order; the last one is a call or the answer."""
        between, reasoning, content = self.dialect.turn.between, self.dialect.reasoning, self.dialect.content
        before: list[f.Format] = []
        if reasoning is not None and self.request.reasoning != "disabled":
            inside = self._text("reasoning", self._words(reasoning.start), reasoning.end)
            before.append(_sequence([*self._literal(reasoning.start), inside]))
        blocks = self._call_blocks(one=not self._several())
        calls = [
            _sequence([*self._space(), self._run(block) if way.runs else self._block(block)])
            for way, block in zip(self.ways, blocks, strict=True)
        ]
        last = list(calls)
        if self.request.choice == "auto":
            last.append(self._content_block(content, self.answer))
            if self.answer is None and self.ways:
                ends = content.ends
                before += [_sequence([*self._literal(note), self._inside(None, ends)]) for note in content.notes]
        if self._several():
            before += [_sequence([call, *self._literal(self.dialect.turn.closing)]) for call in calls]
        if not before:
            return _either(last)
        first = f.StarFormat(content=_sequence([_either(before), *self._literal(between)]))
        return _sequence([first, _either(last)])

    # Calls.

    def _several(self) -> bool:
        return self.request.parallel and self.request.choice != "forced"

    def _calls(self) -> f.Format:
        """Calls and nothing else, at least one."""
        ways: list[f.Format] = []
        for block in self._call_blocks(one=not self._several()):
            one = self._block(block)
            if self._several() and block.separator is not None:
                gap = _optional(self._literal(block.separator))
                one = _sequence([one, f.StarFormat(content=_sequence([*gap, one]))])
            ways.append(_sequence([*self._lead(block), one, *self._space()]))
        return _either(ways)

    def _space(self) -> list[f.Format]:
        """White space beside a block where no text stands, if the dialect has it so."""
        return [_SPACE] if self.dialect.optional_space else []

    def _calls_in_text(self, at_least_one: bool) -> f.Format:
        blocks = self._call_blocks(one=not self._several())
        if self.tokens and all(self._literal(block.begin)[0].type == "token" for block in blocks):
            # A marker that is a token never stands in text.
            return self._calls_between_texts(blocks, self._words(), at_least_one)
        if any(way.named for way in self.ways):
            headers = [header for way in self.ways for header in self._headers(way)]
            return self._calls_between_texts(blocks, (*self._words(), *headers), at_least_one)
        if any(not block.end and way.begin for block, way in zip(blocks, self.ways, strict=True)):
            return self._text_before_calls(blocks, at_least_one)
        tags = tuple(self._tag(block) for block in blocks)
        begins = [str(tag.begin) for tag in tags]
        triggers = tuple(dict.fromkeys(map(self._trigger, self.ways, begins)))
        lead = self._lead(blocks[0]) if at_least_one else []
        text = f.TriggeredTagsFormat(
            triggers=triggers,
            tags=tags,
            at_least_one=at_least_one,
            stop_after_first=not self._several(),
            excludes=tuple(word for word in self._words() if word not in triggers),
            text_capture="content",
        )
        return _sequence([*lead, text])

    def _text_before_calls(self, blocks: list[Block], at_least_one: bool) -> f.Format:
        """Text, and a section of calls that only the end of the turn closes, so that nothing follows it."""
        calls = _either([self._block(block) for block in blocks])
        if at_least_one:
            return _sequence([*self._lead(blocks[0]), calls])
        excludes = (*self._words(), *(way.opens_with.strip() for way in self.ways))
        text = f.CaptureFormat(name="content", content=f.AnyTextFormat(excludes=excludes))
        return _sequence([text, f.OptionalFormat(content=calls)])

    def _tag(self, block: Block) -> f.TagFormat:
        """A block as a tag; gaps in its markers are part of its content."""
        if not self.dialect.optional_space:
            return f.TagFormat(begin=block.begin, content=block.content, end=block.end)
        begin, end = block.begin.lstrip(), block.end.rstrip()
        cut = next((gap.start() for gap in _GAP.finditer(begin) if _MARKER.search(begin[: gap.start()])), len(begin))
        last = max((gap.end() for gap in _GAP.finditer(end)), default=0)
        parts = [*self._literal(begin[cut:]), block.content, *self._literal(end[:last])]
        return f.TagFormat(begin=begin[:cut], content=_sequence(parts), end=end[last:])

    def _trigger(self, way: ToolCalls, begin: str) -> str:
        """The text that begins a call, as far as the tag has it at its beginning."""
        if not self.dialect.optional_space:
            return way.opens_with
        trigger = way.opens_with.strip()
        return begin if trigger.startswith(begin) else trigger

    def _headers(self, way: ToolCalls) -> list[str]:
        """How a call of each tool begins, as far as it takes to tell it from prose."""
        if not way.named:
            return [way.opens_with]
        head = way.begin + way.call_begin + _split(call_pieces(way.call))[0]
        style = way.call.arguments if isinstance(way.call, TaggedCall) else ""
        return [
            head + tool.name + (style.begin if isinstance(style, Literals | Quoted) else "")
            for tool in self._tools(way)
        ]

    def _calls_between_texts(self, blocks: list[Block], excludes: tuple[str, ...], at_least_one: bool) -> f.Format:
        """Calls between texts that hold no beginning of one."""
        text = f.CaptureFormat(name="content", content=f.AnyTextFormat(excludes=excludes))
        call = _either([self._block(block) for block in blocks])
        lead = self._lead(blocks[0]) if at_least_one else []
        if not self._several():
            return _sequence([*lead, call] if at_least_one else [text, f.OptionalFormat(content=call)])
        more = f.StarFormat(content=_sequence([text, call]))
        return _sequence([*lead, call, more, text] if at_least_one else [more, text])

    def _lead(self, block: Block) -> list[f.Format]:
        """What comes before a call that comes first: the family's lead, or perhaps its usual spacing."""
        if self.dialect.optional_space:
            return [_SPACE]
        if block.lead and block.spacing and block.lead != block.spacing:
            return [_either([_sequence(self._literal(text)) for text in (block.lead, block.spacing)])]
        return self._literal(block.lead) or _optional(self._literal(block.spacing))

    def _run(self, block: Block) -> f.Format:
        """One call, or several behind each other."""
        one = self._block(block)
        if not self._several() or block.separator is None:
            return one
        return _sequence([one, f.StarFormat(content=_sequence([*self._literal(block.separator), one]))])

    def _block(self, block: Block) -> f.Format:
        return _sequence([*self._literal(block.begin), block.content, *self._literal(block.end)])

    def _call_blocks(self, one: bool) -> list[Block]:
        return [self._section(way, one) for way in self.ways]

    def _section(self, way: ToolCalls, one: bool) -> Block:
        head, middle, tail = _split(call_pieces(way.call))
        # What comes before the name is the same for all tools, and said once.
        shared = next(at for at, piece in enumerate(middle) if piece is NAME or piece is ARGUMENTS)
        calls = _either([self._call(way, middle[shared:], tool) for tool in self._tools(way)])
        content = f.CaptureFormat(name="tool_call", content=_sequence([*self._shared(way, middle[:shared]), calls]))
        call = Block(way.call_begin + head, content, tail + way.call_end, way.lead, way.spacing, way.separator)
        if not way.begin:
            return call
        inside = self._block(call)
        if not one:
            again = _sequence([*self._literal(way.separator), inside])
            inside = _sequence([inside, f.StarFormat(content=again)])
        return Block(way.begin, inside, way.end, way.lead, way.spacing, None)

    def _call(self, way: ToolCalls, pieces: Pieces, tool: Tool) -> f.Format:
        parts: list[f.Format] = []
        for at, piece in enumerate(pieces):
            if piece is NAME:
                name = (
                    tool.name if isinstance(way.call, TaggedCall) else json.dumps(tool.name, ensure_ascii=False)[1:-1]
                )
                literal = f.ConstStringFormat(value=name)
                # Where a call says its name again it is markup: one call has one name.
                parts.append(literal if NAME in pieces[at + 1 :] else f.CaptureFormat(name="name", content=literal))
            elif piece is ARGUMENTS:
                parts.append(f.CaptureFormat(name="arguments", content=self._arguments(way, tool)))
            else:
                parts += self._shared(way, (piece,))
        return _sequence(parts)

    def _shared(self, way: ToolCalls, pieces: Pieces) -> list[f.Format]:
        """The pieces of a call that do not depend on the tool: literals and its id."""
        parts: list[f.Format] = []
        for piece in pieces:
            if isinstance(piece, str):
                parts += self._literal(piece)
            else:
                parts.append(f.CaptureFormat(name="id", content=f.RegexFormat(pattern=way.id_pattern)))
        return parts

    def _arguments(self, way: ToolCalls, tool: Tool) -> f.Format:
        style = way.call.arguments if isinstance(way.call, TaggedCall) else "json"
        if isinstance(style, Quoted):
            return quoted_arguments(tool.parameters, style, way.value_ends)
        if isinstance(style, Literals) and style.json_values:
            return json_arguments(tool.parameters, style)
        fields: dict[str, Any] = {"json_schema": tool.parameters, "style": style}
        if self.options.any_order:
            fields["any_order"] = True
        width = way.max_whitespace if self.options.max_whitespace_cnt is None else self.options.max_whitespace_cnt
        if width is not None:
            fields["max_whitespace_cnt"] = width
        elif self.options.tidy and style == "json":
            fields["tidy"] = True
        if isinstance(way.call, TaggedCall) and way.call.excludes and self.options.exclude_special_tokens:
            fields["excludes"] = way.call.excludes
        if isinstance(way.call, TaggedCall) and way.call.pad:
            fields["pad"] = way.call.pad
        return f.JsonSchemaFormat(**fields)

    # Text.

    def _words(self, *always: str) -> tuple[str, ...]:
        """What free text may not hold; at token level no marker that is a token can stand in it anyway."""
        reasoning, content = self.dialect.reasoning, self.dialect.content
        if content.optional:
            always += content.begins
        if not self.ways:
            # Where no tool may be called, text does not begin a call.
            always += tuple(way.opens_with for way in self.dialect.calls if way.opens_with in self.dialect.excludes)
        if self.options.exclude_special_tokens:
            marks = (reasoning.start, reasoning.end) if reasoning and not self.dialect.turn.between else ()
            turn = self.dialect.turn
            # Where blocks are joined, what ends the turn or begins the next block is never the text of one.
            ends = (turn.end.strip(), *turn.other_ends, turn.between.strip()) if turn.between else ()
            always += (*marks, *ends, *self.dialect.excludes)
        if self.dialect.optional_space:
            always = tuple(word.strip() for word in always)
        words = [word for word in dict.fromkeys(always) if word]
        return tuple(word for word in words if not any(token in word for token in self.tokens))

    def _text(self, name: str, excludes: tuple[str, ...], *ends: str) -> f.Format:
        """Free text under a name up to and with one of its ends."""
        if self.dialect.optional_space:
            ends = tuple(dict.fromkeys(end.strip() or end for end in ends))  # the text holds what stands before its end
        last = [self._literal(end) for end in ends]
        text = f.CaptureFormat(name=name, content=f.AnyTextFormat(excludes=excludes))
        if all(parts[0].type == "token" for parts in last):
            return _sequence([text, _either([_sequence(parts) for parts in last])])
        return f.TagFormat(begin="", content=text, end=ends if len(ends) > 1 else ends[0])

    def _literal(self, text: str) -> list[f.Format]:
        """A literal, whose gaps are any white space or none where the dialect says so."""
        if not self.dialect.optional_space:
            return self._exactly(text)
        parts: list[f.Format] = []
        at = 0
        for gap in _GAP.finditer(text):
            parts += [*self._exactly(text[at : gap.start()]), _SPACE]
            at = gap.end()
        return [*parts, *self._exactly(text[at:])]

    def _beside_answer(self, text: str) -> list[f.Format]:
        """A literal next to content; to an answer in a format of its own no white space may be added."""
        return self._literal(text) if self.answer is None else self._exactly(text)

    def _marker(self, text: str) -> list[f.Format]:
        """A literal that opens a turn, before which white space may stand where the dialect says so."""
        return [_SPACE, *self._literal(text.lstrip())] if self.dialect.optional_space and text else self._literal(text)

    def _exactly(self, text: str) -> list[f.Format]:
        """A literal, in which markers are tokens where the level says so."""
        if not text:
            return []
        pieces = re.split(f"({'|'.join(map(re.escape, self.tokens))})", text) if self.tokens else [text]
        return [
            f.TokenFormat(token=piece) if piece in self.tokens else f.ConstStringFormat(value=piece)
            for piece in pieces
            if piece
        ]


def call_pieces(call: CallLayout) -> Pieces:
    """A call as literal text and fields."""
    match call:
        case TaggedCall(parts):
            return parts
        case KeyedCall():
            return ('{"', NAME, '": ', ARGUMENTS, "}")
        case JsonCall():
            return _object(call)


def _object(call: JsonCall) -> Pieces:
    fields, inside = call.fields, call.inside
    begin, comma, colon, end = call.spelling
    inner = [(key, value) for key, value in fields if value in (NAME, ARGUMENTS)]
    inner_begin, inner_comma, inner_end = _indented(begin, comma, end) if inside else (begin, comma, end)
    pieces: list[str | Field] = []
    text = begin
    for index, (key, value) in enumerate(fields):
        if index:
            text += inner_comma if (key, value) in inner[1:] else comma
        if inside and (key, value) == inner[0]:
            text += f'"{inside}"{colon}{inner_begin}'
        text += f'"{key}"{colon}'
        if isinstance(value, str):
            text += json.dumps(value)
        elif value is ARGUMENTS or (value is ID and call.bare_id):
            pieces += [text, value]
            text = ""
        else:
            pieces += [text + '"', value]
            text = '"'
        if inside and (key, value) == inner[-1]:
            text += inner_end
    return (*pieces, text + end)


def _indented(begin: str, comma: str, end: str) -> tuple[str, str, str]:
    """The spelling of an object inside of another one: over several lines it stands further to the right."""
    step = len(begin.rpartition("\n")[2]) - len(end.rpartition("\n")[2].rstrip("}"))
    if "\n" not in begin or "\n" not in end:
        return begin, comma, end
    return begin + " " * step, comma + " " * step, end[:-1] + " " * step + end[-1:]


def _split(pieces: Pieces) -> tuple[str, Pieces, str]:
    """The text before the first field, what is between, and the text behind the last field."""
    head = pieces[0] if isinstance(pieces[0], str) else ""
    tail = pieces[-1] if isinstance(pieces[-1], str) else ""
    return head, pieces[bool(head) : len(pieces) - bool(tail)], tail


def _behind(whole: f.Format, opened: str) -> f.Format:
    """A format without the text that the prompt has written, with which all of its ways begin."""
    match whole:
        case f.ConstStringFormat(value=value) if value.startswith(opened):
            return f.ConstStringFormat(value=value.removeprefix(opened))
        case f.OrFormat(elements=elements):
            return f.OrFormat(elements=tuple(_behind(element, opened) for element in elements))
        case f.SequenceFormat(elements=(f.ConstStringFormat(value=value), first, *rest)) if opened.startswith(value):
            return _sequence([_behind(first, opened.removeprefix(value)) if opened != value else first, *rest])
        case f.SequenceFormat(elements=(first, *rest)) if first == _SPACE:
            return _behind(_sequence(rest), opened)
        case f.SequenceFormat(elements=(first, *rest)):
            return _sequence([_behind(first, opened), *rest])
        case _:
            return whole


def _sequence(parts: list[f.Format]) -> f.Format:
    return parts[0] if len(parts) == 1 else f.SequenceFormat(elements=tuple(parts))


def _either(ways: list[f.Format]) -> f.Format:
    return ways[0] if len(ways) == 1 else f.OrFormat(elements=tuple(ways))


def _optional(parts: list[f.Format]) -> list[f.Format]:
    return [f.OptionalFormat(content=_sequence(parts))] if parts else []
