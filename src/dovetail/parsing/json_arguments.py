"""The arguments of a call as JSON: told as they are written, and mended where models often slip.

A slip is mended only where the result is JSON and sure: another spelling of a constant, a declared string without its
quotes, arguments that were encoded twice, Python's quotes, closing brackets that are missing before the call ends.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dovetail.layouts.styles import PYTHON_DICT
from dovetail.messages import from_json, to_json
from dovetail.parsing import json_text, literals
from dovetail.parsing.declared import WORDS, Declared
from dovetail.parsing.json_text import JsonEnds
from dovetail.parsing.partial_json import missing_end
from dovetail.parsing.signs import PLAIN
from dovetail.parsing.tape import Steps, Tape, literal, peek, peek_behind_space, phrase, run, space
from dovetail.parsing.teller import Teller

_APOSTROPHE = 0x27
_STRING = frozenset(("string",))
_WORD = re.compile(rb"[A-Za-z]*+")
_MAX_WORD = 16
_CAPITALS = frozenset(b"TFN")
_UNQUOTED = frozenset(b"{[-0123456789tf")  # what begins a value that is no string; null stays null


def arguments(teller: Teller, declared: Declared, closers: JsonEnds) -> Steps[bool]:
    """Tell arguments as JSON up to their end; False where they are cut off or make no sense."""
    tape = teller.tape
    match (yield from peek(tape)):
        case 0x7B:
            if (yield from _in_apostrophes(tape)):
                teller.diagnose("quotes", "strings stand in apostrophes")
                tape.look += 1
                return (yield from literals.arguments(teller, _python_dict(), declared))
            closed = yield from _members(teller, declared, closers)
        case 0x22:
            closed = yield from _encoded(teller)
        case _:
            closed = yield from json_text.value(tape, closers, teller)
    return closed or _mended(teller)


@lru_cache(maxsize=1)
def _python_dict() -> literals.Syntax:
    return literals.syntax(PYTHON_DICT)


def _in_apostrophes(tape: Tape) -> Steps[bool]:
    """Whether the keys of the object that comes next stand in apostrophes."""
    offset = tape.look - tape.at
    tape.look += 1
    is_apostrophe = (yield from peek_behind_space(tape)) == _APOSTROPHE
    tape.look = tape.at + offset
    return is_apostrophe


def _members(teller: Teller, declared: Declared, closers: JsonEnds) -> Steps[bool]:
    """An object, member by member; where one makes no sense the rest is told as it is written."""
    tape = teller.tape
    tape.look += 1
    is_open = False  # whether the bracket has been told: it comes with the first value
    while True:
        yield from space(tape)
        if (yield from literal(tape, b"}")):
            teller.text("tool_call")
            return True
        key = yield from json_text.string(tape)
        if key is None or not (yield from phrase(tape, (b":",))):
            break
        yield from space(tape)
        if not (yield from _value(teller, declared.property(key), closers)):
            return False
        is_open = True
        if (yield from peek_behind_space(tape)) == 0x2C:
            tape.look += 1
    tape.look = tape.at
    return (yield from json_text.rest(tape, closers, teller, int(is_open)))


def _value(teller: Teller, declared: Declared, closers: JsonEnds) -> Steps[bool]:
    tape = teller.tape
    first = yield from peek(tape)
    if first in _UNQUOTED and declared.kinds == _STRING:
        return (yield from _unquoted(teller, closers))
    if first in _CAPITALS and (yield from _constant(teller)):
        return True
    return (yield from json_text.value(tape, closers, teller))


def _unquoted(teller: Teller, closers: JsonEnds) -> Steps[bool]:
    """A value where a string is declared: the string that says the same."""
    tape = teller.tape
    teller.text("tool_call")
    if not (yield from json_text.value(tape, closers)):
        tape.look = tape.at
        return (yield from json_text.value(tape, closers, teller))
    raw = teller.decode(tape.data[tape.at : tape.look], tape.at)
    teller.diagnose("type", f"{raw[:40]!r} is not a string")
    teller.json(to_json(raw))
    return True


def _constant(teller: Teller) -> Steps[bool]:
    """A constant that is spelled as Python spells it; False, and nothing told, where none comes."""
    tape = teller.tape
    teller.text("tool_call")
    word = (yield from run(tape, _WORD, _MAX_WORD)).decode()
    if word not in WORDS:
        tape.look = tape.at
        return False
    teller.diagnose("type", f"{word} is not how JSON spells it")
    teller.json(WORDS[word])
    return True


def _encoded(teller: Teller) -> Steps[bool]:
    """A string; one that holds the JSON of an object is told as that object."""
    tape = teller.tape
    closed = yield from json_text.value(tape)
    raw = tape.data[tape.at : tape.look]
    inner = _object_in(raw.translate(PLAIN).decode("utf-8", "replace")) if closed else ""
    if not inner:
        teller.text("tool_call")
        return closed
    teller.diagnose("encoded", "the arguments are JSON in a string")
    teller.json(inner)
    return True


def _object_in(text: str) -> str:
    try:
        inner = from_json(text)
        return inner if isinstance(inner, str) and isinstance(from_json(inner), dict) else ""
    except (ValueError, RecursionError):
        return ""


def _mended(teller: Teller) -> bool:
    """Whether the arguments end at the end of the call and only closing brackets are missing, which are told."""
    tape, call = teller.tape, teller.call
    assert call is not None
    tape.look = tape.at
    if tape.at == len(tape.data):
        return False
    end = missing_end("".join(call.parts))
    if end:
        teller.diagnose("brackets", f"{end} is missing at the end of the arguments")
        teller.json(end)
    return bool(end)
