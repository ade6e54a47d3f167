"""What a shell command would run and touch, read from its text without running it.

text --simple_commands--> the simple commands in it, those inside substitutions, wrappers and `sh -c` included
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from dovetail.errors import LimitError

_MAX_LENGTH = 1 << 16
_MAX_DEPTH = 16
_MAX_COMMANDS = 1000
_MAX_QUOTES = 32
_MAX_INNER = 64

_RESERVED = frozenset("if then elif else fi while until do done ! { } case esac in coproc function".split())
_HEADERS = frozenset("for case select".split())  # the rest of these is only words
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
# Commands that run the command in their arguments, with the number of plain arguments before it.
_WRAPPERS = dict.fromkeys(
    "sudo doas env nohup nice ionice setsid stdbuf command builtin exec xargs busybox time strace ltrace unshare watch "
    "parallel fakeroot systemd-run".split(),
    0,
) | dict.fromkeys("timeout chroot flock taskset chrt".split(), 1)
# Options that take a text for the shell, by command; "" is the first plain argument.
_SCRIPTED = {
    "eval": "", "trap": "", "env": "-S", "flock": "-c", "su": "-c", "script": "-c", "watch": "", "parallel": "",
}  # fmt: skip
# Builtins that can be made to run what stands in their arguments in ways not worth following.
_OPAQUE = frozenset("mapfile readarray compgen complete bind enable hash alias".split())
# Builtins that evaluate their arguments once more, with the substitutions in them.
_EVALUATING = frozenset("let declare typeset local export readonly unset printf read test [ [[".split())
_SHELLS = frozenset("sh bash zsh dash ksh ash fish".split())
_READERS = frozenset(
    "cat head tail less more grep egrep fgrep rg sed awk wc sort uniq diff cmp od xxd hexdump strings file stat nl tac "
    "cut paste base64 md5sum sha1sum sha256sum source . find ls tree du cp".split()
)
_WRITERS = frozenset("tee rm rmdir unlink shred touch mkdir mv cp ln install truncate chmod chown dd rsync".split())
_FETCHERS = frozenset("curl wget http https aria2c".split())
_GLOBBING = frozenset("*?[{")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_ANSI_C = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_REDIRECT = re.compile(r"\d*(<<<|<<-?|<>|>>|>\||>&|<&|&>>|&>|<|>)")


class CommandError(LimitError):
    """The text is no complete command, or too long or too deep to be read."""


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its text as written, its words without quotes, and the files it is redirected from and to.

    `made_up` holds the places of words that the shell will replace by others.
    """

    text: str
    words: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    made_up: frozenset[int] = frozenset()

    @property
    def line(self) -> str:
        """The words with one space between them."""
        return " ".join(self.words)

    @property
    def run_line(self) -> str:
        """The line without words of the shell's own syntax; "" where nothing but syntax stands."""
        words = self.words
        while words and words[0] in _RESERVED:
            words = words[1:]
        return "" if words and words[0] in _HEADERS else " ".join(words)

    @property
    def dynamic(self) -> bool:
        """Whether what is run is only known when it runs."""
        return any(self._unknown(words) for words in (_without_prefix(self.words), *self.inner()))

    def _unknown(self, words: tuple[str, ...]) -> bool:
        if not words:
            return False
        name = words[0].rpartition("/")[2]
        evaluated = name in _EVALUATING and any(mark in word for word in words[1:] for mark in ("$(", "`"))
        # A shell without a script reads commands from its input.
        reads_input = name in _SHELLS and not any(not word.startswith("-") for word in words[1:])
        return len(self.words) - len(words) in self.made_up or name in _OPAQUE or evaluated or reads_input

    def inner(self) -> Iterator[tuple[str, ...]]:
        """The words of the commands that this one stands, or may stand, around."""
        seen = {0}
        todo = [0]
        while todo:
            at = todo.pop()
            words = self.words[at:]
            bare = _without_prefix(words)
            for start in {len(words) - len(bare), *_wrapped(bare, len(words) - len(bare))}:
                if at + start not in seen:
                    seen.add(at + start)
                    todo.append(at + start)
                    yield self.words[at + start :]
            if len(seen) > _MAX_INNER:
                raise _too_much()

    def touched(self) -> Iterator[tuple[str, str]]:
        """The operations implied, as pairs of "read", "write" or "fetch" and the path or address."""
        for path in self.reads:
            yield "read", path
        for path in self.writes:
            yield "write", path
        for words in (self.words, *self.inner()):
            if not words:
                continue
            name, plain = words[0].rpartition("/")[2], [word for word in words[1:] if not word.startswith("-")]
            for word in plain:
                path = word.partition("=")[2] if name == "dd" else word
                if name in _READERS:
                    yield "read", path
                if name in _WRITERS:
                    yield "write", path
                if name in _FETCHERS:
                    yield "fetch", path if "//" in path else f"https://{path}"


def host(address: str) -> str:
    """The host name in an address, "" where there is none."""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""


def simple_commands(text: str) -> list[Command]:
    """All simple commands in the text, whatever they are nested in; CommandError if it cannot be told."""
    found: list[Command] = []
    _scan(text, found, 0)
    return found


def _scan(text: str, found: list[Command], depth: int) -> None:
    if len(text) > _MAX_LENGTH or depth > _MAX_DEPTH or len(found) > _MAX_COMMANDS:
        raise _too_much()
    before = len(found)
    _Scanner(text, found, depth).run()
    for command in found[before:]:
        for words in (command.words, *command.inner()):
            for script in _scripts(words):
                _scan(script, found, depth + 1)


def _without_prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    while words and (words[0] in _RESERVED or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words


def _wrapped(words: tuple[str, ...], offset: int) -> set[int]:
    """Where the command in the arguments of a wrapper such as sudo, or of `find -exec`, may begin.

    Whether the word after an option is its value is not known here, so both are followed.
    """
    name = words[0].rpartition("/")[2] if words else ""
    if name == "find":
        return {offset + at + 1 for at, word in enumerate(words) if word in ("-exec", "-execdir", "-ok", "-okdir")}
    if name not in _WRAPPERS:
        return set()
    found: set[int] = set()
    todo = [(1, _WRAPPERS[name])]
    seen = set(todo)
    while todo:
        at, plain = todo.pop()
        if at >= len(words):
            continue
        if words[at].startswith("-"):
            after = [(at + 1, plain), (at + 2, plain)]
        elif plain:
            after = [(at + 1, plain - 1)]
        elif name == "env" and _ASSIGNMENT.match(words[at]):
            after = [(at + 1, plain)]
        else:
            found.add(offset + at)
            after = []
        todo += [one for one in after if one not in seen]
        seen |= {*after}
    return found


def _scripts(words: tuple[str, ...]) -> Iterator[str]:
    """Texts that the command hands to a shell."""
    if not words:
        return
    name, rest = words[0].rpartition("/")[2], words[1:]
    option = _SCRIPTED.get(name)
    if option == "":
        yield " ".join(rest)
        yield from (word for word in rest if not word.startswith("-"))
    for at, word in enumerate(rest):
        if name in _SHELLS and word.startswith("-") and not word.startswith("--") and "c" in word:
            yield from rest[at + 1 : at + 2]
        elif option and word.startswith(option):
            yield word[len(option) :] or " ".join(rest[at + 1 : at + 2])
        elif name == "env" and word.startswith("--split-string"):
            yield word.partition("=")[2] or " ".join(rest[at + 1 : at + 2])


@dataclass(slots=True)
class _Pending:
    """The simple command that the scanner is in."""

    start: int
    words: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    word: str | None = None
    expands: bool = False  # the word so far holds something that the shell will replace
    made_up: set[int] = field(default_factory=set)
    redirect: str = ""


class _Scanner:
    """One pass over the text; what stands in substitutions is scanned by another of its kind."""

    def __init__(self, text: str, found: list[Command], depth: int) -> None:
        self._text = text
        self._found = found
        self._depth = depth
        self._at = 0
        self._quotes = 0
        self._now = _Pending(0)
        self._heredocs: list[tuple[str, bool, bool]] = []

    def run(self) -> None:
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "\n":
                self._end_command()
                self._at += 1
                self._skip_heredocs()
            elif char in " \t":
                self._end_word()
                self._at += 1
            elif char == "#" and self._now.word is None:
                self._at = self._find("\n", len(text))
            elif text.startswith(("<(", ">("), self._at):
                self._at += 2
                self._add(self._nested(arithmetic=False), expands=True)
            elif self._starts_redirect():
                self._start_redirect()
            elif char in ";|&()":
                self._end_command()
                self._at += 1
            else:
                self._word_part(char)
        self._end_command()

    def _starts_redirect(self) -> bool:
        text, at = self._text, self._at
        if text[at].isdigit():
            return self._now.word is None and _REDIRECT.match(text, at) is not None
        return text[at] in "<>" or text.startswith("&>", at)

    def _start_redirect(self) -> None:
        self._end_word()
        match = _REDIRECT.match(self._text, self._at)
        assert match is not None
        self._now.redirect = match[1]
        self._at = match.end()

    def _word_part(self, char: str) -> None:
        text = self._text
        if char == "\\":
            if text[self._at + 1 : self._at + 2] != "\n":
                self._add(text[self._at + 1 : self._at + 2])
            self._at += 2
        elif char == "'":
            end = self._find("'", None, self._at + 1)
            self._add(text[self._at + 1 : end])
            self._at = end + 1
        elif text.startswith("$'", self._at):
            self._ansi_c()
        elif char == '"' or text.startswith('$"', self._at):
            self._at += 1 if char == '"' else 2
            self._double_quoted('"')
        elif char in "$`":
            self._expansion(char)
        else:
            self._add(char, expands=char in _GLOBBING)
            self._at += 1

    def _expansion(self, char: str) -> None:
        text = self._text
        if char == "`":
            self._at += 1
            self._add(self._backticks(), expands=True)
        elif text.startswith("$(", self._at):
            self._at += 2
            self._add(self._nested(), expands=True)
        elif text.startswith("${", self._at):
            self._at += 2
            self._double_quoted("}")
        else:
            self._add("$", expands=text[self._at + 1 : self._at + 2] not in ("", " ", "\t", "\n"))
            self._at += 1

    def _double_quoted(self, end: str) -> None:
        """Text up to `end` in which only expansions and backslashes are special."""
        text = self._text
        self._quotes += 1
        if self._quotes > _MAX_QUOTES:
            raise _too_much()
        self._add("", expands=end != '"')
        while not text.startswith(end, self._at):
            if self._at >= len(text):
                raise _unfinished(end)
            char = text[self._at]
            if char == "\\":
                after = text[self._at + 1 : self._at + 2]
                self._add("" if after == "\n" else after if after in '$`"\\' else char + after)
                self._at += 2
            elif char in "$`":
                self._expansion(char)
            elif char == '"':
                self._at += 1
                self._double_quoted('"')
            else:
                self._add(char)
                self._at += 1
        self._at += len(end)
        self._quotes -= 1

    def _ansi_c(self) -> None:
        end = self._at + 2
        while end < len(self._text) and self._text[end] != "'":
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            raise _unfinished("'")
        self._add(_ANSI_C.sub(_unescaped, self._text[self._at + 2 : end]))
        self._at = end + 1

    def _nested(self, *, arithmetic: bool = True) -> str:
        """Scan what stands up to the closing parenthesis, and return it as written."""
        start = self._at
        end = self._closing()
        inner = self._text[start:end]
        if re.search(r"\bcase\b", inner):  # the parentheses of its patterns close nothing
            raise CommandError(
                "a `case` inside a substitution cannot be checked", "", "write it as a command of its own"
            )
        # `$((` is arithmetic where its second parenthesis closes just before the first, and else a subshell.
        self._at = start + 1
        if arithmetic and inner.startswith("(") and inner.endswith(")") and self._closing() == end - 1:
            self._substitutions(inner)
        else:
            _scan(inner, self._found, self._depth + 1)
        self._at = end + 1
        return inner

    def _closing(self) -> int:
        """The place of the parenthesis that closes the one just read."""
        depth = 1
        while True:
            if self._at >= len(self._text):
                raise _unfinished(")")
            char = self._text[self._at]
            if char == "\\":
                self._at += 1
            elif char in "'\"`":
                self._skip_quoted(char)
            depth += (char == "(") - (char == ")")
            if not depth:
                return self._at
            self._at += 1

    def _substitutions(self, text: str) -> None:
        """Scan text in which nothing is run but what is substituted."""
        inside = _Scanner(text, self._found, self._depth + 1)
        while inside._at < len(text):
            if text[inside._at] in "$`":
                inside._expansion(text[inside._at])
            else:
                inside._at += 2 if text[inside._at] == "\\" else 1

    def _skip_quoted(self, quote: str) -> None:
        """Move onto the closing quote; a quote inside a substitution inside quotes ends it early, which errs safely."""
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != quote:
            self._at += 2 if self._text[self._at] == "\\" and quote != "'" else 1
        if self._at >= len(self._text):
            raise _unfinished(quote)

    def _backticks(self) -> str:
        inner: list[str] = []
        while self._at < len(self._text) and self._text[self._at] != "`":
            if self._text[self._at] == "\\" and self._text[self._at + 1 : self._at + 2] in ("`", "\\", "$"):
                self._at += 1
            inner.append(self._text[self._at : self._at + 1])
            self._at += 1
        if self._at >= len(self._text):
            raise _unfinished("`")
        self._at += 1
        _scan("".join(inner), self._found, self._depth + 1)
        return "".join(inner)

    def _skip_heredocs(self) -> None:
        for delimiter, quoted, tabs in self._heredocs:
            start = self._at
            while self._at < len(self._text):
                end = self._find("\n", len(self._text))
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
            if not quoted:
                self._substitutions(self._text[start : self._at])
        self._heredocs = []

    def _find(self, what: str, otherwise: int | None, start: int | None = None) -> int:
        at = self._text.find(what, self._at if start is None else start)
        if at < 0 and otherwise is None:
            raise _unfinished(what)
        return at if at >= 0 else otherwise or 0

    def _add(self, text: str, *, expands: bool = False) -> None:
        self._now.word = (self._now.word or "") + text
        self._now.expands |= expands

    def _end_word(self) -> None:
        now = self._now
        if now.word is None:
            return
        word, now.word = now.word, None
        if now.redirect.startswith("<<") and now.redirect != "<<<":
            raw = self._text[max(0, self._at - len(word) - 2) : self._at]
            self._heredocs.append((word, any(mark in raw for mark in "'\"\\"), now.redirect == "<<-"))
        elif now.redirect in ("<", "<>"):
            now.reads.append(word)
        elif (
            now.redirect
            and now.redirect not in ("<<<", "<&")
            and not (now.redirect == ">&" and (word.isdigit() or word == "-"))
        ):
            now.writes.append(word)
        elif not now.redirect:
            if now.expands and word not in ("[", "[[", "{"):
                now.made_up.add(len(now.words))
            now.words.append(word)
        now.redirect, now.expands = "", False
        if word == "{" and self._text[: self._at].endswith(
            "{"
        ):  # a group begins, perhaps after words of its own syntax
            self._end_command()

    def _end_command(self) -> None:
        self._end_word()
        now = self._now
        if now.words or now.reads or now.writes:
            text = self._text[now.start : self._at].strip()
            made_up = frozenset(now.made_up)
            self._found.append(Command(text, tuple(now.words), tuple(now.reads), tuple(now.writes), made_up))
        self._now = _Pending(min(self._at + 1, len(self._text)))


def _unescaped(match: re.Match[str]) -> str:
    number = match[1] or match[2] or match[3]
    try:
        return (
            chr(int(number, 16)) if number else chr(int(match[4], 8)) if match[4] else _ESCAPES.get(match[5], match[5])
        )
    except (ValueError, OverflowError):
        return ""


def _too_much() -> CommandError:
    return CommandError("the command is too long or too deep to be checked", "", "split it into several calls")


def _unfinished(what: str) -> CommandError:
    return CommandError(f"the command has no closing {what}", "", "close what it opens")
