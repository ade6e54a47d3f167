"""The calls that xgrammar's EBNF adds: Token, ExcludeToken, TagDispatch, TokenTagDispatch, Regex, Substring."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir, regex
from dovetail.grammar.ebnf.scanner import MAX_COUNT, Source, Token

MAX_DEPTH = 8

Item = Token | tuple["Item", ...]
Refer = Callable[[Token], ir.Node]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a macro, by position where `name` is empty."""

    name: str
    value: Item
    offset: int


def arguments(source: Source, take: Callable[[], Token], peek: Callable[[], Token]) -> list[Argument]:
    """The arguments of a macro, parentheses included."""
    take()
    arguments: list[Argument] = []
    while peek().kind != ")" or arguments:
        token = peek()
        value = _item(source, take, peek, 0)
        name = ""
        if isinstance(value, Token) and value.kind == "name" and peek().kind == "=":
            take()
            name, value = str(value.value), _item(source, take, peek, 0)
        arguments.append(Argument(name, value, token.offset))
        if not _more(source, take):
            return arguments
    take()
    return arguments


def _more(source: Source, take: Callable[[], Token]) -> bool:
    token = take()
    if token.kind not in (",", ")"):
        source.fail(f"expected `,` or `)`, found {token}", token.offset)
    return token.kind == ","


def _item(source: Source, take: Callable[[], Token], peek: Callable[[], Token], depth: int) -> Item:
    token = take()
    if token.kind in ("string", "number", "name"):
        return token
    if token.kind != "(":
        source.fail(f"expected a string, a number, a name or a tuple, found {token}", token.offset)
    if depth == MAX_DEPTH:
        raise LimitError(f"tuples nest deeper than {MAX_DEPTH}", source.path(token.offset), "write a flat tuple")
    items: list[Item] = []
    while peek().kind != ")":
        items.append(_item(source, take, peek, depth + 1))
        if not _more(source, take):
            return tuple(items)
    take()
    return tuple(items)


@dataclass(frozen=True, slots=True)
class _Call:
    """One use of a macro, with the checks that all of them share."""

    source: Source
    name: str
    offset: int
    arguments: list[Argument]
    refer: Refer

    def positional(self) -> list[Item]:
        return [argument.value for argument in self.arguments if not argument.name]

    def named(self, *allowed: str) -> dict[str, Argument]:
        given = {argument.name: argument for argument in self.arguments if argument.name}
        for name, argument in given.items():
            if name not in allowed:
                options = ", ".join(allowed) or "none"
                self.fail(f"{self.name} has no argument `{name}`", argument.offset, f"it takes by name: {options}")
        return given

    def fail(self, problem: str, offset: int | None = None, fix: str = "") -> NoReturn:
        self.source.fail(problem, self.offset if offset is None else offset, fix)

    def string(self, item: Item, what: str) -> str:
        if not isinstance(item, Token) or item.kind != "string":
            self.fail(f"{what} must be a string", fix='write it in quotes, as in "text"')
        return str(item.value)

    def number(self, item: Item, what: str) -> int:
        digits = str(item.value) if isinstance(item, Token) and item.kind == "number" else ""
        if not digits.isdigit() or len(digits) > 10 or int(digits) > MAX_COUNT:
            self.fail(f"{what} must be a token id", fix="write a whole number >= 0")
        return int(digits)

    def flag(self, argument: Argument | None, default: bool) -> bool:
        if argument is None:
            return default
        value = argument.value.value if isinstance(argument.value, Token) and argument.value.kind == "name" else None
        if value not in ("true", "false"):
            self.fail(f"`{argument.name}` must be true or false", argument.offset)
        return value == "true"

    def tuple_of(self, argument: Argument | None) -> tuple[Item, ...]:
        if argument is None:
            return ()
        if not isinstance(argument.value, tuple):
            self.fail(f"`{argument.name}` must be a tuple", argument.offset, 'as in excludes=("a", "b")')
        return argument.value

    def rules(self) -> list[tuple[Item, ir.Node]]:
        pairs: list[tuple[Item, ir.Node]] = []
        for item in self.positional():
            if not isinstance(item, tuple) or len(item) != 2:
                self.fail(f"{self.name} takes pairs of a trigger and a rule", fix='as in ("<tag>", rule)')
            trigger, rule = item
            if not isinstance(rule, Token) or rule.kind != "name":
                self.fail("what follows a trigger must be the name of a rule", fix="give the body a rule of its own")
            pairs.append((trigger, self.refer(rule)))
        return pairs


def expand(source: Source, name: Token, given: list[Argument], refer: Refer) -> ir.Node:
    """What the macro `name` stands for."""
    return MACROS[str(name.value)](_Call(source, str(name.value), name.offset, given, refer))


def _tokens(call: _Call, exclude: bool) -> ir.Node:
    call.named()
    ids = tuple(sorted({call.number(item, f"an argument of {call.name}") for item in call.positional()}))
    if not ids:
        call.fail(f"{call.name} needs at least one token id")
    return ir.Tokens(ids, exclude)


def _tag_dispatch(call: _Call) -> ir.Node:
    named = call.named("excludes", "loop_after_dispatch")
    excludes = [call.string(item, "an exclude") for item in call.tuple_of(named.get("excludes"))]
    loop = call.flag(named.get("loop_after_dispatch"), default=True)
    arms: dict[str, list[ir.Node]] = {}
    for item, body in call.rules():
        trigger = call.string(item, "a trigger")
        for exclude in excludes:
            if trigger.startswith(exclude):
                call.fail(f"the exclude {exclude!r} begins the trigger {trigger!r}, which can then never come")
        arms.setdefault(trigger, []).append(body)
    if "" in arms or "" in excludes:
        call.fail("a trigger or exclude is empty", fix="drop it, or write the text that it should match")
    # A trigger that holds an exclude never comes: the exclude ends all hope before it is complete.
    arms = {trigger: bodies for trigger, bodies in arms.items() if not any(word in trigger for word in excludes)}
    again = ir.Rule("dispatch", ir.NOTHING)
    follow: tuple[ir.Node, ...] = (ir.Call(again),) if loop else ()
    stops = tuple((trigger.encode(), ir.seq(ir.alt(*bodies), *follow)) for trigger, bodies in arms.items())
    again.body = ir.Text(excludes=tuple(exclude.encode() for exclude in excludes), stops=stops)
    return ir.Call(again) if loop and stops else again.body


def _token_tag_dispatch(call: _Call) -> ir.Node:
    named = call.named("excludes", "loop_after_dispatch")
    loop = call.flag(named.get("loop_after_dispatch"), default=True)
    excludes = {call.number(item, "an exclude") for item in call.tuple_of(named.get("excludes"))}
    arms = [(call.number(item, "a trigger"), body) for item, body in call.rules()]
    triggers = {trigger for trigger, _ in arms}
    if both := triggers & excludes:
        call.fail(f"the token {min(both)} is both a trigger and excluded")
    free = ir.Tokens(tuple(sorted(triggers | excludes)), exclude=True)
    tags = [ir.seq(ir.Tokens((trigger,)), body) for trigger, body in arms]
    if loop:
        return ir.star(ir.alt(free, *tags))
    return ir.seq(ir.star(free), *([ir.optional(ir.alt(*tags))] if tags else []))


def _regex(call: _Call) -> ir.Node:
    named = call.named("flags", "json_string")
    if len(call.positional()) != 1:
        call.fail("Regex takes exactly one pattern")
    pattern = call.string(call.positional()[0], "the pattern of Regex")
    flags = call.string(named["flags"].value, "`flags`") if "flags" in named else "s"
    if unknown := set(flags) - set("isu"):
        call.fail(f"the flag {min(unknown)!r} is not supported", fix="i, s and u are")
    try:
        node = regex.parse(pattern, flags=flags.replace("u", ""), dotall=False)
    except GrammarError as error:
        raise GrammarError(
            f"{error.problem} ({error.path} of the pattern)", call.source.path(call.offset), error.fix
        ) from None
    return regex.restrict(node, _JSON_PLAIN) if call.flag(named.get("json_string"), default=False) else node


# What may stand in a JSON string as itself.
_JSON_PLAIN = ir.complement([(0, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\"))])


def _substring(call: _Call) -> ir.Node:
    call.named()
    chunks = [call.string(item, "an argument of Substring") for item in call.positional()]
    return ir.alt(ir.EMPTY, *(ir.Call(rule) for rule in _suffixes(filter(None, chunks))))


def _suffixes(chunks: Iterable[str]) -> list[ir.Rule]:
    """For each chunk, the runs of chunks that begin with it."""
    rules: list[ir.Rule] = []
    for chunk in reversed(list(chunks)):
        follow = [ir.optional(ir.Call(rules[-1]))] if rules else []
        rules.append(ir.Rule("substring", ir.seq(ir.lit(chunk), *follow)))
    return rules


MACROS: dict[str, Callable[[_Call], ir.Node]] = {
    "Token": lambda call: _tokens(call, exclude=False),
    "ExcludeToken": lambda call: _tokens(call, exclude=True),
    "TagDispatch": _tag_dispatch,
    "TokenTagDispatch": _token_tag_dispatch,
    "Regex": _regex,
    "Substring": _substring,
}
