"""What a shell command would run and touch, read from its text with tree-sitter without running it.

plain_commands(text)    the commands of a text made of nothing but plain and quoted words, joined by && || ; |
simple_commands(text)   every command that can be found in any text, also inside substitutions and `sh -c '...'`

An allow rule may cover only what the first one reads, because only there is what runs exactly what is written. What the
second one finds is a help for deny rules and no proof: a program can be named in more ways than any reader knows.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dovetail.agent.arguments import READ_COMMANDS, may_be_powerful, powerful
from dovetail.errors import LimitError
from dovetail.extras import install

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_MAX_LENGTH = 1 << 16
# The parser takes quadratic time over some texts of these: 0.2 s for 2,000 pipes, 40 s for 32,000.
_MAX_OPERATORS = 2000
_OPERATORS = re.compile(r"[|&;<>(]")
_MAX_DEPTH = 16
_MAX_COMMANDS = 1000
_MAX_INNER = 64

_RESERVED = frozenset("if then elif else fi while until do done ! { } case esac in coproc function".split())
_HEADERS = frozenset("for case select".split())  # the rest of these is only words
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
# Commands that run the command in their arguments, with the number of plain arguments before it.
_WRAPPERS = dict.fromkeys(
    "sudo doas env nohup nice ionice setsid stdbuf command builtin exec xargs busybox time strace ltrace unshare watch "
    "parallel fakeroot systemd-run nsenter bwrap firejail setpriv prlimit numactl pkexec runuser chronic unbuffer "
    "rlwrap valgrind perf hyperfine entr xvfb-run eatmydata dbus-run-session toybox linux32 linux64 i386 x86_64 "
    "catchsegv cpulimit softlimit chpst proot torsocks tsocks proxychains proxychains4 aa-exec tini dumb-init npx bunx "
    "uvx dotenv setarch ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ldd ssh-agent sshpass "
    "systemd-cat systemd-inhibit choom ifne pee zrun start-stop-daemon dtach abduco wine".split(),
    0,
) | dict.fromkeys("timeout chroot flock taskset chrt gosu su-exec envdir setuidgid logsave lckdo runcon sg".split(), 1)
# Wrappers that give the command they run further arguments, read from their standard input.
_FEEDERS = ("xargs", "parallel")
# Programs of which one subcommand is a wrapper.
_RUNNERS = dict.fromkeys("uv poetry pipenv hatch pdm rye pixi conda mamba pipx".split(), "run") | dict.fromkeys(
    "bundle rbenv pyenv asdf mise direnv composer".split(), "exec"
)
# Options that take a text for the shell, by command; "" is the first plain argument.
_SCRIPTED = {
    "eval": "", "trap": "", "env": "-S", "flock": "-c", "su": "-c", "runuser": "-c", "script": "-c", "watch": "",
    "parallel": "", "hyperfine": "",
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
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_ANSI_C = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)

_PLAIN_PART = r"""[\w./:,=+@%^~-]+|'[^'\0]*'|"(?:[^"$`\\\0]|\\[^$`\n\0])*\""""
_PLAIN_REDIRECT = r"(?:[12]?>>?[ \t]*/dev/null|&>>?[ \t]*/dev/null|0?<[ \t]*/dev/null|[12]>&[12])(?=[ \t;|&]|$)"
_PLAIN_TOKEN = re.compile(
    rf"[ \t]+|(?P<redirect>{_PLAIN_REDIRECT})|(?P<operator>&&|\|\||;|\|(?!&))|(?P<word>(?:{_PLAIN_PART})+)"
)
_PLAIN_NODES = frozenset(
    "program list pipeline command command_name word number string string_content raw_string concatenation "
    'redirected_statement file_redirect file_descriptor && || ; | " > >> < &> &>> >&'.split()
)
_UNQUOTED_TILDE = re.compile(r"(^|[=:])~")
_NOT_A_NAME = _RESERVED | _HEADERS | frozenset("[[ time coproc until".split())


class CommandError(LimitError):
    """The text is no complete command, too long or too deep to be read, or there is no reader for it."""


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


def plain_commands(text: str) -> list[tuple[str, ...]]:
    """The words of each simple command in a text that is plain; CommandError says what in it is not.

    Plain are words, quoted strings without expansions, the operators && || ; | and redirections to /dev/null. Two
    readers have to agree on the words, so that neither's mistakes count.
    """
    tokens = _plain_tokens(text)
    root = _parsed(text)
    for node in _nodes(root):
        if node.type not in _PLAIN_NODES or node.is_missing:
            raise _not_plain(node.type.replace("_", " "))
    commands = [_plain_words(node) for node in _nodes(root) if node.type == "command"]
    if not commands or commands != [words for words, _ in tokens]:
        raise _not_plain("something that cannot be read for certain")
    for words, is_fed in tokens:
        if words[0] in _NOT_A_NAME:
            raise _not_plain(f"the word {words[0]!r} of the shell")
        reader = next((name for name in _names(words) if name in READ_COMMANDS), "") if is_fed else ""
        if reader:
            raise _not_plain(f"a pipe into {reader}, which takes commands from it")
    return commands


def _names(words: tuple[str, ...]) -> Iterator[str]:
    """The names of a command and of those in its arguments, without their folders."""
    yield from map(_name, (words, *Command("", words).inner()))


def _name(words: tuple[str, ...]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _plain_tokens(text: str) -> list[tuple[tuple[str, ...], bool]]:
    """The words between the operators, by the characters alone, and whether a pipe leads into them."""
    commands: list[list[str]] = [[]]
    fed = [False]
    at = 0
    while at < len(text):
        match = _PLAIN_TOKEN.match(text, at)
        if match is None:
            raise _not_plain(_named(text[at]))
        if match["operator"]:
            commands.append([])
            fed.append(match["operator"] == "|")
        elif word := match["word"]:
            if _UNQUOTED_TILDE.search(re.sub(r"""'[^']*'|"[^"]*\"""", "''", word)):
                raise _not_plain("a ~ that the shell expands")
            commands[-1].append("".join(_unquoted(part) for part in re.findall(_PLAIN_PART, word)))
        at = match.end()
    return [(tuple(words), is_fed) for words, is_fed in zip(commands, fed, strict=True) if words]


def _plain_words(node: Node) -> tuple[str, ...]:
    named = (child for child in node.children if child.type not in ("file_redirect",))
    return tuple(_plain_word(child) for child in named)


def _plain_word(node: Node) -> str:
    if node.type in ("command_name", "concatenation"):
        return "".join(_plain_word(child) for child in node.children)
    return _unquoted(_text(node))


def _unquoted(part: str) -> str:
    if part.startswith("'"):
        return part[1:-1]
    return re.sub(r'\\(["\\])', r"\1", part[1:-1]) if part.startswith('"') else part


def _named(char: str) -> str:
    return {"\n": "a line break", "\\": "a backslash", "$": "an expansion", "`": "a substitution"}.get(
        char, f"the character {char!r}"
    )


def covers(pattern: str, words: Sequence[str]) -> bool:
    """Whether the pattern of an allow rule names a simple command: `git status` exactly, `git *` with any arguments.

    A `*` stands for part of a program's name or for arguments, never for a folder of programs, and not for arguments
    that are known to start other programs or to write files: those the pattern has to spell.
    """
    wanted = _normal_pattern(pattern)
    program, _, _ = wanted.partition(" ")
    name = words[0]
    if not re.fullmatch(re.escape(program).replace(r"\*", "[^/]*"), name) or (".." in name and ".." not in program):
        return False
    line = canonical(words)
    if "*" not in wanted:
        return line == wanted
    takes = re.compile(re.escape(wanted).replace(r"\*", ".*"), re.DOTALL)
    if takes.fullmatch(line) is None and line != wanted.removesuffix(" *"):
        return False
    return _is_spelled(wanted, tuple(words))


def _is_spelled(wanted: str, words: tuple[str, ...]) -> bool:
    """Whether the pattern itself has every word that gives power, and the name of every command in the arguments."""
    spelled = shlex.split(wanted) if any(quote in wanted for quote in "'\"") else wanted.split()
    prefix = next((at for at, word in enumerate(spelled) if "*" in word), len(spelled))
    try:
        inner = list(Command("", words).inner())
    except CommandError:
        return False
    if any(len(words) - len(each) >= prefix for each in inner):
        return False
    if any(_name(each) in _FEEDERS for each in (words, *inner)) and any(map(_may_be_powerful, map(_name, inner))):
        return False
    for each in (words, *inner):
        needed = each[1:] if any(True for _ in _scripts(each)) else powerful(each)
        if Counter(needed) - Counter(spelled):
            return False
    return True


def _may_be_powerful(name: str) -> bool:
    return name in _WRAPPERS or may_be_powerful(name)


def _normal_pattern(pattern: str) -> str:
    pattern = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    try:
        return canonical(shlex.split(pattern)) if any(quote in pattern for quote in "'\"") else pattern
    except ValueError:  # a quote without its end covers nothing but itself
        return pattern


def canonical(words: Sequence[str]) -> str:
    """The words with one space between them, those in quotes that hold a space or a quote themselves."""
    return " ".join(shlex.quote(word) if not word or re.search(r"[\s'\"]", word) else word for word in words)


def simple_commands(text: str) -> list[Command]:
    """All simple commands in the text, whatever they are nested in; CommandError if it cannot be told."""
    commands: list[Command] = []
    _scan(text, commands, 0)
    return commands


def _scan(text: str, commands: list[Command], depth: int) -> None:
    if depth > _MAX_DEPTH or len(commands) > _MAX_COMMANDS:
        raise _too_much()
    before = len(commands)
    for node in _nodes(_parsed(text)):
        if node.type in _COMMAND_NODES:
            commands.append(_command(node))
        elif node.type == "file_redirect":
            commands += _redirection(node)
        elif node.type == "command_substitution" and _text(node).startswith("`"):
            # Inside backquotes a backslash only protects what would end or begin a substitution.
            _scan(re.sub(r"\\([`$\\])", r"\1", _text(node)[1:-1]), commands, depth + 1)
    for command in commands[before:]:
        for words in (command.words, *command.inner()):
            for script in _scripts(words):
                _scan(script, commands, depth + 1)


_COMMAND_NODES = frozenset("command declaration_command unset_command test_command".split())
_EXPANSIONS = frozenset(
    "simple_expansion expansion command_substitution process_substitution arithmetic_expansion brace_expression".split()
)


def _command(node: Node) -> Command:
    words: list[str] = []
    made_up: set[int] = set()
    for child in node.children:
        if child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
            continue
        if child.type != "variable_assignment" and _is_made_up(child):
            made_up.add(len(words))
        words.append(_word(child))
    if words[0] == "coproc":  # the parser knows no coprocesses, and takes the words of their commands for arguments
        raise CommandError("a coprocess cannot be checked", "", "run the command in the background")
    return Command(_text(node), tuple(words), made_up=frozenset(made_up))


def _redirection(node: Node) -> Iterator[Command]:
    operator = next((child.type for child in node.children if not child.is_named), ">")
    target, *more = [_word(child) for child in node.children_by_field_name("destination")] or [""]
    if not (operator in (">&", "<&") and (target.isdigit() or target == "-")):
        paths = (target,)
        yield Command(_text(node), (), paths if operator == "<" else (), () if operator == "<" else paths)
    if more:  # words behind a redirection, which are the command's or its arguments
        yield Command(_text(node), tuple(more))


def _word(node: Node) -> str:
    """A word without its quotes; what the shell will replace stays as it is written."""
    text = _text(node)
    match node.type:
        case "word":
            return re.sub(r"\\(.)", lambda match: "" if match[1] == "\n" else match[1], text, flags=re.DOTALL)
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return _ANSI_C.sub(_unescaped, text[2:-1])
        case "string":
            inner = text[1:-1]
            return re.sub(r'\\([$`"\\\n])', lambda match: "" if match[1] == "\n" else match[1], inner)
        case "command_name" | "concatenation":
            return "".join(_word(child) for child in node.children)
    return text


def _is_made_up(node: Node) -> bool:
    """Whether the shell will put something else in the word's place."""
    return any(
        inner.type in _EXPANSIONS or (inner.type == "word" and re.search(r"(?<!\\)[*?\[{]", _text(inner)))
        for inner in _nodes(node)
    ) and _text(node) not in ("[", "[[")


def _parsed(text: str) -> Node:
    """The syntax tree of a text that the parser reads without an error."""
    if len(text) > _MAX_LENGTH or len(_OPERATORS.findall(text)) > _MAX_OPERATORS:
        raise _too_much()
    root = _parser().parse(text.encode("utf-8", "surrogatepass")).root_node
    if root.has_error or "\0" in text:
        raise CommandError("the command cannot be read for certain", "", "write it in a simpler way")
    return root


@cache
def _parser() -> Parser:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        raise CommandError(
            "rules for shell commands need tree-sitter and tree-sitter-bash", "", install("agent")
        ) from None
    return Parser(Language(tree_sitter_bash.language()))


def _nodes(root: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(node.children)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "surrogatepass")


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
    runner = _RUNNERS.get(name)
    start = words.index(runner) + 1 if runner is not None and runner in words else 1
    if name not in _WRAPPERS and start == 1:
        return set()
    offsets: set[int] = set()
    todo = [(start, _WRAPPERS.get(name, 0))]
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
            offsets.add(offset + at)
            after = []
        todo += [one for one in after if one not in seen]
        seen |= {*after}
    return offsets


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


def _not_plain(what: str) -> CommandError:
    return CommandError(
        f"it holds {what}, and an allow rule covers only plain words and quoted strings joined by &&, ||, ; or |",
        "",
        "quote the word, or split the command into plain ones",
    )
