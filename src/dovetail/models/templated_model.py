"""A model with a chat template: chats become prompts. What local backends and engines elsewhere share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.errors import InputError, MessageError, ModelError
from dovetail.models.chat import begun, continued, for_template, render_plainly, settled
from dovetail.models.model import Prompt
from dovetail.models.prompted_tools import tell_tools, with_calls
from dovetail.response_templates.detect import detect

_MARK = "tell_me_the_weather"
_HELLO = {"role": "user", "content": "hi"}
_TOOL = {
    "type": "function",
    "function": {"name": _MARK, "description": "The weather.", "parameters": {"type": "object", "properties": {}}},
}


class TemplatedModel(ABC):
    """A model whose prompts its chat template writes; `dialect` knows from them who opens the reasoning.

    Where the chat template has no place for tools, they are told in the system prompt, and `dialect` has a layout for
    calls all the same. A dialect that was `named` by hand may have a block of reasoning that the template never shows.
    """

    def __init__(self, name: str, dialect: Dialect, *, named: bool = False) -> None:
        self.name = name
        self._has_system = self._shows(_MARK, [{"role": "system", "content": _MARK}, _HELLO])
        self.tools_in_prompt = self._has_template and not (dialect.calls and self._shows(_MARK, [_HELLO], [_TOOL]))
        block = dialect.reasoning
        self.shows_reasoning = not (named and block and self._has_template) or block.end.strip() in self._source
        self.dialect = self._settle(with_calls(dialect) if self.tools_in_prompt else dialect)

    @property
    @abstractmethod
    def _source(self) -> str:
        """The chat template that the model came with, or nothing."""

    @abstractmethod
    def _apply_template(self, turns: list[dict[str, Any]], tools: Any, options: Mapping[str, Any]) -> str:
        """The prompt that the chat template writes."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reasoning: bool = True,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """The chat through the model's own template, or with the markers of its dialect where it has none."""
        if not self._has_template:
            return render_plainly(self.dialect, messages, tools, reasoning=reasoning, continue_final=continue_final)
        turns = for_template(messages)
        last = continued(turns) if continue_final else None
        if self.tools_in_prompt:
            turns = tell_tools(self.dialect, turns, tools or (), has_system=self._has_system)
            tools = None
        text = self._through_template(turns, tools, reasoning, options or {})
        prefix = begun(self.dialect, last, reasoning) if last else ""
        return Prompt(text + prefix, prefix)

    @property
    def _has_template(self) -> bool:
        return bool(self._source)

    def _shows(self, mark: str, turns: list[dict[str, Any]], tools: Any = None) -> bool:
        """Whether the prompt of a chat holds a text."""
        try:
            return self._has_template and mark in self._through_template(turns, tools, True, {})
        except MessageError:
            return False

    def _through_template(
        self, turns: list[dict[str, Any]], tools: Any, reasoning: bool, options: Mapping[str, Any]
    ) -> str:
        # The names under which templates ask whether to reason.
        asked = {"enable_thinking": reasoning, "thinking": reasoning}
        try:
            return self._apply_template(turns, tools or None, {**asked, **options})
        except Exception as error:  # whatever a template runs into, or raises on purpose
            problem = error.problem if isinstance(error, InputError) else f"the chat template refuses these: {error}"
            raise MessageError(problem, "/messages", "see which roles and orders the model knows") from None

    def _settle(self, dialect: Dialect) -> Dialect:
        """The dialect with what the model's own prompts tell: whether they open the reasoning."""
        block = dialect.reasoning
        if block is None or not self._has_template:
            return settled(dialect)
        prompt = self._through_template([{"role": "user", "content": "hi"}], None, True, {})
        return settled(dialect, "prompt" if prompt.rstrip().endswith(block.start.strip()) else "model")


def find_dialect(path: Path, given: Dialect | str | None) -> Dialect:
    """The dialect that is given, or else the one that the files of a model tell."""
    if isinstance(given, Dialect):
        return given
    if given:
        return dialects.get(given)
    try:
        return detect(path).dialect
    except InputError as error:
        raise ModelError(
            f"it is not known how this model talks: {error.problem}", str(path), "name its dialect"
        ) from error
