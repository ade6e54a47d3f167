"""Content parsers: what the text inside a region means.

A parser is made when a template is loaded, with all its arguments checked, and then takes text and a time limit. It
raises ValueError where the text does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import regex

from dovetail.errors import ResponseTemplateError

Parse = Callable[[str, float], Any]

RESERVED = ("\x01", "\x02")
_HOLE = regex.compile("\x01([0-9]+)\x02")
_BARE_KEY = regex.compile(r"(?<=[{,])(\w+):")
_MAX_NESTING = 32
# What \s means to the `regex` module; `str.strip` would take U+001C to U+001F as well.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_LAZY_TAIL = regex.compile(
    r"(?P<head>.*\(\?P<value>\.\*\?\))\\s\*(?P<end>(?:[^\s\\\[\](){}*+?|.^$#]|\\[^\w\s])+)", regex.S
)
_SPECIAL_GROUP = regex.compile(r"\(\?(?!:|P<)")


class Arguments:
    """The `content_args` of one parser: typed access, and a note for each key that nobody asked for."""

    def __init__(self, raw: Any, path: str, notes: list[str], strict: bool, depth: int = 0) -> None:
        if not isinstance(raw, dict):
            raise ResponseTemplateError(f"content arguments are {_kind(raw)}, not an object", path, "write an object")
        self.raw = raw
        self.path = path
        self.notes = notes
        self.strict = strict
        self.depth = depth
        self._known: set[str] = set()

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise ResponseTemplateError(f"{key} is {_kind(value)}, not a boolean", self._at(key), "write true or false")
        return value

    def text(self, key: str, default: str) -> str:
        """A text that is not empty."""
        value = self._get(key, default)
        if not isinstance(value, str) or not value:
            raise ResponseTemplateError(f"{key} must be a text that is not empty", self._at(key), "write one")
        return value

    def pairs(self, key: str) -> list[tuple[str, str]]:
        """A list of pairs of texts that are not empty."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(map(_is_pair, value)):
            raise ResponseTemplateError(
                f"{key} must be a list of [open, close] pairs of texts", self._at(key), 'write for example [["<", ">"]]'
            )
        return [(start, end) for start, end in value]

    def pattern(self, key: str) -> Any:
        """A regular expression with a group `key`."""
        value = self._get(key, None)
        if not isinstance(value, str):
            problem = f"{key} is missing" if value is None else f"{key} is {_kind(value)}, not a text"
            raise ResponseTemplateError(
                problem, self._at(key), "write a regular expression with the groups key and value"
            )
        try:
            compiled = regex.compile(value, regex.DOTALL)
        except regex.error as error:
            raise ResponseTemplateError(
                f"{key} is no regular expression: {error}", self._at(key), "correct it"
            ) from None
        if "key" not in compiled.groupindex:
            self._fault(ResponseTemplateError(f"{key} has no group named key", self._at(key), "add (?P<key>...)"))
        return compiled

    def parser(self, key: str) -> Parse | None:
        """A nested parser, {"name": ..., "args": ...}."""
        value = self._get(key, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ResponseTemplateError(
                f"{key} is {_kind(value)}, not an object", self._at(key), 'write {"name": "json"}'
            )
        if unknown := sorted(set(value) - {"name", "args"}):
            self.notes.append(f"{self._at(key)}: {', '.join(unknown)} is ignored")
        if self.depth == _MAX_NESTING:
            raise ResponseTemplateError(f"parsers are nested more than {_MAX_NESTING} deep", self._at(key), "nest less")
        path = self._at(key)
        nested = Arguments(value.get("args", {}), f"{path}/args", self.notes, self.strict, self.depth + 1)
        try:
            name = check_name(value.get("name", "text"), f"{path}/name")
        except ResponseTemplateError as error:
            return _broken(self._fault(error))
        return make(name, nested)

    def finish(self) -> None:
        """Note the keys that this parser does not know."""
        for key in self.raw.keys() - self._known:
            self.notes.append(f"{self._at(key)}: this parser has no such argument; it is ignored")

    def _fault(self, error: ResponseTemplateError) -> str:
        if self.strict:
            raise error
        self.notes.append(f"{error.path}: {error.problem}")
        return error.problem

    def _get(self, key: str, default: Any) -> Any:
        self._known.add(key)
        return self.raw.get(key, default)

    def _at(self, key: str) -> str:
        return f"{self.path}/{pointer(key)}"


def pointer(key: str) -> str:
    """`key` as one step of a JSON Pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(part, str) and part for part in value)


def _broken(problem: str) -> Parse:
    def parse(_text: str, _limit: float) -> Any:
        raise ValueError(problem)

    return parse


def check_name(name: Any, path: str) -> str:
    """`name`, if it is the name of a parser."""
    if not isinstance(name, str) or name not in _FACTORIES:
        known = ", ".join(sorted(_FACTORIES))
        raise ResponseTemplateError(f"there is no content parser {name!r}", path, f"write one of {known}")
    return name


def make(name: str, args: Arguments) -> Parse:
    """The parser `name` with its arguments."""
    parse = _FACTORIES[name](args)
    args.finish()
    return parse


def _text(args: Arguments) -> Parse:
    if args.flag("strip", True):
        return lambda text, _limit: text.strip()
    return lambda text, _limit: text


def _int(args: Arguments) -> Parse:
    text = _text(args)
    return lambda raw, limit: int(text(raw, limit))


def _float(args: Arguments) -> Parse:
    text = _text(args)
    return lambda raw, limit: float(text(raw, limit))


def _bool(args: Arguments) -> Parse:
    text = _text(args)
    return lambda raw, limit: text(raw, limit).lower() in ("true", "1")


def _json(args: Arguments) -> Parse:
    quotes = args.pairs("string_delims")
    bare_keys = args.flag("unquoted_keys", False)
    lenient = args.flag("allow_non_json", False)
    text = _text(args)

    def parse(raw: str, limit: float) -> Any:
        standard = _standard_json(raw, quotes, bare_keys) if quotes or bare_keys else raw
        try:
            return json.loads(standard)
        except json.JSONDecodeError as error:
            if lenient:
                return text(raw, limit)
            rewritten = "" if standard == raw else f" (read as {_short(standard)})"
            raise ValueError(f"not JSON{rewritten}: {error}") from None
        except RecursionError:
            raise ValueError("the JSON is nested too deep") from None

    return parse


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "...")


def _standard_json(text: str, quotes: list[tuple[str, str]], bare_keys: bool) -> str:
    """`text` with custom string delimiters and bare keys rewritten, outside of any JSON grammar, as the format does."""
    strings: list[str] = []
    if quotes and any(char in text for char in RESERVED):
        raise ValueError("the characters U+0001 and U+0002 cannot be used beside string_delims")
    for start, end in quotes:
        text = "".join(_with_holes(text, start, end, strings))
    if bare_keys:
        text = _BARE_KEY.sub(r'"\1":', text)
    return _HOLE.sub(lambda hole: json.dumps(strings[int(hole[1])]), text) if strings else text


def _with_holes(text: str, start: str, end: str, strings: list[str]) -> Iterator[str]:
    """`text` in pieces, each string between `start` and `end` replaced by its number in `strings`."""
    at = 0
    while (opened := text.find(start, at)) >= 0 and (closed := text.find(end, opened + len(start))) >= 0:
        yield text[at:opened]
        yield f"\x01{len(strings)}\x02"
        strings.append(text[opened + len(start) : closed])
        at = closed + len(end)
    yield text[at:]


def _quick(tag: Any) -> tuple[Any, str]:
    """An expression that finds the same tags, and the characters to strip from the end of the values it finds.

    A lazy run up to white space and a literal is tried at every character; up to the literal alone it is a search.
    """
    tail = _LAZY_TAIL.fullmatch(tag.pattern)
    if tail is None or tag.pattern.count("<value>") > 1 or _SPECIAL_GROUP.search(tail["head"]):
        return tag, ""
    return regex.compile(tail["head"] + tail["end"], regex.DOTALL), _SPACES


def _xml_inline(args: Arguments) -> Parse:
    tag, blanks = _quick(args.pattern("tag_pattern"))
    parser = args.parser("value_parser")
    merge = args.flag("merge_duplicates", False)

    def parse(text: str, limit: float) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for match in tag.finditer(text, timeout=limit):
            groups = match.groupdict()
            key, value = groups.get("key"), groups.get("value", "")
            if key is None:
                raise ValueError(f"the tag {_short(match[0])} has no key")
            if blanks and value:
                value = value.rstrip(blanks)
            if parser is not None:
                if value is None:
                    raise ValueError(f"the tag {_short(match[0])} has no value")
                value = parser(value, limit)
            if not merge or key not in out:
                out[key] = value
            elif isinstance(out[key], list):
                out[key].append(value)
            else:
                out[key] = [out[key], value]
        return out

    return parse


def _kv_lines(args: Arguments) -> Parse:
    line_sep = args.text("line_sep", "\n")
    kv_sep = args.text("kv_sep", ":")
    parser = args.parser("value_parser")
    text = _text(args)

    def parse(raw: str, limit: float) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for line in raw.split(line_sep):
            key, separator, value = text(line, limit).partition(kv_sep)
            if separator:
                value = text(value, limit)
                out[text(key, limit)] = value if parser is None else parser(value, limit)
        return out

    return parse


_FACTORIES: dict[str, Callable[[Arguments], Parse]] = {
    "text": _text,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "json": _json,
    "xml-inline": _xml_inline,
    "kv-lines": _kv_lines,
}

# The text of these is part of the value as it streams; that of the others means something only when it is whole.
STREAMED = frozenset({"text", "int", "float", "bool"})
# What these leave as text has no type yet, so a schema may give it one at any depth; JSON has types already.
UNTYPED = frozenset({"xml-inline", "kv-lines"})
