"""Damaged formats, grammars and patterns, and careless calls, through the public names; run under sanitizers.

    python -m tests.fuzz.boundary --seconds 60 --seed 0     rounds 0, 1, ... until the time is over
    python -m tests.fuzz.boundary --round 17                one round again, after a finding

A finding is an exception that is not a DovetailError where the input was text or JSON, a round of more than ten
seconds of processor time, a mask that disagrees with accept, or whatever a sanitizer reports.
"""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.models import Speaker
from tests.fuzz.rounds import play_rounds

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"},
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", 1, None]}, "minItems": 1, "maxItems": 3},
        "next": {"anyOf": [{"$ref": "#"}, {"const": {"x": [1.5]}}]},
    },
    "required": ["city"],
    "additionalProperties": {"type": "boolean"},
}
TAG = {
    "type": "tag",
    "begin": "<f=a>",
    "content": {"type": "json_schema", "json_schema": SCHEMA},
    "end": ["</f>", "</g>"],
}
TOKEN_TAG = {
    "type": "tag",
    "begin": {"type": "token", "token": "<|start|>"},
    "content": {"type": "any_tokens", "exclude_tokens": [3, "the"]},
    "end": {"type": "token", "token": "<|return|>"},
}
SEEDS: list[dict[str, Any]] = [
    TAG,
    TOKEN_TAG,
    {"type": "json_schema", "json_schema": SCHEMA, "style": "qwen_xml", "max_whitespace_cnt": 2},
    {"type": "triggered_tags", "triggers": ["<f="], "tags": [TAG], "at_least_one": True, "excludes": ["<x>"]},
    {"type": "tags_with_separator", "tags": [TAG], "separator": ",", "stop_after_first": False},
    {"type": "dispatch", "rules": [["<a>", TAG], ["<ab>", {"type": "const_string", "value": "é"}]], "loop": True},
    {"type": "token_dispatch", "rules": [[5, TAG], ["<|call|>", TOKEN_TAG]], "exclude_tokens": ["</think>"]},
    {"type": "token_triggered_tags", "trigger_tokens": ["<|start|>"], "tags": [TOKEN_TAG], "stop_after_first": True},
    {"type": "repeat", "min": 2, "max": 70000, "content": {"type": "regex", "pattern": r"(a|\d{2,}){1,300}?[^\x00-b]"}},
    {"type": "capture", "name": "c", "content": {"type": "any_text", "max_chars": 300, "excludes": ["<", "é"]}},
    {"type": "sequence", "elements": [{"type": "optional", "content": TAG}, {"type": "star", "content": TOKEN_TAG}]},
    {"type": "grammar", "grammar": 'root ::= root "+" t | t\nt ::= [a-z0-9]{1,40} | "(" root ")" # note\n'},
    {"type": "regex", "pattern": r"(?i)x*(y|z)+[^a\-c]{0,3}\p{L}?(?=q)q|(a*)*b"},
]
SPICE = [
    "",
    "\\",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "{9999}",
    "{0,100000}",
    "*",
    "+",
    "?",
    "|",
    "::=",
    '"',
    "#",
    "\x00",
    "é",
]
NUMBERS = [-1, 0, 1, 2, 31, 32, 33, 10**4, 2**31, 2**63, 2**64, 1.5, True, None]


class Round:
    """One round: a damaged format and what is then done to its matcher."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def play(self) -> None:
        vocabulary = Speaker().vocabulary
        for _ in range(4):
            fmt = json.loads(json.dumps(self.random.choice(SEEDS)))
            for _ in range(self.random.randrange(4)):
                fmt = self.damage(fmt)
            with contextlib.suppress(dt.DovetailError):
                self.drive(dt.compile(fmt, vocabulary).matcher(), vocabulary)

    def damage(self, value: Any) -> Any:
        """The same value with one thing changed somewhere inside."""
        r = self.random
        if isinstance(value, dict) and value and r.random() < 0.85:
            key = r.choice(list(value))
            changed = {k: v for k, v in value.items() if k != key}
            return changed if r.random() < 0.1 else changed | {key: self.damage(value[key])}
        if isinstance(value, list) and value and r.random() < 0.85:
            at = r.randrange(len(value))
            return [*value[:at], self.damage(value[at]), *value[at + 1 :]]
        if isinstance(value, str) and r.random() < 0.8:
            at = r.randrange(len(value) + 1)
            return value[:at] + r.choice(SPICE) * r.choice([1, 1, 1, 2, 50]) + value[at + r.randrange(2) :]
        return r.choice([*NUMBERS, *SPICE, r.choice(SEEDS), [r.choice(SEEDS)], {}, []])

    def drive(self, matcher: dt.Matcher, vocabulary: dt.Vocabulary) -> None:
        r = self.random
        mask = np.zeros(vocabulary.mask_words, dtype=np.int32)
        for _ in range(20):
            matcher.fill_mask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
            token = r.randrange(vocabulary.size)
            assert bool(bits[token]) == matcher.fork().accept(token), f"mask and accept differ on token {token}"
            allowed = np.flatnonzero(bits)
            if len(allowed):
                assert matcher.accept(int(r.choice(list(allowed)))), "an allowed token was refused"
            self.careless(matcher)

    def careless(self, matcher: dt.Matcher) -> None:
        """Calls with arguments that no caller should use; each ends in an error or in nothing."""
        r = self.random
        calls = [
            lambda: matcher.accept(r.choice([-1, 10**6, 2**31, 2**40])),
            lambda: matcher.validate([r.choice([-1, 0, 5, 10**6]) for _ in range(4)]),
            lambda: matcher.rollback(r.choice([-1, 0, 1, 10**6, 2**40])),
            lambda: matcher.accept_bytes(r.randbytes(r.randrange(6))),
            lambda: matcher.fill_mask(np.zeros(r.choice([0, 1, 10**3]), dtype=np.int32)),
            lambda: matcher.fill_mask(np.zeros((3, 17), dtype=np.int32), r.choice([-1, 0, 3, 2**40])),
            lambda: dt.fill_masks([matcher] * 3, np.zeros((r.choice([0, 2, 3]), r.choice([0, 13])), dtype=np.int32)),
            lambda: (matcher.forced(), matcher.events(), matcher.is_complete, matcher.fork().reset()),
        ]
        with contextlib.suppress(dt.DovetailError, ValueError, TypeError, OverflowError, IndexError):
            r.choice(calls)()


def main() -> None:
    play_rounds(__doc__, lambda seed: Round(seed).play())


if __name__ == "__main__":
    main()
