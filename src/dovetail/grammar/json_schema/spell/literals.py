"""Values as the literals of a call syntax, such as Python's.

A string stands in any one of the quotes, each character in the one spelling that `escapes` gives it, or where nothing
but its length is said of it also by another escape of Python or JSON. Keys without quotes consist of ASCII
letters, digits and `_-.$`, declared ones of any letters. Unlike in JSON, a key that is not declared may come again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from dovetail.errors import SchemaError
from dovetail.grammar import regex
from dovetail.grammar.ir import EMPTY, Lit, Node, Parts, alt, is_nothing, lit, seq
from dovetail.grammar.json_schema.values import strings
from dovetail.grammar.json_schema.values.characters import FREE_ESCAPE, AnyQuotes, Quotes, RawQuotes
from dovetail.layouts.styles import E, Literals, escapes

from .json import Frame, Spelling

_BARE = "^[a-zA-Z0-9_.$-]+$"
_FREE_ESCAPE = FREE_ESCAPE + r"|'|x[0-9A-Fa-f]{2}|U00(0[1-9A-Fa-f]|10)[0-9A-Fa-f]{4}"


class LiteralSpelling(Spelling):
    """One syntax, with strings that contain none of `excludes`: a reader of raw text would stumble over them."""

    patterns_overrule = False

    def __init__(self, syntax: Literals, excludes: tuple[bytes, ...]) -> None:
        self.syntax = syntax
        quotes = [_quotes(mark, syntax) for mark in syntax.quotes]
        words = ((syntax.true, "true"), (syntax.false, "false"), (syntax.null, "null"))
        super().__init__(quotes, words, (), (_literal(syntax.separator),), excludes)

    def frame(self) -> _LiteralFrame:
        """The objects and arrays inside."""
        bare = self.syntax.bare_keys
        return _LiteralFrame(self, "{", "}", self.syntax.assign if bare else ": ", bare)

    def arguments(self) -> _LiteralFrame:
        """The outermost object."""
        syntax = self.syntax
        return _LiteralFrame(self, syntax.begin, syntax.end, syntax.assign, not syntax.quoted_keys)


literal_spelling = lru_cache(maxsize=64)(LiteralSpelling)


class _LiteralFrame(Frame):
    """Members of an object between `begin` and `end`, with bare keys or quoted ones and `assign` behind them."""

    def __init__(self, spelling: LiteralSpelling, begin: str, end: str, assign: str, bare: bool) -> None:
        self.open = _literal(begin)
        self.close = _literal(end)
        self.comma = spelling.comma
        self.between = spelling.syntax.sorted_keys
        self._spelling = spelling
        self._assign = _literal(assign)
        self._bare = bare

    def ordered(self, members: Iterable[E]) -> list[E]:
        return self._spelling.syntax.ordered(members)

    def declared(self, name: str, value: Node) -> Parts:
        keys = self._bare_key(name) if self._bare else self._spelling.word(name)
        return (seq(alt(*keys), self._assign), value) if keys and not is_nothing(value) else ()

    def other(self, names: Sequence[str], keys: Node | None, value: Node) -> Node:
        key = value if is_nothing(value) else self.key(names, keys)
        return key if is_nothing(key) else seq(key, value)

    def key(self, names: Sequence[str], keys: Node | None) -> Node:
        """A key that is none of `names`, and one of `keys` where these are given, with what follows it."""
        bare, excludes = (_BARE,) if self._bare else (), self._spelling.excludes
        if keys is None:
            keys = strings.language(bare, words=frozenset(names), excludes=excludes)
        elif self._bare:
            keys = regex.intersect(keys, strings.language(bare))
        key = keys if self._bare else self._spelling.denoting(keys, excludes)
        return key if is_nothing(key) else seq(key, self._assign)

    def _bare_key(self, name: str) -> list[Node]:
        if not name or not all(char.isalnum() or char in "_-.$" for char in name):
            raise SchemaError(f"the key {name!r} cannot be written without quotes", "", "use letters and digits")
        return [] if self._spelling.bars(name.encode()) else [lit(name)]


def _quotes(mark: str, syntax: Literals) -> AnyQuotes:
    return Quotes(mark, escapes(mark, syntax.raw), _FREE_ESCAPE) if syntax.escapes else RawQuotes(mark)


def _literal(text: str) -> Node:
    return Lit(text.encode(), special=True) if text else EMPTY
