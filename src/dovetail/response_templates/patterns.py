"""What a delimiter's regular expression needs around it, read off its text.

The `regex` module answers partial searches exactly, but not for `$`, `\\Z` and word boundaries, which take the end of
the text so far for the end of the output. `Pattern.edged` spells them as lookarounds, which do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_END = r"(?![\s\S])"
# Before a lookbehind: a lazy repetition that ends at one does not report that it ran into the end of the text.
_TOUCH = r"(?=[\s\S]?)"
_REWRITTEN = {
    "b": rf"(?:{_TOUCH}(?:(?<=\w)(?!\w)|(?<!\w)(?=\w)))",
    "B": rf"(?:{_TOUCH}(?:(?<=\w)(?=\w)|(?<!\w)(?!\w)))",
    "m": rf"(?:{_TOUCH}(?<!\w)(?=\w))",
    "M": rf"(?:{_TOUCH}(?<=\w)(?!\w))",
    "Z": _END,
    "z": _END,
}
_LINE_END = rf"(?:{_END}|(?=\n{_END}))"
# Where the search began, a reset of the match start, a whole grapheme: none can be told from a part of the text.
_PATIENT_ESCAPES = "GKX"
_FLAGS = re.compile(r"\(\?([A-Za-z0-9-]+)([:)])")
_PLAIN_FLAGS = frozenset("aisu-")
_RECURSION = re.compile(r"\(\?(?:R|&|P>|[0-9+-][0-9]*\))")
_FUZZY = re.compile(r"\{[^0-9,}]")
_STEPS = 1e6  # that many take some milliseconds
_BRACED = re.compile(r"\\[pPNxuU]\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """The facts about one expression that the parser relies on."""

    edged: str  # the same language, with everything that looks at the end of the text spelled as a lookaround
    context: int = 0  # how many characters before a match the expression may look at
    looks_behind: bool = False
    positional: bool = False  # whether it asks for the start of the text or a word boundary
    combines: bool = True  # whether it may be one branch of a larger expression
    patient: bool = False  # whether it must see the whole output before anything is decided
    loops: int = 0  # how many repetitions it has
    options: int = 0  # how many parts may be left out
    wild: bool = False  # whether it repeats groups, so that its cost may be exponential
    needs: str = ""  # a text that every match and what it looks ahead at contain

    @staticmethod
    def read(source: str) -> Pattern:
        """The facts about `source`."""
        reader = _Reader(source)
        reader.run()
        return Pattern(
            "".join(reader.edged),
            len(source) if reader.looks_behind else int(reader.positional),
            reader.looks_behind,
            reader.positional,
            reader.combines,
            reader.patient,
            reader.loops,
            reader.options,
            reader.wild,
            _needed(source),
        )

    @property
    def safe_length(self) -> int:
        """Up to how many characters a search takes a moment only, whatever they are."""
        return 0 if self.wild else int((_STEPS / 2**self.options) ** (1 / (self.loops + 1)))


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.edged: list[str] = []
        self.looks_behind = False
        self.positional = False
        self.combines = True
        self.patient = False
        self.loops = 0
        self.options = 0
        self.wild = False

    def run(self) -> None:
        while self.at < len(self.source):
            match self.source[self.at]:
                case "\\":
                    self._escape()
                case "[":
                    self._copy(self._class_end())
                case "(":
                    self._group()
                case "$":
                    self._copy(self.at + 1, _LINE_END)
                case "^":
                    self.positional = True
                    self._copy(self.at + 1)
                case "*" | "+" | "{":
                    self.patient = self.patient or _FUZZY.match(self.source, self.at) is not None
                    self.loops += 1
                    self.wild = self.wild or self.source[self.at - 1 : self.at] == ")"
                    self._copy(self.at + 1)
                case "?" | "|":
                    self.options += 1
                    self._copy(self.at + 1)
                case _:
                    self._copy(self.at + 1)

    def _copy(self, end: int, instead: str | None = None) -> None:
        self.edged.append(self.source[self.at : end] if instead is None else instead)
        self.at = end

    def _escape(self) -> None:
        letter = self.source[self.at + 1 : self.at + 2]
        if letter in _PATIENT_ESCAPES:
            self.patient = True
        if letter == "g" or letter in "123456789":
            self.combines = False
        self.positional = self.positional or letter in "AbBmM"
        braced = _BRACED.match(self.source, self.at)
        self._copy(braced.end() if braced else self.at + 2, _REWRITTEN.get(letter))

    def _class_end(self) -> int:
        """Where the character class ends: its first "]" that is neither first, escaped nor of a [:name:]."""
        at = self.at + 1
        at += self.source.startswith("^", at)
        at += self.source.startswith("]", at)
        while at < len(self.source) and self.source[at] != "]":
            if self.source.startswith("[:", at) and (named := self.source.find(":]", at + 2)) > 0:
                at = named + 2
            else:
                at += 2 if self.source[at] == "\\" else 1
        return at + 1

    def _group(self) -> None:
        source, at = self.source, self.at
        if source.startswith("(?#", at):
            end = source.find(")", at)
            self._copy(end + 1 if end > 0 else len(source), "")
            return
        if source.startswith(("(?<=", "(?<!"), at):
            self.looks_behind = True
            self.edged.append(_TOUCH)
            self.patient = self.patient or not _is_short(source, at)
        elif _RECURSION.match(source, at) or source.startswith("(*", at):
            self.patient = True
        elif source.startswith(("(?P=", "(?("), at):
            self.combines = False
        elif flags := _FLAGS.match(source, at):
            self.patient = self.patient or not set(flags[1]) <= _PLAIN_FLAGS
            # Flags without a scope hold for the whole expression.
            self.combines = self.combines and flags[2] == ":"
        self._copy(at + (2 if source.startswith("(?", at) else 1))


def _is_short(source: str, at: int) -> bool:
    """Whether the lookbehind at `at` is plain: without a repetition it is no longer than its text.

    What looks around from inside of it reads backwards, where an end of the text is not told from the other.
    """
    inside = source[at + 4 :]
    depth = 1
    for piece in _LOOKBEHIND_PIECE.finditer(inside):
        depth += {"(": 1, ")": -1}.get(piece[0][0], 0)
        if depth == 0:
            return True
        if piece.lastgroup == "other":
            return False
    return False


_LOOKBEHIND_PIECE = re.compile(r"(?P<other>\(\?(?!:)|[*+{^$]|\\[bBmMAZzGKX])|\\.|\((?:\?:)?|[^\\(]", re.DOTALL)


_PIECE = re.compile(
    r"(?P<literal>[^\\\[\](){}*+?|.^$]|\\[^\w\s])"  # one character that stands for itself
    r"|(?P<class>\[\^?\]?(?:[^\]\\]|\\.)*\])"
    r"|(?P<open>\((?:\?(?:[:=>]|P?<\w+>)|(?![?*])))"
    r"|(?P<close>\))"
    r"|(?P<repeat>[*+?]|\{\d*,?\d*\})[?+]?"
    r"|(?P<other>\\[\s\S]|[.^$])"
)


def _needed(source: str) -> str:
    """The longest literal that no match can do without.

    "" where the expression is not of a simple kind, or starts with a literal, which a search finds fast anyway.
    """
    runs: list[str] = [""]
    marks: list[int] = []  # how many runs there were when each open group began
    closed = 0  # the same for the group that was closed last
    at = 0
    while at < len(source):
        piece = _PIECE.match(source, at)
        if piece is None or (at == 0 and piece.lastgroup == "literal"):
            return ""
        at = piece.end()
        match piece.lastgroup:
            case "literal":
                closed = len(runs) - 1
                runs[-1] += piece[0][-1]
                continue
            case "open":
                marks.append(len(runs))
            case "close":
                closed = marks.pop() if marks else 0
            case "repeat" if piece[0][0] in "*?" or piece[0].startswith(("{0", "{,")):
                # What may be missing: the group, or the last character of a run.
                if source[piece.start() - 1] == ")":
                    del runs[closed:]
                elif runs[-1]:
                    runs[-1] = runs[-1][:-1]
        runs.append("")
    return max(runs, key=len)
