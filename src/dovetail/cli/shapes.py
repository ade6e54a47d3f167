"""The shapes in which a message is printed, and how text of strangers is shown."""

from __future__ import annotations

import dataclasses
from typing import Any

from dovetail.messages import Message

SHAPES = ("message", "openai", "huggingface", "anthropic", "responses")


def shaped(message: Message, shape: str) -> Any:
    """The message as JSON values, in one of SHAPES."""
    match shape:
        case "openai":
            return message.to_openai()
        case "huggingface":
            return message.to_hf()
        case "anthropic":
            return message.to_anthropic()
        case "responses":
            return message.to_responses()
        case _:
            return dataclasses.asdict(message)


def visible(text: str) -> str:
    """The text on one line, with line ends and control characters shown, so that no text can steer a terminal."""
    shown = text.replace("\n", "⏎")
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in shown)
