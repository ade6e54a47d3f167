"""Tokens to rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.ebnf import macros, options
from dovetail.grammar.ebnf.scanner import MAX_COUNT, Source, Token, scan

MAX_DEPTH = 100

_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def parse(text: str, root: str = "root") -> ir.Rule:
    """The rule `root` of a grammar in xgrammar's EBNF or llama.cpp's GBNF spelling."""
    return _Parser(*scan(text)).grammar(root)


@dataclass(slots=True)
class _Group:
    """An open parenthesis, or a whole body: finished alternatives and the sequence being read."""

    opening: Token
    alternatives: list[ir.Node] = field(default_factory=list)
    sequence: list[ir.Node] = field(default_factory=list)


class _Parser:
    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._at = 0
        self._rules: dict[str, ir.Rule] = {}
        self._mentioned: dict[str, Token] = {}
        self._defined: dict[str, options.Options] = {}

    def grammar(self, root: str) -> ir.Rule:
        while self._peek().kind != "end":
            self._rule()
        for name, token in self._mentioned.items():
            if name not in self._defined:
                self._source.fail(f"the rule `{name}` is not defined", token.offset, f"add a line `{name} ::= ...`")
        if root not in self._defined:
            self._source.fail(f"there is no rule `{root}` to start from", 0, f"add a line `{root} ::= ...`")
        options.apply({self._rules[name]: given for name, given in self._defined.items()}, self._source)
        return self._rules[root]

    def _rule(self) -> None:
        head = self._take("head", "a rule, `name ::= ...`")
        name, given = options.parse(self._source, head)
        if name in self._defined:
            self._source.fail(f"the rule `{name}` is defined twice", head.offset, "join the bodies with |")
        self._defined[name] = given
        rule = self._refer(name)
        rule.body = self._body(head)
        if self._peek().kind == "(=":
            self._lookahead()

    def _lookahead(self) -> None:
        # The hint tells the peer's mask cache what follows; the language is the same without it.
        opening = self._next()
        hint = self._body(opening)
        self._take(")", "`)` to close the lookahead")
        if any(isinstance(node, ir.Alt) for node in ir.walk(hint)):
            self._source.fail("a lookahead with choices", opening.offset, "drop the lookahead: it is only a hint")

    def _refer(self, name: str) -> ir.Rule:
        return self._rules.setdefault(name, ir.Rule(name, ir.NOTHING))

    def _call(self, token: Token) -> ir.Node:
        name = str(token.value)
        self._mentioned.setdefault(name, token)
        return ir.Call(self._refer(name))

    def _body(self, opening: Token) -> ir.Node:
        """Everything up to a token that cannot continue the body; parentheses are kept on a stack of our own."""
        stack = [_Group(opening)]
        while True:
            group = stack[-1]
            match self._peek().kind:
                case "(":
                    stack.append(_Group(self._next()))
                    if len(stack) > MAX_DEPTH:
                        where = self._source.path(stack[-1].opening.offset)
                        raise LimitError(
                            f"parentheses nest deeper than {MAX_DEPTH}", where, "name inner parts as rules"
                        )
                case "|":
                    self._end_sequence(group)
                    self._next()
                case ")" if len(stack) > 1:
                    inner = stack.pop()
                    empty = not inner.alternatives and not inner.sequence
                    node = ir.EMPTY if empty else self._end_group(inner)
                    self._next()
                    stack[-1].sequence.append(self._quantified(node))
                case "string" | "class" | "name" | "number" | "token" | ".":
                    group.sequence.append(self._quantified(self._element()))
                case _ if len(stack) > 1:
                    what = self._source.path(group.opening.offset)
                    self._source.fail(
                        f"expected `)`, found {self._peek()}", self._peek().offset, f"close the ( of {what}"
                    )
                case _:
                    return self._end_group(group)

    def _end_sequence(self, group: _Group) -> None:
        if not group.sequence:
            mark = self._peek()
            self._source.fail(f"expected an element, found {mark}", mark.offset, 'write "" to match nothing')
        group.alternatives.append(ir.seq(*group.sequence))
        group.sequence = []

    def _end_group(self, group: _Group) -> ir.Node:
        self._end_sequence(group)
        return ir.alt(*group.alternatives)

    def _element(self) -> ir.Node:
        token = self._next()
        match token.kind:
            case "string":
                return ir.lit(str(token.value)) if token.value else ir.EMPTY
            case ".":
                return ir.ANY_CHAR
            case "name" if self._peek().kind == "(" and token.value in macros.MACROS:
                return macros.expand(self._source, token, self._arguments(), self._call)
            case "name" | "number":
                return self._call(token)
            case _:
                assert isinstance(token.value, ir.Chars | ir.Tokens)
                return token.value

    def _quantified(self, node: ir.Node) -> ir.Node:
        token = self._peek()
        if token.kind in _QUANTIFIERS:
            self._next()
            low, high = _QUANTIFIERS[token.kind]
        elif token.kind == "{":
            low, high = self._bounds()
        else:
            return node
        after = self._peek()
        if after.kind in _QUANTIFIERS or after.kind == "{":
            self._source.fail(f"a second repetition {after}", after.offset, "put the first one in parentheses")
        return ir.Repeat(node, low, high)

    def _bounds(self) -> tuple[int, int | None]:
        opening = self._next()
        low = self._count()
        high: int | None = low
        if self._peek().kind == ",":
            self._next()
            if self._peek().value == "-1":  # how xgrammar prints an open end
                self._next()
                high = None
            else:
                high = self._count() if self._peek().kind == "number" else None
        self._take("}", "`,` or `}` in a repetition")
        if high is not None and high < low:
            self._source.fail(f"the repetition {{{low},{high}}} runs backwards", opening.offset, "swap its bounds")
        return low, high

    def _count(self) -> int:
        token = self._take("number", "a whole number of repetitions")
        digits = str(token.value)
        if not digits.isdigit():
            self._source.fail(f"{digits} is not a number of repetitions", token.offset, "write a whole number >= 0")
        if len(digits) > 10 or int(digits) > MAX_COUNT:
            path = self._source.path(token.offset)
            raise LimitError(f"more than {MAX_COUNT} repetitions", path, "leave the upper bound open, as in {3,}")
        return int(digits)

    def _arguments(self) -> list[macros.Argument]:
        return macros.arguments(self._source, self._next, self._peek)

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _take(self, kind: str, expected: str) -> Token:
        token = self._next()
        if token.kind != kind:
            self._source.fail(f"expected {expected}, found {token}", token.offset, "")
        return token
