"""Grammar text to tokens.

The two spellings differ where they can be told apart by the scanner alone: names may hold `_` and `.` (xgrammar) and
may begin with a digit (llama.cpp), a lone `.` is any character and `<...>` a vocabulary token (llama.cpp), and an
opening `(=` begins xgrammar's lookahead hint.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NoReturn

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir

MAX_TEXT = 1 << 22
MAX_COUNT = (1 << 31) - 1

Value = str | int | bool | ir.Node | None


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `kind` is its own spelling for punctuation, else head, name, number, string, class, token or end."""

    kind: str
    value: Value
    offset: int

    def __str__(self) -> str:
        names = {"head": "a new rule", "end": "the end of the grammar", "string": "a string", "class": "a class"}
        if self.kind in names:
            return names[self.kind]
        return f"`{self.value}`" if self.kind in ("name", "number") else f"`{self.kind}`"


@dataclass(frozen=True, slots=True)
class Source:
    """The text, and where its lines begin."""

    text: str
    lines: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Source:
        """Any of the three line ends counts as one."""
        return cls(text, (0, *(line.end() for line in re.finditer(r"\r\n|\r|\n", text))))

    def path(self, offset: int) -> str:
        """The place of `offset` as people say it."""
        line = bisect_right(self.lines, offset)
        return f"line {line}, column {offset - self.lines[line - 1] + 1}"

    def fail(self, problem: str, offset: int, fix: str = "") -> NoReturn:
        """Raise the error for what stands at `offset`."""
        raise GrammarError(problem, self.path(offset), fix)


_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_WORD = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_OPTIONS = re.compile(r'\[((?:[^\]"\r\n]|"(?:\\.|[^"\\\r\n])*")*)\](?=\s*::=)')
# Possessive: a comment may not be read again in pieces when no assignment follows.
_ASSIGN = re.compile(r"[ \t\r\n]*+(?:#[^\r\n]*+[ \t\r\n]*+)*::=")
_TOKEN = re.compile(r"(!?)<(?:\[([0-9]+)\]|([^<>\[\]\s][^<>\r\n]*))>")
_PUNCTUATION = ("(=", "|", "(", ")", "*", "+", "?", "{", "}", ",", "=", ".")
_HEX = {"x": (1, 2), "u": (4, 4), "U": (8, 8)}
_ESCAPES = {
    "n": 10, "r": 13, "t": 9, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27, "0": 0,
    "\\": 92, '"': 34, "'": 39, "?": 63, "/": 47, "[": 91, "]": 93,
}  # fmt: skip
_CLASS_ESCAPES = _ESCAPES | {"-": 45, "^": 94}


def scan(text: str) -> tuple[Source, list[Token]]:
    """All tokens of `text`; the last one is `end`."""
    if len(text) > MAX_TEXT:
        raise LimitError(f"the grammar has {len(text)} characters, more than {MAX_TEXT}", "", "split the grammar")
    source = Source.of(text)
    tokens: list[Token] = []
    at = 0
    line_start = True
    while True:
        start = at
        at = _end(_SKIP, text, at)
        line_start = start == 0 or "\n" in text[start:at] or "\r" in text[start:at]
        if at == len(text):
            return source, [*tokens, Token("end", None, at)]
        token, at = _next(source, at, line_start)
        tokens.append(token)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _next(source: Source, at: int, line_start: bool) -> tuple[Token, int]:
    text = source.text
    if word := _WORD.match(text, at):
        return _word(source, word.group(), at, line_start)
    if text[at] == '"':
        return _string(source, at)
    if text[at] == "[":
        return _class(source, at)
    if token := _TOKEN.match(text, at):
        negated, number, name = token.groups()
        which = _bounded(source, number, at) if number else f"<{name}>"
        return Token("token", ir.Tokens((which,), exclude=bool(negated)), at), token.end()
    for mark in _PUNCTUATION:
        if text.startswith(mark, at):
            return Token(mark, None, at), at + len(mark)
    if text.startswith("::=", at):
        source.fail("`::=` without a rule name before it", at, "write `name ::=` at the beginning of a line")
    return source.fail(f"unexpected character {text[at]!r}", at, 'put literal text in quotes, as in "text"')


def _word(source: Source, word: str, at: int, line_start: bool) -> tuple[Token, int]:
    text, end = source.text, at + len(word)
    options = _OPTIONS.match(text, end)
    assign = _ASSIGN.match(text, options.end() if options else end)
    if assign:
        if not line_start:
            source.fail(f"the rule `{word}` does not begin its line", at, "put each rule on a line of its own")
        if options:
            return Token("head", f"{word}[{options.group(1)}]", at), assign.end()
        return Token("head", word, at), assign.end()
    return Token("number" if _NUMBER.match(word) else "name", word, at), end


def _bounded(source: Source, digits: str, at: int) -> int:
    if len(digits.lstrip("0")) > 10 or int(digits) > MAX_COUNT:
        raise LimitError(f"the number {digits[:20]} is above {MAX_COUNT}", source.path(at), "use a smaller number")
    return int(digits)


def _string(source: Source, at: int) -> tuple[Token, int]:
    text, start = source.text, at
    parts: list[str] = []
    at += 1
    while at < len(text) and text[at] not in '"\r\n\0':
        if text[at] == "\\":
            code, at = _escape(source, at, _ESCAPES)
            parts.append(chr(code))
        else:
            parts.append(text[at])
            at += 1
    if at == len(text) or text[at] != '"':
        source.fail("the string does not end on its line", start, 'close it with ", and write a line break as \\n')
    return Token("string", "".join(parts), start), at + 1


def _class(source: Source, at: int) -> tuple[Token, int]:
    text, start = source.text, at
    negated = text.startswith("[^", at)
    at += 2 if negated else 1
    ranges: list[tuple[int, int]] = []
    while at < len(text) and text[at] not in "]\r\n\0":
        item = at
        low, at = _member(source, at)
        high = low
        if text.startswith("-", at) and at + 1 < len(text) and text[at + 1] not in "]\r\n":
            high, at = _member(source, at + 1)
        if high < low:
            source.fail(f"the range runs backwards from {chr(low)!r} to {chr(high)!r}", item, "swap its ends")
        ranges.append((low, high))
    if at == len(text) or text[at] != "]":
        source.fail("the class does not end on its line", start, "close it with ], and write a line break as \\n")
    return Token("class", ir.complement(ranges) if negated else ir.chars(ranges), start), at + 1


def _member(source: Source, at: int) -> tuple[int, int]:
    if source.text[at] == "\\":
        return _escape(source, at, _CLASS_ESCAPES)
    return ord(source.text[at]), at + 1


def _escape(source: Source, at: int, escapes: dict[str, int]) -> tuple[int, int]:
    text, mark = source.text, source.text[at + 1 : at + 2]
    if mark in escapes:
        return escapes[mark], at + 2
    if mark not in _HEX or not mark:
        source.fail(f"unknown escape \\{mark}", at, "write the character itself, or \\\\ for a backslash")
    least, most = _HEX[mark]
    digits = re.match(f"[0-9A-Fa-f]{{{least},{most}}}", text[at + 2 : at + 2 + most])
    if digits is None:
        source.fail(f"\\{mark} needs {most} hexadecimal digits", at, "pad the number with zeros")
    code = int(digits.group(), 16)
    if code > ir.MAX_CODE_POINT or 0xD800 <= code <= 0xDFFF:
        source.fail(f"\\{mark}{digits.group()} is not a character", at, "write astral characters as \\U0001F600")
    return code, at + 2 + digits.end()
