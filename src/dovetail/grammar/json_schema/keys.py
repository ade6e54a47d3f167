"""Keys of additional properties: any key but the declared ones, in whatever spelling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache

from dovetail.grammar.ir import EMPTY, Call, Chars, Lit, Node, Rule, Without, alt, complement, star

from . import text
from .text import BACKSLASH, QUOTE, Ranges, concat, intersect

Trie = dict[str, "Trie"]
_END = ""


class Alphabet(ABC):
    """How keys are written."""

    first: Ranges = text.ALL
    rest: Ranges = text.ALL
    empty = True  # whether a key may be empty

    @abstractmethod
    def end(self) -> Node:
        """What ends a key."""

    @abstractmethod
    def leave(self, ranges: Ranges) -> Node:
        """A character of `ranges`, then any rest of a key with its end."""

    @abstractmethod
    def stay(self, char: str, then: Node) -> Node:
        """This character, then `then`."""


class JsonAlphabet(Alphabet):
    """A JSON string after its opening quote."""

    def end(self) -> Node:
        return QUOTE

    def leave(self, ranges: Ranges) -> Node:
        return _json_leave(ranges)

    def stay(self, char: str, then: Node) -> Node:
        return concat(text.spell(((ord(char), ord(char)),)), then)


@lru_cache(maxsize=4096)
def _json_leave(ranges: Ranges) -> Node:
    # Escapes are rare: a call keeps the many nodes of a large trie small.
    escaped = Call(Rule("escaped", concat(alt(*text.escapes(ranges)), text.STRING_TAIL)))
    ways = (concat(plain, text.STRING_TAIL) for plain in text.raw(ranges))
    return alt(*ways, concat(BACKSLASH, escaped))


class PlainJsonAlphabet(Alphabet):
    """A JSON string without its quotes and without calls; four-digit escapes only once it differs from every name."""

    def end(self) -> Node:
        return EMPTY

    def leave(self, ranges: Ranges) -> Node:
        return _plain_leave(ranges)

    def stay(self, char: str, then: Node) -> Node:
        return alt(*(concat(way, then) for way in _plain(((ord(char), ord(char)),))))


def _plain(ranges: Ranges) -> list[Node]:
    short = [concat(BACKSLASH, way) for way in text.escapes(ranges) if isinstance(way, Chars)]
    return [*text.raw(ranges), *short]


@lru_cache(maxsize=4096)
def _plain_leave(ranges: Ranges) -> Node:
    return concat(alt(*_plain(ranges)), star(text.CHAR))


class NameAlphabet(Alphabet):
    """An identifier; what ends it follows elsewhere."""

    first: Ranges = ((0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
    rest: Ranges = ((0x30, 0x39), *first)
    empty = False

    def end(self) -> Node:
        return EMPTY

    def leave(self, ranges: Ranges) -> Node:
        return concat(text.one(ranges), star(Chars(self.rest)))

    def stay(self, char: str, then: Node) -> Node:
        return concat(text.one(((ord(char), ord(char)),)), then)


class MarkupAlphabet(Alphabet):
    """Any text with some characters written as entities, not empty; what ends it follows elsewhere."""

    empty = False

    def __init__(self, entities: tuple[tuple[str, str], ...]) -> None:
        self._entities = dict(entities)
        self._plain = complement([(0, 0), *((ord(char), ord(char)) for char in self._entities)]).ranges
        self.first = self.rest = complement([(0, 0)]).ranges

    def end(self) -> Node:
        return EMPTY

    def _char(self, ranges: Ranges) -> Node:
        plain = intersect(ranges, self._plain)
        inside = (entity for char, entity in self._entities.items() if intersect(ranges, ((ord(char), ord(char)),)))
        return alt(*([text.one(plain)] if plain else []), *(Lit(entity.encode()) for entity in inside))

    def leave(self, ranges: Ranges) -> Node:
        return concat(self._char(ranges), star(self._char(self.rest)))

    def stay(self, char: str, then: Node) -> Node:
        return concat(self._char(((ord(char), ord(char)),)), then)


JSON, PLAIN_JSON, NAME = JsonAlphabet(), PlainJsonAlphabet(), NameAlphabet()


def json_key(names: Iterable[str], pieces: text.Pieces) -> Node:
    """A JSON string that denotes none of `names`."""
    if not names:
        return pieces.string
    if not pieces.excludes:
        return concat(QUOTE, other_keys(names, JSON))
    return concat(QUOTE, Without(other_keys(names, PLAIN_JSON), pieces.excludes), QUOTE)


def other_keys(names: Iterable[str], alphabet: Alphabet) -> Node:
    """Any key with its end that is none of `names`."""
    root = _trie(names)
    bodies: dict[int, Node] = {}
    pending: list[tuple[Trie, bool]] = [(root, False)]
    # Children first, without recursion: a declared key may be long.
    while pending:
        trie, ready = pending.pop()
        children = [char for char in trie if char != _END]
        if not ready:
            pending.append((trie, True))
            pending.extend((trie[char], False) for char in children)
            continue
        ways = [alphabet.end()] if _END not in trie and (trie is not root or alphabet.empty) else []
        allowed = alphabet.first if trie is root else alphabet.rest
        others = intersect(allowed, complement((ord(char), ord(char)) for char in children).ranges)
        if others:
            ways.append(alphabet.leave(others))
        for char in children:
            if intersect(allowed, ((ord(char), ord(char)),)):
                ways.append(alphabet.stay(char, bodies[id(trie[char])]))
        bodies[id(trie)] = alt(*ways)
    return bodies[id(root)]


def _trie(names: Iterable[str]) -> Trie:
    root: Trie = {}
    for name in names:
        node = root
        for char in name:
            node = node.setdefault(char, {})
        node[_END] = {}
    return root
