"""Tool calls of any dialect behind vLLM's interface of tool parsers.

`DovetailToolParser` reads the dialect of the model's own chat template; `DovetailToolParser_NAME` that of a name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import vllm.envs
from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
)
from vllm.entrypoints.generate.base.protocol import ToolCall as WireCall
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser
from vllm.v1.structured_output.request import get_structured_output_key

from dovetail.errors import InputError
from dovetail.formats import StructuralTag, load_format
from dovetail.grammar import export
from dovetail.integrations.dialect_choice import dialect_of
from dovetail.integrations.reading import CallReader, Delta, read_calls
from dovetail.integrations.vllm.backend import format_of
from dovetail.integrations.vllm.frontend import masks_are_ours, refused
from dovetail.messages import ToolCall


class DovetailToolParser(ToolParser):
    """Reads calls, and constrains what the model says to what the request asks of tools and answer."""

    dialect_name = ""
    supports_required_and_named = False  # those are read like any other, as the model writes them
    engine_based_streaming = True  # deltas are enough, and the end of a stream is told by `finish_streaming`

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._dialect = dialect_of(tokenizer, self.dialect_name)
        self._reader: CallReader | None = None

    def adjust_request(self, request: Any) -> Any:
        """The request with the constraint of its tools, its tool_choice and its answer in one."""
        if not _offered(request):
            return request
        if self._dialect.special_tokens:
            request.skip_special_tokens = False
        asked = request.extract_structured_outputs()
        if asked is not None and asked.structural_tag is not None:
            return request  # it says all there is to say
        if asked is None and request.tool_choice in (None, "auto") and not vllm.envs.VLLM_ENFORCE_STRICT_TOOL_CALLING:
            return request
        try:
            tag = self._tag(request, asked)
        except InputError as error:
            raise refused(error) from None
        request.structured_outputs = StructuredOutputsParams(structural_tag=tag)
        if hasattr(request, "response_format"):
            request.response_format = None
        else:
            request.text = None
        return request

    def _tag(self, request: Any, asked: Any) -> str:
        answer = None
        if asked is not None:
            kind, spec = get_structured_output_key(asked)
            answer = load_format(format_of(kind, spec, False))
        turn: StructuralTag = self._dialect.format(
            _offered(request),
            tool_choice=request.tool_choice or "auto",
            reasoning=False,  # where the model reasons, vLLM lets the constraint begin behind that
            parallel_tool_calls=request.parallel_tool_calls is not False,
            response_format=answer,
        )
        if masks_are_ours():
            return turn.model_dump_json()
        return json.dumps(export.structural_tag(turn.format))

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """The content and calls of a whole output."""
        message = read_calls(self._dialect, model_output, _offered(request))
        calls = [_wire(call) for call in message.tool_calls]
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=message.content or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """What the next piece of a stream adds."""
        if self._reader is None:
            self._reader = CallReader(self._dialect, _offered(request))
        return self._delta(self._reader.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """What the end of a stream settles."""
        return None if self._reader is None else self._delta(self._reader.close())

    def _delta(self, delta: Delta) -> DeltaMessage | None:
        calls: dict[int, DeltaToolCall] = {}
        for index, arguments, call in delta.calls:
            if call is not None:
                # vLLM looks here for whether there was a call, and for what was told of it.
                self.prev_tool_call_arr.append({"name": call.name, "arguments": ""})
                self.streamed_args_for_tool.append("")
                function = DeltaFunctionCall(name=call.name, arguments="")
                calls[index] = DeltaToolCall(id=_id(call), type="function", index=index, function=function)
            sent = calls.setdefault(index, DeltaToolCall(index=index, function=DeltaFunctionCall(arguments="")))
            sent.function.arguments += arguments
            self.streamed_args_for_tool[index] += arguments
            self.prev_tool_call_arr[index]["arguments"] = self.streamed_args_for_tool[index]
        if not (calls or delta.content or delta.reasoning):
            return None
        return DeltaMessage(
            content=delta.content or None, reasoning=delta.reasoning or None, tool_calls=list(calls.values())
        )


def _offered(request: Any) -> list[Any]:
    """The tools that the model may call."""
    if request.tool_choice == "none":
        return []
    return [tool.model_dump(exclude_none=True) for tool in request.tools or ()]


def _wire(call: ToolCall) -> WireCall:
    id = _id(call)
    return WireCall(id=id, function=FunctionCall(id=id, name=call.name, arguments=call.arguments))


def _id(call: ToolCall) -> str:
    return call.id or str(make_tool_call_id())


def __getattr__(name: str) -> type[DovetailToolParser]:
    base, _, dialect = name.partition("_")
    if base != DovetailToolParser.__name__ or not dialect:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return type(name, (DovetailToolParser,), {"dialect_name": dialect, "__module__": __name__})
