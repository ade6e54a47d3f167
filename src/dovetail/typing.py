"""The shapes that requests come in, for type checkers: tools, tool_choice, reasoning, tokenizers.

Everything here describes what functions take. JSON that was loaded from somewhere fits too (`Mapping`), and so do the
models of client libraries, which know how to become a dict (`Dumpable`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict


class Dumpable(Protocol):
    """A model of a client library, such as `openai.types.chat.ChatCompletionToolParam` or a Pydantic model."""

    def model_dump(self) -> dict[str, Any]:
        """The fields as a dict."""


class _Named(TypedDict):
    name: str


class FunctionDefinition(_Named, total=False):
    """A function that a model may call; `parameters` is the JSON Schema of its arguments."""

    description: str
    parameters: Mapping[str, Any] | bool | None
    strict: bool | None


class FunctionTool(TypedDict):
    """A tool as Chat Completions has it."""

    type: Literal["function"]
    function: FunctionDefinition


class FlatFunctionTool(FunctionDefinition):
    """A tool as the Responses interface has it."""

    type: Literal["function"]


class HostedTool(TypedDict):
    """A tool that the server runs itself, known by its type: `{"type": "web_search"}`."""

    type: str


Tool = FunctionTool | FlatFunctionTool | HostedTool | Mapping[str, Any] | Dumpable
Tools = Sequence[Tool]


class NamedTool(TypedDict):
    """One function by name, as Chat Completions has it."""

    type: Literal["function"]
    function: _Named


class FlatNamedTool(_Named):
    """One function by name, as the Responses interface has it."""

    type: Literal["function"]


class AllowedToolList(TypedDict):
    """Some of the tools, of which one has to be called (`required`) or may be (`auto`)."""

    mode: Literal["auto", "required"]
    tools: Sequence[NamedTool | FlatNamedTool | HostedTool | Mapping[str, Any]]


class AllowedTools(TypedDict):
    """`allowed_tools` as Chat Completions has it."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedToolList


ToolChoice = (
    Literal["auto", "none", "required"]
    | NamedTool
    | FlatNamedTool
    | HostedTool
    | AllowedTools
    | Mapping[str, Any]
    | Dumpable
    | None
)
Reasoning = bool | Literal["enabled", "disabled", "auto"]


class TemplateHolder(Protocol):
    """A tokenizer or processor of Transformers, which holds the chat template of its model, or several by name."""

    @property
    def chat_template(self) -> Any:
        """The template, or templates by name, or nothing."""


class Decoder(Protocol):
    """A tokenizer that knows what token ids say: that of Transformers, for a text or a batch."""

    def decode(self, token_ids: Any, /) -> Any:
        """The text of these ids, or the texts of a batch."""


Path = str | os.PathLike[str]
TemplateSource = Path | TemplateHolder
TokenIds = Sequence[int]
