"""How a model family lays out one turn, as data.

    turn.start | [reasoning] [content] [calls] ... turn.closing | turn.end

What stands between the bars is the output of the model, and what formats and parsers are about. The blocks come in this
order, unless `turn.between` is given: then they come in any order, joined by it (Harmony's channels).

The formats that a dialect makes name their parts. These are the captures that a matcher tells as events; the parser
reads by the same row, and not by them:

| capture | what it spans |
|---|---|
| reasoning | the text inside one reasoning block, without its markers |
| content | a piece of free text, or the answer that a schema describes; several pieces are one content |
| tool_call | one call from behind its `call_begin` to before its `call_end`; the captures below are inside |
| name | the name of the tool, as the tool list has it |
| id | the part of a call that `id_pattern` describes |
| arguments | the arguments as written: JSON, tagged parameters, or the literals of a call syntax |

Everything outside them is markup. A call has exactly one name, at most one id and one arguments, in any order; tagged
arguments that are empty leave no trace, because a matcher does not report a capture of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.callers import warn
from dovetail.dialects.making import Level, Options, make_format
from dovetail.dialects.rendering import render
from dovetail.dialects.requests import parameters, read_request
from dovetail.dialects.response_template import response_template
from dovetail.engine import Vocabulary, compile
from dovetail.engine.compiled import byte_vocabulary
from dovetail.errors import DialectError
from dovetail.formats import AnyTextFormat, Format, FormatSource, StructuralTag, load_format
from dovetail.messages import Message
from dovetail.parsing import StreamParser
from dovetail.parsing.layouts import Content, Reasoning, ToolCalls, Turn
from dovetail.typing import Reasoning as ReasoningOption
from dovetail.typing import ToolChoice, Tools

_PLAIN, _BARE = Content(), Turn()
_MAX_WARNED = 10_000  # dialects and parts of which a use has been warned of

_warned: set[tuple[str, str]] = set()


class UnprovenWarning(UserWarning):
    """A part of a dialect is used that its chat template did not prove."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What one turn that a chat template wrote has shown of a dialect: that a part holds, or the problem."""

    part: str  # content, reasoning, calls or prompt
    shown: str  # what the turn had, such as "parallel calls"
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one model family talks; `calls` lists the spellings of calls, the first of which is the one written."""

    name: str
    calls: tuple[ToolCalls, ...] = ()
    reasoning: Reasoning | None = None
    content: Content = _PLAIN
    turn: Turn = _BARE
    special_tokens: tuple[str, ...] = ()  # markers that the family's vocabulary holds as single tokens
    excludes: tuple[str, ...] = ()  # what free text may not hold beside the reasoning markers
    optional_space: bool = False  # beside markers formats allow any white space, little or none, for what is written
    notes: tuple[str, ...] = field(default=(), compare=False)  # what is known to be wrong or missing, in sentences
    proof: tuple[Proof, ...] = field(default=(), compare=False)  # what a chat template has shown; empty where none has

    def format(
        self,
        tools: Tools | None = None,
        tool_choice: ToolChoice = "auto",
        reasoning: ReasoningOption = True,
        *,
        parallel_tool_calls: bool = True,
        response_format: FormatSource | None = None,
        any_order: bool = False,
        exclude_special_tokens: bool = True,
        max_whitespace_cnt: int | None = None,
        tidy: bool = False,
        level: Level = "text",
    ) -> StructuralTag:
        """The format of one turn: reasoning, free text, calls, and an answer that fits `response_format`.

        At the level "token" the markers that are special tokens are matched as tokens, and the same characters in prose
        are prose. Where `tidy`, the JSON of arguments has white space only where people have it.
        """
        if level not in ("text", "token"):
            raise DialectError(f"level is {level!r}", "/level", 'use "text" or "token"')
        request = read_request(tools, tool_choice, reasoning, parallel_tool_calls)
        self._warn_of_unproven(bool(request.tools))
        options = Options(any_order, exclude_special_tokens, max_whitespace_cnt, tidy, level)
        made = make_format(self, request, _answer(response_format), options)
        return StructuralTag(format=made)

    def render(self, message: Message, opened: bool = False) -> str:
        """The output that says `message`, as a parser reads it; an error where the family cannot say it.

        Where `opened`, it goes on behind a prompt that has already opened the first block.
        """
        return render(self, message, opened)

    def parser(
        self,
        tools: Tools | None = None,
        prompt: str | None = None,
        *,
        strict: bool = False,
        inline_reasoning: bool = False,
        response_format: FormatSource | None = None,
        vocabulary: Vocabulary | None = None,
        level: Level = "text",
        tool_choice: ToolChoice = "auto",
        reasoning: ReasoningOption = True,
        parallel_tool_calls: bool = True,
        in_reasoning: bool | None = None,
        keeps_unknown: bool = False,
    ) -> StreamParser:
        """A reader of one turn as it streams in.

        It starts in the state that `prompt` leaves, or inside a block of reasoning or outside as `in_reasoning` says.
        Without either the output itself tells: where prompts of the family may have opened the block, nothing is told
        before a marker comes, unless `reasoning` is off. With the `tool_choice` "none", and with no tool in
        `tools`, calls are text; with `keeps_unknown`, calls of tools that are not there are told by families too whose
        engines leave them out. Where `strict`,
        output that the format of the request refuses, or that would leave a diagnostic, is a ParseError. Token ids need
        a `vocabulary`; at the level "token" markers that are special tokens are matched by id only.
        """
        answer = _answer(response_format)
        self._warn_of_unproven(bool(tools))
        matcher = None
        if strict:
            made = self.format(
                tools,
                tool_choice,
                reasoning,
                parallel_tool_calls=parallel_tool_calls,
                response_format=response_format,
                level=level,
            )
            matcher = compile(made.format, vocabulary or byte_vocabulary()).matcher()
        if prompt is None and reasoning in (False, "disabled"):
            prompt = ""
        declared = parameters(tools)
        return StreamParser(
            self,
            declared,
            prompt=prompt,
            in_reasoning=in_reasoning,
            inline_reasoning=inline_reasoning,
            calls_are_text=tool_choice == "none" or declared == {},
            keeps_unknown=keeps_unknown,
            answer=answer,
            vocabulary=vocabulary,
            level=level,
            matcher=matcher,
        )

    def parse(
        self,
        output: str | bytes | Sequence[int],
        tools: Tools | None = None,
        prompt: str | None = None,
        *,
        strict: bool = False,
        inline_reasoning: bool = False,
        response_format: FormatSource | None = None,
        vocabulary: Vocabulary | None = None,
        level: Level = "text",
        tool_choice: ToolChoice = "auto",
        reasoning: ReasoningOption = True,
        parallel_tool_calls: bool = True,
        in_reasoning: bool | None = None,
    ) -> Message:
        """The message that a whole output says; the options are those of `parser`."""
        parser = self.parser(
            tools,
            prompt,
            strict=strict,
            inline_reasoning=inline_reasoning,
            response_format=response_format,
            vocabulary=vocabulary,
            level=level,
            tool_choice=tool_choice,
            reasoning=reasoning,
            parallel_tool_calls=parallel_tool_calls,
            in_reasoning=in_reasoning,
        )
        parser.feed(output)
        return parser.finish()

    @property
    def unproven(self) -> dict[str, str]:
        """The parts that the chat template did not prove, each with a problem that one of its turns has shown."""
        return {row.part: row.problem for row in reversed(self.proof) if row.problem}

    def _warn_of_unproven(self, with_calls: bool) -> None:
        """Warn once of each part that is used and not proved."""
        if not self.proof:
            return
        for part, problem in self.unproven.items():
            if (part == "calls" and not with_calls) or (self.name, part) in _warned or len(_warned) > _MAX_WARNED:
                continue
            _warned.add((self.name, part))
            text = f"{self.name}: the chat template did not prove {part}: {problem}"
            warn(text, UnprovenWarning)

    def response_template(self) -> dict[str, Any]:
        """A Hugging Face response template that reads what the family writes; an ExportError where none can."""
        return response_template(self)


def _answer(response_format: FormatSource | None) -> Format | None:
    """What the content has to be, or None where any text will do."""
    if response_format is None:
        return None
    answer = load_format(response_format)
    return None if answer == AnyTextFormat() else answer
