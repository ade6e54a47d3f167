"""Random documents spoken under real schemas, each judged by an independent validator.

    python -m tests.fuzz.speak_schemas FILE.jsonl --documents 100000 --seed 0
    python -m tests.fuzz.speak_schemas FILE.jsonl --only ID    the documents of one schema, after a finding

A line of the file has an `id` and a `schema`. A schema that is refused by default is counted and left out. The others
speak byte by byte, in declared order and in any, strict and not: whatever the mask allows, odd spellings included. A
finding is a document that is no JSON, has a key twice in one object, or is not valid for jsonschema-rs, which asserts
`format` too; and a walk from which no end can be reached.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import jsonschema_rs
import numpy as np

from dovetail.engine import CompiledGrammar, compile
from dovetail.engine.compiled import byte_vocabulary
from dovetail.errors import DovetailError
from dovetail.grammar.json_schema.read.formats import FORMATS
from tests.fuzz.rounds import play_cases

SETTINGS = [
    {"strict": False, "any_order": False},
    {"strict": False, "any_order": True},
    {"strict": True, "any_order": False},
    {"strict": True, "any_order": True},
]
SOFT_LIMIT, HARD_LIMIT = 200, 2000
WORDS_TRIED = 6
MAX_EXPONENT = 300

# How often each class of byte is drawn, before and after the soft limit.
CLASSES = (
    (b'"', 1.0, 300.0),
    (b"}]", 0.5, 20.0),
    (b"\\", 0.3, 0.001),
    (b" \t\r\n", 0.3, 0.001),
    (b",", 1.0, 0.01),
    (bytes(set(range(0x21, 0x7F)) - set(b'"}]\\,')), 6.0, 1.0),
    (bytes(range(0x20)), 0.2, 0.001),
    (bytes(range(0x7F, 0x100)), 0.2, 0.001),
)


_QUOTE = ord('"')
_DOT = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\.", re.DOTALL)
_NAMING = ("properties", "dependentRequired", "dependentSchemas", "dependencies")


class Walker:
    """Says random bytes under a grammar, and now and then a word of its schema: keys would hardly be met by chance."""

    def __init__(self, seed: int, schema: Any) -> None:
        self.random = random.Random(seed)
        self.said = bytearray()
        self._words = [json.dumps(word)[1:].encode() for word in words(schema)]
        self._mask = np.zeros(byte_vocabulary().mask_words, dtype=np.int32)
        self._known: dict[bytes, list[tuple[list[int], float, float]]] = {}

    def speak(self, grammar: CompiledGrammar) -> bytes | None:
        """One document; None where the hard limit came first."""
        matcher = grammar.matcher()
        self.said = said = bytearray()
        soft = self.random.randrange(SOFT_LIMIT)
        while len(said) < HARD_LIMIT:
            closing = len(said) >= soft
            matcher.fill_mask(self._mask)
            groups = self._groups(self._mask.tobytes())
            if matcher.is_complete and (closing or not groups or self.random.random() < 0.5):
                return bytes(said)
            if not groups:
                raise AssertionError(f"a dead end after {bytes(said)!r}")
            weights = [group[1 + closing] for group in groups]
            byte = self.random.choice(self.random.choices(groups, weights)[0][0])
            assert matcher.accept(byte), f"the mask allowed {byte}, which the matcher refuses"
            said.append(byte)
            if byte == _QUOTE and (closing or self.random.random() < 0.5):
                tried = self.random.choices(self._words, k=WORDS_TRIED) if self._words else []
                said += next((word for word in tried if matcher.accept_bytes(word)), b"")
        return None

    def _groups(self, mask: bytes) -> list[tuple[list[int], float, float]]:
        if mask not in self._known:
            allowed = np.flatnonzero(
                np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little", count=256)
            ).tolist()
            groups = [([b for b in allowed if b in chars], talk, close) for chars, talk, close in CLASSES]
            self._known[mask] = [group for group in groups if group[0]]
        return self._known[mask]


def words(schema: Any) -> list[str]:
    """The keys and strings that a schema is about."""
    found: dict[str, None] = {}
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            found |= dict.fromkeys(
                name for key in _NAMING if isinstance(named := part.get(key), dict) for name in named
            )
            found |= dict.fromkeys(word for word in [part.get("const"), *_listed(part)] if isinstance(word, str))
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return list(found)


def _listed(part: dict[str, Any]) -> list[Any]:
    return [word for key in ("enum", "required") if isinstance(listed := part.get(key), list) for word in listed]


def read(text: bytes) -> Any:
    """The value of a JSON text whose objects have no key twice."""
    return json.loads(text, parse_float=_number, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice in one object")
    return found


def _number(text: str) -> float | Decimal:
    """The number as it was said, exact where it is beyond what a float can tell; the largest stand for larger."""
    mantissa, _, exponent = text.lower().partition("e")
    number = Decimal(f"{mantissa}e{max(-9999, min(9999, int(exponent or 0)))}")
    if exponent and number and abs(number.adjusted()) > MAX_EXPONENT:
        number = Decimal(f"1e{MAX_EXPONENT if number.adjusted() > 0 else -MAX_EXPONENT}").copy_sign(number)
    near = float(number)
    if number == Decimal(near):
        return near
    if number == number.to_integral_value():
        return int(number)
    # A large float has no place for a fraction and would be another number.
    return number if abs(near) > 1 and near.is_integer() else near


def _holds(name: str) -> Callable[[str], bool]:
    validator = jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True)
    return lambda text: validator.is_valid(text)


# A format means what it says in every draft, also in those that did not know it yet.
_FORMATS = {name: _holds(name) for name in FORMATS}


def validator_for(schema: Any) -> Any:
    """An independent validator in the draft of the schema."""
    return jsonschema_rs.validator_for(_spelled_out(schema), validate_formats=True, formats=_FORMATS)


def _spelled_out(schema: Any) -> Any:
    """The schema with the dots of its patterns as ECMA-262 has them: the validator lets one stand for a line end."""
    if isinstance(schema, list):
        return [_spelled_out(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str):
            found[key] = _with_dots(value)
        elif key == "patternProperties" and isinstance(value, dict):
            found[key] = {_with_dots(pattern): _spelled_out(part) for pattern, part in value.items()}
        else:
            found[key] = value if key in ("const", "enum") else _spelled_out(value)
    return found


def _with_dots(pattern: str) -> str:
    return _DOT.sub(lambda found: r"[^\n\r\u2028\u2029]" if found[0] == "." else found[0], pattern)


def grammars(schema: Any) -> Iterator[tuple[dict[str, Any], CompiledGrammar | DovetailError]]:
    """The grammars of a schema, or why it is refused."""
    for options in SETTINGS:
        fmt = {"type": "json_schema", "json_schema": schema, **options}
        try:
            yield options, compile(fmt, byte_vocabulary())
        except DovetailError as error:
            yield options, error


def judge(validator: Any, text: bytes) -> str:
    """What is wrong with a document; empty where it is valid."""
    try:
        value = read(text)
    except ValueError as error:
        return str(error)
    error = next(validator.iter_errors(value), None)
    return "" if error is None else f"{error.message[:300]} ({'/'.join(map(str, error.schema_path))})"


def outcome(walker: Walker, grammar: CompiledGrammar, validator: Any) -> tuple[str, str]:
    """What became of one more document, and what is wrong with it."""
    try:
        text = walker.speak(grammar)
        wrong = judge(validator, text) if text is not None else ""
    except (AssertionError, DovetailError) as error:
        return "stuck", str(error)
    return "cut off" if text is None else "invalid" if wrong else "valid", wrong


def play(case: dict[str, Any], documents: int, seed: int) -> tuple[Counter[str], list[str]]:
    """What became of so many documents of one schema, and the findings."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    validator: Any = None
    walker = Walker(seed, case["schema"])
    for number, (options, grammar) in enumerate(grammars(case["schema"])):
        share = (documents + number) // len(SETTINGS)
        if isinstance(grammar, DovetailError):
            counts["of refused schemas"] += share
            continue
        validator = validator or validator_for(case["schema"])
        for _ in range(share):
            what, wrong = outcome(walker, grammar, validator)
            counts[what] += 1
            if wrong:
                findings.append(f"{case['id']} {options}: {wrong}\n    {bytes(walker.said)!r}")
    return counts, findings


def main() -> None:
    total = play_cases(__doc__, play)
    sys.exit(bool(total["invalid"] or total["stuck"]))


if __name__ == "__main__":
    main()
