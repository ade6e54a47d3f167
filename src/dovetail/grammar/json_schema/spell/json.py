"""How values are written: rules that all schemas share, for JSON one set for each width of white space and excludes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

from dovetail.grammar.ir import (
    EMPTY,
    Alt,
    Call,
    Chars,
    Lit,
    Node,
    Parts,
    Repeat,
    Rule,
    Seq,
    alt,
    is_nothing,
    optional,
    seq,
    star,
)
from dovetail.grammar.json_schema.read.constraints import Located
from dovetail.grammar.json_schema.values import characters, strings
from dovetail.grammar.json_schema.values.characters import JSON_QUOTES, AnyQuotes, KeyEnd
from dovetail.layouts.styles import E

DEFAULT_WHITESPACE = 20


class Frame(ABC):
    """How the members of an object and the items of an array are written, and what stands around and between them.

    A value is a node, unless a frame writes values in its own way; then it is whatever `value` and `literal` give.
    """

    open: Node = characters.OPEN
    close: Node = characters.CLOSE
    first: Node = characters.FIRST
    last: Node = characters.LAST
    comma: Parts = ()
    between = False  # members that are not declared may come between declared ones

    def ordered(self, members: Iterable[E]) -> list[E]:
        """Members, each a tuple that begins with its key, in the order in which they are written."""
        return list(members)

    def value(self, nodes: Sequence[Located], write: Callable[[Sequence[Located]], Node]) -> Any:
        """A value to which all of `nodes` apply."""
        return write(nodes)

    def literal(self, value: Any, write: Callable[[Any], Node]) -> Any:
        """A value equal to `value`."""
        return write(value)

    def item(self, value: Any) -> Node:
        """An item of an array."""
        node: Node = value
        return node

    @abstractmethod
    def declared(self, name: str, value: Any) -> Parts:
        """A declared key with its value; no parts where the two cannot be written."""

    @abstractmethod
    def other(self, names: Sequence[str], keys: Node | None, value: Any) -> Node:
        """A member whose key is none of `names`, and one of `keys` where these are given."""


class Spelling(ABC):
    """How one syntax writes strings, words and values of which nothing is said.

    A string stands in any one of its quotes, a word in any of its spellings.
    """

    # Of objects and of arrays.
    brackets: tuple[Node, ...] = (characters.OPEN, characters.CLOSE, characters.FIRST, characters.LAST)
    patterns_overrule = True  # a string with a pattern may hold what is excluded elsewhere

    def __init__(
        self,
        quotes: Sequence[AnyQuotes],
        words: Sequence[Sequence[str]],
        ws: Parts,
        comma: Parts,
        excludes: tuple[bytes, ...],
    ) -> None:
        self.ws = ws  # nothing where no white space is allowed
        self.comma = comma
        self.excludes = excludes
        self._quotes = quotes
        self.true, self.false, self.null = (alt(*[Lit(word.encode()) for word in dict.fromkeys(one)]) for one in words)
        value = Rule("value", EMPTY)
        opening, closing, first, last = self.brackets
        self.value = Call(value)
        self.by_type: dict[str, Node] = {
            "string": self.bounded(0, None),
            "number": characters.NUMBER,
            "integer": characters.INTEGER,
            "boolean": alt(self.true, self.false),
            "null": self.null,
            "object": Call(Rule("object", self._list(opening, self.frame().other((), None, self.value), closing))),
            "array": Call(Rule("array", self._list(first, Seq((self.value, *ws)), last))),
        }
        value.body = Alt(tuple([node for name, node in self.by_type.items() if name != "integer"]))

    def _list(self, begin: Node, one: Node, end: Node) -> Node:
        """Any number of items or members."""
        return Seq((begin, *self.ws, optional(Seq((one, star(Seq((*self.comma, one)))))), end))

    @abstractmethod
    def frame(self) -> Frame:
        """The objects and arrays of one schema."""

    def bounded(self, low: int, high: int | None) -> Node:
        """A string of low to high characters."""
        return _any(strings.bounded(low, high, self.excludes, quotes) for quotes in self._quotes)

    def matching(self, wanted: tuple[str, ...], low: int, high: int | None, barred: tuple[str, ...]) -> Node:
        """A string of low to high characters in which each wanted pattern is found and no barred one."""
        return _any(strings.matching(wanted, low, high, barred, quotes) for quotes in self._quotes)

    def denoting(self, language: Node, excludes: tuple[bytes, ...] = ()) -> Node:
        """A string that denotes a text of `language`, without escapes where these could make one of `excludes`."""
        return _any(strings.quoted(language, excludes, quotes) for quotes in self._quotes)

    def other_than(self, words: Collection[str]) -> Node:
        """A string in its canonical spelling that denotes none of `words`."""
        return self.denoting(strings.language((), words=frozenset(words), excludes=self.excludes), self.excludes)

    def word(self, word: str) -> list[Node]:
        """The spellings of a string; none where it holds something that is excluded."""
        spelled = [(quotes, quotes.spelled(word)) for quotes in self._quotes]
        return [quotes.around(one) for quotes, one in spelled if one is not None and not self.bars(one)]

    def bars(self, written: bytes) -> bool:
        """Whether a text holds something that is excluded."""
        return any(one in written for one in self.excludes)


def _any(ways: Iterable[Node]) -> Node:
    return alt(*[way for way in ways if not is_nothing(way)])


class JsonSpelling(Spelling):
    """JSON with at most so many blanks in a row, and strings that contain none of `excludes`.

    Where `tidy`, none stands before colons and commas, at most a space behind a colon, and behind commas and inside
    brackets a space, or a line and its indent.
    """

    def __init__(self, max_whitespace: int, excludes: tuple[bytes, ...], tidy: bool = False) -> None:
        ws: Parts = ()
        if max_whitespace and not tidy:
            blanks = Chars(((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)))
            ws = (Call(Rule("ws", Repeat(blanks, 0, max_whitespace))),)
        self.colon = seq(*ws, Lit(b":"), *ws)
        comma: Parts = (Lit(b","), *ws)
        if max_whitespace and tidy:
            line = Seq((Lit(b"\n"), Repeat(Chars(((0x20, 0x20),)), 0, max_whitespace)))
            one = Call(Rule("ws", optional(Alt((Lit(b" "), line)))))
            opening, closing, first, last = self.brackets
            self.brackets = (Seq((opening, one)), Seq((one, closing)), Seq((first, one)), Seq((one, last)))
            self.colon = seq(Lit(b":"), optional(Lit(b" ")))
            comma = (Lit(b","), one)
        self.key_ends: dict[int, KeyEnd] = {}
        super().__init__((JSON_QUOTES,), (("true",), ("false",), ("null",)), ws, comma, excludes)
        common = (self.value, *self.by_type.values())
        self.key_ends |= {id(node): characters.key_end(self.colon, node, *ws) for node in common}

    def frame(self) -> Frame:
        """The objects and arrays of one schema, whose members share what ends them."""
        return _JsonFrame(self)


json_spelling = lru_cache(maxsize=64)(JsonSpelling)


class _JsonFrame(Frame):
    """Members of JSON objects; what ends them is shared where their values are common, or their keys not declared."""

    def __init__(self, spelling: JsonSpelling) -> None:
        self.comma = spelling.comma
        self.open, self.close, self.first, self.last = spelling.brackets
        self._spelling = spelling
        self._ends: dict[int, tuple[Node, KeyEnd]] = {}  # the values keep their identities

    def declared(self, name: str, value: Node) -> Parts:
        spelling = self._spelling
        key = JSON_QUOTES.spelled(name)
        if is_nothing(value) or (spelling.excludes and spelling.bars(key)):
            return ()
        end = spelling.key_ends.get(id(value))
        if end is not None:
            return Lit(b'"' + key), end.declared
        return JSON_QUOTES.around(key), spelling.colon, value, *spelling.ws

    def other(self, names: Sequence[str], keys: Node | None, value: Node) -> Node:
        spelling = self._spelling
        if is_nothing(value):
            return value
        if keys is None and spelling.excludes:
            return seq(spelling.other_than(names), characters.NEW_KEY, spelling.colon, value, *spelling.ws)
        end = spelling.key_ends.get(id(value)) or self._end(value)
        return strings.other_member(names, end) if keys is None else strings.quoted_member(keys, end)

    def _end(self, value: Node) -> KeyEnd:
        entry = self._ends.get(id(value))
        if entry is None:
            entry = self._ends[id(value)] = value, characters.key_end(self._spelling.colon, value, *self._spelling.ws)
        return entry[1]
