"""What a prompt writes of the turn that the model is to write: nothing, its header, or a beginning to go on from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dovetail.messages import Message
from dovetail.templates.analysis.evidence import Analysis
from dovetail.templates.render import ChatTemplate

Continue = Literal["", "content", "reasoning"]


def generation_prompt(
    template: ChatTemplate,
    analysis: Analysis,
    messages: Sequence[dict[str, Any]],
    tools: Any = None,
    *,
    thinking: bool = True,
    go_on: Continue = "",
) -> str:
    """The part of a prompt that belongs to the turn to be written.

    With `go_on` the last message is the beginning of that turn, cut in its content or in its reasoning.
    """
    settings = _settings(analysis, thinking)
    earlier = list(messages[:-1] if go_on else messages)
    header = _header(template, earlier, tools, settings)
    if not go_on:
        return header
    opened = _opened(analysis, settings)
    last = Message.from_openai(messages[-1])
    return header.removesuffix(opened) + _beginning(analysis, last, opened, go_on)


def _header(template: ChatTemplate, messages: list[dict[str, Any]], tools: Any, settings: dict[str, Any]) -> str:
    without = template.render(messages, tools, False, **settings)
    prompt = template.render(messages, tools, True, **settings)
    return prompt.removeprefix(without) if prompt.startswith(without) else ""


def _settings(analysis: Analysis, thinking: bool) -> dict[str, Any]:
    """The settings under which the template writes as asked; the default where it has no switch."""
    name, reasoning = analysis.capabilities.thinking_switch, analysis.dialect.reasoning
    if not name or reasoning is None:
        return {}
    for settings, text in analysis.prompts:
        if (reasoning.end in text) != thinking and (not settings or settings[0][0] == name):
            return dict(settings)
    return {name: thinking}


def _opened(analysis: Analysis, settings: dict[str, Any]) -> str:
    """What the prompt writes behind the header of the turn."""
    return next((text for known, text in analysis.prompts if dict(known) == settings), analysis.prompts[0][1])


def _beginning(analysis: Analysis, message: Message, opened: str, go_on: Continue) -> str:
    dialect = analysis.dialect
    block, content = dialect.reasoning, dialect.content.begins[0]
    if block is None:
        return content + message.content
    if not message.reasoning:
        return (opened if block.end in opened else "") + content + message.content
    start = block.start + block.pad + message.reasoning
    if go_on == "reasoning":
        return start
    pad = "" if _closed_without_pad(analysis) else block.pad
    return start + pad + block.end + block.after + dialect.turn.between + content + message.content


def _closed_without_pad(analysis: Analysis) -> bool:
    """Whether an empty block in a prompt shows that nothing stands before the end of reasoning.

    Only prompts show it for a template that renders reasoning beside calls alone.
    """
    block = analysis.dialect.reasoning
    assert block is not None
    empty = block.start + block.pad + block.end
    return analysis.modes.reasoning == "TOOLS_ONLY" and any(text == empty for _, text in analysis.prompts)
