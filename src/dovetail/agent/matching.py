"""What the patterns of rules say to commands and addresses.

named_by(pattern, words, moved)    whether an allow rule names a simple command, and `hint` why not
runs_one(pattern, text, commands)  whether one of the commands in a text is the one that a rule forbids
same_site(pattern, address, ...)   whether a pattern is about an address
"""

from __future__ import annotations

from dovetail.agent.arguments import powerful
from dovetail.agent.commands import Command, CommandError, canonical, covers, host
from dovetail.agent.patterns import matches_text


def named_by(pattern: str, words: tuple[str, ...], moved: bool) -> bool:
    """Whether the pattern of an allow rule names a simple command.

    In another folder it names only programs that are looked up on the path.
    """
    if moved and ("/" in words[0] and not words[0].startswith("/")):
        return False
    if moved and "*" not in pattern and words[0] not in ("cd", "pushd", "popd"):
        return False
    return covers(pattern, words)


def hint(words: tuple[str, ...]) -> str:
    """What in a command no `*` covers, as a sentence."""
    strong = powerful(words)
    if strong:
        return f" Only a rule that spells {canonical(strong[:1])} covers it, since it can start a program."
    try:
        inner = next(Command("", words).inner(), None)
    except CommandError:
        return ""
    return f" Only a rule that spells {canonical(inner[:1])} covers what it starts." if inner else ""


def runs_one(pattern: str, text: str, commands: list[Command]) -> bool:
    """Whether the text is, or holds, the command that the pattern of a deny or ask rule means."""
    lines = {text.strip()}
    for command in commands:
        lines |= {command.text, command.line, *(" ".join(words) for words in command.inner())}
    # A command called by its path is the same command.
    lines |= {base(line) for line in lines}
    return any(_same_command(pattern, line) for line in lines)


def base(line: str) -> str:
    """A command line without the folder of its program."""
    name, space, rest = line.partition(" ")
    return name.rpartition("/")[2] + space + rest


def _same_command(pattern: str, line: str) -> bool:
    """`git *` takes git with or without arguments, `git*` also gitk, `git:*` and `git` the same as `git *`."""
    pattern = pattern.removesuffix(":*")
    if "*" not in pattern:
        return line == pattern or line.startswith(f"{pattern} ")
    bare = pattern.removesuffix(" *")
    return matches_text(pattern, line) or (bare != pattern and matches_text(bare, line))


def same_site(pattern: str, address: str, *, loosely: bool) -> bool:
    """Whether a pattern is about an address: a domain with what is below it, or `https://host/path` with `*`.

    A `*` in the host stands for part of the host only; rules that forbid also take the address as one text, `loosely`.
    """
    name = host(address)
    if pattern.startswith("domain:"):
        wanted = pattern.removeprefix("domain:").strip().lower()
        return bool(name) and (name == wanted or name.endswith(f".{wanted}") or matches_text(wanted, name))
    if loosely and matches_text(pattern, address):
        return True
    scheme, mark, rest = pattern.partition("://")
    site, slash, path = rest.partition("/") if mark else ("", "", "")
    given_scheme, _, given = address.partition("://")
    given_site, _, given_path = given.partition("/")
    return (
        matches_text(scheme.lower(), given_scheme.lower())
        and matches_text(site.lower(), given_site.lower())
        and not set(given_site) & set("@?#\\")
        and matches_text(path if slash else "*" if site.endswith("*") else "", given_path)
    )
