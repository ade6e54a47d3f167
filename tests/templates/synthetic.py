"""Chat templates that no model has: every axis of a layout drawn at random, with markers made up on the spot."""

from __future__ import annotations

import random
from dataclasses import dataclass

REASONING = ("none", "tags", "opened", "opened or closed", "tools only", "delimiter")
CONTENT = ("plain", "wrapped", "wrapped with reasoning")
LAYOUTS = ("json", "json array", "keyed", "tag with json", "tagged", "key tags", "python", "quoted literals", "dict")
IDS = ("none", "before", "between", "after", "index")

_LETTERS = "abcdefghijklmnoprstuvwxyz"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a synthetic template writes."""

    reasoning: str
    content: str
    layout: str
    ids: str
    section: bool
    start: str
    end: str
    think: tuple[str, str]
    pad: str
    after: str
    answer: tuple[str, str]
    opening: tuple[str, str]  # of a section of calls
    call: tuple[str, str]  # of one call
    keys: tuple[str, str, str]  # of a call in JSON: name, arguments, id
    separator: str
    lead: str

    @property
    def source(self) -> str:
        """The template."""
        return _template(self)


class _Words:
    """Words and markers, each drawn once."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.seen: set[str] = set()
        self.style = draw.choice(("xml", "pipes", "square", "wide", "colon"))

    def word(self) -> str:
        while True:
            word = "".join(self.draw.choices(_LETTERS, k=self.draw.randint(4, 7)))
            if word not in self.seen:
                self.seen.add(word)
                return word

    def pair(self, style: str = "") -> tuple[str, str]:
        word = self.word()
        match style or self.style:
            case "xml":
                return f"<{word}>", f"</{word}>"
            case "colon":
                other = self.word()
                return f"<{other}:{word}>", f"</{other}:{word}>"
            case "square":
                return f"[{word.upper()}]", f"[/{word.upper()}]"
            case "wide":
                return f"<｜{word}▁begin｜>", f"<｜{word}▁end｜>"
            case _:
                return f"<|{word}_start|>", f"<|{word}_end|>"


def spec(seed: int) -> Spec:
    """The specification of one template."""
    draw = random.Random(seed)
    words = _Words(draw)
    layout = draw.choice(LAYOUTS)
    reasoning = draw.choice(REASONING)
    content = draw.choice(CONTENT if reasoning in ("tags", "opened") else CONTENT[:2])
    ids = draw.choice(IDS)
    if layout in ("keyed", "python", "quoted literals", "dict"):
        ids = "none"
    role = words.pair("pipes" if words.style in ("xml", "colon") else "")
    line = draw.choice(("", "\n"))
    headers = ("\n", role[1]) if reasoning == "delimiter" else ("", "\n", role[1])
    section = layout in ("json array", "keyed", "python") or draw.random() < 0.4
    call = words.pair()
    if (section and draw.random() < 0.3) or layout in ("json array", "keyed", "python"):
        call = ("", "")
    return Spec(
        reasoning=reasoning,
        content=content,
        layout=layout,
        ids=ids,
        section=section,
        start=f"{role[0]}assistant{draw.choice(headers)}",
        end=draw.choice((words.pair()[1], role[1] + "\n")),
        think=words.pair() if reasoning != "delimiter" else ("", words.pair()[0]),
        pad=draw.choice(("", "\n")),
        after=draw.choice(("", "\n", "\n\n")),
        answer=words.pair(),
        opening=words.pair(),
        call=(call[0] + line, line + call[1]) if call[0] else ("", ""),
        keys=(draw.choice(("name", words.word())), draw.choice(("arguments", words.word())), words.word()),
        separator=draw.choice(("", "\n")) if call[0] else "\n",
        lead=draw.choice(("", "\n")),
    )


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _template(spec: Spec) -> str:
    """Jinja source."""
    q = _quote
    user = spec.start.replace("assistant", "user")
    think_start, think_end = spec.think
    begin, end = spec.answer
    source = [_macro(f"<|{spec.keys[2]}|>")] if spec.layout == "quoted literals" else []
    source += ["{%- for m in messages -%}"]
    source += ["{%- if m.role == 'assistant' -%}", f"{{{{- {q(spec.start)} -}}}}"]
    shown = "m.reasoning_content" + (" and m.tool_calls" if spec.reasoning == "tools only" else "")
    if spec.reasoning != "none":
        block = f"{q(think_start + spec.pad)} ~ m.reasoning_content ~ {q(spec.pad + think_end + spec.after)}"
        source.append(f"{{%- if {shown} -%}}{{{{- {block} -}}}}{{%- endif -%}}")
    condition = {"plain": "false", "wrapped": "m.content", "wrapped with reasoning": "m.reasoning_content"}
    wrapped = f"{q(begin)} ~ m.content ~ {q(end)}"
    source.append(
        f"{{%- if m.content -%}}{{{{- ({wrapped}) if {condition[spec.content]} else m.content -}}}}{{%- endif -%}}"
    )
    source += ["{%- if m.tool_calls -%}", f"{{{{- {q(spec.lead)} -}}}}", _calls(spec), "{%- endif -%}"]
    source += [f"{{{{- {q(spec.end)} -}}}}", "{%- else -%}"]
    source += [f"{{{{- {q(user)} ~ m.content ~ {q(spec.end)} -}}}}", "{%- endif -%}", "{%- endfor -%}"]
    source.append("{%- if tools -%}{%- set shown = tools | tojson -%}{%- endif -%}")
    source += ["{%- if add_generation_prompt -%}", f"{{{{- {q(spec.start)} -}}}}"]
    if spec.reasoning in ("opened", "opened or closed"):
        source.append("{%- if enable_thinking is not defined or enable_thinking -%}")
        source.append(f"{{{{- {q(think_start + spec.pad)} -}}}}")
        if spec.reasoning == "opened or closed":
            source.append(f"{{%- else -%}}{{{{- {q(think_start + spec.pad + spec.pad + think_end + spec.after)} -}}}}")
        source.append("{%- endif -%}")
    if spec.reasoning == "delimiter":
        source.append("{{- 'Here is what I think: ' -}}")
    return "\n".join([*source, "{%- endif -%}"])


def _macro(quote: str) -> str:
    """Nested values in the spelling of the values at the top."""
    mark = _quote(quote)
    return (
        "{%- macro spelled(v) -%}{%- if v is string -%}{{- "
        f"{mark} ~ v ~ {mark}"
        " -}}{%- elif v is mapping -%}{{- '{' -}}{%- for k, w in v.items() -%}{{- (',' if not loop.first else '') ~ k"
        " ~ ':' ~ spelled(w) -}}{%- endfor -%}{{- '}' -}}{%- elif v is sequence -%}{{- '[' -}}{%- for w in v -%}"
        "{{- (',' if not loop.first else '') ~ spelled(w) -}}{%- endfor -%}{{- ']' -}}"
        "{%- else -%}{{- v | tojson -}}{%- endif -%}{%- endmacro -%}"
    )


def _calls(spec: Spec) -> str:
    q = _quote
    inside = {"json array": "[", "keyed": "[", "python": "["}.get(spec.layout, "")
    separator = ", " if inside else spec.separator
    opening = (spec.opening[0] + inside) if spec.section else inside
    closing = (("]" if inside else "") + spec.opening[1]) if spec.section else ("]" if inside else "")
    call = f"{q(spec.call[0])} ~ {_call(spec)} ~ {q(spec.call[1])}" if spec.layout not in ("tagged", "key tags") else ""
    body = f"{{{{- {call} -}}}}" if call else _tagged(spec)
    if spec.layout in ("python", "quoted literals"):
        body = _literals(spec)
    return "\n".join(
        [
            f"{{{{- {q(opening)} -}}}}",
            "{%- for c in m.tool_calls -%}",
            f"{{%- if not loop.first -%}}{{{{- {q(separator)} -}}}}{{%- endif -%}}",
            body,
            "{%- endfor -%}",
            f"{{{{- {q(closing)} -}}}}",
        ]
    )


def _call(spec: Spec) -> str:
    """One call as a Jinja expression."""
    q = _quote
    name, arguments = "c.function.name", "c.function.arguments | tojson"
    key, args, identifier = spec.keys
    id_text = {"index": "(loop.index0 | string)"}.get(spec.ids, "c.id")
    match spec.layout:
        case "keyed":
            return f"{q('{')} ~ ({name} | tojson) ~ ': ' ~ ({arguments}) ~ {q('}')}"
        case "dict":
            return f"({{{q(key)}: {name}, {q(args)}: c.function.arguments}} | string)"
        case "tag with json":
            mark, other = f"<{identifier}>", f"<{args}>"
            before = f"{id_text} ~ {q(mark)} ~ " if spec.ids in ("before", "index") else ""
            between = f" ~ {q(mark)} ~ {id_text}" if spec.ids == "between" else ""
            behind = f" ~ {q(mark)} ~ {id_text} ~ {q(mark.replace('<', '</'))}" if spec.ids == "after" else ""
            return f"{before}{name}{between} ~ {q(other)} ~ ({arguments}){behind}"
        case _:
            fields = [f"{q(chr(34) + key + chr(34) + ': ')} ~ ({name} | tojson)"]
            id_field = f"{q(chr(34) + identifier + chr(34) + ': ')} ~ ({id_text} | tojson)"
            last = f"{q(chr(34) + args + chr(34) + ': ')} ~ ({arguments})"
            order = {"none": [*fields, last], "after": [*fields, last, id_field], "between": [*fields, id_field, last]}
            chosen = order.get(spec.ids, [id_field, *fields, last])
            joined = " ~ ', ' ~ ".join(chosen)
            return f"{q('{')} ~ {joined} ~ {q('}')}"


def _tagged(spec: Spec) -> str:
    q = _quote
    key, args, _ = spec.keys
    if spec.layout == "tagged":
        before, middle, behind = f"<{args}=", f">{spec.pad}", f"{spec.pad}</{args}>{spec.lead}"
        head, tail = f"<{key}=", f">{spec.lead}"
        close = f"</{key}>"
    else:
        before, middle, behind = (
            f"<{args}_key>",
            f"</{args}_key>{spec.lead}<{args}_value>",
            f"</{args}_value>{spec.lead}",
        )
        head, tail, close = "", spec.lead, ""
    value = "(v if v is string else v | tojson)"
    open_name = f"{q(spec.call[0] + head)} ~ c.function.name ~ {q(tail)}"
    one = f"{q(before)} ~ k ~ {q(middle)} ~ {value} ~ {q(behind)}"
    return (
        f"{{{{- {open_name} -}}}}{{%- for k, v in c.function.arguments.items() -%}}{{{{- {one} -}}}}{{%- endfor -%}}"
        f"{{{{- {q(close + spec.call[1])} -}}}}"
    )


def _literals(spec: Spec) -> str:
    q = _quote
    quote = "'" if spec.layout == "python" else f"<|{spec.keys[2]}|>"
    assign, opening, closing, gap = ("=", "(", ")", ", ") if spec.layout == "python" else (":", "{", "}", ",")
    head = spec.call[0] if spec.layout == "python" else spec.call[0] + "do:"
    value = f"(({q(quote)} ~ v ~ {q(quote)}) if v is string else (v | string)) if v is not mapping else (v | tojson)"
    if spec.layout == "quoted literals":
        value = "spelled(v)"
    return (
        f"{{{{- {q(head)} ~ c.function.name ~ {q(opening)} -}}}}"
        "{%- for k, v in c.function.arguments.items() -%}"
        f"{{%- if not loop.first -%}}{{{{- {q(gap)} -}}}}{{%- endif -%}}"
        f"{{{{- k ~ {q(assign)} ~ ({value}) -}}}}{{%- endfor -%}}{{{{- {q(closing + spec.call[1])} -}}}}"
    )
