"""Documents of real schemas with a few changes, judged by us and by an independent validator.

    python -m tests.fuzz.mutate_documents FILE.jsonl --documents 100000 --seed 0
    python -m tests.fuzz.mutate_documents FILE.jsonl --only ID    those of one schema, after a finding

A line of the file has an `id`, a `schema` and `tests` with `data`. A schema that is refused by default is left out. The
others take keys in any order and are not strict, so they must accept exactly what jsonschema-rs finds valid, `format`
included. Members and items are left out, added and exchanged, values are changed a little or for others.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from typing import Any

from dovetail.engine import compile
from dovetail.engine.compiled import byte_vocabulary
from dovetail.errors import DovetailError
from tests.fuzz.rounds import play_cases
from tests.fuzz.speak_schemas import validator_for, words

VALUES: list[Any] = [None, True, False, 0, 1, -1, 2.5, 1e3, 10**9, "", "a", "1", " ", "é", [], [1], {}, {"a": 1}]


class Changer:
    """Changes documents at random places."""

    def __init__(self, seed: int, schema: Any, documents: list[Any]) -> None:
        self.random = random.Random(seed)
        self._words = words(schema) or ["a"]
        self._parts = [part for document in documents for part in _parts(document)]

    def change(self, document: Any) -> Any:
        """The document with one to three changes."""
        root = [json.loads(json.dumps(document))]
        for _ in range(self.random.randint(1, 3)):
            holder = self.random.choice([part for part in _parts(root) if isinstance(part, dict | list) and part])
            if isinstance(holder, dict):
                self._member(holder)
            else:
                self._item(holder, holder is root)
        return root[0]

    def _member(self, holder: dict[str, Any]) -> None:
        key = self.random.choice(list(holder))
        match self.random.randrange(5):
            case 0:
                del holder[key]
            case 1:
                holder[self.random.choice([*self._words, key + "x"])] = self._value()
            case 2:
                other = self.random.choice(list(holder))
                holder[key], holder[other] = holder[other], holder[key]
            case _:
                holder[key] = self._near(holder[key])

    def _item(self, holder: list[Any], is_root: bool) -> None:
        index = self.random.randrange(len(holder))
        match 3 if is_root else self.random.randrange(4):
            case 0:
                del holder[index]
            case 1:
                holder.append(holder[index])
            case 2:
                self.random.shuffle(holder)
            case _:
                holder[index] = self._near(holder[index])

    def _value(self) -> Any:
        pool = VALUES if self.random.random() < 0.5 else self._parts
        return json.loads(json.dumps(self.random.choice(pool)))

    def _near(self, value: Any) -> Any:
        """A value that differs a little, or another one."""
        if self.random.random() < 0.3:
            return self._value()
        match value:
            case bool():
                return not value
            case int() | float():
                return self.random.choice([value + 1, value - 1, -value, value * 10, value + 0.5, value / 4])
            case str():
                at = self.random.randint(0, len(value))
                return self.random.choice([value[:at], value[:at] + "é" + value[at:], value.upper(), value + value])
            case _:
                return self._value()


def _parts(value: Any) -> list[Any]:
    """The value and everything inside it."""
    found, pending = [], [value]
    while pending:
        part = pending.pop()
        found.append(part)
        if isinstance(part, dict | list):
            pending += part.values() if isinstance(part, dict) else part
    return found


def play(case: dict[str, Any], documents: int, seed: int) -> tuple[Counter[str], list[str]]:
    """What became of so many documents of one schema, and the findings."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    fmt = {"type": "json_schema", "json_schema": case["schema"], "strict": False, "any_order": True}
    try:
        grammar = compile(fmt, byte_vocabulary())
    except DovetailError:
        return Counter({"of refused schemas": documents}), []
    validator: Any = validator_for(case["schema"])
    known = [test["data"] for test in case["tests"]]
    changer = Changer(seed, case["schema"], known)
    for number in range(documents):
        value = changer.change(known[number % len(known)])
        spaced = changer.random.random() < 0.5
        text = json.dumps(value, ensure_ascii=spaced, separators=None if spaced else (",", ":"))
        valid = validator.is_valid(value)
        matcher = grammar.matcher()
        try:
            taken = matcher.accept_bytes(text) and matcher.is_complete
        except DovetailError as error:
            findings.append(f"{case['id']}: {error}\n    {text}")
            counts["stuck"] += 1
            continue
        counts["valid" if valid else "invalid"] += 1
        if taken != valid:
            counts["valid and refused" if valid else "invalid and taken"] += 1
            findings.append(f"{case['id']}: {'valid and refused' if valid else 'invalid and taken'}\n    {text}")
    return counts, findings


def main() -> None:
    sys.exit(bool(play_cases(__doc__, play, lambda case: case["tests"])["findings"]))


if __name__ == "__main__":
    main()
