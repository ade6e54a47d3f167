"""Pattern text to syntax: what ECMA-262 and Python agree on, and each one's own spellings where they do not clash."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex import syntax, unicode
from dovetail.grammar.regex.syntax import Look, called, repeat, sequence

MAX_PATTERN = 1 << 18
MAX_DEPTH = 100
MAX_COUNT = (1 << 31) - 1

# Characters that mean themselves; a repetition concerns the last one only, which is left out then.
_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+(?![?*+{])")
_COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_OPEN_COUNT = re.compile(r"\{,[0-9]*\}")
_HEX = {"x": re.compile(r"[0-9A-Fa-f]{2}"), "u": re.compile(r"[0-9A-Fa-f]{4}"), "U": re.compile(r"[0-9A-Fa-f]{8}")}
_BRACED_HEX = re.compile(r"\{[0-9A-Fa-f]{1,8}\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_NAME = re.compile(r"P?<([A-Za-z_$][A-Za-z0-9_$]*)>")
_FLAGS = re.compile(r"([A-Za-z]*)(?:-([A-Za-z]+))?([:)])")
_PROPERTY = re.compile(r"\{([A-Za-z0-9_]+(?:=[A-Za-z0-9_]+)?)\}")
_SIMPLE = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7, "e": 27}
_SETS = {"d": syntax.DIGIT, "w": syntax.WORD, "s": syntax.SPACE}
_LINE_FREE = ir.complement(syntax.LINE_ENDS.ranges)
_EDGES = {"^": syntax.START, "A": syntax.START, "$": syntax.END, "Z": syntax.END}
_LINE_EDGES = {"^": syntax.LINE_START, "$": syntax.LINE_END}
_BARE = ("\\b", "\\B", "\\A", "\\Z")
_LOOKS = {"=": (True, False), "!": (True, True), "<=": (False, False), "<!": (False, True)}
_LOOK_NAMES = {"=": "lookahead", "!": "negative lookahead", "<=": "lookbehind", "<!": "negative lookbehind"}
_REFUSED = {
    ">": ("atomic group (?>...)", "write a plain group (?:...) if backtracking does not matter"),
    "(": ("conditional group (?(...)...)", "write both branches as alternatives"),
    "P=": ("backreference (?P=...)", "spell the text out"),
    "P>": ("recursion (?P>...)", "use a grammar"),
    "&": ("recursion (?&...)", "use a grammar"),
    "R": ("recursion (?R)", "use a grammar"),
    "|": ("branch reset group (?|...)", "write a plain group (?:...)"),
}


@dataclass(slots=True)
class _Group:
    opening: int
    flags: frozenset[str]  # of i, m and s
    look: str | None = None
    alternatives: list[ir.Node] = field(default_factory=list)
    sequence: list[ir.Node] = field(default_factory=list)

    def close(self) -> ir.Node:
        body = ir.alt(*self.alternatives, sequence(self.sequence))
        if self.look is None:
            return body
        ahead, negative = _LOOKS[self.look]
        look = Look(_LOOK_NAMES[self.look], body, ahead, negative, self.opening)
        for inner in called(body):
            if not ahead and isinstance(inner, Look) and inner.ahead:
                problem = f"a {inner.name} inside a {look.name} is not supported"
                raise GrammarError(problem, f"offset {inner.offset}", "move it out of the lookbehind")
        return ir.Call(look)


def read(pattern: str, flags: str) -> ir.Node:
    """The nodes and assertions of `pattern`, some of the flags i, m and s in force from its start."""
    if len(pattern) > MAX_PATTERN:
        raise LimitError(f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN}", "", "shorten it")
    if unknown := {*flags} - {*"ims"}:
        raise GrammarError(f"the flag {min(unknown)} is not supported", "", "i, m and s are")
    return _Parser(pattern, frozenset(flags)).parse()


class _Parser:
    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self._text = pattern
        self._at = 0
        self._stack = [_Group(0, flags)]

    def parse(self) -> ir.Node:
        while self._at < len(self._text):
            if run := _PLAIN.match(self._text, self._at):
                self._at = run.end()
                self._stack[-1].sequence += (
                    map(self._char, run.group()) if "i" in self._stack[-1].flags else [ir.lit(run.group())]
                )
            else:
                self._step()
        if len(self._stack) > 1:
            self._fail("the group is not closed", self._stack[-1].opening, "add )")
        return self._stack[0].close()

    def _fail(self, problem: str, offset: int, fix: str = "") -> NoReturn:
        raise GrammarError(problem, f"offset {offset}", fix)

    def _step(self) -> None:
        group, start = self._stack[-1], self._at
        char = self._text[start]
        self._at += 1
        match char:
            case "|":
                group.alternatives.append(sequence(group.sequence))
                group.sequence = []
            case "(":
                self._open(start)
            case ")":
                if len(self._stack) == 1:
                    self._fail("`)` without a group to close", start, "write \\) for the character")
                self._append(self._stack.pop().close(), start)
            case "^" | "$":
                edges = _LINE_EDGES if "m" in group.flags else _EDGES
                self._append(edges[char], start)
            case ".":
                self._append(ir.ANY_CHAR if "s" in group.flags else _LINE_FREE, start)
            case "[":
                self._append(self._class(start), start)
            case "\\":
                self._append(self._escape(start), start)
            case "*" | "+" | "?":
                self._fail(f"`{char}` has nothing to repeat", start, f"write \\{char} for the character")
            case "{" if _COUNT.match(self._text, start) or self._text.startswith("{,", start):
                self._fail("the repetition has nothing to repeat", start, "write \\{ for the character")
            case _:
                self._append(self._char(char), start)

    def _cased(self, node: ir.Chars) -> ir.Chars:
        return unicode.any_case(node) if "i" in self._stack[-1].flags else node

    def _char(self, char: str) -> ir.Chars:
        return self._cased(ir.Chars(((ord(char), ord(char)),)))

    def _append(self, node: ir.Node, start: int) -> None:
        """Add an atom and the repetition behind it."""
        bounds = self._bounds()
        if bounds is not None and (self._text[start] in "^$" or self._text[start : start + 2] in _BARE):
            self._fail("the repetition has only an assertion to repeat", start, "drop the repetition")
        self._stack[-1].sequence.append(node if bounds is None else repeat(node, *bounds))

    def _bounds(self) -> tuple[int, int | None] | None:
        text, start = self._text, self._at
        if start == len(text):
            return None
        if text[start] in "*+?":
            bounds: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}[text[start]]
            self._at += 1
        elif count := _COUNT.match(text, start):
            self._at = count.end()
            bounds = self._counted(start, count)
        elif _OPEN_COUNT.match(text, start):
            self._fail("{,n} is a repetition in Python and text in ECMA-262", start, "write {0,n}, or \\{ for the text")
        else:
            return None
        self._end_bounds()
        return bounds

    def _counted(self, start: int, count: re.Match[str]) -> tuple[int, int | None]:
        low = self._number(count[1], start)
        if count[2] is None:
            return low, low
        if not count[3]:
            return low, None
        high = self._number(count[3], start)
        if high < low:
            self._fail(f"the repetition {{{low},{high}}} runs backwards", start, "swap its bounds")
        return low, high

    def _number(self, digits: str, start: int) -> int:
        if len(digits.lstrip("0")) > 10 or int(digits) > MAX_COUNT:
            raise LimitError(f"more than {MAX_COUNT} repetitions", f"offset {start}", "leave the upper bound open")
        return int(digits)

    def _end_bounds(self) -> None:
        after = self._text[self._at : self._at + 1]
        if after == "+":
            self._fail("possessive repetition is not supported", self._at, "drop the second +")
        if after == "?":
            self._at += 1
            after = self._text[self._at : self._at + 1]
        if (after and after in "*+?") or _COUNT.match(self._text, self._at):
            self._fail("a repetition of a repetition", self._at, "put the first one in a group (?:...)")

    def _open(self, start: int) -> None:
        text, flags = self._text, self._stack[-1].flags
        look = None
        if text.startswith("?:", self._at):
            self._at += 2
        elif text.startswith("?", self._at):
            self._at += 1
            look = next((mark for mark in ("<=", "<!", "=", "!") if text.startswith(mark, self._at)), None)
            if look:
                self._at += len(look)
            elif text.startswith("#", self._at):
                self._comment(start)
                return
            elif name := _NAME.match(text, self._at):
                self._at = name.end()
            else:
                switched = self._flags(start, flags)
                if switched is None:
                    return
                flags = switched
        if len(self._stack) > MAX_DEPTH:
            raise LimitError(f"groups nest deeper than {MAX_DEPTH}", f"offset {start}", "flatten the pattern")
        self._stack.append(_Group(start, flags, look))

    def _comment(self, start: int) -> None:
        end = self._text.find(")", self._at)
        if end < 0:
            self._fail("the comment is not closed", start, "add )")
        self._at = end + 1

    def _flags(self, start: int, flags: frozenset[str]) -> frozenset[str] | None:
        """The flags of a group, or None where they hold for the rest of the enclosing one."""
        for mark, (problem, fix) in _REFUSED.items():
            if self._text.startswith(mark, self._at):
                self._fail(f"{problem} is not supported", start, fix)
        opening = _FLAGS.match(self._text, self._at)
        if opening is None or (opening[3] == ")" and not opening[1] and not opening[2]):
            self._fail("unknown kind of group", start, "write (?:...) for a plain group")
        on, off = opening[1], opening[2] or ""
        for letter in on + off:
            if letter not in "ims":
                self._fail(f"the flag {letter} is not supported", start, "i, m and s are")
        self._at = opening.end()
        switched = (flags | {*on}) - {*off}
        if opening[3] == ":":
            return switched
        self._stack[-1].flags = switched
        return None

    def _escape(self, start: int) -> ir.Node:
        mark = self._text[self._at : self._at + 1]
        if mark in ("b", "B"):
            self._at += 1
            return syntax.boundary(mark == "B", start)
        if mark in ("A", "Z"):
            self._at += 1
            return _EDGES[mark]
        if mark and mark in "123456789kg":
            self._fail(f"backreference \\{mark} is not supported", start, "spell the text out")
        node = self._class_escape(start)
        if node is not None:
            return self._cased(node) if mark in ("p", "P") else self._cased_set(node, mark)
        code = self._character(start)
        return self._char(chr(code))

    def _cased_set(self, node: ir.Chars, mark: str) -> ir.Chars:
        # A negated set leaves out whatever differs from the set by case only.
        return ir.complement(self._cased(_SETS[mark.lower()]).ranges) if mark.isupper() else self._cased(node)

    def _class_escape(self, start: int) -> ir.Chars | None:
        """A set such as \\d or \\p{L}; None, and nothing read, where the escape is one character."""
        mark = self._text[self._at : self._at + 1]
        if mark and mark in "dwsDWS":
            self._at += 1
            chosen = _SETS[mark.lower()]
            return ir.complement(chosen.ranges) if mark.isupper() else chosen
        if mark not in ("p", "P"):
            return None
        named = _PROPERTY.match(self._text, self._at + 1)
        if named is None:
            self._fail(f"\\{mark} needs a property in braces", start, "as in \\p{L}")
        ranges = unicode.property_ranges(named[1])
        if ranges is None:
            self._fail(f"the Unicode property {named[1]} is not supported", start, "general categories are, as \\p{Lu}")
        self._at = named.end()
        return ir.Chars(ranges) if mark == "p" else ir.complement(ranges)

    def _character(self, start: int) -> int:
        """The one character that an escape stands for; `_at` is behind the backslash."""
        text = self._text
        mark = text[self._at : self._at + 1]
        if not mark:
            self._fail("the pattern ends in a backslash", start, "write \\\\ for a backslash")
        self._at += 1
        if mark in _SIMPLE:
            return _SIMPLE[mark]
        if mark == "0":
            if text[self._at : self._at + 1].isdigit():
                self._fail("octal escapes are not supported", start, "write \\xHH")
            return 0
        if mark == "c":
            letter = text[self._at : self._at + 1]
            if not (letter.isascii() and letter.isalpha()):
                self._fail("\\c needs a letter", start, "as in \\cJ for a line feed")
            self._at += 1
            return ord(letter) % 32
        if mark in "xuU":
            return self._hex(start, mark)
        if mark.isascii() and mark.isalnum():
            self._fail(f"unknown escape \\{mark}", start, f"write {mark} for the character")
        return ord(mark)

    def _hex(self, start: int, mark: str) -> int:
        text = self._text
        digits = _HEX[mark].match(text, self._at)
        if mark == "u" and digits is None:
            digits = _BRACED_HEX.match(text, self._at)
        if digits is None:
            width = {"x": 2, "u": 4, "U": 8}[mark]
            self._fail(f"\\{mark} needs {width} hexadecimal digits", start, "pad the number with zeros")
        self._at = digits.end()
        code = int(digits.group().strip("{}"), 16)
        if mark == "u" and 0xD800 <= code < 0xDC00 and (low := _LOW_SURROGATE.match(text, self._at)):
            self._at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        if code > ir.MAX_CODE_POINT or 0xD800 <= code <= 0xDFFF:
            self._fail(f"\\{mark} {code:X} is not a character", start, "write a code point up to 10FFFF, no surrogate")
        return code

    def _class(self, start: int) -> ir.Chars:
        text = self._text
        negated = text.startswith("^", self._at)
        self._at += negated
        if text.startswith("]", self._at):
            self._fail("empty class", start, "write [\\s\\S] for any character, or \\] for the bracket")
        ranges: list[tuple[int, int]] = []
        while not text.startswith("]", self._at):
            low_at = self._at
            low = self._member(start)
            if not text.startswith("-", self._at) or text.startswith("-]", self._at):
                ranges.extend(_ranges(low))
                continue
            self._at += 1
            high = self._member(start)
            if isinstance(low, ir.Chars) or isinstance(high, ir.Chars):
                # Beside a set such as \w, a hyphen is itself.
                ranges.extend((*_ranges(low), (45, 45), *_ranges(high)))
            elif high < low:
                self._fail("the range runs backwards", low_at, "swap its ends")
            else:
                ranges.append((low, high))
        self._at += 1
        cased = self._cased(ir.chars(ranges))
        return ir.complement(cased.ranges) if negated else cased

    def _member(self, start: int) -> ir.Chars | int:
        """One character of a class, or a set such as \\d."""
        at, text = self._at, self._text
        if at == len(text):
            self._fail("the class is not closed", start, "add ]")
        self._at += 1
        if text[at] != "\\":
            return ord(text[at])
        if text.startswith("b", self._at):
            self._at += 1
            return 8
        chosen = self._class_escape(at)
        return self._character(at) if chosen is None else chosen


def _ranges(member: ir.Chars | int) -> tuple[tuple[int, int], ...]:
    return ((member, member),) if isinstance(member, int) else member.ranges
