"""The built-in families, one row each. Sources are their chat templates and what their models write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from dovetail.dialects.dialect import Dialect
from dovetail.layouts.styles import GEMMA, KINDS, PYTHON, Layout, TaggedStyle
from dovetail.parsing.layouts import (
    ARGUMENTS,
    ID,
    NAME,
    Content,
    JsonCall,
    KeyedCall,
    Reasoning,
    TaggedCall,
    ToolCalls,
    Turn,
)

# What several families share.

_CHATML = Turn("<|im_start|>assistant\n", "<|im_end|>")
_DEEPSEEK = Turn("<｜Assistant｜>", "<｜end▁of▁sentence｜>")
_LLAMA = Turn("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>")
_COMMAND = Turn("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>")
_GRANITE = Turn("<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>")

_THINK = Reasoning("<think>", "</think>", "either")
_THINK_LINES = Reasoning("<think>", "</think>", "either", pad="\n", after="\n\n")
_THINK_OPENED = Reasoning("<think>", "</think>", "prompt", bare_end=True)
_THINKING = Reasoning("<|START_THINKING|>", "<|END_THINKING|>", "either")

_THINK_TOKENS = ("<think>", "</think>")
_TOOL_CALL_TOKENS = ("<tool_call>", "</tool_call>")

_HERMES_CALLS = ToolCalls(
    JsonCall(),
    call_begin="<tool_call>\n",
    call_end="\n</tool_call>",
    trigger="<tool_call>",
    separator="\n",
    spacing="\n",
)
_JSON_ARRAY = ToolCalls(JsonCall(), separator=", ", begin="[", end="]")
_BARE_ARRAY = replace(_JSON_ARRAY, named=True)


def _function_tags(before: str, after: str, line: str, pad: str) -> ToolCalls:
    """Calls as <function=NAME> with tagged parameters, inside `before` and `after`."""
    return ToolCalls(
        TaggedCall((NAME, ">" + line, ARGUMENTS), "qwen_xml", pad=pad, after=line),
        call_begin=f"{before}{line}<function=",
        call_end=f"</function>{line}{after}",
        separator=line,
        spacing=line * 2,
        trigger=f"{before}{line}<function=" if line else before,
    )


_FUNCTION_TAGS = _function_tags("<tool_call>", "</tool_call>", "\n", "\n")


def _deepseek_calls(section: str, tag: str, style: TaggedStyle) -> tuple[ToolCalls, ToolCalls]:
    calls = ToolCalls(
        TaggedCall((NAME, '">\n', ARGUMENTS), style, after="\n"),
        call_begin=f'<｜DSML｜{tag}invoke name="',
        call_end=f"</｜DSML｜{tag}invoke>\n",
        begin=f"<｜DSML｜{section}>\n",
        end=f"</｜DSML｜{section}>",
        trigger=f"<｜DSML｜{section}>",
        lead="\n\n",
        spacing="\n\n",
    )
    return calls, _tolerated(calls, call=TaggedCall((NAME, '"/>')), call_end="")


def _deepseek_json(after_begin: str, after_name: str, end: str, separator: str) -> ToolCalls:
    return ToolCalls(
        TaggedCall((NAME, after_name, ARGUMENTS)),
        call_begin="<｜tool▁call▁begin｜>" + after_begin,
        call_end=end + "<｜tool▁call▁end｜>",
        begin="<｜tool▁calls▁begin｜>",
        end="<｜tool▁calls▁end｜>",
        separator=separator,
    )


_DEEPSEEK_TOKENS = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
)


def _harmony_call(begin: str, after: str, tools: Literal["function", "builtin"]) -> ToolCalls:
    return ToolCalls(
        TaggedCall((NAME, after + "<|message|>", ARGUMENTS)), call_begin=begin, call_end="<|call|>", tools=tools
    )


def _wrapped(calls: ToolCalls, begin: str, end: str) -> ToolCalls:
    """A JSON array between markers."""
    return replace(calls, begin=begin + calls.begin, end=calls.end + end, trigger=begin)


def _tolerated(calls: ToolCalls, **changes: Any) -> ToolCalls:
    """What models write now and then, which is read and never asked for."""
    return replace(calls, tolerated=True, **changes)


_LLAMA_CALLS = ToolCalls(
    JsonCall((("name", NAME), ("parameters", ARGUMENTS))), trigger='{"name": ', also_between=(";", ",")
)
_PYTHON_LIST = ToolCalls(TaggedCall((NAME, ARGUMENTS), PYTHON), begin="[", end="]", separator=", ", named=True)
_KIMI_ARGUMENTS = "<|tool_call_argument_begin|>"
_KIMI_CALLS = ToolCalls(
    TaggedCall(("functions.", NAME, ":", ID, _KIMI_ARGUMENTS, ARGUMENTS)),
    call_begin="<|tool_call_begin|>",
    call_end="<|tool_call_end|>",
    begin="<|tool_calls_section_begin|>",
    end="<|tool_calls_section_end|>",
    id_pattern=r"\d{1,18}",
    id_template="functions.{name}:{id}",
    offered_only=True,
)
_MINIMAX_CALLS = ToolCalls(
    TaggedCall((NAME, '">\n', ARGUMENTS), "minimax_xml", after="\n"),
    call_begin='<invoke name="',
    call_end="</invoke>\n",
    begin="<minimax:tool_call>\n",
    end="</minimax:tool_call>",
    trigger="<minimax:tool_call>",
    lead="\n",
    spacing="\n",
    offered_only=True,
)
_CITATIONS = (("<co>", ""), ("</co: ", ">"))
_ACTIONS = ToolCalls(
    JsonCall((("tool_call_id", ID), ("tool_name", NAME), ("parameters", ARGUMENTS))),
    begin="<|START_ACTION|>[\n    ",
    end="\n]<|END_ACTION|>",
    separator=",\n    ",
    trigger="<|START_ACTION|>",
    id_pattern=r"\d{1,18}",
)
_MISTRAL_CONTENT = Content(marks=(("[TOOL_CALLS]", ""),))  # behind which no call comes
_MISTRAL_ID = "[a-zA-Z0-9]{9}"
_MINISTRAL_CALLS = ToolCalls(TaggedCall((NAME, "[ARGS]", ARGUMENTS)), call_begin="[TOOL_CALLS]")
_MISTRAL_SLIPS = (
    _tolerated(_MINISTRAL_CALLS, call=TaggedCall((NAME, ARGUMENTS))),
    _tolerated(_MINISTRAL_CALLS, call=JsonCall()),
    # Without a name, which the arguments may tell.
    _tolerated(_MINISTRAL_CALLS, call=TaggedCall((ARGUMENTS,))),
    _tolerated(_MINISTRAL_CALLS, call=TaggedCall(("[ARGS]", ARGUMENTS))),
)

_LISTED = (
    _tolerated(_wrapped(_BARE_ARRAY, "[TOOL_CALLS]", "")),
    _tolerated(_wrapped(_BARE_ARRAY, "<tool_call>", "</tool_call>")),
    _tolerated(_wrapped(_BARE_ARRAY, "```json\n", "\n```")),
    _tolerated(_wrapped(_BARE_ARRAY, "```\n", "\n```")),
)
_FUNCTION_GEMMA = replace(GEMMA, quotes=("<escape>",), sorted_keys=False)
_MINICPM_PARAMETERS = Layout('<param name="', dict.fromkeys(KINDS, ('">',)), "</param>")
_STEP_PARAMETERS = Layout('<steptml:parameter name="', dict.fromkeys(KINDS, ('">',)), "</steptml:parameter>")
_PLUGIN_CALLS = ToolCalls(
    JsonCall(), call_begin="<|action_start|><|plugin|>\n", call_end="<|action_end|>", trigger="<|action_start|>"
)
_FUNCTION_CALL = ToolCalls(JsonCall(), call_begin="<function_call> ", trigger="<function_call>")
_GIGACHAT_CALL = "<|message_sep|>\n\nfunction call<|role_sep|>\n"
# Tokens that say what a message holds, or who speaks; inside a text they say nothing.
_INKLING_MARKS = tuple(
    (f"<|{name}|>", "")
    for name in """content_text content_invoke_tool_json message_user message_system message_tool content_image
    content_audio_input audio_end content_xml""".split()
)
_ARGUMENT_LINES = TaggedCall((NAME, "\n", ARGUMENTS), "glm_4_5_xml", after="\n")

_HY_CALLS = ToolCalls(
    TaggedCall((NAME, "<tool_sep>\n", ARGUMENTS), "glm_4_5_xml", after="\n"),
    call_begin="<tool_call>",
    call_end="</tool_call>\n",
    begin="<tool_calls>\n",
    end="</tool_calls>",
    trigger="<tool_calls>",
    offered_only=True,
)

QWEN_3 = Dialect(
    "qwen_3",
    (_HERMES_CALLS, _tolerated(_BARE_ARRAY)),
    _THINK_LINES,
    turn=_CHATML,
    special_tokens=_THINK_TOKENS + _TOOL_CALL_TOKENS,
)
QWEN_3_CODER = replace(QWEN_3, name="qwen_3_coder", calls=(_FUNCTION_TAGS, _tolerated(_HERMES_CALLS)))

FAMILIES = (
    # Qwen and those who talk like it.
    QWEN_3,
    QWEN_3_CODER,
    replace(QWEN_3_CODER, name="qwen_3_5", reasoning=replace(_THINK_LINES, ends_at_calls=True, presumed=True)),
    replace(
        QWEN_3_CODER, name="step_3_5", reasoning=replace(_THINK_LINES, opened_by="prompt", after="\n", presumed=True)
    ),
    replace(QWEN_3, name="trinity", reasoning=replace(_THINK_LINES, after="\n")),
    Dialect(
        "hermes",
        (_HERMES_CALLS, _tolerated(_BARE_ARRAY)),
        _THINK,
        turn=_CHATML,
        special_tokens=_TOOL_CALL_TOKENS,
    ),
    Dialect(
        "ernie_4_5",
        (_HERMES_CALLS,),
        Reasoning("<think>", "</think>", "prompt", pad="\n", after="\n\n"),
        Content(("<response>\n",), ("\n</response>",), optional=True),
        _CHATML,
        special_tokens=_THINK_TOKENS + _TOOL_CALL_TOKENS + ("<response>", "</response>"),
    ),
    Dialect("xlam", (_BARE_ARRAY, *_LISTED), turn=_CHATML),
    Dialect(
        "granite_20b_fc",
        (
            ToolCalls(
                JsonCall(), call_begin="<function_call> ", separator="\n", spacing="\n", trigger="<function_call>"
            ),
        ),
        turn=Turn("Answer:\n", "<|endoftext|>"),
        special_tokens=("<function_call>",),
    ),
    Dialect(
        "longcat",
        (ToolCalls(JsonCall(), "<longcat_tool_call>", "</longcat_tool_call>", separator="\n", spacing="\n"),),
        Reasoning("<longcat_think>", "</longcat_think>", "either", pad="\n", after="\n"),
        turn=Turn("ASSISTANT:", "</longcat_s>"),
        special_tokens=("<longcat_think>", "</longcat_think>", "<longcat_tool_call>", "</longcat_tool_call>"),
    ),
    # InternLM and Jamba.
    Dialect(
        "internlm_2",
        (_PLUGIN_CALLS,),
        turn=_CHATML,
        special_tokens=("<|action_start|>", "<|plugin|>", "<|action_end|>"),
    ),
    Dialect(
        "intern_s1",
        (_PLUGIN_CALLS,),
        _THINK,
        turn=_CHATML,
        special_tokens=("<|action_start|>", "<|plugin|>", "<|action_end|>", *_THINK_TOKENS),
    ),
    Dialect(
        "jamba",
        (
            replace(
                _wrapped(_JSON_ARRAY, "<tool_calls>", "</tool_calls>"),
                begin="<tool_calls>[\n    ",
                end="\n]</tool_calls>",
                separator=",\n    ",
            ),
        ),
        turn=Turn("<|bom|><|assistant|>", "<|eom|>"),
        special_tokens=("<tool_calls>", "</tool_calls>"),
    ),
    # Hunyuan.
    Dialect(
        "hunyuan_a13b",
        (_wrapped(_JSON_ARRAY, "<tool_calls>", "</tool_calls>"),),
        Reasoning("<think>", "</think>", "model", pad="\n", after="\n"),
        Content(("<answer>\n",), ("\n</answer>",), optional=True),
        Turn("<|extra_0|>", "<|eos|>"),
    ),
    Dialect(
        "hy_v3",
        (_HY_CALLS, _tolerated(_HY_CALLS, call=TaggedCall((NAME, ARGUMENTS), "glm_4_5_xml"))),
        replace(_THINK_OPENED, opened_by="either"),
        turn=Turn("<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>"),
        special_tokens=(*_THINK_TOKENS, *_TOOL_CALL_TOKENS, "<tool_calls>", "</tool_calls>", "<tool_sep>"),
    ),
    # Those who mark up one by one.
    Dialect(
        "poolside_v1",
        (ToolCalls(_ARGUMENT_LINES, "<tool_call>", "</tool_call>", separator="\n", spacing="\n"),),
        Reasoning("<think>", "</think>", "prompt", pad="\n", after="\n", bare_end=True),
        turn=Turn("<assistant>\n", "</assistant>"),
        special_tokens=(*_THINK_TOKENS, *_TOOL_CALL_TOKENS),
    ),
    Dialect(
        "ling_3",
        (ToolCalls(TaggedCall((NAME, ARGUMENTS), "glm_xml"), "<tool_call>", "</tool_call>", separator="\n"),),
        replace(_THINK, bare_end=True, ends_at_calls=True),
        turn=Turn("<role>ASSISTANT</role>", "<|role_end|>"),
        special_tokens=(*_THINK_TOKENS, *_TOOL_CALL_TOKENS),
    ),
    Dialect(
        "dots",
        (
            ToolCalls(
                TaggedCall((NAME, '">\n', ARGUMENTS), "minimax_xml", after="\n"),
                call_begin='<invoke name="',
                call_end="</invoke>\n",
                begin="<dots_function_call>\n",
                end="</dots_function_call>",
                trigger="<dots_function_call>",
                named=True,
            ),
            _tolerated(ToolCalls(JsonCall(), "<dots_function_call>", "</dots_function_call>", named=True)),
        ),
        _THINK,
        turn=Turn("<|response|>", "<|endofresponse|>"),
        special_tokens=_THINK_TOKENS,
    ),
    Dialect(
        "minicpm_5",
        (
            ToolCalls(
                TaggedCall((NAME, '">', ARGUMENTS), _MINICPM_PARAMETERS, cdata=True),
                call_begin='<function name="',
                call_end="</function>",
                separator="\n",
                named=True,
                checked=True,
            ),
        ),
        _THINK_LINES,
        turn=_CHATML,
        special_tokens=_THINK_TOKENS,
    ),
    Dialect(
        "step_3",
        (
            ToolCalls(
                TaggedCall((NAME, '">\n', ARGUMENTS), _STEP_PARAMETERS, after="\n"),
                call_begin='<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="',
                call_end="</steptml:invoke><｜tool_call_end｜>\n",
                begin="<｜tool_calls_begin｜>\n",
                end="<｜tool_calls_end｜>",
                trigger="<｜tool_calls_begin｜>",
            ),
        ),
        replace(_THINK_OPENED, pad="\n", after="\n"),
        turn=Turn("<|BOT|>assistant\n", "<|EOT|>"),
        special_tokens=(
            *_THINK_TOKENS,
            "<｜tool_calls_begin｜>",
            "<｜tool_calls_end｜>",
            "<｜tool_call_begin｜>",
            "<｜tool_call_end｜>",
            "<｜tool_sep｜>",
        ),
    ),
    Dialect(
        "mimo",
        (_function_tags("<tool_call>", "</tool_call>", "", ""),),
        Reasoning("<think>", "</think>", "model"),
        turn=_CHATML,
        special_tokens=_THINK_TOKENS + _TOOL_CALL_TOKENS,
        excludes=("<tool_call>", "</tool_call>", "<function="),
    ),
    Dialect(
        "exaone",
        (replace(_HERMES_CALLS, call_begin="<tool_call>", call_end="</tool_call>"),),
        _THINK_LINES,
        turn=Turn("[|assistant|]", "[|endofturn|]"),
        special_tokens=_THINK_TOKENS + _TOOL_CALL_TOKENS,
    ),
    Dialect(
        "nemotron",
        (replace(_FUNCTION_TAGS, spacing="\n"), _wrapped(_JSON_ARRAY, "<TOOLCALL>", "</TOOLCALL>")),
        replace(_THINK_LINES, after=""),
        turn=_CHATML,
        special_tokens=_THINK_TOKENS + _TOOL_CALL_TOKENS,
    ),
    Dialect(
        "seed_oss",
        (_function_tags("<seed:tool_call>", "</seed:tool_call>", "\n", ""),),
        Reasoning("<seed:think>", "</seed:think>", "either", after="\n"),
        turn=Turn("<seed:bos>assistant\n", "<seed:eos>"),
        special_tokens=("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"),
    ),
    # Llama.
    Dialect(
        "llama",
        (
            _LLAMA_CALLS,
            _tolerated(_LLAMA_CALLS, begin="<|python_tag|>", separator=";", trigger=""),
            _tolerated(_LLAMA_CALLS, begin="[", end="]", separator=", ", trigger="", named=True),
        ),
        turn=_LLAMA,
        special_tokens=("<|python_tag|>", "<|eom_id|>", "<|eot_id|>"),
        excludes=_THINK_TOKENS,
    ),
    Dialect(
        "llama_4",
        (
            _PYTHON_LIST,
            _tolerated(_PYTHON_LIST, begin="<|python_start|>[", end="]<|python_end|>", named=False),
        ),
        turn=Turn("<|header_start|>assistant<|header_end|>\n\n", "<|eot|>"),
        special_tokens=("<|python_start|>", "<|python_end|>", "<|eom|>", "<|eot|>"),
    ),
    # DeepSeek.
    Dialect(
        "deepseek_r1",
        (_deepseek_json("function<｜tool▁sep｜>", "\n```json\n", "\n```", "\n"),),
        replace(_THINK, presumed=True),
        turn=_DEEPSEEK,
        special_tokens=_THINK_TOKENS + _DEEPSEEK_TOKENS,
    ),
    Dialect(
        "deepseek_v3_1",
        (_deepseek_json("", "<｜tool▁sep｜>", "", ""),),
        _THINK_OPENED,
        turn=_DEEPSEEK,
        special_tokens=_THINK_TOKENS + _DEEPSEEK_TOKENS,
    ),
    Dialect(
        "deepseek_v3_2",
        _deepseek_calls("function_calls", "", "deepseek_xml"),
        _THINK_OPENED,
        turn=_DEEPSEEK,
        special_tokens=_THINK_TOKENS,
    ),
    Dialect(
        "deepseek_v4",
        _deepseek_calls("tool_calls", "", "deepseek_xml"),
        replace(_THINK_OPENED, ends_at_calls=True, presumed=True),
        turn=_DEEPSEEK,
        special_tokens=_THINK_TOKENS,
    ),
    Dialect(
        "deepseek_v4_1",
        _deepseek_calls(" calls", " ", "deepseek_v4_1_xml"),
        _THINK_OPENED,
        turn=_DEEPSEEK,
        special_tokens=_THINK_TOKENS,
        excludes=("<｜DSML｜ calls>",),
    ),
    # Kimi.
    Dialect(
        "kimi",
        (
            _KIMI_CALLS,
            _tolerated(_KIMI_CALLS, call=TaggedCall((NAME, ":", ID, _KIMI_ARGUMENTS, ARGUMENTS))),
            _tolerated(_KIMI_CALLS, call=TaggedCall((NAME, _KIMI_ARGUMENTS, ARGUMENTS)), id_pattern=""),
            _tolerated(_KIMI_CALLS, begin="<|tool_call_section_begin|>", end="<|tool_call_section_end|>"),
        ),
        replace(_THINK, ends_at_calls=True, others=(("◁think▷", "◁/think▷"),)),
        turn=Turn("<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"),
        special_tokens=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            *_THINK_TOKENS,
        ),
        excludes=("<|tool_call_begin|>",),
    ),
    Dialect(
        "kimi_k3",
        (
            ToolCalls(
                TaggedCall(
                    (NAME, '" index="', ID, '"<|sep|>', ARGUMENTS),
                    "kimi_k3_xml",
                    excludes=("<|open|>", "<|close|>", "<|sep|>"),
                ),
                call_begin='<|open|>call tool="',
                call_end="<|close|>call<|sep|>",
                begin="<|open|>tools<|sep|>",
                end="<|close|>tools<|sep|>",
                id_pattern=r"\d{1,18}",
                first_id=1,
            ),
        ),
        Reasoning("<|open|>think<|sep|>", "<|close|>think<|sep|>", "prompt"),
        Content(("<|open|>response<|sep|>",), ("<|close|>response<|sep|>",), always=True, prompt_opens=True),
        Turn('<|open|>message role="assistant"<|sep|>', "<|end_of_msg|>", closing="<|close|>message<|sep|>"),
        special_tokens=("<|open|>", "<|close|>", "<|sep|>"),
        excludes=("<|open|>", "<|close|>"),
    ),
    # MiniMax and GLM.
    Dialect(
        "minimax",
        (_MINIMAX_CALLS,),
        Reasoning("<think>", "</think>", "prompt", pad="\n", after="\n\n", skipped="\n</think>\n\n\n\n", presumed=True),
        turn=Turn("]~b]ai\n", "[e~["),
        special_tokens=("<think>", "</think>", "<minimax:tool_call>", "</minimax:tool_call>"),
    ),
    Dialect(
        "minimax_m3",
        (
            ToolCalls(
                TaggedCall((NAME, '">', ARGUMENTS), "minimax_m3_xml"),
                call_begin=']<]minimax[>[<invoke name="',
                call_end="]<]minimax[>[</invoke>\n",
                begin="]<]minimax[>[<tool_call>\n",
                end="]<]minimax[>[</tool_call>",
                trigger="]<]minimax[>[<tool_call>",
            ),
        ),
        Reasoning("<mm:think>", "</mm:think>", "prompt", bare_end=True),
        turn=Turn("]~b]ai\n", "[e~["),
        special_tokens=("]<]minimax[>[", "<mm:think>", "</mm:think>"),
        excludes=(
            "]<]minimax[>[<tool_call>",
            "]<]minimax[>[</tool_call>",
            "]<]minimax[>[<invoke",
            "]<]minimax[>[</invoke>",
        ),
    ),
    Dialect(
        "glm_4_7",
        (
            ToolCalls(
                TaggedCall((NAME, ARGUMENTS), "glm_xml"),
                call_begin="<tool_call>",
                call_end="</tool_call>",
            ),
        ),
        replace(_THINK, bare_end=True),
        turn=Turn("<|assistant|>", "<|user|>"),
        special_tokens=(
            *_THINK_TOKENS,
            *_TOOL_CALL_TOKENS,
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
        ),
        excludes=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    ),
    # Cohere.
    Dialect(
        "cohere",
        (
            ToolCalls(
                TaggedCall((ID, '" name="', NAME, '">', ARGUMENTS), "cohere_xml"),
                call_begin='<cofl:tool_call id="',
                call_end="</cofl:tool_call>",
                begin="<cofl:tool_calls>",
                end="</cofl:tool_calls>",
                id_pattern=r"\d{1,18}",
            ),
            _tolerated(_ACTIONS),
        ),
        _THINKING,
        Content(
            ("<|START_TEXT|>", "<|START_RESPONSE|>"),
            ("<|END_TEXT|>", "<|END_RESPONSE|>"),
            optional=True,
            marks=_CITATIONS,
        ),
        _COMMAND,
        special_tokens=("<|START_THINKING|>", "<|END_THINKING|>", "<|START_TEXT|>", "<|END_TEXT|>"),
    ),
    Dialect(
        "command_r7b",
        (_ACTIONS,),
        _THINKING,
        Content(("<|START_RESPONSE|>", "<|START_TEXT|>"), ("<|END_RESPONSE|>", "<|END_TEXT|>"), marks=_CITATIONS),
        _COMMAND,
        special_tokens=(
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "<|START_RESPONSE|>",
            "<|END_RESPONSE|>",
            "<|START_TEXT|>",
            "<|END_TEXT|>",
        ),
    ),
    # Mistral.
    Dialect(
        "mistral",
        (
            replace(
                _wrapped(_JSON_ARRAY, "[TOOL_CALLS]", ""),
                call=JsonCall((("name", NAME), ("arguments", ARGUMENTS), ("id", ID))),
                id_pattern=_MISTRAL_ID,
            ),
            ToolCalls(
                TaggedCall((NAME, "[CALL_ID]", ID, "[ARGS]", ARGUMENTS)),
                call_begin="[TOOL_CALLS]",
                id_pattern=_MISTRAL_ID,
            ),
            _tolerated(_MINISTRAL_CALLS),
            *_MISTRAL_SLIPS,
        ),
        content=_MISTRAL_CONTENT,
        turn=Turn("[/INST]", "</s>"),
        special_tokens=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    ),
    Dialect(
        "ministral",
        (_MINISTRAL_CALLS, *_MISTRAL_SLIPS),
        Reasoning("[THINK]", "[/THINK]", "model", others=(("<think>", "</think>"),)),
        _MISTRAL_CONTENT,
        turn=Turn("[/INST]", "</s>"),
        special_tokens=("[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"),
    ),
    # Others.
    Dialect(
        "functiongemma",
        (
            ToolCalls(
                TaggedCall((NAME, ARGUMENTS), _FUNCTION_GEMMA),
                call_begin="<start_function_call>call:",
                call_end="<end_function_call>",
                trigger="<start_function_call>",
            ),
        ),
        turn=Turn("<start_of_turn>model\n", "<end_of_turn>", other_ends=("<start_function_response>",)),
        special_tokens=("<start_function_call>", "<end_function_call>", "<escape>"),
    ),
    Dialect(
        "gigachat_3",
        (
            ToolCalls(
                JsonCall(), call_begin="<|message_sep|>\n\nfunction call<|role_sep|>\n", trigger="<|message_sep|>"
            ),
            ToolCalls(JsonCall(), call_begin="<|function_call|>"),
        ),
        turn=Turn("assistant<|role_sep|>\n", "</s>"),
        special_tokens=("<|message_sep|>", "<|role_sep|>", "<|function_call|>"),
    ),
    Dialect(
        "olmo_3",
        (
            ToolCalls(
                TaggedCall((NAME, ARGUMENTS), PYTHON),
                begin="<function_calls>",
                end="</function_calls>",
                separator="\n",
            ),
        ),
        _THINK,
        turn=_CHATML,
    ),
    Dialect(
        "inkling",
        (
            ToolCalls(
                JsonCall((("name", NAME), ("args", ARGUMENTS)), spelling=("{", ",", ":", "}")),
                call_begin="<|content_invoke_tool_json|>",
                call_end="<|end_message|>",
            ),
            ToolCalls(
                TaggedCall((NAME, '<|content_invoke_tool_json|>{"name":"', NAME, '","args":', ARGUMENTS, "}")),
                call_begin="<|message_model|>",
                call_end="<|end_message|>",
                tolerated=True,
            ),
        ),
        Reasoning("<|content_thinking|>", "<|end_message|>", "model"),
        Content(
            ("<|content_text|>",),
            ("<|end_message|>",),
            notes=("<|content_text|>", "<|content_invoke_tool_text|>", "<|content_tool_error|>"),
            marks=_INKLING_MARKS,
        ),
        Turn("<|message_model|>", "<|content_model_end_sampling|>", between="<|message_model|>"),
        special_tokens=(
            "<|message_model|>",
            "<|content_thinking|>",
            "<|content_text|>",
            "<|content_invoke_tool_json|>",
            "<|end_message|>",
            "<|content_model_end_sampling|>",
        ),
        excludes=("<|content_model_end_sampling|>", "<|message_model|>"),
    ),
    Dialect(
        "muse_glimmer",
        (
            ToolCalls(
                TaggedCall(
                    (NAME, '<|message|><atem:function_calls>\n<atem:invoke name="', NAME, '">\n', ARGUMENTS),
                    "muse_xml",
                    after="\n",
                ),
                call_begin=" to=",
                call_end="</atem:invoke>\n</atem:function_calls>",
            ),
        ),
        Reasoning(" to=self<|message|>", "<|eom|>", "model"),
        Content((" to=user<|message|>",), ("<|eot|>", "<|eom|>"), notes=(" to=user<|message|>",)),
        Turn("<|start|>assistant", "<|eot|>", between="<|start|>assistant", closing="<|eom|>"),
        special_tokens=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        excludes=("<|eot|>", "<|start|>"),
    ),
    Dialect(
        "gemma_4",
        (
            ToolCalls(
                TaggedCall((NAME, ARGUMENTS), GEMMA),
                call_begin="<|tool_call>call:",
                call_end="<tool_call|>",
                trigger="<|tool_call>",
            ),
        ),
        Reasoning("<|channel>thought", "<channel|>", "model", pad="\n", others=(("<|channel>", "<channel|>"),)),
        turn=Turn("<|turn>model\n", "<turn|>"),
        special_tokens=("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>'),
    ),
    Dialect(
        "granite",
        (
            _HERMES_CALLS,
            _wrapped(_JSON_ARRAY, "<|tool_call|>", ""),
            _tolerated(_wrapped(_JSON_ARRAY, "<tool_call>", "")),
            _tolerated(_BARE_ARRAY),
        ),
        replace(_THINK, others=(("Here is my thought process:", "Here is my response:"),)),
        Content(("<response>",), ("</response>",), optional=True),
        _GRANITE,
        special_tokens=("<|tool_call|>",),
    ),
    Dialect(
        "phi_4",
        (
            _wrapped(_JSON_ARRAY, "<|tool_call|>", "<|/tool_call|>"),
            _tolerated(_wrapped(_JSON_ARRAY, "functools", "")),
        ),
        _THINK,
        turn=Turn("<|assistant|>", "<|end|>"),
        special_tokens=("<|tool_call|>", "<|/tool_call|>"),
    ),
    Dialect(
        "lfm2",
        (
            ToolCalls(
                TaggedCall((NAME, ARGUMENTS), PYTHON),
                begin="<|tool_call_start|>[",
                end="]<|tool_call_end|>",
                separator=", ",
                trigger="<|tool_call_start|>",
                offered_only=True,
            ),
            _tolerated(_wrapped(_JSON_ARRAY, "<|tool_call_start|>", "<|tool_call_end|>"), offered_only=True),
            _tolerated(ToolCalls(JsonCall(), "<|tool_call_start|>", "<|tool_call_end|>"), offered_only=True),
            _tolerated(
                replace(_PYTHON_LIST, named=False, begin="<|tool_call_start|>", end="<|tool_call_end|>"),
                offered_only=True,
            ),
        ),
        _THINK,
        turn=_CHATML,
        special_tokens=("<|tool_call_start|>", "<|tool_call_end|>", *_THINK_TOKENS),
    ),
    Dialect(
        "apertus",
        (_wrapped(replace(_JSON_ARRAY, call=KeyedCall()), "<|tools_prefix|>", "<|tools_suffix|>"),),
        Reasoning("<|inner_prefix|>", "<|inner_suffix|>", "model"),
        turn=Turn("<|assistant_start|>", "<|assistant_end|>"),
        special_tokens=("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    Dialect(
        "harmony",
        (
            _harmony_call("<|channel|>commentary to=functions.", " <|constrain|>json", "function"),
            _harmony_call("<|channel|>commentary to=functions.", "<|constrain|>json", "function"),
            _harmony_call(" to=functions.", "<|channel|>commentary <|constrain|>json", "function"),
            _harmony_call(" to=functions.", "<|channel|>commentary json", "function"),
            _harmony_call("<|channel|>commentary to=", " code", "builtin"),
            _harmony_call(" to=", "<|channel|>commentary code", "builtin"),
            replace(_harmony_call(" to=functions.", "<|channel|>commentary", "function"), tolerated=True),
            replace(_harmony_call("<|channel|>commentary to=functions.", "", "function"), tolerated=True),
            replace(_harmony_call(" to=functions.", "<|channel|>analysis", "function"), tolerated=True),
            replace(_harmony_call("<|channel|>analysis to=functions.", "", "function"), tolerated=True),
        ),
        Reasoning("<|channel|>analysis<|message|>", "<|end|>", "model"),
        Content(
            ("<|channel|>final<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
            ("<|return|>", "<|end|>"),
            notes=("<|channel|>commentary<|message|>",),
        ),
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
        excludes=("<|return|>", "<|start|>"),
    ),
)
