"""Tests for authors of chat templates: say what a model writes, and what it has to mean.

    weather = template("chat_template.jinja").tools([...])
    weather.input("<tool_call>...").expect(calls=[("get_weather", {"city": "Paris"})])

Each step gives a new test, so that a common start can be kept and built upon. `expect` runs the test: the output is
read whole and cut in many ways, must mean the same each time, lose no byte, and be allowed by the format that
constrains the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from dovetail.dialects import Dialect
from dovetail.engine import accepts
from dovetail.formats import Format, FormatSource
from dovetail.messages import Message, ToolCall
from dovetail.templates.analysis import analyze_template
from dovetail.templates.analysis.verify import Rendered
from dovetail.templates.checks.laws import streams
from dovetail.templates.picture import cut
from dovetail.templates.render import ChatTemplate
from dovetail.templates.sources import TemplateSource, find_template
from dovetail.typing import Reasoning
from dovetail.typing import TemplateSource as Source

Call = tuple[str, Any] | Mapping[str, Any] | ToolCall
_USER = ({"role": "user", "content": "Hello"},)


def template(source: Source) -> TemplateTest:
    """The start of a test: a template as text, a file or folder that holds one, or a tokenizer."""
    return TemplateTest(find_template(source))


@dataclass(frozen=True, slots=True)
class TemplateTest:
    """What is known so far of one test; see the module for an example."""

    source: TemplateSource
    conversation: tuple[Mapping[str, Any], ...] = _USER
    declared: tuple[Mapping[str, Any], ...] = ()
    variables: tuple[tuple[str, Any], ...] = ()
    output: str = ""
    is_partial: bool = False
    is_free: bool = False
    answer: FormatSource | None = None

    def messages(self, *messages: Mapping[str, Any]) -> Self:
        """The conversation before the output; one message of a user where nothing else is said."""
        return replace(self, conversation=messages)

    def tools(self, tools: Iterable[Mapping[str, Any]]) -> Self:
        """The tools of the request, as Chat Completions has them."""
        return replace(self, declared=tuple(tools))

    def options(self, **variables: Any) -> Self:
        """Variables of the template, such as enable_thinking."""
        return replace(self, variables=(*self.variables, *variables.items()))

    def response_format(self, response_format: FormatSource) -> Self:
        """What the answer has to fit, such as a JSON Schema."""
        return replace(self, answer=response_format)

    def input(self, output: str) -> Self:
        """What the model writes behind the prompt."""
        return replace(self, output=output)

    def partial(self) -> Self:
        """The output is not at its end: it was cut off, or more is to come."""
        return replace(self, is_partial=True)

    def unconstrained(self) -> Self:
        """The model was left free: the output may be one that the format does not allow."""
        return replace(self, is_free=True)

    @property
    def dialect(self) -> Dialect:
        """The dialect derived from the template."""
        return analyze_template(self.source.text, self.source.bos_token, self.source.eos_token).dialect

    @property
    def prompt(self) -> str:
        """The prompt that the template writes for the conversation."""
        chat = ChatTemplate(self.source.text, self.source.bos_token, self.source.eos_token)
        return chat.render(self.conversation, self.declared or None, True, **dict(self.variables))

    def read(self) -> Message:
        """The message that the output says."""
        parser = self.dialect.parser(self.declared or None, self.prompt, response_format=self.answer)
        parser.feed(self.output)
        return parser.message if self.is_partial else parser.finish()

    def expect(self, content: str = "", reasoning: str = "", calls: Iterable[Call] = ()) -> Self:
        """Run the test: an AssertionError tells what is read otherwise, and which part of the output is what."""
        __tracebackhide__ = True
        got = self.read()
        wanted = [_call(call) for call in calls]
        called = [(call.name, call.value, call.id) for call in got.tool_calls]
        self._same("content", content, got.content)
        self._same("reasoning", reasoning, got.reasoning)
        self._same("number of calls", len(wanted), len(called))
        for index, (want, have) in enumerate(zip(wanted, called, strict=True)):
            for what, wish, fact in zip(("name", "arguments", "id"), want, have, strict=True):
                if wish is not None:
                    self._same(f"{what} of call {index}", wish, fact)
        self._keeps_the_laws(got)
        return self

    def _keeps_the_laws(self, got: Message) -> None:
        __tracebackhide__ = True
        tools = self.declared or None
        if not self.is_partial and not self.is_free:
            self._same("list of remarks of the reader", [], [remark.problem for remark in got.diagnostics])
            if not any(accepts(made, self.output) for made in self._formats()):
                raise AssertionError(self._explained("the format does not allow this output; is it .unconstrained()?"))
        problem = streams(self.dialect, tools, Rendered(self.prompt, self.output, None))
        if problem:
            raise AssertionError(self._explained(problem))

    def _formats(self) -> list[Format]:
        """The formats under which the output may have been made: with reasoning on, off, or as the model likes."""
        modes: tuple[Reasoning, ...] = (True, False, "auto")
        tools, answer = self.declared or None, self.answer
        return [self.dialect.format(tools, reasoning=mode, response_format=answer).format for mode in modes]

    def _same(self, what: str, wanted: Any, got: Any) -> None:
        __tracebackhide__ = True
        if wanted != got:
            raise AssertionError(self._explained(f"the {what} differs\n  expected  {wanted!r}\n  read      {got!r}"))

    def _explained(self, problem: str) -> str:
        """The problem with the output cut into the regions as they were read."""
        pieces = cut(self.dialect, self.declared or None, self.prompt, self.output)
        lines = [problem, f"  prompt    ...{self.prompt[-60:]!r}", "  output"]
        lines += [f"    {piece.name:<9} {piece.text!r}" for piece in pieces]
        return "\n".join(lines)


def _call(call: Call) -> tuple[str, Any, str | None]:
    """Name, arguments and id; an id that is not given is not compared."""
    if isinstance(call, ToolCall):
        return call.name, call.value, call.id or None
    if isinstance(call, Mapping):
        inner = call.get("function", call)
        arguments = inner.get("arguments", {})
        return inner["name"], json.loads(arguments) if isinstance(arguments, str) else arguments, call.get("id")
    return call[0], call[1], None
