"""Every error this package raises on purpose.

DovetailError
├── InputError            something the caller wrote; has .path and .fix
│   ├── FormatError       a structural tag or format object
│   ├── SchemaError       a JSON Schema
│   ├── GrammarError      EBNF or regex text; .path is "line L, column C" or "offset N"
│   ├── ExportError       a grammar that the target language cannot express
│   ├── DialectError      a model family, tools, tool_choice or reasoning of a request
│   ├── VocabularyError   tokens, tokenizer files, stop tokens
│   ├── MessageError      a chat message in the shape of some interface
│   ├── TemplateError     a chat template, or messages that it refuses; .path is "line L"
│   ├── ResponseTemplateError  a response template, or a tokenizer without one
│   ├── ResponseError     an output that its response template cannot read; has the message so far
│   ├── ModelError        a local model, its prompt or its sampling
│   └── LimitError        a budget of time, memory, depth or size ran out
├── AnswerError           a model's answer that is no value of its type; has .reason and .text
├── ParseError            output that a strict reader cannot read; has .position in bytes
└── MatcherError          a matcher used against its rules
"""

from __future__ import annotations

from typing import Literal


class DovetailError(Exception):
    """The root of every error raised on purpose."""


class InputError(DovetailError, ValueError):
    """What was wrong, where in the caller's input, and what to do about it."""

    def __init__(self, problem: str, path: str = "", fix: str = "") -> None:
        super().__init__(problem, path, fix)
        self.problem = problem
        self.path = path
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.problem]
        if self.path:
            lines.append(f"  at   {self.path}")
        if self.fix:
            lines.append(f"  fix  {self.fix}")
        return "\n".join(lines)


class FormatError(InputError):
    """A structural tag or format object is malformed."""


class SchemaError(InputError):
    """A JSON Schema is malformed, unsatisfiable or not expressible."""


class GrammarError(InputError):
    """EBNF or regex text is malformed or not regular."""


class ExportError(InputError):
    """The target language cannot express the grammar."""


class DialectError(InputError):
    """A model family is not known, or tools, tool_choice or reasoning make no sense."""


class VocabularyError(InputError):
    """Tokens, tokenizer files or stop tokens do not make a vocabulary."""


class MessageError(InputError):
    """A chat message does not have the shape of its interface."""


class TemplateError(InputError):
    """A chat template is malformed, or refuses the messages that it was given."""


class ResponseTemplateError(InputError):
    """A response template is malformed, missing, or not convertible."""


class ResponseError(InputError):
    """An output does not fit its response template.

    `message` is what was read so far, `events` what the failed call had to tell, `raw` the text that did not fit.
    """

    def __init__(
        self,
        problem: str,
        path: str = "",
        fix: str = "",
        *,
        raw: str = "",
        message: dict[str, object] | None = None,
        events: list[dict[str, object]] | None = None,
    ) -> None:
        super().__init__(problem, path, fix)
        self.raw = raw
        self.message = message or {}
        self.events = events or []


class ModelError(InputError):
    """A local model cannot be loaded, or cannot answer what it was asked."""


class LimitError(InputError):
    """A budget of time, memory, depth or size ran out."""


class AnswerError(DovetailError):
    """A model's answer is no value of the type that was asked for.

    `reason` is "length" where it was cut off and "invalid" where the type's own checks refuse it; `text` is what was
    said. Of several prompts, `index` is the one that failed first, and `answers` has the value or error of each.
    """

    def __init__(
        self,
        problem: str,
        reason: Literal["length", "invalid"],
        text: str,
        index: int = 0,
        answers: tuple[object, ...] = (),
    ) -> None:
        super().__init__(problem, reason, text, index, answers)
        self.problem = problem
        self.reason = reason
        self.text = text
        self.index = index
        self.answers = answers

    def __str__(self) -> str:
        fix = {"length": "raise max_tokens, or ask for less", "invalid": "say in the prompt what the type wants"}
        return f"{self.problem}\n  said {self.text[-200:]!r}\n  fix  {fix[self.reason]}"


class ParseError(DovetailError):
    """The output of a model left its format at `position`, in bytes."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem, position)
        self.problem = problem
        self.position = position

    def __str__(self) -> str:
        return f"{self.problem}\n  at   byte {self.position}"


class MatcherError(DovetailError):
    """A matcher was used against its rules."""
