"""Strict reading of a schema: every keyword is known, and the schema is one by the rules of its draft."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from dovetail.agent.contract.problems import ContractError

DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_07 = "http://json-schema.org/draft-07/schema"

_COMMON = frozenset(
    "$schema $id $ref $defs $comment $anchor definitions type const enum multipleOf maximum exclusiveMaximum minimum "
    "exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems contains maxProperties minProperties "
    "required properties patternProperties additionalProperties propertyNames items not anyOf oneOf allOf if then else "
    "format contentEncoding contentMediaType contentSchema title description default deprecated readOnly writeOnly "
    "examples nullable".split()
)
_KEYWORDS = {
    DRAFT_07: _COMMON | {"additionalItems", "dependencies"},
    DRAFT_2020_12: _COMMON
    | frozenset(
        "$vocabulary $dynamicRef $dynamicAnchor prefixItems dependentRequired dependentSchemas minContains maxContains "
        "unevaluatedProperties unevaluatedItems".split()
    ),
}
_VALIDATORS = {DRAFT_07: jsonschema_rs.Draft7Validator, DRAFT_2020_12: jsonschema_rs.Draft202012Validator}

# Where schemas stand below a schema: as the value, in a list, or by name.
_ONE = frozenset(
    "not if then else contains additionalProperties additionalItems propertyNames unevaluatedProperties "
    "unevaluatedItems contentSchema items".split()
)
_MANY = frozenset("anyOf oneOf allOf prefixItems items".split())
_NAMED = frozenset("properties patternProperties $defs definitions dependentSchemas dependencies".split())

BACKTRACK_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """What holds a value to a schema; an undeclared draft is held to in both readings, so that each is satisfied."""

    validators: tuple[jsonschema_rs.Validator, ...]
    warnings: tuple[str, ...] = ()


def compile_strictly(schema: Mapping[str, Any], allow_unknown: bool = False) -> Compiled:
    """The validators of a schema; a slip in it is a ContractError that says where it is and what may be meant."""
    draft = _draft(schema)
    problems = list(_unknown(schema, draft)) + list(_ignored(schema))
    if problems and not allow_unknown:
        raise _refused("; ".join(problem for _, problem, _ in problems), problems[0][0], problems[0][2])
    validators = [_compiled(schema, draft)]
    if "$schema" not in schema:
        # Most tools take such a schema for the newest draft; where that reading exists, the value satisfies it too.
        with contextlib.suppress(ContractError):
            validators.append(_compiled(schema, DRAFT_2020_12))
    return Compiled(tuple(validators), tuple(f"--json-schema: {text} at {where or '/'}" for where, text, _ in problems))


def subschemas(schema: Any, where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema in a schema with its JSON Pointer, the outermost first; without recursion."""
    pending: list[tuple[str, Any]] = [(where, schema)]
    while pending:
        place, current = pending.pop()
        if not isinstance(current, Mapping):
            continue
        yield place, current
        below: list[tuple[str, Any]] = []
        for key, value in current.items():
            at = f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if key in _MANY and isinstance(value, list):
                below += [(f"{at}/{index}", part) for index, part in enumerate(value)]
            elif key in _NAMED and isinstance(value, Mapping):
                below += [(f"{at}/{name.replace('~', '~0').replace('/', '~1')}", part) for name, part in value.items()]
            elif key in _ONE:
                below.append((at, value))
        pending += reversed(below)


def _draft(schema: Mapping[str, Any]) -> str:
    declared = schema.get("$schema", DRAFT_07)
    name = declared.removesuffix("#") if isinstance(declared, str) else None
    if name not in _KEYWORDS:
        raise _refused(
            f"the draft {declared!r} is not supported",
            "/$schema",
            f"declare {DRAFT_2020_12} or {DRAFT_07}#, or leave $schema out",
        )
    return name


def _unknown(schema: Mapping[str, Any], draft: str) -> Iterator[tuple[str, str, str]]:
    known = _KEYWORDS[draft]
    for where, current in subschemas(schema):
        for key in current:
            if key in known:
                continue
            if key in _KEYWORDS[DRAFT_2020_12]:
                yield where, f'unknown keyword "{key}"', f'declare "$schema": "{DRAFT_2020_12}" to use it'
            elif near := difflib.get_close_matches(key, known, 1):
                problem = f'unknown keyword "{key}" (did you mean "{near[0]}"?)'
                yield where, problem, "correct the keyword, or pass --allow-unknown-keywords"
            else:
                yield where, f'unknown keyword "{key}"', "remove it, or pass --allow-unknown-keywords"


def _ignored(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for where, current in subschemas(schema):
        if "if" in current and "then" not in current and "else" not in current:
            yield where, '"if" without "then" and "else" says nothing', 'add "then" or "else", or remove "if"'
        if "if" not in current and ("then" in current or "else" in current):
            word = "then" if "then" in current else "else"
            yield where, f'"{word}" without "if" says nothing', f'add "if", or remove "{word}"'
        if "nullable" in current and "type" not in current:
            yield where, '"nullable" without "type" says nothing', 'use "type": [..., "null"]'


def _compiled(document: Mapping[str, Any], draft: str) -> jsonschema_rs.Validator:
    make, schema = _VALIDATORS[draft], dict(document)
    try:
        try:
            # This engine matches in linear time, whatever the pattern; it has no look-around.
            return make(schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions())
        except jsonschema_rs.ValidationError as error:
            if error.kind.name != "format":
                raise
            bounded = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
            return make(schema, validate_formats=True, offline=True, pattern_options=bounded)
    except jsonschema_rs.ValidationError as error:
        where = "".join(f"/{step}" for step in error.instance_path)
        raise _refused(error.message, where) from None
    except ValueError as error:  # nested too deeply, or no JSON at all
        raise _refused(str(error).splitlines()[0]) from None


def _refused(problem: str, where: str = "", fix: str = "") -> ContractError:
    return ContractError(f"--json-schema is not a valid JSON Schema: {problem}", where, fix)
