"""How the arguments of a call are written, as data: a style is a row of `Layout` or of `Literals`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

E = TypeVar("E", bound=tuple[Any, ...])

TaggedStyle = Literal[
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "glm_xml",
    "glm_4_5_xml",
    "muse_xml",
    "cohere_xml",
    "kimi_k3_xml",
]
StyleName = Literal["json", TaggedStyle]

KINDS = ("string", "number", "boolean", "null", "object", "array")

Middle = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The markup around one argument: `begin`, the key, what `middle` says for the kind of value, the value, the end.

    The end is `stop`, at which raw text ends, and `tail`, where {} is the key. Whitespace may stand between the parts
    of a middle. Where `item` is given, objects and arrays inside are marked up too, and it takes the place of begin and
    key for an item of an array; elsewhere they are JSON.
    """

    begin: str
    middle: dict[str, Middle]
    stop: str
    tail: str = ""
    item: str = ""
    after_key: str = ""
    escapes: tuple[tuple[str, str], ...] = ()
    other_keys: str = "names"  # the keys that a schema need not declare: names, any, or none
    python: tuple[str, ...] = ()  # the kinds of value that Python's spelling is taken for too, such as True
    quoted: bool = False  # strings are JSON too, not raw text

    def __post_init__(self) -> None:
        missing = [kind for kind in KINDS if not self.middle.get(kind)]
        if missing or not self.stop:
            raise ValueError(f"the markup says nothing about {missing[0] if missing else 'stop'}")

    def __hash__(self) -> int:
        middles = tuple(self.middle.items())
        return hash((self.begin, middles, self.stop, self.tail, self.item, self.after_key, self.python, self.quoted))

    def key(self, name: str) -> str:
        """A key as it stands in the markup."""
        for char, escape in self.escapes:
            name = name.replace(char, escape)
        return name


@dataclass(frozen=True, slots=True)
class Literals:
    """A call syntax: `begin`, `key` `assign` value joined by `separator`, `end`; values are literals.

    Strings stand in any one of `quotes`, the first of which is the one written, with backslash escapes where `escapes`.
    Objects inside are {key: value} with the keys as strings, or bare like those of the arguments where `bare_keys`.
    Where `sorted_keys`, keys are written in alphabetical order. JSON's own true, false and null are read everywhere.
    Where `quoted_keys`, the keys of the arguments are strings as well; the control characters in `raw` stand in strings
    as they are. Where `json_values`, values are JSON, whose own separators may be written otherwise than `separator`.
    """

    begin: str
    end: str
    assign: str
    separator: str
    quotes: tuple[str, ...]
    escapes: bool
    bare_keys: bool
    true: str = "true"
    false: str = "false"
    null: str = "null"
    sorted_keys: bool = False
    quoted_keys: bool = False
    raw: str = ""
    json_values: bool = False

    def __post_init__(self) -> None:
        if not self.quotes or not all(self.quotes):
            raise ValueError("the syntax says nothing about quotes")
        if self.escapes and any(len(quote) > 1 for quote in self.quotes):
            raise ValueError("quotes of several characters cannot be escaped")

    def ordered(self, members: Iterable[E]) -> list[E]:
        """Members, each a tuple that begins with its key, in the order in which the syntax has them."""
        # As Jinja's dictsort, with which the templates of such families write arguments.
        return sorted(members, key=lambda member: member[0].lower()) if self.sorted_keys else list(members)


CONTROLS = "".join(map(chr, range(0x20)))


@lru_cache(maxsize=64)
def escapes(quote: str, raw: str = "") -> Mapping[int, str]:
    """The characters that cannot stand as they are between two times `quote`, each with its escape."""
    marks = {ord(quote): "\\" + quote, 0x5C: "\\\\"}
    short = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r"}
    controls = {code: f"\\u{code:04x}" for code in range(0x20) if chr(code) not in raw}
    return controls | {code: escape for code, escape in short.items() if code in controls} | marks


PYTHON = Literals("(", ")", "=", ", ", ('"', "'"), True, False, "True", "False", "None")
PYTHON_DICT = Literals("{", "}", ": ", ", ", ("'", '"'), True, False, "True", "False", "None", quoted_keys=True)
GEMMA = Literals("{", "}", ":", ",", ('<|"|>',), False, True, sorted_keys=True)


def _same(*middle: str) -> dict[str, Middle]:
    return dict.fromkeys(KINDS, middle)


def _typed(template: str, names: dict[str, str]) -> dict[str, Middle]:
    return {kind: (template.format(name),) for kind, name in names.items()}


def _deepseek(tag: str) -> Layout:
    is_text = dict.fromkeys(KINDS, "false") | {"string": "true"}
    return Layout(f'<{tag} name="', _typed('" string="{}">', is_text), f"</{tag}>")


_AMPERSAND, _QUOTE = ("&", "&amp;"), ('"', "&quot;")
_COHERE = {"string": "raw", "number": "json", "boolean": "json", "null": "json", "object": "dict", "array": "list"}
_MARK = "]<]minimax[>["

LAYOUTS: dict[str, Layout] = {
    "qwen_xml": Layout("<parameter=", _same(">"), "</parameter>"),
    "minimax_xml": Layout('<parameter name="', _same('">'), "</parameter>"),
    "muse_xml": Layout('<atem:parameter name="', _same('">'), "</atem:parameter>"),
    "glm_xml": Layout("<arg_key>", _same("</arg_key>", "<arg_value>"), "</arg_value>"),
    "glm_4_5_xml": Layout("<arg_key>", _same("</arg_key>\n<arg_value>"), "</arg_value>"),
    "deepseek_xml": _deepseek("｜DSML｜parameter"),
    "deepseek_v4_1_xml": _deepseek("｜DSML｜ parameter"),
    "kimi_k3_xml": Layout(
        '<|open|>argument key="',
        _typed('" type="{}"<|sep|>', {kind: kind for kind in (*KINDS, "integer")}),
        "<|close|>argument<|sep|>",
        escapes=(_AMPERSAND, _QUOTE),
    ),
    "cohere_xml": Layout(
        '<cofl:value name="',
        _typed(' type="{}">', _COHERE),
        "</cofl:value>",
        item="<cofl:value",
        after_key='"',
        escapes=(_AMPERSAND, ("<", "&lt;"), (">", "&gt;"), _QUOTE),
        other_keys="any",
    ),
    "minimax_m3_xml": Layout(f"{_MARK}<", _same(">"), _MARK, tail="</{}>", item=f"{_MARK}<item", other_keys="none"),
}


STYLES = ("json", *LAYOUTS)


def layout_of(style: str | Layout) -> Layout:
    """A style by its name, or itself."""
    return LAYOUTS[style] if isinstance(style, str) else style
