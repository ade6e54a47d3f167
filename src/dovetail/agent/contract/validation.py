"""Holding the arguments of a call to a schema: all findings at once, and repairs of types that were only misspelled."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from dovetail.messages import to_json

MAX_ROUNDS = 16
MAX_FINDINGS = 50  # kinds of them
MAX_ALIKE = 3
MAX_SHOWN = 120
MAX_DEPTH = 200  # of values; a deeper one could not be written by every JSON library
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where in the value, what, and by which keyword of the schema."""

    pointer: str
    problem: str
    keyword: str

    @property
    def likeness(self) -> tuple[str, str]:
        """Equal for findings about one keyword of the schema, as in the items of an array: of many a few tell all."""
        return self.keyword, self.problem if self.keyword.endswith("/required") else ""


@dataclass(frozen=True, slots=True)
class Repair:
    """A value that was written in another type than it has to have, and is now of that type."""

    pointer: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The value after repairs, and what is still wrong with it."""

    value: Any
    findings: tuple[Finding, ...] = ()
    repairs: tuple[Repair, ...] = ()

    def explained(self) -> str:
        """The findings for the model, each with the value it is about and what would be allowed."""
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.likeness, []).append(finding)
        lines: list[str] = []
        kinds = list(groups.values())
        for alike in kinds[:MAX_FINDINGS]:
            lines += [f"params{finding.pointer}: {finding.problem}" for finding in alike[:MAX_ALIKE]]
            if len(alike) > MAX_ALIKE:
                lines.append(f"... and {len(alike) - MAX_ALIKE} more like this one")
        if len(kinds) > MAX_FINDINGS:
            lines.append(f"... and {sum(map(len, kinds[MAX_FINDINGS:]))} more of other kinds")
        return "\n".join(lines)

    def recorded(self) -> str:
        """The findings without anything of the value: only which keywords of the schema were not met."""
        keywords = list(dict.fromkeys(finding.keyword for finding in self.findings))[:MAX_FINDINGS]
        return f"{len(self.findings)} finding(s), at these places of the schema: {', '.join(keywords)}"


def from_json(text: str) -> Any:
    """The value of JSON text; a number that is too large for a float is a ValueError, since it could not be written."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def check(value: Any, validators: Sequence[jsonschema_rs.Validator]) -> Checked:
    """Whether all validators accept `value`; where only the types of leaves are off, repaired."""
    if _depth(value) > MAX_DEPTH:
        return Checked(value, (Finding("", f"the arguments are nested more than {MAX_DEPTH} deep", "/"),))
    errors = _errors(value, validators)
    if not errors:
        return Checked(value)
    repaired, repairs = _repaired(copy.deepcopy(value), errors, validators)
    if repairs and not _errors(repaired, validators):
        return Checked(repaired, (), tuple(repairs))
    return Checked(value, tuple(_findings(errors)))


def _depth(value: Any) -> int:
    """How deep a value is nested, as far as it matters; without recursion."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        level = [
            part
            for whole in level
            if isinstance(whole, dict | list)
            for part in (whole.values() if isinstance(whole, dict) else whole)
        ]
        depth += 1
    return depth


def _errors(value: Any, validators: Sequence[jsonschema_rs.Validator]) -> list[Any]:
    for validator in validators:
        try:
            errors = list(validator.iter_errors(value))
        except ValueError as error:  # nested too deeply for the validator, or no Unicode text
            return [str(error)]
        if errors:
            return errors
    return []


def _findings(errors: Sequence[Any]) -> Iterator[Finding]:
    for error in errors:
        if isinstance(error, str):
            yield Finding("", error, "/")
            continue
        keyword = _pointer(error.schema_path)
        yield Finding(_pointer(error.instance_path), _problem(error), keyword)


def _problem(error: Any) -> str:
    kind = error.kind
    shown = _shown(error.instance)
    match kind.name:
        case "enum":
            return f"{shown} is not one of the allowed values: {_shown(kind.options, 4 * MAX_SHOWN)}"
        case "const":
            return f"{shown} is not the only allowed value, {_shown(kind.expected_value)}"
        case "type":
            return f"{shown} must be {' or '.join(kind.types)}"
        case "required":
            return f"the required property {_shown(kind.property)} is missing"
        case "anyOf" | "oneOf" if getattr(kind, "context", None):
            arms = [", ".join(_problem(inner) for inner in arm[:3]) for arm in kind.context[:5] if arm]
            which = "fits none of the alternatives" if arms else "fits more than one of the alternatives"
            return f"{shown} {which}" + "".join(f"; ({index + 1}) {arm}" for index, arm in enumerate(arms))
        case _:
            return _cut(error.message, 4 * MAX_SHOWN)


def _shown(value: Any, limit: int = MAX_SHOWN) -> str:
    return _cut(to_json(value), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "..."


def _pointer(steps: Sequence[Any]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _repaired(value: Any, errors: list[Any], validators: Sequence[jsonschema_rs.Validator]) -> tuple[Any, list[Repair]]:
    """`value` with leaves converted where only their type is wrong; each round repairs what the last uncovered."""
    repairs: list[Repair] = []
    for _ in range(MAX_ROUNDS):
        before = len(repairs)
        for steps, wanted in _wrong_types(errors):
            value, made = _converted(value, steps, wanted)
            repairs += made
        if len(repairs) == before:
            break
        errors = _errors(value, validators)
    return value, repairs


def _wrong_types(errors: Sequence[Any]) -> Iterator[tuple[tuple[Any, ...], list[str]]]:
    """Places with a wrong type and the types allowed there; of alternatives, all that complain about the type only."""
    for error in errors:
        if isinstance(error, str):
            continue
        if error.kind.name == "type":
            yield tuple(error.instance_path), list(error.kind.types)
        elif error.kind.name in ("anyOf", "oneOf"):
            arms = [arm for arm in getattr(error.kind, "context", None) or [] if arm]
            for arm in arms:
                yield from _wrong_types(arm)


def _converted(value: Any, steps: tuple[Any, ...], wanted: list[str]) -> tuple[Any, list[Repair]]:
    parent, current = None, value
    for step in steps:
        parent = current
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            return value, []
    changed = _convert(current, wanted)
    if changed is None:
        return value, []
    repair = Repair(_pointer(steps), _type(current), _type(changed[0]))
    if parent is None:
        return changed[0], [repair]
    parent[steps[-1]] = changed[0]
    return value, [repair]


def _convert(value: Any, wanted: list[str]) -> tuple[Any] | None:
    """The value in a wanted type, in a tuple; None where it is not merely misspelled."""
    if "string" in wanted:
        plain = isinstance(value, bool | int | float)
        return (to_json(value),) if plain else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if "boolean" in wanted and text.lower() in ("true", "false"):
        return (text.lower() == "true",)
    if ("number" in wanted or "integer" in wanted) and _NUMBER.fullmatch(text) and len(text) < 400:
        number = _finite(text) if "." in text else int(text)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        return (number,) if "number" in wanted or isinstance(number, int) else None
    if ("array" in wanted and text.startswith("[")) or ("object" in wanted and text.startswith("{")):
        try:
            parsed = from_json(text)
        except (ValueError, RecursionError):
            return None
        return (parsed,) if _type(parsed) in wanted else None
    return None


def _type(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"
