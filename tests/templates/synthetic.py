"""Chat templates that no model has: every axis of a layout drawn at random, with markers made up on the spot."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

REASONING = ("none", "tags", "opened", "opened or closed", "tools only", "delimiter")
CONTENT = ("plain", "wrapped", "wrapped with reasoning")
LAYOUTS = (
    "json",
    "json array",
    "nested json",
    "keyed",
    "tag with json",
    "fenced",
    "tagged",
    "key tags",
    "attributes",
    "named tags",
    "python",
    "quoted literals",
    "dict",
)
TAGGED = ("tagged", "key tags", "attributes", "named tags")
IDS = ("none", "before", "between", "after", "index")

_PROMPTS = ("asked", "asked", "asked", "never", "always")
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
    spelling: str  # of JSON: plain, compact or indented
    values: str  # of tagged arguments: as they are, Python's words, or all JSON
    prompt: str  # the generation prompt is written when asked, never, or always
    forgets: bool  # reasoning of earlier turns is left out
    strings: bool  # arguments must be passed as text
    channels: bool  # blocks begin like turns
    parts: bool = False  # content is read as a list of parts
    torn: bool = False  # the prompt has other white space before the header than history
    named: bool = False  # the name of the tool stands only in the id of the call
    closer: str = "shown"  # of reasoning: "cut" where content is cut behind it, "unseen" where no turn has it
    always: bool = False  # a block of reasoning is written in each turn, an empty one where there is none
    shared: bool = False  # the text of the user stands between the same markers as content

    @property
    def source(self) -> str:
        """The template."""
        return _Writer(self).template()


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
    made, draw = _spec(seed), random.Random(~seed)
    asked = made.prompt == "asked"
    made = replace(
        made,
        parts=draw.random() < 0.2 and not made.channels,
        torn=draw.random() < 0.2 and asked and made.reasoning != "delimiter",
        named=draw.random() < 0.3 and made.layout == "tag with json" and made.ids == "none",
    )
    return _with_odd_blocks(made, draw)


def _with_odd_blocks(made: Spec, draw: random.Random) -> Spec:
    """The specification with blocks that are not always shown, or shown where nothing is in them.

    Only a prompt tells the header of a turn from markers that the content of all roles has.
    """
    closer = draw.choice(("shown", "shown", "cut", "unseen")) if made.reasoning == "opened" else "shown"
    closer = "shown" if made.content == "wrapped with reasoning" else closer
    always = draw.random() < 0.3 and made.reasoning in ("opened", "opened or closed") and closer == "shown"
    return replace(
        made,
        closer=closer,
        think=("<think>", "</think>") if closer == "unseen" else made.think,
        always=always,
        shared=draw.random() < 0.3 and made.content == "wrapped" and made.prompt == "asked" and not made.channels,
    )


def _spec(seed: int) -> Spec:
    draw = random.Random(seed)
    words = _Words(draw)
    layout = draw.choice(LAYOUTS)
    reasoning = draw.choice(REASONING)
    content = draw.choice(CONTENT if reasoning in ("tags", "opened") else CONTENT[:2])
    ids = draw.choice(IDS)
    if layout in ("keyed", "python", "quoted literals", "dict", "fenced", *TAGGED):
        ids = "none"
    channels = reasoning == "tags" and content == "wrapped" and draw.random() < 0.5
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
        lead="" if channels else draw.choice(("", "\n")),
        spelling=draw.choice(("plain", "plain", "compact", "indented")),
        values=draw.choice(("as they are", "as they are", "python words", "json")),
        prompt="asked" if reasoning in ("opened", "opened or closed", "delimiter") else draw.choice(_PROMPTS),
        forgets=draw.random() < 0.3,
        strings=layout in ("tag with json", "fenced") and draw.random() < 0.3,
        channels=channels,
    )


class _Writer:
    """Writes the Jinja source of a specification."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def template(self) -> str:
        spec = self.spec
        user, around = spec.start.replace("assistant", "user"), spec.answer if spec.shared else ("", "")
        lines = [_macro(f"<|{spec.keys[2]}|>")] if spec.layout == "quoted literals" else []
        lines += ["{%- for m in messages -%}", "{%- if m.role == 'assistant' -%}", _put(spec.start)]
        lines += [*self.reasoning(), *self.content()]
        lines += ["{%- if m.tool_calls -%}", _put(spec.lead), *self.calls(), "{%- endif -%}", _put(spec.end)]
        lines += [
            "{%- else -%}",
            f"{{{{- {_q(user + around[0])} ~ m.content ~ {_q(around[1] + spec.end)} -}}}}",
            "{%- endif -%}",
            "{%- endfor -%}",
        ]
        source = "\n".join([*lines, *self.prompt()])
        return source.replace("m.content", "(m.content[0].text if m.content else '')") if spec.parts else source

    def reasoning(self) -> list[str]:
        spec = self.spec
        if spec.reasoning == "none" or spec.closer != "shown":
            return []
        shown = "m.reasoning_content" + (" and m.tool_calls" if spec.reasoning == "tools only" else "")
        shown += " and loop.last" if spec.forgets else ""
        pad, after = ("", spec.start) if spec.channels else (spec.pad, spec.after)
        block = f"{_q(spec.think[0] + pad)} ~ m.reasoning_content ~ {_q(pad + spec.think[1] + after)}"
        empty = f"{{%- else -%}}{_put(spec.think[0] + spec.think[1] + after)}" if spec.always else ""
        return [f"{{%- if {shown} -%}}{{{{- {block} -}}}}{empty}{{%- endif -%}}"]

    def content(self) -> list[str]:
        spec = self.spec
        condition = {"plain": "false", "wrapped": "true", "wrapped with reasoning": "m.reasoning_content"}
        text = f"m.content.split({_q(spec.think[1])})[-1]" if spec.closer == "cut" else "m.content"
        wrapped = f"{_q(spec.answer[0])} ~ {text} ~ {_q(spec.answer[1])}"
        lines = [f"{{%- if m.content -%}}{{{{- ({wrapped}) if {condition[spec.content]} else {text} -}}}}"]
        if spec.channels:
            lines += ["{%- if m.tool_calls -%}", _put(spec.start), "{%- endif -%}"]
        return [*lines, "{%- endif -%}"]

    def prompt(self) -> list[str]:
        spec = self.spec
        if spec.prompt == "never":
            return []
        start = "\n  " + spec.start if spec.torn else spec.start
        lines = ["{%- if add_generation_prompt -%}" if spec.prompt == "asked" else "{%- if true -%}", _put(start)]
        opened = spec.think[0] + spec.pad
        if spec.reasoning in ("opened", "opened or closed"):
            lines += ["{%- if enable_thinking is not defined or enable_thinking -%}", _put(opened)]
            if spec.reasoning == "opened or closed":
                lines += ["{%- else -%}", _put(opened + spec.pad + spec.think[1] + spec.after)]
            lines.append("{%- endif -%}")
        if spec.reasoning == "delimiter":
            lines.append(_put("Here is what I think: "))
        return [*lines, "{%- endif -%}"]

    def calls(self) -> list[str]:
        spec = self.spec
        listed = spec.layout in ("json array", "keyed", "python")
        separator = ", " if listed else spec.separator
        opening = (spec.opening[0] if spec.section else "") + ("[" if listed else "")
        closing = ("]" if listed else "") + (spec.opening[1] if spec.section else "")
        if spec.layout in TAGGED:
            body = self.tagged()
        elif spec.layout in ("python", "quoted literals"):
            body = self.literals()
        else:
            body = [f"{{{{- {_q(spec.call[0])} ~ {self.call()} ~ {_q(spec.call[1])} -}}}}"]
        gap = ["{%- if not loop.first -%}", _put(separator), "{%- endif -%}"]
        return [_put(opening), "{%- for c in m.tool_calls -%}", *gap, *body, "{%- endfor -%}", _put(closing)]

    def json(self, value: str) -> str:
        options = {"plain": "", "compact": "(separators=(',', ':'))", "indented": "(indent=2)"}
        return f"({value} | tojson{options[self.spec.spelling]})"

    def call(self) -> str:
        """One call as an expression."""
        spec = self.spec
        key, args, identifier = spec.keys
        name = "c.function.name"
        arguments = "c.function.arguments" if spec.strings else self.json("c.function.arguments")
        number = "(loop.index0 | string)" if spec.ids == "index" else "c.id"
        match spec.layout:
            case "keyed":
                return f"{_q('{')} ~ ({name} | tojson) ~ ': ' ~ {arguments} ~ {_q('}')}"
            case "dict":
                return f"({{{_q(key)}: {name}, {_q(args)}: c.function.arguments}} | string)"
            case "fenced":
                return f"{name} + {_q(chr(10) + '```json' + chr(10))} + {arguments} + {_q(chr(10) + '```')}"
            case "nested json":
                inner = f"{{{_q(key)}: {name}, {_q(args)}: c.function.arguments}}"
                outer = f"{_q(identifier)}: c.id, " if spec.ids in ("before", "index") else ""
                return self.json(f"{{{outer}'function': {inner}}}")
            case "tag with json":
                mark, other = f"<{identifier}>", f"<{args}>"
                before = f"{number} + {_q(mark)} + " if spec.ids in ("before", "index") else ""
                between = f" + {_q(mark)} + {number}" if spec.ids == "between" else ""
                behind = f" + {_q(mark)} + {number} + {_q(mark.replace('<', '</'))}" if spec.ids == "after" else ""
                name = "c.id" if spec.named else name
                return f"{before}{name}{between} + {_q(other)} + {arguments}{behind}"
            case _:
                return self.json(f"{{{', '.join(self.members(number))}}}")

    def members(self, number: str) -> list[str]:
        """The members of a call in JSON, in the order that the place of its id asks for."""
        key, args, identifier = (_q(text) for text in self.spec.keys)
        name, last, own = f"{key}: c.function.name", f"{args}: c.function.arguments", f"{identifier}: {number}"
        order = {"none": [name, last], "after": [name, last, own], "between": [name, own, last]}
        return order.get(self.spec.ids, [own, name, last])

    def value(self) -> str:
        match self.spec.values:
            case "json":
                return "(v | tojson)"
            case "python words":
                return "(v if v is string else v | string if v is not mapping else v | tojson)"
            case _:
                return "(v if v is string else v | tojson)"

    def tagged(self) -> list[str]:
        spec = self.spec
        key, args, kind = spec.keys
        line, pad = spec.lead, spec.pad
        head, tail, close = f"<{key}=", f">{line}", f"</{key}>"
        before, middle, behind = _q(f"<{args}="), _q(f">{pad}"), _q(f"{pad}</{args}>{line}")
        match spec.layout:
            case "key tags":
                head, tail, close = "", line, ""
                before, middle = _q(f"<{args}_key>"), _q(f"</{args}_key>{line}<{args}_value>")
                behind = _q(f"</{args}_value>{line}")
            case "attributes":
                head, tail = f'<{key} {kind}="', f'">{line}'
                before, behind = _q(f'<{args} {kind}="'), _q(f"</{args}>{line}")
                middle = f"{_q(chr(34) + ' text=' + chr(34))} ~ (v is string) ~ {_q(chr(34) + '>')}"
            case "named tags":
                before, middle, behind = _q("<"), _q(">"), f"'</' ~ k ~ {_q('>' + line)}"
        one = f"{before} ~ k ~ {middle} ~ {self.value()} ~ {behind}"
        return [
            f"{{{{- {_q(spec.call[0] + head)} ~ c.function.name ~ {_q(tail)} -}}}}",
            f"{{%- for k, v in c.function.arguments.items() -%}}{{{{- {one} -}}}}{{%- endfor -%}}",
            _put(close + spec.call[1]),
        ]

    def literals(self) -> list[str]:
        spec = self.spec
        python = spec.layout == "python"
        assign, opening, closing, gap = ("=", "(", ")", ", ") if python else (":", "{", "}", ",")
        plain = "('\\'' ~ v ~ '\\'' if v is string else v | string) if v is not mapping else v | tojson"
        value = plain if python else "spelled(v)"
        head = spec.call[0] + ("" if python else "do:")
        return [
            f"{{{{- {_q(head)} ~ c.function.name ~ {_q(opening)} -}}}}",
            "{%- for k, v in c.function.arguments.items() -%}",
            f"{{%- if not loop.first -%}}{_put(gap)}{{%- endif -%}}{{{{- k ~ {_q(assign)} ~ ({value}) -}}}}",
            "{%- endfor -%}",
            _put(closing + spec.call[1]),
        ]


def _q(text: str) -> str:
    """A text as a Jinja string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _put(text: str) -> str:
    return f"{{{{- {_q(text)} -}}}}"


def _macro(quote: str) -> str:
    """Nested values in the spelling of the values at the top."""
    mark = _q(quote)
    return (
        "{%- macro spelled(v) -%}{%- if v is string -%}{{- "
        f"{mark} ~ v ~ {mark}"
        " -}}{%- elif v is mapping -%}{{- '{' -}}{%- for k, w in v.items() -%}{{- (',' if not loop.first else '') ~ k"
        " ~ ':' ~ spelled(w) -}}{%- endfor -%}{{- '}' -}}{%- elif v is sequence -%}{{- '[' -}}{%- for w in v -%}"
        "{{- (',' if not loop.first else '') ~ spelled(w) -}}{%- endfor -%}{{- ']' -}}"
        "{%- else -%}{{- v | tojson -}}{%- endif -%}{%- endmacro -%}"
    )
