"""The spellings of a portable grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.errors import ExportError
from dovetail.formats import FormatSource
from dovetail.grammar import ir
from dovetail.grammar.export.begun import continuation
from dovetail.grammar.export.portable import portable, pruned
from dovetail.grammar.lower import rule_of

# llama.cpp refuses to parse larger counts.
MAX_GBNF_COUNT = 2_000

_MARKERS = re.compile(r"<[^<>\s]+>|\[[A-Z_/]+\]")


@dataclass(frozen=True, slots=True)
class Gbnf:
    """A grammar as llama.cpp takes it.

    While `lazy`, the model is free until one of `triggers` appears, and the grammar holds from there on. Special
    tokens among `preserved_tokens` have to be read as text, so that literals and triggers can see them.
    """

    grammar: str
    lazy: bool = False
    triggers: tuple[str, ...] = ()
    preserved_tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Language:
    """How one language writes what differs between them."""

    arrow: str
    root: str
    name: Callable[[str], str]
    literal: Callable[[ir.Lit], list[str]]
    chars: Callable[[ir.Chars], str]
    tokens: Callable[[ir.Tokens], str]
    count: Callable[[int, int | None], str]


def gbnf(source: FormatSource | ir.Rule, *, lazy: bool = False, prefix: str = "") -> Gbnf:
    """A format for llama.cpp; with `lazy`, free text before the first trigger is left to the model, not written out.

    What that text may not hold, such as the markers of reasoning, is then held by nobody. `prefix` is the part of the
    output that the prompt holds already: the grammar is of what follows it.
    """
    rule = rule_of(source)
    triggers: tuple[str, ...] = ()
    if lazy:
        stops = _free_start(rule)
        triggers = tuple(stop.decode() for stop, _ in stops)
        rule = ir.Rule(rule.name, ir.alt(*(ir.seq(ir.Lit(stop, special=True), arm) for stop, arm in stops)))
    simple = _portable(rule, prefix)
    # llama.cpp refuses a trigger that is a token of its own and is not preserved.
    preserved = tuple(dict.fromkeys((*_preserved(simple), *triggers)))
    return Gbnf(_printed(simple, _GBNF), lazy, triggers, preserved)


def ebnf(source: FormatSource | ir.Rule, *, prefix: str = "") -> str:
    """A format in xgrammar's EBNF; of what follows `prefix`, where the prompt holds the beginning of the output."""
    return _printed(_portable(rule_of(source), prefix), _EBNF)


def lark(source: FormatSource | ir.Rule, *, special_tokens: Mapping[str, int] | None = None, prefix: str = "") -> str:
    """A format in llguidance's Lark; a special token may stand for its text where its id is given.

    `prefix` is the part of the output that the prompt holds already: the grammar is of what follows it.

    llguidance cuts the text into terminals greedily, so every terminal is one character: only then is no text lost.
    """
    known = dict(special_tokens or {})

    def literal(node: ir.Lit) -> list[str]:
        return [part for piece in _pieces(node, known) for part in piece]

    language = _Language("{}: {}", "start", _lark_name, literal, _lark_chars, _lark_tokens, _braces)
    return "%llguidance {}\n" + _printed(_portable(rule_of(source), prefix), language)


def _portable(rule: ir.Rule, prefix: str) -> ir.Rule:
    """The rule in words that all languages know, after the part that is written already."""
    simple = portable(rule)
    return pruned(continuation(simple, prefix)) if prefix else simple


def _free_start(rule: ir.Rule) -> tuple[tuple[bytes, ir.Node], ...]:
    node: ir.Node = ir.Call(rule)
    seen: set[int] = set()
    while isinstance(node, ir.Call | ir.Capture):
        if isinstance(node, ir.Call):
            if id(node.rule) in seen:
                break
            seen.add(id(node.rule))
            node = node.rule.body
        else:
            node = node.body
    match node:
        case ir.Text(stops=(_, *_) as stops, after=ir.Seq(()), max_chars=None, max_tokens=None, min_chars=0):
            return tuple(stops)
        case _:
            problem = "a lazy grammar begins with free text that only a trigger ends"
            raise ExportError(problem, f"rule {rule.name}", "export it with lazy=False")


def _preserved(rule: ir.Rule) -> tuple[str, ...]:
    texts = {
        marker: None
        for known in ir.reachable(rule)
        for node in ir.walk(known.body)
        if isinstance(node, ir.Lit) and node.special
        for marker in _MARKERS.findall(node.data.decode())
    }
    return tuple(texts)


def _printed(root: ir.Rule, language: _Language) -> str:
    names = _names(root, language)
    lines: list[str] = []
    for rule in ir.reachable(root):
        try:
            body = _shown(rule.body, 0, names, language)
        except ExportError as error:
            raise ExportError(error.problem, f"rule {rule.name}", error.fix) from None
        lines.append(language.arrow.format(names[id(rule)], body))
    return "\n".join(lines) + "\n"


def _names(root: ir.Rule, language: _Language) -> dict[int, str]:
    taken: set[str] = {language.root}
    names = {id(root): language.root}
    numbers: dict[str, int] = {}  # the last of each name: free text has thousands of one
    for rule in ir.reachable(root)[1:]:
        wanted = name = language.name(rule.name) or "rule"
        while name in taken:
            numbers[wanted] = number = numbers.get(wanted, 1) + 1
            name = language.name(f"{wanted}-{number}")
        taken.add(name)
        names[id(rule)] = name
    return names


def _shown(node: ir.Node, level: int, names: dict[int, str], language: _Language) -> str:
    """The text of `node` where choices (level 0), sequences (1) or only single elements (2) may stand."""
    match node:
        case ir.Lit(data):
            parts = language.literal(node) if data else ['""']
            return _grouped(" ".join(parts), len(parts) > 1 and level > 1)
        case ir.Chars():
            return language.chars(node)
        case ir.Tokens():
            return language.tokens(node)
        case ir.Call(rule):
            return names[id(rule)]
        case ir.Seq(parts):
            shown = [_shown(part, 1, names, language) for part in parts if part != ir.EMPTY]
            return _grouped(" ".join(shown) or '""', len(shown) > 1 and level > 1)
        case ir.Alt(parts):
            return _grouped(" | ".join(_shown(part, 0, names, language) for part in parts), level > 0)
        case ir.Repeat(body, low, high):
            return _grouped(_shown(body, 2, names, language) + language.count(low, high), level > 1)
        case _:
            raise AssertionError("portable grammars hold nothing else")


def _grouped(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def _braces(low: int, high: int | None) -> str:
    match low, high:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _, None:
            return f"{{{low},}}"
        case _:
            return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _gbnf_count(low: int, high: int | None) -> str:
    if max(low, high or 0) > MAX_GBNF_COUNT:
        raise ExportError(f"llama.cpp takes no count above {MAX_GBNF_COUNT}", "", "use smaller bounds or an open one")
    return _braces(low, high)


def _escaped(char: str, marks: str) -> str:
    if char in marks:
        return "\\" + char
    if char.isprintable():
        return char
    return f"\\u{ord(char):04X}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08X}"


def _quoted(node: ir.Lit) -> list[str]:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return ['"' + "".join(named.get(char) or _escaped(char, '"\\') for char in node.data.decode()) + '"']


def _bracketed(node: ir.Chars) -> str:
    # Numbers for the marks that one of the two spellings has no escape for.
    return (
        "["
        + "".join(_spans(node, lambda char: f"\\u{ord(char):04X}" if char in "-^" else _escaped(char, "[]\\")))
        + "]"
    )


def _spans(node: ir.Chars, show: Callable[[str], str]) -> Iterator[str]:
    for low, high in node.ranges:
        yield show(chr(low)) + ("" if low == high else ("-" if high > low + 1 else "") + show(chr(high)))


def _gbnf_tokens(node: ir.Tokens) -> str:
    def one(token: int | str) -> str:
        if isinstance(token, str) and not re.fullmatch(r"<[^<>\[\]\s][^<>\r\n]*>", token):
            raise ExportError(f"GBNF has no name for the token {token!r}", "", "name it by its id")
        return f"<[{token}]>" if isinstance(token, int) else token

    if not node.exclude:
        shown = " | ".join(one(token) for token in node.tokens)
        return f"({shown})" if len(node.tokens) > 1 else shown
    if len(node.tokens) != 1:
        raise ExportError(f"GBNF cannot exclude {len(node.tokens)} tokens at once", "", "exclude exactly one token")
    return "!" + one(node.tokens[0])


def _ebnf_tokens(node: ir.Tokens) -> str:
    if any(isinstance(token, str) for token in node.tokens):
        raise ExportError("xgrammar's EBNF names tokens by id only", "", "replace the token's text by its id")
    if not node.tokens:
        raise ExportError("xgrammar's EBNF has no word for any token", "", "exclude at least one token")
    return f"{'ExcludeToken' if node.exclude else 'Token'}({', '.join(map(str, node.tokens))})"


def _lark_tokens(node: ir.Tokens) -> str:
    if any(isinstance(token, str) for token in node.tokens):
        if len(node.tokens) == 1 and not node.exclude and re.fullmatch(r"<[^<>\s\[\]]+>", str(node.tokens[0])):
            return str(node.tokens[0])
        raise ExportError("Lark names special tokens such as <|end|> only", "", "replace the token's text by its id")
    if not node.tokens:
        return "<[*]>"
    return f"<[{'^' if node.exclude else ''}{','.join(map(str, node.tokens))}]>"


def _pieces(node: ir.Lit, special: Mapping[str, int]) -> Iterator[list[str]]:
    text = node.data.decode()
    known = sorted(special, key=len, reverse=True) if node.special else []
    pattern = "|".join(map(re.escape, filter(None, known)))
    at = 0
    for match in re.finditer(pattern, text) if pattern else ():
        yield [json.dumps(char) for char in text[at : match.start()]]
        spelled = " ".join(json.dumps(char) for char in match.group())
        yield [f"({spelled} | <[{special[match.group()]}]>)"]
        at = match.end()
    yield [json.dumps(char) for char in text[at:]]


def _lark_chars(node: ir.Chars) -> str:
    def show(char: str) -> str:
        return char if char.isascii() and char.isalnum() else f"\\u{{{ord(char):x}}}"

    return "/[" + "".join(_spans(node, show)) + "]/"


def _lark_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").lstrip("0123456789_")


_GBNF = _Language(
    "{} ::= {}",
    "root",
    lambda name: re.sub(r"[^A-Za-z0-9]+", "-", name),
    _quoted,
    _bracketed,
    _gbnf_tokens,
    _gbnf_count,
)
_EBNF = _Language(
    "{} ::= {}",
    "root",
    lambda name: re.sub(r"[^A-Za-z0-9]+|^(?=[0-9])", "_", name),
    _quoted,
    _bracketed,
    _ebnf_tokens,
    _braces,
)
