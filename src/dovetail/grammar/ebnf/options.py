"""The options that xgrammar's EBNF writes behind a rule name: capture, lazy, max_chars, max_tokens, temperature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.errors import GrammarError
from dovetail.grammar import ir, regex
from dovetail.grammar.ebnf.scanner import MAX_COUNT, Source, Token

MAX_DEPTH = 20

_OPTION = re.compile(r'\s*([a-z_]+)\s*(?:=\s*(?:"((?:\\.|[^"\\])*)"|([-+.\w]+))\s*)?(,|\Z)')
_WHOLE = re.compile(r"[0-9]{1,10}\Z")
_REAL = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,20})?\Z")


@dataclass(frozen=True, slots=True)
class Options:
    """What a rule asks for beyond its body."""

    offset: int
    capture: str | None = None
    lazy: bool = False
    max_chars: int | None = None
    max_tokens: int | None = None

    def __bool__(self) -> bool:
        return self != Options(self.offset)


def parse(source: Source, head: Token) -> tuple[str, Options]:
    """The name of a rule and its options."""
    name, bracket, text = str(head.value).partition("[")
    if not bracket:
        return name, Options(head.offset)
    text = text.removesuffix("]")
    given: dict[str, str | None] = {}
    at = 0
    while not given or at < len(text) or text.endswith(","):
        match = _OPTION.match(text, at)
        if match is None or match[1] in given:
            source.fail(f"the options of `{name}` are malformed", head.offset, 'as in name[max_chars=9, capture="x"]')
        given[match[1]] = match[2] if match[2] is not None else match[3]
        at = match.end()
        if match[4] == "":
            break
    return name, _options(source, head.offset, name, given)


def _options(source: Source, offset: int, name: str, given: Mapping[str, str | None]) -> Options:
    read = Options(offset)
    for option, value in given.items():
        match option:
            case "capture":
                read = replace(read, capture=value or name)
            case "lazy" if value is None:
                read = replace(read, lazy=True)
            case "max_chars" if value and _WHOLE.match(value) and int(value) <= MAX_COUNT:
                read = replace(read, max_chars=int(value))
            case "max_tokens" if value and _WHOLE.match(value) and int(value) <= MAX_COUNT:
                read = replace(read, max_tokens=int(value))
            case "temperature" if value and _REAL.match(value):
                pass  # advice for the sampler, not part of the language
            case "lazy" | "max_chars" | "max_tokens" | "temperature":
                source.fail(f"`{value}` is no value for the option `{option}` of `{name}`", offset)
            case _:
                source.fail(f"the option `{option}` of `{name}` is not supported", offset, "drop it")
    return read


def apply(rules: Mapping[ir.Rule, Options], source: Source) -> None:
    """Rewrite the bodies of the rules that carry options."""
    for rule, given in rules.items():
        if not given:
            continue
        try:
            rule.body = _applied(rule.body, given)
        except GrammarError as error:
            problem = f"the options of `{rule.name}` cannot be applied: {error.problem}"
            raise GrammarError(problem, source.path(given.offset), error.fix) from None


def _applied(body: ir.Node, given: Options) -> ir.Node:
    if isinstance(body, ir.Text) and not body.stops and not given.lazy:
        body = replace(body, max_chars=given.max_chars, max_tokens=given.max_tokens)
    else:
        if given.max_tokens is not None:
            raise GrammarError("max_tokens holds for free text only", "", "write the body as TagDispatch()")
        if given.max_chars is not None:
            body = _at_most(body, given.max_chars)
        if given.lazy:
            body = regex.shortest(_inlined(body, ()))
    return body if given.capture is None else ir.Capture(given.capture, body)


def _at_most(body: ir.Node, count: int) -> ir.Node:
    if isinstance(body, ir.Repeat) and isinstance(body.body, ir.Chars) and body.low <= count:
        return ir.Repeat(body.body, body.low, count if body.high is None else min(count, body.high))
    return regex.intersect(_inlined(body, ()), ir.Repeat(ir.ANY_CHAR, 0, count))


def _inlined(node: ir.Node, path: tuple[ir.Rule, ...]) -> ir.Node:
    """`node` with the bodies of the rules in place of their calls; `path` holds those that are open."""
    match node:
        case ir.Call(rule):
            if rule in path or len(path) == MAX_DEPTH:
                raise GrammarError(f"the rule `{rule.name}` is recursive", "", "write the loop with * or +")
            return _inlined(rule.body, (*path, rule))
        case ir.Seq(parts):
            return ir.Seq(tuple(_inlined(part, path) for part in parts))
        case ir.Alt(parts):
            return ir.Alt(tuple(_inlined(part, path) for part in parts))
        case ir.Repeat(body, low, high):
            return ir.Repeat(_inlined(body, path), low, high)
        case _:
            return node
