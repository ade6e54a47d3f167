"""Arguments between quotes as they are, read as JSON: a value ends at a quote behind which only an end can come."""

from __future__ import annotations

import re
from functools import lru_cache

from dovetail.messages import to_json
from dovetail.parsing.declared import Declared
from dovetail.parsing.layouts import Quoted
from dovetail.parsing.signs import SIGN_CLASS, either
from dovetail.parsing.stops import Stops
from dovetail.parsing.tagged import brackets
from dovetail.parsing.tape import Steps, literal, peek, phrase, run, space
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import look_for

_COMPOSITE = frozenset(("object", "array", "null"))
_BRACKETS = frozenset(b"{[")
MAX_KEY = 4096  # bytes

_KEY = re.compile(rb"[^\s=:,(){}\[\]\"'<>" + SIGN_CLASS + b"]*+")
_NO_STOPS = Stops([])


class Quotes:
    """One such syntax, ready to be read; `ends` are the texts that end a value, each with the quote."""

    __slots__ = ("assign", "begin", "end", "python", "quote", "separator", "stops")

    def __init__(self, style: Quoted, ends: tuple[str, ...]) -> None:
        self.begin = style.begin.encode()
        self.end = style.end.encode()
        self.assign = style.assign.strip().encode()
        self.separator = style.separator.strip().encode()
        self.quote = style.quote.encode()
        self.python = frozenset(style.python)
        self.stops = Stops([("", end.encode()) for end in ends], either)


@lru_cache(maxsize=64)
def quotes(style: Quoted, ends: tuple[str, ...]) -> Quotes:
    """A syntax with its searches compiled."""
    return Quotes(style, ends)


def arguments(teller: Teller, quotes: Quotes, declared: Declared) -> Steps[bool]:
    """Tell the arguments behind `begin`, up to and with `end`; False where they are cut off or malformed."""
    tape, before = teller.tape, "{"
    while True:
        yield from space(tape)
        if (yield from literal(tape, quotes.end)):
            teller.json("{}" if before == "{" else "}")
            return True
        key = (yield from run(tape, _KEY, MAX_KEY)).decode("utf-8", "replace")
        if not key or not (yield from phrase(tape, (quotes.assign, quotes.quote))):
            return False
        value = yield from _value(teller, quotes, declared.property(key))
        if value is None:
            return False
        teller.json(f"{before}{to_json(key)}: {value}")
        before = ", "
        yield from phrase(tape, (quotes.separator,))


def _value(teller: Teller, quotes: Quotes, declared: Declared) -> Steps[str | None]:
    """A value as JSON, up to and with its quote; None where it is cut off."""
    tape = teller.tape
    start = tape.look - tape.at
    # The strings inside of brackets may hold what ends a value.
    nested = declared.kinds <= _COMPOSITE and (yield from peek(tape)) in _BRACKETS
    if nested and not (yield from brackets(tape, _NO_STOPS)):
        tape.look = tape.at + start
    size = yield from look_for(tape, quotes.stops)
    if not size:
        return None
    tape.look -= size
    raw = teller.decode(tape.data[tape.at + start : tape.look], tape.at + start)
    tape.look += len(quotes.quote)
    text, as_declared = declared.as_json(raw, declared.kinds, quotes.python)
    if not as_declared:
        teller.diagnose("type", f"{raw[:40]!r} is not a {' or '.join(sorted(declared.kinds))}")
    return text
