"""Keys of an object: the declared ones, those that match a pattern, and all others; each in its one spelling."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from dovetail.errors import LimitError
from dovetail.grammar import regex
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
from .strings import ANYTHING, as_string
from .text import BACKSLASH, JSON_QUOTES, QUOTE, KeyEnd, Ranges, canonical, concat, intersect

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


def _json_leave(tail: Node, ranges: Ranges) -> Node:
    return concat(canonical(ranges, JSON_QUOTES), tail)


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


def other_key(names: Sequence[str], excludes: tuple[bytes, ...]) -> Node:
    """A JSON string that denotes none of `names` and contains none of `excludes`."""
    if not excludes:
        return other_member(names, KeyEnd(QUOTE, JSON_QUOTES.tail, QUOTE, EMPTY))
    inside = other_keys(names, _json(EMPTY, star(JSON_QUOTES.char)))
    return concat(QUOTE, Without(inside, excludes), QUOTE)


def other_member(names: Sequence[str], end: KeyEnd) -> Node:
    """A JSON string that denotes none of `names`, with what follows it."""
    if not names:
        return Seq((QUOTE, end.inside))
    if all(map(_is_unescaped, names)):
        unescaped, escaped = JSON_QUOTES.unescaped, _escaped(end.inside)
        return Seq((QUOTE, Unlisted(tuple(names), unescaped, end.inside, escaped, end.quote)))
    return concat(QUOTE, other_keys(names, _json(end.quote, end.inside)))


def _json(end: Node, tail: Node) -> Alphabet:
    return Alphabet(end, partial(_json_leave, tail), partial(canonical, quotes=JSON_QUOTES))


def _is_unescaped(name: str) -> bool:
    """Whether a key stands in a JSON string as it is."""
    return name.isprintable() and '"' not in name and "\\" not in name


@by_identity(1024)
def _escaped(tail: Node) -> Node:
    """An escape with what follows it, which no unescaped name has."""
    return Seq((BACKSLASH, Call(Rule("escaped", Seq((JSON_QUOTES.escape, tail))))))


def quoted_member(language: Node, end: KeyEnd) -> Node:
    """A JSON string that denotes a text of `language`, with what follows it; the string is the same for all members."""
    if language == ANYTHING:
        return other_member((), end)
    new = text.NEW_KEY if regex.grows(language) else text.NEW_KEY_OF_FEW
    return Seq((as_string(language, JSON_QUOTES), new, end.after))


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
