"""The value of JSON text that was cut off or is malformed, as far as it can be told."""

from __future__ import annotations

import json
import re
from typing import Any

from dovetail.messages import from_json

MAX_DEPTH = 512

_TOKEN = re.compile(
    r'\s*+(?:(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*"?)|(?P<punctuation>[{}\[\]:,])|(?P<scalar>[^\s{}\[\]:,"]++))',
    re.DOTALL,
)
_BROKEN_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{0,3}\Z")
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_MISSING: Any = object()
_CLOSERS = {"{": "}", "[": "]"}


def best_effort(text: str) -> Any:
    """What the text says up to its end or its first mistake: open strings, arrays and objects are closed.

    A scalar at the very end may be half of one and is left out; None where nothing can be told.
    """
    try:
        return from_json(text)
    except (ValueError, RecursionError):
        return _Builder(text).build()


def missing_end(text: str) -> str:
    """The closing brackets with which the text becomes JSON; nothing where brackets alone do not make it so."""
    open_brackets: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match["punctuation"] or ""
        if token in _CLOSERS:
            open_brackets.append(_CLOSERS[token])
        elif token in ("}", "]") and (not open_brackets or open_brackets.pop() != token):
            return ""
    end = "".join(reversed(open_brackets))
    try:
        from_json(text + end)
    except (ValueError, RecursionError):
        return ""
    return end


class _Builder:
    """Containers on a stack instead of calls on one, so that depth cannot exhaust it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: Any = None
        self._stack: list[Any] = []
        self._keys: list[Any] = []  # for each container the key that waits for its value

    def build(self) -> Any:
        at, end = 0, len(self._text)
        expects_value = True
        while match := _TOKEN.match(self._text, at):
            at = match.end()
            kind, token = match.lastgroup, match[match.lastgroup or 0]
            if kind == "punctuation":
                known = self._punctuate(token, expects_value)
            elif kind == "string":
                known = self._string(token, expects_value)
            else:
                known = expects_value and at < end and self._scalar(token)
            if known is None or known is False:
                break
            expects_value = token in "{[:," if kind == "punctuation" else False
            if not self._stack and not expects_value:
                break
        return self._root

    def _punctuate(self, token: str, expects_value: bool) -> bool:
        top = self._stack[-1] if self._stack else None
        if token in "{[":
            if not expects_value or (isinstance(top, dict) and self._keys[-1] is _MISSING):
                return False
            return len(self._stack) < MAX_DEPTH and self._open({} if token == "{" else [])
        if token in "}]":
            if not isinstance(top, dict if token == "}" else list):
                return False
            self._stack.pop()
            self._keys.pop()
            return True
        if token == ":":
            return isinstance(top, dict) and self._keys[-1] is not _MISSING
        return top is not None and (isinstance(top, list) or self._keys[-1] is _MISSING)

    def _open(self, container: Any) -> bool:
        self._put(container)
        self._stack.append(container)
        self._keys.append(_MISSING)
        return True

    def _string(self, token: str, expects_value: bool) -> bool:
        closed = _is_closed(token)
        if self._stack and isinstance(self._stack[-1], dict) and self._keys[-1] is _MISSING:
            if closed:
                self._keys[-1] = _text(token)
            return closed
        if not expects_value:
            return False
        self._put(_text(token if closed else _close(token)))
        return closed

    def _scalar(self, token: str) -> bool:
        try:
            value = from_json(token)
        except (ValueError, RecursionError):
            return False
        if self._stack and isinstance(self._stack[-1], dict) and self._keys[-1] is _MISSING:
            return False
        self._put(value)
        return True

    def _put(self, value: Any) -> None:
        if not self._stack:
            self._root = value
        elif isinstance(self._stack[-1], list):
            self._stack[-1].append(value)
        else:
            self._stack[-1][self._keys[-1]] = value
            self._keys[-1] = _MISSING


def _is_closed(token: str) -> bool:
    """Whether the last quote of a string token ends it, and is not escaped."""
    return len(token) > 1 and token.endswith('"') and _is_unescaped(token, len(token) - 1)


def _close(token: str) -> str:
    """A cut string with its end: what may be half of a character is left out."""
    for pattern in (_BROKEN_ESCAPE, _HIGH_SURROGATE):
        half = pattern.search(token)
        if half and _is_unescaped(token, half.start()):
            token = token[: half.start()]
    return token + '"'


def _is_unescaped(token: str, at: int) -> bool:
    """Whether the character at `at` is not escaped: an even number of backslashes stands before it."""
    before = token[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0


def _text(token: str) -> str:
    try:
        text = json.loads(token, strict=False)
    except ValueError:
        return token[1:-1]
    return text if isinstance(text, str) else token[1:-1]
