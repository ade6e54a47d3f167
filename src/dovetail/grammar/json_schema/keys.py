"""Keys of an object: the declared ones, those that match a pattern, and all others; each in its one spelling."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from dovetail.errors import LimitError
from dovetail.grammar.ir import (
    EMPTY,
    NOTHING,
    Call,
    Chars,
    Lit,
    Node,
    Rule,
    Seq,
    Unlisted,
    Without,
    alt,
    complement,
    fold_words,
    star,
)
from dovetail.grammar.regex import Spelling, mapped

from . import text
from .memory import by_identity
from .sizes import grows
from .strings import ANYTHING, as_string, is_plain
from .text import BACKSLASH, QUOTE, UNESCAPED, KeyEnd, Ranges, concat, encoded, intersect

Entities = tuple[tuple[str, str], ...]

MAX_KEY = 1_000  # characters; a longer one is nested too deeply
_NAME_FIRST: Ranges = ((0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_NAME_REST: Ranges = ((0x30, 0x39), *_NAME_FIRST)


@dataclass(frozen=True, slots=True)
class Alphabet:
    """How keys are written: what ends one, how one leaves the declared names for good, how a character is spelled."""

    end: Node
    leave: Callable[[Ranges], Node]  # a character of these, then any rest of a key with its end
    char: Callable[[Ranges], Node]
    first: Ranges = text.ALL
    rest: Ranges = text.ALL
    empty: bool = True  # whether a key may be empty


@lru_cache(maxsize=4096)
def _json_leave(tail: Node, ranges: Ranges) -> Node:
    return concat(text.canonical(ranges), tail)


def _name_leave(ranges: Ranges) -> Node:
    return concat(text.one(ranges), star(Chars(_NAME_REST)))


# An identifier without its end.
NAME = Alphabet(EMPTY, _name_leave, text.one, _NAME_FIRST, _NAME_REST, empty=False)


def markup(entities: Entities) -> Alphabet:
    """Any text but the empty one, with some characters written as entities, without its end."""
    char = partial(_entity, entities)
    allowed = complement([(0, 0)]).ranges
    anything = star(char(allowed))
    return Alphabet(EMPTY, lambda ranges: concat(char(ranges), anything), char, allowed, allowed, empty=False)


@lru_cache(maxsize=4096)
def _entity(entities: Entities, ranges: Ranges) -> Node:
    plain = intersect(ranges, complement((ord(char), ord(char)) for char, _ in entities).ranges)
    written = (Lit(name.encode()) for char, name in entities if intersect(ranges, ((ord(char), ord(char)),)))
    return alt(*([text.one(plain)] if plain else []), *written)


def json_key(names: Sequence[str], pieces: text.Pieces) -> Node:
    """A JSON string that denotes none of `names`."""
    if not names:
        return pieces.key
    if not pieces.excludes:
        return other_member(names, KeyEnd(QUOTE, text.CANONICAL_TAIL, QUOTE, EMPTY))
    inside = other_keys(names, Alphabet(EMPTY, partial(_json_leave, star(text.CHAR)), text.canonical))
    return concat(QUOTE, Without(inside, pieces.excludes), QUOTE)


def declared_member(name: str, value: Node, pieces: text.Pieces) -> tuple[Node, ...]:
    """A declared key with its value; members whose values are common share their ends."""
    key = encoded(name)
    end = pieces.key_ends.get(id(value))
    if end is not None:
        return Lit(key[:-1]), end.declared
    return Lit(key), pieces.colon, value, *pieces.ws


def other_member(names: Sequence[str], end: KeyEnd) -> Node:
    """A JSON string that denotes none of `names`, with what follows it."""
    if not names:
        return Seq((QUOTE, end.inside))
    if all(map(is_plain, names)):
        return Seq((QUOTE, Unlisted(tuple(names), UNESCAPED, end.inside, _escaped(end.inside), end.quote)))
    return concat(QUOTE, other_keys(names, Alphabet(end.quote, partial(_json_leave, end.inside), text.canonical)))


@by_identity(1024)
def _escaped(tail: Node) -> Node:
    """An escape with what follows it, which no plain name has."""
    return Seq((BACKSLASH, Call(Rule("escaped", Seq((text.ESCAPE, tail))))))


def quoted_member(language: Node, end: KeyEnd) -> Node:
    """A JSON string that denotes a text of `language`, with what follows it; the string is the same for all members."""
    if language == ANYTHING:
        return other_member((), end)
    return Seq((as_string(language), text.NEW_KEY if grows(language) else text.NEW_KEY_OF_FEW, end.behind))


def marked_key(language: Node, entities: Entities) -> Node:
    """A text of `language` with some characters written as entities."""
    return mapped(language, Spelling.of(partial(_entity, entities))) if entities else language


def other_keys(names: Collection[str], alphabet: Alphabet) -> Node:
    """Any key with its end that is none of `names`."""
    longest = max(map(len, names), default=0)
    if longest > MAX_KEY:
        problem = f"a property has a name of {longest} characters, more than {MAX_KEY}, beside undeclared ones"
        raise LimitError(problem, "", "set additionalProperties to false")

    def fold(forks: dict[str, Node], listed: bool, root: bool) -> Node:
        ways = [alphabet.end] if not listed and (not root or alphabet.empty) else []
        outside, inside = _split(alphabet.first if root else alphabet.rest, "".join(forks))
        if outside:
            ways.append(alphabet.leave(outside))
        for char in inside:
            written = alphabet.char(((ord(char), ord(char)),))
            if written != NOTHING:
                ways.append(concat(written, forks[char]))
        return alt(*ways)

    return fold_words(names, fold)


@lru_cache(maxsize=4096)
def _split(allowed: Ranges, chars: str) -> tuple[Ranges, str]:
    """The allowed characters that are not in `chars`, and those that are."""
    outside = intersect(allowed, complement((ord(char), ord(char)) for char in chars).ranges)
    return outside, "".join(char for char in chars if intersect(allowed, ((ord(char), ord(char)),)))
