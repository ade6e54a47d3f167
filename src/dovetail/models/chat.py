"""Chats as prompts: in the shape that chat templates read, and as plain text where there is no template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from dovetail.dialects import Dialect
from dovetail.errors import MessageError
from dovetail.messages import Message, to_json
from dovetail.models.model import Prompt

Chat = Sequence[Mapping[str, Any]]


def for_template(messages: Chat, reasoning_field: str = "reasoning_content") -> list[dict[str, Any]]:
    """The messages as chat templates expect them: content is text, and the arguments of calls are objects."""
    return [_for_template(message, f"/messages/{i}", reasoning_field) for i, message in enumerate(messages)]


def _for_template(message: Mapping[str, Any], path: str, reasoning_field: str) -> dict[str, Any]:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise MessageError("a message needs a role", path, 'write {"role": "user", "content": ...}')
    try:
        read = Message.from_openai(message)
    except MessageError as error:
        raise MessageError(error.problem, path + error.path, error.fix) from None
    if message["role"] == "assistant":
        return read.to_hf(reasoning_field)
    others = {key: value for key, value in message.items() if key not in ("content", "tool_calls")}
    return others | {"content": read.content}


def settled(dialect: Dialect, opened_by: Literal["prompt", "model"] = "model") -> Dialect:
    """The dialect of a model whose prompts are known, so that it is known too who opens the reasoning."""
    block = dialect.reasoning
    if block is None or block.opened_by != "either":
        return dialect
    return replace(dialect, reasoning=replace(block, opened_by=opened_by))


def render_plainly(
    dialect: Dialect,
    messages: Chat,
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    reasoning: bool = True,
    continue_final: bool = False,
) -> Prompt:
    """A chat with the turn markers of a dialect, for models that have no chat template."""
    turns = for_template(messages)
    last = continued(turns) if continue_final else None
    text = "".join(_turn(dialect, turn) for turn in turns)
    if tools:
        text = _wrap(dialect, "system", "Tools:\n" + "\n".join(to_json(tool) for tool in tools)) + text
    text += dialect.turn.start + _opened(dialect, reasoning)
    prefix = begun(dialect, last, reasoning) if last else ""
    return Prompt(text + prefix, prefix)


def continued(turns: list[dict[str, Any]]) -> Message:
    """The last turn, taken off, which is the answer to go on with."""
    if not turns or turns[-1]["role"] != "assistant" or turns[-1].get("tool_calls"):
        fix = "end the messages with an assistant message without calls"
        raise MessageError("there is no answer to go on with", f"/messages/{max(0, len(turns) - 1)}", fix)
    return Message.from_openai(turns.pop())


def _turn(dialect: Dialect, turn: Mapping[str, Any]) -> str:
    if turn["role"] != "assistant":
        return _wrap(dialect, turn["role"], turn["content"])
    # Not the dialect's own spelling, which refuses texts that look like markup: a history is what it is.
    message = Message.from_openai(turn)
    calls = [to_json({"name": call.name, "arguments": call.value}) for call in message.tool_calls]
    return _wrap(dialect, "assistant", "\n".join(filter(None, [message.reasoning, message.content, *calls])))


def _wrap(dialect: Dialect, role: str, content: str) -> str:
    start = dialect.turn.start
    for own in ("assistant", "Assistant", "CHATBOT", "model"):
        if own in start:
            return start.replace(own, role) + content + dialect.turn.end
    return f"{start if role == 'assistant' else role + ': '}{content}{dialect.turn.end}\n"


def _opened(dialect: Dialect, reasoning: bool) -> str:
    """What the prompts of the family write of the answer before the model begins."""
    block, content = dialect.reasoning, dialect.content
    if block and (block.opened_by == "prompt" if reasoning else block.skipped):
        return block.start + block.pad
    return content.begins[0] if not reasoning and content.prompt_opens else dialect.turn.opened


def begun(dialect: Dialect, message: Message, reasoning: bool) -> str:
    """The beginning of a turn that says `message` and may go on saying more of it."""
    block, content, between = dialect.reasoning, dialect.content, dialect.turn.between
    text = ""
    if block and not reasoning:
        text = block.skipped
    elif block and (message.reasoning or not between):
        text = block.pad + message.reasoning if message.reasoning else ""
        text = text.removeprefix(block.pad) if block.opened_by == "prompt" else block.start + text
        if message.content:
            text += (block.pad if message.reasoning else "") + block.end + block.after + between
    if not message.content:
        return text
    return text + ("" if content.prompt_opens and not reasoning else content.begins[0]) + message.content
