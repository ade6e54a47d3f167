"""The built-in families, one row each."""

from __future__ import annotations

from dovetail.dialects.dialect import (
    ARGUMENTS,
    NAME,
    Content,
    Dialect,
    JsonCall,
    Reasoning,
    TaggedCall,
    ToolCalls,
    Turn,
)

_CHATML = Turn("<|im_start|>assistant\n", "<|im_end|>")
_THINK = Reasoning("<think>", "</think>", "either", pad="\n", after="\n\n")
_FUNCTION_TAGS = ToolCalls(
    TaggedCall((NAME, ">\n", ARGUMENTS), "qwen_xml"),
    call_begin="<tool_call>\n<function=",
    call_end="\n</function>\n</tool_call>",
    separator="\n",
    spacing="\n\n",
)


def _harmony_call(begin: str, after: str, tools: str) -> ToolCalls:
    return ToolCalls(
        TaggedCall((NAME, after + "<|message|>", ARGUMENTS)),
        call_begin=begin,
        call_end="<|call|>",
        tools="builtin" if tools == "builtin" else "function",
    )


FAMILIES = (
    Dialect(
        "qwen_3",
        (
            ToolCalls(
                JsonCall(),
                call_begin="<tool_call>\n",
                call_end="\n</tool_call>",
                trigger="<tool_call>",
                separator="\n",
                spacing="\n",
            ),
        ),
        _THINK,
        turn=_CHATML,
        special_tokens=("<think>", "</think>", "<tool_call>", "</tool_call>"),
    ),
    Dialect(
        "qwen_3_coder",
        (_FUNCTION_TAGS,),
        _THINK,
        turn=_CHATML,
        special_tokens=("<think>", "</think>", "<tool_call>", "</tool_call>"),
    ),
    Dialect(
        "llama",
        (
            ToolCalls(
                JsonCall((("name", NAME), ("parameters", ARGUMENTS))),
                trigger='{"name": ',
            ),
        ),
        turn=Turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
        special_tokens=("<|python_tag|>", "<|eom_id|>", "<|eot_id|>"),
        excludes=("<think>", "</think>"),
    ),
    Dialect(
        "harmony",
        (
            _harmony_call("<|channel|>commentary to=functions.", "<|constrain|>json", "function"),
            _harmony_call(" to=functions.", "<|channel|>commentary <|constrain|>json", "function"),
            _harmony_call(" to=functions.", "<|channel|>commentary json", "function"),
            _harmony_call("<|channel|>commentary to=", " code", "builtin"),
            _harmony_call(" to=", "<|channel|>commentary code", "builtin"),
        ),
        Reasoning("<|channel|>analysis<|message|>", "<|end|>", "model"),
        Content(("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"), ("<|return|>", "<|end|>")),
        Turn("<|start|>assistant", "<|return|>", between="<|start|>assistant"),
        special_tokens=(
            "<|start|>",
            "<|end|>",
            "<|message|>",
            "<|channel|>",
            "<|constrain|>",
            "<|return|>",
            "<|call|>",
        ),
    ),
)
