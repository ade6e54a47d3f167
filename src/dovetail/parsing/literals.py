"""Arguments as the literals of a call syntax, such as Python's, read as JSON."""

from __future__ import annotations

import re
import string
from functools import lru_cache

from dovetail.layouts.styles import Literals
from dovetail.messages import from_json, to_json
from dovetail.parsing.declared import Declared
from dovetail.parsing.noise import telling
from dovetail.parsing.signs import SIGN_CLASS, either
from dovetail.parsing.stops import Stops
from dovetail.parsing.tape import Steps, literal, one_of, peek, peek_behind_space, run, space
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import escaped_text

MAX_DEPTH = 64
MAX_WORD = 4096  # bytes of a key, a number or a constant

_STRING = frozenset(("string",))
_KEY = re.compile(rb"[^\s=:,(){}\[\]\"'<>" + SIGN_CLASS + b"]*+")
_WORD = re.compile(rb"[^\s,:(){}\[\]\"'<>" + SIGN_CLASS + b"]*+")
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[^uUx])", re.DOTALL)
_ESCAPE_START = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?)?\Z")
_NO_END = frozenset(b"\\/-_.$%&*+@~" + string.ascii_letters.encode() + string.digits.encode())  # behind a string
_JSON_ESCAPES = frozenset(b'"\\/bfnrt')


class Syntax:
    """One call syntax, ready to be read."""

    __slots__ = ("assign", "begin", "constants", "end", "escapes", "passes", "quotes", "separator", "stops")

    def __init__(self, literals: Literals) -> None:
        self.begin = literals.begin.encode()
        self.end = literals.end.encode()
        self.assign = literals.assign.strip().encode()
        self.separator = literals.separator.strip().encode()
        self.quotes = tuple(quote.encode() for quote in literals.quotes)
        self.escapes = literals.escapes
        self.constants = {"true": "true", "false": "false", "null": "null"}
        self.constants |= {literals.true: "true", literals.false: "false", literals.null: "null"}
        escapes = [("", b"\\")] if literals.escapes else []
        self.stops = [Stops([("", quote), *escapes], either) for quote in self.quotes]
        self.passes = [re.compile(rf'["\\\x00-\x1f]|{stops.quick.pattern}') for stops in self.stops]


@lru_cache(maxsize=64)
def syntax(literals: Literals) -> Syntax:
    """A call syntax with its searches compiled."""
    return Syntax(literals)


def arguments(teller: Teller, syntax: Syntax, declared: Declared, closers: tuple[bytes, ...] = ()) -> Steps[bool]:
    """Tell the arguments behind `begin`, up to and with `end`; False where they are cut off or malformed.

    What is still open ends where one of `closers` comes, the marks that close the call.
    """
    return (yield from _Reader(teller, syntax, closers).members(syntax.end, declared, 0))


class _Reader:
    def __init__(self, teller: Teller, syntax: Syntax, closers: tuple[bytes, ...]) -> None:
        self.teller = teller
        self.tape = teller.tape
        self.syntax = syntax
        self.closers = telling(closers)

    def members(self, end: bytes, declared: Declared, depth: int) -> Steps[bool]:
        """Keys and values up to and with `end`."""
        teller, tape = self.teller, self.tape
        before = "{"
        while True:
            yield from space(tape)
            if (yield from literal(tape, end)) or (yield from self._is_closed(end)):
                teller.json("{}" if before == "{" else "}")
                return True
            key = yield from self._key(depth)
            if key is None:
                return False
            teller.json(f"{before}{to_json(key)}: ")
            before = ", "
            if not (yield from self._value(declared.property(key), depth)) or not (yield from self._gap(end)):
                return False

    def _key(self, depth: int) -> Steps[str | None]:
        tape = self.tape
        quoted = yield from self._quote()
        if quoted >= 0:
            stops = self.syntax.stops[quoted]
            start = tape.look - tape.at
            while not (stop := stops.find.search(tape.data, tape.at + start)):
                if tape.final or len(tape.data) - tape.at > MAX_WORD:
                    return None
                yield
            key = self.teller.decode(tape.data[tape.at + start : stop.start()], tape.at + start)
            tape.look = stop.end()
        else:
            key = (yield from run(tape, _KEY, MAX_WORD)).decode("utf-8", "replace")
        yield from space(tape)
        assign = self.syntax.assign
        known = bool(key or quoted >= 0) and (
            (yield from literal(tape, assign)) or (depth > 0 and (yield from literal(tape, b":")))
        )
        return key if known else None

    def _gap(self, end: bytes) -> Steps[bool]:
        """A separator, which is taken, or the end, which is not."""
        tape = self.tape
        yield from space(tape)
        if (yield from literal(tape, self.syntax.separator)):
            return True
        offset = tape.look - tape.at
        closes = (yield from literal(tape, end)) or (yield from self._closes())
        tape.look = tape.at + offset
        return closes

    def _closes(self) -> Steps[bool]:
        """Whether the call is closed here, although its arguments are open."""
        return (yield from one_of(self.tape, tuple((word,) for word in sorted(self.closers)))) >= 0

    def _is_closed(self, end: bytes) -> Steps[bool]:
        """Whether the call is closed here, which is not looked at, without the end of what is open."""
        offset = self.tape.look - self.tape.at
        closes = yield from self._closes()
        self.tape.look = self.tape.at + offset
        if closes:
            self.teller.diagnose("brackets", f"{end.decode()} is missing at the end of the call")
        return closes

    def _value(self, declared: Declared, depth: int) -> Steps[bool]:
        tape = self.tape
        yield from space(tape)
        quote = yield from self._quote()
        if quote >= 0:
            return (yield from self._string(quote))
        if (yield from peek(tape)) == 0x7B and depth < MAX_DEPTH:
            tape.look += 1
            return (yield from self.members(b"}", declared, depth + 1))
        if (yield from peek(tape)) == 0x5B and depth < MAX_DEPTH:
            tape.look += 1
            return (yield from self._items(declared, depth + 1))
        return (yield from self._word(declared))

    def _items(self, declared: Declared, depth: int) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        before, index = "[", -1
        while True:
            index += 1
            yield from space(tape)
            if (yield from literal(tape, b"]")) or (yield from self._is_closed(b"]")):
                teller.json("[]" if before == "[" else "]")
                return True
            teller.json(before)
            before = ", "
            if not (yield from self._value(declared.item(index), depth)) or not (yield from self._gap(b"]")):
                return False

    def _word(self, declared: Declared) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        word = (yield from run(tape, _WORD, MAX_WORD)).decode("utf-8", "replace")
        if not word or (tape.final and tape.look == len(tape.data)):
            return False
        text = self.syntax.constants.get(word, word)
        try:
            from_json(text)
        except ValueError:
            text, _ = declared.as_json(word, declared.kinds)
            teller.diagnose("type", f"{word[:40]!r} is no literal; it is taken as {text}")
        if text != "null" and text[0] != '"' and declared.kinds == _STRING:
            teller.diagnose("type", f"{word[:40]!r} is not a string")
            text = to_json(word)
        teller.json(text)
        return True

    def _quote(self) -> Steps[int]:
        """Which quote comes next, or -1."""
        for number, quote in enumerate(self.syntax.quotes):
            if (yield from literal(self.tape, quote)):
                return number
        return -1

    def _string(self, quote: int) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        teller.json('"')
        while True:
            if not (yield from escaped_text(teller, self.syntax.stops[quote], self.syntax.passes[quote])):
                return False
            if not self.syntax.escapes or tape.data[tape.at] != 0x5C:
                if self.syntax.escapes and (yield from self._goes_on()):
                    teller.diagnose("quotes", "a quote inside a string is not escaped")
                    teller.escaped()
                    continue
                teller.json('"')
                return True
            tape.look = tape.at
            while not (escape := _ESCAPE.match(tape.data, tape.at)):
                if tape.final or not _ESCAPE_START.match(tape.data, tape.at):
                    break
                yield
            tape.look = escape.end() if escape else tape.at + 1
            teller.json(_json_escape(bytes(tape.data[tape.at : tape.look])))

    def _goes_on(self) -> Steps[bool]:
        """Whether text follows the quote that has been looked at, which then ends no string."""
        tape = self.tape
        offset = tape.look - tape.at
        following = yield from peek_behind_space(tape)
        tape.look = tape.at + offset
        return following in _NO_END


def _json_escape(escape: bytes) -> str:
    """A backslash escape as JSON has it; a backslash that escapes nothing stands for itself."""
    if len(escape) == 2 and escape[1] in _JSON_ESCAPES:
        return escape.decode()
    if len(escape) > 2:
        code = int(escape[2:], 16)
        if escape[1] == 0x75:
            return escape.decode()
        return to_json(chr(code))[1:-1] if code <= 0x10FFFF else to_json(escape.decode())[1:-1]
    if escape[1:] in (b"'", b"\n"):
        return "'" if escape[1:] == b"'" else ""
    return to_json(escape.decode("utf-8", "replace"))[1:-1]
