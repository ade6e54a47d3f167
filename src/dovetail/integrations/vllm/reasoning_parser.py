"""Reasoning of any dialect behind vLLM's interface of reasoning parsers.

`DovetailReasoningParser` reads the dialect of the model's own chat template; `DovetailReasoningParser_NAME` that of a
name. vLLM also asks it in the engine core, by token ids alone, when a constraint begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.reasoning import ReasoningParser

from dovetail.integrations.dialect_choice import dialect_of
from dovetail.integrations.reading import Parted, ReasoningReader, part, read_calls

# How many tokens of the prompt are read at first, to find where the turn begins.
_WINDOW = 64
# What requests say to the chat template to turn reasoning off.
_SWITCHES = ("enable_thinking", "thinking")


class DovetailReasoningParser(ReasoningParser):
    """Takes reasoning away from what the tool parser reads."""

    dialect_name = ""
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._dialect = dialect_of(tokenizer, self.dialect_name)
        layout = self._dialect.reasoning
        self._end = layout.end.strip() if layout else ""
        # What else ends it: families that call tools without closing the block.
        triggers = [call.opens_with.strip() for call in self._dialect.calls] if layout and layout.ends_at_calls else []
        self._ends = [mark for mark in (self._end, *triggers) if mark]
        wishes = kwargs.get("chat_template_kwargs") or {}
        self._is_off = layout is None or any(wishes.get(switch) is False for switch in _SWITCHES)
        self._prompt: str | None = "" if self._is_off else None
        self._reader: ReasoningReader | None = None

    @property
    def reasoning_start_str(self) -> str | None:
        """What begins reasoning."""
        return (self._dialect.reasoning.start.strip() or None) if self._dialect.reasoning else None

    @property
    def reasoning_end_str(self) -> str | None:
        """What ends reasoning."""
        return self._end or None

    def adjust_request(self, request: Any) -> Any:
        """The request with its special tokens shown, where reasoning is between some."""
        layout = self._dialect.reasoning
        if layout and any(token in layout.start + layout.end for token in self._dialect.special_tokens):
            request.skip_special_tokens = False
        return request

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether a prompt leaves no room for reasoning, so that a constraint begins with the first token."""
        if self._is_off:
            return True
        self._prompt = self._turn(list(input_ids))
        parser = self._dialect.parser(None, self._prompt)
        if self._end and self._end in parser.begun:
            start = self.reasoning_start_str
            return parser.begun.rfind(self._end) > (parser.begun.rfind(start) if start else -1)
        last = next((event for event in reversed(parser.initial_events) if event.region), None)
        return last is not None and (last.region != "reasoning" or last.kind == "close")

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether reasoning ends in the last of these tokens; asked at each step while the model reasons."""
        if self._is_off:
            return True
        new = len(list(delta_ids))
        tail = list(input_ids)[-(new + max(map(len, self._ends), default=0)) :]
        before = self.model_tokenizer.decode(tail[: len(tail) - new])
        after = self.model_tokenizer.decode(tail)
        return any(after.count(mark) > before.count(mark) for mark in self._ends)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """The tokens behind the reasoning."""
        return input_ids[self._reasoned(input_ids) :]

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many tokens of an output are reasoning, with its end."""
        return self._reasoned(list(token_ids))

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The reasoning of a whole output, and the rest as it was written."""
        reasoning, rest = part(self._dialect, model_output, self._prompt)
        return reasoning or None, rest or None

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Begin to read where this prompt ends."""
        self._prompt = self._turn(list(prompt_token_ids))

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """What the next piece of a stream adds; content is the rest, of which the tool parser reads more."""
        if self._reader is None:
            self._reader = ReasoningReader(self._dialect, self._prompt)
        return _delta(self._reader.feed(delta_text))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether the rest has begun, so that the tool parser goes on."""
        return self._reader is not None and self._reader.over

    def finish_streaming(self) -> DeltaMessage | None:
        """What the end of a stream settles; nothing once the rest has begun, which others read."""
        if self._reader is None or self._reader.over:
            return None
        reasoning, rest = self._reader.close()
        # Nobody reads it any more.
        return _delta(Parted(reasoning, read_calls(self._dialect, rest, []).content))

    def _turn(self, ids: list[int]) -> str:
        """The end of a prompt from where its last turn begins."""
        start, window = self._dialect.turn.start.strip(), _WINDOW
        while True:
            text = str(self.model_tokenizer.decode(ids[-window:]))
            if window >= len(ids) or (start and start in text):
                return text
            window *= 8

    def _reasoned(self, ids: list[int]) -> int:
        """How many of the tokens there are up to the end of reasoning; none where it does not end."""
        if not self._end or self._end not in self.model_tokenizer.decode(ids):
            return 0
        low, high = 0, len(ids)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._end in self.model_tokenizer.decode(ids[:middle]) else (middle, high)
        return high


def _delta(parted: Parted) -> DeltaMessage | None:
    if not (parted.reasoning or parted.rest):
        return None
    return DeltaMessage(reasoning=parted.reasoning or None, content=parted.rest or None)


def __getattr__(name: str) -> type[DovetailReasoningParser]:
    base, _, dialect = name.partition("_")
    if base != DovetailReasoningParser.__name__ or not dialect:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return type(name, (DovetailReasoningParser,), {"dialect_name": dialect, "__module__": __name__})
