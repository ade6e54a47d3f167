"""Conversations that differ in one thing, and what a template makes of them.

Everything that a probe says is a sentinel: a word that no template writes by itself and none mistakes for markup, so
that the text around it is the template's own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dovetail.errors import LimitError, TemplateError
from dovetail.templates.analysis.diff import shared_end, user_header
from dovetail.templates.render import ChatTemplate

Wire = dict[str, Any]

USER = "Zquserq"
OTHER_USER = "Zqlateruserq"
SYSTEM = "Zqsystemq"
CONTENT = "Zqcontentq"
REASONING = "Zqreasoningq"
NAMES = ("zq_first", "zq_second", "zq_third")
KEYS = ("zqkeya", "zqkeyb", "zqkeyc")
VALUES = ("Zqvaluea", "Zqvalueb", "Zqvaluec", "Zqvalued")
IDS = ("zqida0001", "zqidb0002", "zqidc0003")  # nine letters and digits, as some templates demand

_MAX_SECONDS = 20.0  # for all renders of one template; real ones take a few hundredths

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a probe; `arguments` by key in their order."""

    name: str
    arguments: Mapping[str, Any]
    id: str = IDS[0]


@dataclass(frozen=True, slots=True)
class Shape:
    """How messages must be passed so that a template renders them."""

    arguments: str = "object"  # or "string"
    flat: bool = False  # name and arguments stand in the call itself, not under "function"
    no_content: str = "empty"  # what stands for no content beside calls: "empty", "none" or "absent"
    named_ids: bool = False  # the id of a call has the name of its tool in it, and its number
    reasoning: str = ""  # a field of the message, or "parts" for typed content
    settings: tuple[tuple[str, Any], ...] = ()  # variables of the template that show what there is to see


@dataclass(frozen=True, slots=True)
class View:
    """How a template is shown a conversation, and read, where the usual way shows too little."""

    parts: str = ""  # whose content is a list of parts: nobody's, "user", or "all"
    thought: bool = False  # a message of the assistant has reasoning, if only an empty text
    later: bool = False  # the turn is history: another user speaks after it
    documents: bool = False  # an empty list of documents is passed
    whole_header: bool = False  # what all turns begin with is their header, also beyond that of the user's turn
    prompt_header: bool = False  # all that the prompt writes is the header, also what history leaves out
    block_marker: bool = False  # the last marker of the header begins each block of the turn


PLAIN_VIEW = View()


def tool(name: str) -> Wire:
    """A tool with two arguments about which nothing is known but that they are strings."""
    properties = {key: {"type": "string", "description": "d"} for key in KEYS[:2]}
    parameters = {"type": "object", "properties": properties, "required": [KEYS[0]]}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


TOOLS = [tool(name) for name in NAMES]


def user(text: str = USER) -> Wire:
    """A turn of the user."""
    return {"role": "user", "content": text}


PLAIN = Shape()


def assistant(content: str = "", reasoning: str = "", calls: tuple[Call, ...] = (), shape: Shape = PLAIN) -> Wire:
    """A turn of the assistant in the shape that the template takes."""
    message: Wire = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [_call(call, shape, index) for index, call in enumerate(calls)]
        if not content and shape.no_content != "empty":
            message["content"] = None
            if shape.no_content == "absent":
                del message["content"]
    if reasoning and shape.reasoning == "parts":
        parts = [{"type": "thinking", "thinking": reasoning}]
        message["content"] = [*parts, {"type": "text", "text": content}] if content else parts
    elif reasoning:
        message[shape.reasoning or REASONING_FIELDS[0]] = reasoning
    return message


def _call(call: Call, shape: Shape, index: int) -> Wire:
    arguments = dict(call.arguments)
    written = json.dumps(arguments, ensure_ascii=False) if shape.arguments == "string" else arguments
    named = {"name": call.name, "arguments": written}
    id = f"functions.{call.name}:{index}" if shape.named_ids else call.id
    return {"id": id, "type": "function", **(named if shape.flat else {"function": named})}


def _seen(message: Wire, view: View) -> Wire:
    """The message as a view shows it."""
    content = message.get("content")
    if isinstance(content, str) and view.parts in ("all", message["role"]):
        message = {**message, "content": [{"type": "text", "text": content}] if content else []}
    if view.thought and message["role"] == "assistant" and not any(name in message for name in REASONING_FIELDS):
        message = {**message, REASONING_FIELDS[0]: ""}
    return message


def _clock() -> datetime:
    """Noon of a day, whenever it is asked: two renders differ in nothing that passes by itself."""
    return datetime(2025, 1, 15, 12)


@dataclass(slots=True)
class Prober:
    """Renders probes, each once; a template that refuses a probe gives None.

    Where `lenient`, what Transformers refuses is rendered as other runtimes would.
    """

    source: str
    bos_token: str = ""
    eos_token: str = ""
    lenient: bool = False
    takes_tools: bool = True  # some templates fail on tools
    no_tools: Any = None  # what is then offered: nothing, or a list without any where a template goes over it
    view: View = PLAIN_VIEW
    refusals: dict[str, str] = field(default_factory=dict)  # what Transformers refuses, and why
    _spent_s: float = 0.0
    _strict: ChatTemplate | None = None
    _free: ChatTemplate | None = None
    _memo: dict[str, str | None] = field(default_factory=dict)

    def render(self, messages: list[Wire], tools: Any = TOOLS, prompt: bool = False, settings: Any = ()) -> str | None:
        """The text of a conversation, or None where the template refuses it."""
        tools = tools if self.takes_tools else self.no_tools
        messages = [_seen(message, self.view) for message in messages]
        settings = (*settings, ("documents", [])) if self.view.documents else settings
        key = json.dumps([messages, tools, prompt, list(settings)])
        if self._memo.get(key) is None and (key not in self._memo or self.lenient):
            start = time.monotonic()
            self._memo[key] = self._render(key, messages, tools, prompt, dict(settings))
            self._spent_s += time.monotonic() - start
            if self._spent_s > _MAX_SECONDS:
                problem = f"the chat template took more than {_MAX_SECONDS:.0f} seconds for {len(self._memo)} renders"
                raise LimitError(problem, "", "simplify its loops, or write the dialect by hand")
        return self._memo[key]

    def refusal(self, messages: list[Wire]) -> str:
        """Why Transformers refuses a conversation, or nothing where it takes it."""
        self.render(messages)
        return self.refusals.get(json.dumps([messages, TOOLS if self.takes_tools else self.no_tools, False, []]), "")

    def _render(self, key: str, messages: list[Wire], tools: Any, prompt: bool, settings: Wire) -> str | None:
        if self._strict is None:
            self._strict = ChatTemplate(self.source, self.bos_token, self.eos_token, clock=_clock)
        try:
            return self._strict.render(messages, tools, prompt, **settings)
        except TemplateError as error:
            self.refusals[key] = error.problem
        if not self.lenient:
            return None
        if self._free is None:
            self._free = ChatTemplate(self.source, self.bos_token, self.eos_token, clock=_clock, lenient=True)
        try:
            return self._free.render(messages, tools, prompt, **settings)
        except TemplateError:
            return None

    def turn(self, message: Wire | None, prompt: bool = False, settings: Any = (), tools: Any = TOOLS) -> str | None:
        """What a template writes behind the text of the user: the end of that turn, and the turn of the assistant."""
        if message is not None and self.view.later:
            return self.earlier_turn(message, settings, tools)
        text = self.render([user(), *([message] if message else [])], tools, prompt, settings)
        if text is None or USER not in text:
            return None
        return text.rpartition(USER)[2]

    def earlier_turn(self, message: Wire, settings: Any = (), tools: Any = TOOLS) -> str | None:
        """A turn behind which another user speaks, up to the header of that user."""
        text = self.render([user(), message, user(OTHER_USER)], tools, False, settings) or ""
        before, _, behind = text.partition(USER)
        turn, separator, _ = behind.partition(OTHER_USER)
        return turn[: len(turn) - len(user_header(shared_end(before, turn)))] if separator else None
