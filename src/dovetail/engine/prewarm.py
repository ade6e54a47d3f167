"""Masks that nearly every request needs, worked out once when a vocabulary is made."""

from __future__ import annotations

import numpy as np

from dovetail import _core
from dovetail.grammar import json_schema
from dovetail.grammar.ir import Rule, Text

# Any JSON value: inside strings, after keys, in numbers and between the elements of arrays and objects.
JSON_PREFIXES = (
    b"",
    b'"',
    b'"a\\',
    b"[",
    b"[1",
    b"{",
    b'{"',
    b'{"a"',
    b'{"a":',
    b'{"a":1',
    b'{"a":"',
    b'{"a":""',
    b"-",
)
MANY_TOKENS = 10_000
FEW_CHARS = 9  # lower bounds that schemas ask for
LONG_ADDRESS = 255  # characters, the bound that many schemas have
# The beginnings of a name in a host, by what may follow: where it may end, have a hyphen, or come near a limit of its
# length, as all that are longer than a few letters do.
_NAMES = (*(b"x" * length for length in (*range(1, 18), 20, 30, 60)), b"x-", b"xx-", b"xxx-", b"xxxx-", b"xxxxxxx-")
_HOSTS = (*_NAMES, b"example.", *(b"example." + name for name in _NAMES))
# The formats whose masks are the most work, each with the places where it goes on in another way; then some that take
# long to read.
FORMATS = {
    "email": (
        b'"',
        *(b'"' + b"u" * length for length in (*range(1, 18), 60)),
        b'"user.',
        b'"user@',
        *(b'"user@' + host for host in _HOSTS),
    ),
    "hostname": (b'"', *(b'"' + host for host in _HOSTS)),
    "uri": (
        b'"',
        b'"https',
        b'"https:',
        b'"https://',
        b'"https://example.com',
        b'"https://example.com:',
        b'"https://example.com/a',
        b'"https://example.com/?a',
    ),
    "date-time": (b'"',),
    "time": (b'"',),
    "ipv6": (b'"', b'"1', b'"1:'),
    "uri-reference": (b'"',),
}
# Characters that words and text are made of, fewer before more: a loop over others that have these among them is little
# work then. Of those beyond ASCII it is all that begin with a byte with which no space or separator does.
_BEYOND = r"\u00c0-\u0fff\u4000-\ud7ff\ue000-\uefff\u{10000}-\u{10ffff}"
WORDS = ("a-z", "a-zA-Z", "a-zA-Z0-9", f"a-zA-Z0-9{_BEYOND}")


def prewarm(store: _core.Store, longest: int) -> list[_core.Grammar]:
    """Fill the caches for JSON and free text; who keeps the grammars keeps their automata.

    Inside a string of bounded length the mask depends on how much may still come, up to the length of the longest
    token. All bounded strings are one rule, so these few dozen masks serve every maxLength.
    """
    mask = np.zeros((store.size + 31) // 32, dtype=np.int32)
    kept = []

    def warm(rule: Rule, *prefixes: bytes) -> None:
        grammar = store.compile(rule)
        kept.append(grammar)
        for prefix in prefixes:
            matcher = grammar.matcher()
            matcher.accept_bytes(prefix)
            matcher.fill_mask(mask)

    warm(Rule("text", Text()), b"")
    warm(Rule("json", json_schema.lower(True)), *JSON_PREFIXES)
    # A key that is none of the declared ones ends as any other string, wherever it leaves them.
    warm(Rule("open", json_schema.lower({"properties": {"a": True}}, strict=False)), b'{"b', b'{"')
    warm(Rule("some", json_schema.lower({"type": "string", "minLength": 1})), b'"', b'"a')
    if store.size >= MANY_TOKENS:  # with few such a walk is short
        for name, prefixes in FORMATS.items():
            warm(Rule(name, json_schema.lower({"type": "string", "format": name})), *prefixes)
        # What a pattern that has no anchors leaves free, before and behind it, is the same for all of them.
        warm(Rule("search", json_schema.lower({"type": "string", "pattern": "ab"})), b'"', b'"a', b'"b', b'"ab')
        for chars in WORDS:
            for pattern in (f"[{chars}]+", f"[{chars} ]+", f"[{chars}]+( [{chars}]+)*"):
                warm(Rule("words", json_schema.lower({"type": "string", "pattern": f"^{pattern}$"})), b'"', b'"a')
        # Whether an address can be too long takes a look at all of its pattern.
        json_schema.lower({"type": "string", "format": "email", "maxLength": LONG_ADDRESS})
    for least in range(2, FEW_CHARS):
        warm(Rule("string", json_schema.lower({"type": "string", "minLength": least})), b'"')
    for most in range(1, longest + 3):
        warm(Rule("string", json_schema.lower({"type": "string", "maxLength": most})), b'"')
    return kept
