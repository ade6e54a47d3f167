"""Keys of an object that are not declared: those that match a pattern, and all others; each in its one spelling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from dovetail.grammar import regex
from dovetail.grammar.ir import Lit, Node, Seq, alt, complement
from dovetail.grammar.json_schema.values import characters
from dovetail.grammar.json_schema.values.characters import JSON_QUOTES, QUOTE, KeyEnd, Ranges, intersect
from dovetail.grammar.json_schema.values.strings import ANYTHING, as_string, language, unlisted

Entities = tuple[tuple[str, str], ...]

_NAME = "^[A-Za-z_][A-Za-z_0-9]*$"
_TEXT = r"^[^\0]+$"


def other_member(names: Sequence[str], end: KeyEnd) -> Node:
    """A JSON string that denotes none of `names`, with what follows it."""
    if not names:
        return Seq((QUOTE, end.inside))
    found = unlisted(names, JSON_QUOTES, end.inside, end.quote)
    return quoted_member(language((), words=frozenset(names)), end) if found is None else Seq((QUOTE, found))


def quoted_member(keys: Node, end: KeyEnd) -> Node:
    """A JSON string that denotes a text of `keys`, with what follows it; the string is the same for all members."""
    if keys == ANYTHING:
        return other_member((), end)
    new = characters.NEW_KEY if regex.grows(keys) else characters.NEW_KEY_OF_FEW
    return Seq((as_string(keys, JSON_QUOTES), new, end.after))


def marked_key(names: Sequence[str], keys: Node | None, identifiers: bool, entities: Entities) -> Node:
    """A key that is none of `names`, and one of `keys` where these are given, with some characters as entities."""
    if keys is None:
        keys = language((_NAME if identifiers else _TEXT,), words=frozenset(names))
    return regex.mapped(keys, regex.Spelling.of(partial(_entity, entities))) if entities else keys


@lru_cache(maxsize=4096)
def _entity(entities: Entities, ranges: Ranges) -> Node:
    plain = intersect(ranges, complement((ord(char), ord(char)) for char, _ in entities).ranges)
    written = (Lit(name.encode()) for char, name in entities if intersect(ranges, ((ord(char), ord(char)),)))
    return alt(*([characters.one(plain)] if plain else []), *written)
