"""The output that a reader has before it, and the ways to look ahead in it.

A reader is a generator: it looks ahead as far as it needs, tells what it is sure of, and yields where it has to see
more. Whatever it has looked at but not told stays on the tape, so a reader that was wrong goes back to `at`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeVar

from dovetail.parsing.signs import PLAIN
from dovetail.parsing.stops import TurnEnds

T = TypeVar("T")
Steps = Generator[None, None, T]

_SPACE = re.compile(rb"[ \t\r\n]*+")
# What tokenizers write for a blank and for the end of a line, where an engine has not turned it back.
_SPACE_SIGNS = ("Ġ".encode(), "Ċ".encode(), "▁".encode())
_SIGN_FIRSTS = frozenset(sign[0] for sign in _SPACE_SIGNS)


class Tape:
    """Bytes not yet told, from `at` on, looked at up to `look`; `base` is the offset of the first one in the output.

    `final` says that nothing will follow, `cut` that the output was cut off and half of what it says may be missing.
    A look ahead that fails only because the output is over sets `starved`.
    """

    __slots__ = ("at", "base", "cut", "data", "final", "look", "starved", "turn_ends")

    def __init__(self, turn_ends: TurnEnds) -> None:
        self.turn_ends = turn_ends
        self.data = bytearray()
        self.base = 0
        self.at = 0
        self.look = 0
        self.final = False
        self.cut = False
        self.starved = False

    @property
    def over(self) -> bool:
        """Whether the output has ended, by itself or at a limit."""
        return self.final or self.cut

    @property
    def ends(self) -> bool:
        """Whether all of an output that has come to its end has been looked at."""
        return self.final and self.look == len(self.data)

    def compact(self) -> None:
        """Drop what has been told."""
        at = self.at
        if at:
            del self.data[:at]
            self.base += at
            self.look -= at
            self.at = 0

    def before_turn_end(self) -> int:
        """Where text that is not told yet ends, whether or not the end of the turn follows."""
        return self.turn_ends.before(self.data, self.at, self.final)

    def after_space(self) -> int:
        """Where white space ends that comes next."""
        blanks = _SPACE.match(self.data, self.look)
        assert blanks is not None
        return blanks.end()

    def blank(self) -> bool:
        """Whether only white space is left to look at."""
        return self.after_space() == len(self.data)


def space(tape: Tape) -> Steps[bool]:
    """Skip white space; False where the output ends with it."""
    while True:
        tape.look = tape.after_space()
        if tape.look < len(tape.data):
            return True
        if tape.final:
            tape.starved = True
            return False
        yield


def literal(tape: Tape, word: bytes) -> Steps[bool]:
    """Whether this word comes next; if so, it has been looked at."""
    while True:
        seen = tape.data[tape.look : tape.look + len(word)].translate(PLAIN)
        if seen == word:
            tape.look += len(word)
            return True
        if len(seen) == len(word) or not word.startswith(seen):
            return False
        if tape.final:
            tape.starved = True
            return False
        yield


def phrase(tape: Tape, parts: tuple[bytes, ...]) -> Steps[bool]:
    """Whether these words come next, with any white space before each; none at all always come next."""
    is_inside = False
    for word in parts:
        yield from space(tape)
        if is_inside and tape.data[tape.look : tape.look + 1] and tape.data[tape.look] in _SIGN_FIRSTS:
            yield from _space_signs(tape)
        if not (yield from literal(tape, word)):
            return False
        is_inside = True
    return True


def _space_signs(tape: Tape) -> Steps[None]:
    """Skip signs for white space."""
    while True:
        for sign in _SPACE_SIGNS:
            if (yield from literal(tape, sign)):
                break
        else:
            return


def closing(tape: Tape, words: tuple[bytes, ...]) -> Steps[bool]:
    """Look at as much of these closing words as comes next, the first ones of which may be missing.

    True where the last word has come; a half word at the very end of the output is looked at too.
    """
    last = -1
    for number, word in enumerate(words):
        offset = tape.look - tape.at
        yield from space(tape)
        if (yield from literal(tape, word)):
            last = number
        elif tape.final and word.startswith(tape.data[tape.look :].translate(PLAIN)):
            tape.look = len(tape.data)
            return False
        else:
            tape.look = tape.at + offset
    return last == len(words) - 1


def one_of(tape: Tape, choices: tuple[tuple[bytes, ...], ...]) -> Steps[int]:
    """Which of these phrases comes next, or -1."""
    start = tape.look - tape.at
    for number, parts in enumerate(choices):
        tape.look = tape.at + start
        if (yield from phrase(tape, parts)):
            return number
    tape.look = tape.at + start
    return -1


def run(tape: Tape, pattern: re.Pattern[bytes], limit: int) -> Steps[bytes]:
    """The bytes that match `pattern`, a run of some class; nothing where it is longer than `limit`."""
    while True:
        match = pattern.match(tape.data, tape.look)
        end = match.end() if match else tape.look
        if end - tape.look > limit:
            return b""
        if end < len(tape.data) or tape.final:
            tape.starved |= end == len(tape.data)
            taken = bytes(tape.data[tape.look : end].translate(PLAIN))
            tape.look = end
            return taken
        yield


def peek(tape: Tape) -> Steps[int]:
    """The next byte, or -1 at the end."""
    while tape.look >= len(tape.data):
        if tape.final:
            tape.starved = True
            return -1
        yield
    return tape.data[tape.look]


def peek_behind_space(tape: Tape) -> Steps[int]:
    """The next byte that is no white space, or -1 at the end."""
    yield from space(tape)
    return (yield from peek(tape))


def shared_start(tape: Tape, pad: bytes) -> Steps[None]:
    """Skip as much of `pad` as comes next."""
    for byte in pad:
        if (yield from peek(tape)) != byte:
            return
        tape.look += 1
