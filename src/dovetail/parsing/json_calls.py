"""Calls that are JSON objects, whose keys come in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.parsing import json_text
from dovetail.parsing.layouts import ARGUMENTS, ID, NAME, JsonCall
from dovetail.parsing.tape import Steps, literal, phrase, space

if TYPE_CHECKING:
    from dovetail.parsing.calls import CallReader

_ARGUMENT_KEYS = frozenset(("arguments", "parameters", "args"))  # any of them for any other


class JsonObject:
    """A call as a JSON object whose keys come in any order."""

    def __init__(self, reader: CallReader, shape: JsonCall) -> None:
        self.reader = reader
        self.teller = reader.teller
        self.tape = reader.tape
        self.fields = dict(shape.fields)
        self.inside = shape.inside
        self.name = self.id = ""
        self.early: tuple[int, int] | None = None  # arguments before the name, by their distance from `at`

    def read(self) -> Steps[bool]:
        """One object, told as it comes; False, and nothing told, where it is no call."""
        closed = yield from self._object()
        if closed and self.teller.call is None and self.name and self.reader.plan.tools is not None:
            self._open()  # an untrusted call that never came to its arguments
        call = self.teller.call
        if call is None:
            return False
        if closed and not call.parts:
            self.teller.json("{}")
            call.whole = True
        if not closed:
            self.teller.diagnose("call", "the object of the call is malformed or cut off")
            self.tape.look = self.tape.at
        self.teller.markup()
        if not call.id and self.id:
            call.id = self.reader.way.id_template.format(id=self.id, name=self.name)
        return True

    def _object(self) -> Steps[bool]:
        """The members of an object, up to its end; False where they make no sense."""
        tape = self.tape
        yield from space(tape)
        if not (yield from literal(tape, b"{")):
            return False
        yield from space(tape)
        if (yield from literal(tape, b"}")):
            return True
        while True:
            yield from space(tape)
            key = yield from json_text.string(tape)
            if key is None or not (yield from phrase(tape, (b":",))):
                return False
            yield from space(tape)
            if not (yield from self._member(key)):
                return False
            self._markup()
            yield from space(tape)
            if (yield from literal(tape, b",")):
                continue
            return (yield from literal(tape, b"}"))

    def _markup(self) -> None:
        """Once the call is open, what has been looked at is markup."""
        if self.teller.call is not None:
            self.teller.markup()

    def _member(self, key: str) -> Steps[bool]:
        field = self.fields.get(key)
        if field is None and key in _ARGUMENT_KEYS and not _ARGUMENT_KEYS.isdisjoint(self.fields):
            field = ARGUMENTS
        if field is NAME and not self.name:
            self.name = (yield from json_text.string(self.tape)) or ""
            return bool(self.name) and (self._open() if self.reader.sure else self.reader.may_be(self.name))
        if field is ID:
            return (yield from self._read_id())
        if field is ARGUMENTS and not self._has_arguments():
            return (yield from self._arguments())
        if key == self.inside and self.inside:
            return (yield from self._object())
        if field is None and not self.reader.sure:
            # Some other JSON, unless it says itself that it is a call.
            return key == "type" and (yield from json_text.string(self.tape)) == "function"
        return (yield from json_text.value(self.tape, self.reader.way.closers))

    def _has_arguments(self) -> bool:
        call = self.teller.call
        return self.early is not None or (call is not None and bool(call.parts))

    def _read_id(self) -> Steps[bool]:
        start = self.tape.look - self.tape.at
        if not (yield from json_text.value(self.tape)):
            return False
        written = self.tape.data[self.tape.at + start : self.tape.look]
        self.id = self.teller.decode(written, self.tape.at + start).strip('"')
        return True

    def _arguments(self) -> Steps[bool]:
        """Told as they come where the name is known; held until it is where it is not."""
        if self.teller.call is None and not (self.name and self._open()):
            if self.name:
                return False
            start = self.tape.look - self.tape.at
            if not (yield from json_text.value(self.tape, self.reader.way.closers)):
                return False
            self.early = (start, self.tape.look - self.tape.at)
            return True
        self.teller.markup()
        yield from self.reader.arguments(None, ())
        call = self.teller.call
        assert call is not None
        return call.whole and not call.broken

    def _open(self) -> bool:
        tape, teller = self.tape, self.teller
        look = tape.look
        start, end = self.early or (0, 0)
        if self.early:
            tape.look = tape.at + start
        if not self.reader.opens(self.name, self.id):
            tape.look = look
            return False
        if self.early:
            tape.look = tape.at + end - start
            teller.text("tool_call")
            assert teller.call is not None
            teller.call.whole = True
            tape.look = look
            teller.markup()
        return True
