"""Reasoning and tool calls of any dialect behind SGLang's interfaces of detectors."""

from __future__ import annotations

from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, StructureInfo, ToolCallItem
from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector
from sglang.srt.parser.reasoning_parser import StreamingParseResult as ReasoningResult
from xgrammar import StructuralTag

from dovetail.errors import DialectError
from dovetail.grammar import export
from dovetail.integrations.dialect_choice import dialect_of
from dovetail.integrations.reading import CallReader, Delta, Parted, ReasoningReader, part, read_calls


class DovetailToolDetector(BaseFormatDetector):
    """Reads calls, and describes them for the grammar backend."""

    dialect_name = ""

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._dialect = _dialect(tokenizer, self.dialect_name)
        self._reader: CallReader | None = None

    def has_tool_call(self, text: str) -> bool:
        """Whether a call may have begun in the text."""
        return any(call.opens_with.strip() in text for call in self._dialect.calls)

    def detect_and_parse(self, text: str, tools: list[Any]) -> StreamingParseResult:
        """The content and calls of a whole output."""
        message = read_calls(self._dialect, text, _dumped(tools))
        calls = [
            ToolCallItem(tool_index=index, name=call.name, parameters=call.arguments)
            for index, call in enumerate(message.tool_calls)
        ]
        return StreamingParseResult(normal_text=message.content, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> StreamingParseResult:
        """What the next piece of a stream adds."""
        if self._reader is None:
            self._reader = CallReader(self._dialect, _dumped(tools))
        return self._result(self._reader.feed(new_text))

    def finish(self, tools: list[Any]) -> StreamingParseResult:
        """What the end of a stream settles."""
        return StreamingParseResult() if self._reader is None else self._result(self._reader.close())

    def structure_info(self) -> Any:
        """How a call is written, for constraints in SGLang's older shape."""
        if not self._dialect.calls:
            raise DialectError(f"{self._dialect.name} does not call tools", "", "choose another dialect")
        call = self._dialect.calls[0]
        return lambda name: StructureInfo(begin=call.call_begin, end=call.call_end, trigger=call.opens_with)

    def get_structural_tag(
        self,
        tools: list[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> StructuralTag:
        """The turn that a request asks for."""
        turn = self._dialect.format(
            _dumped(tools or []),
            tool_choice=tool_choice if isinstance(tool_choice, str) else tool_choice.model_dump(exclude_none=True),
            reasoning=thinking_mode,
            parallel_tool_calls=parallel_tool_calls,
        )
        return StructuralTag.model_validate(export.structural_tag(turn.format))

    def _result(self, delta: Delta) -> StreamingParseResult:
        calls = []
        for number, arguments, call in delta.calls:
            if call is not None:
                # SGLang looks here for what is not told yet at the end of a stream.
                self.prev_tool_call_arr.append({"name": call.name, "arguments": {}})
                self.streamed_args_for_tool.append("")
                self.current_tool_id, self.current_tool_name_sent = number, True
            self.streamed_args_for_tool[number] += arguments
            name = None if call is None else call.name
            calls.append(ToolCallItem(tool_index=number, name=name, parameters=arguments))
        return StreamingParseResult(normal_text=delta.content, calls=calls)


class DovetailReasoningDetector(BaseReasoningFormatDetector):
    """Takes reasoning away from what the tool detector reads."""

    dialect_name = ""

    def __init__(
        self,
        stream_reasoning: bool = True,
        force_reasoning: bool = False,
        tokenizer: Any = None,
        **options: Any,
    ) -> None:
        self._dialect = _dialect(tokenizer, self.dialect_name)
        layout = self._dialect.reasoning
        start, end = (layout.start.strip(), layout.end.strip()) if layout else ("", "")
        super().__init__(start, end, force_reasoning=force_reasoning, stream_reasoning=stream_reasoning, **options)
        # Where the prompt has opened the block, the output begins inside; otherwise the output itself tells.
        self._prompt = self._dialect.turn.start + layout.start if layout and force_reasoning else None
        self._reader = ReasoningReader(self._dialect, self._prompt)

    def detect_and_parse(self, text: str) -> ReasoningResult:
        """The reasoning of a whole output, and the rest as it was written."""
        return _parted(part(self._dialect, text, self._prompt))

    def parse_streaming_increment(self, new_text: str) -> ReasoningResult:
        """What the next piece of a stream adds."""
        if self._reader.over:
            return ReasoningResult(normal_text=new_text)
        return _parted(self._reader.feed(new_text))

    def finish(self) -> ReasoningResult:
        """What the end of a stream settles."""
        return ReasoningResult() if self._reader.over else _parted(self._reader.close())


def named(detector: type[Any], dialect: str) -> type[Any]:
    """The detector for the dialect of this name; that of the model's own chat template where there is none."""
    return type(f"{detector.__name__}_{dialect}", (detector,), {"dialect_name": dialect}) if dialect else detector


def _dialect(tokenizer: Any, name: str) -> Any:
    if not name and tokenizer is None:
        fix = "name the dialect: --tool-call-parser dovetail-qwen_3"
        raise DialectError("SGLang gives this detector no tokenizer, so there is no chat template to read", "", fix)
    return dialect_of(tokenizer, name)


def _parted(parted: Parted) -> ReasoningResult:
    return ReasoningResult(normal_text=parted.rest, reasoning_text=parted.reasoning)


def _dumped(tools: list[Any]) -> list[Any]:
    return [tool.model_dump(exclude_none=True) for tool in tools]
